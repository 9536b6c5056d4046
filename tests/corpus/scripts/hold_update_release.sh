#!/bin/bash
# Modelled on: people who hold a job, change their mind about it and let it go (scontrol hold, update, release)
# Exercises: sbatch --hold, scontrol update of name and time limit, squeue of a held job, scontrol release, hold and requeuehold
# Payload: a job that says its name
# Driver

cat > held.sh <<'S'
#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --time=10
#SBATCH --output=held.out
echo "I am $SLURM_JOB_NAME"
S
job=$(sbatch --parsable --hold -J before held.sh)
squeue -h -j "$job" -o "%j %t %r %l"
scontrol update JobId="$job" JobName=after TimeLimit=30:00
echo "update: $?"
squeue -h -j "$job" -o "%j %t %r %l"
scontrol show job "$job" | grep -oE '(JobName|JobState|Reason|TimeLimit|Priority)=[^ ]*' | sort
scontrol release "$job"
echo "release: $?"
for i in {1..150}; do [ -z "$(squeue -h -j "$job" 2>/dev/null)" ] && break; sleep 0.2; done
sacct -X -n -P -j "$job" -o JobName,State,Timelimit
scontrol hold "$job" 2> /dev/null || echo "a job that is over cannot be held"
