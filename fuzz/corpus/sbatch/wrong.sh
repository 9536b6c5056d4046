#!/bin/sh
#SBATCH --job-name="open
#SBATCH --gpu=1 --tim=x stray
