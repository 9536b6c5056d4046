#!/bin/bash -l
#SBATCH --ntasks=1
#SBATCH --export=NONE
#SBATCH --time=0:10:00
#SBATCH --output=clean.out
#
# Modelled on: Pawsey container examples for OpenFOAM (--export=NONE and a login shell)
# Exercises: nothing of the submitter's environment reaches the job, SLURM_EXPORT_ENV, srun --export=ALL below it
# Payload: shows one variable that must not be there
# Submit: env CORPUS_SECRET=hidden sbatch SCRIPT
# Leave out: env

echo "secret: ${CORPUS_SECRET:-none}"
echo "export: ${SLURM_EXPORT_ENV:-unset}"
export INSIDE=yes
srun --export=ALL bash -c 'echo "inside: ${INSIDE:-none} secret: ${CORPUS_SECRET:-none}"'
