#!/bin/bash
#SBATCH --job-name=train -N 2 --ntasks-per-node=4
#SBATCH --gres=gpu:a100:4 -t 1-12 --mem=16G
#SBATCH --array=0-9:3%2 -d afterok:12:13,singleton
#SBATCH --export=ALL,X="a,b" --signal=B:USR1@120
#SBATCH -w n[1-3],m7 --begin=now+2hours --mail-type=END
#BERTH --gpus 2-8 --set weight=2.5 --share 0.5

srun python train.py
#SBATCH --late
