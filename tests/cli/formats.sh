#!/bin/sh
# formats.sh -- what of formats.md needs a shell: many operands, pipes, counts of lines, reports compared.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
trace=$MPSIM_SRCDIR/data/digits-cnn

# ---- positions: bf16 has 8 significand bits, so 257 is a tie between 256 and 258, and goes to the even code ----
run 0 formats --positions 300 --json bf16 e4m3 && grep -q '"first_collision": 257' "$dir/out" && grep -q '"first_collision": 17' "$dir/out"
ok $? "positions, in JSON"

turns 5
# ---- block recipes: every name of the list is one that stat takes ----
run 0 formats --recipes --csv && cut -d, -f1 "$dir/out" | tail -n +2 >"$dir/names" && [ "$(wc -l <"$dir/names")" -ge 37 ] &&
    run 0 stat --level total --csv -f "$(paste -sd, "$dir/names")" "$trace/step_000120" && awk -F, 'NR > 1 { print $16 }' "$dir/out" | cmp -s - "$dir/names"
ok $? "formats --recipes --csv, and stat of them all"
run 0 formats --recipes --json 'mxfp8:*' e4m3/128x128:ue8m0 && [ "$(grep -c '"name": "mxfp8:' "$dir/out")" -eq 6 ] && has '"mpsim.recipes/1"' &&
    has '"name": "e4m3/128x128:ue8m0", "element": "e4m3", "rule": "ue8m0", "block_rows": 128, "block_cols": 128, "scale_format": "e8m0", "tensor_scale": false'
ok $? "formats --recipes --json of some"
run 0 formats --recipes --ndjson nvfp4:rht && [ "$(wc -l <"$dir/out")" -eq 1 ] && has '^{"name": "nvfp4:rht16", .*"tensor_scale": true, "transform": 16, '
ok $? "formats --recipes --ndjson: a transform"

# ---- names ----
run 0 formats ' fp16 , bf16' --csv && [ "$(wc -l <"$dir/out")" -eq 3 ]; ok $? "blanks around names"

# ---- commands ----
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
scales() { "$MPSIM" stat -q -f fp16 -s "$1" --scale-kinds all -k weight --csv --level total "$trace" 2>"$dir/err" | awk -F, 'NR > 1 { printf "%s%s", t, $i; t = "," } NR == 1 { for (i = 1; $i != "scale"; i++); } END { print "" }' >"$dir/out"; }
scales '2^0..2^4' && has '^1,2,4,8,16$'; ok $? "--scale 2^0..2^4: every power of two between"
scales '3, 2**-2..1 ,1000,0x10..3.2e1,2^7..128' && has '^3,0.25,0.5,1,1000,16,32,128$'; ok $? "--scale: ranges and scales together, in that order"
scales '2^-100..2^155' && [ "$(tr ',' '\n' <"$dir/out" | wc -l)" -eq 256 ]; ok $? "--scale: 256 scales"
scale_fails() { run 2 stat -s "$1" "$trace" && has "stat: $2" err; ok $? "--scale '$1'"; }
for range in '2^0..' '..2^8' .. ... '2^0...2^3' '2^0..2^2..2^4'; do
    scale_fails "$range" "scales '$range': a range needs two ends"
done

# ---- formats --check: arguments are X FORMAT, then code, rel_err, verdict and lost ----
run 1 formats --check 65504 && [ "$(grep -vc '^[a-z0-9]*: ' "$dir/out")" -eq 47 ] && [ "$(grep -c ' leaves ' "$dir/out")" -eq 3 ]
ok $? "without names: all of the table, and what is left open for e4m3, e5m2, e8m0"
run 0 formats --check 3 e8m0 tf32 && has '^e8m0: OCP MX 1.0 leaves the rounding open' && ! has '^tf32:'; ok $? "--check: what a specification leaves open"
run 0 formats --check 3 e8m0@cuda && ! has '^e8m0:' && run 0 formats --check 2049 tf32 -r rna && ! has '^tf32:'; ok $? "not where one has chosen"
# ---- codes, and decimals that are no numbers of binary64
run 1 formats --check 0x7e --from e4m3 e5m2 e2m1 --ndjson && has '"constant": 448.0' && has '"code_of": "e4m3"'; ok $? "--check --from: a code"
run 0 formats --check 1.0005 -r sr --seed 1 fp16 && cp "$dir/out" "$dir/sr" && run 0 formats --check 1.0005 -r sr --seed 1 fp16 && cmp -s "$dir/out" "$dir/sr"; ok $? "--check --seed"
run 1 formats --check 500 fp16 e4m3 --json && has '"schema": "mpsim.check/1"' && has '"constant": 500.0, "format": "e4m3", "code": "0x7f", "value": "NaN", "rel_err": null, "verdict": "LOST: overflows to NaN", "lost": true, "typed": "500", "code_of": null}'; ok $? "--check --json"
run 1 formats --check 500 fp16 e4m3 --ndjson && [ "$(wc -l <"$dir/out")" -eq 2 ] && has '^{"constant": 500.0, "format": "fp16", "code": "0x5fd0", "value": 500.0, "rel_err": 0.0, "verdict": "exact", "lost": false, "typed": "500", "code_of": null}$'; ok $? "--check --ndjson"
run 1 formats --check 500 fp16 e4m3 --csv && [ "$(head -n 1 "$dir/out")" = constant,format,code,value,rel_err,verdict,lost ]; ok $? "--check --csv"

# ---- formats: lists ----
run 0 formats --csv && [ "$(head -n 1 "$dir/out" | cut -d, -f13-)" = source,signed,max_finite_code,decimal_digits ] && has '^e8m0,.*,no,0xfe,0.30$' && has '^e4m3,.*,yes,0x7e,1.20$' &&
    has '^bf16,.*,2.41$' && has '^fp16,.*,3.31$' && has '^binary32,.*,7.22$'; ok $? "csv: signed, max_finite_code, decimal_digits"
run 0 formats bf16 && has ' digits ' && has '^bf16  *16  8  7  *2.4  *127 ' && run 0 formats --json binary64 && has '"decimal_digits": 15.9'; ok $? "decimal digits"
run 0 formats --presets && grep '^ml-dtypes' "$dir/out" | grep -q 'zero of the other sign' && ! grep '^ieee' "$dir/out" | grep -q 'zero of'; ok $? "presets: ml-dtypes is not ieee"
list() { i=0; while [ $i -lt "$1" ]; do echo "e5m7:fn:bias=$i"; i=$((i + 1)); done; }
# shellcheck disable=SC2046 # words
run 0 formats --csv $(list 256) && [ "$(wc -l <"$dir/out")" -eq 257 ]; ok $? "256 operands"
# shellcheck disable=SC2046 # words
run 2 formats --csv $(list 257) && has 'more than 256' err; ok $? "257 operands: an error"

# ---- info ----
run 0 info "$trace/step_000120" && ! has '^file  *layout ' && has ', step 120$' && ! has 'mpsim.step = '; ok $? "info: one file, no metadata"
cp "$trace/step_000120/rank_00000.safetensors" "$dir/x" && run 2 info -o "$dir/x" "$dir/x" && has 'is an input' err; ok $? "info does not replace its input"
for form in --json --csv -v; do
    "$MPSIM" info $form "$trace" 2>"$dir/err" | true; [ ! -s "$dir/err" ]; ok $? "info $form: a closed pipe is silent"
done

finish
