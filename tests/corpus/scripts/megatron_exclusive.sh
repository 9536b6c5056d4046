#!/bin/bash

#SBATCH -t 0:30:00 --exclusive --mem=0 --overcommit --ntasks-per-node=8
#
# Modelled on: NVIDIA/Megatron-LM examples/academic_paper_scripts/sc21/SRUN.sh (one line of options, srun -l with an output)
# Exercises: several options on a line, --exclusive, --mem=0, --overcommit, srun --output with a pattern
# Payload: eight tasks that say where they are
# Unordered
# Leave out: env

THIS_DIR=$(pwd)
mkdir -p "$THIS_DIR/logs"
CMD="python3 -u rank.py SLURM_NPROCS"

srun -l \
     --output="$THIS_DIR/logs/%x_%j.log" sh -c "${CMD}"
