#!/usr/bin/env bash
# qos-on-slurm.sh BERTH [SUITE]: the QOS gate of `berth slurm setup` on a real Slurm with accounting. Takes half a minute and
# mariadb in the suite's folder, so it is run by hand or with BERTH_SLURM_LONG=1.
set -uo pipefail
berth=$1
suite=${2:-trixie}
up=$(cd "$(dirname "$0")/../../.." && pwd)/../shared/slurm/up
[ -n "${BERTH_SLURM_LONG:-}" ] || { echo "SKIP: BERTH_SLURM_LONG is not set"; exit 77; }
[ -x "$up" ] || { echo "SKIP: ../shared/slurm is not here"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 77; }

dir=$(mktemp -d /tmp/berth-setup.XXXXXX)
chmod 755 "$dir"
finish() {
  "${up%/up}/down" "$dir/c" >/dev/null 2>&1
  rm -rf "$dir"
}
trap finish EXIT
"$up" "$dir/c" -n 2 --suite "$suite" --dbd --extra AccountingStorageEnforce=limits,qos,associations > "$dir/env" 2> "$dir/up.log" ||
  { echo "SKIP: no Slurm of $suite can be begun here: $(tail -n 1 "$dir/up.log")"; exit 77; }
# shellcheck disable=SC1091
. "$dir/env"
c=$dir/c
cd /tmp || exit 1
failures=0
check() { [ "$2" = "$3" ] || { failures=$((failures + 1)); printf 'FAILED: %s\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"; }; }
has() { case $3 in *"$2"*) ;; *) failures=$((failures + 1)); printf 'FAILED: %s\n  no "%s" in:\n%s\n' "$1" "$2" "$3" ;; esac; }
setup() { "$berth" slurm setup --commands "$c/bin" --gate qos --yes "$@" 2>&1; }
user() { timeout 20 "$c/bin/slurm-in" -u games "$@" 2>&1; }
qos() { sacctmgr -n -P show qos format=Name,GrpJobs | sort | tr '\n' ' '; }
field() { scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1; }
starts() { local i; for i in $(seq 60); do case $(field "$1" JobState) in PENDING) sleep 0.2 ;; *) return 0 ;; esac; done; return 1; }

sacctmgr -i add account lab >/dev/null; sacctmgr -i add qos long >/dev/null
sacctmgr -i modify qos where name=long set GrpJobs=7 >/dev/null
sacctmgr -i add user games account=lab >/dev/null
before=$(qos); cp "$c/slurm.conf" "$dir/before"
has "dry-run shows the commands" "GrpJobs=0" "$(setup --dry-run)"
check "dry-run changes nothing" "$before" "$(qos)"
has "setup" "set up" "$(setup)"
check "every QOS of users is shut" "berth| long|0 normal|0 " "$(qos)"
job=$(user sbatch --parsable -o /dev/null --wrap 'sleep 1')
user timeout 60 srun -n1 true > "$dir/srun" & srun=$!
sleep 2
check "a batch job waits" "PENDING QOSGrpJobsLimit" "$(field "$job" JobState) $(field "$job" Reason)"
check "an srun waits" "1" "$(squeue -h -n true -t PD | wc -l)"
scontrol update jobid="$job" qos=berth
starts "$job" || check "a job that was placed starts" yes no
has "status" "gate qos" "$("$berth" slurm status --commands "$c/bin" 2>&1)"
"$berth" slurm release-all --commands "$c/bin" > /dev/null 2>&1
check "release-all opens the gate" "berth| long|7 normal| " "$(qos)"
wait "$srun"; check "the srun ran" 0 $?
has "status says that it is open" "handed back" "$("$berth" slurm status --commands "$c/bin" 2>&1)"
has "setup shuts it again" "set up" "$(setup)"
check "shut" "berth| long|0 normal|0 " "$(qos)"
sacctmgr -i modify qos where name=long set GrpJobs=3 >/dev/null
has "undo" "was changed since to '3'" "$(setup --undo)"
check "undo restores what was, and leaves what was changed" "long|3 normal| " "$(qos)"
check "no file is touched" "" "$(cmp "$dir/before" "$c/slurm.conf" 2>&1; ls "$c" | grep berth)"
[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
echo "fine on Slurm $(scontrol --version)"
