#!/bin/sh
# ptxas.sh WHAT FILE... -- searches what ptxas said of kernels (-Xptxas -v; nvcc-wrap.sh writes FILEs) for what
# costs speed and changes no bit. WHAT: "serialised": wgmma that waits for the one before, for which ptxas
# has words with numbers from C7500 on; "spills": registers that are kept in memory. Prints each, with its
# kernel. Exit code 0: none; 1: some; 2: a FILE is missing, or of no kernel.
set -u
what=$1
shift
status=0
for file in "$@"; do
    if ! grep -q 'Compiling entry function' "$file" 2>/dev/null; then
        echo "$file: nothing that ptxas said of a kernel"
        exit 2
    fi
    awk -v file="$file" -v what="$what" '
        match($0, /Compiling entry function [^ ]*|Function properties for [^ ]*/) {
            name = substr($0, RSTART, RLENGTH)
            sub(/.* /, "", name)
        }
        what == "serialised" && (/\(C75[0-9][0-9]\)/ || /wgmma.*serialized/) { print file ": " $0; bad = 1 }
        what == "spills" && /[1-9][0-9]* bytes spill/ { print file ": " name ": " $0; bad = 1 }
        END { exit bad }' "$file" || status=1
done
exit $status
