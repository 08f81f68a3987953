#!/bin/sh
# killed.sh -- SIGKILL at any moment: a training goes on from its checkpoint to the same bytes, an older output is whole until the
# new one is, and a shard that died is done again without the others. At a few moments in make check, at 200 of each with
# MPSIM_TEST_EXPENSIVE=1 (make check-long).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
if ! timeout -s KILL 1 true 2>/dev/null; then
    echo "1..0 # SKIP no timeout of coreutils"
    exit 0
fi
OMP_NUM_THREADS=1
TMPDIR=$dir/tmp
export OMP_NUM_THREADS TMPDIR
mkdir "$dir/tmp" "$dir/work" && cd "$dir/work" || exit 99
moments=2
[ "${MPSIM_TEST_EXPENSIVE:-0}" = 1 ] && moments=200
dd if=/dev/zero of=../large bs=1 count=0 seek=33554432 2>/dev/null || exit 99 # takes no room

# now: in nanoseconds, as date of coreutils has them
now() { date +%s%N; }
# killed LONGEST ARGUMENT...: at a moment before that, in nanoseconds
draw=$((part % 65537 + 1))
killed() {
    draw=$((draw * 69069 % 65537))
    after=$(awk -v s="$1" -v m=$draw 'BEGIN { printf "%.4f", 0.001 + s * 1e-9 * m / 65537 }')
    shift
    timeout --foreground -s KILL "$after" "$MPSIM" "$@" >../out 2>../err </dev/null
}

# ---- a training with a checkpoint at every step ----
run='-P pytorch-amp-fp16 --width 24 --batch 8 --steps 40 --optimizer adam -q'
# shellcheck disable=SC2086 # words
begun=$(now) && "$MPSIM" train $run --checkpoint ../whole --checkpoint-every 1 >../out 2>../err || exit 99
longest=$((($(now) - begun) * 5 / 4)) bad='' none=0 half=0 ended=0 i=0
while [ $i -lt $moments ]; do
    i=$((i + 1))
    rm -f point
    # shellcheck disable=SC2086 # words
    if killed $longest train $run --checkpoint point --checkpoint-every 1; then
        ended=$((ended + 1))
    elif [ ! -e point ]; then
        none=$((none + 1))
        continue
    else
        half=$((half + 1))
        "$MPSIM" train --resume point --steps 40 -q --checkpoint point --checkpoint-every 1 >../out 2>../err ||
            grep -q 'has done 40 steps' ../err || bad="$bad resume-$after"
    fi
    cmp -s point ../whole || bad="$bad bytes-$after"
done
[ -z "$bad" ] || echo "$bad" >>../err
[ -z "$bad" ]; ok $? "train: $half goes on, $none before its first checkpoint, $ended at the end"

# ---- outputs that replace older ones ----
# replaces FILE ARGUMENT...
replaces() {
    file=$1
    shift
    echo old >"$file" && begun=$(now)
    "$MPSIM" "$@" >../out 2>../err || exit 99
    longest=$((($(now) - begun) * 5 / 4)) && mv "$file" ../new
    bad='' older=0 newer=0 i=0
    while [ $i -lt $moments ]; do
        i=$((i + 1))
        echo old >"$file"
        killed $longest "$@"
        if [ "$(head -c 5 "$file" | tr -d '\0')" = old ]; then older=$((older + 1)); else newer=$((newer + 1)) && { cmp -s "$file" ../new || bad="$bad $after"; }; fi
        rm -f ./*.tmp ./.*.tmp # KILL leaves them
    done
    [ -z "$bad" ] || echo "$bad" >>../err
    [ -z "$bad" ]; ok $? "$1: $older the older file, $newer the new one"
}
replaces out.npy cast -f e4m3 --dtype fp16 -q -o out.npy ../large
replaces out stat --json --dtype fp32 -o out ../large
replaces out stat --shard 1/2 --dtype fp32 -o out ../large

# ---- a shard that is interrupted: merge says so, and it is done again alone ----
trace=$top/data/digits-cnn
"$MPSIM" stat --json -o ../whole.json "$trace" || exit 99
dd if=/dev/zero of=../endless bs=1 count=0 seek=68719476736 2>/dev/null || exit 99 # 64 GiB that take no room: no machine ends in time
for k in 1 2 3; do "$MPSIM" stat --shard $k/3 -o part.$k "$trace" || exit 99; done
for signal in INT KILL; do
    cp part.2 ../kept && rm part.2
    timeout --foreground -s $signal 0.02 "$MPSIM" stat --shard 2/3 --dtype fp32 -o part.2 ../endless >../out 2>../err
    [ ! -e part.2 ]; ok $? "SIG$signal: no part of a shard that did not end"
    "$MPSIM" merge -o ../report part.* >../out 2>../err
    [ $? -eq 3 ] && grep -q '^mpsim: merge: shard 2 of 3 is missing$' ../err; ok $? "SIG$signal: merge says what is missing"
    "$MPSIM" stat --shard 2/3 -o part.2 "$trace" && cmp -s part.2 ../kept && "$MPSIM" merge --json -o ../report part.* &&
        cmp -s ../report ../whole.json; ok $? "SIG$signal: that shard again, and the report of one run"
    rm -f ./.*.tmp ./*.tmp
done
"$MPSIM" stat --shard 3/3 -f bf16 -o part.3 "$trace" # of other options
"$MPSIM" merge -o ../report part.* >../out 2>../err
[ $? -eq 3 ]; ok $? "a part of other options is refused"
"$MPSIM" stat --shard 3/3 -o part.3 "$trace" && "$MPSIM" merge --json -o ../report part.* && cmp -s ../report ../whole.json
ok $? "a shard that is done again replaces its part"
finish
