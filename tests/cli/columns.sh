#!/bin/sh
# columns.sh -- screens on a terminal: every line fits 80 columns, whatever the command; other widths; files and pipes are as wide as ever.
# Every day runs what is quick, and a part of the rest.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
build=${MPSIM%/*}
pty=$build/tests/support/pty
unset COLUMNS
if [ ! -x "$pty" ] || { "$pty" 80 true; [ $? -eq 77 ]; }; then
    echo "1..0 # SKIP no terminal can be made here"
    exit 0
fi
cd "$top" || exit 99
data=data/digits-cnn lm=data/charlm

# too_wide COLUMNS: lines of the output that are wider, in characters of UTF-8
too_wide() { awk -v most="$1" '{ line = $0; gsub(/[\200-\277]/, "", line) } length(line) > most' "$dir/out"; }

# screen COLUMNS ARGUMENT...: the command ends well on a terminal, and its lines fit; exit code 1 is a verdict
screen() {
    due || return 1
    columns=$1
    shift
    "$pty" "$columns" "$MPSIM" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -le 1 ] && [ -s "$dir/out" ] && too_wide "$columns" >"$dir/err" && [ ! -s "$dir/err" ]
}

# screens NAME: a case of the commands of standard input, a line each in words of the shell
screens() {
    bad='' name=$1
    while read -r words; do
        eval "set -- $words"
        due || break
        screen 80 "$@" || bad="$bad
# mpsim $words: $(head -n 1 "$dir/err")"
    done
    [ ! "$bad" ]; ok $? "$name$bad"
}

# ---- every day ----
screens 'lists of formats, presets, recipes, models, policies, scalers, messages' <<'END'
help presets
help rounding
help recipes
help models
help policies
help scalers
help messages
formats
formats fp16 bf16 e4m3 e5m2
formats --check 465 e4m3 e4m3@cuda
formats --positions 8192 bf16 fp16 binary32
verify --list
END
screens 'files and statistics' <<'END'
info $data/step_020000
info data/names/checkpoint-10.safetensors
info --scales tests/trace/quantised/modelopt.safetensors
stat $data/step_020000
stat -t $data/step_020000
stat -f fp16 -s 1,2^10 -k agrad $data/step_020000
stat -f nvfp4:2d,e4m3/128x128:ue8m0 --axis both --rht 16 -k agrad $lm/step_000100
diff $data/step_020000 $data/step_019999
cast -f e4m3@cuda -s 2^10 -k wgrad -o "$dir/a.safetensors" $data/step_020000/rank_00000.safetensors
cast -f mxfp8:rceil -k weight -o "$dir/b.safetensors" $data/step_020000/rank_00000.safetensors
cast --explain 0.1,-3,6,0.02 -f mxfp8
cast --explain 0.1,465 -f e4m3@cuda
END
screens 'replays, scalers, logs' <<'END'
replay --policy pytorch-amp-fp16 $data
replay --policy data/amp-mlp/autocast.yaml data/amp-mlp/adam
replay -P pytorch-amp-fp16 -P apex-O3 -P megatron-bf16 -P nemo-fp8-hybrid-recent -P bf16-pure $data
scaler $data
scaler --adaptive $data
scaler $data --compare torch,apex,megatron,keras
scaler --log data/logs/10-apex-one-line.log
log tests/logs/ranks.txt
log tests/logs/runs/bf16-seed1.txt tests/logs/runs/fp8-seed1.txt
log tests/logs/written/nemorl-tensorboard-mismatch.txt
explain 'ValueError: Attempting to unscale FP16 gradients.'
END
screens 'numbers, kernels, memory, training' <<'END'
calc exp 11.1 -f fp16,bf16,binary64
dot
dot -f fp16 --a 1,3,0.25 --b 1,-2,0x1p-14 --c 0x1p-24 -M hopper-fp16-fp32 --steps
attention --tokens 32 --heads 1
judge product --role a=act:fc2 --role b=weight:fc2.weight --role d=out:fc2 --role bias=weight:fc2.bias $data/step_020000/rank_00000.safetensors
mismatch -a hopper-bf16-fp32,logits=bf16 -b fma --count 20 --vocabulary 90 --size 64
memory --params 7B -P pytorch-amp-bf16
memory --params 7.5e9 -P deepspeed-fp16 --ranks 64 --zero 2
memory --params 7B -P fp32 -P pytorch-amp-bf16 -P megatron-bf16 -P te-mxfp8 -P bf16-kahan
train -P pytorch-amp-fp16 --width 32 --steps 3
train -P pytorch-amp-fp16 -P fp32 -P te-mxfp8 -P bf16-pure --width 32 --steps 2
END

# ---- by turns ----
turns 5
screens 'advice' <<'END'
advise $data
advise --hold-back 2 $lm
advise -q --tensors -m '*:fc2' $data
END
screens 'whole traces' <<'END'
info $lm
info -v tests/trace/torch/torch-2.6.0/train.zip.pt
stat $lm
stat -t $lm
replay -P muon-bf16 $lm
replay -P torchao-adamw8bit $lm
diff data/amp-mlp/adam data/amp-mlp/adamw
diff -k opt.m data/amp-mlp/adam data/amp-mlp/sgd
END
screens 'dot products and attention' <<'END'
dot -f e4m3 --values relu -K 4096 -M 'exact,fma,hopper-*'
dot -f bf16 -K 1024 -M fma,hopper-bf16-fp32 --split-k 6 --workspace bf16 --absolute
dot --blocks mxfp8 --values relu -K 1024 -M exact,hopper-bf16-fp32,rtx-blackwell-mxf8f6f4
dot --reduce --a 'wgrad:*' data/amp-mlp/adam/step_000006/rank_00000.safetensors data/amp-mlp/adam/step_000007/rank_00000.safetensors
attention --values repeated -M exact,hopper-bf16-fp32:result=bf16 --tokens 128 --heads 1 --cure 2
END
screens 'trainings of decoders and convolutions' <<'END'
train -P pytorch-amp-fp16 --net cnn --steps 2 --batch 4
train --net gpt -P fp32 --width 32 --depth 2 --context 16 --batch 8 --steps 3
train --net llama -P te-nvfp4 -P fp32 --width 64 --depth 1 --context 16 --batch 4 --steps 2
END
screens 'training logs and scalers' <<'END'
log tests/logs/resume.txt
log tests/logs/runs/bf16-seed1.txt tests/logs/runs/bf16-seed2.txt tests/logs/runs/bf16-seed3.txt tests/logs/runs/fp8-seed1.txt
log tests/logs/written/torchtitan-blows-up.txt
log tests/logs/written/trainer-nan-norms-come-and-go.txt
scaler --pattern '1*53,{2^16}*1000'
scaler --pattern '{2^-4}*100' -s megatron
END

# ---- other widths, and what is no terminal ----
turns 1
for columns in 60 100 200; do
    screen $columns stat "$data/step_020000" && screen $columns help scalers && screen $columns formats
    ok $? "$columns columns"
done
"$MPSIM" stat "$data/step_020000" >"$dir/pipe"
"$pty" 200 "$MPSIM" stat "$data/step_020000" | cmp -s - "$dir/pipe"; ok $? 'a terminal that is wide enough shows what a pipe gets'
COLUMNS=200 "$pty" 80 "$MPSIM" stat "$data/step_020000" | cmp -s - "$dir/pipe" &&
    COLUMNS=40 "$MPSIM" stat "$data/step_020000" | cmp -s - "$dir/pipe"
ok $? 'COLUMNS is the width of a terminal, and of nothing else'
"$pty" 0 "$MPSIM" stat "$data/step_020000" | cmp -s - "$dir/pipe"; ok $? 'a terminal without a size, as that of mpirun, is as wide as a pipe'
"$pty" 80 "$MPSIM" stat -o "$dir/file" "$data/step_020000" && cmp -s "$dir/file" "$dir/pipe"; ok $? 'a file is as wide as a pipe'
"$MPSIM" stat --json "$data/step_020000" >"$dir/pipe" && "$pty" 80 "$MPSIM" stat --json "$data/step_020000" | cmp -s - "$dir/pipe"
ok $? 'JSON is not folded'
screen 80 stat "$data/step_020000" && has ' SQNR dB' && ! has 'inexact  ' && has '^(not shown in 80 columns: .*inexact' &&
    [ "$(grep -c 'not shown' "$dir/out")" -eq 1 ] && ! has '  l2$'
ok $? 'what is left out is named once, and what verdicts rest on stays'
screen 40 help rounding && screen 40 formats fp16; ok $? '40 columns'
screen 80 stat -f fp16 -t -m 'act:blocks.0.attn.softmax' "$lm/step_000100" && has '^ *act:blocks.0.attn.softmax'; ok $? 'names stay whole'
finish
