#!/bin/bash
#SBATCH --job-name=cnode-hpsearch
#SBATCH --array=1,3,5
#SBATCH --gpus-per-node=1
#SBATCH --mem=1G
#SBATCH --output=%A_%a.out
#SBATCH --error=%A_%a.err
#
# Modelled on: jp464/striatal-sequence figures/article/1/script-param-exploration.sh (a search over parameters as an array)
# Exercises: an array of single numbers of which one task fails: each has its own state
# Payload: training; task 3 fails

set -e
fail=()
[ "$SLURM_ARRAY_TASK_ID" != 3 ] || fail=(--fail-at 2)
python3 train.py --seed "$SLURM_ARRAY_TASK_ID" --epochs 4 "${fail[@]}"
echo "fold $SLURM_ARRAY_TASK_ID done"
