#!/bin/bash
# Modelled on: aliases and watch lines in dotfiles (squeue --me with a format, sinfo columns, sacct with widths)
# Exercises: header lines and widths of squeue -o, squeue -O, sinfo -o, sacct --format, arrays that wait, -t and -n filters
# Payload: two held jobs, one an array
# Driver

one=$(sbatch --parsable --hold -J listed-one --time=1-12 --gres=gpu:2 -c 3 --wrap true)
two=$(sbatch --parsable --hold -J listed-two --time=90 --array=0-3%2 --mem=1G --wrap true)
squeue -j "$one,$two" -S i -o "%.12i %.10j %.2t %.12l %.4D %.4C %b %r"
squeue -h -j "$one" -O "Name:12,State:10,TimeLimit:14,NumCPUs:6,tres-per-node:14" | sed 's/ *$//'
squeue -h -r -j "$two" -o "%K %t" | sort
squeue -h -t PD -n listed-one,listed-two -o %j | sort
squeue -h -t R -n listed-one | wc -l
sinfo -h -o "%D %N %c"  | sort -u
sinfo -N -h -o "%N %G" | sort -u
sacct -X -j "$one" --format=JobName%12,State%10,Timelimit%12
scancel "$one" "$two"
for i in {1..50}; do [ -z "$(squeue -h -j "$one,$two" 2>/dev/null)" ] && break; sleep 0.2; done
sacct -X -n -P -j "$one" -o JobName,State | sed 's/ by [0-9]*//'
