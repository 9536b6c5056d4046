#!/bin/bash
#SBATCH --job-name=two-nodes
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#
# Modelled on: pytorch/examples distributed/minGPT-ddp/mingpt/slurm/sbatch_run.sh (more nodes than one machine has)
# Exercises: what a cluster of one node says to --nodes=2
# Payload: none

echo "nodes $SLURM_NNODES"
