#!/bin/bash
#SBATCH --job-name=per-task
#SBATCH --ntasks=2
#SBATCH --gres=gpu:2
#SBATCH --output=batch.out
#
# Modelled on: facebookresearch/ResponsibleNLP fairscore/finetuning/run_slurm_finetune.sh (srun with outputs for each task)
# Exercises: srun --output with %x, %j, %s, %t and %N, --error, --input for all tasks and from a pipe
# Payload: tasks that read and write

echo "line one" > input.txt
srun --output=%x-%j.%t.out --error=%x-%j.%t.err bash -c 'echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2'
srun --output=step-%s.out --ntasks=1 cat < input.txt
printf 'a\nb\n' | srun --ntasks=1 tr a-z A-Z
srun --ntasks=2 --label --input=0 cat < input.txt
