#!/bin/bash -l
#SBATCH -J MATLAB          # job name
#SBATCH -o ./job.out.%j    # standard out file
#SBATCH -e ./job.err.%j    # standard err file
#SBATCH -D ./              # work directory
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1         # launch job on a single core
#SBATCH --cpus-per-task=4  #   on a shared node
# #SBATCH --mem=10000
##SBATCH --partition=nowhere
#SBATCH --time=23:00:00
#
# Modelled on: AaltoSciComp/scicomp-docs triton/examples/multilang/matlab/serial.sh (module load, srun matlab -nodisplay -r)
# Exercises: remarks behind options, options that are commented out, a program that is not installed
# Payload: a matrix product by whatever interpreter is there
# Leave out: env

matlab=$(command -v matlab || command -v octave-cli || true)
if [ -n "$matlab" ] && [ "${matlab##*/}" = matlab ]; then
  srun matlab -nodisplay -nosplash -r "disp(trace(magic(4)*magic(4))), exit"
else
  srun python3 -c '
m = [[16, 2, 3, 13], [5, 11, 10, 8], [9, 7, 6, 12], [4, 14, 15, 1]]
print(sum(sum(m[i][k] * m[k][i] for k in range(4)) for i in range(4)))'
fi
