#!/usr/bin/env bash
# Makes .venv from nothing: Python 3.11 with venv and pip is all that the machine must have.
# Called by the Makefile, which skips it while pyproject.toml, constraints.txt and this are unchanged.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}
python=${PYTHON:-$(command -v python3.11 || command -v python3)}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "eyas needs Python 3.11 or newer; $python is $("$python" --version). Set PYTHON=/path/to/python3.11" >&2
  exit 2
}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check)

# torch first: whatever is installed after it takes the build that is there. PyPI's Linux wheel
# carries CUDA (several GB), so a machine without a GPU gets the CPU build: from a wheel folder or
# index that pip is configured with, or else from the project's own index.
torch=$(grep '^torch==' constraints.txt)
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  if [ "$(uname -s)" != Linux ] || command -v nvidia-smi >/dev/null; then
    "${pip[@]}" install "$torch"
  else
    "${pip[@]}" install "$torch+cpu" 2>/dev/null ||
      "${pip[@]}" install "$torch+cpu" --index-url https://download.pytorch.org/whl/cpu
  fi
fi
"${pip[@]}" install --constraint constraints.txt --requirement requirements-dev.txt --editable '.[train,report]'
