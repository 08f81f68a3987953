#!/bin/sh
# traces.sh -- what the question `training` compares with: trainings of mpsim, their runs as text and traces.
#
#   sh data/record/device/traces.sh DIR        # MPSIM: the program, else ./mpsim; seconds, 20 MB
set -eu
if [ $# -ne 1 ]; then
    echo "usage: $0 DIR" >&2
    exit 2
fi
: "${MPSIM:=./mpsim}"
for net in gpt llama; do
    for policy in fp32 pytorch-amp-bf16 pytorch-amp-fp16; do
        mkdir -p "$1/$net-$policy"
        set -- "$1" train -P "$policy" --net "$net" --width 32 --context 32 --steps 10 --trace-steps 1-3,10
        dir=$1
        shift
        "$MPSIM" "$@" --write-plan "$dir/$net-$policy/run.txt" >/dev/null
        "$MPSIM" "$@" --trace "$dir/$net-$policy/trace" >/dev/null
        set -- "$dir"
    done
done
