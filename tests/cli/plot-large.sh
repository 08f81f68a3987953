#!/bin/sh
# plot-large.sh -- reports much larger than a figure: no more memory than their text, plus a little; damage
# inside them is found; what is too large is refused.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
MPSIM_GNUPLOT=$dir/none # the data tell
export MPSIM_GNUPLOT
samples=$MPSIM_SRCDIR/tests/cli/reports

# 5 to 12 MB each
awk '/"weight:fc1.weight"/ { sub(/,$/, ""); for (i = 1; i < 6000; i++) print $0 "," } { print }' "$samples/report.json" |
    sed 's/^\(  {"file": "t.safetensors", "name": "weight:fc1.weight".*}\)$/\1,/' >"$dir/stat.json"
awk '/"model": "it/ && !done { done = 1; for (i = 1; i < 20000; i++) print } { print }' "$samples/dot.json" >"$dir/dot.json"
awk '/^{"step": 1,/ && !done { done = 1; for (i = 1; i < 15000; i++) { s = $0; sub(/"step": 1,/, "\"step\": " i ",", s); print s } }
     /^{"step": / && done == 1 { sub(/"step": /, "\"step\": 1500"); if (/}$/) done = 2 } { print }' "$samples/train.json" >"$dir/train.json"
{ # 15 MB of lines
    echo '{"level": "config", "schema": "mpsim.stat/1", "mpsim": "0", "scales": [1], "formats": [{"name": "fp16", "bits": 16, "exponent_bits": 5,' \
        '"significand_bits": 11, "bias": 15, "max": 65504, "min_normal": 0.00006103515625, "min_positive": 5.9604644775390625e-08,' \
        '"epsilon": 0.0009765625}], "recipes": []}'
    awk '/"weight:fc1.weight"/ { sub(/,$/, ""); sub(/^ *{/, "{\"level\": \"tensor\", "); for (n = 0; n < 15000000; n += length($0) + 1) print; exit }' \
        "$samples/report.json"
} >"$dir/lines.ndjson"
for r in stat dot train; do
    [ "$(wc -c <"$dir/$r.json")" -gt 5000000 ]; ok $? "$r: a report of $(wc -c <"$dir/$r.json") bytes"
done

limited() { # limited KILOBYTES ARGUMENT...: mpsim plot in so much address space; what gnuplot would draw is written
    due || return 1
    limit=$1
    shift
    (ulimit -v "$limit" && exec "$MPSIM" plot "$@") >"$dir/out" 2>"$dir/err"
    [ $? -eq 4 ] && has 'are written' err
}
# what the program and its libraries take before they begin, to ten thousand
base=10000
until (ulimit -v $base && "$MPSIM" --version) >/dev/null 2>&1 || [ $base -ge 400000 ]; do base=$((base + 10000)); done
most=$((base + 50000))
turns 4
if [ $base -lt 400000 ]; then
    limited $most histogram -o "$dir/h" "$dir/stat.json"; ok $? "histogram in 50 MB"
    limited $most histogram -m 'weight:*' -o "$dir/h" "$dir/stat.json" && grep -q '^# elements: 192000$' "$dir/h.dat"; ok $? "histogram of 6000 tensors"
    limited $most ruler -m 'weight:*' -o "$dir/r" "$dir/stat.json" && grep -q ' 192000 24000 "weight:fc1.weight"' "$dir/r.dat"; ok $? "ruler of 6000 tensors"
    limited $most sqnr -m 'weight:*' -o "$dir/q" "$dir/stat.json" && grep -q ' "weight:fc1.weight"' "$dir/q.dat"; ok $? "SQNR of 6000 tensors"
    limited $((base + 20000)) ruler -m 'weight:*' -o "$dir/r" "$dir/lines.ndjson"; ok $? "15 MB of lines in 20 MB"
    limited $most accumulation -o "$dir/a" "$dir/dot.json"; ok $? "accumulation in 50 MB"
    limited $most training -o "$dir/t" "$dir/train.json" && grep -q 'steps 1 to 150020' "$dir/t.dat"; ok $? "training in 50 MB"
    limited $most training -o "$dir/t" - <"$dir/train.json"; ok $? "training from standard input"
else
    echo "ok $((n += 1)) - memory # SKIP no limit can be set"
fi

# ---- damage in what is read item by item ----
due && sed '4500s/"zero": [0-9]*/"zero": x/' "$dir/stat.json" >"$dir/bad.json"
run 3 plot ruler -o "$dir/b" "$dir/bad.json" && has 'bad.json: not JSON: line 4500, column' err; ok $? "a bad item: its line"
due && sed '4500s/},*$//' "$dir/stat.json" >"$dir/bad.json"
run 3 plot ruler -o "$dir/b" "$dir/bad.json" && has 'not JSON: line' err; ok $? "an item without an end"
due && sed '4500s/,$//' "$dir/stat.json" >"$dir/bad.json"
run 3 plot ruler -o "$dir/b" "$dir/bad.json" && has 'not JSON: line 4501' err; ok $? "no comma between two items"
due && head -c 2500000 "$dir/stat.json" >"$dir/bad.json"
run 3 plot ruler -o "$dir/b" "$dir/bad.json" && has 'not JSON' err; ok $? "cut"
due && sed '4500s/"zero": [0-9]*/"zero": -1/' "$dir/stat.json" >"$dir/bad.json"
run 3 plot ruler -m 'weight:*' -o "$dir/b" "$dir/bad.json" && has '"zero" is missing or not a count' err; ok $? "a negative count"
{ printf '{"schema": "mpsim.stat/1", "x": "'; yes xxxxxxxxxxxxxxx | head -n 40000 | tr -d '\n'; printf '"}'; } >"$dir/bad.json"
run 3 plot ruler -o "$dir/b" "$dir/bad.json" && has 'more than 256 KiB' err; ok $? "a text without measure"
turns 1
[ ! -e "$dir/b.dat" ]; ok $? "nothing is written of them"

finish
