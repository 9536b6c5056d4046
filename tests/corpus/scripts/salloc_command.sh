#!/bin/bash
# Modelled on: slitvinov/deepseek-slurm main2.sh (an allocation by salloc, steps inside it)
# Exercises: salloc with a command: steps run in its allocation, its exit code comes back, the allocation is given back
# Payload: two steps of two tasks
# Driver
# Unordered

salloc --quiet --job-name=alloc -n 2 --gres=gpu:2 bash -c 'srun python3 rank.py SLURM_JOB_NAME; srun -n 1 hostname | wc -l; exit 3'
echo "salloc: $?"
for i in {1..50}; do [ -z "$(squeue -h --me -n alloc)" ] && break; sleep 0.2; done
squeue -h --me -n alloc | wc -l
