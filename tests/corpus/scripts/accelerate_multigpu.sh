#!/bin/bash

#SBATCH --job-name=multigpu
#SBATCH -D .
#SBATCH --output=O-%x.%j
#SBATCH --error=E-%x.%j
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=01:59:00
#
# Modelled on: huggingface/accelerate examples/slurm/submit_multigpu.sh (launcher, script and arguments in variables)
# Exercises: -D ., O- and E- files, one task that starts its own processes, srun of a command in a variable
# Payload: a launcher that starts one process for each GPU
# Unordered

export GPUS_PER_NODE=4
head_node_ip=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat > launch.py <<'P'
import os, subprocess, sys
size = int(sys.argv[1])
workers = [subprocess.Popen([sys.executable] + sys.argv[2:], env=dict(os.environ, RANK=str(i), LOCAL_RANK=str(i), WORLD_SIZE=str(size)))
           for i in range(size)]
sys.exit(max(worker.wait() for worker in workers))
P

export LAUNCHER="python3 launch.py $((SLURM_NNODES * GPUS_PER_NODE))"
export SCRIPT="rank.py"
export SCRIPT_ARGS="--reduce"
export CMD="$LAUNCHER $SCRIPT $SCRIPT_ARGS"
echo "head $head_node_ip"
srun $CMD
