#!/bin/sh
# wholecast.sh -- what cast does not cast is copied as it is stored, whatever the layout: integers, what is not selected,
# codes with their scales. A folder is cast file by file, and the index of its files is true.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# safetensors FILE HEADER DATA: DATA as printf has it
safetensors() {
    header=$(printf '%s' "$2" | wc -c)
    # shellcheck disable=SC2059 # octal
    { printf "\\$(printf '%03o' $((header % 256)))\\$(printf '%03o' $((header / 256)))\\0\\0\\0\\0\\0\\0"; printf '%s' "$2"; printf "$3"; } >"$1"
}
header() { tail -c +9 "$1" | head -c "$(od -A n -t u4 -N 4 "$1" | tr -d ' ')"; }
data() { tail -c +$((9 + $(od -A n -t u4 -N 4 "$1" | tr -d ' '))) "$1" | od -A n -v -t x1 | tr -d ' \n'; }
holds() { # holds FILE TEXT...
    file=$1
    shift
    header "$file" >"$dir/out"
    for text in "$@"; do grep -qF -- "$text" "$dir/out" || { echo "no $text" >"$dir/err"; return 1; }; done
}

# ---- a packed file, in which no element can be found by its place
real=$MPSIM_SRCDIR/data/digits-cnn/step_020000/rank_00000.safetensors
gzip -c "$real" >"$dir/packed.safetensors.gz"
run 0 cast -f e4m3 -m 'weight:*' -o "$dir/plain.safetensors" "$real" &&
    run 0 cast -f e4m3 -m 'weight:*' -o "$dir/unpacked.safetensors" "$dir/packed.safetensors.gz" &&
    has '33 tensors of 91,972 elements copied$' && cmp -s "$dir/plain.safetensors" "$dir/unpacked.safetensors"
ok $? "packed: cast and copied as they come"

model="$dir/model.safetensors"
safetensors "$model" '{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"ids":{"dtype":"I64","shape":[1],"data_offsets":[8,16]},"c":{"dtype":"C64","shape":[1],"data_offsets":[16,24]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[24,26]},"m":{"dtype":"BOOL","shape":[2],"data_offsets":[26,28]},"p":{"dtype":"F4","shape":[4],"data_offsets":[28,30]}}' \
    '\000\000\200\077\000\000\000\300\001\002\003\004\005\006\007\010\021\022\023\024\025\026\027\030\200\077\001\000\041\042'
out="$dir/out.safetensors"
run 0 cast -f fp16 -m w -o "$out" "$model" && has '1 tensor, 2 elements as fp16; 5 tensors of 9 elements copied$' &&
    holds "$out" '"ids":{"dtype":"I64","shape":[1]' '"c":{"dtype":"C64","shape":[1]' '"b":{"dtype":"BF16"' '"m":{"dtype":"BOOL"' '"p":{"dtype":"F4","shape":[4]' '"w":{"dtype":"F16"' &&
    [ "$(data "$out")" = 01020304050607081112131415161718003c00c0803f01002122 ]
ok $? "a format: the model stays whole, wide elements first"
run 0 cast -f mxfp8 -o "$out" "$model" && has '1 tensor, 2 elements as mxfp8 in the layout plain; 2 as they are; 3 tensors of 4 elements copied$' &&
    holds "$out" '"ids":{"dtype":"I64"' '"p":{"dtype":"F4","shape":[4]' '"w.scale"' && data "$out" | grep -q '^01020304050607081112131415161718803f.*01002122$'
ok $? "a recipe"
run 0 cast -f fp16 --only -m w -o "$out" "$model" && has '; 5 tensors of 9 elements left out$' && [ "$(data "$out")" = 003c00c0 ]; ok $? "--only"
"$MPSIM" cast -f mxfp8 --only -o "$out" "$model" >"$dir/out" 2>"$dir/err" && has 'without floating-point numbers left out' err && holds "$out" '"b":{"dtype":"BF16"' &&
    ! header "$out" | grep -q ids
ok $? "--only, a recipe: without integers"
run 0 cast -f fp16 -m w -o "$dir/w.npy" "$model" && has '; 5 tensors of 9 elements left out$'; ok $? "npy has the selection"

# Big-endian and column-major: [[1, 2, 3], [4, 5, 6]] of 16 bits.
npy() { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': True, 'shape': (2, 3)}"; printf '\000\001\000\004\000\002\000\005\000\003\000\006'; }
npy '>i2' >"$dir/F.npy"
run 0 cast -f bf16 -o "$out" "$dir/F.npy" && holds "$out" '"tensor":{"dtype":"I16","shape":[2,3]' && [ "$(data "$out")" = 010002000300040005000600 ]
ok $? "integers of npy, in rows"
pt="$MPSIM_SRCDIR/tests/trace/torch/torch-2.6.0/train.zip.pt"
"$MPSIM" cast -f bf16 -m nothing -o "$out" "$pt" >"$dir/out" 2>"$dir/err" && run 0 diff "$pt" "$out" && has '^Equal'
ok $? "PyTorch: a copy is equal"

# Codes and scales that are not cast: as they were, and read as they were.
f=$(find "$MPSIM_SRCDIR/data/charlm" -name '*.safetensors' | sort | tail -n 1)
run 0 cast -q --only -f nvfp4 --scale-order swizzled --rht 16 -m 'weight:blocks.0.fc1.*' -o "$dir/q.safetensors" "$f" &&
    "$MPSIM" cast -f bf16 -m '*bias' -o "$out" "$dir/q.safetensors" >"$dir/out" 2>"$dir/err" && has '1 tensor, 128 elements as bf16; 1 tensor of 4,096 elements copied' &&
    "$MPSIM" stat --csv -m '*weight' "$dir/q.safetensors" 2>"$dir/err" | cut -d , -f 3- >"$dir/a" && "$MPSIM" stat --csv -m '*weight' "$out" 2>"$dir/err" | cut -d , -f 3- >"$dir/b" &&
    [ "$(wc -l <"$dir/a")" -ge 5 ] && cmp "$dir/a" "$dir/b" >"$dir/out"
ok $? "codes and scales, swizzled and behind a transform"

packed="$MPSIM_SRCDIR/tests/trace/quantised/packed.safetensors"
run 0 cast -f bf16 -m nothing -o "$out" "$packed" && run 0 info "$out" && has 'quantised: 16 tensors, 20.4 KiB' && run 0 diff "$packed" "$out" && has '^Equal: 16 tensors'
ok $? "packed integers: the same parts"
gguf="$MPSIM_SRCDIR/tests/trace/recorded/little.gguf"
"$MPSIM" cast -f bf16 -m nothing -o "$out" "$gguf" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has 'the output lacks 9 tensors: .blk.0.Q8_1. of Q8_1' err && has 'left out, for which safetensors has no dtype, as .blk.0.Q8_1. of dtype Q8_1' err &&
    run 0 info "$out" && has 'blk.0.Q4_K .* F32 '
ok $? "blocks of GGUF: the numbers that they stand for"

# ONNX: graphs within graphs, and elements of every type, a third of them in a file beside the model.
recorded="$MPSIM_SRCDIR/tests/trace/recorded"
run 0 cast -f binary32 -o "$out" "$recorded/graphs.onnx" && has '12 tensors, 60 elements as binary32; 3 tensors of 6 elements copied$' &&
    run 0 diff "$recorded/graphs.onnx" "$out" && has '^Equal: 15 tensors'
ok $? "bug_20261127: weights of ONNX that are no initialisers are not dropped"
cp "$recorded/types.onnx" "$dir/alone.onnx"
run 3 cast -f bf16 -m nothing -o "$out" "$recorded/types.onnx" && has "tensor 'FLOAT6E2M3.numbers': 5 elements of 6 bits do not end on a byte" err
ok $? "five codes of six bits cannot be copied, and the error says so"
partial() { # partial ARGUMENTS...: a cast that says what the output lacks
    "$MPSIM" cast -f bf16 -m 'FLOAT[46]*' -o "$out" "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq 5 ]
}
partial "$recorded/types.onnx" && has '9 tensors, 45 elements as bf16; 57 tensors of 285 elements copied$' &&
    has "note: 16 tensors left out, for which safetensors has no dtype, as 'COMPLEX128.numbers' of dtype COMPLEX128" err && ! has 'there are no data' err &&
    run 0 diff -m 'FLOAT8*' -m 'FLOAT16*' "$recorded/types.onnx" "$out" && has '^Equal: 18 tensors' &&
    partial "$dir/alone.onnx" && has "note: 27 tensors left out, for which there are no data, as 'FLOAT.beside' of dtype F32: its data are in 'types.onnx.data', which is not there" err &&
    has "note: 11 tensors left out, for which safetensors has no dtype" err
ok $? "bug_20261127: ONNX, every type: what is left out, and why"

# A folder, with an index.
mkdir "$dir/in" "$dir/in/sub"
cp "$model" "$dir/in/sub/x.safetensors"
npy '<i2' >"$dir/in/F.npy"
safetensors "$dir/in/model-1-of-2.safetensors" '{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}' '\000\000\200\077\000\000\000\300'
safetensors "$dir/in/model-2-of-2.safetensors" '{"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"n":{"dtype":"I32","shape":[1],"data_offsets":[8,12]}}' '\000\000\200\077\000\000\000\300\001\000\000\000'
echo '{"metadata":{"total_size":20},"weight_map":{"a":"model-1-of-2.safetensors","b":"model-2-of-2.safetensors","n":"model-2-of-2.safetensors"}}' >"$dir/in/model.safetensors.index.json"
run 0 cast -f nvfp4 --scale-order swizzled -o "$dir/folder" "$dir/in" && [ "$(cd "$dir/folder" && find . -type f | sort | tr '\n' ' ')" = \
    './F.npy.safetensors ./model-1-of-2.safetensors ./model-2-of-2.safetensors ./model.safetensors.index.json ./sub/x.safetensors ' ] &&
    grep -q '"b.tensor_scale": "model-2-of-2.safetensors"' "$dir/folder/model.safetensors.index.json" &&
    grep -q '"n": "model-2-of-2.safetensors"' "$dir/folder/model.safetensors.index.json" &&
    run 0 info "$dir/folder/model.safetensors.index.json" && has '3 tensors' && has 'quantised: 2 tensors' && run 0 stat --csv -f bf16 -m '[ab]' "$dir/folder/model.safetensors.index.json" &&
    sed -n 's/^tensor,[^,]*,[ab],//p' "$dir/out" >"$dir/b" && [ "$(wc -l <"$dir/b")" -eq 2 ] && [ "$(sort -u <"$dir/b" | wc -l)" -eq 1 ]
ok $? "a folder: each file under its name, and an index of what they hold"
run 0 cast -q -f bf16 -o "$dir/two/" "$model" "$dir/F.npy" && [ -e "$dir/two/model.safetensors" ] && [ -e "$dir/two/F.npy.safetensors" ]; ok $? "files into a folder"
run 2 cast -f bf16 -o "$dir/two" "$model" "$dir/in/sub/x.safetensors" "$dir/folder/sub/x.safetensors" && has 'two files would be written' err; ok $? "two of one name"
run 2 cast -f bf16 -o - "$model" "$dir/F.npy" && has 'name a folder' err; ok $? "several files into a pipe"
run 2 cast -f bf16 -o "$dir/in" "$dir/in" && has 'replace' err && [ ! -e "$dir/in/F.npy.safetensors" ]; ok $? "no input is replaced, and nothing is written"
run 4 cast -f bf16 -o "$model/below/" "$model"; ok $? "a folder that cannot be made"
finish
