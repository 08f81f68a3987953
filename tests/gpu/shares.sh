#!/bin/sh
# shares.sh -- gpu/validation/speed/shares.py on the records in data/gpu and on played ones: which rows stand beside which, shares,
# shares per clock; what is not a record.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
: "${PYTHON:=python3}"
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "1..0 # SKIP no Python 3.9"
    exit 0
fi
shares() { # shares CODE ARGUMENT...
    want=$1
    shift
    "$PYTHON" "$MPSIM_SRCDIR/gpu/validation/speed/shares.py" "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq "$want" ]
}

shares 0 "$MPSIM_SRCDIR/data/gpu/nvidia-h200-2026-11-26-speed.json" &&
    has '^cast of binary32 to fp16  *1.027 ms  1980 MHz   37.4%       -$' &&
    has '^  e4m3 4096^3, cublasLt, fast, b transposed  *0.111 ms  1665 MHz   56.7%   48.8%$' &&
    has '^SKIP waits for a device: torch'
ok $? "the H200's record: shares of the copy, of cuBLAS, and per clock"
shares 0 && has '^NVIDIA '
ok $? "without arguments the newest record"

mkdir "$dir/beside"
cat >"$dir/record.json" <<'J'
{"schema":"mpsim.gpu/1","device":"a device","date":"2026","speed":[
 {"name":"copy, own kernel","status":"done","bytes":800,"flops":0,"seconds":1,"sm_clock":1000},
 {"name":"LayerNorm, bf16","status":"done","bytes":400,"flops":0,"seconds":2,"sm_clock":1500},
 {"name":"RMSNorm, bf16","status":"failed","text":"a fault"},
 {"name":"attention, bf16, 64 x 2048 x 128, causal, forward","status":"done","bytes":0,"flops":7,"seconds":4}]}
J
cat >"$dir/beside/layers.ndjson" <<'J'
{"schema":"mpsim.device/1","question":"layers","device":"a device"}
{"case":"layer_norm","beside":["LayerNorm, bf16"],"seconds":1,"sm_clock":1200}
{"case":"rms_norm","beside":["RMSNorm, bf16"],"seconds":1,"sm_clock":1200}
{"case":"fast_hadamard_transform","refused":"RuntimeError: fast_hadamard_transform is not installed"}
J
cat >"$dir/beside/heads.ndjson" <<'J'
{"schema":"mpsim.device/1","question":"heads","device":"a device"}
{"case":"flash, forward","beside":["attention, bf16, 64 x 2048 x 128, causal, forward"],"seconds":1}
J
printf '{"case":"cut o' >>"$dir/beside/heads.ndjson"
shares 0 "$dir/record.json" "$dir/beside" && has '^LayerNorm, bf16  *2000.000 ms  1500 MHz   25.0%       -$' &&
    has '^  layer_norm  *1000.000 ms  1200 MHz   50.0%   40.0%$'
ok $? "a played library beside a row"
has '^  flash, forward  *1000.000 ms  *25.0%       -$' && has '^not measured: fast_hadamard_transform: .*not installed$' && ! has SKIP
ok $? "without a clock no share per clock; what is not installed says so"
! has 'rms_norm' && ! has 'RMSNorm'
ok $? "a row that was not measured stands beside nothing"
for f in layers heads; do cp "$dir/beside/$f.ndjson" "$dir/device-beside-$f.ndjson"; done
shares 0 "$dir/record.json" "$dir/device-beside-" && has '^  layer_norm .* 50.0%   40.0%$' &&
    shares 3 "$dir/record.json" "$dir/none" && has 'none: no files of answers$' err
ok $? "answers with a name in common; none"
sed -i 's/"seconds":2,/"seconds":4,/' "$dir/record.json"
shares 0 "$dir/record.json" "$dir/beside" && has '^  layer_norm .* 25.0%   20.0%$'
ok $? "another digit is another share"
sed -i 's/"a device"}/"another device"}/' "$dir/beside/heads.ndjson" "$dir/beside/layers.ndjson"
shares 3 "$dir/record.json" "$dir/beside" && has 'answers of another device, the record is of a device$' err
ok $? "answers of another device are not compared"
echo '{"schema":"mpsim.gpu/1","speed":[{"name":"x","status":"done","seconds":"1"}]}' >"$dir/record.json"
shares 3 "$dir/record.json" && has "x: seconds is '1', expected a number$" err && [ "$(wc -l <"$dir/err")" -eq 1 ]
ok $? "a time that is none"
echo '{"schema":"x"}' >"$dir/record.json"
shares 3 "$dir/record.json" && has 'not of schema mpsim.gpu/1$' err
ok $? "no record"
shares 3 "$dir/none.json" && shares 2 --nonsense && shares 0 --help && has 'Exit: 0'
ok $? "no file; usage"
finish
