#!/bin/sh
# cast.sh -- cast of whole files: any number of threads writes the same bytes, elements that stay binary32 on
# their way are cast as those that go through binary64, and files that cannot be read or written leave nothing; --explain (cast.md has what needs no shell).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# Tensors of several pieces: the bytes of traces, as if they were numbers; NaNs and subnormal ones among them.
cat "$MPSIM_SRCDIR"/data/charlm/step_*/* "$MPSIM_SRCDIR"/data/digits-cnn/step_*/* | head -c 1600004 >"$dir/raw"
head -c 5 "$dir/raw" >"$dir/odd"
cp "$(find "$MPSIM_SRCDIR/data/charlm" -name '*.safetensors' | sort | tail -n 1)" "$dir/file"

# same TARGET... : 1, 2 and 7 threads, and a pipe, write the same file
same() {
    run 0 cast -q --threads 1 "$@" -o "$dir/one.safetensors" || return 1
    for threads in 2 7; do
        run 0 cast -q --threads $threads "$@" -o "$dir/more.safetensors" &&
            cmp "$dir/one.safetensors" "$dir/more.safetensors" >"$dir/out" || return 1
    done
    "$MPSIM" cast -q --threads 3 "$@" -o - </dev/null 2>"$dir/err" | cmp - "$dir/one.safetensors" >"$dir/out"
}
turns 8
for to in '-f e4m3' '-f fp16 -s 2^10' '-f bf16 -r src --seed 3' '-f e2m1 --widen' '-f binary64 -s 3'; do
    for of in file 'raw --dtype binary32' 'raw --dtype fp16' 'raw --dtype e5m2' 'raw --dtype binary64 --offset 4' \
        'odd --dtype fp16 --offset 3 --shape 1 --big-endian'; do
        # shellcheck disable=SC2086 # words
        same $to ${of#"${of%% *}"} "$dir/${of%% *}"
        ok $? "any number of threads: cast $to of $of"
    done
done
turns 1

# The same numbers as binary64: a cast to a wider format changes none.
for source in $(turn binary32 bf16 fp16 e4m3 e5m2); do
    run 0 cast -q -f "$source@pytorch" --dtype "$source" -o "$dir/narrow.safetensors" "$dir/raw" &&
        run 0 cast -q -f binary64@pytorch -o "$dir/wide.safetensors" "$dir/narrow.safetensors"
    code=$?
    for to in '-f e4m3@cuda' '-f e5m2 -r sra:8 -s 0.3' '-f fp16@pytorch -r rtz' '-f bf16 -r src --seed 3' '-f e2m1 --widen' \
        '-f e8m0 -r rup' '-f e4m3 --widen -s 2^9 --flush-subnormals' '-f bf16@ml-dtypes' '-f binary32'; do
        # shellcheck disable=SC2086 # words
        run 0 cast -q $to -o "$dir/a.safetensors" "$dir/narrow.safetensors" &&
            run 0 cast -q $to -o "$dir/b.safetensors" "$dir/wide.safetensors" &&
            cmp "$dir/a.safetensors" "$dir/b.safetensors" >"$dir/out" || code=1
    done
    ok $code "from $source as from binary64"
done

# counts are those of stat
run 0 cast -f e4m3 --dtype binary32 -o "$dir/a.safetensors" "$dir/raw" && awk '/underflow|subnormal|overflow|inexact/ {
    gsub(",", "", $2); print $1, $2 }' "$dir/out" >"$dir/cast" &&
    run 0 stat -f e4m3 --dtype binary32 --csv "$dir/raw" && awk -F, 'NR == 2 {
    print "underflow", $(NF - 7); print "subnormal", $(NF - 6); print "overflow", $(NF - 5); print "inexact", $(NF - 4) }' \
    "$dir/out" >"$dir/stat" && cmp "$dir/cast" "$dir/stat" >"$dir/out"
ok $? "the counts of a cast are those of stat"

# codes that share bytes: the numbers of --widen, in as many bits as they have; a copy has the same bytes
for to in e2m1 e2m3 e3m2; do
    same -f $to "$dir/file" && run 0 cast -q -f $to --widen -o "$dir/wide.safetensors" "$dir/file" && run 1 diff "$dir/one.safetensors" "$dir/wide.safetensors" && has "^all values are equal, as $to in A and as binary32 in B" &&
        run 0 cast -q -f bf16 -m nothing -o "$dir/copy.safetensors" "$dir/one.safetensors" &&
        tail -c 4096 "$dir/copy.safetensors" >"$dir/a" && tail -c 4096 "$dir/one.safetensors" | cmp - "$dir/a" >"$dir/out" &&
        run 0 cast -q -f mxfp8 --keep 'opt*' -o "$dir/copy.safetensors" "$dir/one.safetensors" && run 0 diff -m 'opt.m:*' "$dir/one.safetensors" "$dir/copy.safetensors" && has '^Equal'
    ok $? "packed: $to"
done
head -c 12 "$dir/raw" >"$dir/three"
run 3 cast -f e2m1 --dtype binary32 -o "$dir/none" "$dir/three" && has 'tensor .tensor.: 3 elements of 4 bits do not end on a byte' err && [ ! -e "$dir/none" ]
ok $? "packed: what does not end on a byte"

run 3 cast -f e4m3 --dtype binary32 --offset 1600005 -o "$dir/none" "$dir/raw" && [ ! -e "$dir/none" ]
ok $? "nothing is written of what cannot be read"
if [ -e /dev/full ]; then
    run 4 cast -q -f binary64 --dtype binary32 -o /dev/full "$dir/raw"
    ok $? "a full disk is an error, whichever thread meets it"
fi

turns 8
# ---- --explain: numbers of the command line, by hand
# 0.1 lies 0.4 of 2^-14 above 1638 2^-14; 465 between 448 and 480, which E4M3 has not
run 0 cast --explain 0.1 -f fp16 && has '^  below  *0x2e66  *0.0999755859375 ' && has '^  above  *0x2e67  *0.10003662109375 ' &&
    has 'between  *0.4 of the way, in magnitude, in units of 2^-14' && has 'below the middle: toward zero$' && has '^  flags  *inexact$'
ok $? "0.1 as fp16"
run 0 cast --explain 1.5,nan,inf,-0 -f fp16 --json && has '"mpsim.cast-explain/1"' && has '"decision": "exact"' && has '"decision": "nothing to round"' &&
    has '"code": "0x7c00"' && has '"code": "0x8000"'; ok $? "what is not rounded; JSON"
run 0 cast --explain 1.5,0x3e00 --from fp16 -f bf16,mxfp4 --ndjson && [ "$(grep -c '^{"typed": ' "$dir/out")" -eq 2 ] && [ "$(grep -c '^{"recipe": "mxfp4"' "$dir/out")" -eq 1 ] &&
    run 2 cast --explain 1 -f bf16 --json --ndjson && has 'exclude each other' err && run 2 cast --ndjson -f bf16 -o "$dir/x.npy" "$dir/none.npy" && has "ndjson needs --explain" err
ok $? "--ndjson: a line for each number in a format, and for each recipe"
run 0 cast --explain 0.1 -f binary64 --json && has '"flags": \["inexact"\]' && has '"error": 5.55' && has '"typed": "0.1"'; ok $? "one tenth in binary64"
# 1 x 128: 448 / 6 = 74.67, cut down to 64
run 0 cast --explain 6,0.5 -f 1x128 && has 'cut down to a power of two' && has '^  elements  *times 64; codes stand for their value times 0.015625' && has '0x7c  *384  *6 '
ok $? "a block of 1 x 128"
run 0 cast --explain 3.5625,19 -f e3m2/1x7 --json && has '"scaled": 5.25,' && has '"scaled": 28.000001907' &&
    run 0 cast --explain 3.5625,19 -f e5m2/row --json && has '"scaled": 10752.0,'; ok $? "so do the recipes of any element, in JSON, too"
run 0 cast --explain 3.5625,19 -f nvfp4-1level --json && has '"scaled": 1.0961538553237915,'; ok $? "a product of binary32"
run 0 cast --explain "$(yes 1 | head -n 33 | tr '\n' ,)2" -f mxfp8 && has '^block 1$' && has '^  33  *2 '; ok $? "34 numbers are two blocks"
run 0 cast --explain 1,2 -f ms-amp -s 4 && run 0 cast --explain 1 -f nvfp4-sr --seed 3; ok $? "a scale so far; random bits"
list=$(sed -n '/^ \* mpsim_block_find\|^ \*   te-current /,/deepgemm-128x128/p' "$MPSIM_SRCDIR/lib/include/mpsim/block.h" | tr -d '*/')
for recipe in $list; do
    run 0 cast --explain 1,0.3,-2.5 -f "$recipe" && has "^$recipe: " && has '^  amax  *2.5$' || echo "$recipe"
done >"$dir/bad"
[ "$(echo "$list" | wc -w)" -ge 36 ] && [ ! -s "$dir/bad" ]; ok $? "every recipe"
run 0 cast --explain 1 -f fp16,mxfp4 --json -o "$dir/explained.json" && grep -q '"recipe": "mxfp4"' "$dir/explained.json"; ok $? "a format and a recipe, into a file"
run 0 cast -q -f bf16 -m act:fc1 -o "$dir/own.npy" "$MPSIM_SRCDIR/data/digits-cnn/step_000120" && run 0 info "$dir/own.npy" && has '<V2 *bf16 ' &&
    run 0 diff "$dir/own.npy" "$dir/own.npy"; ok $? "an npy file of bf16 that cast wrote needs no --assume"
printf '\223NUMPY\001\000\166\000%-117s\n\000\000\200\077' "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}" >"$dir/one.npy"
run 0 cast -f e2m1 -o "$dir/e2m1.npy" "$dir/one.npy" && has 'add .view(ml_dtypes.float4_e2m1fn)' && run 0 cast -f e3m2 -o "$dir/e3m2.npy" "$dir/one.npy" &&
    has 'ml_dtypes.float6_e3m2fn)' && run 0 cast -f binary8p3se -o "$dir/p3.npy" "$dir/one.npy" && has 'ml_dtypes has no such type'
ok $? "types that ml_dtypes has"
# X.codes: 2 of E4M3, X.exponents: one of E8M0; with the names of DeepSeek-V4 they are one tensor of 1 and 1, times 2
bare='{"X.codes":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[0,2]},"X.exponents":{"dtype":"F8_E8M0","shape":[1,1],"data_offsets":[2,3]}}'
# shellcheck disable=SC2059 # octal
{ printf "\\$(printf '%03o' ${#bare})\\0\\0\\0\\0\\0\\0\\0"; printf '%s' "$bare"; printf '\070\070\200'; } >"$dir/bare.safetensors"
run 0 cast -f bf16 -o "$dir/bare.out.safetensors" "$dir/bare.safetensors"; has 'E8M0 in no known layout' err; ok $? "bug_20261123_bare_codes"
run 0 cast -f bf16 -m X.codes -o "$dir/bare.out.safetensors" "$dir/bare.safetensors"; has 'E8M0 in no known layout' err; ok $? "nor where the scales are left out"
v4=$(printf '%s' "$bare" | sed 's/X.codes/X.weight/; s/X.exponents/X.scale/')
# shellcheck disable=SC2059 # octal
{ printf "\\$(printf '%03o' ${#v4})\\0\\0\\0\\0\\0\\0\\0"; printf '%s' "$v4"; printf '\070\070\200'; } >"$dir/v4.safetensors"
run 0 cast -f bf16 -o "$dir/v4.npy" "$dir/v4.safetensors" && [ "$(tail -c 4 "$dir/v4.npy" | od -A n -t x2)" = " 4000 4000" ]; ok $? "DeepSeek-V4: dequantised"
# ONNX: w of two floats, and v whose data are in a file that is not there
printf '\010\010\072\061\052\021\010\002\020\001\102\001w\112\010\0\0\200?\0\0\0@\052\034\010\002\020\001\102\001v\160\001\152\021\012\010location\022\005v.bin\102\002\020\021' >"$dir/v.onnx"
"$MPSIM" cast -f bf16 -o "$dir/v.safetensors" "$dir/v.onnx" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has "1 tensor left out, for which there are no data, as 'v' of dtype F32: its data" err && has "^mpsim: cast: the output lacks 1 tensor: 'v' of F32" err
ok $? "bug_20261127_a_cast_lacks_tensors"
"$MPSIM" cast -f bf16 --only -o "$dir/v.safetensors" "$dir/v.onnx" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has "1 tensor left out, for which there are no data" err
ok $? "bug_20261127_tensors_whose_data_are_not_there"
finish
