#!/bin/sh
# nvcc-wrap.sh FILE NVCC ARGUMENT... -- nvcc, with what ptxas says of every kernel (registers, spills, wgmma
# that it serialises) written to FILE for gpu/ptxas.sh; the rest, and what costs speed, goes to stderr. Flags
# that libtool has for a C compiler and nvcc does not know are handed to the host compiler.
set -u
file=$1
shift
first=1
for argument in "$@"; do
    [ $first -eq 1 ] && { set --; first=0; }
    case $argument in
        -fPIC | -fpic | -fPIE | -fpie | -pthread | -fno-common)
            set -- "$@" -Xcompiler "$argument" ;;
        *)
            set -- "$@" "$argument" ;;
    esac
done
"$@" -Xptxas -v 2>"$file"
status=$?
sed -e '/(C75/b' -e '/^ptxas info/d' -e '/bytes stack frame/d' "$file" >&2
exit $status
