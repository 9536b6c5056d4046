#!/bin/bash
#SBATCH -J step-array
#SBATCH -o out_%a.txt
#SBATCH -e err_%a.txt
#SBATCH -a 0-8:4
#SBATCH -n 1
#SBATCH -t 5
#
# Modelled on: uschpc/workshop-r-hpc job-scripts/array.job (header block, then the program with its number)
# Exercises: an array with a step, SLURM_ARRAY_TASK_MIN, MAX, STEP and COUNT
# Payload: each task sums its own range

echo "**** Job starts ****"
echo "Task id: ${SLURM_ARRAY_TASK_ID} of ${SLURM_ARRAY_TASK_COUNT}"
echo "from ${SLURM_ARRAY_TASK_MIN} to ${SLURM_ARRAY_TASK_MAX} by ${SLURM_ARRAY_TASK_STEP}"
first=$SLURM_ARRAY_TASK_ID
last=$((first + SLURM_ARRAY_TASK_STEP - 1))
seq "$first" "$last" | awk '{s += $1} END {print "sum", s}'
echo "**** Job ends ****"
