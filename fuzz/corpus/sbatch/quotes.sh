#!/bin/sh
#SBATCH --job-name="quo ted" --comment='x y' # remark
# SBATCH --off
#PBS -l x
#SBATCH --wrap=a\ b --nice --exclusive=user -HQ
