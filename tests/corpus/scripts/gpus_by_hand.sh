#!/bin/bash
#SBATCH --job-name=by-hand
#SBATCH --gres=gpu:3
#SBATCH --cpus-per-task=6
#SBATCH --output=by-hand.out
#
# Modelled on: a replication loop over CUDA devices (RL benchmarks that set CUDA_VISIBLE_DEVICES per process)
# Exercises: the list of devices taken apart in the shell, background processes without srun, wait for each
# Payload: a training run per device
# Unordered

IFS=, read -ra gpus <<< "$CUDA_VISIBLE_DEVICES"
echo "there are ${#gpus[@]}"
pids=()
for seed in "${!gpus[@]}"; do
  CUDA_VISIBLE_DEVICES=${gpus[seed]} python3 train.py --seed "$seed" --epochs 6 &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
echo "all ended, status $status"
exit $status
