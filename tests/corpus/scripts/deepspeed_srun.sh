#!/bin/bash
#SBATCH -N 1
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --no-requeue
#
# Modelled on: microsoft/DeepSpeed deepspeed/launcher/multinode_runner.py (the srun that its Slurm launcher builds)
# Exercises: srun -n with --export of single variables, hosts counted by srun hostname
# Payload: four ranks that print what was exported to them
# Unordered

srun hostname -s > hostfile.txt
echo "hosts $(sort -u hostfile.txt | wc -l) lines $(wc -l < hostfile.txt)"
rm hostfile.txt
export NOT_EXPORTED=secret
srun -n 4 --export=ALL,NCCL_DEBUG=WARN,DS_STAGE=2 python3 rank.py NCCL_DEBUG DS_STAGE NOT_EXPORTED
srun -n 1 --export=PATH,DS_STAGE=3 python3 rank.py NCCL_DEBUG DS_STAGE NOT_EXPORTED
