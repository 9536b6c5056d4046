#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --job-name=elastic
#SBATCH --output=%x_%A.out
#SBATCH --error=%x_%A.err
#SBATCH --gres=gpu:2
#
# Modelled on: jamesafranke/ViT_clouds scripts/jim_bash.bash (torchrun --nnodes=1:2 with a local rendezvous)
# Exercises: elastic torchrun: a worker fails once, and all are started again within the job
# Payload: data parallel training with PyTorch on CPUs
# Needs: torch
# Unordered
# Leave out: *.err

export OMP_NUM_THREADS=1
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
torchrun --nnodes=1:2 --nproc_per_node=2 --max_restarts=2 --rdzv_id=100 --rdzv_backend=c10d \
  --rdzv_conf last_call_timeout=2 --rdzv_endpoint=localhost:$port torch_train.py --fail-once
echo "torchrun ended with $?"
