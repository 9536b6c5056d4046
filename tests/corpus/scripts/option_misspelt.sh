#!/bin/bash
#SBATCH --job-name=typo
#SBATCH --gpus-per-nod=1
#SBATCH --memory=4G
#
# Modelled on: first scripts of newcomers (an option that does not exist, one that is cut short)
# Exercises: refusal at submit for an unknown option
# Payload: none

echo "never printed"
