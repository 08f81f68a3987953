#!/bin/sh
# same.sh OURS THEIRS: whether two builds of mpsim write the same bytes and end with the same exit codes. MPSIM_SRCDIR is
# the source tree. THEIRS may be a script that runs a program of another machine. Of decibels, which are log10 of the C
# library, twelve digits are compared.
set -u
[ $# = 2 ] || { echo "usage: same.sh OURS THEIRS" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export MPSIM_POLICIES="$MPSIM_SRCDIR/data/policies"
n=0 bad=0 bytes=0
# try WORDS...: the command on both, each in a folder of its own; what it prints and what it writes to out* is compared
try() {
    n=$((n + 1))
    for side in ours theirs; do
        mkdir "$folder/$side"
        program=$ours
        [ $side = ours ] || program=$theirs
        (cd "$folder/$side" && ln -s "$MPSIM_SRCDIR" src && cp -r "$folder"/kept/. . &&
            "$program" "$@" >stdout 2>stderr; echo $? >code
            sed -i 's/\(_db": -\{0,1\}[0-9.]\{13\}\)[0-9]*/\1/g' stdout)
    done
    if ! diff -r "$folder/ours" "$folder/theirs" >"$folder/differs" 2>&1 --exclude=src; then
        bad=$((bad + 1))
        echo "differs: mpsim $*"
        cut -c 1-200 "$folder/differs" | sed -n 's/^/    /;1,6p'
    fi
    case $(cat "$folder/ours/code") in 0 | 1) ;; *) echo "fails on both: mpsim $*: $(head -n 1 "$folder/ours/stderr")" ;; esac
    bytes=$((bytes + $(cat "$folder"/ours/stdout "$folder"/ours/out* 2>/dev/null | wc -c)))
    rm -rf "$folder/kept.next"
    mkdir "$folder/kept.next"
    for out in "$folder"/ours/out*; do
        [ ! -e "$out" ] || cp -r "$out" "$folder/kept.next"
    done
    cp -r "$folder"/kept.next/. "$folder"/kept
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
try dot --json -f e4m3 -K 512 -M all
try dot --json -f fp16 -K 64,1024 --values normal
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
try memory --json --params 7000000000 --policy nvfp4-pretraining
echo "$n commands, $bytes bytes, $bad differ"
[ $bad = 0 ]
