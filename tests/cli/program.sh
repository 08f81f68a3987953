#!/bin/sh
# program.sh -- the mpsim program: help, exit codes, error lines, output forms, determinism.
set -u
: "${MPSIM_SRCDIR:=.}"
# shellcheck source=tests/cli/common.sh
. "$MPSIM_SRCDIR/tests/cli/common.sh"
LC_ALL=C
export LC_ALL
trace=$MPSIM_SRCDIR/data/digits-cnn

# ---- help, usage ----
run 0 --help && has 'stat '; ok $? "help lists the commands"
run 0 --version && has '^mpsim [0-9]'; ok $? "version"
for c in formats info cast stat calc dot plot verify; do
    run 0 $c --help && has "Usage: mpsim $c" && has Examples; ok $? "$c --help"
    run 0 help $c && has "Usage: mpsim $c"; ok $? "help $c"
    run 2 $c --no-such-option && has "no-such-option" err; ok $? "$c: unknown option"
done
run 2 frobnicate && has "frobnicate" err; ok $? "unknown command"
run 2 stat; ok $? "stat without a file"
run 2 stat -f; ok $? "option without its argument"
run 2 stat -f fp61 "$trace" && has "did you mean" err; ok $? "unknown format: a suggestion"
run 2 stat -f e4m3@nowhere "$trace" && has "nowhere" err; ok $? "unknown preset"
run 2 stat -r sideways "$trace"; ok $? "unknown rounding mode"
run 2 stat -r sr:33 "$trace"; ok $? "33 random bits"
run 2 stat -s 0 "$trace"; ok $? "scale zero"
run 2 stat -s nan "$trace"; ok $? "scale NaN"
run 2 stat --json --csv "$trace"; ok $? "two output forms"
run 2 stat --kind gradient "$trace"; ok $? "unknown kind"
run 2 stat --shape 3 "$trace"; ok $? "shape without dtype"
run 2 stat -f e5m0 "$trace" && has 'no room for NaN' err; ok $? "a format that cannot be"

"$MPSIM" dot -K 8 -M exact >&- 2>"$dir/err"; [ $? -eq 4 ] && has 'standard output\|Bad file' err; ok $? "a closed standard output is an error"
"$MPSIM" stat --csv "$trace/step_000001" >&- 2>"$dir/err"; [ $? -eq 4 ]; ok $? "also for reports"

# ---- bad inputs ----
run 4 stat "$dir/none"; ok $? "missing file"
: >"$dir/empty"; run 3 stat "$dir/empty"; ok $? "empty file"
printf 'hello, tensor' >"$dir/text"; run 3 stat "$dir/text"; ok $? "a text file"
mkdir "$dir/nothing"; run 3 stat "$dir/nothing"; ok $? "an empty directory"
head -c 5000 "$trace/step_000001/rank_00000.safetensors" >"$dir/cut.safetensors"
run 3 stat "$dir/cut.safetensors" && has 'cut.safetensors: offset' err; ok $? "a truncated file"
run 3 stat /dev/zero; ok $? "/dev/zero"
"$MPSIM" stat --keep-going -q "$dir/cut.safetensors" "$trace/step_000001" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has '33' && [ "$(wc -l <"$dir/err")" -eq 1 ]; ok $? "--keep-going: the rest is reported, exit 5"
run 3 stat -o "$dir/report" "$dir/cut.safetensors" && [ ! -e "$dir/report" ] && [ "$(find "$dir" -name '.report*' | wc -l)" -eq 0 ]
ok $? "no report is left after a failure"
if [ -w /dev/full ]; then
    "$MPSIM" formats >/dev/full 2>"$dir/err"; [ $? -eq 4 ]; ok $? "a full disk: exit 4"
fi
"$MPSIM" stat --ndjson "$trace" 2>"$dir/err" | head -n 1 >"$dir/out"; [ ! -s "$dir/err" ]; ok $? "a closed pipe is silent"

# ---- formats ----
run 0 formats --csv && [ "$(wc -l <"$dir/out")" -eq 47 ] && has '^e4m3,8,4,3,7,no,top,+-0,448,'; ok $? "formats --csv: 46 rows"
run 0 formats half && has fp16; ok $? "an alias"
run 0 formats e5m7:fn --json && has '"exponent_bits": 5'; ok $? "a format of one's own"
run 0 formats --presets && has cuda; ok $? "presets"
run 0 formats --modes && has to-odd; ok $? "modes"
run 1 formats --check 1e-8 fp16 bf16 && has 'LOST: underflows'; ok $? "1e-8 is lost in fp16: exit 1"
run 0 formats --check 1e-8 bf16 binary32; ok $? "1e-8 survives bf16"

# ---- stat: forms and determinism ----
run 0 stat --json --threads 1 "$trace" && cp "$dir/out" "$dir/one" && has '"schema": "mpsim.stat/1"'; ok $? "stat --json"
for t in 2 3 8; do
    run 0 stat --json --threads $t "$trace" && cmp -s "$dir/one" "$dir/out"; ok $? "the same bytes with $t threads"
done
files=$(find "$trace" -name '*.safetensors' | sort -r)
# shellcheck disable=SC2086 # a list of words
run 0 stat --json $files && cmp -s "$dir/one" "$dir/out"; ok $? "the same bytes for any order of files"
run 0 stat -r sr:8 --seed 5 --csv --threads 1 -m 'agrad:*' "$trace" && cp "$dir/out" "$dir/sr"
run 0 stat -r sr:8 --seed 5 --csv --threads 4 -k agrad "$trace" && cmp -s "$dir/sr" "$dir/out"; ok $? "stochastic rounding: the same for any threads and selection"
run 0 stat -r sr:8 --seed 6 --csv -k agrad "$trace" && ! cmp -s "$dir/sr" "$dir/out"; ok $? "another seed differs"
run 0 stat --ndjson "$trace" && [ "$(wc -l <"$dir/out")" -eq 306 ]; ok $? "ndjson: config, 291 tensors, kinds, steps, total"
run 0 stat --csv "$trace" && [ "$(head -n 1 "$dir/out" | tr ',' '\n' | wc -l)" -eq 25 ] && ! grep -q -v -e '^tensor,' -e '^level,' "$dir/out"; ok $? "csv: tensors only"
run 0 stat --csv --level kind "$trace" && [ "$(wc -l <"$dir/out")" -eq 25 ]; ok $? "csv of kinds: 6 kinds, 4 formats"
run 2 stat --level kind "$trace"; ok $? "--level without --csv"
run 2 stat --histogram "$trace"; ok $? "--histogram without --json"
run 0 stat -f fp16 -k agrad "$trace/step_020000" && has '27,387 *54.24 %'; ok $? "fp16 underflow of agrad at step 20000"
run 0 stat -o "$dir/r.json" --json "$trace" && cmp -s "$dir/one" "$dir/r.json" && [ ! -s "$dir/out" ]; ok $? "--output"
f=$trace/step_000001/rank_00000.safetensors
"$MPSIM" stat --csv - <"$f" 2>"$dir/err" | sed 's/^tensor,-,/tensor,x,/' >"$dir/a"
"$MPSIM" stat --csv "$f" | sed "s|^tensor,$f,|tensor,x,|" >"$dir/b"
# standard input has no path, so that the step comes from the metadata in both
cmp -s "$dir/a" "$dir/b"; ok $? "standard input gives the same numbers"

# ---- cast, raw, npy ----
run 0 cast -f e4m3 -o "$dir/c.safetensors" "$f" && has underflow; ok $? "cast to e4m3"
run 0 info -v "$dir/c.safetensors" && has 'F8_E4M3' && has 'mpsim.cast.format = e4m3'; ok $? "its dtype and metadata"
run 0 stat -f e4m3 "$dir/c.safetensors" && grep -q '^  *total .* e4m3 *0 ' "$dir/out"; ok $? "casting again changes nothing"
run 0 cast -f e4m3 --widen -q -o "$dir/w.safetensors" "$f"
run 0 stat --csv -f e5m2 "$dir/c.safetensors" && cut -d, -f1,3,8-24 "$dir/out" | sed 's/F8_E4M3//' >"$dir/a"
run 0 stat --csv -f e5m2 "$dir/w.safetensors" && cut -d, -f1,3,8-24 "$dir/out" | sed 's/F32//' >"$dir/b"
cmp -s "$dir/a" "$dir/b"; ok $? "narrow and widened hold the same numbers"
run 0 cast -f e4m3 -o "$dir/c2.safetensors" "$dir/w.safetensors"
"$MPSIM" stat --csv "$dir/c2.safetensors" | cut -d, -f3- >"$dir/a"
"$MPSIM" stat --csv "$dir/c.safetensors" | cut -d, -f3- >"$dir/b"
cmp -s "$dir/a" "$dir/b"; ok $? "cast, widen, cast: the same tensors"
run 2 cast -f e2m1 -o "$dir/x.safetensors" "$f" && has '--widen' err; ok $? "no dtype for e2m1: the message names --widen"
run 2 cast -f e4m3 -o "$dir/x.npy" "$f"; ok $? "many tensors do not fit npy"
run 0 cast -f fp16 -m 'weight:fc2.weight' -o "$dir/x.npy" "$f" && run 0 info "$dir/x.npy" && has '<f2'; ok $? "one tensor as npy"
cp "$f" "$dir/same.safetensors"
run 2 cast -f bf16 -o "$dir/same.safetensors" "$dir/same.safetensors" && cmp -s "$f" "$dir/same.safetensors"; ok $? "cast does not replace its input"
run 2 stat -o "$dir/same.safetensors" "$dir/same.safetensors" && cmp -s "$f" "$dir/same.safetensors"; ok $? "nor does stat"
run 2 stat "$f" "$dir/../$(basename "$dir")/same.safetensors" "$dir/same.safetensors" &&
    has "twice, as '.*same.safetensors' and '.*same.safetensors'" err; ok $? "a file given twice, under which names"
TMPDIR=$dir/none run 4 stat -o "$dir/x" "$f" && has "temporary file in $dir/none: " err; ok $? "no folder for temporary files: which"
run 2 cast -f bf16 -o "$dir/x.npz" "$f"; ok $? "npz is not written"
run 3 stat -m nothing "$trace"; ok $? "no tensor selected"
"$MPSIM" cast -f e4m3 -o - "$f" >"$dir/piped.safetensors" 2>"$dir/err" && cmp -s "$dir/piped.safetensors" "$dir/c.safetensors"; ok $? "cast to standard output: the same bytes"
for i in 1 2; do cp "$dir/x.npy" "$dir/w$i.npy"; done
run 0 stat --csv -r sr:8 -f e5m2 "$dir/w1.npy" "$dir/w2.npy" && [ "$(cut -d, -f20- "$dir/out" | sort -u | wc -l)" -eq 3 ]; ok $? "files without names draw different random bits"
run 0 stat -f fp16 "$dir/x.npy" && ! has kind && ! has total; ok $? "one array: one table each, nothing repeated"
run 0 stat -f fp16 -s 2,4096 "$dir/x.npy" && has '2^12'; ok $? "scales keep their digits"
printf '\000\000\200\107\000\000\000\000' >"$dir/raw32" # fp32: 65536, 0
run 0 stat --dtype fp32 -f fp16 "$dir/raw32" && has 'exact\*' && has 'became Inf'; ok $? "a star marks an SQNR without the overflowed"
run 0 stat --dtype fp32 -f fp16 --json "$dir/raw32" && has '"compared": 1'; ok $? "and JSON counts what was compared"
printf '\000\074\000\300\001\000\000\174' >"$dir/raw" # fp16: 1, -2, 2^-24, inf
run 0 stat --dtype fp16 -f e5m2 "$dir/raw" && has '5.960e-08' && has ' 2 '; ok $? "raw fp16"
run 0 stat --dtype fp16 --big-endian "$dir/raw"; ok $? "raw big-endian"
run 3 stat --dtype fp32 --shape 3 "$dir/raw"; ok $? "raw: size and shape disagree"
zero=$dir/evil; mkdir "$zero"
cp "$f" "$zero/$(printf 'a\033[31mb\n').safetensors"
run 0 info "$zero" && ! grep -q "$(printf '\033')" "$dir/out"; ok $? "control characters of names are escaped"

finish
