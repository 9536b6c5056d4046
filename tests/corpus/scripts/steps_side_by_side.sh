#!/usr/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:20:00
#
# Modelled on: kkafar/lsc lab-01/substeps.sh (two srun -n 1 --exclusive beside one another, then wait)
# Exercises: steps side by side, each with a part of the job, wait
# Payload: two steps that meet: each waits for a file of the other

echo "Scheduling first job step"
srun -N 1 -n 1 --exclusive bash -c 'touch one; for i in {1..200}; do [ -e two ] && break; sleep 0.1; done; [ -e two ] && echo first met second' > one.out &
echo "Scheduling second job step"
srun -N 1 -n 1 --exclusive bash -c 'touch two; for i in {1..200}; do [ -e one ] && break; sleep 0.1; done; [ -e one ] && echo second met first' > two.out &
wait
echo "both steps are over"
