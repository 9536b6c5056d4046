#!/bin/bash
#SBATCH --job-name=sft-llm           # name
#SBATCH --nodes=1                    # nodes
#SBATCH --ntasks-per-node=1          # crucial - only 1 task per dist per node!
#SBATCH --cpus-per-task=8           # number of cores per tasks
#SBATCH --gres=gpu:2                 # number of gpus
#SBATCH --time 200:00:00             # maximum execution time (HH:MM:SS)
#SBATCH --output=%x.out              # output file name
#
# Modelled on: bigscience-workshop/bigscience train/tr11-176B-ml/tr11-176B-ml.slurm (srun --jobid $SLURM_JOBID bash -c with a launcher inside the quotes)
# Exercises: srun --jobid of its own job, variables of the job inside single quotes, SLURM_NODEID
# Payload: a launcher that starts a process for each GPU
# Unordered

export GPUS_PER_NODE=2
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
srun --jobid $SLURM_JOBID bash -c 'for ((i = 0; i < GPUS_PER_NODE; i++)); do
  RANK=$((SLURM_NODEID * GPUS_PER_NODE + i)) LOCAL_RANK=$i WORLD_SIZE=$((SLURM_NNODES * GPUS_PER_NODE)) python3 rank.py --reduce &
done; wait'
