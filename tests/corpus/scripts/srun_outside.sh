#!/bin/bash
# Modelled on: READMEs that begin with "srun --gres=gpu:1 python train.py" (open-mmlab/mmdetection tools/slurm_test.sh)
# Exercises: srun outside a job: it waits, runs the tasks here and ends with their exit code; standard input reaches it
# Payload: two ranks, a failing program, a filter
# Driver
# Unordered

srun --quiet --gres=gpu:2 --ntasks=2 --ntasks-per-node=2 --cpus-per-task=1 --job-name=direct python3 rank.py SLURM_JOB_NAME
echo "ranks: $?"
srun --quiet -n 1 --gres=gpu:1 bash -c 'exit 9' 2> message
echo "failing: $? $(grep -c 'Exited with exit code 9' message)"
printf 'one\ntwo\n' | srun --quiet -n 1 --gres=gpu:1 tr a-z A-Z
rm message
