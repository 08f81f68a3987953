#!/bin/sh
# sdist.sh -- make check-sdist: a source distribution, installed from its own contents and tested.
#
# Usage: sdist.sh SRCDIR, in the build folder. PYTHON is the interpreter (python3). The backend packs, as `python -m build
# --sdist` has it do; pip builds and installs what was unpacked in an empty folder, and runs the tests that lie there. SKIP as
# in check.sh.
set -u
srcdir=$(cd "$1" && pwd)
build=$(pwd)
python=${PYTHON:-python3}
skip() {
    echo "SKIP check-sdist: $*"
    exit 0
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || skip "no Python 3.9 or later ('$python')"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$python" -m venv "$dir/env" >"$dir/log" 2>&1 || skip "$python has no venv with pip: $(tail -n 1 "$dir/log")"
pip="$dir/env/bin/python -m pip --disable-pip-version-check --no-input -q"
$pip install --retries 1 --timeout 15 numpy pytest >"$dir/log" 2>&1 || skip "no NumPy or no pytest: $(tail -n 1 "$dir/log")"
cd "$dir" || exit 1
name=$(MPSIM_BUILD=$build PYTHONPATH=$srcdir/python/backend "$python" -B -c 'import mpsim_backend; print(mpsim_backend.build_sdist("."))' 2>"$dir/log") ||
    { tail -n 20 "$dir/log"; exit 1; }
name=$(echo "$name" | tail -n 1)
echo "check-sdist: $name has $(wc -c <"$name") bytes"
tar xzf "$name"
tree=$dir/${name%.tar.gz}
[ -f "$tree/PKG-INFO" ] && [ ! -e "$tree/config.status" ] || { echo "check-sdist: no PKG-INFO, or a configured tree"; exit 1; }
# nothing of this build or checkout: the environment says nothing of them
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MPSIM_BUILD -u MPSIM_SRCDIR $pip install --no-index --no-build-isolation --no-deps "$tree" || exit 1
cd "$tree" && MPSIM_SRCDIR=$tree "$dir/env/bin/python" -m pytest -q -rs -p no:cacheprovider python/tests
