#!/bin/bash
# Modelled on: one-liners in Makefiles and READMEs (sbatch --wrap with --wait)
# Exercises: --wrap, the exit code of sbatch --wait, the default name and output of a wrapped job
# Payload: one command that fails, one that works
# Driver

sbatch --wait --quiet --gres=gpu:1 --output=good.out --wrap="echo name \$SLURM_JOB_NAME; python3 train.py --epochs 3"
echo "good: $?"
sbatch --wait --quiet --gres=gpu:1 -J bad --output=bad.out --wrap "exit 6"
echo "bad: $?"
