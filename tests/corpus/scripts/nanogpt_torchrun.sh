#!/bin/bash
#SBATCH --job-name=nanogpt
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH -t 30:00
#SBATCH --output=%j.out
#SBATCH --error=%j.err
#
# Modelled on: Niccolo-Ajroldi/nanoGPT scripts/run.sh (torchrun --standalone with as many processes as GPUs)
# Exercises: torchrun in a batch script without srun, GPUs by --gpus-per-node, time in minutes and seconds
# Payload: data parallel training with PyTorch on CPUs
# Needs: torch
# Unordered
# Leave out: *.err

export OMP_NUM_THREADS=1
gpus=$(echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | wc -l)
torchrun --standalone --nproc_per_node="$gpus" torch_train.py
