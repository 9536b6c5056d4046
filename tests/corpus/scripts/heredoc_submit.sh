#!/bin/bash
# Modelled on: generators of jobs in shell loops (sbatch <<EOT with variables of the loop)
# Exercises: a batch script from standard input, variables filled in by the loop, --export of a value, names of outputs
# Payload: two trainings with different rates
# Driver

for lr in 0.1 0.2; do
sbatch --wait --export=ALL,SEED=7 <<EOT | sed 's/[0-9][0-9]*$/N/'
#!/bin/bash
#SBATCH --job-name=lr-$lr
#SBATCH --gres=gpu:1
#SBATCH --output=%x.out

python3 train.py --lr $lr --seed \$SEED
EOT
done
