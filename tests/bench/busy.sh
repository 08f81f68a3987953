#!/bin/sh
# busy.sh -- make bench-busy: commands beside other processes that keep processors busy, against what a fair share of the
# machine allows: with T threads beside B busy processes on P processors it is the lesser of T and P T / (T + B)
# processors. A row has the seconds of a command and their ratio to the allowed ones: what the command took alone with that
# many threads, times as much longer as its share is smaller (never less than alone). Goal: 1.2. Each is the least of
# five runs; a row means something only where nothing else runs.
#
#   busy.sh [PROCESSORS]     as many as it pins itself and the others to; default 2
set -eu
export LC_ALL=C
: "${MPSIM:=./mpsim}" "${MPSIM_SRCDIR:=.}"
export MPSIM_POLICIES="$MPSIM_SRCDIR/data/policies"
processors=${1:-2}
cpus=0-$((processors - 1))
command -v taskset >/dev/null || { echo "bench-busy: no taskset" >&2; exit 1; }
dir=$(mktemp -d)
others=
stop() {
    # shellcheck disable=SC2086 # numbers of processes
    [ -z "$others" ] || kill $others 2>/dev/null || :
    others=
}
trap 'stop; rm -rf "$dir"' EXIT
trap 'exit 99' HUP INT TERM
head -c 64000000 /dev/urandom >"$dir/data"

commands() {
    cat <<LIST
train-gpt    train --net gpt --steps 5 -P fp32
train-mlp    train --net mlp --steps 300 -P bf16-pure
replay       replay -P pytorch-amp-fp16 $MPSIM_SRCDIR/data/charlm
stat         stat -q --dtype fp16 -f fp16,e4m3 $dir/data
cast         cast -q --dtype fp16 -f e4m3 -o $dir/cast.npy $dir/data
dot          dot -f fp16 -M exact,hopper-fp16-fp32 -K 4096 --rows 64 --columns 64
LIST
}

seconds() { # seconds THREADS COMMAND...: the least of five
    threads=$1
    shift
    least=
    for _ in 1 2 3 4 5; do
        from=$(date +%s%N)
        OMP_NUM_THREADS=$threads taskset -c "$cpus" "$MPSIM" "$@" >"$dir/out" 2>"$dir/err" </dev/null || {
            cat "$dir/err" >&2
            exit 1
        }
        now=$((($(date +%s%N) - from) / 1000))
        if [ -z "$least" ] || [ "$now" -lt "$least" ]; then least=$now; fi
    done
    echo "$least"
}

printf '%-12s %8s %6s %9s %9s %7s\n' command threads busy seconds allowed ratio
commands | while read -r name words; do
    for threads in 1 "$processors"; do
        alone=
        for busy in 0 1 2; do
            i=0
            while [ "$i" -lt "$busy" ]; do
                taskset -c "$cpus" sh -c 'while :; do :; done' &
                others="$others $!"
                i=$((i + 1))
            done
            # shellcheck disable=SC2086 # words
            took=$(seconds "$threads" $words)
            stop
            alone=${alone:-$took}
            awk -v name="busy $name" -v t="$threads" -v b="$busy" -v p="$processors" -v took="$took" -v alone="$alone" 'BEGIN {
                share = p * t / (t + b)
                if (share > t) share = t
                quiet = t < p ? t : p
                allowed = alone * quiet / share
                printf "%-12s %8d %6d %9.3f %9.3f %7.2f\n", substr(name, 6), t, b, took / 1e6, allowed / 1e6, took / allowed
            }'
        done
    done
done
