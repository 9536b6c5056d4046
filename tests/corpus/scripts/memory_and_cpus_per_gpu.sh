#!/bin/bash
#SBATCH --job-name=per-gpu
#SBATCH --gpus=2
#SBATCH --cpus-per-gpu=3
#SBATCH --mem-per-gpu=2G
#SBATCH --ntasks=1
#SBATCH --output=per-gpu.out
#
# Modelled on: cluster guides for multi-GPU nodes (cores and memory in proportion to the GPUs)
# Exercises: --cpus-per-gpu, --mem-per-gpu, --gpus
# Payload: shows what the job was given

echo "gpus ${SLURM_GPUS:-?} on node ${SLURM_GPUS_ON_NODE:-?} cpus ${SLURM_CPUS_ON_NODE:-?}"
srun python3 rank.py
