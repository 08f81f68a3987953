#!/bin/sh
# train.sh -- mpsim train: its forms of output, options and errors, several policies, traces that the
# other commands read, checkpoints, digests, plans, interrupts.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
OMP_NUM_THREADS=1 # the runs are small
export OMP_NUM_THREADS
small='--width 12 --depth 1 --batch 16 --steps 10 --every 10'

# json: the output is one JSON value (as Python says, or at least by its brackets)
json() {
    if command -v python3 >/dev/null; then
        python3 -c 'import json, sys; json.load(open(sys.argv[1]), parse_constant=sys.exit)' "$dir/out"
    else
        [ "$(tr -cd '[{' <"$dir/out" | wc -c)" -eq "$(tr -cd ']}' <"$dir/out" | wc -c)" ]
    fi
}

# rows N COLUMNS: N lines of as many cells, the header included
rows() { [ "$(wc -l <"$dir/out")" -eq "$1" ] && awk -F, -v n="$2" 'NF != n { exit 1 }' "$dir/out"; }

# column NAME: its cells, one per line
column() {
    awk -F, -v c="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) k = i; next } { print $k }' "$dir/out"
}

# train CODE ARGUMENT...: a small run
train() {
    code=$1
    shift
    # shellcheck disable=SC2086
    run "$code" train $small "$@"
}

# ---- text ----
train 0 -P pytorch-amp-fp16 --every 1; ok $? "a run"
has '^network  *fc1 64 to 12, relu1, head 12 to 10, loss$' && has '^parameters 910$'; ok $? "text: the network"
has '^policy  *pytorch-amp-fp16$' && has '^plan  *precision fp16: compute fp16' && has '^optimizer  sgd, lr 0.1, momentum 0.9'
ok $? "text: the policy"
has '^products  *hopper, fp16 x fp16: hopper-fp16-fp32$' && has '^run  *10 steps of 16 images, seed 0$'; ok $? "text: the products, the run"
[ "$(awk '/^step / { on = 1; next } /^loss/ { exit } on { printf "%s ", $1 }' "$dir/out")" = "1 2 3 4 5 6 7 8 9 10 " ]
ok $? "text: a row per step"
has '^loss  *[0-9.]* at step 1, [0-9.]* at the end' && has '^accuracy  *[0-9.]* % of the 360' && has '^scaler  *10 steps: 0 skipped' &&
    has '^bytes  *weights 3.6 KiB, master 0 B' && has '^speed  *of the emulator: '
ok $? "text: the summary"
awk 'length > 100 { exit 1 }' "$dir/out"; ok $? "text: lines of at most 100 columns"
grep -v '^speed' "$dir/out" >"$dir/want"
train 0 -P pytorch-amp-fp16 --every 1 --threads 3 && grep -v '^speed' "$dir/out" | cmp -s - "$dir/want"; ok $? "the same bytes on three threads"
turns 8
train 0 -P pytorch-amp-fp16 --every 5 && [ "$(grep -c '^ *[0-9][0-9]*  *[0-9.]*  *[0-9.]* %' "$dir/out")" -eq 3 ]; ok $? "--every"
run 0 train -P pytorch-amp-fp16 --width 4 --depth 1 --batch 4 --steps 40 --csv && [ "$(column test_loss | grep -c .)" -eq 11 ]
ok $? "ten evaluations, and one after the first step, by default"
train 0 -P pytorch-amp-fp16 --loss-scaling torch:init=2^22 && has '^skipped  *first at step 1: Inf or NaN in [a-z]' &&
    has '^scaler  *10 steps: [1-9][0-9]* skipped' && ! has 'scaler none'
ok $? "skipped steps and their cause"
train 0 -P fp32 --arch exact && has '^products  *exact, binary32 x binary32: exact$'; ok $? "--arch: a model"
train 0 -P fp32 --tf32 && has '^products  *hopper with tf32, .*tf32'; ok $? "--tf32"
train 0 -P fp32 --arch fp32-sequential && has 'binary32 x binary32: sequential'; ok $? "--arch fp32-sequential"
train 0 -P nemo-fp8-hybrid-max && has 'e4m3 x e4m3: hopper-' && has 'e5m2 x e4m3: hopper-'; ok $? "products in FP8"
train 0 -P fp32 --math fp16 --loss-factor 0.25 --gain 2 && has 'softmax and normalisation in fp16, loss times 0.25, gain 2'
ok $? "--math, --loss-factor, --gain"
train 0 -P fp32 --optimizer adamw --lr 0.01 --weight-decay 0.1 --beta1 0.8 --variant torch && has '^variant  *torch, ' &&
    has '^optimizer  adamw, lr 0.01, betas 0.8 0.999, eps 1e-08, weight decay 0.1$'
ok $? "--optimizer and its settings"
train 0 -P fp32 --clip 0.01 && has 'clip 0.01 (torch)' && has '^clipped  *10 of 10 steps'; ok $? "--clip"
train 0 -P fp32 --clip megatron:0.01 && has 'clip 0.01 (megatron)'; ok $? "--clip with a rule"
train 0 -P megatron-bf16 --clip none && ! has 'clip '; ok $? "--clip none"
train 0 -P fp32 --net cnn --width 2 && has '^network  *conv1 1 to 2, bn1, relu1, pool1, flatten, head 32 to 10, loss$'; ok $? "--net cnn"
train 0 -P fp32 --net cnn --width 2 --no-batchnorm && ! has bn1; ok $? "--no-batchnorm"
train 0 -P fp32 --batchnorm && has 'fc1 64 to 12, bn1, relu1'; ok $? "--batchnorm"
printf 'precision: fp16\nautocast: all\nparams: fp16\nmaster_weights: true\nloss_scaling: deepspeed-static:2^40\noptimizer: {name: trace, variant: apex}\n' >"$dir/static.yaml"
run 0 train -P "$dir/static.yaml" --width 4 --depth 1 --batch 4 --steps 2 --csv && [ "$(column events | grep -c "^overflow+skipped$")" -eq 2 ] && [ "$(column scale | sort -u)" = 1099511627776 ]
ok $? "DeepSpeed's constant scale skips every step and stays"
run 0 train --help && has '^Usage: mpsim train' && has '--resume FILE' && has '^Examples:'; ok $? "--help"

# ---- JSON, CSV ----
turns 8 together
train 0 -P pytorch-amp-fp16 --json && json; ok $? "JSON: it is"
grep -q '"lost": [0-9]*, "multiply_adds": [1-9]' "$dir/out"; ok $? "JSON: products are counted"
has '"schema": "mpsim.train/1"' && has '"name": "pytorch-amp-fp16"' && [ "$(grep -c '^{"step": ' "$dir/out")" -eq 10 ]
ok $? "JSON: schema, policy, steps"
cp "$dir/out" "$dir/want"
train 0 -P pytorch-amp-fp16 --json --threads 2 && cmp -s "$dir/out" "$dir/want"; ok $? "JSON: the same bytes again"
train 0 -P fp16-unscaled --json --lr 1e6 && json && has '"status": "diverged (NaN from step '; ok $? "JSON: NaN"
train 0 -P pytorch-amp-fp16 --csv && rows 11 25; ok $? "CSV: a line per step"
[ "$(column step | tr '\n' ' ')" = "$(seq 1 10 | tr '\n' ' ')" ] && [ "$(column scale | sort -u)" = 65536 ]; ok $? "CSV: steps, scales"
train 0 -P fp32 -P pytorch-amp-fp16 --ndjson && [ "$(wc -l <"$dir/out")" -eq 20 ] && [ "$(grep -c '^{"policy": "pytorch-amp-fp16", "step": [0-9]*, .*}$' "$dir/out")" -eq 10 ]
ok $? "NDJSON: a line per step of each policy"
train 0 -P fp32 -P bf16-pure --json && json && [ "$(grep -c '"policy": ' "$dir/out")" -eq 2 ]; ok $? "JSON: two policies"

# ---- clipped before unscaling: the loss stays where it began, and a replay of the recording is the same to the bit
turns 4
printf 'precision: fp16\nloss_scaling: 1024\nclip: {max_norm: 0.5, before_unscale: true}\noptimizer: {name: sgd}\n' >"$dir/scaled.yaml"
run 0 train -q -P "$dir/scaled.yaml" --net mlp --width 12 --depth 1 --batch 16 --steps 12 --threads 1 --trace "$dir/scaled" --trace-every 1 &&
    has 'clip 0.5 (torch, before unscaling)' && has '^clipped  *12 of 12' && run 0 replay -P "$dir/scaled.yaml" "$dir/scaled" && has '^record  *0 of '
ok $? "before_unscale: trained and replayed"
turns 1

# ---- several policies ----
turns 8
train 0 -P fp32 -P pytorch-amp-fp16 -P apex-O2 && ! has '^plan ' && ! has '^step'; ok $? "three policies: tables only"
[ "$(grep -c '^apex-O2 ' "$dir/out")" -eq 3 ] && has '^apex-O2  *1.8 KiB  *3.6 KiB  *1.8 KiB  *3.6 KiB'; ok $? "losses, what is lost, bytes"
awk 'length > 100 { exit 1 }' "$dir/out"; ok $? "tables of at most 100 columns"
train 0 -P fp32 --compare && [ "$(grep -c '^fp32 ' "$dir/out")" -eq 3 ]; ok $? "--compare with one"
train 0 -P fp32 -P pytorch-amp-fp16 --csv && rows 3 31 && [ "$(column policy | tr '\n' ' ')" = "fp32 pytorch-amp-fp16 " ]
ok $? "CSV: a line per policy"
run 0 train --compare --csv --width 4 --depth 1 --batch 8 --steps 1 && [ "$(wc -l <"$dir/out")" -eq 18 ]; ok $? "--compare: a row per policy"
for p in fp32 fp16-unscaled fp16-static pytorch-amp-fp16 keras-mixed-float16 deepspeed-fp16 megatron-fp16 apex-O3 bf16-pure \
    bf16-stochastic bf16-kahan nemo-fp8-hybrid-max te-mxfp8; do
    column policy | grep -q "^$p\$"; ok $? "--compare: $p"
done
train 0 -P fp32 -P megatron-fp16 --csv && [ "$(column clip | sort -u)" = none ]; ok $? "side by side: no clip, for all"
train 0 -P fp32 -P megatron-fp16 && has '^megatron-fp16 .* none$' && has '^clip: .*the same for all'; ok $? "side by side: the column says it"
train 0 -P fp32 -P megatron-fp16 --clip apex:0.01 --csv && [ "$(column clip | sort -u)" = '0.01 (apex)' ]; ok $? "side by side: --clip, for all"
train 0 -P fp32 -P megatron-fp16 --as-published --csv && [ "$(column clip | tr '\n' ' ')" = 'none 1 (megatron) ' ]; ok $? "--as-published"
train 0 -P fp32 -P megatron-fp16 --json && [ "$(grep -c '"clip": "none"' "$dir/out")" -eq 2 ]; ok $? "JSON: the clip of a run"
train 0 -P megatron-fp16 && has 'clip 1 (megatron)'; ok $? "a policy alone is as published"
run 0 train --compare --csv --width 4 --depth 1 --batch 8 --steps 1 && [ "$(column clip | sort -u)" = none ]; ok $? "--compare: no clip, for all"
run 0 train --compare --as-published --csv --width 4 --depth 1 --batch 8 --steps 1 && [ "$(column clip | sort -u | wc -l)" -eq 3 ]
ok $? "--compare --as-published: three clips"
train 2 -P fp32 --as-published && train 2 -P fp32 -P apex-O2 --as-published --clip 1 && train 2 --as-published --run x; ok $? "--as-published: of several, without --clip"
due && "$MPSIM" train $small -P fp32 -P pytorch-amp-fp16 -P bf16-pure --loss-scaling static:64 --csv >"$dir/out" 2>"$dir/err"
[ "$(column final_scale | tr '\n' ' ')" = '1 64 1 ' ] && has 'note: --loss-scaling: .*: fp32, bf16-pure$' err && [ "$(wc -l <"$dir/err")" -eq 1 ]
ok $? "--loss-scaling: where there is a scale, and says where there is none"
train 0 -P pytorch-amp-fp16 --loss-scaling none --csv && [ "$(column scale | sort -u)" = 1 ]; ok $? "--loss-scaling none"
train 0 -P fp32 -P fp16-unscaled --lr 1e6 && has 'diverged (NaN from step '; ok $? "what became of a run"
mkdir "$dir/mine"
printf 'precision: bf16\n' >"$dir/mine/b.yaml"
printf 'precision: fp16\n' >"$dir/mine/a.yaml"
train 0 -P "$dir/mine" && [ "$(grep '^[ab]  ' "$dir/out" | cut -c1 | tr -d '\n')" = ababab ]; ok $? "a folder of policies"
for file in "$MPSIM_POLICIES"/*.yaml; do
    run 0 train -P "$file" --width 4 --depth 1 --batch 4 --steps 2 --arch exact; ok $? "bundled: ${file##*/}"
done

# ---- traces ----
turns 1
train 0 -P pytorch-amp-fp16 --trace "$dir/trace" --trace-every 1 && [ "$(find "$dir/trace" -name '*.safetensors' | wc -l)" -eq 11 ]
ok $? "--trace: ten steps and the weights after them"
turns 8
run 0 info "$dir/trace/step_000003" && has '^  act:fc1 *F16 ' && has '^  weight:fc1.weight *F32 .*\[12, 64\]'; ok $? "info reads it"
run 0 stat -k wgrad -f e5m2 "$dir/trace" && has '^ *wgrad *40 '; ok $? "stat reads it"
run 0 replay -P pytorch-amp-fp16 "$dir/trace" && has '^record *0 of 18,200 carried'; ok $? "replay gives the same weights"
run 0 scaler "$dir/trace" && has 'torch.amp.GradScaler, CUDA'; ok $? "scaler reads it"
if gnuplot --version >/dev/null 2>&1; then
    due && "$MPSIM" stat --json -f fp16,e4m3 -o "$dir/stat.json" "$dir/trace" &&
        "$MPSIM" plot ruler --type svg -o "$dir/ruler" "$dir/stat.json" >"$dir/out" 2>"$dir/err" &&
        [ -s "$dir/ruler.svg" ]
    ok $? "stat and plot read it"
fi
train 2 -P pytorch-amp-fp16 --trace "$dir/trace" && has 'holds steps' err; ok $? "a trace is not mixed with another"
train 0 -P fp32 --trace "$dir/some" --trace-steps 2,5-6 && [ "$(cd "$dir/some" && echo *)" = "step_000002 step_000005 step_000006" ]
ok $? "--trace-steps"
train 0 -P fp32 --trace "$dir/ten" --steps 40 && [ -d "$dir/ten/step_000041" ] && [ "$(find "$dir/ten" -name '*.safetensors' | wc -l)" -eq 12 ]
ok $? "--trace: ten steps of a run by default"
train 0 -P fp32 -P apex-O2 --trace "$dir/two" && [ "$(cd "$dir/two" && echo *)" = "apex-O2 fp32" ] &&
    run 0 replay -P apex-O2 "$dir/two/apex-O2" && has '^record *0 of 27,300 carried'
ok $? "--trace: a folder per policy"
train 2 -P fp32 --tf32 --arch volta && has 'volta' err; ok $? "an architecture without tf32"
train 4 -P fp32 --trace "$dir/none/trace"; ok $? "a trace that cannot be written"
train 2 -P fp32 --trace "$dir/bad" --trace-steps 3-; ok $? "--trace-steps: no list"
train 2 -P fp32 --trace "$dir/bad" --trace-steps 5-99 && has 'the run has 10 steps' err; ok $? "--trace-steps: beyond the end"

# ---- digests ----
turns 1
train 0 -P pytorch-amp-fp16 --loss-scaling torch:init=2^22 --digests "$dir/digests" --digests-tensors &&
    [ "$(grep -c '^[0-9]* [0-9a-f]\{8\} [0-9a-f]\{16\}$' "$dir/digests")" -eq 10 ] && grep -q '^  wgrad:fc1.weight [0-9a-f]\{16\}$' "$dir/digests"
ok $? "--digests: a line per step, and per tensor"
turns 8
again='-P pytorch-amp-fp16 --loss-scaling torch:init=2^22'
# shellcheck disable=SC2086
train 0 $again --check-digests "$dir/digests" && has "^digests  *equal to .* in 10 steps"; ok $? "--check-digests: equal"
# shellcheck disable=SC2086
train 0 $again --steps 20 --check-digests "$dir/digests" && has "in 10 steps"; ok $? "--check-digests: of the steps that are there"
# shellcheck disable=SC2086
train 0 $again --digests "$dir/blocks" --digests-blocks --digests-tensors && grep -q '^# mpsim-train-digests/3$' "$dir/blocks" &&
    ! grep -q "$(sed -n '/^2 /s/.* //p' "$dir/digests")" "$dir/blocks" && train 0 $again --check-digests "$dir/blocks" && has 'in 10 steps'
ok $? "--digests-blocks: other digests, which --check-digests knows by the file"
# shellcheck disable=SC2086
train 2 $again --check-digests "$dir/blocks" --digests "$dir/none" && has 'has digests by blocks: add --digests-blocks$' err &&
    train 2 $again --check-digests "$dir/digests" --digests "$dir/none" --digests-blocks && has 'has digests of codes: omit --digests-blocks$' err
ok $? "--digests-blocks: one kind of digests in a run"
# with_end: standard input with the last line that is due, as the message about a wrong one says it
with_end() {
    sed '/^# end /d' >"$dir/body"
    { cat "$dir/body"; echo '# end 0000000000000000'; } >"$dir/unfinished"
    train 3 -P fp32 --check-digests "$dir/unfinished"
    cat "$dir/body"
    sed -n 's/.*what is above has digest \([0-9a-f]*\), not.*/# end \1/p' "$dir/err"
}
sed '/^4 /,$s/^  out:head .*/  out:head 0123456789abcdef/' "$dir/digests" >"$dir/tampered"
# shellcheck disable=SC2086
train 3 $again --check-digests "$dir/tampered" && has "^mpsim: $dir/tampered: line [0-9]*: what is above has digest " err
ok $? "--check-digests: a tampered file"
with_end <"$dir/tampered" >"$dir/other"
# shellcheck disable=SC2086
train 1 $again --quiet --check-digests "$dir/other" && has 'differ from .*: step 4, tensor out:head: digest .*, there 0123456789abcdef$' &&
    has '^status *digests differ at step 4$'
ok $? "--check-digests: the first tensor that differs"
sed '/^  /d; s/^6 \(........\) .*/6 \1 0123456789abcdef/' "$dir/digests" | with_end >"$dir/other"
# shellcheck disable=SC2086
train 1 $again --quiet --check-digests "$dir/other" && has 'differ from .*: step 6: digest '; ok $? "--check-digests: the first step that differs"
# shellcheck disable=SC2086
train 3 $again --seed 1 --check-digests "$dir/digests" && has 'another run: seed 0, not 1' err; ok $? "--check-digests: of another run"
printf 'x\n' >"$dir/other"
# shellcheck disable=SC2086
train 3 $again --check-digests "$dir/other" && has 'line 1: not a file of digests' err; ok $? "--check-digests: no such file format"
for edit in '/^5 /d' '/^5 /p' '/^5 /{h;d};/^6 /G' '$d'; do
    sed "$edit" "$dir/digests" >"$dir/tampered"
    # shellcheck disable=SC2086
    train 3 $again --check-digests "$dir/tampered"; ok $? "--check-digests: edited by $edit"
done
sed '$d' "$dir/digests" >"$dir/other"
# shellcheck disable=SC2086
train 3 $again --check-digests "$dir/other" && has 'cut off' err; ok $? "--check-digests: without its last line"
{ grep '^#' "$dir/digests"; echo '1 12 34'; } | grep -v '^# end' >"$dir/other"
# shellcheck disable=SC2086
train 3 $again --check-digests "$dir/other" && has 'line [0-9]*: not ' err; ok $? "--check-digests: a bad line"
grep '^#' "$dir/digests" | with_end >"$dir/other"
# shellcheck disable=SC2086
due && "$MPSIM" train $small $again --check-digests "$dir/other" >"$dir/out" 2>"$dir/err"
[ $? -eq 3 ] && has 'it holds no step of this run' err; ok $? "--check-digests: no steps"
train 3 -P fp32 --check-digests /dev/zero && has 'is a character device' err; ok $? "--check-digests: a device"

# ---- checkpoints ----
turns 1
# shellcheck disable=SC2086
train 0 $again --steps 6 --checkpoint "$dir/point" && run 0 info "$dir/point" && has '^  opt.m:fc1.weight'; ok $? "--checkpoint"
turns 8
# shellcheck disable=SC2086
train 0 $again --resume "$dir/point" --check-digests "$dir/digests" && has 'in 4 steps' && has 'resumed from'; ok $? "--resume: the same digests"
# shellcheck disable=SC2086
train 0 $again --trace "$dir/whole" --trace-steps 8 && train 0 $again --resume "$dir/point" --trace "$dir/part" --trace-steps 8 &&
    cmp "$dir/whole/step_000008/rank_00000.safetensors" "$dir/part/step_000008/rank_00000.safetensors" >"$dir/out"
ok $? "--resume: the same trace"
run 0 train --resume "$dir/point" --steps 10 --check-digests "$dir/digests" && has 'in 4 steps'; ok $? "--resume without a policy"
# shellcheck disable=SC2086
train 3 $again --lr 0.2 --resume "$dir/point" && has 'another run: optimizer lr=' err; ok $? "--resume: another run"
run 0 train -P te-nvfp4 --width 32 --steps 2 --quiet --checkpoint "$dir/nvfp4" -o "$dir/out" &&
    run 3 train -P te-nvfp4-without-rht --width 32 --steps 4 --quiet --resume "$dir/nvfp4" -o "$dir/out" &&
    has 'another run: layer fc1 hadamard=16, not nothing more$' err
ok $? "--resume: a line that goes on where the other ends"
train 3 -P fp32 --resume "$dir/point" && has 'another run: precision fp16, not no$' err; ok $? "--resume: another policy"
# shellcheck disable=SC2086
train 2 $again --steps 6 --resume "$dir/point" && has 'has done 6 steps' err; ok $? "--resume: nothing left to do"
for size in 0 8 1000 3000 9000; do
    head -c $size "$dir/point" >"$dir/cut"
    # shellcheck disable=SC2086
    train 3 $again --resume "$dir/cut"; ok $? "--resume: the first $size bytes"
done
run 3 train --resume "$dir/trace/step_000003/rank_00000.safetensors" && has 'not a checkpoint' err; ok $? "--resume: a trace"
run 4 train --resume "$dir/none"; ok $? "--resume: no file"
run 2 train --resume "$dir/point" --steps 12 --lr 0.2 && has 'resume does not go with --lr: their files describe the whole run' err; ok $? "--resume: an option of the run, without a policy"
cp "$dir/point" "$dir/kept"
for o in output digests write-run; do
    train 2 $again --resume "$dir/point" "--$o" "$dir/point" && cmp -s "$dir/point" "$dir/kept"; ok $? "--resume: --$o does not replace it"
done
run 0 train --resume "$dir/kept" --steps 12 --checkpoint "$dir/kept" && run 0 info "$dir/kept" && has 'step 12$'
ok $? "--resume: a checkpoint may go on in its file"
# shellcheck disable=SC2086
train 0 $again --checkpoint "$dir/every" --checkpoint-every 4 && run 0 info "$dir/every" && has 'step 10$'; ok $? "--checkpoint-every"
train 4 -P fp32 --checkpoint "$dir/none/point"; ok $? "a checkpoint that cannot be written"
train 4 -P fp32 --checkpoint /dev/full && has '/dev/full: cannot write: ' err; ok $? "a full device"
# whoever reads it: a bit of a tensor, and one of what it says of the run
for at in "$(($(wc -c <"$dir/kept") - 20))" "$(grep -abo 'mpsim.optimizer_steps' "$dir/kept" | head -n 1 | cut -d: -f1)"; do
    cp "$dir/kept" "$dir/flipped" && printf '\001' | dd of="$dir/flipped" bs=1 seek="$at" conv=notrunc 2>/dev/null
    refused() { run 3 "$@" "$dir/flipped" && has '^mpsim: .*flipped: ' err && [ ! -e "$dir/cast" ]; }
    refused info && refused info -v && refused stat --json && refused diff "$dir/kept" && refused cast -f fp16 -o "$dir/cast"
    ok $? "info, stat, diff, cast: a checkpoint in which byte $at is another"
done
# the earlier checkpoint stays if the next one finds no room (a file of at most 8 or 4 KiB)
run 0 train -P fp32 --width 4 --depth 1 --batch 4 --steps 2 --checkpoint "$dir/early" && cp "$dir/early" "$dir/kept" && (
    ulimit -f 4
    run 4 train -P fp32 --width 64 --depth 1 --batch 4 --steps 2 --checkpoint "$dir/early" && has '/early: cannot write: ' err
) && cmp -s "$dir/early" "$dir/kept" && [ -z "$(find "$dir" -name '*.tmp')" ]
ok $? "no room: the earlier checkpoint stays, and nothing temporary"

# ---- runs as text ----
turns 1
# shellcheck disable=SC2086
train 0 $again --write-run "$dir/run.txt" && [ ! -s "$dir/out" ] && grep -q '^mpsim-run/1$' "$dir/run.txt"; ok $? "--write-run"
turns 8
run 0 train --run "$dir/run.txt" --check-digests "$dir/digests" && has 'in 10 steps'; ok $? "--run: the same digests"
run 2 train --run "$dir/run.txt" --steps 5 && has 'whole run' err; ok $? "--run and an option of the run"
run 2 train --run "$dir/run.txt" -P fp32; ok $? "--run and a policy"
sed 's/^steps .*/steps 0/' "$dir/run.txt" >"$dir/other"
run 3 train --run "$dir/other" && has 'steps must be at least 1, not 0' err; ok $? "--run: no steps"
sed 's/^batch 16/batch 0/' "$dir/run.txt" >"$dir/other"
run 3 train --run "$dir/other" && has "^mpsim: $dir/other: " err; ok $? "--run: a bad one"
run 4 train --run "$dir/none"; ok $? "--run: no file"

# ---- interrupts ----
if timeout --foreground 1 true 2>/dev/null; then
    for row in INT:130 TERM:143 HUP:129; do
        turns 8 together
        rm -f "$dir/stopped"
        signalled "${row%:*}" 0.5 "has 'interrupted at step [1-9]'" train -P fp32 --width 200 --steps 1000000 --every 1000000 \
            --checkpoint "$dir/stopped"
        [ $? -eq "${row#*:}" ] && [ ! -s "$dir/err" ] && has '^status *interrupted at step [0-9]'; ok $? "SIG${row%:*}: what there is, ${row#*:}"
        run 0 info "$dir/stopped" && has ' step [1-9]'; ok $? "SIG${row%:*}: the checkpoint is saved"
    done
    # in a step of seconds, after normalisation and scales have changed: the state before it
    turns 8 together
    long='-P nemo-fp8-hybrid-max --net cnn --width 64 --depth 3 --batch 200 --batchnorm --arch exact'
    rm -f "$dir/stopped"
    # shellcheck disable=SC2086
    signalled TERM 0.8 "has 'interrupted at step'" train $long --steps 1000 --checkpoint "$dir/stopped"
    [ $? -eq 143 ] && [ ! -s "$dir/err" ] && has '^status *interrupted at step [0-9]' && run 0 info "$dir/stopped"; ok $? "SIGTERM: in a long step"
    if has ' step 0$'; then # a machine of today
        # shellcheck disable=SC2086
        run 0 train $long --steps 1 --digests "$dir/digests" && run 0 train --resume "$dir/stopped" --steps 1 --check-digests "$dir/digests" &&
            has '^digests  *equal to .* in 1 step'
        ok $? "SIGTERM: a step that was given up is done again, to the same bits"
    fi
fi

# ---- a file, errors ----
turns 8
train 0 -P fp32 --csv -o "$dir/report" && [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/report")" -eq 11 ]; ok $? "-o"
train 4 -P fp32 -o "$dir/none/report"; ok $? "-o: a folder that is not there"
train 2 && has 'no --policy, --compare, --run or --resume given' err; ok $? "no policy"
train 4 -P no-such-policy && has '^mpsim: no-such-policy: ' err; ok $? "no bundled policy of that name"
train 2 -P fp32 --arch hoper && has "arch 'hoper'" err && has hopper err; ok $? "no such architecture"
train 3 -P bf16-pure --arch volta && has 'bf16' err; ok $? "an architecture without these products"
train 2 -P fp32 --net rnn && train 2 -P fp32 --depth 99 && train 2 -P fp32 --batch 0 && train 2 -P fp32 --batch 2000
ok $? "no such network"
train 2 -P fp32 --lr x && train 2 -P fp32 --steps 0 && train 2 -P fp32 --momentum 2 && train 2 -P fp32 --gain inf; ok $? "bad numbers"
train 2 -P fp32 --optimizer sdg && train 2 -P fp32 --variant none && train 2 -P fp32 --loss-scaling none:init=x &&
    train 2 -P fp32 --clip foo:1 && train 2 -P fp32 --clip none:1 && train 2 -P fp32 --clip x && train 2 -P fp32 --math fp61
ok $? "bad names"
train 2 -P fp32 --json --csv && train 2 -P fp32 extra && train 2 -P fp32 --batchnorm --no-batchnorm; ok $? "what excludes each other"
train 2 -P fp32 --trace-every 2 && train 2 -P fp32 --checkpoint-every 2 && train 2 -P fp32 --digests-tensors; ok $? "what goes with another option"
for o in checkpoint resume digests check-digests write-run; do
    train 2 -P fp32 -P apex-O1 "--$o" "$dir/x" && has "more than 1 --policy does not go with --$o: these options need a single policy" err && [ ! -e "$dir/x" ]; ok $? "--$o and two policies"
done
for o in output checkpoint trace digests check-digests; do
    train 2 -P fp32 --write-run "$dir/x" "--$o" "$dir/y" && has "write-run does not go with --$o: nothing is trained" err && [ ! -e "$dir/x" ]; ok $? "--write-run and --$o"
done
train 2 -P fp32 -P fp32 --trace "$dir/x" && has "two policies are called 'fp32'" err && [ ! -e "$dir/x" ]; ok $? "--trace: one name twice"
cp "$MPSIM_POLICIES/fp32.yaml" "$dir/mine.yaml"
for o in output digests checkpoint write-run; do
    train 2 -P "$dir/mine.yaml" "--$o" "$dir/mine.yaml" && cmp -s "$MPSIM_POLICIES/fp32.yaml" "$dir/mine.yaml"; ok $? "an input is not replaced: --$o"
done
train 2 -P fp32 -o "$dir/twice" --digests "$dir/twice" && [ ! -e "$dir/twice" ]; ok $? "two outputs are not one file"
train 2 -P fp32 --digests - && train 2 -P fp32 --digests - -o - && train 0 -P fp32 --digests - -o "$dir/report" && has '^# mpsim-train-digests'
ok $? "two outputs are not both standard output"
printf 'clipp: 1\n' >"$dir/bad.yaml"
train 3 -P "$dir/bad.yaml" && has "^mpsim: $dir/bad.yaml: line 1: unknown key" err; ok $? "a bad policy"
train 2 -P fp32 --device tpu && has 'is not one of cpu, cuda' err; ok $? "--device: an unknown one"
train 0 -P fp32 --device cpu; ok $? "--device cpu"
turns 1
"$MPSIM" train $small -P fp32 --variant ieee --device cuda --digests "$dir/device" >"$dir/out" 2>"$dir/err"
case $? in # a device; built without CUDA; no device
0) train 0 -P fp32 --variant ieee --check-digests "$dir/device" ;;
2) has 'built without CUDA' err ;;
4) has '^mpsim: train: --device: ' err && [ "$(wc -l <"$dir/err")" -eq 1 ] ;;
*) false ;;
esac
ok $? "--device cuda: the same bits, or a line that says why not"
finish
