#!/bin/bash

# Parameters
#SBATCH --array=0-2%2
#SBATCH --cpus-per-task=1
#SBATCH --error=%A_%a_0_log.err
#SBATCH --job-name=map
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --open-mode=append
#SBATCH --output=%A_%a_0_log.out
#SBATCH --signal=USR2@90
#SBATCH --time=10
#SBATCH --wckey=submitit
#
# Modelled on: facebookincubator/submitit submitit/slurm/slurm.py (the batch file that map_array writes)
# Exercises: an array with a limit, srun --output with %A, %a and %t inside it
# Payload: squares of the task's number

export SUBMITIT_EXECUTOR=slurm
srun --output "$PWD/%A_%a_%t_log.out" --error "$PWD/%A_%a_%t_log.err" --unbuffered python3 -c '
import os
n = int(os.environ["SLURM_ARRAY_TASK_ID"])
print("array job", os.environ["SLURM_ARRAY_JOB_ID"], "task", n, "square", n * n)'
