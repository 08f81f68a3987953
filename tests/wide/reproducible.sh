#!/bin/sh
# reproducible.sh [WORD...]: two builds of the commit that is checked out, from folders of other names and depths, at other times, in another
# locale, zone and umask, the second apart from its sources, have equal bytes: what `make install` installs, the wheel, the source
# distribution and the tarball of `make dist`. WORDs are for configure; OPT_CFLAGS=-O0 LIGHT_CFLAGS=-O0 takes half the time. Files
# that differ are kept, their names and where they lie printed; exit code 1. MPSIM_KEEP: a folder that gets the tarball, the
# source distribution and the wheel where all is equal (.ci/release).
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
# A ccache would hand the first build's objects to the second; CCACHE_NODIRECT=1 in the environment lets it, where equal preprocessed text and
# arguments are enough.
[ "${CCACHE_NODIRECT-}" ] || export CCACHE_DISABLE=1
unset CCACHE_BASEDIR CCACHE_NOHASHDIR
SOURCE_DATE_EPOCH=$(git -C "$source" log -1 --format=%ct)
XZ_OPT=${XZ_OPT--1} # as in .ci/run: a tarball that nobody keeps
export SOURCE_DATE_EPOCH XZ_OPT
unset MAKEFLAGS MFLAGS MAKELEVEL MPSIM_BUILD || true
jobs=-j$(nproc)
# build TREE BUILD OUT WORD...: the tree is there; all that is compared goes to OUT
build() (
    tree=$1 build=$2 out=$3
    shift 3
    mkdir -p "$build" "$out"
    (cd "$tree" && ./bootstrap)
    cd "$build"
    "$tree/configure" -q --prefix=/usr "$@"
    make -s "$jobs"
    make -s install DESTDIR="$out/installed"
    make -s dist
    mv mpsim-*.tar.* "$out"
    if python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        make -s wheel
        MPSIM_BUILD=$build PYTHONPATH=$tree/python/backend python3 -B -c 'import mpsim_backend; mpsim_backend.build_sdist("python/dist")'
        mv python/dist "$out/python"
    else
        echo "reproducible.sh: no Python 3.9 or later: no wheel and no source distribution"
    fi
)
first=$work/a second=$work/another/and-a-longer-one/b
mkdir -p "$first" "$second"
git -C "$source" archive HEAD | tar x -C "$first"
git -C "$source" archive HEAD | tar x -m -C "$second"
(umask 022 && LC_ALL=C TZ=UTC build "$first" "$first" "$work/out/1" "$@") >"$work/first.log" 2>&1 || { tail "$work/first.log"; exit 2; }
(umask 027 && LC_ALL=C.UTF-8 TZ=Asia/Tokyo build "$second" "$work/elsewhere" "$work/out/2" "$@") >"$work/second.log" 2>&1 || { tail "$work/second.log"; exit 2; }
for side in 1 2; do
    (cd "$work/out/$side" && find . \( -type f -o -type l \) | LC_ALL=C sort | xargs sha256sum) >"$work/$side.sums"
done
files=$(wc -l <"$work/1.sums")
if [ "$files" -gt 0 ] && cmp -s "$work/1.sums" "$work/2.sums"; then
    echo "reproducible.sh: $files files, equal bytes"
    grep -E '/(libmpsim\.so|mpsim|mpsim-stat\.1|mpsim-[0-9][^/]*)$' "$work/1.sums" || true
    [ ! "${MPSIM_KEEP-}" ] || find "$work/out/1" -maxdepth 2 -type f -name 'mpsim-*' -exec cp {} "$MPSIM_KEEP" \;
    rm -rf "$work"
else
    diff "$work/1.sums" "$work/2.sums" | sed -n 's/^[<>].*  \(.*\)/\1/p' | sort -u
    echo "reproducible.sh: these differ: $work/out/1, $work/out/2"
    exit 1
fi
