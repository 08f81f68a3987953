#!/bin/sh
# quantised.sh -- cast under block recipes: any number of threads, and a pipe, give the same file; what is no matrix
# stays; recipes that a layout has no place for, shapes that its blocks do not divide, words that do not go together: one
# line, and nothing is written. The bytes: tests/quant.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
f=$(find "$MPSIM_SRCDIR/data/charlm" -name '*.safetensors' | sort | tail -n 1)
cat "$MPSIM_SRCDIR"/data/charlm/step_*/* | head -c 737280 >"$dir/raw" # 384 x 480 numbers, NaNs among them
head -c 589824 "$dir/raw" >"$dir/square" # 384 x 384

same() { # same OPTION...: 1, 2 and 7 threads, and a pipe, write the same file
    run 0 cast -q --threads 1 "$@" -o "$dir/one.safetensors" || return 1
    for threads in 2 7; do
        run 0 cast -q --threads $threads "$@" -o "$dir/more.safetensors" &&
            cmp "$dir/one.safetensors" "$dir/more.safetensors" >"$dir/out" || return 1
    done
    "$MPSIM" cast -q --threads 3 "$@" -o - </dev/null 2>"$dir/err" | cmp - "$dir/one.safetensors" >"$dir/out"
}
turns 4
for to in '-f mxfp8:rceil' '-f nvfp4 --scale-order swizzled' '-f mxfp6-e3m2 --axis columns' '-f nvfp4:sr --seed 3' \
    '-f e4m3/128x128:ue8m0' '-f mxfp4 --rht 32 --seed 5' '-f nvfp4:rht --widen' '-f e5m2/tensor --axis columns'; do
    # shellcheck disable=SC2086 # words
    {
        same $to "$f"; ok $? "any number of threads: cast $to"
        for of in 'binary32 --shape 384,480' 'fp16 --shape 768,480' 'e5m2 --shape 768,960'; do
            same $to --dtype $of "$dir/raw"; ok $? "any number of threads: cast $to of $of"
        done
    }
done
for to in '-f mxfp8 --quantised te' '-f mxfp8 --quantised te --axis columns' '-f nvfp4:2d --quantised te --axis columns' \
    '-f nvfp4-torchao --quantised modelopt' '-f nvfp4 --quantised compressed-tensors' '-f mxfp4 --quantised gpt-oss' \
    '-f e4m3/128x128 --quantised deepseek' '-f te-block-1x128 --quantised te'; do
    # shellcheck disable=SC2086 # words
    same $to --dtype binary32 --shape 384,384 "$dir/square"
    ok $? "any number of threads: cast $to"
done

# What --widen writes is what the owner of a layout makes of its codes: values read back are the same.
values() { # values FILE: the bytes of its numbers
    tail -c +$((9 + $(od -A n -t u4 -N 4 "$1"))) "$1"
}
turns 5
for to in 'nvfp4 te' 'nvfp4:sr te' 'nvfp4:2d te' 'nvfp4-torchao torchao' 'nvfp4-torchao modelopt' 'mxfp8 te' 'mxfp4 gpt-oss'; do
    run 0 cast -q -f "${to% *}" --quantised "${to#* }" -m 'weight:*fc1.weight' --only -o "$dir/q.safetensors" "$f" &&
        run 0 cast -q -f binary32 -o "$dir/back.safetensors" "$dir/q.safetensors" &&
        run 0 cast -q -f "${to% *}" --widen -m 'weight:*fc1.weight' --only -o "$dir/wide.safetensors" "$f" &&
        values "$dir/back.safetensors" >"$dir/one" && values "$dir/wide.safetensors" | cmp - "$dir/one" >"$dir/out" &&
        [ "$(wc -c <"$dir/one")" -eq 32768 ]
    ok $? "--widen gives what is read back: $to"
done

# Names, shapes and dtypes of the parts; a bias stays as it is.
header() { tail -c +9 "$dir/q.safetensors" | head -c "$(od -A n -t u4 -N 4 "$dir/q.safetensors" | tr -d ' ')"; }
parts() { # parts PART...: the header has them
    header >"$dir/out"
    for text in "$@"; do grep -qF -- "$text" "$dir/out" || { echo "no $text" >"$dir/err"; return 1; }; done
}
weights() { run 0 cast -q --only -m 'weight:blocks.0.fc1.*' "$@" -o "$dir/q.safetensors" "$f"; } # 128 x 32, and a bias
weights -f mxfp8:rceil && parts '"weight:blocks.0.fc1.weight":{"dtype":"F8_E4M3","shape":[128,32]' \
    '"weight:blocks.0.fc1.weight.scale":{"dtype":"F8_E8M0","shape":[128,1]' '"weight:blocks.0.fc1.bias":{"dtype":"F32","shape":[128]' \
    '"mpsim.quantised.weight:blocks.0.fc1.weight":"{\"layout\":\"plain\",\"recipe\":\"mxfp8:rceil\",\"element\":\"e4m3\",\"scale\":\"e8m0\",\"shape\":[128,32],\"block\":[1,32],' \
    '"mpsim.cast.recipe":"mxfp8:rceil"' '"mpsim.step"'
ok $? "plain: mxfp8"
weights -f nvfp4 --scale-order swizzled && parts '.weight":{"dtype":"U8","shape":[128,16]' '.weight.scale":{"dtype":"F8_E4M3","shape":[32,16]' \
    '.weight.tensor_scale":{"dtype":"F32","shape":[]' '\"scales\":\"swizzled\",\"tensor_scale\":\"multiply\"'
ok $? "plain: nvfp4, swizzled"
weights -f mxfp6-e2m3 --axis columns --rht 64 && parts '.weight":{"dtype":"U8","shape":[128,24]' '.weight.scale":{"dtype":"F8_E8M0","shape":[4,32]' \
    '\"axis\":\"columns\",\"packing\":\"sixes\"' '\"transform\":64' '"mpsim.cast.seed":"0"' '"mpsim.cast.recipe":"mxfp6-e2m3:rht64"'
ok $? "plain: mxfp6 along columns, transformed"
weights -f nvfp4-torchao --quantised torchao && parts '"weight:blocks.0.fc1._weight_qdata":{"dtype":"U8","shape":[128,16]' \
    '"weight:blocks.0.fc1._weight_scale":{"dtype":"F8_E4M3","shape":[128,2]' '"weight:blocks.0.fc1._weight_per_tensor_scale":{"dtype":"F32","shape":[]' \
    '\"_type\": \"NVFP4Tensor\"' '"weight:blocks.0.fc1.bias":"{\"_type\": \"Tensor\"}"' '"tensor_names":"[\"weight:blocks.0.fc1.bias\", \"weight:blocks.0.fc1.weight\"]"'
ok $? "torchao: nvfp4"
weights -f nvfp4 --quantised compressed-tensors && parts '.weight_packed":{"dtype":"U8","shape":[128,16]' '.weight_scale":{"dtype":"F8_E4M3","shape":[128,2]' \
    '.weight_global_scale":{"dtype":"F32","shape":[1]'
ok $? "compressed-tensors: nvfp4"
weights -f e4m3/128x128:ue8m0 --quantised deepseek && parts '.weight_scale_inv":{"dtype":"F32","shape":[1,1]'
ok $? "deepseek, with scales that are powers of two"
# what a file said of its codes does not outlive them
weights -f mxfp8 --quantised torchao && cp "$dir/q.safetensors" "$dir/codes.safetensors" && header | grep -q tensor_names &&
    run 0 cast -q -f bf16 -o "$dir/q.safetensors" "$dir/codes.safetensors" && parts '"mpsim.cast.format":"bf16"' &&
    ! header | grep -q 'tensor_names\|mpsim.quantised\|_type'
ok $? "metadata of codes go with them"
weights -f mxfp8 --keep '*fc1.w*' --keep none -m 'weight:head.weight' && parts '.fc1.weight":{"dtype":"F32","shape":[128,32]' '"weight:head.weight.scale"'
ok $? "--keep"
run 0 cast -f e4m3/128x128 -k weight -o "$dir/q.safetensors" "$f" && has 'tensors, .* elements as e4m3/128x128 in the layout plain; [0-9]* as they are; 122 tensors of 203,008 elements copied$' &&
    run 0 cast -q -f mxfp4 --widen -m weight:head.weight -o "$dir/q.npy" "$f" && [ "$(wc -c <"$dir/q.npy")" -gt 4000 ]
ok $? "a summary; values as npy"

# Values are what --explain says.
turns 1
printf '\315\314\314\075\000\000\100\300\012\327\243\074\000\000\000\000' >"$dir/four" # 0.1 -3 0.02 0
run 0 cast -q -f mxfp8 --widen --dtype binary32 --shape 1,4 -o "$dir/q.npy" "$dir/four" &&
    [ "$(tail -c 16 "$dir/q.npy" | od -A n -t x4 | tr -d '\n')" = " 3dd00000 c0400000 3ca00000 00000000" ] # 0.1015625 -3 0.01953125 0
ok $? "a block of mxfp8 as --explain has it"

# Sixteen ones: the signs of TransformerEngine add up to 6 - 10 in the first place of the transform, a quarter of which is -1.
run 0 cast --explain 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 -f mxfp8:rceil:rht && has '^mxfp8:rceil:rht16: e4m3 in blocks of 1 x 32$' &&
    has '^  transform  Hadamard, of groups of 16: x is what it gives$' && has '^ *0  *-1  *-128  *0xf0  *-128  *-1  *0' &&
    run 0 cast --explain 1 -f e4m3/128x128:ue8m0,nvfp4:2d --json && has '"recipe": "e4m3/128x128:ue8m0"' && has '"recipe": "nvfp4:2d"' &&
    run 2 cast --explain 1 -f mxfp8:up && has '"up" is not a word of this recipe; its words are floor even' err
ok $? "--explain knows the words of recipes"

run 2 cast -f mxfp8 --rht 17 -o "$dir/none" "$f" && has '^mpsim: cast: --rht is 16, 32, 64 or 128, not 17$' err; ok $? "--rht: what there is"

# Nothing is written.
turns 4
for words in '2 -f mxfp8 --quantised gpt-oss' '2 -f nvfp4 --quantised deepseek' '2 -f mxfp8 --quantised torchao --axis columns' \
    '2 -f mxfp8 --quantised nowhere' '2 -f mxfp8 --scale-order other' '2 -f mxfp8 --axis depth' '2 -f mxfp8 --rht 17' \
    '2 -f mxfp8:rht --rht 32' '2 -f mxfp8:rceil:floor' '2 -f e4m3/0x1' '2 -f mxfp8 -s 2' '2 -f mxfp8 -r up' '2 -f mxfp8 --widen --quantised te' \
    '2 -f e4m3/1x32 --scale-order swizzled' '2 -f mxfp8 --quantised modelopt --scale-order swizzled' '2 -f e4m3 --quantised plain' \
    '2 -f e4m3 --keep x' '2 -f e4m3 --axis rows' '2 -f mxfp8 --to npy' '2 -f mxfp8,mxfp4' '3 -f nvfp4 --quantised torchao -m act:blocks.0.attn.softmax' \
    '3 -f e4m3/128x128 --quantised deepseek -k act' '3 -f mxfp8 --quantised te -m act:lnf' '3 -f mxfp8 -m *.bias'; do
    set -f
    # shellcheck disable=SC2086 # words
    set -- $words
    set +f
    rm -f "$dir/none"
    code=$1
    shift
    run "$code" cast "$@" -o "$dir/none" "$f" && [ ! -e "$dir/none" ]
    ok $? "refused: cast $*"
done
run 3 cast -f nvfp4 --quantised torchao -m act:blocks.0.attn.softmax -o "$dir/none" "$f" &&
    has "tensor 'act:blocks.0.attn.softmax' of shape \[3, 2, 20, 20\] under nvfp4: layout torchao does not hold blocks of 4 dimensions" err
ok $? "what has no place is named"
run 3 cast -f mxfp8 --quantised te -m act:lnf -o "$dir/none" "$f" &&
    has "tensor 'act:lnf' of shape \[3, 20, 32\] under mxfp8: its 60 rows are not a multiple of 32, as blocks of 1x32 of te need" err
ok $? "sides that the blocks do not divide"
if [ -e /dev/full ]; then
    run 4 cast -q -f mxfp8 -o /dev/full "$f"
    ok $? "a full disk"
fi
# GPTQ: zeros of 8 in a file that is read as version 1, and of 7
gptq() { # gptq ZEROS: the octal byte of two of them
    head='{"a.qweight":{"dtype":"I32","shape":[1,8],"data_offsets":[0,32]},"a.qzeros":{"dtype":"I32","shape":[1,1],"data_offsets":[32,36]},"a.scales":{"dtype":"F16","shape":[1,8],"data_offsets":[36,52]}}'
    printf "\\$(printf %03o ${#head})\\0\\0\\0\\0\\0\\0\\0%s" "$head"
    head -c 32 /dev/zero
    printf "\\$1\\$1\\$1\\$1"
    for _ in 1 2 3 4 5 6 7 8; do printf '\0\074'; done
}
gptq 210 >"$dir/v2.safetensors" && gptq 167 >"$dir/v1.safetensors"
"$MPSIM" stat -f fp16 "$dir/v2.safetensors" >"$dir/out" 2>"$dir/err" && has "note: .*'a.qzeros' holds 8, which GPTQ's version 1 reads as the zero 9; version 2 fits symmetric weights: --stored gptq-v2$" err &&
    run 0 stat -f fp16 --stored gptq-v2 "$dir/v2.safetensors" && run 0 stat -f fp16 "$dir/v1.safetensors"
ok $? "bug_20261127_zeros_of_8_fit_version_2"
finish
