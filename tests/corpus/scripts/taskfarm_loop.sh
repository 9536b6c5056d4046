#!/bin/bash
#SBATCH --job-name=farm
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=200M
#SBATCH --output=farm.out
#
# Modelled on: jadenecke/mrpipe scripts/subprocessSpawnerTest.sh (more steps than there is room: srun waits for its turn)
# Exercises: six exclusive steps in the place of two: the others wait and run, none is lost
# Payload: hashes of small files
# Leave out: *.err

for i in 1 2 3 4 5 6; do
  srun -n 1 --exclusive --mem-per-cpu=200M --output=part.$i --error=part.$i.err bash -c "sleep 0.3; head -c $i /dev/zero | sha256sum | cut -c1-12" 2> farm.err &
done
wait
cat part.? ; rm -f part.*
