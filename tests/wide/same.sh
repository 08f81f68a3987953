#!/bin/sh
# same.sh OURS THEIRS: whether two builds of mpsim write the same bytes and end with the same exit codes. MPSIM_SRCDIR is
# the source tree. THEIRS may be a script that runs a program of another machine. Of decibels, which are log10 of the C
# library, twelve digits are compared; of the errors beside what the C library calls exact (attention, mismatch, diff --logprob)
# ten, since much of an error cancels. A number in binary32 has all its bits in nine.
set -u
[ $# = 2 ] || { echo "usage: same.sh OURS THEIRS" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export MPSIM_POLICIES="$MPSIM_SRCDIR/data/policies"
n=0 bad=0 bytes=0 rounds='{ print }'
# about WORDS...: as try; numbers of more than ten digits are rounded to ten
about() {
    rounds='{
        for (out = ""; match($0, /-?[0-9]+[.][0-9]+([eE][-+]?[0-9]+)?/); $0 = substr($0, RSTART + RLENGTH)) {
            number = substr($0, RSTART, RLENGTH)
            out = out substr($0, 1, RSTART - 1) (RLENGTH > 11 ? sprintf("%.10g", number) : number)
        }
        print out $0
    }'
    try "$@"
    rounds='{ print }'
}
# try WORDS...: the command on both, each in a folder of its own; what it prints and what it writes to out* is compared
try() {
    n=$((n + 1))
    for side in ours theirs; do
        mkdir "$folder/$side"
        program=$ours
        [ $side = ours ] || program=$theirs
        (cd "$folder/$side" && ln -s "$MPSIM_SRCDIR" src && cp -r "$folder"/kept/. . &&
            "$program" "$@" >stdout 2>stderr; echo $? >code
            sed 's/\(_db": -\{0,1\}[0-9.]\{13\}\)[0-9]*/\1/g' stdout | awk "$rounds" >rounded; mv rounded stdout)
    done
    if ! diff -r "$folder/ours" "$folder/theirs" >"$folder/differs" 2>&1 --exclude=src; then
        bad=$((bad + 1))
        echo "differs: mpsim $*"
        cut -c 1-200 "$folder/differs" | sed -n 's/^/    /;1,6p'
    fi
    case $(cat "$folder/ours/code") in 0 | 1) ;; *) echo "fails on both: mpsim $*: $(head -n 1 "$folder/ours/stderr")" ;; esac
    # what is new: later commands read it, and it counts once
    for out in "$folder"/ours/stdout "$folder"/ours/out*; do
        [ -e "$out" ] && ! cmp -s "$out" "$folder/kept/${out##*/}" || continue
        bytes=$((bytes + $(wc -c <"$out")))
        case $out in */stdout) ;; *) cp "$out" "$folder/kept" ;; esac
    done
    rm -rf "$folder/ours" "$folder/theirs"
}
ours=$(realpath "$1") theirs=$(realpath "$2")
mkdir "$folder/kept"
cnn=src/data/digits-cnn last=src/data/digits-cnn/step_020000

try formats
try formats --json
try formats e4m3 fp16 e5m7:fn
for file in "$MPSIM_SRCDIR"/tests/trace/recorded/* "$MPSIM_SRCDIR"/tests/trace/quantised/*; do
    case $file in *.py | *.md | *.txt | *.tsv | *.sh) continue ;; esac
    file=src/${file#"$MPSIM_SRCDIR"/}
    try info --json "$file"
    try stat --json -f fp16,e4m3 "$file"
done
try stat --json --histogram -f fp16,bf16,e4m3,e5m2 -s '1,1024,2^-3' "$cnn"
try stat --json -f mxfp8:rceil,mxfp4,nvfp4,e4m3/1x128,e4m3/128x128 --axis both "$last"
try stat --json -f nvfp4:sr,fp16 -r sra --rht 16 --seed 7 "$last"
try stat -f fp16 --shard 1/3 -o out1 "$cnn"
try stat -f fp16 --shard 2/3 -o out2 "$cnn"
try stat -f fp16 --shard 3/3 -o out3 "$cnn"
try merge --json out1 out2 out3
for file in "$MPSIM_SRCDIR"/data/digits-cnn/step_020000/*; do
    file=src/${file#"$MPSIM_SRCDIR"/}
    try cast -f e4m3@cuda -o out.safetensors "$file"
    try cast -f bf16 -r src:8 --seed 3 -o out-sr.safetensors "$file"
    for layout in plain torchao compressed-tensors modelopt; do
        try cast -m 'weight:fc*' -f mxfp8 --quantised "$layout" -o "out-$layout.safetensors" "$file"
        try cast -m 'weight:fc*' -f nvfp4 --quantised "$layout" -o "out-$layout-4.safetensors" "$file"
        try stat --json -f fp16 "out-$layout-4.safetensors"
    done
    try cast -f nvfp4 --scale-order swizzled --axis columns -o out-s.safetensors "$file"
    try diff --json "$file" out.safetensors
    break
done
try cast -f e4m3,mxfp4 --explain 0.3,449,-1e-9
try calc --json add 1.1 2.2
try calc --json exp 1.5
try calc -f fp16 -r src:4 fma 1.1 3.3 -7
# the same in arrays
try cast --only -f bf16 -m weight:fc1.weight -o out-one.safetensors "$last/rank_00000.safetensors"
for op in 'mul out-one.safetensors out-one.safetensors' 'sqrt out-one.safetensors' 'fma out-one.safetensors out-one.safetensors out-one.safetensors'; do
    for how in 'fp16' 'binary64' 'e4m3 -r src:8'; do
        # shellcheck disable=SC2086 # words
        try calc $op --operands bf16 -f $how -o out-op.safetensors
    done
done
try dot --json -f e4m3 -K 512 -M all
try dot --json -f fp16 -K 64,1024 --values normal
# models in vectors of their own, products as libraries make them, blocks, workers, every addition of a sum
try dot --json -f bf16 -K 200,1024 -M 'all,fma:bf16:round=sr,hopper-bf16-fp32:F=20'
try dot --json -f fp32 -K 33,700 --values symmetric -M all
for model in hopper:fast:S=4 hopper:slow:S=1 ada:slow:S=4 hopper:slow:S=4:out=bf16; do
    try dot --json -f e4m3,e5m2 -s amax -K 1000 -M exact,hopper-wgmma-fp8-fp32 --like "torch-scaled-mm:$model"
done
for model in avx512 avx512:left-transposed:part=64 amx:chunk=64:tiles=32 amx:part=96:chunk=0:tiles=equal; do
    try dot --json -f bf16 -K 200,1024 -M exact --like "torch-mm:$model"
done
for recipe in mxfp8 mxfp4 nvfp4; do try dot --json --blocks $recipe -K 512; done
try dot --json -f bf16 -K 4096 -M hopper-bf16-fp32 --split-k 6 --workspace bf16
try dot --json -f bf16 -K 1024 -M hopper-bf16-fp32 --stream-k 5,16x16x32
try dot --json -f fp16 --a 0x3c00,0x4000 --b 1,2^-14 --c 0x1p-24 -M all --steps
try dot --json -f e5m2,e4m3 -s amax --a agrad:fc1 --b act:fc1 --transpose-a --transpose-b "$last/rank_00000.safetensors"
try dot --json --reduce --a 'wgrad:*' src/data/amp-mlp/sgd/step_000002/rank_00000.safetensors \
    src/data/amp-mlp/adam/step_000002/rank_00000.safetensors
for values in normal sink repeated; do
    about attention --json --values $values --tokens 60 -M all --causal
    about attention --json --values $values --tokens 60 -f e4m3 -M hopper-wgmma-fp8-fp32 --p-scale 256 --exp2 --reverse --sum-rounded
done
about attention --json --values repeated --tokens 60 -M hopper-bf16-fp32:result=bf16 --cure 2 --heads 4 --kv-heads 2 --reciprocal --window 9
about mismatch --json -a hopper-fp16-fp32 -b hopper-bf16-fp32
about mismatch --csv -a hopper-bf16-fp32,split=3,logits=bf16,softmax=bf16 -b fma
for net in mlp cnn gpt llama; do
    for policy in fp32 pytorch-amp-fp16 bf16-stochastic fp8-lm mxfp8-rceil nvfp4-pretraining deepseek-v3-fp8 coat-fp8-states; do
        try train --net $net --policy $policy --steps 2 --width 16 --batch 4 --json --digests out.digests
    done
done
for run in sgd:autocast adam:autocast adamw:adamw half:half; do
    try replay --json -P "src/data/amp-mlp/${run#*:}.yaml" "src/data/amp-mlp/${run%:*}"
done
for log in "$MPSIM_SRCDIR"/tests/logs/*.txt; do
    try scaler --json --log "src/${log#"$MPSIM_SRCDIR"/}"
done
for log in "$MPSIM_SRCDIR"/tests/logs/*.txt "$MPSIM_SRCDIR"/tests/logs/written/*.txt; do
    try log --json "src/${log#"$MPSIM_SRCDIR"/}"
done
runs=src/tests/logs/runs
for last_run in bf16-seed3 fp8-seed1; do
    try log --json $runs/bf16-seed1.txt $runs/bf16-seed2.txt $runs/$last_run.txt
done
try explain --json --list
try explain --json 'Attempting to unscale FP16 gradients'
try diff --json src/data/amp-mlp/adam src/data/amp-mlp/adamw
about diff --logprob --json -k weight src/data/amp-mlp/adam src/data/amp-mlp/adamw
about advise --json --policy-out out.yaml src/data/amp-mlp/adam
about advise --json --hold-back 3 "$cnn"
try report --no-figures -o out.html src/data/amp-mlp/adam
try report -f fp16,nvfp4 -k wgrad,agrad -o out.html "$cnn"
try memory --json --params 7000000000 --policy nvfp4-pretraining
echo "$n commands, $bytes bytes, $bad differ"
[ $bad = 0 ]
