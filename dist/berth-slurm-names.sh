# For /etc/profile.d: sbatch, squeue and the like are Berth's, also where a Slurm is installed.
case ":$PATH:" in
  *:/usr/libexec/berth/slurm-names:*) ;;
  *) PATH=/usr/libexec/berth/slurm-names:$PATH ;;
esac
export PATH
