#!/usr/bin/env bash
# on-slurm.sh BERTH [SUITE]: `berth slurm setup`, its undo, release-all, status and watch on a real Slurm of a Debian suite
# (default trixie; bookworm and forky by hand). Begins a cluster of its own on loopback and ends it, also when it fails.
set -uo pipefail
berth=$1
suite=${2:-trixie}
up=$(cd "$(dirname "$0")/../../.." && pwd)/../shared/slurm/up
[ -x "$up" ] || { echo "SKIP: ../shared/slurm is not here"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 77; }

dir=$(mktemp -d /tmp/berth-setup.XXXXXX)
chmod 755 "$dir" # users read slurm.conf
watcher=
finish() {
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
  "${up%/up}/down" "$dir/c" >/dev/null 2>&1
  rm -rf "$dir"
}
trap finish EXIT
"$up" "$dir/c" -n 2 --suite "$suite" > "$dir/env" 2> "$dir/up.log" || { echo "SKIP: no Slurm of $suite can be begun here: $(tail -n 1 "$dir/up.log")"; exit 77; }
# shellcheck disable=SC1091
. "$dir/env"
c=$dir/c
plugins=$(dirname "$(find "$(cat "$c/.slurm-test-cluster")/usr/lib" -name job_submit_lua.so | head -n 1)")
beat=$dir/heartbeat
cd /tmp || exit 1

failures=0
check() { # WHAT EXPECTED GOT
  if [ "$2" != "$3" ]; then failures=$((failures + 1)); printf 'FAILED: %s\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"; fi
}
has() { # WHAT PART TEXT
  case $3 in *"$2"*) ;; *) failures=$((failures + 1)); printf 'FAILED: %s\n  no "%s" in:\n%s\n' "$1" "$2" "$3" ;; esac
}
setup() { "$berth" slurm setup --commands "$c/bin" --plugin-dir "$plugins" --heartbeat "$beat" --yes "$@" 2>&1; }
slurm() { local verb=$1; shift; "$berth" slurm "$verb" --commands "$c/bin" "$@" 2>&1; }
user() { timeout 20 "$c/bin/slurm-in" -u games "$@" 2>&1; }
submit() { user sbatch --parsable -o /dev/null "$@" --wrap "sleep 1" || exit 1; }
field() { scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1; }
config() { scontrol show config | sed -n "s/^$1 *= //p"; }
beats() { date +%s > "$beat"; }
starts() { # JOB: whether it begins within a few seconds
  local i; for i in $(seq 60); do case $(field "$1" JobState) in PENDING) sleep 0.2 ;; *) return 0 ;; esac; done; return 1
}

# --- a site that uses no plugin -----------------------------------------------------------------------------------------
cp "$c/slurm.conf" "$dir/before"
printf '%s' "$(cat "$c/slurm.conf")" > "$dir/cut" && cp "$dir/cut" "$c/slurm.conf" # its last line has no end
cp "$c/slurm.conf" "$dir/before"
beats
out=$(setup --dry-run)
has "dry-run shows our line" "+Include berth.conf" "$out"
has "dry-run shows the plugin list" "+JobSubmitPlugins=lua" "$out"
has "dry-run shows the command" "scontrol reconfigure" "$out"
check "dry-run changes nothing" "" "$(cmp "$dir/before" "$c/slurm.conf" 2>&1; ls "$c" | grep -E 'berth|job_submit')"

# Killed when slurmctld has just read the new files: the next run takes that back and begins anew.
(BERTH_CRASH_POINT=slurm.setup.command:1 setup) >/dev/null 2>&1
has "a setup that was killed is told" "was interrupted" "$(slurm status)"
out=$(setup --free-partition none --free-user daemon --operator bin)
has "a setup that was killed is taken back" "what it had changed was taken back" "$out"
has "the probe meets the script" "a probe job met the script" "$out"
check "the plugin runs" "lua" "$(config JobSubmitPlugins)"
check "the site's parameters stay" "$(sed -n 's/^SchedulerParameters=//p' "$dir/before")" "$(config SchedulerParameters)"
check "no probe is left" "" "$(squeue -h)"
has "a second setup has nothing to do" "nothing to change" "$(setup --free-partition none --free-user daemon --operator bin)"

held=$(submit)
check "a job is held" "0 JobHeldUser berth=held" "$(field "$held" Priority) $(field "$held" Reason) $(field "$held" AdminComment)"
asked=$(submit -w n1 -N 1)
check "what the user asked for is kept" "berth=held;nodes=n1;n=1-1" "$(field "$asked" AdminComment)"
user scontrol release "$held" >/dev/null
check "its user cannot release it" "0" "$(field "$held" Priority)"
has "nor change its nice" "denied" "$(user scontrol update jobid="$held" nice=10)"
check "which did not release it" "0" "$(field "$held" Priority)"
user scontrol hold "$held" >/dev/null
has "its user can hold it" "20" "$(field "$held" StartTime | sed -n '/^209/s/.*/20/p')"
user scontrol release "$held" >/dev/null
check "and lift that hold, not ours" "0" "$(field "$held" Priority)"
check "which leaves no begin time" "" "$(field "$held" StartTime | grep ^209)"
own=$(submit -H --begin=now+2hours)
has "a hold from the beginning is the user's" "209" "$(field "$own" StartTime)"
free=$("$c/bin/slurm-in" -u daemon sbatch --parsable -o /dev/null --wrap 'sleep 1')
check "an exempt user's job is not touched" "" "$(field "$free" AdminComment)"
starts "$free" || check "an exempt user's job starts" yes no
array=$(submit -a 1-3)
status=$(slurm status)
has "status" "held by Berth 3, by users 1, by admins 0" "$status"
has "status: gate" "yes, gate lua" "$status"

# Berth is gone: new jobs are not held.
echo 1000 > "$beat"
fresh=$(submit); starts "$fresh" || check "without a heartbeat a job starts" yes no
rm "$beat"; mkdir "$beat"
fresh=$(submit); starts "$fresh" || check "with a broken heartbeat a job starts" yes no
rmdir "$beat"; beats

# What Berth required of a job is taken back; the user's own wish stays.
scontrol update jobid="$held" reqnodelist=n2 numnodes=1-1
scontrol hold "$array" # an admin's
out=$(slurm release-all --dry-run)
has "release-all --dry-run" "to release: 2" "$out"
check "a rehearsal releases nothing" "0" "$(field "$held" Priority)"
out=$(slurm release-all)
has "release-all" "released: 2" "$out"
has "an admin's hold is not ours" "0 JobHeldAdmin" "$(field "$array" Priority) $(field "$array" Reason)"
starts "$held" || check "the first starts" yes no
starts "$asked" || check "the second starts" yes no
check "where its user wanted it" "n1" "$(field "$asked" ReqNodeList)"
has "the user's hold stays" "0 209" "$(field "$own" Priority) $(field "$own" StartTime)"
scontrol release "$array"; sleep 0.3

# The watchdog.
held=$(submit)
check "held for the watchdog" "0" "$(field "$held" Priority)"
"$berth" slurm watch --commands "$c/bin" --after 1s > "$dir/watch.log" 2>&1 & watcher=$!
starts "$held" || check "the watchdog hands the queue back" yes no
has "it tells so" "handed back" "$(cat "$dir/watch.log")"
beats
for i in $(seq 30); do grep -q "Berth is back" "$dir/watch.log" && break; sleep 0.2; echo $(($(date +%s) + i)) > "$beat"; done
has "it sees Berth come back" "Berth is back" "$(cat "$dir/watch.log")"
kill "$watcher"; wait "$watcher" 2>/dev/null; check "it ends when told to" 0 $?; watcher=
beats

# Undo, with jobs that wait.
held=$(submit)
(BERTH_CRASH_POINT=slurm.undo.conf:1 setup --undo) >/dev/null 2>&1
out=$(setup --undo)
has "undo, after one that was killed" "undone: Slurm decides by itself" "$out"
check "slurm.conf is what it was, byte by byte" "" "$(cmp "$dir/before" "$c/slurm.conf" 2>&1)"
check "no file of ours is left" "" "$(ls "$c" | grep -E 'berth|job_submit')"
starts "$held" || check "undo releases what was held" yes no
check "the user's hold is a plain one now" "0 JobHeldUser " "$(field "$own" Priority) $(field "$own" Reason) $(field "$own" AdminComment)"
check "with the begin time of its own" "" "$(field "$own" StartTime | grep ^209)"
user scontrol release "$own" >/dev/null
check "which its user lifts" "" "$(field "$own" Priority | grep -x 0)"
check "the plugin is gone" "(null)" "$(config JobSubmitPlugins)"
has "a second undo says so" "is not set up" "$(setup --undo)"

# --- a site with a script of its own, an Include and parameters ----------------------------------------------------------
cat > "$c/job_submit.lua" <<'L'
counter = 0
function slurm_job_submit(job_desc, part_list, uid)
  counter = counter + 1
  if job_desc.name == "refused" then slurm.log_user("the site says no"); return 2051 end
  job_desc.admin_comment = "site" .. counter
  return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, uid) return slurm.SUCCESS end
return slurm.SUCCESS
L
chmod 640 "$c/job_submit.lua"; cp -p "$c/job_submit.lua" "$dir/site.lua"
printf 'JobSubmitPlugins=all_partitions,lua\nschedulerparameters=bf_continue,\\\nsched_interval=5\n' > "$c/site.conf"
printf '\ninclude site.conf # ours\n' >> "$c/slurm.conf"; cp "$c/slurm.conf" "$dir/before"
scontrol reconfigure; sleep 1
out=$(setup)
has "setup beside a script" "a probe job met the script" "$out"
check "plugins are merged" "all_partitions,lua" "$(config JobSubmitPlugins)"
check "parameters are merged" "bf_continue,sched_interval=5,batch_sched_delay=0" "$(config SchedulerParameters)"
has "the site's script refuses as before" "the site says no" "$(submit -J refused)"
beats; held=$(submit)
has "it is called first" "site" "$(field "$held" AdminComment)"
has "and the job is held" "0 " "$(field "$held" Priority) "
sed -i 's/"site"/"edited"/' "$c/job_submit_site.lua"
has "an edit of the site's script counts" "edited" "$(field "$(submit)" AdminComment)"
echo 'function (' >> "$c/job_submit_site.lua"
has "one that does not load leaves the old one" "edited" "$(field "$(submit)" AdminComment)"
sed -i '$d' "$c/job_submit_site.lua"; sed -i 's/"edited"/"site"/' "$c/job_submit_site.lua"
echo '-- mine' >> "$c/job_submit.lua"
has "undo does not throw away an edit of our script" "+-- mine" "$(setup --undo)"
sed -i '$d' "$c/job_submit.lua"
out=$(setup --undo)
has "undo" "undone: Slurm decides by itself" "$out"
check "slurm.conf is what it was" "" "$(cmp "$dir/before" "$c/slurm.conf" 2>&1)"
check "the site's script is back" "" "$(cmp "$dir/site.lua" "$c/job_submit.lua" 2>&1)"
check "with its mode" "640" "$(stat -c %a "$c/job_submit.lua")"
check "no file of ours is left" "job_submit.lua" "$(ls "$c" | grep -E 'berth|job_submit')"
check "the site's plugins run" "all_partitions,lua" "$(config JobSubmitPlugins)"

# --- what cannot work is taken back --------------------------------------------------------------------------------------
echo 'function (' >> "$c/job_submit.lua"; cp "$c/job_submit.lua" "$dir/site.lua"
out=$(setup); code=$?
check "a site's script that does not load: setup fails" 1 $code
check "slurm.conf is what it was" "" "$(cmp "$dir/before" "$c/slurm.conf" 2>&1)"
check "the script is what it was" "" "$(cmp "$dir/site.lua" "$c/job_submit.lua" 2>&1)"
check "no file of ours is left" "job_submit.lua" "$(ls "$c" | grep -E 'berth|job_submit')"
ln -sf slurm.conf "$c/link.conf"
has "a link is refused" "symbolic link" "$(setup --conf "$c/link.conf")"

[ "$failures" = 0 ] || { echo "$failures checks failed on Slurm $(config SLURM_VERSION)"; tail -n 30 "$dir/watch.log"; exit 1; }
echo "fine on Slurm $(config SLURM_VERSION)"
