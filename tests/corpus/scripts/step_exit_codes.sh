#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --job-name=steps-fail
#SBATCH --output=%x.out
#SBATCH --error=%x.err
#
# Modelled on: sacct tutorials (steps of one job that end differently, the job goes by the script's own code)
# Exercises: exit codes of srun: of a task, the highest of several, a signal, a missing program; steps on record
# Payload: six small steps
# Unordered

srun -n 1 true; echo "true: $?"
srun -n 1 bash -c 'exit 5'; echo "five: $?"
srun -n 2 bash -c 'exit $((SLURM_PROCID + 6))'; echo "highest: $?"
srun -n 1 bash -c 'kill -TERM $$'; echo "signal: $?"
srun -n 1 ./no-such-program; echo "missing: $?"
srun -n 1 --job-name=named bash -c 'exit 0'; echo "named: $?"
exit 4
