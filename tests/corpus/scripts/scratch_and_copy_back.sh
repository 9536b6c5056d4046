#!/bin/bash
### Slurm Construction

#SBATCH --job-name=scratch
#SBATCH -t 01:00:00
#SBATCH --cpus-per-task=2
#SBATCH --gres=gpu:1
#
# Modelled on: tinyPlantBlobb/BA-Thesis code/asr_dropout.sh (data to a local folder, results back before the end)
# Exercises: SLURM_SUBMIT_DIR, a trap on EXIT that copies back, tar, mktemp
# Payload: a compressed data set, its sum, a result that comes back
# Setup: mkdir data sync; seq 1 1000 > data/numbers.txt; tar -czf dataset.tgz data; rm -r data
# Leave out: dataset.tgz

set -euo pipefail
WD=${SLURM_SUBMIT_DIR}
JOB_DIR=$(mktemp -d)
trap 'cp "$JOB_DIR"/result.txt "$WD/sync/"; rm -rf "$JOB_DIR"; echo copied back on exit' EXIT
cd "$JOB_DIR"
tar -xzf "$WD/dataset.tgz"
echo "${SLURM_JOB_NAME} works on $(wc -l < data/numbers.txt) numbers"
awk '{s += $1} END {print "sum", s}' data/numbers.txt > result.txt
sha256sum data/numbers.txt | cut -c1-16 >> result.txt
