#!/usr/bin/env bash
# Every source is laid out as .clang-format says. Skips where clang-format 14 is not installed: versions differ.
set -euo pipefail
cd "$(dirname "$0")/../.."
format=
for candidate in clang-format-14 clang-format; do # Debian's package has only the first name
  if "$candidate" --version 2>/dev/null | grep -q 'version 14\.'; then format=$candidate; break; fi
done
if [ -z "$format" ]; then
  echo "SKIP: clang-format 14 is not installed"
  exit 77
fi
find src tests bench fuzz \( -name '*.h' -o -name '*.cpp' \) -print0 | xargs -0 "$format" --dry-run -Werror
