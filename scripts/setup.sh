#!/usr/bin/env bash
# Makes .venv from nothing: Python 3.11 with venv and pip is all that the machine must have.
# The Makefile skips it while pyproject.toml, the lists of requirements and this file are unchanged.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}
python=${PYTHON:-$(command -v python3.11 || command -v python3 || true)}
[ -n "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "eyas needs Python 3.11 or newer (found: ${python:-none}). Set PYTHON=/path/to/python3.11" >&2
  exit 2
}
# A venv whose making was interrupted has a python but no pip.
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear "$venv"
install() { "$venv/bin/python" -m pip --disable-pip-version-check install --constraint constraints.txt "$@"; }

# torch first: whatever is installed after it takes the build that is there. PyPI's wheel for Linux
# carries CUDA (several GB), so a machine without a GPU gets the CPU build: from an index or wheel
# folder that pip is configured with, else from the project's own index, else whatever PyPI has.
torch=$(grep '^torch==' constraints.txt)
has_torch() {
  "$venv/bin/python" - "${torch#torch==}" <<'PYTHON'
import importlib.metadata, sys
try:
    found = importlib.metadata.version("torch").partition("+")[0]
except importlib.metadata.PackageNotFoundError:
    found = None
sys.exit(found != sys.argv[1])
PYTHON
}
if ! has_torch; then
  if [ "$(uname -s)" != Linux ] || command -v nvidia-smi >/dev/null; then
    install "$torch"
  else
    echo "looking for the CPU build of $torch"
    install "$torch+cpu" 2>/dev/null ||
      install "$torch+cpu" --index-url https://download.pytorch.org/whl/cpu ||
      install "$torch"
  fi
fi
install --requirement requirements-dev.txt
# The build backend is among them: a build of its own would not know the constraints.
install --no-build-isolation --editable '.[train,report]'
