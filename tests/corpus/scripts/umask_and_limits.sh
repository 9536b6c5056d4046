#!/bin/bash
#SBATCH --job-name=limits
#SBATCH --output=limits.out
#SBATCH --gres=gpu:1
#
# Modelled on: shared project folders (umask of the submitter decides who can read the results)
# Exercises: the umask of the submitter, the mode of a result, the working directory
# Payload: a file
# Submit: bash -c 'umask 0027; sbatch SCRIPT'

umask
echo result > result.txt
stat -c %a result.txt
pwd
