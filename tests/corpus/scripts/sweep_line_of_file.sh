#!/bin/sh
#SBATCH --time=0-3
#SBATCH --array=1-3
#SBATCH --gres=gpu:1
#SBATCH --mem=2G
#SBATCH -c 4
#SBATCH --requeue
#
# Modelled on: amitaysicherman/reactome protein_drug/train_eavl_all.sh (arguments from the line of a file)
# Exercises: a script for sh, time in days and hours, sed with the number of the array task
# Payload: a training run per line
# Setup: printf '%s\n' '--lr 0.1 --seed 1' '--lr 0.2 --seed 2' '--lr 0.3 --seed 3' > train_eval_all.txt

args=$(sed -n "$SLURM_ARRAY_TASK_ID"p train_eval_all.txt)
python3 train.py $args
