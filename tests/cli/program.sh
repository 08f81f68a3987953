#!/bin/sh
# program.sh -- the mpsim program: help, exit codes, bad inputs, output forms, determinism. What needs no shell: program.md.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
trace=$MPSIM_SRCDIR/data/digits-cnn

# ---- help, usage ----
run 0 --help && has 'stat '; ok $? "help lists the commands"
run 0 --version && has '^mpsim [0-9]'; ok $? "version"
commands=$("$MPSIM" --help | sed -n '/help TOPIC/q; s/^  \([a-z]*\)   *[A-Z].*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 14 ]; ok $? "help names fourteen commands"
turns 5
for c in $commands; do
    run 0 $c --help && has "Usage: mpsim $c" && has Examples; ok $? "$c --help"
    run 0 help $c && has "Usage: mpsim $c"; ok $? "help $c"
    run 2 $c --no-such-option && has "no-such-option" err; ok $? "$c: unknown option"
done
turns 1
"$MPSIM" >"$dir/out" 2>"$dir/err" </dev/null
[ $? -eq 2 ] && [ ! -s "$dir/out" ] && has '^Usage: mpsim COMMAND' err; ok $? "no words: the usage, exit code 2" # it was 4
turns 5
run 2 stat --json --csv "$trace"; ok $? "two output forms"

turns 1
"$MPSIM" dot -K 8 -M exact >&- 2>"$dir/err"; [ $? -eq 4 ] && has 'standard output\|Bad file' err; ok $? "a closed standard output is an error"
"$MPSIM" stat --csv "$trace/step_000001" >&- 2>"$dir/err"; [ $? -eq 4 ]; ok $? "also for reports"

# ---- bad inputs ----
turns 5
: >"$dir/empty"; run 3 stat "$dir/empty"; ok $? "empty file"
printf 'hello, tensor' >"$dir/text"; run 3 stat "$dir/text"; ok $? "a text file"
mkdir "$dir/nothing"; run 3 stat "$dir/nothing"; ok $? "an empty directory"
head -c 5000 "$trace/step_000001/rank_00000.safetensors" >"$dir/cut.safetensors"
run 3 stat "$dir/cut.safetensors" && has 'cut.safetensors: offset' err; ok $? "a truncated file"
run 3 stat /dev/zero; ok $? "/dev/zero"
turns 1
"$MPSIM" stat --keep-going -q "$dir/cut.safetensors" "$trace/step_000001" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has '33' && [ "$(wc -l <"$dir/err")" -eq 1 ]; ok $? "--keep-going: the rest is reported, exit 5"
run 3 stat -o "$dir/report" "$dir/cut.safetensors" && [ ! -e "$dir/report" ] && [ "$(find "$dir" -name '.report*' | wc -l)" -eq 0 ]
ok $? "no report is left after a failure"
if [ -w /dev/full ]; then
    "$MPSIM" formats >/dev/full 2>"$dir/err"; [ $? -eq 4 ]; ok $? "a full disk: exit 4"
fi
"$MPSIM" stat --ndjson "$trace" 2>"$dir/err" | head -n 1 >"$dir/out"; [ ! -s "$dir/err" ]; ok $? "a closed pipe is silent"

# ---- formats ----
turns 5
run 0 formats --csv && [ "$(wc -l <"$dir/out")" -eq 47 ] && has '^e4m3,8,4,3,7,no,top,+-0,448,'; ok $? "formats --csv: 46 rows"
run 0 formats e5m7:fn --json && has '"exponent_bits": 5'; ok $? "a format of one's own"

# ---- stat: forms and determinism ----
turns 1
run 0 stat --json --threads 1 "$trace" && cp "$dir/out" "$dir/one" && has '"schema": "mpsim.stat/1"'; ok $? "stat --json"
turns 5
for t in 2 3 8; do
    run 0 stat --json --threads $t "$trace" && cmp -s "$dir/one" "$dir/out"; ok $? "the same bytes with $t threads"
done
files=$(find "$trace" -name '*.safetensors' | sort -r)
# shellcheck disable=SC2086 # a list of words
run 0 stat --json $files && cmp -s "$dir/one" "$dir/out"; ok $? "the same bytes for any order of files"
turns 5 together
run 0 stat -r sr:8 --seed 5 --csv --threads 1 -m 'agrad:*' "$trace" && cp "$dir/out" "$dir/sr"
run 0 stat -r sr:8 --seed 5 --csv --threads 4 -k agrad "$trace" && cmp -s "$dir/sr" "$dir/out"; ok $? "stochastic rounding: the same for any threads and selection"
run 0 stat -r sr:8 --seed 6 --csv -k agrad "$trace" && ! cmp -s "$dir/sr" "$dir/out"; ok $? "another seed differs"
turns 5
run 0 stat --ndjson "$trace" && [ "$(wc -l <"$dir/out")" -eq 306 ]; ok $? "ndjson: config, 291 tensors, kinds, steps, total"
run 0 stat --csv "$trace" && [ "$(head -n 1 "$dir/out" | tr ',' '\n' | wc -l)" -eq 25 ] && ! grep -q -v -e '^tensor,' -e '^level,' "$dir/out"; ok $? "csv: tensors only"
run 0 stat --csv --level kind "$trace" && [ "$(wc -l <"$dir/out")" -eq 25 ]; ok $? "csv of kinds: 6 kinds, 4 formats"
run 0 stat -o "$dir/r.json" --json "$trace" && cmp -s "$dir/one" "$dir/r.json" && [ ! -s "$dir/out" ]; ok $? "--output"
f=$trace/step_000001/rank_00000.safetensors
turns 1
"$MPSIM" stat --csv - <"$f" 2>"$dir/err" | sed 's/^tensor,-,/tensor,x,/' >"$dir/a"
"$MPSIM" stat --csv "$f" | sed "s|^tensor,$f,|tensor,x,|" >"$dir/b"
# standard input has no path, so that the step comes from the metadata in both
cmp -s "$dir/a" "$dir/b"; ok $? "standard input gives the same numbers"

# ---- cast, raw, npy ----
turns 1
run 0 cast -f e4m3 -o "$dir/c.safetensors" "$f" && has underflow; ok $? "cast to e4m3"
turns 5
run 0 info -v "$dir/c.safetensors" && has 'F8_E4M3' && has 'mpsim.cast.format = e4m3'; ok $? "its dtype and metadata"
run 0 stat -f e4m3 "$dir/c.safetensors" && grep -q '^  *total .* e4m3 *0 ' "$dir/out"; ok $? "casting again changes nothing"
turns 5 together
run 0 cast -f e4m3 --widen -q -o "$dir/w.safetensors" "$f"
run 0 stat --csv -f e5m2 "$dir/c.safetensors" && cut -d, -f1,3,8-24 "$dir/out" | sed 's/F8_E4M3//' >"$dir/a"
run 0 stat --csv -f e5m2 "$dir/w.safetensors" && cut -d, -f1,3,8-24 "$dir/out" | sed 's/F32//' >"$dir/b"
cmp -s "$dir/a" "$dir/b"; ok $? "narrow and widened hold the same numbers"
run 0 cast -f e4m3 -o "$dir/c2.safetensors" "$dir/w.safetensors"
due && "$MPSIM" stat --csv "$dir/c2.safetensors" | cut -d, -f3- >"$dir/a"
due && "$MPSIM" stat --csv "$dir/c.safetensors" | cut -d, -f3- >"$dir/b"
cmp -s "$dir/a" "$dir/b"; ok $? "cast, widen, cast: the same tensors"
turns 5
run 2 cast -f e4m3 -o "$dir/x.npy" "$f"; ok $? "many tensors do not fit npy"
turns 1
run 0 cast -f fp16 -m 'weight:fc2.weight' -o "$dir/x.npy" "$f" && run 0 info "$dir/x.npy" && has '<f2'; ok $? "one tensor as npy"
turns 5
cp "$f" "$dir/same.safetensors"
run 2 cast -f bf16 -o "$dir/same.safetensors" "$dir/same.safetensors" && cmp -s "$f" "$dir/same.safetensors"; ok $? "cast does not replace its input"
run 2 stat -o "$dir/same.safetensors" "$dir/same.safetensors" && cmp -s "$f" "$dir/same.safetensors"; ok $? "nor does stat"
run 2 stat "$f" "$dir/../$(basename "$dir")/same.safetensors" "$dir/same.safetensors" &&
    has "twice, as '.*same.safetensors' and '.*same.safetensors'" err; ok $? "a file given twice, under which names"
run 0 stat --json "$f" && cp "$dir/out" "$dir/want" && TMPDIR=$dir/none run 0 stat --json "$f" && cmp "$dir/want" "$dir/out" >>"$dir/err" && [ ! -s "$dir/err" ]
[ $? -eq 0 ] || [ "$(uname)" != Linux ]; ok $? "no folder for temporary files: a report waits in memory"
gzip -c "$f" >"$dir/packed.gz" && TMPDIR=$dir/none run 4 stat "$dir/packed.gz" && has "temporary file in $dir/none to unpack" err; ok $? "what is unpacked needs one: which"
due && "$MPSIM" cast -f e4m3 -o - "$f" >"$dir/piped.safetensors" 2>"$dir/err" && cmp -s "$dir/piped.safetensors" "$dir/c.safetensors"; ok $? "cast to standard output: the same bytes"
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

# ---- which kinds a scale multiplies ----
s20=$trace/step_020000
run 0 stat -f fp16 "$s20" && ! has 'Scaled'; ok $? "without a scale nothing is said"
run 0 stat --csv --level kind -f fp16,bf16 -s 1,2^10,2^16 "$s20" && [ "$(grep -c '^kind,,,weight,.*,1,' "$dir/out")" -eq 2 ] &&
    [ "$(grep -c '^kind,,,weight,' "$dir/out")" -eq 2 ] && [ "$(grep -c '^kind,,,agrad,' "$dir/out")" -eq 6 ]
ok $? "one row for each format where all scales are 1"
due && "$MPSIM" stat --csv -f fp16 -k weight "$s20" >"$dir/a" && run 0 stat --csv -f fp16 -s 2^10 -k weight "$s20" && cmp -s "$dir/a" "$dir/out"; ok $? "weights are those without a scale"
due && "$MPSIM" stat --csv -f fp16 -s 2^10 --scale-kinds weight "$s20" >"$dir/a" && "$MPSIM" stat --csv -f fp16 -s 2^10 --scale-kinds all "$s20" >"$dir/b" &&
    [ "$(grep -c ':.*,fp16,1024,' "$dir/a")" -eq "$(grep -c 'weight:' "$dir/b")" ] && [ "$(grep -c ',fp16,1024,' "$dir/b")" -eq 43 ]
ok $? "--scale-kinds"
run 0 stat --json -s 2 "$s20" && has '"scaled_kinds": \["agrad", "dgrad", "wgrad"\]'; ok $? "JSON: the kinds that are scaled"
due && "$MPSIM" cast -f fp16 -m 'weight:fc2.weight' -q -o "$dir/nokind.npy" "$f" && run 0 stat -f bf16 -s 2^10 "$dir/nokind.npy" && has '^Scaled: tensors without a kind' && has '2^10'
ok $? "a tensor without a kind is scaled"

# ---- NaN and Inf first ----
# one F32 tensor of two elements each
two() { # two NAME0 BYTES0 NAME1 BYTES1 NAME2 BYTES2 FILE
    header='{"'$1'":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"'$3'":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"'$5'":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}'
    # shellcheck disable=SC2059 # the bytes are escapes
    { printf "\\$(printf %03o ${#header})\\000\\000\\000\\000\\000\\000\\000"; printf '%s' "$header"; printf "$2$4$6"; } >"$7"
}
one='\000\000\200\077' nan='\000\000\300\177' inf='\000\000\200\377'
mkdir -p "$dir/broken/step_1" "$dir/broken/step_2"
two act:a "$one$one" act:b "$one$nan" wgrad:c "$one$one" "$dir/broken/step_1/x.safetensors"
two act:a "$one$one" act:b "$one$one" wgrad:c "$inf$one" "$dir/broken/step_2/x.safetensors"
run 0 stat -t -f fp16 "$dir/broken" && [ "$(awk '/^By tensor/ { on = 1 } on && /:/ { printf "%s%s ", $1, $2 } /^By kind/ { exit }' "$dir/out")" = \
    'act:b1 wgrad:c2 act:a1 wgrad:c1 act:a2 act:b2 act:b1 wgrad:c2 act:a1 wgrad:c1 act:a2 act:b2 ' ]
ok $? "-t: tensors with NaN or Inf first, in both tables"
run 0 stat -f fp16 "$dir/broken" && has '^Tensors with NaN or Inf$' && has '^  act:b *1 *2 *0 *1 ' && has '^  wgrad:c *2 *2 *0 *1 ' && ! has 'act:a' &&
    [ "$(grep -n 'Tensors with' "$dir/out" | cut -d: -f1)" -lt "$(grep -n 'By kind' "$dir/out" | cut -d: -f1)" ]
ok $? "without -t they are listed alone, before the sums"
run 0 stat -f fp16 "$trace" && ! has 'NaN'; ok $? "nothing is said where there are none"
for i in $(seq 40); do mkdir "$dir/broken/step_1$i"; cp "$dir/broken/step_1/x.safetensors" "$dir/broken/step_1$i"; done
run 0 stat -f fp16 "$dir/broken" && has '^  and 12 more: -t lists all' && [ "$(grep -c '^  act:b ' "$dir/out")" -eq 29 ]; ok $? "the first thirty"
run 0 stat --csv -f fp16 "$dir/broken/step_1" && [ "$(cut -d, -f3 "$dir/out" | tr '\n' ' ')" = 'name act:a act:b wgrad:c ' ]; ok $? "CSV keeps the order of the file"

# ---- --fail-if ----
# fails CODE LINES ARGUMENT...: the report is written all the same; so many lines on standard error
fails() {
    due || return 1
    want=$1 lines=$2
    shift 2
    "$MPSIM" stat "$@" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq "$want" ] && [ -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq "$lines" ] && ! grep -qv '^mpsim: stat: --fail-if ' "$dir/err"
}
b=$dir/broken/step_1
fails 1 1 -f fp16 --fail-if nan,inf "$b" && has 'stat: --fail-if nan: act:b, step 1: 1 element, 50.00 %$' err; ok $? "--fail-if nan"
fails 0 0 -f fp16 --fail-if inf "$b"; ok $? "--fail-if inf: there is none"
fails 1 2 -f fp16 --fail-if nan,inf "$dir/broken/step_1" "$dir/broken/step_2" && has 'inf: wgrad:c, step 2' err; ok $? "a line for each that holds"
fails 1 1 --quiet --json -f fp16 --fail-if 'nan' "$b"; ok $? "also of JSON, and with --quiet"
fails 1 1 -f fp16 --fail-if 'underflow>1%' "$s20" && has "underflow>1%: agrad:[a-z0-9]*, step 20000 as fp16: .* %, the worst of" err; ok $? "--fail-if 'underflow>1%'"
fails 0 0 -f fp16 -k agrad --fail-if 'total:underflow>54.25%' "$s20" && fails 1 1 -f fp16 -k agrad --fail-if 'total:underflow>54.23%' "$s20" &&
    has 'in total as fp16: 27,387 elements, 54.24 %$' err
ok $? "of the total"
fails 1 1 -f fp16 --fail-if 'kind:underflow>=27387' "$s20" && fails 0 0 -f fp16 --fail-if 'kind:underflow>27387' "$s20" && fails 0 0 -f fp16 -k agrad --fail-if 'step:underflow<27387' "$s20" &&
    fails 1 1 -f fp16 -k agrad --fail-if 'step:underflow<=27387' "$s20" && has 'step 20000 as fp16' err
ok $? "levels, and the four comparisons"
fails 1 1 -f fp16 -s 1,2^16 -k agrad --fail-if 'kind:sqnr<30' "$s20" && has 'agrad as fp16: 26.26[0-9]* dB$' err && fails 0 0 -f fp16 -s 2^16 -k agrad --fail-if 'kind:sqnr<30' "$s20"; ok $? "SQNR, with and without a scale"
fails 1 1 -f fp16 -s 2^40 --fail-if 'overflow' -k agrad "$s20" && has ' times 2^40 as fp16' err; ok $? "the cast is named with its scale"
fails 1 1 -f fp16 -s 2^40 --overflow saturate --fail-if saturated -k agrad "$s20" && fails 0 0 -f fp16 -s 2^40 --fail-if saturated -k agrad "$s20"; ok $? "saturated: where the cast saturates"
printf '\000\000\200\107\000\000\200\107' >"$dir/large" # fp32: 65536, 65536
fails 1 3 --dtype fp32 -f fp16 --fail-if 'sqnr<0' --fail-if 'mse>1,max_rel_err>1' "$dir/large"; ok $? "where every element overflows nothing of the signal is left"
fails 1 2 --fail-if 'amax>1,amin<2,zero' -k weight -f fp16 "$s20" && has 'amax>1: weight' err; ok $? "what tensors hold"
for word in undeflow ''; do run 2 stat --fail-if "$word" "$b" && has 'is not a condition' err; ok $? "--fail-if '$word'"; done
run 2 stat --fail-if undeflow "$b" && has 'did you mean underflow?' err; ok $? "a suggestion"
for word in sqnr 'sqnr<5%' 'nan>q' nan=3 'nan>' 'underflow>1%%' 'underflow > 1 x' total: nothing:nan 'nan,'; do run 2 stat --fail-if "$word" "$b"; ok $? "--fail-if '$word'"; done
due && "$MPSIM" stat --keep-going -q --fail-if nan -f fp16 "$dir/cut.safetensors" "$b" >"$dir/out" 2>"$dir/err"; [ $? -eq 1 ]; ok $? "a condition that holds counts more than a file that failed"
due && "$MPSIM" stat --keep-going -q --fail-if inf -f fp16 "$dir/cut.safetensors" "$b" >"$dir/out" 2>"$dir/err"; [ $? -eq 5 ]; ok $? "one that does not leaves it at that"

# ---- an error about a file names it: every sort of bad file, to every option that takes one ----
mkdir "$dir/bad" && (cd "$dir/bad" && : >empty.x && echo hello >text.x && head -c 100 "$f" >cut.x && printf '{"a":1}' >json.x &&
    mkdir dir.x && cp "$f" good.x)
while read -r words; do
    due || { ok 1 "$words" && continue; }
    unnamed=
    for bad in none empty text cut json dir good; do
        # shellcheck disable=SC2046 # words
        (cd "$dir/bad" && exec "$MPSIM" $(echo "$words" | sed "s,FILE,./$bad.x,g; s,OUT,./out,")) \
            >/dev/null 2>"$dir/err" </dev/null
        [ $? -le 1 ] || grep -q "$bad\.x" "$dir/err" || unnamed="$unnamed $bad"
    done
    [ -z "$unnamed" ] || echo "not named:$unnamed" >>"$dir/err"
    [ -z "$unnamed" ]; ok $? "the file is named: $words"
done <<'TABLE'
info FILE
stat FILE
stat -m nothing FILE
cast -f bf16 -o OUT.npy FILE
cast -f bf16 -m nothing -o OUT FILE
dot -f fp16 --a weight:fc1.weight --b weight:conv2.weight FILE
dot -f fp16 FILE FILE
attention FILE FILE FILE
mismatch -a fma -b fma --hidden FILE --head FILE
judge cast FILE
mismatch -a fma -b fma --tokens FILE
scaler --log FILE
scaler -m nothing FILE
scaler -m nothing --adaptive FILE
scaler --pattern @FILE
scaler --pattern 1,0 --state-in FILE
replay -P fp32 FILE
advise FILE
report FILE
train -P FILE
train --run FILE
train --resume FILE
plot histogram FILE
verify vectors --vectors FILE
TABLE

finish
