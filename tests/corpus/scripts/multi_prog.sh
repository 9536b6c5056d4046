#!/bin/bash
#SBATCH -n 4
#SBATCH -o outfile.txt
#SBATCH -e errfile.txt
#
# Modelled on: TideDancer/clusterMatrixMult run2.sh (srun -l --multi-prog with a configuration file)
# Exercises: srun --multi-prog: other programs for other ranks, %t and %o
# Payload: a server and three workers that only say who they are
# Unordered

cat > run2.conf <<'C'
# rank   program
0        /bin/echo server %t
1-2      /bin/echo worker %t offset %o
3        /bin/sh -c 'echo shell $SLURM_PROCID of $SLURM_NTASKS'
C
srun -l --multi-prog run2.conf
