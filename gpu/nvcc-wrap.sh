#!/bin/sh
# nvcc-wrap.sh [--keep-ptx] X.ptxas NVCC ARGUMENT... -- nvcc, with what ptxas says of every kernel (registers, spills,
# wgmma that it serialises) written to X.ptxas for gpu/ptxas.sh; the rest, and what costs speed, goes to stderr.
# --keep-ptx: the PTX of each target, too, as X.sm_90.ptx and the like, for tests/gpu/ptx.sh.
set -u
keep=
if [ "$1" = --keep-ptx ]; then
    keep=yes
    shift
fi
file=$1
shift
if [ -n "$keep" ]; then
    kept=$file.d
    rm -rf "$kept" && mkdir "$kept" || exit
    set -- "$@" --keep --keep-dir "$kept"
fi
"$@" -Xptxas -v 2>"$file"
status=$?
if [ -n "$keep" ]; then
    for ptx in "$kept"/*.ptx; do
        [ -f "$ptx" ] || continue
        target=$(sed -n '/^\.target/{s/^\.target  *\(sm_[0-9a-z]*\).*/\1/p;q;}' "$ptx")
        mv "$ptx" "${file%.ptxas}.$target.ptx"
    done
    rm -rf "$kept"
fi
sed -e '/(C75/b' -e '/^ptxas info/d' -e '/bytes stack frame/d' "$file" >&2
exit $status
