#!/bin/sh
# transformers.sh -- make bench-transformers: one training step of GPT-2 with 124 million parameters on 256 tokens, and the validation of
# one sequence, under policies of each kind: CPU seconds on all threads, half of them (two cores), and the largest resident size.
#
#   transformers.sh [POLICY]...
set -eu
export LC_ALL=C OMP_WAIT_POLICY=passive # waiting is no work
: "${MPSIM:=./mpsim}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 99' HUP INT TERM
[ $# -gt 0 ] || set -- fp32 pytorch-amp-bf16 bf16-pure apex-O2 nemo-fp8-hybrid-max te-mxfp8 te-nvfp4

# The largest resident size so far of a process, in KiB, while it runs.
watch() {
    most=0
    while kill -0 "$1" 2>/dev/null; do
        now=$(awk '/^VmHWM/ { print $2 }' "/proc/$1/status" 2>/dev/null || echo 0)
        [ "${now:-0}" -le "$most" ] || most=$now
        sleep 0.2
    done
    echo "$most"
}

printf '%-24s %12s %12s %14s\n' policy 'CPU seconds' 'on two cores' 'resident GiB'
for policy in "$@"; do
    rm -f "$dir/pid"
    ( # whose only child is the program, so that `times` has its time alone
        "$MPSIM" train --gpt2 --context 256 --batch 1 --steps 1 --validation 1 --threads 2 -q -P "$policy" -o "$dir/report" &
        echo $! >"$dir/pid.new" && mv "$dir/pid.new" "$dir/pid"
        wait $!
        times >"$dir/times"
    ) &
    while [ ! -e "$dir/pid" ]; do :; done
    watch "$(cat "$dir/pid")" >"$dir/memory"
    wait $!
    awk -v policy="$policy" -v memory="$(cat "$dir/memory")" '
        function seconds(t) { split(t, p, /[ms]/); return 60 * p[1] + p[2] }
        NR == 2 { s = seconds($1) + seconds($2); printf "%-24s %12.1f %12.1f %14.2f\n", policy, s, s / 2, memory / 2^20 }' "$dir/times"
done
