#!/bin/bash
#SBATCH --job-name=preprocess
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=500M
#SBATCH --gres=none
#SBATCH --output=cpu.out
#
# Modelled on: preprocessing steps of training pipelines (cores and memory, explicitly no GPU)
# Exercises: --gres=none: no device, no variable of devices
# Payload: sorting

echo "devices: ${CUDA_VISIBLE_DEVICES-unset} ${SLURM_JOB_GPUS-unset} ${SLURM_GPUS_ON_NODE-unset}"
seq 1 1000 | sort -r | sha256sum | cut -c1-12
srun python3 rank.py
