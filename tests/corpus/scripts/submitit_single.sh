#!/bin/bash

# Parameters
#SBATCH --cpus-per-task=2
#SBATCH --error=DIR/%j_0_log.err
#SBATCH --gpus-per-node=1
#SBATCH --job-name=submitit
#SBATCH --mem=4GB
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --open-mode=append
#SBATCH --output=DIR/%j_0_log.out
#SBATCH --signal=USR2@90
#SBATCH --time=5
#SBATCH --wckey=submitit
#
# Modelled on: facebookincubator/submitit submitit/slurm/slurm.py (the batch file that it writes for one job)
# Exercises: wckey, time in minutes, srun --output and --error with %j and %t, --unbuffered
# Payload: a function that is unpickled, called and pickled again in each task
# Setup: sed -i "s|DIR|$PWD|" SCRIPT; printf '%s\n' '{"function": "sum", "arguments": [3, 4, 5]}' > submitted.json

# command
export SUBMITIT_EXECUTOR=slurm
srun --output "$PWD/%j_%t_log.out" --error "$PWD/%j_%t_log.err" --unbuffered python3 -u -c '
import json, os
job = json.load(open("submitted.json"))
rank = os.environ["SLURM_PROCID"]
result = {"sum": sum}[job["function"]](job["arguments"])
json.dump(["success", result], open(f"result_{rank}.json", "w"))
print("submitit INFO: rank", rank, "of", os.environ["SLURM_NTASKS"], "job", os.environ["SLURM_JOB_ID"], "done:", result)
'
