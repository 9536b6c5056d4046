#!/bin/bash -l

#SBATCH --job-name=t5x
#SBATCH --nodes=1
#SBATCH --cpus-per-task=12
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:2
#SBATCH --hint=nomultithread
#SBATCH --time 100:00:00
#SBATCH --output=log.txt
#
# Modelled on: a t5x launcher for GPU clusters (login shell, --hint, long time limit, XLA flags in the environment)
# Exercises: --hint, hundred hours, one task on several GPUs, variables that the script exports and srun passes on
# Payload: a task that shows them
# Leave out: env

MODEL_DIR=$PWD/experiments
export XLA_FLAGS='--xla_gpu_simplify_all_fp_conversions --xla_gpu_all_reduce_combine_threshold_bytes=136314880'
mkdir -p "$MODEL_DIR"
srun bash -c 'echo "flags: $XLA_FLAGS"; python3 rank.py; python3 train.py --epochs 10 --checkpoint experiments/model.json'
[ -s "$MODEL_DIR/model.json" ] && echo "checkpoint written"
