#!/usr/bin/env bash
# The Python SDK's own tests, with a python3 that has torch if there is one.
set -euo pipefail
cd "$(dirname "$0")/../../../python"
if ! command -v python3 >/dev/null; then
  echo "SKIP: python3 is not installed"
  exit 77
fi
python=python3
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import torch' 2>/dev/null; then python=$candidate; break; fi
done
export PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
exec "$python" -W error::ResourceWarning -m unittest discover -s tests -v
