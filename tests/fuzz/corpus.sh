#!/bin/sh
# corpus.sh -- every file of the fuzz corpora through its target: no crash, and what a target checks holds.
set -u
: "${MPSIM:=./mpsim}" "${MPSIM_SRCDIR:=.}"
dir=$(dirname "$MPSIM")/tests/fuzz
sources=$MPSIM_SRCDIR
corpora=$dir/seeds.$$
trap 'rm -rf "$corpora"' EXIT
# shellcheck source=tests/fuzz/targets.sh
. "$sources/tests/fuzz/targets.sh"
n=0
failed=0
ok() { # ok NAME COMMAND...
    n=$((n + 1))
    name=$1
    shift
    if "$@"; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        failed=1
    fi
}
set -- "$MPSIM_SRCDIR"/tests/fuzz/fuzz-*.c
echo "1..$(($# + 2))"
for source; do
    target=$(basename "$source" .c)
    name=${target#fuzz-}
    seeds "$name" "$corpora/$name" || exit 1
    ok "$name: the corpus is read or refused" "$dir/$target" "$corpora/$name"/*
done
ok "policy: the bundled ones, too" "$dir/fuzz-policy" "$MPSIM_SRCDIR"/data/policies/*.yaml
quick() { # quick COMMAND...: within a second of processor time
    (ulimit -t 1 && exec "$@" >/dev/null)
}
ok "log: growth that never comes is not waited for" quick "$MPSIM" scaler --log "$corpora/log/hang-growth-never"
exit $failed
