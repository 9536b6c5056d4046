#!/bin/sh
# properties = {"type": "single", "rule": "align", "local": false, "threads": 2, "resources": {"mem_mb": 500}, "jobid": 3}
# Modelled on: guilhermesena1/abismal_benchmark simulation_analysis/run.sh (options on the command line of sbatch, none inside)
# Exercises: a script without any option of its own, all of them on the command line
# Payload: a rule's shell command
# Submit: sbatch --parsable --time=10:00 --mem=500 --ntasks=1 --cpus-per-task=2 --job-name=smk-align --error=align.error --output=align.output SCRIPT

cd "$SLURM_SUBMIT_DIR" && \
seq 1 5 | awk '{print $1 * $1}' > squares.tsv && echo "done with $SLURM_CPUS_PER_TASK" && exit 0 || exit 1
