#!/bin/bash
# Modelled on: day-long trainings cut into pieces (jobs of one name with --dependency=singleton)
# Exercises: --dependency=singleton: one after the other, in the order of submission
# Payload: three pieces that write to one log
# Driver

cat > piece.sh <<'S'
#!/bin/bash
#SBATCH --job-name=long-training
#SBATCH --dependency=singleton
#SBATCH --output=piece.out
#SBATCH --open-mode=append
[ ! -e running ] || echo "two at once"
touch running; sleep 0.5; rm running
echo "piece $1"
S
sbatch piece.sh 1 | sed 's/[0-9][0-9]*/N/'
sbatch --quiet piece.sh 2
sbatch --wait --quiet piece.sh 3
echo "wait: $?"
