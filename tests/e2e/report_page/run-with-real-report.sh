#!/usr/bin/env bash
# The page tests, on synthetic data and on a report that the program has just written.
#   run-with-real-report.sh PATH_OF_BERTH
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
examples=$here/../../../examples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" compare --trace "$examples/traces/philly-small.csv" --cluster 16x8 --policies fifo,srtf,tiresias-l \
  --out "$work/report" --quiet >/dev/null
"$1" simulate --trace "$examples/traces/t6.csv" --cluster 1x4 --policy srtf --placement count \
  --out "$work/t6" --quiet >/dev/null
status=0
"$here/run-test.sh" "$work/report/report.html" "$work/t6/report.html" || status=$?
exit $status
