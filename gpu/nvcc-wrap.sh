#!/bin/sh
# nvcc-wrap.sh NVCC ARGUMENT... -- nvcc for libtool: flags that libtool has for a C compiler and nvcc
# does not know are handed to the host compiler.
set -u
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
exec "$@"
