#!/bin/bash
#SBATCH --job-name=too-many
#SBATCH --gres=gpu:64
#
# Modelled on: scripts brought along from a larger cluster (more GPUs than any node has)
# Exercises: refusal at submit: the exit code of sbatch, and no job
# Payload: none

echo "never printed"
