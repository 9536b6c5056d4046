#!/bin/bash
#SBATCH -J persistent
#SBATCH --signal=B:SIGUSR1@50
#SBATCH --time=00:01:00
#SBATCH -n 1
#SBATCH --mem=400M
#SBATCH --output=persistent_%j.out
#
# Modelled on: a persistent service job (trap on USR1 to the batch shell that submits the script again)
# Exercises: --signal=B: to the shell alone, shortly before the time limit; sbatch from within a job
# Payload: a loop that is interrupted; its successor sees the marker and ends
# Slow

resubmit() {
  echo "received SIGUSR1, submitting again"
  touch marker
  sbatch "$SLURM_SUBMIT_DIR/resubmit_before_limit.sh" | sed 's/[0-9][0-9]*/N/'
  kill "$child"
  exit 0
}
trap resubmit SIGUSR1

if [ -e marker ]; then echo "Marker exists"; exit 0; fi
echo "Marker does not exist, working"
sleep 120 &
child=$!
wait $child
echo "Unreachable"
