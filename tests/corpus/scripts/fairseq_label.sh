#!/bin/bash
#SBATCH --job-name=fairseq-fsdp
#SBATCH --open-mode=append
#SBATCH --nodes=1
#SBATCH --gpus=4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --time=24:00:00
#
# Modelled on: pbelevich/fair_seq_fsdp_slurm fairseq_fsdp_sbatch.sh (srun --label of a launch script)
# Exercises: srun --label, four tasks of one step, GPUs by --gpus, a script as the task
# Payload: a task script that says its rank and trains for a moment
# Unordered

cat > fairseq_task.sh <<'T'
#!/bin/bash
echo "task $SLURM_PROCID of $SLURM_NTASKS local $SLURM_LOCALID"
python3 train.py --seed "$SLURM_PROCID" --epochs 5
T
chmod +x fairseq_task.sh
srun --label ./fairseq_task.sh
