#!/bin/sh
# corpus.sh -- every file of the fuzz corpora through readers and policies: no crash, whatever it
# holds.
set -u
: "${MPSIM:=./mpsim}" "${MPSIM_SRCDIR:=.}"
dir=$(dirname "$MPSIM")/tests/fuzz
n=0
failed=0
corpus() { # corpus PROGRAM NAME FILE...
    n=$((n + 1))
    program=$dir/$1
    name=$2
    shift 2
    if [ -x "$program" ] && "$program" "$@"; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        failed=1
    fi
}
echo "1..2"
corpus fuzz-trace "the corpus of files is read or refused" "$MPSIM_SRCDIR"/tests/fuzz/corpus/*
corpus fuzz-policy "policies are read or refused" "$MPSIM_SRCDIR"/tests/fuzz/policies/* \
    "$MPSIM_SRCDIR"/data/policies/*.yaml
exit $failed
