#!/bin/bash
#SBATCH -J diffusers
#SBATCH -N 1
#SBATCH --ntasks-per-node=3
#SBATCH -c 4
#SBATCH --gres=gpu:3
#SBATCH -o ./log/%j.output
#SBATCH -e ./log/%j.err
#
# Modelled on: a DeepSpeed launch script for diffusers (hostfile from scontrol in a loop, port from the job's number)
# Exercises: short options, scontrol show hostnames in a pipe, SLURM_NTASKS_PER_NODE, SLURM_JOBID
# Payload: a hostfile and its sum of slots
# Setup: mkdir log

if [ "$SLURM_JOB_NUM_NODES" -ge 1 ]; then
  scontrol show hostnames "$SLURM_JOB_NODELIST" | while read -r line; do
    echo "${line} slots=$SLURM_NTASKS_PER_NODE"
  done > hostfile
fi
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$(expr 10000 + $(echo -n "$SLURM_JOBID" | tail -c 4))
[ "$MASTER_PORT" -gt 10000 ] && echo "master $MASTER_ADDR"
awk -F= '{slots += $2} END {print "slots", slots}' hostfile
