#!/bin/sh
# replay.sh -- mpsim replay: its forms of output, exit codes, error lines, several policies.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
digits=$top/data/digits-cnn
mlp=$top/data/amp-mlp

# json: the output is one JSON value (as Python says, or at least by its brackets)
json() {
    if command -v python3 >/dev/null; then
        python3 -c 'import json, sys; json.load(open(sys.argv[1]), parse_constant=sys.exit)' "$dir/out"
    else
        [ "$(tr -cd '[{' <"$dir/out" | wc -c)" -eq "$(tr -cd ']}' <"$dir/out" | wc -c)" ]
    fi
}

# cells: the CSV output with '+' for the commas within quoted cells
cells() { awk -F'"' -v OFS= '{ for (i = 2; i <= NF; i += 2) gsub(/, */, "+", $i); $1 = $1; print }' "$dir/out"; }

# rows N COLUMNS: N lines of as many cells, the header included
rows() { [ "$(wc -l <"$dir/out")" -eq "$1" ] && cells | awk -F, -v n="$2" 'NF != n { exit 1 }'; }

# column NAME: its cells, one per line
column() {
    cells | awk -F, -v c="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) k = i; next } { print $k }'
}

# ---- text ----
run 0 replay -P "$mlp/autocast.yaml" "$mlp/sgd"; ok $? "a recorded run"
has '^policy *amp-mlp-autocast$' && has '^plan *precision fp16: compute fp16, autocast torch'; ok $? "text: the policy"
has '^ *1\* *2^24  *skipped, backoff ' && has '^ *2  *2^23  *skipped, backoff '; ok $? "text: steps"
[ "$(grep -c ' skipped, backoff ' "$dir/out")" -eq 8 ] && [ "$(grep -c ' growth ' "$dir/out")" -eq 2 ]
ok $? "text: eight skipped steps, two growths"
has '^scaler *24 steps: 8 skipped, 8 overflows, 8 backoffs, 2 growths; next loss scale 2^18$'; ok $? "text: the scaler"
has '^record *0 of 52,030 carried .* differ from the'; ok $? "text: the record"
turns 5
run 0 replay -P "$mlp/adamw.yaml" "$mlp/adamw" && has '^record *0 of 75,020 '; ok $? "clipped AdamW"
run 0 replay -P "$mlp/half.yaml" "$mlp/half" && has '^record *0 of 81,070 ' &&
    has 'weights 2.4 KiB, master 4.7 KiB, gradients 2.4 KiB, optimizer state 4.7 KiB'; ok $? "masters"
has 'equal to recorded steps$' && ! has '^most ' && ! has '^lacks '; ok $? "text: the variant equals the record"
run 0 replay -P fp32 "$mlp/adamw" && has '^record *0 of 75,020 ' && has '^variant *torch-cpu-default,' &&
    has '^clipped *6 of 24 steps, as recorded: norm 0.4 (torch-cpu)$'
ok $? "text: a policy that is silent takes the recorded variant and clip"
printf 'precision: fp32\noptimizer: {name: trace, lr: 0.003, variant: torch-cpu}\n' >"$dir/own.yaml"
run 0 replay -P "$dir/own.yaml" "$mlp/adam" && has '^most  *[a-z.]*:fc[12].[a-z]* [0-9,]* of [0-9,]*, at most ' &&
    has "^policy's  *lr 0.003 (recorded 0.002), variant torch-cpu (recorded torch-cpu-default)$" &&
    has '^lacks  *parameter groups (mpsim.groups)' &&
    has 'equal to recorded steps of other runs' && has 'not to those of this one$'
ok $? "text: what differs, what is the policy's own, what the record lacks"
[ -z "$(awk 'length > 100' "$dir/out")" ]; ok $? "text: lines of at most 100 columns"
# what a framework would refuse: torch's scaler does not unscale what fp16 (bf16: on CUDA) parameters without masters have
printf 'precision: fp16\nautocast: all\nparams: fp16\nloss_scaling: torch\noptimizer: {name: trace, variant: torch-foreach}\n' >"$dir/refused.yaml"
run 0 replay -P "$dir/refused.yaml" "$digits/step_000001" && has "^refused  *torch's GradScaler does not unscale fp16" && has 'explain torch-unscale-fp16'
ok $? "text: what torch refuses"
sed 's/fp16/bf16/; s/params: fp16/params: bf16/' "$dir/refused.yaml" >"$dir/refused-bf16.yaml"
run 0 replay -P "$dir/refused-bf16.yaml" --json "$digits/step_000001" && has '"refused": "torch.s GradScaler has no CUDA kernel'; ok $? "JSON: the same of bf16"
sed 's/ torch$/ apex/' "$dir/refused.yaml" >"$dir/apex.yaml"
run 0 replay -P "$dir/apex.yaml" "$digits/step_000001" && ! has '^refused'; ok $? "Apex does not refuse it"
# DeepSpeed's constant scale skips what Apex's takes: of the steps recorded, the five that overflow at 2^30
sed 's/params: fp16/params: fp16\nmaster_weights: true/; s/ torch$/ deepspeed-static:2^30/; s/torch-foreach/apex/' "$dir/refused.yaml" >"$dir/static.yaml"
run 0 replay -P "$dir/static.yaml" --csv "$digits" && [ "$(column events | grep -c '^overflow+skipped$')" -eq 5 ] &&
    [ "$(column scale | sort -u)" = 1073741824 ]
ok $? "a constant scale that skips"
run 0 replay -P fp32 --weights recorded "$mlp/adam" && has 'other runs, this one compares none$'; ok $? "text: nothing is compared"
run 0 replay -P pytorch-amp-fp16 "$digits" && ! has '^  act:fc2' && has '^  agrad:fc2 '; ok $? "text: what loses most"
turns 5 together
run 0 replay -P pytorch-amp-fp16 --tensors "$digits" && has '^  act:fc2 ' && has '^  weight:bn1.bias  *batchnorm  binary32'
ok $? "text: --tensors"
cp "$dir/out" "$dir/first"
run 0 replay -P pytorch-amp-fp16 --tensors "$digits" && cmp -s "$dir/out" "$dir/first"; ok $? "the same bytes again"
turns 5
run 0 replay -P fp32 --no-reference "$digits" && ! has 'from fp32' && ! has 'from f64'; ok $? "--no-reference"
run 0 replay -P fp32 --weights recorded "$digits" && ! has '^ *[0-9][0-9]*  *1 ' && ! has '^record '; ok $? "--weights recorded"
run 0 replay -P fp32 --weights carry "$digits" && [ "$(grep -c '^ *[0-9][0-9]*  *1  ' "$dir/out")" -eq 6 ]; ok $? "--weights carry"
run 0 replay -P fp32-bf16-fp16 "$digits" && has '^from step 1001' && has '^plan *precision bf16' && has '^plan *precision fp16'
ok $? "a schedule"
for p in apex-O3 bf16-kahan deepseek-v3-fp8 megatron-fp16 nemo-fp8-hybrid-recent te-nvfp4; do
    for t in digits-cnn charlm; do
        run 0 replay -P $p "$top/data/$t" && has '^bytes '; ok $? "$p, $t"
    done
done

# A weight that is not a number is no zero.
run 0 replay -P apex-O3 "$mlp/half" && ! has '^  weights .* 75.34 %'; ok $? "NaN is not counted as zero"

# ---- parts of a trace ----
run 0 replay -P pytorch-amp-fp16 -k wgrad "$digits" && has '^  weight gradients  *25,774'; ok $? "gradients alone"
run 0 replay -P pytorch-amp-fp16 -k act "$digits" && has '^  activations  *236,544 '; ok $? "activations alone"
run 0 replay -P pytorch-amp-fp16 -m '*:fc1*' "$digits" && has '^  weight gradients  *14,560'; ok $? "--match"

# ---- CSV ----
run 0 replay -P "$mlp/autocast.yaml" --csv "$mlp/adam" && rows "$(wc -l <"$dir/out")" 20; ok $? "CSV: a line per step"
[ "$(column step | head -n 24 | tr '\n' ' ')" = "$(seq 1 24 | tr '\n' ' ')" ]; ok $? "CSV: the steps"
[ "$(column scale | head -n 7 | tr '\n' ' ')" = "16777216 8388608 4194304 2097152 1048576 524288 524288 " ]
ok $? "CSV: the scales"
column events | head -n 1 | grep -q '^overflow+skipped+backoff$'; ok $? "CSV: the events"
run 0 replay -P pytorch-amp-fp16 --csv --tensors "$digits" && rows 232 16; ok $? "CSV: a line per tensor"
[ "$(column name | sort -u | wc -l)" -eq 33 ] && [ "$(column format | sort -u | tr '\n' ' ')" = "binary32 fp16 " ]
ok $? "CSV: names and formats"
# NumPy's count of data/counts: fp16 at the scale 65536 loses as many
awk -F'\t' '$1 ~ /step_020000/ && $2 == "agrad:fc2" && $3 == "fp16" && $4 + 0 == 65536 { print $13 }' \
    "$top/data/counts/digits-cnn.tsv" >"$dir/numpy"
grep '^pytorch-amp-fp16,20000,agrad:fc2,' "$dir/out" | cut -d, -f11 | cmp -s - "$dir/numpy"
ok $? "CSV: NumPy's count of underflows ($(cat "$dir/numpy"))"

# ---- JSON lines ----
run 0 replay -P pytorch-amp-fp16 -P bf16-pure --ndjson "$digits" && [ "$(grep -c '^{"policy": "bf16-pure", "step": .*"events": \[\], .*"tensors": \[{"name": ' "$dir/out")" -eq 7 ] &&
    [ "$(wc -l <"$dir/out")" -eq 14 ]; ok $? "NDJSON: a line per step and policy"

# ---- JSON ----
run 0 replay -P pytorch-amp-fp16 -P bf16-pure --json "$digits" && json; ok $? "JSON: it is"
has '"schema": "mpsim.replay/1"' && has '"name": "pytorch-amp-fp16"' && has '"name": "bf16-pure"'; ok $? "JSON: names"
[ "$(grep -o '"step": [0-9]*' "$dir/out" | wc -l)" -eq 14 ]; ok $? "JSON: fourteen steps"
has '"bytes": {"weights": 14728, "master": 0, "gradients": 14728, "state": 14728, "activations": 67584}'
ok $? "JSON: bytes"
run 0 replay -P apex-O3 --json "$mlp/half" && json; ok $? "JSON: with weights that are not finite"
run 0 replay -P nemo-fp8-hybrid-max --json --no-reference "$digits" && json && has '"delayed_scaling": {"margin": 0, "history": 1024, "algorithm": "max"}'; ok $? "JSON: FP8"
run 0 replay -P nemo-fp8-hybrid-recent "$digits/step_000001" && has 'FP8 margin 0, history 1, amax most_recent' && run 0 replay -P bf16-pure --json "$digits/step_000001" &&
    has '"delayed_scaling": null'; ok $? "what decides the scales of delayed scaling"

run 0 replay -P "$dir/own.yaml" --json "$mlp/adam" && json; ok $? "JSON: what differs from the record"
has '"groups": \[{"name": "adam", "variant": "torch-cpu", "lr": 0.003' && has '"equal_to_record": false' &&
    has '"differing": \[{"name": "' && has '"policys_own": "lr 0.003 (recorded 0.002), variant' &&
    has '"lacks": \["parameter groups' && has '"gradients_not_held": {"count": 0, "of": 0, "format": "", "first_in": ""}'
ok $? "JSON: settings, tensors that differ, what is lacking"
# bug_20261123: stochastic rounding loses as many updates in a step as rounding to the nearest, and none in the mean
run 0 replay -P bf16-pure "$MPSIM_SRCDIR/data/digits-cnn" && has '^updates  *80.53 %' && has '^mean  *96.1 % of what binary64 would move' &&
    has 'moved (standard error [0-9.]* %), lost in the mean'
ok $? "what rounding to the nearest loses is lost in the mean"
run 0 replay -P bf16-stochastic "$MPSIM_SRCDIR/data/digits-cnn" && has '^updates  *78.99 %' && has '^mean  *100.8 % of what binary64 would move' &&
    has 'moved (standard error [0-9.]* %), not lost in the mean' && ! has '^ *lost in the mean: '
ok $? "what stochastic rounding loses is not"
run 0 replay -P torchao-adamw8bit "$MPSIM_SRCDIR/data/charlm" && has 'SQNR -22.3 dB' && has '^ *the others: SQNR 31.2 dB'
ok $? "steps of 8-bit moments without those whose v became zero"
run 0 replay -P "$mlp/autocast.yaml" --json "$mlp/adam" && has '"equal_to_record": true, "differing": \[\]' && has '"lacks": \[\]'
ok $? "JSON: equal to the record"
run 0 replay -P fp32 --weights recorded --json "$mlp/adam" && has '"equal_to_record": null'; ok $? "JSON: nothing is compared"

# ---- status lines ----
turns 5 together
run 0 replay -P "$mlp/autocast.yaml" --amp "$mlp/sgd"; ok $? "--amp"
[ "$(grep -c '^\[AMP\] step [0-9]*: scale [0-9]*, growth_tracker [0-9]*, skipped [Yn]$' "$dir/out")" -eq 24 ]
ok $? "--amp: a line per step"
has '^\[AMP\] step 1: scale 8388608, growth_tracker 0, skipped Y' &&
    has '^\[AMP\] step 6: scale 524288, growth_tracker 1, skipped n'
ok $? "--amp: scale after the step, tracker, skipped"
due && "$MPSIM" scaler --amp "$mlp/sgd" >"$dir/amp" 2>/dev/null && cmp -s "$dir/amp" "$dir/out"
ok $? "--amp: the same lines as scaler prints"

# ---- several policies ----
turns 5
run 0 replay -P fp32 -P megatron-fp16 "$digits" && has '^policy ' && has '^fp32 ' && has '^megatron-fp16  *5/7  *2^28 '
ok $? "two policies side by side"
! has '^plan ' && ! has '^step' && has '^megatron-fp16  *7.2 KiB  *14.4 KiB  *7.2 KiB'; ok $? "tables only: losses, bytes"
run 0 replay -P fp32 -P bf16-pure --csv "$digits" && rows 3 20; ok $? "CSV of two policies"
[ "$(column weights | tr '\n' ' ')" = "14728 7364 " ]; ok $? "CSV: bytes of the weights"
# a note of fp8_attention, which has no use here, is on standard error
due && "$MPSIM" replay -P "$top/data/policies" --csv "$digits" >"$dir/out" 2>"$dir/err" &&
    [ "$(wc -l <"$dir/out")" -eq $(($(find "$top/data/policies" -name '*.yaml' | wc -l) + 1)) ]; ok $? "a folder of policies"
column policy | sed 's/$/.yaml/' >"$dir/names"
sort -c "$dir/names" 2>"$dir/err"; ok $? "in the order of their files"

# ---- a file ----
rm -f "$dir/report"
due && "$MPSIM" replay -P fp32 --csv -o "$dir/report" "$digits" >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/out" ] &&
    [ ! -s "$dir/err" ] && [ "$(wc -l <"$dir/report")" -eq 8 ]; ok $? "-o"
rm -f "$dir/none"
run 3 replay -P fp32 -o "$dir/none" "$mlp" && [ ! -e "$dir/none" ]; ok $? "no file after an error"
run 2 replay -P fp32 -o "$digits/step_000001/rank_00000.safetensors" "$digits"; ok $? "the input is not replaced"
run 4 replay -P fp32 -o "$dir/no/such" "$digits"; ok $? "a folder that is not there"

# ---- errors: one line, and the exit code ----
run 2 replay && has 'no --policy or --list given' err; ok $? "no policy"
run 2 replay -P fp32 && has 'no TRACE or --list given' err; ok $? "no trace"
for words in '--json --csv' '--amp --json' '--amp --csv' '--amp --ndjson' '--weights own' '--weights' '--seed x' '--seed -1' '--nosuch' \
    '-k nosuch'; do
    # shellcheck disable=SC2086
    run 2 replay -P fp32 "$digits" $words; ok $? "usage: $words"
done
run 4 replay -P no-such-policy "$digits" && has 'no-such-policy' err; ok $? "no such policy"
run 4 replay -P fp32 "$dir/nothing"; ok $? "no such trace"
run 3 replay -P "$top/lib" "$digits" && has 'no policy' err; ok $? "a folder without policies"
run 3 replay -P fp32 "$top/lib"; ok $? "a folder without tensors"
run 3 replay -P fp32 "$top/README.md"; ok $? "a file without tensors"
run 3 replay -P fp32 "$mlp" && has 'a second time: two runs at once' err; ok $? "two runs at once"
run 3 replay -P fp32 "$top/data/vectors/optim/sgd.safetensors" && has 'step' err; ok $? "no step"
printf 'precision: fp17\n' >"$dir/bad.yaml"
run 3 replay -P "$dir/bad.yaml" "$digits" && has 'bad.yaml: line 1: .*fp17' err; ok $? "a bad policy: file, line, word"
printf 'precision: fp16\nspeed: high\n' >"$dir/bad.yaml"
run 3 replay -P "$dir/bad.yaml" "$digits" && has 'bad.yaml: line 2: .*speed' err; ok $? "a bad policy: unknown key"
head -c 3000 "$digits/step_000120/rank_00000.safetensors" >"$dir/step_000120"
run 3 replay -P fp32 "$dir/step_000120"; ok $? "a file that is cut off"
turns 1
"$MPSIM" replay --help >"$dir/out" 2>"$dir/err" && has '^Usage: mpsim replay' && has '^  -P, --policy' && [ ! -s "$dir/err" ]
ok $? "--help"
[ -z "$(awk 'length > 100' "$dir/out")" ]; ok $? "--help: lines of at most 100 columns"

finish
