#!/bin/bash
#SBATCH --job-name=pack
#SBATCH --nodes=1
#SBATCH --ntasks=3
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=2
#SBATCH --mem-per-cpu=100M
#
# Modelled on: NERSC's packing of trainings on one node (dstdev/base-cluster-docs docs/jobs/examples: srun in the background)
# Exercises: one step per GPU with --exact; the devices of concurrent steps are disjoint
# Payload: three steps that hold a device and say which

for i in 0 1 2; do
  srun --exact --ntasks=1 --gpus-per-task=1 --cpus-per-task=2 --mem-per-cpu=100M \
    bash -c "touch here.$i; for n in {1..200}; do [ \$(ls here.* | wc -l) = 3 ] && break; sleep 0.1; done; echo \$CUDA_VISIBLE_DEVICES" > step.$i &
done
wait
echo "different devices: $(sort -u step.? | wc -l)"
rm -f here.? step.?
