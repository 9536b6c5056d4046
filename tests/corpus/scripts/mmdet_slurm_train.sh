#!/usr/bin/env bash
#SBATCH --job-name=mask_rcnn
#SBATCH --gres=gpu:4
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#
# Modelled on: open-mmlab/mmdetection tools/slurm_train.sh (srun with all its options, --launcher=slurm)
# Exercises: set -x, variables with defaults, srun with its own name and --kill-on-bad-exit, MASTER_PORT of the environment
# Payload: four ranks that sum a gradient over TCP
# Unordered

set -x
JOB_NAME=${1:-faster_rcnn}
GPUS=${GPUS:-4}
GPUS_PER_NODE=${GPUS_PER_NODE:-4}
CPUS_PER_TASK=${CPUS_PER_TASK:-2}
SRUN_ARGS=${SRUN_ARGS:-""}
PY_ARGS=${@:2}
{ set +x; } 2>/dev/null
export MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

srun --job-name=${JOB_NAME} \
    --gres=gpu:${GPUS_PER_NODE} \
    --ntasks=${GPUS} \
    --ntasks-per-node=${GPUS_PER_NODE} \
    --cpus-per-task=${CPUS_PER_TASK} \
    --kill-on-bad-exit=1 \
    ${SRUN_ARGS} \
    python3 -u rank.py --reduce ${PY_ARGS}
