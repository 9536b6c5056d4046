#!/bin/sh
# Checks that dist/report.html was built from the sources next to it.
#   check-bundle.sh            compares the recorded source hash (coreutils only)
#   check-bundle.sh --rebuild  also runs npm ci, builds again and compares bytes
set -eu
cd "$(dirname "$0")"
page=dist/report.html

fail() {
  echo "check-bundle: $1" >&2
  exit 1
}

[ -f "$page" ] || fail "$page is missing; run: npm ci && npm run build"

list=$(mktemp)
scratch=
trap 'rm -f "$list"; [ -z "$scratch" ] || rm -rf "$scratch"' EXIT INT TERM

{
  find src -type f
  printf '%s\n' build.mjs package-lock.json package.json tsconfig.json
} | LC_ALL=C sort > "$list"

actual=$(while IFS= read -r file; do sha256sum "$file"; done < "$list" | sha256sum | cut -d' ' -f1)
recorded=$(head -c 8192 "$page" | tr '>' '\n' | grep 'name="berth-source-sha256"' |
  head -n 1 | tr '"' '\n' | grep -E '^[0-9a-f]{64}$' || true)

[ -n "$recorded" ] || fail "$page records no source hash"
[ "$actual" = "$recorded" ] || fail "$page is stale (sources $actual, bundle built from $recorded); run: npm ci && npm run build"

tokens=$(tr -c 'A-Za-z_' '\n' < "$page" | grep -c -x '__BERTH_DATA__' || true)
[ "$tokens" = 1 ] || fail "$page holds the data token $tokens times, expected once"

if [ "${1:-}" = "--rebuild" ]; then
  scratch=$(mktemp -d)
  cp -R src build.mjs package.json package-lock.json tsconfig.json .npmrc "$scratch/"
  (cd "$scratch" && npm ci --ignore-scripts --no-audit --no-fund >/dev/null && node build.mjs --out "$scratch/out" >/dev/null) ||
    fail "the rebuild failed"
  cmp "$scratch/out/report.html" "$page" || fail "a fresh build differs from $page"
  echo "check-bundle: a fresh build is identical to $page"
else
  echo "check-bundle: $page matches its sources"
fi
