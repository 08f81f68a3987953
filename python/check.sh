#!/bin/sh
# check.sh -- make check-python: builds the wheel, installs it into an empty environment and runs its tests there.
#
# Usage: check.sh SRCDIR WHEEL, in the build folder. PYTHON is the interpreter (python3). Where Python, its venv, NumPy or
# pytest cannot be had, a line says SKIP and why, and the exit code is 0. With PEERS=1 ml_dtypes, torch, gfloat, mypy and
# others are installed, too, and judge; without, their tests are skipped.
set -u
srcdir=$(cd "$1" && pwd)
wheel=$2
python=${PYTHON:-python3}
skip() {
    echo "SKIP check-python: $*"
    exit 0
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || skip "no Python 3.9 or later ('$python')"
size=$(wc -c <"$wheel")
echo "check-python: $wheel has $size bytes"
[ "$size" -lt 5500000 ] || { echo "check-python: expected a wheel of less than 5.5 MB"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# pip of this Python serves the new environment (pip 22.3): one of its own takes a third of the time
quiet='--disable-pip-version-check --no-input -q'
pip="$python -m pip --python $dir/env/bin/python $quiet"
"$python" -m venv --without-pip "$dir/env" >"$dir/log" 2>&1 || skip "$python has no venv: $(tail -n 1 "$dir/log")"
# what the tests need beside NumPy and pytest, with PEERS=1
peers='ml_dtypes torch gfloat mypy jax pandas polars matplotlib mmaemu==0.1.0'
if $pip install --no-compile --retries 1 --timeout 15 numpy pytest jsonschema ${PEERS:+$peers} "$wheel" >"$dir/log" 2>&1; then
    echo "check-python: NumPy, pytest and jsonschema from the package index"
else # offline, or an older pip: what the machine has
    "$python" -m venv --system-site-packages --clear "$dir/env" >"$dir/log" 2>&1 || skip "$python has no venv with pip: $(tail -n 1 "$dir/log")"
    "$dir/env/bin/python" -c 'import numpy, pytest' 2>/dev/null || skip "no NumPy or no pytest, neither from an index nor on this machine"
    echo "check-python: NumPy and pytest of this machine"
    "$dir/env/bin/python" -m pip $quiet install --no-index --no-deps "$wheel" || exit 1
fi
cp -r "$srcdir/python/tests" "$dir/tests" && cd "$dir" || exit 1 # nothing of the source tree is imported
MPSIM_SRCDIR=$srcdir "$dir/env/bin/python" -m pytest -q -rs -p no:cacheprovider tests
