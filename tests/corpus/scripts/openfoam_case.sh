#!/bin/bash
#SBATCH --job-name=FOAM_SERIAL
### Request the time you need for execution. The full format is D-HH:MM:SS
#SBATCH --time=0-01:00:00
### Request processes, all on a single node
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --output=log.%x
#
# Modelled on: asikirica/radionica-of naca/slurm_script.sh (decompose by SLURM_NTASKS, run in parallel, reconstruct)
# Exercises: comments between options, a job without GPUs, three phases of which one is parallel by srun
# Payload: heat on a rod, divided among the ranks
# Setup: echo 'numberOfSubdomains 1;' > decomposeParDict

sed "s/numberOfSubdomains.*/numberOfSubdomains $SLURM_NTASKS;/" decomposeParDict > dict && mv dict decomposeParDict
n=$(sed -n 's/numberOfSubdomains \([0-9]*\);/\1/p' decomposeParDict)
echo "decomposed into $n"
for ((i = 0; i < n; i++)); do mkdir processor$i; seq $((i * 25)) $((i * 25 + 24)) > processor$i/0; done
srun --ntasks="$SLURM_NTASKS" bash -c 'awk "{print sin(\$1 / 50)}" processor$SLURM_PROCID/0 > processor$SLURM_PROCID/1' || exit 1
cat processor*/1 | awk '{s += $1} END {printf "reconstructed %d cells, heat %.4f\n", NR, s}'
rm -rf processor*
