#!/usr/bin/env bash
# make-venv.sh FOLDER LOCK: a virtual environment with exactly the packages of the lock, hashes checked.
# uv installs them; it is itself bootstrapped by pip into .venv, at the version and hashes of requirements-dev.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1 lock=$2

fail() {
  echo "make-venv: $*" >&2
  exit 1
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

python=$(find_python) || {
  scripts/system-packages.sh python3 python3-venv && python=$(find_python)
} || fail "no Python 3.11 or later found; install one (Debian: python3 python3-venv), or set PYTHON=/path/to/python"

# Debian splits ensurepip off into python3-venv; without it `-m venv` leaves a half-made folder.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  scripts/system-packages.sh python3-venv && "$python" -c 'import ensurepip, venv' 2>/dev/null \
    || fail "$python has no venv or ensurepip module; install it (Debian: python3-venv), or set PYTHON to another Python"
fi

if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  rm -rf "$venv"
  "$python" -m venv "$venv"
fi

uv=.venv/bin/uv
if [[ ! -x $uv ]]; then
  bootstrap=$(mktemp)
  trap 'rm -f "$bootstrap"' EXIT
  # The uv entry is its first line and the hash lines up to the first that does not go on.
  sed -n '/^uv==/,/[^\\]$/p' requirements-dev.lock >"$bootstrap"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$bootstrap"
fi
"$uv" pip sync --quiet --python "$venv/bin/python" --require-hashes "$lock"
