#!/usr/bin/env bash
# scripts/check-skips lets the skips of tests/allowed_skips.txt pass and nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# junit NAME STATUS TEXT: a run of one test that was skipped.
junit() {
  printf '<testsuite><testcase name="%s" status="%s"><skipped/><system-out>%s</system-out></testcase></testsuite>\n' \
    "$1" "$2" "$3" >"$work/run.xml"
}
# expect STATUS TEXT: what check-skips exits with and says.
expect() {
  local status=0 said
  said=$(scripts/check-skips "$work/run.xml" "$work/allowed") || status=$?
  if [ "$status" != "$1" ] || [[ $said != *"$2"* ]]; then
    echo "expected status $1 and '$2', got $status and '$said'"
    failed=1
  fi
}

cat >"$work/allowed" <<'LIST'
# a comment
Host.*   needs root
script   no browser
LIST
gtest=$'[ RUN      ] Host.Runs\n../tests/a_test.cpp:12: Skipped\nneeds root: another user\n\n[  SKIPPED ] Host.Runs (0 ms)'
junit Host.Runs notrun "$gtest"
expect 0 'skipped: Host.Runs: needs root: another user'
junit Other.Runs notrun "$gtest"
expect 1 'SKIPPED WITHOUT LEAVE: Other.Runs: needs root: another user'
junit Host.Runs notrun "${gtest/needs root/no openssl}"
expect 1 'no openssl: another user'
junit script notrun $'one line\nSKIP: no browser here'
expect 0 'skipped: script: no browser here'
junit Host.Runs disabled ''
expect 1 'disabled'
printf '<testsuite><testcase name="A.B" status="run"><system-out>fine</system-out></testcase></testsuite>' >"$work/run.xml"
expect 0 ''
echo 'pattern-without-reason' >"$work/allowed"
expect 1 ''
exit $failed
