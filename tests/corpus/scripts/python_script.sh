#!/usr/bin/env python3
#SBATCH --job-name=pure-python
#SBATCH --output=python.out
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=3
#
# Modelled on: facebookresearch/ResponsibleNLP fairscore/finetuning/run_slurm_finetune.sh (a batch script in Python)
# Exercises: another interpreter than a shell, options in its comments
# Payload: looks at its own environment, trains
import os
import subprocess
import sys

print("job", os.environ["SLURM_JOB_NAME"], "cpus", os.environ["SLURM_CPUS_PER_TASK"],
      "gpus", len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")), flush=True)
sys.exit(subprocess.call([sys.executable, "train.py", "--epochs", "7"]))
