#!/usr/bin/env bash
#SBATCH --job-name=bwa
#SBATCH -o %x_%A_%a.out
#SBATCH -e %x_%A_%a.err
#SBATCH --mail-type=END
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=1G
#SBATCH --array=1-2%8
#
# Modelled on: francoisrobertlab/martin-201811 bash/bwa.sh and lookup tables of alignments (read from a sample sheet by sed in a process substitution)
# Exercises: strict mode, process substitution, CPUs without a GPU, module load where it is missing
# Payload: counts of bases instead of an alignment
# Setup: printf '%s\n' 's1.fa s1' 's2.fa s2' > lookup.txt; echo GATTACA > s1.fa; echo CCGGAATT > s2.fa

set -euo pipefail
module load bwa 2>/dev/null || true
read -r read1 output < <(sed -n "${SLURM_ARRAY_TASK_ID}p" lookup.txt)
fold -w1 "$read1" | sort | uniq -c | awk '{print $2, $1}' > "$output.counts"
echo "$output: $(tr '\n' ' ' < "$output.counts")with ${SLURM_CPUS_PER_TASK} threads"
