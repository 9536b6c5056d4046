#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=1
#SBATCH --time=00:10:00
#SBATCH --output=jax_dist.out
#SBATCH --gpus-per-node=4
#SBATCH --mem=4G
#
# Modelled on: jax-ml/jax jax/_src/clusters/slurm_cluster.py (what jax.distributed.initialize() reads under srun)
# Exercises: SLURM_STEP_NODELIST, SLURM_NTASKS, SLURM_PROCID, SLURM_LOCALID, SLURM_JOB_ID in every task
# Payload: coordinator and process numbers as JAX finds them
# Unordered

srun python3 -c '
import os
nodes = os.environ["SLURM_STEP_NODELIST"].split(",")[0]
port = int(os.environ["SLURM_JOB_ID"]) % 2**12 + (65535 - 2**12 + 1)
assert 61440 <= port <= 65535
print("coordinator", nodes, "process", os.environ["SLURM_PROCID"], "of", os.environ["SLURM_NTASKS"],
      "local", os.environ["SLURM_LOCALID"])'
