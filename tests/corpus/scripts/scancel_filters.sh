#!/bin/bash
# Modelled on: cleaning up after a sweep (scancel by name, by state, single members of an array)
# Exercises: scancel -n, -t, ARRAY_[list], a job that is not there
# Payload: held jobs
# Driver

array=$(sbatch --parsable --hold -J sweep --array=1-5 --wrap true)
other=$(sbatch --parsable --hold -J other --wrap true)
scancel "${array}_2" "${array}_[4-5]"
sleep 1
squeue -h -r -j "$array" -o "%K" | sort
scancel -n sweep -t PENDING --me
sleep 1
squeue -h -j "$array" 2>/dev/null | wc -l
squeue -h -j "$other" -o %j
scancel "$other"; echo "cancel: $?"
scancel 99999999 2> message; echo "unknown: $? $(wc -l < message)"
rm message
