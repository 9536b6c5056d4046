# Read by every bash of a corpus job (BASH_ENV): the first one of an attempt, the batch shell, leaves its environment for the
# comparison. Uses builtins only, so that nothing a script does can change what is seen.
if [ -n "${CORPUS_ENVIRONMENT:-}" ] && [ -n "${SLURM_JOB_ID:-}" ] && [ -z "${SLURM_STEP_ID:-}" ] &&
   [ ! -e "$CORPUS_ENVIRONMENT/$SLURM_JOB_ID" ]; then
  for corpus_name in $(compgen -e); do
    case $corpus_name in
      SLURM*|CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ROCR_VISIBLE_DEVICES|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)
        printf '%s=%s\n' "$corpus_name" "${!corpus_name}" ;;
    esac
  done > "$CORPUS_ENVIRONMENT/$SLURM_JOB_ID" 2>/dev/null
  unset corpus_name
fi
