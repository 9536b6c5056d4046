#!/bin/bash
#SBATCH -t 16:00:00
#SBATCH -n 1
#SBATCH --mem=500
#SBATCH --array=1-2
#SBATCH -o out-%a.out
#
# Modelled on: jtimonen/lgpr-usage reproducibility/05_nb/job.sh (Rscript under srun with the number of the task)
# Exercises: memory without a unit, no GPU at all, module where there is none, srun in an array
# Payload: R where it is installed, else the same mean by awk

command -v module >/dev/null && module load r
n=$SLURM_ARRAY_TASK_ID
cat > job.$n.awk <<'A'
{ s += $1 * $1 } END { printf "task %d mean of squares %.2f\n", n, s / NR }
A
seq 1 10 | srun awk -v n="$n" -f job.$n.awk
rm job.$n.awk
