#!/bin/sh
# formats.sh -- names of formats, presets and modes; numbers on the command line; formats --check;
# mpsim info.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
trace=$MPSIM_SRCDIR/data/digits-cnn

# row TEXT...: a line of the output has these words, blanks aside
row() { tr -s ' ' <"$dir/out" | sed 's/ $//' | grep -q -x -F -- "$*"; }

# refused NAME MESSAGE: the error line of a name ends in MESSAGE
refused() {
    run 2 formats "$1" && grep -q -F -- "$2" "$dir/err"
    ok $? "'$1': $2"
}

# checked CODE X FORMAT CODE VALUE ERROR VERDICT: the row of formats --check; ERROR may be empty
checked() {
    run "$1" formats --check "$2" "$3" --csv &&
        [ "$(tail -n 1 "$dir/out" | cut -d, -f2-3,5-)" = "$3,$4,$5,$6" ]
    ok $? "$2 in $3: $6"
}

# ---- positions: bf16 has 8 significand bits, so 257 is a tie between 256 and 258, and goes to the even code ----
run 0 formats --positions 8192 bf16 fp16 binary32 && row bf16 257 as 256 897 16 16 38.72 && row fp16 2,049 as 2,048 4,097 2 2 5.651 &&
    grep -q '^binary32  *none  *8,192  *0  *0 ' "$dir/out"; ok $? "positions in bf16, fp16 and binary32"
run 0 formats --positions 256 --csv bf16 && grep -q '^bf16,256,256,,0,0,' "$dir/out"; ok $? "256 positions fit in bf16"
run 0 formats --positions 300 --json bf16 e4m3 && grep -q '"first_collision": 257' "$dir/out" && grep -q '"first_collision": 17' "$dir/out"
ok $? "positions, in JSON"
run 2 formats --positions 10 --check 1 bf16; ok $? "--positions and --check"
run 2 formats --positions 100000000 bf16; ok $? "too many positions"

turns 5
# ---- block recipes: every name of the list is one that stat takes ----
run 0 formats --recipes && row mxfp4 e2m1 1 x 32 e8m0 floor torchao @36027d82, to_mx FLOOR: the rule of OCP MX 1.0, 6.3 &&
    has '^nvfp4-2d  *e2m1  *16 x 16  *e4m3, tensor binary32  *nvfp4  ' && has '^torchao-rowwise  *e4m3  *row  *binary32  *amax-torchao  ' &&
    has '^te-current  *e4m3  *tensor  *binary32  *amax  '; ok $? "formats --recipes"
run 0 formats --recipes --csv && cut -d, -f1 "$dir/out" | tail -n +2 >"$dir/names" && [ "$(wc -l <"$dir/names")" -ge 37 ] &&
    run 0 stat --level total --csv -f "$(paste -sd, "$dir/names")" "$trace/step_000120" && awk -F, 'NR > 1 { print $16 }' "$dir/out" | cmp -s - "$dir/names"
ok $? "formats --recipes --csv, and stat of them all"
run 0 formats --recipes --json 'mxfp8:*' e4m3/128x128:ue8m0 && [ "$(grep -c '"name": "mxfp8:' "$dir/out")" -eq 6 ] && has '"mpsim.recipes/1"' &&
    has '"name": "e4m3/128x128:ue8m0", "element": "e4m3", "rule": "ue8m0", "block_rows": 128, "block_cols": 128, "scale_format": "e8m0", "tensor_scale": false'
ok $? "formats --recipes --json of some"
run 0 formats --recipes --ndjson nvfp4:rht && [ "$(wc -l <"$dir/out")" -eq 1 ] && has '^{"name": "nvfp4:rht16", .*"tensor_scale": true, "transform": 16, '
ok $? "formats --recipes --ndjson: a transform"
run 2 formats --recipes fp16 && has "'fp16' is a format, not a recipe" err; ok $? "--recipes of a format"
run 2 formats --recipes mxfp9 && has 'did you mean mxfp8' err; ok $? "--recipes of what is none"
run 2 formats --recipes --models; ok $? "--recipes and --models"

# ---- names ----
refused fp8 'fp8 is e4m3 or e5m2: name one'
refused FP6 'FP6 is e3m2 or e2m3: name one'
refused mxfp8 'block recipes are for stat and cast; its elements are e4m3 or e5m2'
refused mxfp6_e3m2 'block recipes are for stat and cast; its elements are e3m2 or e2m3'
refused MXFP4 'block recipes are for stat and cast; its elements are e2m1'
refused nvfp4 'block recipes are for stat and cast; its elements are e2m1, its scales e4m3'
refused int8 'integers are not there yet'
refused uint4 'integers are not there yet'
refused fp15 'did you mean fp16?'
refused fp61 'did you mean fp64 or fp16?'
refused float8-e5m3 'did you mean float8_e5m2 or float8_e4m3?'
refused bfloat-61 'did you mean bfloat16?'
refused xyzzy "see 'mpsim formats'"
refused e04m3 'did you mean e4m3?'
refused e5m7:foo "unknown option 'foo'"
refused e5m2: 'an empty option'
refused e5m7::fn 'an empty option'
refused e5m0 'no room for NaN beside the infinity'
refused E5M0:IEEE 'no room for NaN beside the infinity'
refused e1m5 'no normal number'
refused e5m7:fn:ieee "'fn' and 'ieee' exclude each other"
refused e5m7:inf:noinf "'inf' and 'noinf' exclude each other"
refused e5m7:bias=07 'bias=N takes an integer from -1200 to 1200'
refused e5m7:bias=1201 'bias=N takes an integer from -1200 to 1200'
refused e5m7:unsigned:fnuz 'fnuz needs a sign'
refused e4m3:bias=7 'say e4m3:ieee:bias=7 or e4m3:fn:bias=7'
refused e2m1:noinf 'say e2m1:ieee:noinf or e2m1:finite:noinf'
refused e4m3fn:bias=7 'options follow eXmY only'
refused e12m3 'X is 1 to 11 and Y 0 to 52'
refused e8m7:bias=1069:finite 'reaches beyond binary64'
refused fp16@torch 'did you mean pytorch?'
refused fp16@pytorch2 'did you mean pytorch?'
refused fp16@ml_dtype 'did you mean ml-dtypes?'
refused fp16@ "unknown preset ''"
refused fp16,,bf16 'an empty name'
refused '' 'an empty name'
refused fp16,half "'half' repeats 'fp16'"
run 2 formats fp16 fp16; ok $? "the same operand twice"
run 2 stat -r sr:99 "$trace" && has "'sr:99': 1 to 32 random bits" err; ok $? "99 random bits"
run 2 stat -r rup:8 "$trace" && has "only stochastic modes take" err; ok $? "random bits of rup"
run 2 stat -r neerest-even "$trace" && has "did you mean nearest-even?" err; ok $? "a mode misspelt"
run 0 formats ' fp16 , bf16' --csv && [ "$(wc -l <"$dir/out")" -eq 3 ]; ok $? "blanks around names"

# ---- commands ----
for word in stats stta "help sat"; do
    # shellcheck disable=SC2086 # words
    run 2 $word && has 'did you mean stat?' err; ok $? "mpsim $word: a suggestion"
done
run 0 -h && has 'mpsim COMMAND --help'; ok $? "mpsim -h"
for c in formats info cast stat plot; do
    run 0 $c -h && has "Usage: mpsim $c" && has '-h, --help'; ok $? "$c -h"
done
run 2 plot histogram report.json --nosuch && has ': --nosuch is not an option' err; ok $? "the option is named, not the operand before it"
if [ -w /dev/full ]; then
    "$MPSIM" --help >/dev/full 2>"$dir/err"
    [ $? -eq 4 ] && has '^mpsim: standard output: ' err; ok $? "--help on a full disk: a message"
fi
"$MPSIM" stat --help 2>"$dir/err" | true; [ ! -s "$dir/err" ]; ok $? "--help into a closed pipe is silent"
{ sleep 0.1; "$MPSIM" train --help 2>"$dir/err"; } | true; [ ! -s "$dir/err" ]; ok $? "a help of more than a buffer, too"

# ---- numbers ----
printf '01234567890123456789' >"$dir/raw"
raw() { run 0 info --dtype fp16 "$1" "$2" "$dir/raw" --csv && [ "$(tail -n 1 "$dir/out" | cut -d, -f7-8)" = "$3" ]; }
raw --shape 010 10,0; ok $? "--shape 010 is ten"
raw --offset 010 5,10; ok $? "--offset 010 is ten"
raw --offset 0x10 2,16; ok $? "--offset 0x10"
raw --offset '2^4' 2,16; ok $? "--offset 2^4"
raw --offset '2**4' 2,16; ok $? "--offset 2**4"
for word in '2^' '2^ 4' '2**' '3^4' ' 8' 0x 8q 1e1 -8 2^-1; do
    run 2 info --dtype fp16 --offset "$word" "$dir/raw" && has 'is not a non-negative integer' err; ok $? "--offset '$word'"
done
for word in 2^63 2^64 9223372036854775808 18446744073709551616 99999999999G; do
    run 2 info --dtype fp16 --offset "$word" "$dir/raw" && has 'is larger than 2^63 - 1' err; ok $? "--offset $word"
done
for word in 1e400 1e-400 2^1024 2^-1075 2**1024 0x1p-1080; do
    run 2 stat -s "$word" "$trace" && has 'is outside the range of binary64' err; ok $? "--scale $word"
    run 2 formats --check "$word" && has 'is outside the range of binary64' err; ok $? "--check $word"
done
for word in '2^' '2^ 5' 2^x '1 2' inf nan '' 1x 1e 0 -1; do
    run 2 stat -s "$word" "$trace" && has 'is not a positive number' err; ok $? "--scale '$word'"
done
run 2 stat -s 1,2,1.0 "$trace" && has "'1.0' is given twice" err; ok $? "a scale twice"
scales() { "$MPSIM" stat -q -f fp16 -s "$1" --scale-kinds all -k weight --csv --level total "$trace" 2>"$dir/err" | awk -F, 'NR > 1 { printf "%s%s", t, $i; t = "," } NR == 1 { for (i = 1; $i != "scale"; i++); } END { print "" }' >"$dir/out"; }
scales '2^0..2^4' && has '^1,2,4,8,16$'; ok $? "--scale 2^0..2^4: every power of two between"
scales '3, 2**-2..1 ,1000,0x10..3.2e1,2^7..128' && has '^3,0.25,0.5,1,1000,16,32,128$'; ok $? "--scale: ranges and scales together, in that order"
scales '2^-100..2^155' && [ "$(tr ',' '\n' <"$dir/out" | wc -l)" -eq 256 ]; ok $? "--scale: 256 scales"
scale_fails() { run 2 stat -s "$1" "$trace" && has "stat: $2" err; ok $? "--scale '$1'"; }
scale_fails '1,2^-100..2^155' 'more than 256 scales'
scale_fails '2^-1074..2^1023' 'more than 256 scales'
scale_fails '2^0..1000' "scales '2^0..1000': 1000 is not a power of two"
scale_fails '3..8' "scales '3..8': 3 is not a power of two"
scale_fails '2^4..2^0' "scales '2^4..2^0': a range goes upwards: 2^0..2^4"
scale_fails '2^0..2^8,16' "scale '16' is given twice"
scale_fails '16,2^0..2^8' "scales '2^0..2^8': 16 is given twice"
for range in '2^0..' '..2^8' .. ... '2^0...2^3' '2^0..2^2..2^4'; do
    scale_fails "$range" "scales '$range': a range has two ends"
done
scale_fails '2^0..2^1024' "scale '2^1024' is outside the range of binary64"
scale_fails '2^0..2^4..2^8' "scales '2^0..2^4..2^8': a range has two ends"
run 2 cast -f fp16 -s 2^0..2^4 -o "$dir/x.npy" "$trace/step_020000/rank_00000.safetensors" && has 'one format and one scale' err; ok $? "cast: a range of scales"
run 0 stat -f fp16 -s '1, 2**4' --scale-kinds all -k weight --csv "$trace" && has ',fp16,16,'; ok $? "--scale '1, 2**4'"

# ---- formats --check: arguments are X FORMAT, then code, rel_err, verdict and lost ----
run 1 formats --check 465 e4m3@cuda && row 'e4m3@cuda 0x7e 448 0.036559 LOST: saturates at 448'; ok $? "465 in e4m3@cuda: a row"
run 1 formats --check 465 e4m3 && row 'e4m3 0x7f nan LOST: overflows to NaN'; ok $? "465 in e4m3: a row"
run 0 formats --check 1e-8 bf16 && has ' 1.0011717677116394e-08 '; ok $? "all digits that it takes"
run 0 formats --check 100 fp16 && row 'fp16 0x5640 100 0 exact'; ok $? "and no more"
run 1 formats --check 65504 && [ "$(grep -vc '^[a-z0-9]*: ' "$dir/out")" -eq 47 ] && [ "$(grep -c ' leaves ' "$dir/out")" -eq 3 ]
ok $? "without names: all of the table, and what is left open for e4m3, e5m2, e8m0"
checked 0 65504 fp16 0x7bff 0 exact,no
checked 1 65520 fp16 0x7c00 '' 'LOST: overflows to infinity,yes'
checked 1 -65520 fp16@saturate 0xfbff 0.0002442002442002442 'LOST: saturates at -65504,yes'
checked 0 2^-24 fp16 0x0001 0 'exact (subnormal),no'
checked 0 1e-7 fp16 0x0002 0.1920928955078125 'subnormal: precision is lost,no'
checked 1 1e-8 fp16 0x0000 1 'LOST: underflows to zero,yes'
checked 1 -1 e8m0 0xff '' '"LOST: negative, the format is unsigned",yes'
checked 1 -1 e8m0@cuda 0x7f 2 '"LOST: negative, the format is unsigned",yes'
checked 1 -1 e8m0@p3109-satfinite 0x00 1 '"LOST: negative, the format is unsigned",yes'
checked 1 -1e-300 binary8p3ue 0x00 1 'LOST: underflows to zero,yes'
checked 1 0 e8m0 0x00 '' 'LOST: the format has no zero,yes'
checked 1 -0 e8m0 0xff '' 'LOST: the format has no zero,yes'
checked 0 -0 fp16 0x8000 0 exact,no
checked 1 1e-300 e8m0@ml-dtypes 0xff '' 'LOST: below the smallest number,yes' # 0 in binary32 on the way
checked 0 5e-39 e8m0 0x00 0.17549435082228751 rounded,no
checked 0 2**16 bf16 0x4780 0 exact,no
run 1 formats --check 1e-7 --flush-subnormals fp16 && has 'LOST: underflows'; ok $? "--check --flush-subnormals"
run 0 formats --check 1.0005 -r up fp16 && has ' 0x3c01 '; ok $? "--check --round"
checked 0 0x1.0020000000001p+0 fp16@pytorch 0x3c00 0.00048804294777962643 rounded,no
checked 0 3 e8m0@pytorch 0x81 0.33333333333333331 rounded,no
run 0 formats --check 3 e8m0 tf32 && has '^e8m0: OCP MX 1.0 leaves the rounding open' && ! has '^tf32:'; ok $? "--check: what a specification leaves open"
run 0 formats --check 3 e8m0@cuda && ! has '^e8m0:' && run 0 formats --check 2049 tf32 -r rna && ! has '^tf32:'; ok $? "not where one has chosen"
# ---- codes, and decimals that are no numbers of binary64
checked 0 0x7e e4m3 0x7e 0 exact,no
checked 0 0x1p-24 fp16 0x0001 0 'exact (subnormal),no'
checked 0 1.000488281250000000000000001 fp16 0x3c01 0.0004880429477794046 rounded,no # a tie, and a little
checked 0 0.1 binary64 0x3fb999999999999a 5.5511151231257827e-17 rounded,no
run 0 formats --check 0x7e e4m3@cuda e4m3 && row 0x7e is the code of 448 in e4m3; ok $? "--check: what a code is taken for"
run 1 formats --check 0x7e --from e4m3 e5m2 e2m1 --ndjson && has '"constant": 448.0' && has '"code_of": "e4m3"'; ok $? "--check --from: a code"
run 0 formats --check 0.1 --from bf16 fp16 && row 0.1 is 0.10009765625 in bf16 '(--from)' && row fp16 0x2e68 0.10009765625 0 exact; ok $? "--check --from: a number"
for words in '--check 0x7e' '--check 0x7e e4m3 e5m2' '--check 0x1ff e4m3' '--check -0x7e e4m3' '--check 0x7e --from fp61 e4m3' '--from fp16 e4m3' '--check nan fp16'; do
    # shellcheck disable=SC2086 # a line is several words
    run 2 formats $words; ok $? "formats $words: usage error"
done
run 1 formats --check 500 -p cuda e4m3 && has ' 0x7e '; ok $? "--check --preset"
run 1 formats --check 500 -p cuda e4m3@ieee && has ' 0x7f '; ok $? "--check: the format's own preset wins"
run 1 formats --check 500 --overflow saturate e4m3 && has ' 0x7e '; ok $? "--check --overflow"
run 0 formats --check 1.0005 -r sr --seed 1 fp16 && cp "$dir/out" "$dir/sr" && run 0 formats --check 1.0005 -r sr --seed 1 fp16 && cmp -s "$dir/out" "$dir/sr"; ok $? "--check --seed"
run 1 formats --check 500 fp16 e4m3 --json && has '"schema": "mpsim.check/1"' && has '"constant": 500.0, "format": "e4m3", "code": "0x7f", "value": "NaN", "rel_err": null, "verdict": "LOST: overflows to NaN", "lost": true, "typed": "500", "code_of": null}'; ok $? "--check --json"
run 1 formats --check 500 fp16 e4m3 --ndjson && [ "$(wc -l <"$dir/out")" -eq 2 ] && has '^{"constant": 500.0, "format": "fp16", "code": "0x5fd0", "value": 500.0, "rel_err": 0.0, "verdict": "exact", "lost": false, "typed": "500", "code_of": null}$'; ok $? "--check --ndjson"
run 1 formats --check 500 fp16 e4m3 --csv && [ "$(head -n 1 "$dir/out")" = constant,format,code,value,rel_err,verdict,lost ]; ok $? "--check --csv"

# ---- formats: lists ----
run 0 formats --csv && [ "$(head -n 1 "$dir/out" | cut -d, -f13-)" = source,signed,max_finite_code,decimal_digits ] && has '^e8m0,.*,no,0xfe,0.30$' && has '^e4m3,.*,yes,0x7e,1.20$' &&
    has '^bf16,.*,2.41$' && has '^fp16,.*,3.31$' && has '^binary32,.*,7.22$'; ok $? "csv: signed, max_finite_code, decimal_digits"
run 0 formats bf16 && has ' digits ' && has '^bf16  *16  8  7  *2.4  *127 ' && run 0 formats --json binary64 && has '"decimal_digits": 15.9'; ok $? "decimal digits"
run 0 formats --presets && grep '^ml-dtypes' "$dir/out" | grep -q 'zero of the other sign' && ! grep '^ieee' "$dir/out" | grep -q 'zero of'; ok $? "presets: ml-dtypes is not ieee"
for words in '--presets fp16' '--modes fp16' '--presets --json' '--presets --modes' '--check 1 --modes' '-r up fp16' '-p cuda' '--seed 1' 'e4m3@cuda'; do
    # shellcheck disable=SC2086 # words
    run 2 formats $words; ok $? "formats $words: refused"
done
list() { i=0; while [ $i -lt "$1" ]; do echo "e5m7:fn:bias=$i"; i=$((i + 1)); done; }
# shellcheck disable=SC2046 # words
run 0 formats --csv $(list 256) && [ "$(wc -l <"$dir/out")" -eq 257 ]; ok $? "256 operands"
# shellcheck disable=SC2046 # words
run 2 formats --csv $(list 257) && has 'more than 256' err; ok $? "257 operands: an error"

# ---- info ----
run 0 info "$trace" && row 'file layout step tensors elements kinds' && has 'step_020000.* 20000  *43  *95,654  weight act out agrad wgrad opt.m$' && has '^total  *291  *665,896'; ok $? "info: a summary of several files"
run 0 info "$trace/step_000120" && ! row 'file layout step tensors elements kinds' && has ', step 120$' && ! has 'mpsim.step = '; ok $? "info: one file, no metadata"
run 0 info -v "$trace/step_000120" && has 'mpsim.step = 120'; ok $? "info -v"
run 0 info --metadata -k opt.m "$trace" && has 'mpsim.step = 120' && has 'step_020000.* opt.m$'; ok $? "info --metadata --kind"
cp "$trace/step_000120/rank_00000.safetensors" "$dir/x" && run 2 info -o "$dir/x" "$dir/x" && has 'is an input' err; ok $? "info does not replace its input"
for form in --json --csv -v; do
    "$MPSIM" info $form "$trace" 2>"$dir/err" | true; [ ! -s "$dir/err" ]; ok $? "info $form: a closed pipe is silent"
done

finish
