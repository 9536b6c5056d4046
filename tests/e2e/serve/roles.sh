#!/usr/bin/env bash
# roles.sh BERTH: the real scheduler as root, with real users: who can run what as whom, and which
# group pays. In a mount namespace of its own with its own /etc/passwd and /etc/group, so that the
# machine does not notice. Needs root; exits 77 without.
set -uo pipefail
if [ -z "${BERTH_ROLES_INSIDE:-}" ]; then
  if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
    echo "SKIP: needs root and mount namespaces"
    exit 77
  fi
  BERTH_ROLES_INSIDE=1 exec unshare -m --propagation private "$0" "$@"
fi
program=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/berth-roles-XXXXXX")
chmod 755 "$work"
server=
finish() {
  [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
  cd / && rm -rf "$work"
}
trap finish EXIT

grep -v -E '^(ann|bob|op|chief|lonely):' /etc/passwd >"$work/passwd"
grep -v -E '^(ann|bob|op|chief|lonely|vision|staff2):' /etc/group >"$work/group"
id=5001
for user in ann bob op chief lonely; do
  mkdir -p "$work/home/$user"
  chown "$id:$id" "$work/home/$user"
  echo "$user:x:$id:$id::$work/home/$user:/bin/sh" >>"$work/passwd"
  echo "$user:x:$id:" >>"$work/group"
  id=$((id + 1))
done
echo "vision:x:5101:ann,bob" >>"$work/group"
echo "staff2:x:5102:ann,bob" >>"$work/group"
mount --bind "$work/passwd" /etc/passwd
mount --bind "$work/group" /etc/group

cat >"$work/berth.yaml" <<YAML
state_dir: $work/state
run_dir: $work/run/jobs
socket: $work/run/berth.sock
listen: 127.0.0.1:0
devices: 4
admins: [chief]
operators: [op]
log_level: warn
YAML
"$program" serve --config "$work/berth.yaml" --log-level info 2>"$work/log" &
server=$!
for _ in $(seq 200); do
  grep -q ' ready ' "$work/log" && break
  sleep 0.1
done
port=$(sed -n 's/.* port=\([0-9]*\).*/\1/p' "$work/log" | head -1)

failures=0
as() {  # USER COMMAND…: what it prints, and how it ends
  local user=$1
  shift
  (cd "$work/home/$user" 2>/dev/null || cd /
   if [ "$user" = root ]; then
     env -u BERTH_TOKEN -u BERTH_URL BERTH_SOCKET="$work/run/berth.sock" "$@"
   else
     env -u BERTH_URL HOME="$work/home/$user" BERTH_SOCKET="$work/run/berth.sock" \
       setpriv --reuid "$user" --regid "$user" --init-groups "$@"
   fi) 2>&1
}
expect() {  # WHAT EXPECTED ACTUAL: the actual text holds the expected one
  if [[ "$3" == *"$2"* ]]; then
    echo "ok: $1: ${3%%$'\n'*}"
  else
    echo "WRONG: $1: expected '$2', got: $3"
    failures=$((failures + 1))
  fi
}
run() { as "$1" "$program" submit --chdir "$work/all" --wait "${@:2}" -- sh -c 'id -un > "$0"' "$work/out"; }

install -m 666 /dev/null "$work/out"
install -d -m 1777 "$work/all"

# As whom jobs run.
run ann >/dev/null
expect "ann runs as ann" ann "$(cat "$work/out")"
expect "an operator names nobody" "may not submit jobs of ann" "$(run op --user ann)"
expect "an operator does not name root" "may not submit jobs of root" "$(run op --user root)"
run chief --user ann >/dev/null
expect "an admin names ann" ann "$(cat "$work/out")"
expect "an admin does not name root" "by root at the scheduler's own socket" "$(run chief --user root)"
expect "an admin names no system account" "is an account of the system" "$(run chief --user daemon)"
expect "nor does root" "is an account of the system" "$(run root --user nobody)"
run root >/dev/null
expect "root runs as root" root "$(cat "$work/out")"

# Changes: not what a job runs.
number() { grep -o '[0-9]*' <<<"$1" | head -1; }
held() { as "$1" "$program" submit --hold "${@:2}" -- true; }
job=$(number "$(held ann)")
for change in 'command=["id"]' 'script=#!/bin/sh' 'workdir=/tmp' 'env=A=b' 'output=/tmp/x' \
  'input=/etc/passwd' 'error=/tmp/x' 'name=x'; do
  expect "an operator changes not ${change%%=*}" "is for ann to change" \
    "$(as op "$program" change "$job" "$change")"
done
as op "$program" change "$job" priority=7 >/dev/null
expect "an operator changes the priority" '"priority":7' "$(as ann "$program" show --json "$job")"
expect "bob changes nothing of ann's" "not yours" "$(as bob "$program" change "$job" priority=-1)"

# Tokens.
token=$(as root "$program" token make all --role admin)
over_tcp() {
  as lonely env BERTH_URL="http://127.0.0.1:$port" BERTH_TOKEN="$1" "$program" "${@:2}"
}
expect "root's token is an admin" '"role":"admin"' \
  "$(curl -sS -H "Authorization: Bearer $token" "http://127.0.0.1:$port/api/v1/whoami")"
expect "root's token runs nothing as root" "not with a token" \
  "$(over_tcp "$token" submit --chdir /tmp -- id)"
expect "nor by name" "not with a token" "$(over_tcp "$token" submit --user root --chdir /tmp -- id)"
expect "an operator makes no token for ann" "needs an admin" \
  "$(as op "$program" token make x --user ann)"
expect "an admin makes no token for root" "by root at the scheduler's own socket" \
  "$(as chief "$program" token make x --user root)"

# Groups.
group_of() { as root "$program" show --json "$1" | grep -o '"group":"[^"]*"'; }
expect "no group is invented" "may not use 'invented'" "$(held ann --group invented)"
expect "nor borrowed" "may not use 'vision'" "$(held lonely --group vision)"
as chief "$program" share set vision --group --gpu-limit 1 >/dev/null
expect "who names none pays by the group with a share" '"group":"vision"' \
  "$(group_of "$(number "$(held ann)")")"
expect "and has no way around it" "may use: vision" "$(held ann --group staff2)"
as chief "$program" share set nlp --group --members lonely >/dev/null
expect "the table gives groups too" '"group":"nlp"' "$(group_of "$(number "$(held lonely)")")"
job=$(number "$(held ann)")
expect "a change is no way around either" "may use: vision" \
  "$(as ann "$program" change "$job" group=staff2)"

# The limit of a group holds for who names it not: of four devices one.
for user in ann bob ann bob; do
  as "$user" "$program" submit -- sleep 60 >/dev/null
done
waits_and_runs() {
  local queue
  queue=$(as root "$program" queue --json)
  echo "$(grep -o '"reason_code":"group-gpus"' <<<"$queue" | wc -l) wait," \
    "$(grep -o '"state":"running"' <<<"$queue" | wc -l) runs"
}
for _ in $(seq 300); do
  [ "$(waits_and_runs)" = "3 wait, 1 runs" ] && break
  sleep 0.1
done
expect "the group has one device, whoever asks" "3 wait, 1 runs" "$(waits_and_runs)"
for user in ann bob; do as root "$program" cancel --user "$user" >/dev/null; done

[ "$failures" = 0 ] || { echo "$failures wrong"; cat "$work/log"; exit 1; }
echo "all as promised"
