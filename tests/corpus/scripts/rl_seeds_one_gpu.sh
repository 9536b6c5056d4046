#!/bin/bash
#SBATCH --nodes=1
#SBATCH --job-name=seeds_train
#SBATCH --mem=2GB
#SBATCH --ntasks=4
#SBATCH --gres=gpu:1
#SBATCH --output=./train_seeds.%j.out
#SBATCH --error=./train_seeds.%j.err
#
# Modelled on: an RL repository's seeds_train job (function over an array of seeds, several on one GPU)
# Exercises: shell functions and arrays, several processes on one GPU, wait -n, nvidia-smi where there is none
# Payload: four trainings that share a device

nvidia-smi 2>/dev/null || echo "no nvidia-smi here"
seeds=(8388 1759 5933 7916)
function train_seeds() {
  local seed
  for seed in "${seeds[@]}"; do python3 train.py --seed "$seed" --epochs 5 > "seed.$seed" & done
  for seed in "${seeds[@]}"; do wait -n || return 1; done
}
train_seeds && cat $(printf 'seed.%s ' "${seeds[@]}") && rm seed.*
exit
