#!/bin/sh
# model-memory.sh -- mpsim memory: data/counts/guides.tsv, files and transformers counted by hand, bad
# input. (faults.sh is about allocations that fail.)
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# bytes COMPONENT: of the CSV report, its terms together
bytes() { awk -F, -v c="$1" '$3 == c { s += $4 } END { printf "%.0f", s }' "$dir/out"; }
# is COMPONENT=BYTES...
is() {
    for want in "$@"; do
        got=$(bytes "${want%=*}")
        [ "$got" = "${want##*=}" ] || { echo "# ${want%=*}: $got, not ${want##*=}"; return 1; }
    done
}
# memory WORDS...: the CSV report
memory() { run 0 memory --csv "$@"; }

# ---- what guides say: every row of the table ----
rows=0
turns 6
grep -v '^#\|^source	' "$MPSIM_SRCDIR/data/counts/guides.tsv" >"$dir/table"
while IFS='	' read -r source _ words number component _; do
    rows=$((rows + 1))
    # shellcheck disable=SC2086 # words
    memory $words && is "$component=$number"
    ok $? "$(echo "$source" | cut -c1-60): $number bytes"
done <"$dir/table"
turns 1
[ "$rows" -ge 30 ]; ok $? "$rows rows"

# ---- a file: an embedding, a linear layer, a norm, a buffer; F16 ----
tensor() { printf '"%s":{"dtype":"F16","shape":[%s],"data_offsets":[%d,%d]}' "$1" "$2" "$3" "$4"; }
header="{$(tensor embed.weight 100,64 0 12800),$(tensor fc.weight 64,64 12800 20992),$(tensor fc.bias 64 20992 21120),$(
    tensor norm.weight 64 21120 21248),$(tensor bn.running_mean 64 21248 21376)}"
safetensors() { # the length of the header in 8 bytes, the header, zeros
    # shellcheck disable=SC2059 # octal
    printf "\\$(printf '%03o' $((${#header} % 256)))\\$(printf '%03o' $((${#header} / 256)))\\0\\0\\0\\0\\0\\0"
    printf '%s' "$header"
    head -c 21376 /dev/zero
}
safetensors >"$dir/model.safetensors"
model=$dir/model.safetensors
# 6400 + 4096 + 64 + 64 = 10624 parameters
memory -P fp32 "$model" && is weights=42496 gradients=42496 'optimizer state=84992' total=169984
ok $? "fp32: 4, 4 and 8 bytes; a running mean is no parameter"
memory -P pytorch-amp-fp16 "$model" && is weights=42496 'copies of weights=8320' gradients=42496 total=178304
ok $? "autocast copies what enters products: (4096 + 64) 2"
memory -P megatron-bf16 "$model" && is weights=21248 'master weights=42496' gradients=42496 'optimizer state=84992'
ok $? "megatron: all in bf16, masters, fp32 gradients"
turns 6
memory -P fp32 --optimizer sgd "$model" && is 'optimizer state=0' total=84992; ok $? "sgd"
memory -P fp32 --optimizer momentum "$model" && is 'optimizer state=42496'; ok $? "momentum"
memory -P fp32 --optimizer lion "$model" && is 'optimizer state=42496'; ok $? "lion"
memory -P fp32 --optimizer amsgrad "$model" && is 'optimizer state=127488'; ok $? "amsgrad"
memory -P fp32 --optimizer muon "$model" && is 'optimizer state=68608'; ok $? "muon: 4096 times 4, the rest times 8"
memory -P fp32 --optimizer adafactor "$model" && is 'optimizer state=1680'
ok $? "adafactor: (100 + 64 + 64 + 64 + 64 + 64) 4"
memory -P fp32 --optimizer adamw8bit "$model" && is 'optimizer state=22344'
ok $? "8 bits: 2 (6400 + 4 25) + 2 (4096 + 4 16) + 128 8"
memory -P fp32 --optimizer torchao-adamw8bit "$model" && is 'optimizer state=26440'; ok $? "and a map of 1024 for each of 4"
memory -P fp32 --optimizer torchao-adamw4bit "$model" && is 'optimizer state=12432'
ok $? "4 bits: 2 (3200 + 4 50 + 64) + 2 (2048 + 4 32 + 64) + 128 8"
memory -P fp32 --ranks 7 --zero 3 "$model" && is weights=6084 'gathered weights=25600' gradients=6084 'optimizer state=12168'
ok $? "ZeRO 3 of 7: 915 + 586 + 10 + 10 elements, the embedding whole"
memory -P fp32 --ranks 7 --zero 1 "$model" && is weights=42496 gradients=42496 'optimizer state=12168'; ok $? "ZeRO 1"
memory -P fp32 --ranks 7 "$model" && is total=169984; ok $? "ranks alone share nothing"
printf 'precision: fp16\nautocast: all\nparams: fp16\nkeep_fp32: [norm]\nloss_scaling: none\n' >"$dir/keep.yaml"
memory -P "$dir/keep.yaml" "$model" && is weights=21376; ok $? "keep_fp32: 2 10560 + 4 64"
memory -P bf16-kahan "$model" && is weights=21248 'optimizer state=63744'; ok $? "Kahan: three of bf16"
printf 'precision: bf16\nautocast: all\nparams: bf16\nmaster_weights: split\ngrads: fp32\n' >"$dir/split.yaml"
memory -P "$dir/split.yaml" "$model" && is weights=21248 'master weights=21248'; ok $? "a split master"
memory -P te-mxfp8 "$model" && is 'copies of weights=8448'; ok $? "MXFP8 of 64 x 64: 2 (4096 + 128)"
memory -P te-mxfp8 --no-transposes "$model" && is 'copies of weights=4224'; ok $? "once"
memory -P deepseek-v3-fp8 "$model" && is 'copies of weights=8200'; ok $? "128 x 128: 2 (4096 + 4)"
memory -P nemo-fp8-hybrid-recent "$model" && is 'scaling state=40'; ok $? "delayed scaling: 5 (1 + 1) 4 bytes of a layer"
memory -P fp32 -m 'fc.*' "$model" && is weights=16640; ok $? "--match"
memory -P fp32 "$MPSIM_SRCDIR/data/digits-cnn" && is weights=14728
ok $? "a trace: the weights of its steps once, 3682"

# ---- models of transformers: as many parameters as each says that it has (tests/trace/models.tsv)
mkdir "$dir/m"
awk -F '\t' -v dir="$dir" '
    function flush() { if (name) { print "{" substr(header, 2) "}" >(dir "/m/" name ".json"); close(dir "/m/" name ".json")
                                  print name, end, count >(dir "/models") } }
    BEGIN { split("F64 8 I64 8 F32 4 I32 4 F16 2 BF16 2 U8 1 BOOL 1", w, " ")
            for (i = 1; i in w; i += 2) bytes[w[i]] = w[i + 1] }
    /^#/ { next }
    $1 == "@" { flush(); split($2, p, "/"); name = p[1]; split($4, p, "="); count = p[2]; end = 0
                header = ",\"__metadata__\":{\"format\":\"pt\"}"; next }
    { split($2, p, ":"); n = bytes[p[2]]; shape = p[1]; k = split(shape, side, "x")
      if (shape == "()") { shape = ""; k = 0 }
      for (i = 1; i <= k; i++) n *= side[i]
      gsub("x", ",", shape)
      header = header sprintf(",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%d,%d]}", $1, p[2], shape, end, end + n)
      end += n }
    END { flush() }' "$MPSIM_SRCDIR/tests/trace/models.tsv"
wrong=0
models=0
turns 6 together
while read -r name size count; do
    due || break
    mkdir "$dir/m/$name"
    header=$(cat "$dir/m/$name.json")
    length=$(printf '%s' "$header" | wc -c)
    {
        # shellcheck disable=SC2059 # octal
        printf "\\$(printf '%03o' $((length % 256)))\\$(printf '%03o' $((length / 256 % 256)))\\$(printf '%03o' $((length / 65536)))\0\0\0\0\0"
        printf '%s' "$header"
        head -c "$size" /dev/zero
    } >"$dir/m/$name/model.safetensors"
    memory -P fp32 "$dir/m/$name/model.safetensors" && is weights=$((4 * count)) || wrong=$((wrong + 1))
    models=$((models + 1))
done <"$dir/models"
[ "$wrong" -eq 0 ] && [ "$models" -ge 24 ]; ok $? "bug_20261123_parameters_of_models: $models models, $wrong with a wrong count"
run 0 memory -P fp32 "$dir/m/wav2vec2/model.safetensors" && has 'parameters' && run 0 memory -P fp32 "$dir/m/deepseek_v3/model.safetensors" &&
    has '1 tensor of 4 elements left out, which is not'
ok $? "what is left out: tensors and elements"
turns 6
header="{\"__metadata__\":{\"format\":\"pt\"},\"l.qweight\":{\"dtype\":\"I32\",\"shape\":[2,8],\"data_offsets\":[0,64]}}"
{ printf "\\$(printf '%03o' ${#header})\0\0\0\0\0\0\0"; printf '%s' "$header"; head -c 64 /dev/zero; } >"$dir/m/model.safetensors"
run 3 memory -P fp32 "$dir/m/model.safetensors" && has 'packed in integers' err; ok $? "packed weights are not counted as if they were numbers"

# ---- e3nn's buffers, and constants of SevenNet, are no parameters
conv=0_convolution.convolution
header="{$(tensor $conv.output_mask 64 0 128),$(tensor $conv._compiled_main_left_right._w3j_1_1_2 3,3,5 128 218),$(tensor rescale_atomic_energy.shift 89 218 396),$(
    tensor 0_convolution.denominator 1 396 398),$(tensor 0_convolution.weight_nn.layer0.weight 8,16 398 654),$(tensor w3j.weight 4 654 662)}"
{ safetensors | head -c $((8 + ${#header} + 662)); } >"$dir/e3nn.safetensors"
memory -P fp32 "$dir/e3nn.safetensors" && is weights=528; ok $? "bug_20261127_e3nn: 132 of 331 numbers are parameters"

# ---- config.json: as many parameters as transformers counts
wrong=0
models=0
turns 3 together
while IFS="$(printf '\t')" read -r name count json; do
    due || break
    printf '%s\n' "$json" >"$dir/config.json"
    memory -P fp32 "$dir/config.json" && is weights=$((4 * count)) || { wrong=$((wrong + 1)); echo "# $name"; }
    models=$((models + 1))
done <"$MPSIM_SRCDIR/data/counts/transformers.tsv"
[ "$wrong" -eq 0 ] && [ "$models" -ge 20 ]; ok $? "bug_20261127_config_json: $models models, $wrong with a wrong count"
turns 1
qwen='"model_type":"qwen2","hidden_size":896,"intermediate_size":4864,"num_hidden_layers":24,"num_attention_heads":14,"num_key_value_heads":2,"vocab_size":151936,"tie_word_embeddings":true'
echo "{$qwen}" >"$dir/config.json"
run 0 memory -P pytorch-amp-bf16 "$dir/config.json" && has '^model  *494,032,768 parameters'; ok $? "Qwen2.5-0.5B: 494,032,768"
echo "{\"model_type\":\"some_vl\",\"text_config\":{$qwen},\"vision_config\":{\"hidden_size\":1280}}" >"$dir/config.json"
run 0 memory -P fp32 "$dir/config.json" && has '494,032,768 parameters' && has '^not counted: vision_config$'; ok $? "of a model that sees the language model, and what is not counted"
echo '{"model_type":"t5","d_model":512}' >"$dir/config.json"
run 3 memory -P fp32 "$dir/config.json" && has "model_type 't5' is not among those" err; ok $? "an architecture that is not known"
echo '{"model_type":"llama","hidden_size":4096,"num_attention_heads":32,"vocab_size":0,"num_hidden_layers":2}' >"$dir/config.json"
run 3 memory -P fp32 "$dir/config.json" && has '"vocab_size" is missing, or not from' err; ok $? "a size that is missing"
echo '{"model_type":"llama","hidden_size":4096,"num_attention_heads":32,"vocab_size":10,"num_hidden_layers":99999}' >"$dir/config.json"
run 3 memory -P fp32 "$dir/config.json" && has '"num_hidden_layers" is' err; ok $? "or too large"
echo '{"a":1}' >"$dir/config.json"
run 3 memory -P fp32 "$dir/config.json"; ok $? "other JSON describes no model"

# ---- names of layers are those of `train`; patterns that fit none are named
printf 'name: keep\nprecision: bf16\nautocast: all\nparams: bf16\nkeep_fp32: [wte, wpe, embed.tok]\n' >"$dir/names.yaml"
run 0 memory -P "$dir/names.yaml" --layers 2 --hidden 8 --heads 2 --seq 4 --batch 3 --vocab 10 && has "^patterns   fit no layer here: keep_fp32 'embed.tok'$" && has 'binary32: 4 x 112' && has 'bf16: 2 x 1,760'
ok $? "bug_20261127: keep_fp32 [wte, wpe] keeps 80 + 32 in fp32, and what fits nothing is named"
run 0 memory -P "$dir/names.yaml" --json --layers 2 --hidden 8 --heads 2 --seq 4 --batch 3 --vocab 10 && has "\"unmatched_patterns\": \"keep_fp32 'embed.tok'\""; ok $? "in JSON, too"
run 0 memory -P "$dir/names.yaml" -P fp32 "$model" && has "^patterns   fit no layer here: keep: keep_fp32 'wte', 'wpe', 'embed.tok'$"; ok $? "of files, and which policy"
run 0 memory -P fp32 -P bf16-pure "$model" && has ' of fp32$' && has '^bf16-pure .* 50 %$' && run 0 memory -P bf16-pure "$model" && has '^total .*50 % of what fp32 takes$'; ok $? "per cent of fp32"

# ---- a transformer: 2 layers of h 8, 2 heads, s 4, b 3, v 10, f 32, by hand
# embeddings 80 + 32; a layer: norms 32, qkv 192 + 24, proj 64 + 8, fc1 256 + 32, fc2 256 + 8 = 872; norm 16
small="--layers 2 --hidden 8 --heads 2 --seq 4 --batch 3 --vocab 10"
# shellcheck disable=SC2086 # words
{
    memory -P fp32 --optimizer sgd $small && is weights=7488; ok $? "a transformer: 1872 parameters"
    memory -P fp32 --optimizer sgd $small --untied && is weights=7808; ok $? "--untied: 80 more"
    memory -P fp32 --optimizer sgd $small --positions 0 && is weights=7360; ok $? "--positions 0: 32 less"
    memory -P fp32 --optimizer sgd $small --kv-heads 1 && is weights=6912; ok $? "--kv-heads 1: 2 (64 + 8) less"
    memory -P fp32 --optimizer sgd $small --ffn 16 && is weights=5312; ok $? "--ffn 16: 2 (2 128 + 16) less"
    # cast copies: a layer's 192 + 24 + 64 + 8 + 256 + 32 + 256 + 8 = 840 numbers, and the table that the head reads
    memory -P pytorch-amp-fp16 $small && is 'copies of weights=3520' weights=7488
    ok $? "bug_20261123_tied_head: 2 (2 840 + 80)"
    memory -P pytorch-amp-fp16 $small --zero 3 --ranks 2 && is 'copies of weights=576' 'gathered weights=1152'
    ok $? "with ZeRO 3 a layer's: the largest is fc1, 288"
    # a layer: norms 16, qkv 192, proj 64, fc1 512, fc2 256 = 1040; 80 + 32 + 8
    memory -P fp32 --optimizer sgd $small --activation swiglu --ffn 32 && is weights=8800; ok $? "--activation swiglu"
    memory -P fp32 --optimizer sgd $small --activation swiglu --ffn 32 --biases --norm layernorm && is weights=9792
    ok $? "with biases and LayerNorm: 2 (1040 + 16 + 24 + 8 + 64 + 8) + 112 + 16"
    memory -P fp32 --optimizer sgd $small --no-biases --norm rmsnorm && is weights=6752; ok $? "GELU without biases: 2 784 + 120"
    # 33 96 + 5 96 of GELU; the MLP's 2 f twice more: 2 4 96
    memory -P bf16-pure $small --activation swiglu --ffn 32 && is activations=9984; ok $? "gates and values: 2 (3744 + 768) + 960"
    memory -P fp32 --optimizer sgd $small --activation swiglu && is weights=7264; ok $? "8/3 of 8 are 24: 2 (272 + 576) + 120"
    # s b h = 96, a s^2 b = 96: a layer 34 96 + 5 96 = 3744; 5 96 + 4 120 outside
    memory -P bf16-pure $small && is activations=8448; ok $? "activations: 2 3744 + 480 + 480"
    # no masks: 3744 - 2 96 - 96, and the softmax's output is the operand: - 2 96; outside - 96
    memory -P bf16-pure $small --no-dropout && is activations=7392; ok $? "--no-dropout: 2 3264 + 384 + 480"
    # 34 96, and 4 a s b = 96
    memory -P bf16-pure $small --flash && is activations=7680; ok $? "--flash: 2 (3264 + 96) + 960"
    memory -P bf16-pure $small --recompute selective && is activations=7488; ok $? "selective: 2 3264 + 960"
    memory -P bf16-pure $small --recompute full && is activations=1344; ok $? "full: 2 192 + 960"
    memory -P bf16-pure --params 7B $small && is activations=8448 weights=14000000000; ok $? "activations beside --params"
    run 0 memory -P bf16-pure $small && has '^activations  *8,448' && has '2 s b h x 2' && has '^total  *23,424'
    ok $? "text: the formulas"
    # qkv 96 + 12, proj 32 + 8, fc1 128 + 16, fc2 128 + 8, norms 32 = 460; 40 + 32 + 16
    memory -P fp32 --optimizer sgd $small --tensor-parallel 2 && is weights=4032; ok $? "tensors in two parts: 1008"
}

memory -P pytorch-amp-fp16 --layers 12 --hidden 768 --heads 12 --seq 1024 --batch 1 --vocab 50257 && is 'copies of weights=247229952'
ok $? "GPT-2: 123,614,976 numbers enter products"
llama="--hidden 4096 --heads 32 --seq 4096 --batch 1 --activation swiglu --positions 0 --untied"
# shellcheck disable=SC2086 # words
{
    memory -P fp32 --optimizer sgd $llama --layers 32 --vocab 32000 --ffn 11008 && is weights=26953662464; ok $? "Llama-2-7B: 6,738,415,616"
    memory -P fp32 --optimizer sgd $llama --layers 32 --kv-heads 8 --vocab 128256 --ffn 14336 && is weights=32121044992
    ok $? "Llama-3-8B: 8,030,261,248"
}

# ---- how numbers are written
for words in '7e9=28000000000' '7B=28000000000' '1.3B=5200000000' '125M=500000000' '0.5k=2000' '2^33=34359738368' '1Gi=4294967296' \
    '1e15=4000000000000000' '1000000000000000=4000000000000000'; do
    memory --params "${words%=*}" -P fp32 --optimizer sgd && is "weights=${words#*=}"; ok $? "--params ${words%=*}"
done
run 0 memory --params 7B -P fp32 -P bf16-pure --json && has '"mpsim.memory/1"' && has '"total": 112000000000' && has '"formula": "bf16: 2 x 7,000,000,000"'
ok $? "JSON"
run 0 memory --params 7B -P fp32 -P bf16-pure --ndjson && has '^{"policy": "fp32", .*"total": 112000000000' && [ "$(wc -l <"$dir/out")" = 2 ]; ok $? "NDJSON"
run 0 memory --params 1e9 -P fp8-lm && has '^weights  *2,000,000,000 .*  scaled-fp16: 2 x 1,000,000,000$' &&
    run 0 memory --params 1e9 -P fp8-lm --json && has '"formula": "scaled-fp16: 2 x 1,000,000,000"'
ok $? "bug_20261122_storage_of_what_is_kept"
run 0 memory --params 7B -P fp32 -P bf16-pure && has '112.00  *104.31' && has 'GB (10^9 bytes)'; ok $? "GB and GiB are said"
run 0 memory --params 3 -P fp32-bf16-fp16 && has 'plan that needs most'; ok $? "a schedule: the plan that needs most"
run 0 memory --params 3 -P fp32 --zero 3 --ranks 2 && has 'without the layer that ZeRO 3 gathers'; ok $? "what is not known is said"

# ---- bad input
for words in '' '--params 3' '-P fp32' '--params 1.5 -P fp32' '--params 0 -P fp32' '--params 1e16 -P fp32' '--params 2000T -P fp32' \
    '--params 7Q -P fp32' '--params -3 -P fp32' '--params 1.2.3 -P fp32' '--params . -P fp32' '--params 1e -P fp32' '--params 1e999 -P fp32' \
    '--params 3 -P fp32 --ranks 0' '--params 3 -P fp32 --zero 4' '--params 3 -P fp32 --optimizer x' '--params 3 -P fp32 --json --csv' \
    '--params 3 -P fp32 --optimizer adafactor' '--params 3 -P fp32 --layers 3' '--params 3 -P fp32 --recompute full' \
    "--params 3 -P fp32 $small --recompute some" "-P fp32 $small --heads 3" "-P fp32 $small --kv-heads 3" "-P fp32 $small --layers 0" \
    '--params 3 -P fp32 --tensor-parallel 2' "-P fp32 $small --biases --no-biases" "-P fp32 $small --activation relu" \
    "-P fp32 $small --norm batch" '--params 3 -P fp32 --activation swiglu' "-P fp32 $small --sequence-parallel" "--params 3 -P fp32 $model" \
    '-P fp32 --layers 16384 --hidden 1048576 --heads 1 --seq 67108864 --batch 1048576 --vocab 1'; do
    # shellcheck disable=SC2086 # words
    run 2 memory $words; ok $? "usage: memory $words"
done
run 2 memory --params 3 -P fp32 --optimizer adma && has 'did you mean adam' err; ok $? "a misspelt optimizer"
run 4 memory --params 3 -P nothing; ok $? "no such policy"
run 3 memory -P fp32 "$dir/keep.yaml"; ok $? "no file of tensors"
run 3 memory -P fp32 -m 'x*' "$model" && has 'no parameters' err; ok $? "nothing is selected"
finish
