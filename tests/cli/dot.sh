#!/bin/sh
# dot.sh -- mpsim dot: published claims, known sums, files. What needs no shell: dot.md.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
real=$MPSIM_SRCDIR/data/digits-cnn/step_020000/rank_00000.safetensors

# field MODEL COLUMN: of the CSV report; columns: k,model,result_format,count,not_finite,
# max_rel_err,rel_err,bias,bits_lost,first
field() { awk -F, -v m="$1" -v c="$2" '$2 == m { print $c }' "$dir/out"; }
# between X LOW HIGH
between() { awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x != "" && x + 0 >= a && x + 0 <= b) }'; }

# ---- DeepSeek-V3, arXiv 2412.19437, section 3.3: with about 14 bits in the accumulator of Hopper's fp8
# instruction, a dot product of K = 4096 has a relative error of nearly 2 %; sums moved to fp32 registers
# every 128 products do not. The report does not say which random matrices: those of a ReLU, none of
# them negative, give that number.
run 0 dot --csv -f e4m3 -K 4096 --values relu -M 'hopper-wgmma-*,hopper-mma-fp8-fp32'
max=$(field hopper-wgmma-fp8-fp32 6)
between "$max" 0.015 0.02; ok $? "fp8 on Hopper, K = 4096: largest relative error near 2 % ($max)"
max=$(field hopper-wgmma-fp8-promoted 6)
between "$max" 0 0.0002; ok $? "promotion every 128 removes it ($max)"
max=$(field hopper-mma-fp8-fp32 6)
between "$max" 0 0.000001; ok $? "mma.sync does not have it: 25 bits ($max)"
bias=$(field hopper-wgmma-fp8-fp32 8)
between "$bias" -0.02 -0.014; ok $? "truncation: the error is a bias toward zero ($bias)"
run 0 dot --csv -f e4m3 -K 128,1024,4096,16384 --values relu -M hopper-wgmma-fp8-fp32,hopper-wgmma-fp8-promoted
ok $? "a sweep over K"
awk -F, '$2 == "hopper-wgmma-fp8-fp32" { if ($7 + 0 <= last + 0) exit 1; last = $7 } END { if (NR != 9) exit 1 }' "$dir/out"
ok $? "the error grows with K"
awk -F, '$2 == "hopper-wgmma-fp8-promoted" && $7 > 0.0002 { exit 1 }' "$dir/out"; ok $? "and not with promotion"

# ---- sums that are known: 1 + 1 + ... in bf16 stops at 256, in fp16 at 2048
printf '\0\0\200\077' >"$dir/one"
i=0
: >"$dir/ones"
while [ $i -lt 12 ]; do cat "$dir/one" "$dir/ones" >"$dir/x"; cat "$dir/ones" "$dir/x" >"$dir/y"; mv "$dir/y" "$dir/ones"; i=$((i + 1)); done
size=$(($(wc -c <"$dir/ones") / 4))
npy_of_ones() { # an npy file of n ones
    header="{'descr': '<f4', 'fortran_order': False, 'shape': ($1,), }"
    pad=$((118 - ${#header} - 1))
    printf '\223NUMPY\1\0\166\0%s%*s\n' "$header" $pad ''
    cat "$dir/ones"
}
npy_of_ones "$size" >"$dir/ones.npy"
run 0 dot -K 4000 -M 'exact,fma:bf16,sequential:fp16,pairwise:bf16,fma,hopper-fp16-fp32,hopper-fp16-fp16,chunked:fp16:chunk=50' --csv "$dir/ones.npy" "$dir/ones.npy"
ok $? "ones from files"
for want in exact=4000 fma:bf16=256 sequential:fp16=2048 pairwise:bf16=4000 fma=4000 hopper-fp16-fp32=4000 hopper-fp16-fp16=4000 chunked:fp16:chunk=50=4000; do
    model=${want%=*}
    value=$(field "$model" 10)
    [ "$value" = "${want##*=}" ]; ok $? "4000 ones by $model: $value"
done

# ---- against the operands as given: truncation of tf32 operands costs 7e-4, whatever the sums lose (triton 4574); every measure by GMP
# and MPFR: tests/sim/t-distance
named() { awk -F, -v c="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) k = i; next } { gsub(/"[^"]*"/, ""); print $k }' "$dir/out"; }
tf32='-f tf32 -K 64 --rows 64 --columns 64 -M ampere-tf32-fp32'
# shellcheck disable=SC2086 # several words
run 0 dot --csv $tf32 --operand-round rtz && between "$(named given_rel_err)" 6e-4 8e-4 && between "$(named given_bias)" -8e-4 -6e-4 &&
    between "$(named rounded_rel_err)" 4e-7 7e-7 && [ "$(named rounded_rel_err)" = "$(field ampere-tf32-fp32 7)" ] &&
    between "$(named given_max_abs_err)" 0.01 0.02 && between "$(named given_rmse)" 0.009 0.012 && between "$(named given_mean_err)" -0.012 -0.009 &&
    between "$(named given_mean_abs_err)" 0.009 0.012; ok $? "bug_20261127_errors_of_rounded_operands: truncated"
# shellcheck disable=SC2086
run 0 dot --csv $tf32 --operand-round rna && between "$(named given_rel_err)" 1e-5 1e-4 && between "$(named rounded_rel_err)" 4e-7 7e-7; ok $? "and rounded"
# shellcheck disable=SC2086
# shellcheck disable=SC2086
run 0 dot --json -f e4m3 -s amax -K 64 -M fma --above 1e9 && has '"above": 1000000000.0' && has '"compared": 0, "rel_err": "NaN"' && has '"given": {' && has '"rounded": {'; ok $? "no result above the bound"
run 0 dot -K 4000 -M exact,fma:bf16 "$dir/ones.npy" "$dir/ones.npy" && ! has 'operands as' && run 0 dot --csv -K 4000 -M fma:bf16 "$dir/ones.npy" "$dir/ones.npy" &&
    [ "$(named given_rel_err)" = 0.93599999999999994 ] && [ "$(named rounded_max_abs_err)" = 3744 ]; ok $? "operands that the format has: once"
run 0 dot --blocks mxfp4 -K 64 -M exact --ndjson && has '"given": {"compared": 256, "rel_err": 0.122' && has '"rounded": {"compared": 256, "rel_err": 0.0,'; ok $? "of blocks"

# ---- real tensors
run 0 dot -f e4m3 -s amax --a act:fc1 --b weight:fc1.weight "$real" && has '^A  e4m3, act:fc1, the first 16 of 32 rows of 64, scale 2^' && has hopper-mma-fp8-fp32
ok $? "tensors of a trace"
run 0 dot --csv -f e5m2,e4m3 -s amax -M exact,fma --a agrad:fc1 --b act:fc1 --transpose-a --transpose-b "$real" && [ "$(field exact 4)" = 256 ] && grep -q ',e5m2,agrad:fc1,' "$dir/out"
ok $? "a weight gradient: both transposed, K is the batch"

# ---- selections
turns 4
run 0 dot -M all --json -K 32 && has '"mpsim.dot/1"' && has '"model": "rtx-blackwell-fp16-fp16"' && ! has fp8; ok $? "all models that take fp16"
run 0 dot -f fp16 -K 100 -M hopper-fp16-fp32:F=24,hopper-fp16-fp32; ok $? "a model with a change"
run 0 dot --ndjson -K 8 -M exact && [ "$(wc -l <"$dir/out")" -eq 1 ]; ok $? "ndjson"
run 0 dot -K 64 --threads 1 --csv && cp "$dir/out" "$dir/one.csv" && run 0 dot -K 64 --threads 3 --csv && cmp -s "$dir/out" "$dir/one.csv"
ok $? "threads do not show"
run 0 dot --csv -K 10 --rows 2 --columns 1 -M fma:fp16:round=sr -f fp16; ok $? "stochastic accumulation"
run 0 formats --models --json 'hopper-*' && has '"mpsim.models/1"' && has '"unconfirmed": "' && ! has volta; ok $? "formats --models --json"
run 0 formats --models --csv exact fma:bf16 && [ "$(wc -l <"$dir/out")" -eq 3 ]; ok $? "formats --models --csv"

# ---- stream-K: one worker cuts nothing; 4 of one tile are split-K of 4 (every bit: tests/sim/t-dot-split)
rel() { sed 's/.*"rel_err": \([^,]*\),.*/\1/' "$1"; }
run 0 dot --ndjson -f bf16 -K 512 --rows 20 -M fma && cp "$dir/out" "$dir/whole" && run 0 dot --ndjson -f bf16 -K 512 --rows 20 -M fma --stream-k 1,8x8x32 &&
    [ "$(rel "$dir/out")" = "$(rel "$dir/whole")" ]; ok $? "--stream-k 1"
run 0 dot --ndjson -f bf16 -K 512 -M fma --split-k 4 --workspace bf16 && cp "$dir/out" "$dir/whole" &&
    run 0 dot --ndjson -f bf16 -K 512 -M fma --stream-k 4,16x16x32 --workspace bf16 && [ "$(rel "$dir/out")" = "$(rel "$dir/whole")" ]
ok $? "--stream-k of one tile is split-k"

# ---- blocks with scales, and products of a library: the library's tests say what the numbers are
run 0 dot --csv --blocks mxfp8 --values relu -K 2048 -M exact,rtx-blackwell-mxf8f6f4,hopper-bf16-fp32
max=$(field rtx-blackwell-mxf8f6f4 6)
between "$max" 1e-8 2e-6 && between "$(field hopper-bf16-fp32 6)" 1e-8 2e-6; ok $? "--blocks mxfp8: with scales, and as bf16 numbers ($max)"
run 0 dot --csv --blocks nvfp4 -K 2048 -M exact,rtx-blackwell-mxf4nvf4 && [ "$(field rtx-blackwell-mxf4nvf4 6)" = 0 ] &&
    run 0 dot --json --blocks nvfp4 -K 64 && has '"blocks": {"elements": 16, "scales": "e4m3"}'; ok $? "--blocks nvfp4: exact"
run 0 dot --csv -f e4m3 -s amax -K 2048 -M exact --like torch-scaled-mm:hopper:slow:S=2:out=binary32 &&
    between "$(field torch-scaled-mm:hopper:slow:S=2:out=binary32 6)" 1e-6 1e-2; ok $? "--like torch-scaled-mm"
run 0 dot --csv -f bf16 -K 200 -M amx-bf16-fp32:result=bf16 --like torch-mm:amx &&
    [ "$(field torch-mm:amx 5)" = "$(field amx-bf16-fp32:result=bf16 5)" ] && run 0 dot --csv -f fp16 -K 700 -M fma:chunk=512:result=fp16 --like torch-mm:avx512 &&
    [ "$(field torch-mm:avx512 5)" = "$(field fma:chunk=512:result=fp16 5)" ]; ok $? "--like torch-mm: as the models of one chain and of chunks of 512"
run 0 dot --csv -f bf16 -K 1270 --rows 33 --columns 64 -M exact --like torch-mm:amx:threads=2 && mv "$dir/out" "$dir/two" &&
    run 0 dot --csv -f bf16 -K 1270 --rows 33 --columns 64 -M exact --like torch-mm:amx:part=640:chunk=320:tiles=32 &&
    sed 's/:threads=2/:part=640:chunk=320:tiles=32/' "$dir/two" | cmp -s - "$dir/out"; ok $? "--like torch-mm: threads=N cuts as was recorded"

# ---- K in parts: 4000 ones in 8 parts of 500, which bf16 has; their sums are 1504 (a tie), 2000 (a tie), 2496, 2992,
# 3488, 3984 there. In 13 parts of 308 and 304, which e4m3 has not: all become 320.
run 0 dot --csv -K 4000 -M exact --split-k 8 --workspace bf16,bf16 "$dir/ones.npy" "$dir/ones.npy" && [ "$(field exact 10)" = 3984 ] &&
    has ',split_k,workspace,workspace_sum$' && has ',8,bf16,bf16$'; ok $? "--split-k: 8 parts of 500"
run 0 dot --csv -K 4000 -M exact --split-k 13 --workspace e4m3,bf16 "$dir/ones.npy" "$dir/ones.npy"
[ "$(field exact 10)" = 4160 ]; ok $? "parts of 308 and a last of 304 are 320 in e4m3"
turns 4
whole='' parts='' narrow=''
run 0 dot --csv -f bf16 -K 16384 --values symmetric -M fma && whole=$(field fma 7) &&
    run 0 dot --csv -f bf16 -K 16384 --values symmetric -M fma --split-k 6 && parts=$(field fma 7) &&
    run 0 dot --csv -f bf16 -K 16384 --values symmetric -M fma --split-k 6 --workspace bf16 && narrow=$(field fma 7)
due && between "$parts" 0 "$whole" && between "$narrow" 0.0005 0.005; ok $? "parts help in binary32, and cost in bf16: $whole $parts $narrow"
run 0 dot --csv -K 100 -M exact,fma && cp "$dir/out" "$dir/whole" && run 0 dot --csv -K 100 -M exact,fma --split-k 1 && cmp -s "$dir/out" "$dir/whole"
ok $? "one part is the whole"
run 0 dot --json -K 100 -M fma --split-k 3 && has '"split": {"parts": 3, "workspace": "binary32", "sum": "binary32"}'; ok $? "--split-k --json"

# ---- a largest error beside few bits lost
run 0 dot -f fp16 -K 1000 --values uniform -M fma && ! has 'cancels'; ok $? "and says nothing where none does"

# ---- sums over ranks: ones on 300 ranks, which bf16 adds up to 256
set --
i=0
while [ $i -lt 300 ]; do set -- "$@" "$dir/ones.npy"; i=$((i + 1)); done
run 0 dot --reduce --csv --wire bf16 "$@" && [ "$(grep -c '^300,bf16,' "$dir/out")" -eq 6 ] &&
    grep -q '^300,bf16,bf16,sequential,4095,0,0.1466' "$dir/out" && grep -q '^300,bf16,binary32,ring,4095,0,0,' "$dir/out" &&
    grep -q '^300,bf16,bf16,tree,4095,0,0,' "$dir/out"; ok $? "--reduce: 300 ranks of ones in bf16"
amp=$MPSIM_SRCDIR/data/amp-mlp
header='{"wgrad:w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"wgrad:z":{"dtype":"C64","shape":[1],"data_offsets":[8,16]}}'
# shellcheck disable=SC2059 # octal
{ printf "\\$(printf %03o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; head -c 16 /dev/zero; } >"$dir/complex.safetensors"
run 0 dot --reduce "$dir/complex.safetensors" "$dir/complex.safetensors" && has "^1 tensor that may hold numbers is not read: 'wgrad:z' of C64 (complex numbers)$" &&
    run 0 dot --reduce --json "$dir/complex.safetensors" "$dir/complex.safetensors" && has '"unread": .*"wgrad:z"'; ok $? "a reduction names what was not read"
run 0 dot --reduce --json --wire fp16 --a 'wgrad:*' "$amp"/*/step_00001?/rank_00000.safetensors && has '"mpsim.reduce/1"' && has '"ranks": 40'
ok $? "--reduce --json"
# a third of 3 in binary64: binary32 has it not, so that its rounding is an error of every sum; bf16 sends 341/1024
printf '\125\125\125\125\125\125\325\077' >"$dir/third"
{ printf '\223NUMPY\1\0\166\0%s%*s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }" 60 ''; cat "$dir/third"; } >"$dir/third.npy"
run 0 dot --reduce --csv --wire binary32,bf16 "$dir/third.npy" "$dir/third.npy" && between "$(named given_max_rel_err | head -1)" 2.98e-8 2.99e-8 &&
    [ "$(named rounded_max_rel_err | head -1)" = 0 ] && between "$(named given_max_abs_err | tail -1)" 0.00130 0.00131 && [ "$(named rounded_rel_err | tail -1)" = 0 ]
ok $? "--reduce: numbers as given are the file's, of binary64, too"
run 2 dot --reduce "$dir/ones.npy"; ok $? "--reduce of one rank"
run 2 dot --reduce --wire fp61 "$dir/ones.npy" "$dir/ones.npy"; ok $? "--wire of no format"
run 3 dot --reduce "$amp/adam/step_000009/rank_00000.safetensors" "$dir/ones.npy" && has "no tensor '.*' of .*which the first file" err
ok $? "ranks that differ"

# ---- bad input
run 2 dot -f fp16 -M fma:fp16:order=lanes:L=8 && has 'as in order=lanes:chunk=64:L=8' err && run 0 dot -f fp16 -K 64 -M fma:fp16:order=lanes:chunk=64:L=8; ok $? "order=lanes: what it needs"
run 2 dot -f fp16 -M fma:nothing=8
for key in $(sed -n '/^static const change changes/,/^};/s/^    {"\([A-Za-z-][A-Za-z-]*\)".*/\1/p' "$MPSIM_SRCDIR/lib/dot/model.c"); do
    grep -q " $key\( \|$\)" "$dir/err" || echo "$key"
done >"$dir/keys"
[ ! -s "$dir/keys" ]; ok $? "the changes that are listed are those of the library"
run 0 dot -f binary64 -s 1e-90 -K 16 -M fma:binary64 --csv && between "$(field fma:binary64 7)" 1e-17 1e-15; ok $? "errors far below binary64's squares"
run 0 dot -f bf16 -s amax -K 4 -M exact --json && has '"scale": 1.7014118346046923e38'; ok $? "amax of a wide format"
matrix() { # matrix FILE FORTRAN-ORDER OCTAL: [[1, 2], [3, 4]] of fp16
    { printf '\223NUMPY\1\0\166\0%-117s\n' "{'descr': '<f2', 'fortran_order': $2, 'shape': (2, 2), }"; printf '%b' "$3"; } >"$dir/$1.npy"
}
matrix rows False '\0\0074\0\0100\0\0102\0\0104' && matrix columns True '\0\0074\0\0102\0\0100\0\0104'
for more in '' --transpose-a; do
    # shellcheck disable=SC2086 # none or one
    run 0 dot --csv --columns 1 -M exact $more "$dir/rows.npy" "$dir/rows.npy" && sed 's/,rows,/,columns,/' "$dir/out" | sed 's/rows.npy/columns.npy/g' >"$dir/of-rows" &&
        run 0 dot --csv --columns 1 -M exact $more "$dir/columns.npy" "$dir/columns.npy" && cmp -s "$dir/of-rows" "$dir/out"
    ok $? "a matrix that is stored by columns $more"
done

# ---- one pair: numbers and codes of the command line. 1 - 1 + 2^-9 2^-5: 13 bits below 1 there is nothing
run 0 dot -f e4m3 --a 0x38,0xb8,0x01 --b 0x38,0x38,0x10 -M exact,hopper-wgmma-fp8-fp32,hopper-mma-fp8-fp32 --csv &&
    [ "$(cat "$dir/out")" = 'model,result_format,code,value
exact,binary32,0x38800000,6.103515625e-05
hopper-wgmma-fp8-fp32,binary32,0x00000000,0
hopper-mma-fp8-fp32,binary32,0x38800000,6.103515625e-05' ]; ok $? "three products by code"
run 0 dot -f fp16 --a inf --b 0 -M exact,fma --csv && [ "$(grep -c 'nan$' "$dir/out")" -eq 2 ]; ok $? "inf times 0"
# 1 + 2^-25: Hopper aligns to 25 bits, Ampere to 24
run 0 dot -f fp16 --a 1 --b 1 --c 0x1p-25 -M hopper-fp16-fp32,ampere-fp16-fp32 --steps && has '33554433  2^-25' && has '16777216  2^-24' && has '  0[*]$' &&
    has 'cut: bits below the unit are lost'; ok $? "--steps: aligned terms, what is cut"
run 0 dot -f fp16 --a 1,2,3 --b 1,1,1 -M pairwise,chunked:fp16:chunk=2,fma,exact --steps && [ "$(grep -c '^  chunk' "$dir/out")" -eq 2 ] &&
    [ "$(grep -c '^  addition' "$dir/out")" -eq 9 ] && [ "$(grep -c '^  product' "$dir/out")" -eq 6 ]; ok $? "--steps of every kind of model"
run 0 dot -f fp16 --a 1,2,3 --b 1,1,1 -M hopper-fp16-fp32,exact --steps --json && has '"mpsim.dot-pair/1"' && has '"unit_exponent": -24' && has '"sum": 100663296'
ok $? "--steps --json: 6 in units of 2^-24"
run 0 dot -f e4m3 --a 1,2,3 --b 1,1,1 -M hopper-mma-fp8-fp32 --steps --ndjson && has '"products": \[0, 1\]' && has '"products": \[2\]'; ok $? "quads: the order"
run 0 dot -f tf32 -K 64 --operand-round rtz -M exact --csv && cp "$dir/out" "$dir/rtz" && run 0 dot -f tf32 -K 64 -M exact --csv && ! cmp -s "$dir/out" "$dir/rtz"
ok $? "and of generated ones"
finish
