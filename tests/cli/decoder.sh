#!/bin/sh
# decoder.sh -- mpsim train with transformers: options and their errors, texts and files of tokens, reports,
# traces that replay gives back, checkpoints that go on to the same bits.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
OMP_NUM_THREADS=1 # the runs are small
export OMP_NUM_THREADS
small='--depth 1 --width 16 --heads 2 --context 16 --batch 2 --steps 6 --every 6 --warmup 2 --validation 2'

# json: the output is one JSON value
json() {
    if command -v python3 >/dev/null; then
        python3 -c 'import json, sys; json.load(open(sys.argv[1]), parse_constant=sys.exit)' "$dir/out"
    fi
}

# rows N COLUMNS: N lines of as many cells, the header included
rows() { [ "$(wc -l <"$dir/out")" -eq "$1" ] && awk -F, -v n="$2" 'NF != n { exit 1 }' "$dir/out"; }

# train CODE ARGUMENT...: a small run of gpt
train() {
    code=$1
    shift
    # shellcheck disable=SC2086
    run "$code" train --net gpt $small "$@"
}

# ---- reports ----
train 0 -P pytorch-amp-fp16 && has '^network  *gpt: 1 block of width 16, 2 heads of 8, gelu-tanh to 64, layernorm, learned positions,$' &&
    has '^text  *mpsim: [0-9,]* tokens, [0-9,]* held back, vocabulary 256, context 16$' && has '^parameters 7,664$' &&
    has '^optimizer  adamw, lr 0.001, betas 0.9 0.95, eps 1e-08, weight decay 0.1$' && has 'clip 1 (torch)$' &&
    has '^run  *6 steps of 32 tokens, seed 0, lr cosine to 0.1 after 2$'
ok $? "text: the network, its text, its parameters, what the policy leaves open"
has '^step  *loss  *validation  *perplexity  *lr ' && has '^perplexity [0-9.]*; [0-9.]* % of the next tokens' && has '^a step .*fp16 x fp16 [0-9.]* M multiply-adds$' &&
    has '^speed .* tokens a second$' && ! has accuracy
ok $? "text: validation, perplexity, operations, tokens a second"
awk 'length > 100 { exit 1 }' "$dir/out"; ok $? "text: lines of at most 100 columns"
grep -v '^speed' "$dir/out" >"$dir/want"
train 0 -P pytorch-amp-fp16 --threads 3 && grep -v '^speed' "$dir/out" | cmp -s - "$dir/want"; ok $? "the same bytes on three threads"
turns 5
train 0 -P fp32 --json && json && has '"decoder": {"heads": 2, ' && has '"text": "mpsim"' && has '"validation_loss": ' && has '"perplexity": ' &&
    has '"lr": 0.0005' && has '"operations_per_step": \[{"operands": "binary32 x binary32"' && ! has test_loss
ok $? "JSON"
train 0 -P fp32 --csv && rows 7 27 && has '^policy,step,.*,validation_loss,validation_accuracy,perplexity,lr$'; ok $? "CSV: a line per step"
train 0 -P fp32 -P pytorch-amp-bf16 --csv && rows 3 34 && has ',clip,perplexity,tokens_per_second,operations$'; ok $? "CSV: a line per policy"
train 0 -P fp32 -P pytorch-amp-bf16 && has '^policy  *loss  *at the end  *validation  *perplexity' && has '^  pytorch-amp-bf16  *bf16 x bf16  *[0-9.]* M  *100 %$' &&
    has '1 (torch)' && awk 'length > 100 { exit 1 }' "$dir/out"
ok $? "side by side: losses, operations by format, one clip for all"
# shellcheck disable=SC2086
run 0 train --net gpt --compare --csv --depth 1 --width 16 --heads 2 --context 4 --batch 1 --steps 1 --warmup 0 --validation 1 && [ "$(wc -l <"$dir/out")" -eq 19 ]
ok $? "--compare: a row per policy"
run 0 train --net mlp -P fp32 --json --width 4 --depth 1 --batch 4 --steps 1 && ! has decoder && ! has perplexity; ok $? "of other networks all as it was"

# ---- options ----
run 0 train --net llama $small -P fp32 --kv-heads 1 && has 'llama: 1 block .* with keys and values of 1, swiglu to 48,$' && has 'rmsnorm, rotary positions, no biases, own head$'
ok $? "--net llama"
train 0 -P fp32 --norm rmsnorm --activation swiglu --positions rotary --no-biases --own-head --hidden 24 && has 'swiglu to 24, rmsnorm, rotary positions,$' &&
    has 'no biases, own head$'
ok $? "--norm, --activation, --positions, --no-biases, --own-head, --hidden"
train 0 -P fp32 --attention tiled --tile 8 && has 'attention in tiles of 8'; ok $? "--attention tiled"
train 0 -P fp32 --attention tiled && has 'attention in tiles of 16'; ok $? "a tile no wider than the context"
train 0 -P fp32 --accumulate 2 --accumulate-format bf16 --ranks 2 --reduce tree --wire bf16 --wire-sum fp32 && has '^run .* of 128 tokens' &&
    has '^batches  *2 a step of 2 sequences, added in bf16$' && has '^ranks  *2, tree, wire bf16, sums in binary32$'
ok $? "--accumulate, --ranks"
train 0 -P fp32 --ranks 70 --wire bf16 && has '^ranks  *70, ring, wire bf16'; ok $? "more than 64 ranks"
train 0 -P fp32 --schedule linear --min-lr 0 --cooldown 2 --decay-all --math softmax=fp16 --math norm=bf16 &&
    has 'lr linear to 0 after 2, falling in the last 2, all decays, normalisation in bf16, softmax of attention in fp16$'
ok $? "--schedule, --cooldown, --math PART=FORMAT"
run 0 train --gpt2 --context 8 --write-run "$dir/plan" -P fp32 && grep -q '^depth 12$' "$dir/plan" && grep -q '^vocabulary 50257$' "$dir/plan" && grep -q '^context 8$' "$dir/plan"
ok $? "--gpt2"
for o in '--norm batchnorm' '--activation relu' '--positions none' '--attention flash' '--reduce star' '--schedule step' '--heads 0' '--heads 3' '--kv-heads 3' \
    '--context 0' '--vocabulary 1' '--tile 8' '--attention tiled --tile 0' '--accumulate 0' '--accumulate-format bf16' '--accumulate 2 --accumulate-format bf61' \
    '--ranks 0' '--reduce ring' '--wire bf16' '--wire-sum bf16' '--warmup x' '--min-lr 2' '--schedule constant --min-lr 0.5' '--validation x' '--biases --no-biases' \
    '--tied --own-head' '--batchnorm' '--no-batchnorm' '--math foo=fp16' '--math norm=fp61' '--gpt2' '--text a --tokens b' '--vocabulary 100' '--positions rotary --width 6' \
    '--context 100000' '--depth 0' '--batch 0'; do
    # shellcheck disable=SC2086
    train 2 -P fp32 $o; ok $? "refused: $o"
done
for o in 'heads 8193 1 8192' 'kv-heads 0 1 8192' 'hidden 65537 1 2^16' 'context 16385 1 16384' 'vocabulary 1048577 2 2^20' 'tile 16385 1 16384' 'validation 0 1 2^20' \
    'accumulate 4097 1 4096' 'ranks 4097 1 4096' 'warmup 1000000001 0 1000000000' 'cooldown 1000000001 0 1000000000' 'min-lr 2 0 1'; do
    # shellcheck disable=SC2086
    set -- $o
    train 2 -P fp32 "--$1" "$2" && has "^mpsim: train: --$1: '$2' is not an\{0,1\} [a-z]* from $3 to $4\$" err; ok $? "out of range: --$1 $2"
done
train 2 -P fp32 --ranks 2 --wire e2m1 && has "wire 'e2m1': no signed format within binary32 with a NaN$" err; ok $? "why a format does not fit"
for o in '--heads 2' '--kv-heads 2' '--hidden 8' '--context 8' '--vocabulary 300' '--norm rmsnorm' '--activation gelu' '--positions rotary' '--biases' '--no-biases' '--tied' \
    '--own-head' '--attention tiled' '--tile 4' '--validation 2' '--accumulate 2' '--accumulate-format bf16' '--ranks 2' '--reduce tree' '--wire bf16' '--wire-sum bf16' \
    '--schedule linear' '--warmup 2' '--cooldown 2' '--min-lr 0.5' '--decay-all' '--text x' '--tokens x'; do
    # shellcheck disable=SC2086
    run 2 train -P fp32 --net cnn $o && has "^mpsim: train: ${o%% *} needs --net gpt, --net llama.*: these options are for transformers\$" err; ok $? "of transformers alone: $o"
done
run 2 train --gpt2 --net llama -P fp32 && run 2 train --gpt2 --net mlp -P fp32 && run 2 train --gpt2 --width 8 -P fp32; ok $? "--gpt2 and what it says"

# ---- policies ----
printf 'precision: fp8\nfp8_attention: true\n' >"$dir/attention.yaml"
train 0 -P "$dir/attention.yaml" && has 'attention too' && has '^a step  *e4m3 x e4m3 [0-9.]* M, e5m2 x e4m3 [0-9.]* M multiply-adds$'; ok $? "fp8_attention"
for file in "$MPSIM_POLICIES"/*.yaml; do
    run 0 train --net gpt -P "$file" --depth 1 --width 16 --heads 2 --context 4 --batch 1 --steps 1 --warmup 0 --validation 1 --arch exact; ok $? "bundled: ${file##*/}"
done

# ---- texts ----
turns 5 together
head -c 3000 "$MPSIM_SRCDIR/README.md" >"$dir/a text"
train 0 -P fp32 --text "$dir/a text" && has '^text  *a_text: 2,700 tokens, 300 held back, vocabulary 256, context 16$'; ok $? "--text"
# tokens MAGIC VERSION COUNT BYTES: a file of llm.c; so many tokens of 0 to 9, each of as many bytes
tokens() {
    awk -v m="$1" -v v="$2" -v n="$3" -v b="$4" 'function word(x, k) { for (; k > 0; k--) { printf "\\%03o", x % 256; x = int(x / 256) } }
        BEGIN { word(m, 4); word(v, 4); word(n, 4); for (i = 3; i < 256; i++) word(0, 4); for (i = 0; i < n; i++) word(i * i % 10, b) }' >"$dir/octal"
    # shellcheck disable=SC2059
    printf "$(cat "$dir/octal")" >"$dir/tokens.bin"
}
tokens 20240520 1 1000 2
train 0 -P fp32 --tokens "$dir/tokens.bin" --vocabulary 10 && has '^text  *tokens.bin: 900 tokens, 100 held back, vocabulary 10, context 16$'; ok $? "--tokens: of GPT-2"
grep -v '^text\|^speed' "$dir/out" >"$dir/want"
tokens 20240801 7 1000 4
train 0 -P fp32 --tokens "$dir/tokens.bin" --vocabulary 10 && grep -v '^text\|^speed' "$dir/out" | cmp -s - "$dir/want"; ok $? "--tokens: of Llama 3, the same run"
turns 5
train 3 -P fp32 --tokens "$dir/tokens.bin" --vocabulary 9 && has 'not below the vocabulary of 9' err; ok $? "--tokens: beyond the vocabulary"
head -c 2000 "$dir/tokens.bin" >"$dir/cut"
train 3 -P fp32 --tokens "$dir/cut" && has 'the header says 1000 tokens' err; ok $? "--tokens: cut"
train 3 -P fp32 --tokens "$dir/a text" && train 3 -P fp32 --tokens /dev/null && train 3 -P fp32 --text /dev/zero && train 4 -P fp32 --text "$dir/none"
ok $? "texts that are none"
: >"$dir/empty"
train 3 -P fp32 --text "$dir/empty" && head -c 30 "$dir/a text" >"$dir/short" && train 3 -P fp32 --text "$dir/short"; ok $? "a text that is too short"

# ---- operations ----
# products: the multiply-adds of all pairs of operands in the last output, JSON
products() { grep -o '"operands": "[^"]*", "multiply_adds": [0-9]*' "$dir/out" | awk '{ n += $NF } END { print n }'; }
turns 5 together
train 0 -P fp32 --depth 3 --arch exact --json && all=$(products) && train 0 -P fp32 --depth 3 --arch exact --write-run "$dir/plan" &&
    awk '/^layer .*(qkv|proj|fc|scores|context|head) / { sub(" act=binary32", " act=e8m" ++n) } { print }' "$dir/plan" >"$dir/many" &&
    run 0 train --run "$dir/many" --json && [ "$(grep -o '"operands": "[^"]*"' "$dir/out" | wc -l)" -eq 17 ] && has '"others"' && [ "$(products)" -eq "$all" ] && [ "$all" -gt 0 ]
ok $? "more than 16 pairs of formats: the rest together"
run 0 train --run "$dir/many" && has 'others [0-9,.]* M multiply-adds$' && awk 'length > 100 { exit 1 }' "$dir/out"; ok $? "and as text"
turns 5
train 0 -P fp32 --context 1 --batch 1 --heads 1 --steps 1 --warmup 0 --validation 1 --clip 0.01 && has ' 1 head of 16, ' && has '^run  *1 step of 1 token, seed 0,' &&
    has '(up to 1 sequence)$' && has '^scaler  *1 step: 0 skipped, 0 overflows,' && has '^clipped  *1 of 1 step$'
ok $? "one is one"
train 2 -P fp32 --kv-heads 4 && has 'kv_heads must be 1 to 2, the number of heads, not 4$' err; ok $? "more heads of keys than of queries"
train 0 -P fp32 -P bf16-pure --context 4 --batch 1 && has '^  bf16-pure  *bf16 x bf16  *[1-9][0-9],[0-9]*  *100 %$'; ok $? "few multiply-adds are counted"

# ---- checkpoints, plans ----
turns 5 together
again="-P nemo-fp8-hybrid-max --accumulate 2"
# shellcheck disable=SC2086
train 0 $again --digests "$dir/digests" && train 0 $again --steps 6 --checkpoint "$dir/whole"; ok $? "--digests, --checkpoint"
# shellcheck disable=SC2086
due && timeout 300 "$MPSIM" train --net gpt $small $again --write-run "$dir/plan" && run 0 train --run "$dir/plan" --check-digests "$dir/digests" --every 6 && has 'in 6 steps'
ok $? "--run: the same digests"
# shellcheck disable=SC2086
train 0 $again --schedule constant --digests "$dir/digests" && train 0 $again --schedule constant --steps 3 --checkpoint "$dir/point" &&
    run 0 train --resume "$dir/point" --steps 6 --check-digests "$dir/digests" && has 'in 3 steps'
ok $? "--resume: the same digests"
train 0 -P fp32 --steps 3 --checkpoint "$dir/point" && timeout 300 "$MPSIM" train --resume "$dir/point" --steps 6 >"$dir/out" 2>"$dir/err" && has 'learning rate now follows a run of 6 steps, not of 3' err &&
    train 0 -P fp32 --steps 3 --schedule constant --checkpoint "$dir/point" && run 0 train --resume "$dir/point" --steps 6 && ! has 'learning rate' err
ok $? "--resume: a longer run has another schedule"
train 0 -P fp32 --text "$dir/a text" --checkpoint "$dir/point" --steps 3 && run 2 train --resume "$dir/point" --steps 6 && has "the text 'a_text'" err &&
    run 0 train --resume "$dir/point" --steps 6 --quiet --text "$dir/a text"
ok $? "--resume: needs its text"
cp "$dir/a text" "$dir/b"
run 3 train --resume "$dir/point" --steps 6 --text "$dir/b" && mkdir "$dir/other" && sed 's/e/f/' "$dir/a text" >"$dir/other/a text" &&
    run 3 train --resume "$dir/point" --steps 6 --text "$dir/other/a text"
ok $? "--resume: another text"
train 0 -P fp32 --text "$dir/a text" --write-run "$dir/plan" && run 2 train --run "$dir/plan" && run 0 train --run "$dir/plan" --text "$dir/a text"; ok $? "--run: needs its text"
run 0 train -P fp32 --width 4 --depth 1 --batch 4 --steps 1 --checkpoint "$dir/mlp" && run 2 train --resume "$dir/mlp" --steps 2 --text "$dir/b"; ok $? "--resume: a network without text"

# ---- traces ----
turns 9
# replayed NAME ARGUMENT...: recorded, and replayed under its own policy with no difference
replayed() {
    name=$1
    shift
    rm -rf "$dir/trace"
    # shellcheck disable=SC2086
    run 0 train --net "$net" $small -P "$name" "$@" --quiet --trace "$dir/trace" --trace-every 1 && run 0 replay -P "$name" "$dir/trace" && has '^record *0 of '
    ok $? "replay gives the same weights: $net, $name $*"
}
for net in gpt llama; do
    for p in fp32 pytorch-amp-fp16 pytorch-amp-bf16 apex-O2 apex-O3 megatron-fp16 megatron-bf16 bf16-stochastic bf16-kahan te-nvfp4 nemo-fp8-hybrid-max; do
        replayed "$p"
    done
done
net=gpt
replayed pytorch-amp-fp16 --accumulate 2
turns 5 together
replayed apex-O2 --accumulate 2 --accumulate-format bf16
run 0 info -v "$dir/trace/step_000003" && has '^  mpsim.accumulation_format = bf16$'; ok $? "bug_20261122_format_of_sums: a record says in which they are"
turns 5
replayed apex-O2 --accumulate 2 --ranks 2
replayed megatron-bf16 --accumulate 2 --ranks 2 --wire bf16
turns 5 together
replayed pytorch-amp-fp16 --decay-all --optimizer sgd
run 0 info "$dir/trace/step_000003" && has '^  act:h0.attn.qkv *F16 ' && has '^  weight:wte.weight *F32 .*\[256, 16\]'; ok $? "info reads it"
run 0 stat -k wgrad -f e5m2 "$dir/trace" && has '^ *wgrad '; ok $? "stat reads it"
due && "$MPSIM" replay -P "$dir/attention.yaml" "$dir/trace" >"$dir/out" 2>"$dir/err" && has 'fp8_attention' err; ok $? "replay: fp8_attention is in vain"
finish
