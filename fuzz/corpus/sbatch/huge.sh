#!/bin/sh
#SBATCH --nodes=100000 --gpus-per-node=1000000 --ntasks-per-node=1000000 --cpus-per-task=1000000 --mem=1T
