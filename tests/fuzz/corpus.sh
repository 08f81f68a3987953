#!/bin/sh
# corpus.sh -- every file of the fuzz corpus through the readers: no crash, whatever it holds.
set -u
: "${MPSIM:=./mpsim}" "${MPSIM_SRCDIR:=.}"
fuzz=$(dirname "$MPSIM")/tests/fuzz/fuzz-trace
echo "1..1"
[ -x "$fuzz" ] || { echo "not ok 1 - $fuzz is not built"; exit 1; }
if "$fuzz" "$MPSIM_SRCDIR"/tests/fuzz/corpus/*; then
    echo "ok 1 - the corpus is read or refused"
else
    echo "not ok 1 - the corpus is read or refused"
    exit 1
fi
