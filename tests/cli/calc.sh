#!/bin/sh
# calc.sh -- mpsim calc on files. What it prints about numbers: calc.md.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# ---- files ----
# array FILE ORDER WORDS: an npy of binary32, 2 by 3, of words as od prints them
array() {
    header="{'descr': '<f4', 'fortran_order': $2, 'shape': (2, 3), }"
    printf '\223NUMPY\001\000v\000%-117s\n' "$header" >"$1"
    for x in $3; do
        x=$((0x$x))
        printf %b "$(printf '\\0%03o\\0%03o\\0%03o\\0%03o' $((x & 255)) $((x >> 8 & 255)) $((x >> 16 & 255)) $((x >> 24)))" >>"$1"
    done
}
words() { tail -c +129 "$1" | od -An -v -t"x$2" | tr -s ' \n' ' '; }
array "$dir/a.npy" False '3f800001 bf800000 40490fdb 00000001 7f7fffff ff800000'
array "$dir/b.npy" False '3f333333 40000000 c0490fdb 80000001 7f7fffff 7fc00000'
array "$dir/columns.npy" True '3f333333 80000001 40000000 7f7fffff c0490fdb 7fc00000' # the same numbers
run 0 calc fma "$dir/a.npy" -0.3 "$dir/b.npy" -f fp16 --operands binary32 -r up -o "$dir/c.npy" && has 'fma of 1 tensor, 6 elements, as fp16$'
ok $? "files: fma"
for x in '0x1.000002p0 0x1.666666p-1' '-1 2' '0x1.921fb6p+1 -0x1.921fb6p+1' '0x1p-149 -0x1p-149' '0x1.fffffep127 0x1.fffffep127' '-inf nan'; do
    run 0 calc fma ${x% *} -0.3 ${x#* } -f fp16 --operands binary32 -r up --json || echo failed
    sed -n 's/.*"code": "0x\([0-9a-f]*\)".*/\1/p' "$dir/out"
done | tr '\n' ' ' >"$dir/codes"
words "$dir/c.npy" 2 | sed 's/^ //' | cmp - "$dir/codes" >"$dir/err" 2>&1; ok $? "files: every element is what numbers give"
run 0 calc fma "$dir/a.npy" -0.3 "$dir/columns.npy" -f fp16 --operands binary32 -r up -o "$dir/d.npy" && cmp "$dir/c.npy" "$dir/d.npy" >"$dir/err" 2>&1
ok $? "files: one that is stored by columns meets one by rows"
# 0.3 and 0.1 lie between numbers of binary64: elements as stored, decimals as typed, rounded once
for options in '4 -f binary32' '2 -f fp16 -r up' '8 -f binary64 -r rtz' '2 -f bf16 --operands bf16'; do
    # shellcheck disable=SC2086 # words
    run 0 calc fma "$dir/a.npy" 0.3 0.1 ${options#? } -o "$dir/c.npy" && words "$dir/c.npy" ${options%% *} | sed 's/^ //' >"$dir/got" &&
        for x in 0x1.000002p0 -1 0x1.921fb6p+1 0x1p-149 0x1.fffffep127 -inf; do
            run 0 calc fma $x 0.3 0.1 ${options#? } --json && sed -n 's/.*"code": "0x\([0-9a-f]*\)".*/\1/p' "$dir/out"
        done | tr '\n' ' ' | cmp - "$dir/got" >"$dir/err" 2>&1
    ok $? "files: decimals, $options"
done
run 0 calc exp "$dir/a.npy" -f e5m2 -o "$dir/e.npy" && [ "$(words "$dir/e.npy" 1)" = ' 41 36 4e 3c 7c 00 ' ]; ok $? "files: a function, of elements as they are stored" # e^pi = 23.14
step=$MPSIM_SRCDIR/data/charlm/step_000100
one=$(ls "$step"/* | head -n 1)
for options in '-f bf16' '-f fp16 -r sr --seed 5' '-f e4m3@cuda'; do
    # shellcheck disable=SC2086 # words
    run 0 calc mul "$one" 1 --operands binary32 $options -o "$dir/product" && run 0 cast $options -o "$dir/cast" "$one" &&
        run 0 diff "$dir/product" "$dir/cast"
    ok $? "files: times 1 is a cast, random bits included: $options"
done
run 0 calc sub "$one" "$one" -f binary32 -o "$dir/zeros" && run 0 stat --json "$dir/zeros" && ! has '"amax": [^0]'; ok $? "files: every tensor minus itself"
run 3 calc add "$one" "$dir/a.npy" -f fp16 -o "$dir/x" && has "no tensor '.*', which .* has" err; ok $? "files: a tensor that the other has not"
array "$dir/small.npy" False '3f800000 3f800000'
sed -i 's/(2, 3)/(1, 2)/' "$dir/small.npy"
run 3 calc add "$dir/a.npy" "$dir/small.npy" -f fp16 -o "$dir/x" && has 'another shape' err; ok $? "files: another shape"
run 2 calc add "$dir/a.npy" 1 -f fp16 && has 'output FILE' err; ok $? "files: without -o"
run 2 calc add "$dir/a.npy" 1 -o "$dir/x" && has 'one format' err && run 2 calc add "$dir/a.npy" 1 -f fp16,bf16 -o "$dir/x" && has 'one format' err
ok $? "files: one format"
run 2 calc add "$dir/a.npy" 1 -f fp16 --json -o "$dir/x" && has 'for numbers' err; ok $? "files: no JSON"
run 2 calc add "$dir/a.npy" 1 -f fp16 -o "$dir/a.npy" && has 'an input' err; ok $? "files: an input is not replaced"
run 2 calc add "$one" 1 -f fp16 -o "$dir/x.npy" && has 'holds one array' err && [ ! -e "$dir/x.npy" ]; ok $? "files: npy holds one array"
run 2 calc add "$dir/a.npy" 1 -f e2m1 -o "$dir/x" && has 'no dtype' err; ok $? "files: a format without a dtype"
run 4 calc add "$dir/none.npy" 1 -f fp16 -o "$dir/x"; ok $? "files: no file"
header='{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"z":{"dtype":"C64","shape":[1],"data_offsets":[8,16]}}'
# shellcheck disable=SC2059 # octal
{ printf "\\$(printf %03o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; head -c 16 /dev/zero; } >"$dir/complex.safetensors"
"$MPSIM" calc add "$dir/complex.safetensors" 1 -f fp16 -o "$dir/c.safetensors" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && one_line && has "^mpsim: calc: the output lacks 1 tensor: 'z' of C64 (complex numbers)$" err; ok $? "files: a result that lacks numbers is not whole"
finish
