#!/bin/bash
#SBATCH --job-name=openfold
#SBATCH --nodes 1
#SBATCH --gpus 2
#SBATCH --cpus-per-task 10
#SBATCH --ntasks-per-node 2
#SBATCH --constraint=a100
#SBATCH --signal=USR1@100
#SBATCH --requeue
#SBATCH --output=openfold-%j.out
#SBATCH --error=openfold-%j.err
#
# Modelled on: Ram81/goat-bench scripts/train/2-goat-ver-monolithic.sh (options with blanks, --constraint, MAIN_ADDR by scontrol, srun python -um)
# Exercises: options with a blank instead of =, --constraint, --gpus with tasks, python -m under srun
# Payload: two ranks that sum a gradient
# Unordered

export GLOG_minloglevel=2
MAIN_ADDR=$(scontrol show hostnames "${SLURM_JOB_NODELIST}" | head -n 1)
export MAIN_ADDR
export MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
srun python3 -um rank --reduce MAIN_ADDR
