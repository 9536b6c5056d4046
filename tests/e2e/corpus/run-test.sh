#!/usr/bin/env bash
# run-test.sh BERTH [--frameworks]: the scripts of tests/corpus on a scheduler of their own, compared with what is kept of Slurm;
# or the tests of frameworks there. A script or framework that needs what is not installed says so and is left out.
set -euo pipefail
if ! command -v python3 > /dev/null; then
  echo "SKIP: python3 is not installed"
  exit 77
fi
exec "$(dirname "$0")/../../../scripts/corpus" --berth "$@"
