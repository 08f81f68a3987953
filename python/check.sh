#!/bin/sh
# check.sh -- make check-python: builds the wheel, installs it into an empty environment and runs its tests there.
#
# Usage: check.sh SRCDIR WHEEL, in the build folder. PYTHON is the interpreter (python3). Where Python, its venv, NumPy or
# pytest cannot be had, a line says SKIP and why, and the exit code is 0. With PEERS=1 ml_dtypes, torch, gfloat and mypy
# are installed, too, and judge; without, their tests are skipped.
set -u
srcdir=$(cd "$1" && pwd)
wheel=$2
python=${PYTHON:-python3}
skip() {
    echo "SKIP check-python: $*"
    exit 0
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || skip "no Python 3.9 or later ('$python')"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$python" -m venv "$dir/env" >"$dir/log" 2>&1 || skip "$python has no venv with pip: $(tail -n 1 "$dir/log")"
pip="$dir/env/bin/pip --disable-pip-version-check --no-input -q"
if $pip install --retries 1 --timeout 15 numpy pytest ${PEERS:+ml_dtypes torch gfloat mypy} >"$dir/log" 2>&1; then
    echo "check-python: NumPy and pytest from the package index"
else # offline: what the machine has
    "$python" -m venv --system-site-packages --clear "$dir/env" >"$dir/log" 2>&1
    "$dir/env/bin/python" -c 'import numpy, pytest' 2>/dev/null || skip "no NumPy or no pytest, neither from an index nor on this machine"
    echo "check-python: NumPy and pytest of this machine"
fi
$pip install --no-index --no-deps "$wheel" || exit 1
cp -r "$srcdir/python/tests" "$dir/tests" && cd "$dir" || exit 1 # nothing of the source tree is imported
MPSIM_SRCDIR=$srcdir PYTHONDONTWRITEBYTECODE=1 "$dir/env/bin/python" -m pytest -q -rs -p no:cacheprovider tests
