#!/bin/sh
# calc.sh -- mpsim calc: known results, flags, presets, negative numbers, bad input.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# gives NAME PATTERN WORD...: the row of the result has the pattern
gives() {
    name=$1 pattern=$2
    shift 2
    run 0 calc "$@" && has "$pattern"
    ok $? "$name"
}
gives "1/3 in fp16" '^fp16 *1 *3 .* 0x3555 *inexact$' div 1 3 -f fp16
# double rounding through binary32 gives 0x1.068p+15 (Khronos OpenCL-CTS pull request 1882)
gives "fma is rounded once" '0x1.064p+15 *0x7819' fma 0x1.eacp+7 0x1.3f4p+4 0x1.c04p+14 -f fp16
gives "464 ties to 448" ' 448 .*0x7e *inexact$' add 448 16 -f e4m3
gives "480 is no number of e4m3" ' nan .*0x7f *overflow, inexact$' add 448 32 -f e4m3@ocp
gives "and saturates in CUDA" ' 448 .*0x7e *overflow, inexact$' add 448 32 -f e4m3@cuda
gives "operands of another format, one of them rounded" '^fp16 *3  *4\* *12 ' mul 3 5 --operands e2m1 -f fp16
gives "negative numbers are operands" '^fp16 *-1 *-2 *1 .*0x3c00$' sub -1 -2 -f fp16
gives "the root of -1" 'nan *0x7e00 *invalid$' sqrt -1 -f fp16
gives "1/0" ' inf .*0x7c00 *division by zero$' div 1 0 -f fp16
# cvt.rna.tf32 keeps a NaN's sign and leading bits (data/gpu); a NaN without a payload is CUDA's canonical one
gives "rna of a NaN to CUDA's tf32" ' inf  *inf  *0x3fc00$' convert 0x7f800001 --operands binary32 -f tf32@cuda -r rna
gives "rna of a negative NaN" '-\{0,1\}nan  *-\{0,1\}nan  *0x7fe01$' convert 0xffc02001 --operands binary32 -f tf32@cuda -r rna
gives "to nearest even it is canonical" ' nan  *nan  *0x3ffff$' convert 0xffc02001 --operands binary32 -f tf32@cuda
gives "rna of inf - inf" ' 0x3ffff  *invalid$' sub inf inf -f tf32@cuda -r rna
gives "inf - inf" ' nan .*invalid$' sub inf inf -f fp16
gives "-inf * 0" ' nan .*invalid$' mul -inf 0 -f fp16
gives "underflow" ' 0 .*underflow, inexact, IEEE underflow$' mul 2^-14 2^-14 -f fp16
gives "subnormal" 'subnormal' mul 2^-14 0.5 -f fp16
gives "IEEE underflow: subnormal and inexact" 'subnormal, inexact, IEEE underflow$' mul 2^-14 0x1.ffcp-1 -f fp16 -r toward-zero
gives "none where it is exact" '0x0200 *subnormal$' mul 2^-14 0.5 -f fp16
gives "tiny before rounding only" '0x0400 *inexact, IEEE underflow (tiny before rounding only)$' convert 0x1.fffp-15 -f fp16
gives "modes" '0x2a *inexact$' div 1 3 -f e4m3 -r down
gives "convert" ' 0.0999755859375 ' convert 0.1 -f fp16
gives "csv" '^div,fp16,ieee,nearest-even,,1,3,,0.333251953125,0x3555,inexact$' div 1 3 -f fp16 --csv
gives "ndjson" '^{"operation": "div", .*"code_of": \[null, null\], "operands": \[1.0, 3.0\]' div 1 3 -f fp16 --ndjson
# ---- a typed number is the decimal, rounded once, by the operation: 258 and 260, 1 and 1.0078125 are neighbours in bf16
gives "259 toward zero" '^bf16 *259 *258 .*0x4381 *inexact$' convert 259 -f bf16 -r rtz
gives "1.001 up" '^bf16 *1.001 *1.0078125 .*inexact$' convert 1.001 -f bf16 -r up
gives "1e5 overflows" ' inf .*overflow, inexact$' convert 1e5 -f fp16
gives "1e-9 underflows" ' 0 .*underflow, inexact, IEEE underflow$' convert 1e-9 -f fp16
gives "a tie and a little, in the 28th digit" '0x3c01 *inexact$' convert 1.000488281250000000000000001 -f fp16
gives "without it" '0x3c00 *inexact$' convert 1.00048828125 -f fp16
gives "one tenth is more than 0x1.9999999999999p-4" '0x3fb9999999999999 *inexact$' convert 0.1 -f binary64 -r rtz
gives "a product of decimals" ' 0.01 .*0x3f847ae147ae147b *inexact$' mul 0.1 0.1 -f binary64 # 0.1 * 0.1 in binary64 is one more
gives "what cancels" ' -5.551115123125783e-18 ' sub 0.1 0x1.999999999999ap-4 -f binary64
gives "a root" ' 1.4142135623730951 .*0x3ff6a09e667f3bcd *inexact$' sqrt 2.0000000000000000000001 -f binary64
gives "--operands rounds first" '^bf16 *260[*] *260 .*0x4382$' convert 259 --operands bf16 -f bf16 -r rtz
has '^[*] typed as 259; rounded to bf16 first (--operands)$'; ok $? "and says so"
run 0 calc mul 10000 0x1p1 --operands same -f bf16,fp16 && has '^bf16 *9984[*] *2 *19968 ' && has '^fp16 *10000 *2 *20000 ' &&
    has 'rounded to the format of the result first (--operands same)$'; ok $? "--operands same"
gives "exp takes binary64" '^fp16 *0.1[*] ' exp 0.1 -f fp16
has '^[*] typed as 0.1; exp takes the nearest number of binary64$'; ok $? "and says so, too"
gives "inputs that are subnormal in the format of the result are flushed" '^fp16 *1e-05 *1 *0 ' mul 1e-5 1 -f fp16 --flush-inputs
# ---- 0x without a point or a p is a code
gives "codes of the only format" '^fp16 *1 *2 *3 ' add 0x3c00 0x4000 -f fp16
has '^0x3c00 is the code of 1 in fp16$' && has '^0x4000 is the code of 2 in fp16$'; ok $? "what they were taken for is said"
gives "of --operands" '^e4m3 *1 *2 *3 ' add 0x3c00 2 -f e4m3,bf16 --operands fp16
gives "of one format under two presets" '^e4m3@cuda *448 *32 *448 ' add 0x7e 32 -f e4m3@cuda,e4m3@ocp
gives "a hexadecimal float is a number" '^fp16 *1.5 *2 *3.5 ' add 0x1.8 0x2p0 -f fp16
gives "a function of a code" '^bf16 *1 *2.71875 ' exp 0x3f80 -f bf16
run 0 calc add 0x3c00 0.1 --json -f fp16 && has '"code_of": \["fp16", null\]' && has '"operand_format": null' && has '"typed": \["0x3c00", "0.1"\]'; ok $? "codes in JSON"
for words in 'add 0x3c00 1' 'add 0x3c00 1 -f fp16,bf16' 'add -0x3c00 1 -f fp16' 'add 0x10000 1 -f fp16' 'add 1 0x1ff -f bf16 --operands e4m3'; do
    # shellcheck disable=SC2086 # a line is several words
    run 2 calc $words && has ' code' err; ok $? "calc $words: usage error"
done
gives "all common formats" '^e5m2 *2 *2 *4 .*0x44$' add 2 2
# log 2 = 0.693147180559945309417..., e = 2.718281828459045235...; tanh 0.5 = 0.46211715726000975850
gives "log 2 in binary64" '0x1.62e42fefa39efp-1 *0x3fe62e42fefa39ef *inexact$' log 2 -f binary64
gives "log 2 upward" '0x3fe62e42fefa39f0 *inexact$' log 2 -f binary64 -r up
gives "e in fp16" '^fp16 *1 *2.71875 .*0x4170 *inexact$' exp 1 -f fp16
gives "e in e4m3" '^e4m3 *1 *2.75 ' exp 1 -f e4m3
gives "tanh in bf16" '^bf16 *0.5 *0.462890625 .*inexact$' tanh 0.5 -f bf16
gives "exp 0 is exact" ' 1 *0x1p+0 *0x3c00$' exp -0 -f fp16
gives "log 1 is exact" ' 0 *0x0p+0 *0x0000$' log 1 -f fp16
gives "log 0" ' -inf .*0xfc00 *division by zero$' log 0 -f fp16
gives "log -1" ' nan .*invalid$' log -1 -f fp16
gives "exp 12 overflows fp16" ' inf .*0x7c00 *overflow, inexact$' exp 12 -f fp16
gives "and saturates as CUDA's e4m3" ' 448 .*0x7e *overflow, inexact$' exp 7 -f e4m3@cuda
gives "exp -inf is +0" ' 0 *0x0p+0 *0x0000$' exp -inf -f fp16
gives "exp -104 underflows binary32, but not upward" '0x1p-149 *0x00000001 *subnormal, inexact$' exp -104 -f binary32 -r up
gives "tanh keeps the sign of zero" ' -0 *-0x0p+0 *0x8000$' tanh -0 -f fp16
gives "tanh of a large number, down" '0x1.fffffep-1 *0x3f7fffff *inexact$' tanh 1e30 -f binary32 -r down
run 0 calc exp 1 --json -f fp16 && has '"operation": "exp"' && has '"operands": \[1.0\]'; ok $? "JSON of a function"
run 2 calc exp 1 2 && has 'exp takes 1 operand$' err; ok $? "a function has one operand"
run 0 calc add 2 2 --json -f fp16,bf16 && has '"mpsim.calc/1"' && has '"code": "0x4400"' && has '"operands": \[2.0, 2.0\]'; ok $? "JSON"
for words in '' 'pow 2 3' 'add 1' 'add 1 2 3' 'sqrt x' 'add 1 2 -f fp61' 'add 1 2 --operands fp61' 'add 1 2 -r sideways' 'add 1 1e999'; do
    # shellcheck disable=SC2086 # a line is several words
    run 2 calc $words; ok $? "calc $words: usage error"
done

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
