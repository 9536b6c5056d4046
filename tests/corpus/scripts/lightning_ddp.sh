#!/bin/bash -l
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --mem=0
#SBATCH --time=0-02:00:00
#SBATCH --signal=SIGUSR1@90
#
# Modelled on: Lightning-AI/pytorch-lightning docs/source-pytorch/clouds/cluster_advanced.rst (one task per GPU, srun python)
# Exercises: a login shell, what the Slurm environment of Lightning reads, signal by its full name
# Payload: a reader of the variables and a sum over the ranks
# Unordered
# Leave out: env

export NCCL_DEBUG=INFO
export PYTHONFAULTHANDLER=1
export MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
srun python3 rank.py --reduce SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_JOB_NAME SLURM_NNODES SLURM_NODEID
