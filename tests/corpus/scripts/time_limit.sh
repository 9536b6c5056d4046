#!/bin/bash
#SBATCH --job-name=too-long
#SBATCH --time=1
#SBATCH --output=too-long.out
#SBATCH --gres=gpu:1
#
# Modelled on: any training that is longer than its --time (what people find in the log the next morning)
# Exercises: the state TIMEOUT, what the log says of it, output up to then
# Payload: a loop of two minutes
# Slow

echo "started"
for i in {1..120}; do sleep 1; done
echo "never printed"
