#!/bin/bash
#SBATCH --job-name=cancelled
#SBATCH --output=cancelled.out
#SBATCH --gres=gpu:1
#
# Modelled on: watchdogs in training scripts (scancel $SLURM_JOB_ID when there is nothing left to do)
# Exercises: scancel of the job by itself, the state CANCELLED
# Payload: none

echo "nothing left to do"
scancel "$SLURM_JOB_ID"
sleep 60
echo "never printed"
