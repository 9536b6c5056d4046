#!/bin/sh
# Opens report.html in a headless browser and checks what it shows.
#   run-test.sh              synthetic data in web/report/dist/report.html
#   run-test.sh FILE.html …  the same, then general checks of real reports
# Exit status: 0 all passed, 1 a check failed, 77 skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
web=$(cd "$here/../../../web/report" && pwd)

skip() {
  echo "SKIP: $1"
  exit 77
}

command -v node >/dev/null 2>&1 || skip "node is not installed"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || skip "chromium is not installed"

stamp="$web/node_modules/.lock-sha256"
wanted=$(sha256sum < "$web/package-lock.json" | cut -d' ' -f1)
fresh() { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; }

install() {
  fresh && return 0
  (cd "$web" && npm ci --ignore-scripts --no-audit --no-fund >/dev/null 2>&1) || return 1
  echo "$wanted" > "$stamp"
}

if ! fresh; then
  command -v npm >/dev/null 2>&1 || skip "npm is not installed"
  if command -v flock >/dev/null 2>&1; then
    lock="${TMPDIR:-/tmp}/berth-report-npm-$(printf %s "$web" | cksum | cut -d' ' -f1).lock"
    exec 9>"$lock"
    flock 9
    ok=0
    install || ok=1
    exec 9>&-
  else
    ok=0
    install || ok=1
  fi
  [ "$ok" = 0 ] || skip "npm ci failed, the test dependencies are not available"
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/berth-report-page.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
status=0
TMPDIR="$scratch" BERTH_CHROMIUM="$browser" BERTH_REPORT_DIR="$web" BERTH_SCRATCH="$scratch" \
  node "$here/report_page_test.mjs" "$@" || status=$?
exit "$status"
