#!/bin/bash
#SBATCH -J nf-align_(1)
#SBATCH -o .command.log
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
#SBATCH -c 2
#SBATCH -t 01:00:00
#SBATCH --mem 512M
#
# Modelled on: nextflow-io/nextflow modules/nextflow/src/main/groovy/nextflow/executor/SlurmExecutor.groovy (the directives of its wrapper script)
# Exercises: a name with brackets, a hidden output file, --signal with a blank, --no-requeue, exit code kept in a file
# Payload: the command of a task with its wrapper: .command.sh, .exitcode

nxf_exit() { printf '%s\n' "$1" > exitcode; }
on_exit() { local status=${1:-$?}; nxf_exit "$status"; exit "$status"; }
trap 'on_exit' EXIT
trap 'exit 1' USR2
cat > .command.sh <<'C'
#!/bin/bash -ue
echo ">seq" | tr -d '>' 
printf 'GATTACA\n' | rev
C
bash .command.sh
cat .command.log | wc -l > lines
