#!/bin/bash
# Modelled on: mcallaghan/ml-screening-evaluation slurm/pipeline.sh (sbatch --parsable, then --dependency=afterok)
# Exercises: --parsable, a chain of dependencies, arguments of a batch script, sbatch --wait at the end, sacct of the chain
# Payload: prepare, train, evaluate
# Driver

cat > stage.sh <<'S'
#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --mem=500
#SBATCH --output=%x.out
echo "$1 after $(cat order 2>/dev/null | tr '\n' ' ')"
echo "$1" >> order
S
job1=$(sbatch --parsable -J prepare stage.sh prepare)
job2=$(sbatch --parsable -J train --dependency=afterok:$job1 stage.sh train)
sbatch --wait -J evaluate --dependency=afterok:$job1:$job2 stage.sh evaluate
echo "the last one ended with $?"
sacct -X -n -P -j "$job1,$job2" -o JobName,State,ExitCode
