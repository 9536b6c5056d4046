#!/bin/bash
# Modelled on: jobs that train an array and evaluate each member (sbatch --array, then an array that depends on it)
# Exercises: --dependency=aftercorr between arrays: member by member; a member whose partner failed
# Payload: two arrays of two
# Driver

cat > member.sh <<'S'
#!/bin/bash
#SBATCH --array=1-2
#SBATCH --output=%x-%a.out
echo "$SLURM_JOB_NAME $SLURM_ARRAY_TASK_ID"
[ "$SLURM_JOB_NAME" = score ] && cat fit-$SLURM_ARRAY_TASK_ID.out
exit 0
S
train=$(sbatch --parsable -J fit member.sh)
sbatch --wait -J score --dependency=aftercorr:$train member.sh > /dev/null
echo "wait: $?"
