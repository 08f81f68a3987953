#!/bin/sh
# device.sh -- a thousandth of the checks on the device there is, a tenth of the trainings, speeds; the
# record.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
: "${MPSIM_GPU:=$(dirname "$MPSIM")/mpsim-gpu}"
if [ ! -x "$MPSIM_GPU" ]; then
    echo "1..0 # SKIP built without CUDA"
    exit 0
fi
set -- --quick --runs "$MPSIM_SRCDIR/gpu/runs"
"$MPSIM_GPU" "$@" --output "$dir/record.json" >"$dir/out" 2>"$dir/err"
status=$?
if [ $status -eq 77 ]; then
    echo "1..0 # SKIP $(sed -n 's/^SKIP: //p' "$dir/out")"
    exit 0
fi
ok $status "every check, probe, training and measured result agrees with the reference"
grep -q '"schema":"mpsim.gpu/1"' "$dir/record.json"
ok $? "a record is written"
run 0 train --run "$MPSIM_SRCDIR/gpu/runs/mlp-fp16.run" --check-digests "$dir/record-mlp-fp16.digests" || # another
    grep -q '^# run arch [a-gi-z]' "$dir/record-mlp-fp16.digests" # architecture
ok $? "mpsim train repeats a training of the device"
"$MPSIM_GPU" "$@" --output "$dir/no/such/folder" >"$dir/out" 2>"$dir/err"
[ $? -eq 4 ] && grep -q '^mpsim-gpu: ' "$dir/err"
ok $? "a record that cannot be written is exit code 4"
finish
