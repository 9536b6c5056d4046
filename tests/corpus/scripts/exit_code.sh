#!/bin/bash -e
#SBATCH --job-name=error-handling
#SBATCH --output=%x.out
#SBATCH --error=%x.err
#SBATCH --gres=gpu:1
#
# Modelled on: advice on bash -e in batch scripts (a failed command shows as FAILED in sacct)
# Exercises: the exit code of the script is the job's, standard error in its own file
# Payload: a training that diverges with code 3

echo "before"
python3 train.py --fail-at 2
echo "never printed"
