#!/bin/bash
#SBATCH --job-name=auto-requeue
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --time=00:20:00
#SBATCH --signal=USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.out
#
# Modelled on: gigantocypris/CT_NVAE experimental/signal_interrupt.sh (USR1, checkpoint, requeue, append)
# Exercises: a signal to the steps of a running job, scontrol requeue by the task itself, SLURM_RESTART_COUNT, appended output
# Payload: training with a checkpoint that goes on where it stopped

echo "start, restarts so far: ${SLURM_RESTART_COUNT:-0}"
if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
  # What the scheduler does shortly before the limit, here after a moment.
  (sleep 2; scancel --signal=USR1 "$SLURM_JOB_ID") &
  srun python3 train.py --checkpoint run.ckpt --epochs 200 --epoch-seconds 0.05
  status=$?
  echo "training left with $status"
  scontrol requeue "$SLURM_JOB_ID"
  sleep 30
  exit 1
fi
srun python3 train.py --checkpoint run.ckpt --epochs 200 | sed 's/epoch [0-9]*/epoch N/'
