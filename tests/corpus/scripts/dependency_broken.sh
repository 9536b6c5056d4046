#!/bin/bash
# Modelled on: a training script with an evaluation behind it (sbatch --dependency=afterok, and what follows a failure)
# Exercises: afterok of a job that fails with --kill-on-invalid-dep, afternotok and afterany of the same job
# Payload: a training that fails
# Driver

cat > stage.sh <<'S'
#!/bin/bash
#SBATCH --output=%x.out
echo "$SLURM_JOB_NAME ran"
exit ${1:-0}
S
first=$(sbatch --parsable --hold -J fails stage.sh 9)
good=$(sbatch --parsable -J never --dependency=afterok:$first --kill-on-invalid-dep=yes stage.sh)
bad=$(sbatch --parsable -J cleanup --dependency=afternotok:$first stage.sh)
scontrol release "$first"
sbatch --wait -J always --dependency=afterany:$first,afterany:$bad stage.sh > /dev/null
for i in {1..100}; do [ -n "$(squeue -h -j "$good" 2>/dev/null)" ] || break; sleep 0.2; done
sacct -X -n -P -j "$first,$good,$bad" -o JobName,State,ExitCode | sed 's/ by [0-9]*//'
ls never.out 2>/dev/null || echo "never.out is not there"
