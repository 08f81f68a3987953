#!/bin/sh
# run.sh -- Frama-C's Eva over the references of lib (scalar.h of round, arith and dot) for all inputs: what may overflow, shift too far or leave
# an array. It compares the alarms with `known`, which explains each. Needs frama-c (Debian: frama-c-base), and config.h.
#
#   run.sh [update]      in the build folder; update: rewrite `known`, which keeps the explanations of alarms that stay
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(cd "$top" && frama-c -eva -eva-precision 3 -machdep gcc_x86_64 \
    -cpp-extra-args="-I. -Ilib/include -U__SIZEOF_INT128__" tests/analyze/eva/references.c) >"$dir/log" 2>&1 || { tail -5 "$dir/log"; exit 1; }
# Where it is without the number of the line, what it is.
awk '
    function put() { if (what) print place ": " what; what = "" }
    /^\[eva:alarm\]/ { put(); place = $2; sub(/:[0-9]*:$/, "", place); alarm = 1; next }
    /^  / && alarm { sub(/^ */, ""); what = what (what ? " " : "") $0; next }
    { put(); alarm = 0 }
    END { put() }' "$dir/log" | sort -u >"$dir/alarms"
sed -n '/^ANALYZED\|^  *[0-9]* functions analyzed\|alarms generated/p' "$dir/log"
if [ "${1:-}" = update ]; then
    while read -r alarm; do
        grep -h -F -A1 -x -- "$alarm" "$here/known" 2>/dev/null || printf '%s\n    not explained yet\n' "$alarm"
    done <"$dir/alarms" >"$dir/known"
    cp "$dir/known" "$here/known"
fi
grep -v '^    ' "$here/known" 2>/dev/null | sort -u | diff - "$dir/alarms" && echo "no alarm that $here/known does not explain"
