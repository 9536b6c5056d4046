#!/bin/bash
#SBATCH --job-name=timm-vit
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=gpu:1
#SBATCH --mem=8G
#SBATCH --time=00:10:00
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=nobody@example.org
#
# Modelled on: nikhilvyas/SOAP_MUON soap-muon-nanogpt/scripts/launch.sh (one GPU, sourced profile, conda and modules)
# Exercises: output in a folder that exists, one GPU by --gres, mail options, modules and conda where they are not installed
# Payload: a small training run in Python
# Setup: mkdir logs

command -v module >/dev/null && module load cuda
if [ -f "$HOME/miniconda3/etc/profile.d/conda.sh" ]; then
  source "$HOME/miniconda3/etc/profile.d/conda.sh"
  conda activate timm
fi
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK

echo "job $SLURM_JOB_NAME on $SLURM_NNODES node with $OMP_NUM_THREADS threads"
echo "devices=$CUDA_VISIBLE_DEVICES"
python3 -u train.py --lr 0.2 --epochs 40 --seed 42
