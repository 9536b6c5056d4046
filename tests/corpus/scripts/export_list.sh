#!/bin/bash
#SBATCH --job-name=exported
#SBATCH --output=exported.out
#SBATCH --gres=gpu:1
#
# Modelled on: NVIDIA/Megatron-LM examples/academic_paper_scripts/sc21/SBATCH.sh (--export of the names that are needed)
# Exercises: --export with names and a value on the command line, arguments behind the script
# Payload: shows what came through
# Submit: env MODEL=gpt OTHER=hidden sbatch --export=PATH,MODEL,LAYERS=24 SCRIPT --steps 3 "two words"
# Leave out: env

echo "model ${MODEL:-none} layers ${LAYERS:-none} other ${OTHER:-none}"
echo "arguments $#: $1 $2 [$3]"
