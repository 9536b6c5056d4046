#!/bin/bash
#SBATCH --job-name="my experiment"
#SBATCH --output="results/%u/%x.%j.txt"
#SBATCH --chdir=work
#SBATCH --begin=now+1
#SBATCH --nice=100
#SBATCH --gres=gpu:1
#
# Modelled on: labs that keep outputs per user (--chdir, %u and %x in paths, names with blanks)
# Exercises: --chdir with a relative path, a name with a blank, %u, --begin, --nice
# Payload: where it runs and what it is called
# Setup: mkdir -p work/results/$(id -un)

echo "in ${PWD##*/}, submitted from ${SLURM_SUBMIT_DIR##*/}"
echo "called '$SLURM_JOB_NAME'"
