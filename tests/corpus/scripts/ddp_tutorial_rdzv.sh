#!/bin/bash

#SBATCH --job-name=multinode-example
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-task=2
#SBATCH --cpus-per-task=4
#SBATCH --error=%j.err
#
# Modelled on: pytorch/examples distributed/ddp-tutorial-series/slurm/sbatch_run.sh (head node by scontrol and srun, c10d)
# Exercises: scontrol show hostnames, srun on a named node, srun torchrun with a rendezvous
# Payload: data parallel training with PyTorch on CPUs
# Needs: torch
# Unordered
# Leave out: *.err

nodes=( $(scontrol show hostnames $SLURM_JOB_NODELIST) )
head_node=${nodes[0]}
echo "nodes ${#nodes[@]} head $head_node"
address=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
[ -n "$address" ] && echo "the head has an address"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

export OMP_NUM_THREADS=1
srun torchrun \
  --nnodes 1 \
  --nproc_per_node 2 \
  --rdzv_id 2024 \
  --rdzv_backend c10d \
  --rdzv_endpoint "localhost:$port" \
  torch_train.py
