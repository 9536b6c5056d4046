#!/bin/bash
#SBATCH --job-name=cleanrl
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-gpu=4
#SBATCH --ntasks=1
#SBATCH --output=logs/%x_%A_%a.out
#SBATCH --array=0-3%4
#
# Modelled on: vwxyzjn/cleanrl and CarperAI templates of benchmark jobs (environments and seeds by quotient and remainder)
# Exercises: --cpus-per-gpu, --gpus-per-task with one task, arithmetic on the number of the array task, srun in an array
# Payload: a training run per seed
# Setup: mkdir logs

env_ids=(CartPole Acrobot)
seeds=(1 2)
env_id=${env_ids[$SLURM_ARRAY_TASK_ID / 2]}
seed=${seeds[$SLURM_ARRAY_TASK_ID % 2]}

echo "Running task $SLURM_ARRAY_TASK_ID with env_id: $env_id and seed: $seed"
srun python3 train.py --seed $seed --epochs 8
