#!/bin/bash
#SBATCH --job-name=checkpointed
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=checkpointed.out
#SBATCH --gres=gpu:1
#
# Modelled on: a requeue array with a checkpoint per task (trap, scontrol requeue, step read from a file)
# Exercises: scontrol requeue from the batch script, SLURM_RESTART_COUNT, the number stays the same
# Payload: two pieces of a training with a checkpoint

[ -e first_id ] || echo "$SLURM_JOB_ID" > first_id
[ "$(cat first_id)" = "$SLURM_JOB_ID" ] && echo "the same job, restarts ${SLURM_RESTART_COUNT:-0}"
if [ "${SLURM_RESTART_COUNT:-0}" -lt 1 ]; then
  python3 train.py --checkpoint state.json --epochs 10
  scontrol requeue "$SLURM_JOB_ID"
  sleep 60
fi
python3 train.py --checkpoint state.json --epochs 20
