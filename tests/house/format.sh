#!/usr/bin/env bash
# Every source is laid out as .clang-format says. Skips where clang-format 14 is not installed: versions differ.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  echo "SKIP: clang-format 14 is not installed"
  exit 77
fi
find src tests bench fuzz \( -name '*.h' -o -name '*.cpp' \) -print0 | xargs -0 clang-format --dry-run -Werror
