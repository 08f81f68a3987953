#!/bin/sh
# nvcc-wrap.sh FILE NVCC ARGUMENT... -- nvcc, with what ptxas says of every kernel (registers, spills, wgmma
# that it serialises) written to FILE for gpu/ptxas.sh; the rest, and what costs speed, goes to stderr.
set -u
file=$1
shift
"$@" -Xptxas -v 2>"$file"
status=$?
sed -e '/(C75/b' -e '/^ptxas info/d' -e '/bytes stack frame/d' "$file" >&2
exit $status
