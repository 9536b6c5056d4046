#!/bin/bash
#SBATCH --job-name=looks-at-itself
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=1G
#SBATCH --gres=gpu:1
#SBATCH --time=00:15:00
#SBATCH --output=%x.out
#SBATCH --comment="a comment"
#
# Modelled on: prologues of batch scripts that log their own job (scontrol show job, squeue -j, remaining time)
# Exercises: scontrol show job, squeue with -h -j -o and %L, sinfo of the partition, sacct of the running job
# Payload: fields that people grep

scontrol show job "$SLURM_JOB_ID" | grep -oE '(JobName|JobState|NumNodes|NumCPUs|NumTasks|CPUs/Task|TimeLimit|Partition|Comment|Requeue|Restarts|BatchFlag|ExitCode)=[^ ]*' | sort
scontrol show job "$SLURM_JOB_ID" -o | wc -l
squeue -h -j "$SLURM_JOB_ID" -o "%j %t %D %l %P %C"
left=$(squeue -h -j "$SLURM_JOB_ID" -o %L)
[[ $left == 14:* || $left == 15:00 ]] && echo "about 15 minutes left"
squeue -h --me -n looks-at-itself -O "Name:20,StateCompact:4,NumNodes:4" | sed 's/ *$//'
sinfo -h -p "$SLURM_JOB_PARTITION" -o "%P %D" | sort -u
sacct -n -P -X -j "$SLURM_JOB_ID" -o JobName,State,AllocCPUS,Timelimit
scontrol show hostnames 'gpu[01-03,7]'
