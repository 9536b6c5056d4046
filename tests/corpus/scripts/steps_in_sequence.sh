#!/bin/bash
#SBATCH --job-name=phases
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --gres=gpu:2
#SBATCH --time=0:30:0
#SBATCH --output=phases.out
#
# Modelled on: NVIDIA/NeMo launchers (download, tokenise, train, each an srun with its own size)
# Exercises: steps one after the other with different sizes, && and ||, srun with -u, -c and --gres=none
# Payload: three phases
# Unordered

srun -n 1 --job-name=download bash -c 'seq 1 100 > corpus.txt' \
  && srun -n 2 -c 1 --job-name=tokenise bash -c 'split -n l/$((SLURM_PROCID + 1))/2 corpus.txt > tokens.$SLURM_PROCID' \
  && srun -n 2 -u --gpus-per-task=1 --job-name=train bash -c 'echo "rank $SLURM_PROCID has $(wc -l < tokens.$SLURM_PROCID | awk "{print (\$1 > 0)}") shard"' \
  || echo "a phase failed"
cat tokens.0 tokens.1 | wc -l
rm -f tokens.? corpus.txt
