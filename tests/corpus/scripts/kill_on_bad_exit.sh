#!/bin/bash
#SBATCH --ntasks=3
#SBATCH --cpus-per-task=1
#SBATCH --gres=gpu:1
#SBATCH --output=%x.out
#SBATCH --error=errors.txt
#SBATCH --job-name=bad-exit
#
# Modelled on: open-mmlab/mmdetection tools/slurm_test.sh (srun --kill-on-bad-exit=1: one rank fails, the others go with it)
# Exercises: --kill-on-bad-exit, the exit code of such a step
# Payload: rank 1 fails after a moment, the others would wait for a minute
# Leave out: errors.txt

start=$SECONDS
srun --kill-on-bad-exit=1 bash -c 'if [ $SLURM_PROCID = 1 ]; then sleep 1; exit 7; fi; sleep 60'
echo "step ended with $?"
[ $((SECONDS - start)) -lt 40 ] && echo "the others were ended"
