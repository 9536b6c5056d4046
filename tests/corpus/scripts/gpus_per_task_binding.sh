#!/bin/bash
#SBATCH --job-name=binding
#SBATCH --ntasks=2
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=2
#SBATCH --output=binding.out
#
# Modelled on: Open OnDemand and NERSC affinity checks (each task prints the GPUs that it sees)
# Exercises: --gpus-per-task: every task sees its own device and no other
# Payload: tasks that print their devices
# Unordered

echo "batch sees $(echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c .)"
srun python3 rank.py --devices
srun bash -c 'echo $CUDA_VISIBLE_DEVICES' | sort -u | wc -l
