#!/bin/sh
# traces.sh -- what the question `training` compares with: trainings of mpsim, their runs as text and traces.
#
#   sh data/record/device/traces.sh DIR        # MPSIM: the program, else ./mpsim; seconds, 14 MB
set -eu
if [ $# -ne 1 ]; then
    echo "usage: $0 DIR" >&2
    exit 2
fi
: "${MPSIM:=./mpsim}"
for run in gpt-fp32 gpt-pytorch-amp-bf16 gpt-pytorch-amp-fp16 llama-pytorch-amp-bf16; do
    mkdir -p "$1/$run"
    for output in "--write-run $1/$run/run.txt" "--trace $1/$run/trace --trace-steps 1,2,10"; do
        # shellcheck disable=SC2086 # two words or four
        "$MPSIM" train -P "${run#*-}" --net "${run%%-*}" --width 32 --context 32 --batch 2 --steps 10 $output >/dev/null
    done
done
