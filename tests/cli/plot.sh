#!/bin/sh
# plot.sh -- mpsim plot: figures appear whole or not at all, names are inert, bad reports fail.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
# shellcheck source=tests/cli/plotting.sh
. "$MPSIM_SRCDIR/tests/cli/plotting.sh"
plot() { # plot ARGUMENT...: mpsim plot
    due || return 1
    "$MPSIM" plot "$@"
}
fails() { # fails CODE TEXT ARGUMENT...: that exit code and one line on stderr with TEXT
    due || return 1
    want=$1 text=$2
    shift 2
    "$MPSIM" plot "$@" >out 2>err </dev/null
    code=$?
    [ "$code" -eq "$want" ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -- "$text" err
}
drawn() { grep -q '</svg>' "$1.svg" 2>/dev/null; } # drawn PREFIX: the svg, which is drawn in a tenth of the time
says() { # says FILE.svg TEXT...: texts of the figure, one element each
    svg=$1
    shift
    for text in "$@"; do
        grep -qF -- "<text>$text</text>" "$svg" && continue
        echo "$svg: no text '$text'" >err
        return 1
    done
}
nothing() { # nothing PREFIX: no figure, no temporary
    for f in "$1".pdf "$1".png "$1".svg "$1".??????; do
        [ ! -e "$f" ] || return 1
    done
}

# ---- figures ----
for figure in $figures; do
    source_of $figure
    turns 8 together
    due || { ok 1 "$figure" && continue; }
    plot "$figure" "$from" >out 2>err && whole "$figure" && [ ! -s err ]
    ok $? "$figure: pdf, png and svg"
    mkdir again-$figure
    cp $figure.gp $figure.dat again-$figure
    (cd again-$figure && gnuplot -d $figure.gp) >out 2>err && whole again-$figure/$figure
    ok $? "$figure: the script draws it again elsewhere"
    cmp again-$figure/$figure.svg $figure.svg >err 2>&1 &&
        cmp again-$figure/$figure.png $figure.png >>err 2>&1
    ok $? "$figure: the same bytes"
done
turns 8
plot histogram --log --kind agrad --step 1 --format e4m3 --scale 2^10 --venue icml \
    --title "it's" -o 'a b' "$report" >out 2>err && whole 'a b' &&
    grep -q "^title = 'it''s'\$" 'a b.gp' && grep -q '^width = 3.25 ' 'a b.gp'
ok $? 'histogram: options'
plot histogram --match zeros --type svg -o zeros "$report" >out 2>err &&
    grep -q '</svg>' zeros.svg && [ ! -e zeros.png ] && [ ! -s err ]
ok $? 'histogram: nothing but zeros, and only svg'
plot histogram --log --match zeros --type svg -o zeros "$report" >out 2>err &&
    grep -q '</svg>' zeros.svg
ok $? 'histogram: nothing but zeros, logarithmic'
sed 's/"count": [0-9]*/"count": 0/g; s/"zero": [0-9]*/"zero": 0/g; s/"nan": [0-9]*/"nan": 0/g
     s/"inf": [0-9]*/"inf": 0/g; s/"counts": [^]]*/"counts": [/' "$report" >nothing.json
for log in --type=svg --log; do
    plot histogram $log --type svg -o nothing nothing.json >out 2>err &&
        grep -q '</svg>' nothing.svg
    ok $? "histogram: no elements at all ($log)"
done
turns 8
plot histogram --type svg --scale 1 -o one-scale "$report" >out 2>err && drawn one-scale &&
    silent
ok $? 'histogram: a single scale, and no warning of gnuplot'
plot ruler --type svg -o from-stdin - <"$report" >out 2>err && drawn from-stdin
ok $? 'ruler: report on standard input'
mkdir folder
plot ruler --type svg -o folder/ "$report" >out 2>err && drawn folder/ruler
ok $? 'ruler: into a folder'

# ---- what the figures say ----
trace=$top/data/digits-cnn
turns 1
"$MPSIM" stat --quiet --json --histogram -o one.json "$trace" >out 2>err &&
    plot histogram --type svg -o one one.json >out 2>err && drawn one &&
    says one.svg 'underflow (%)' '× 1' subnormal normal && ! grep -q '× 2' one.svg
ok $? 'histogram: a report of mpsim stat without --scale'
turns 8
for venue in icml none; do
    plot histogram -k agrad --type svg --venue $venue -o said one.json >out 2>err &&
        says said.svg '← 0.14 % lie further left' 'steps 1 to 20000 together'
    ok $? "histogram: the tail and the steps ($venue)"
done
turns 8 together
due && "$MPSIM" stat --quiet --json --histogram -s 2^10,1000,2^-4 -o scaled.json \
    -f fp16,bf16,e4m3,e5m2,e4m3fnuz,e3m4,e2m1,binary8p3se "$trace" >out 2>err &&
    plot histogram --type svg --venue icml -o scaled scaled.json >out 2>err &&
    says scaled.svg recorded '× 2¹⁰' '× 1000' '× 2⁻⁴' && ! grep -q '× 1<\|– / –' scaled.svg
ok $? 'histogram: a report without the scale 1'
again && [ "$(grep -c '<text>underflow / overflow (%)<' scaled.svg)" -eq 1 ] &&
    [ "$(grep -c '<text>recorded<' scaled.svg)" -eq 1 ] &&
    [ "$(grep -c '<text>e4m3fnuz<' scaled.svg)" -eq 2 ]
ok $? 'histogram: many formats, one heading'
# a scale moves gradients only
plot histogram -k weight --type svg -o weights scaled.json >out 2>err && ! grep -q '× 2\|× 1000' weights.svg
ok $? 'histogram: weights, which nothing scales, as recorded'
plot histogram -k weight,agrad -f fp16 --type svg -o both scaled.json >out 2>err && says both.svg '× 2¹⁰' &&
    awk '/^# bins/ { on = 1; next } /^# special/ { exit } on && NF == 4 && $1 != "#" { all += $3; part += $4 }
        END { exit !(part > 0 && part < 0.99 * all) }' both.dat
ok $? 'histogram: of several kinds only the gradients move'
turns 8
plot histogram --step 1 --type svg -o said one.json >out 2>err &&
    ! grep -q together said.svg
ok $? 'histogram: one step'
plot ruler -m 'agrad:*' --type svg -o said one.json >out 2>err &&
    says said.svg agrad:fc1 'steps 1 to 20000 together' && ! grep -q wgrad said.svg
ok $? 'ruler --match: all steps together'
plot ruler -m 'agrad:*' -m '*:fc2.bias' -k agrad -k wgrad --step 500 --type svg \
    -o said one.json >out 2>err && says said.svg agrad:fc1 wgrad:fc2.bias &&
    ! grep -q 'together\|opt.m' said.svg &&
    grep -q '^# selection: kind agrad, kind wgrad, match' said.gp
ok $? 'ruler: several globs and kinds, one step'

# ---- sweep ----
turns 1
"$MPSIM" stat --quiet --json -f fp16,bf16,e4m3 -s 2^0..2^32 -o scales.json "$trace" &&
    "$MPSIM" stat --quiet --csv --level kind -f fp16,bf16,e4m3 -s 2^0..2^32 -o scales.csv "$trace" &&
    plot sweep --type svg --venue icml -o sw scales.json >out 2>err && drawn sw &&
    says sw.svg fp16 agrad wgrad 'safe: 2¹⁶ to 2¹⁹' 'safe: 2⁰ to 2³², all shown' 'none safe: 33.4 % underflow at 2¹²' \
        'loss scale' 'elements (%)' 'SQNR (dB)' 'safe: no overflow, underflow ≤ 1 %' 'overflow; SQNR of the rest' 2³² \
        'steps 1 to 20000 together' && silent
ok $? 'sweep: what it says, and no warning of gnuplot'
"$MPSIM" stat --quiet --ndjson -f fp16 -s 2^0..2^8 -o watched.jsonl "$trace" && echo '{"level": "scaler", "step": 1, "scale": 65536.0, "skipped": false}' >>watched.jsonl &&
    plot sweep --type svg -o watched watched.jsonl >out 2>err && says watched.svg 'factor on gradients that hold the loss scale' && ! says watched.svg 'loss scale'
ok $? 'sweep: gradients that hold a loss scale'
# the data are the counts of the report, of gradients only: curve 1 is agrad, curve 2 wgrad
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { f = $at["format"] == "fp16" ? 1 : $at["format"] == "bf16" ? 2 : 3; c = $at["kind"] == "agrad" ? 1 : $at["kind"] == "wgrad" ? 2 : 0 }
    c { printf "%d %d %d %.4g %.4g %.4g\n", f, log($at["scale"]) / log(2) + 0.5, c, 100 * $at["underflow"] / $at["count"],
            100 * $at["overflow"] / $at["count"], $at["sqnr_db"] }' scales.csv | sort >wanted
awk '/^# casts / { f = $3; next } /^# [a-z]/ && !/^# SQNR|^# elements/ { if ($2 == "windows" || $2 == "curves") f = 0 }
    f && !/^#/ && NF == 7 { for (c = 1; c <= 2; c++) printf "%d %d %d %.4g %.4g %.4g\n", f, $1, c, $(3 * c - 1), $(3 * c), $(3 * c + 1) }' \
    sw.dat | sort >got
cmp wanted got >out 2>err && [ "$(wc -l <got)" -eq 198 ]
ok $? 'sweep: shares and SQNR are those of the report'
grep -q '^1 16 19 "fp16"' sw.dat && grep -q '^2 0 32 "bf16"' sw.dat && grep -q '^3 NaN NaN "e4m3"' sw.dat &&
    grep -q '^# safe: .* more than 1 %$' sw.dat
ok $? 'sweep: the safe scales'
turns 8
# by hand: those at which no curve overflows and none underflows more
window() { awk -v most="$1" '$1 == 1 { if ($5 > 0) over[$2] = 1; if ($4 > most) under[$2] = 1 }
    END { first = last = "NaN"; for (k = 0; k <= 32; k++) if (!over[k] && !under[k]) { if (first == "NaN") first = k; last = k } print first, last }' got; }
for most in 0.5 2 5 100; do
    plot sweep -f fp16 --underflow $most --type svg -o sw scales.json >out 2>err &&
        grep -q "^1 $(window $most) \"fp16\"" sw.dat && says sw.svg "safe: no overflow, underflow ≤ $most %"
    ok $? "sweep: --underflow $most"
done
plot sweep -f fp16 --underflow 0 --type svg -o sw scales.json >out 2>err &&
    grep -q '^1 NaN NaN "fp16" "none safe: 0.726 % underflow at 2¹⁹"' sw.dat && silent
ok $? 'sweep: --underflow 0, no safe scale'
plot sweep -f fp16 -s '2^4..2^12,2^20' -k agrad --type svg --title "it's" -o sw scales.json >out 2>err &&
    says sw.svg 2⁴ 'safe: 2²⁰' "it's" && ! grep -q wgrad sw.svg && [ "$(sed -n '/^# casts/,$p' sw.dat | grep -c '^[0-9]')" -eq 10 ]
ok $? 'sweep: some scales, one kind; a single safe scale'
plot sweep -f fp16 -m 'agrad:fc*' --step 500 --type svg -o sw scales.json >out 2>err && says sw.svg agrad:fc1 agrad:fc2 &&
    ! grep -q 'together\|conv' sw.svg
ok $? 'sweep --match: a curve for each tensor'
plot sweep -f fp16 -m 'agrad:*' --by kind --type svg -o sw scales.json >out 2>err && grep -q '^1 353472 109038 0 "agrad"' sw.dat
ok $? 'sweep --match --by kind'
# SQNR of what is added up here: that of the report where it has the sum
plot sweep -f fp16 -k agrad --type svg -o sw scales.json >out 2>err && awk '/^# casts/ { on = 1 } on && !/^#/ && NF { printf "%.4f\n", $4 }' sw.dat >wanted &&
    plot sweep -f fp16 -m 'agrad:*' --by kind --type svg -o sw scales.json >out 2>err &&
    awk '/^# casts/ { on = 1 } on && !/^#/ && NF { printf "%.4f\n", $4 }' sw.dat | cmp - wanted >out 2>err
ok $? 'sweep: SQNR of sums over tensors'
plot sweep -f fp16 --by total --type svg -o sw scales.json >out 2>err && grep -q '^1 379246 113709 0 "all gradients"' sw.dat &&
    says sw.svg 'all gradients' 'safe: 2¹⁴ to 2¹⁹'
ok $? 'sweep --by total'
sed 's/"overflow": [0-9][0-9]*/"overflow": 1/g; s/"underflow": [0-9]*/"underflow": 0/g; s/"sqnr_db": [^,]*/"sqnr_db": "NaN"/g' scales.json >over.json
plot sweep --type svg -f fp16 -o sw over.json >out 2>err && drawn sw && says sw.svg 'none safe: overflow at every scale' 'nothing to compare' &&
    silent
ok $? 'sweep: everything overflows'
sed 's/"overflow": [0-9][0-9]*/"overflow": 0/g; s/"underflow": [0-9]*/"underflow": 0/g; s/"sqnr_db": [^,]*/"sqnr_db": "Infinity"/g' scales.json >over.json
plot sweep --type svg -o sw over.json >out 2>err && drawn sw && says sw.svg exact 0 && silent
ok $? 'sweep: nothing is lost'
sed 's/"underflow": [0-9]*/"underflow": 0/g' nothing.json >none.json
plot sweep --type svg -o sw none.json >out 2>err && drawn sw && silent
ok $? 'sweep: no elements at all'
due && "$MPSIM" stat --quiet --json -f fp16 -s 2^-1000..2^-990,1000,2^1010..2^1023 -o far.json "$trace/step_020000" &&
    plot sweep --type svg -o sw far.json >out 2>err && drawn sw && says sw.svg 2⁻⁵¹² && silent
ok $? 'sweep: as far as numbers go'

# ---- scales ----
plot scales --type svg --venue icml --title "it's" -o sc "$blocks" >out 2>err && drawn sc &&
    says sc.svg mxfp8:rceil mxfp8:floor 'mxfp8:floor ↓' 'mxfp8:floor →↓' 'saturated (%)' blocks elements 'lost (%)' 28.6 3.6 \
        'scale of a block' 2⁻³² '↓ along columns; →↓ along rows, then columns' 'steps 1 to 2 together' "it's" &&
    silent
ok $? 'scales: what it says, and no warning of gnuplot'
plot scales -f 'mxfp8:r*' -k weight --type svg -o sc "$blocks" >out 2>err && grep -q '^0 0 16 0 0 0 0 0 0 0 0 "mxfp8:rceil"' sc.dat &&
    says sc.svg 0 && ! grep -q 'floor\|lost\|together\|↓' sc.svg && [ "$(grep -c '^0 -' sc.dat)" -eq 3 ] && grep -q '^0 -9 50 1$' sc.dat
ok $? 'scales: one recipe of one kind'
plot scales --type svg --by kind -f mxfp8:floor -o sc "$blocks" >out 2>err && drawn sc && says sc.svg weight agrad act &&
    silent && [ "$(grep -c '"mxfp8:floor"' sc.dat)" -eq 3 ] && [ "$(grep -c '↓"$' sc.dat)" -eq 4 ]
ok $? 'scales --by kind'
turns 1
recipes=mxfp8:rceil,mxfp8:floor,mxfp6e3m2,nvfp4,e4m3/128x128
"$MPSIM" stat --quiet --json -f fp16,e4m3,$recipes -o tiles.json "$trace" &&
    "$MPSIM" stat --quiet --csv --level kind -f fp16,e4m3,$recipes -o tiles.csv "$trace" &&
    plot scales --type svg --venue icml --by kind -k weight,wgrad -o sc tiles.json >out 2>err && drawn sc && silent
ok $? 'scales: a report of mpsim stat'
# the data are the counts of the report
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["axis"] != "" && ($at["kind"] == "weight" || $at["kind"] == "wgrad") { b = $at["blocks"]
        printf "%s %d %d %.4g %.4g %.4g\n", $at["format"], b, $at["zero_blocks"], 100 * $at["saturated_blocks"] / b,
            100 * $at["overflow"] / $at["count"], 100 * $at["lost_blocks"] / b }' tiles.csv | sort >wanted
awk '/^# scales/ { exit } NF == 13 && !/^#/ { gsub("\"", "", $13); printf "%s %d %d %.4g %.4g %.4g\n", $13, $3, $4, $5, $6, $7 }' sc.dat | sort >got
cmp wanted got >out 2>err && [ "$(wc -l <got)" -eq 10 ]
ok $? 'scales: shares are those of the report'
turns 8
sed 's/"counts": \[[^]]*\]/"counts": []/' "$blocks" >none.json
plot scales --type svg -o sc none.json >out 2>err && drawn sc && silent
ok $? 'scales: no scale in any bin'
sed 's/"first": -10, "counts": \[[^]]*\]/"first": -149, "counts": [1]/; s/"first": -40, "counts": \[[^]]*\]/"first": 127, "counts": [9223372036854775807]/
    s/"nan": 0/"nan": 1/' "$blocks" >far.json
plot scales --type svg --by tensor --venue icml -o sc far.json >out 2>err && drawn sc && silent &&
    says sc.svg 2⁻¹²⁸ '3 elements recorded as Inf or NaN; steps 1 to 2 together' || says sc.svg 'steps 1 to 2 together; 3 elements recorded as Inf or NaN'
ok $? 'scales: as far as numbers go'

# ---- sqnr ----
plot sqnr --type svg --venue icml -o sq "$blocks" >out 2>err && drawn sq && silent &&
    says sq.svg fp16 e4m3 mxfp8:rceil 'mxfp8:floor →↓' weight agrad act all 70.0 31.5 ∞ – 'SQNR (dB)' 'steps 1 to 2 together'
ok $? 'sqnr: what it says, and no warning of gnuplot'
plot sqnr -m 'agrad:*' -f 'fp16,mxfp8:floor' --type svg -o sq "$blocks" >out 2>err && says sq.svg agrad:fc1 20.0 29.0 &&
    ! grep -q 'rceil\|>all<\|together' sq.svg && [ "$(sed -n '/^# decibels/,$p' sq.dat | grep -c '^[0-9]')" -eq 4 ]
ok $? 'sqnr: one tensor, some formats'
plot sqnr --by step --type svg -o sq "$blocks" >out 2>err && says sq.svg 'step 1' 'step 2' && ! grep -q together sq.svg &&
    plot sqnr --by layer --type svg -o sq "$blocks" >out 2>err && says sq.svg fc1 &&
    plot sqnr --by total --type svg -o sq "$blocks" >out 2>err && says sq.svg all && [ "$(grep -c '^0 "all"' sq.dat)" -eq 1 ]
ok $? 'sqnr --by step, layer, total'
turns 8 together
# kinds as the report has them; sums of tensors give the same
plot sqnr --type svg --venue icml -o sq tiles.json >out 2>err && drawn sq && silent &&
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { printf "%.4f\n", $at["sqnr_db"] }' tiles.csv | sort >wanted &&
    awk '/^# decibels/ { on = 1 } on && !/^#/ && NF { printf "%.4f\n", $3 }' sq.dat | sort | cmp - wanted >out 2>err
ok $? 'sqnr: the numbers of the report'
again && awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { printf "%.3f\n", 100 * ($at["underflow"] + ($at["axis"] == "" ? $at["overflow"] : 0)) / $at["count"] }' tiles.csv | sort >wanted &&
    awk '/^# decibels/ { on = 1 } on && !/^#/ && NF { printf "%.3f\n", $4 }' sq.dat | sort | cmp - wanted >out 2>err &&
    grep -q '<text>red: share of elements lost to 0, Inf or NaN, at most [0-9.]* %</text>' sq.svg
ok $? 'sqnr: what is lost beside it'
again && awk '/^# decibels/ { on = 1 } on && !/^#/ && NF { printf "%.3f\n", $3 }' sq.dat | sort >wanted
plot sqnr -m '*' --by kind --venue icml --type svg -o sq tiles.json >out 2>err &&
    awk '/^# decibels/ { on = 1 } on && !/^#/ && NF { printf "%.3f\n", $3 }' sq.dat | sort | cmp - wanted >out 2>err
ok $? 'sqnr: sums over tensors'
turns 8
sed 's/"compared": 0/"compared": 128/' "$blocks" >none.json
plot sqnr --type svg -o sq none.json >out 2>err && ! grep -q 'red:' sq.svg && plot sqnr --type svg -o sq "$blocks" >out 2>err && says sq.svg 'red: share of elements lost to 0, Inf or NaN, at most 100 %'
ok $? 'sqnr: nothing lost; all that was not compared'
plot sqnr --type svg --by tensor -k weight,agrad --venue icml -o sq tiles.json >out 2>err && drawn sq && silent &&
    says sq.svg agrad:fc1 weight:conv1.weight mxfp8:rceil all
ok $? 'sqnr: more tensors than columns: a row for each'
plot sqnr -f fp16,e4m3 -s 2^10 -k agrad --type svg -o sq scales.json >out 2>err && says sq.svg 'fp16 × 1024' 'e4m3 × 1024' &&
    plot sqnr --type svg -o sq scales.json >out 2>err && ! grep -q '×' sq.svg
ok $? 'sqnr: without recipes; at a loss scale'
sed 's/"sqnr_db": [^,]*/"sqnr_db": "NaN"/g; s/"compared": [0-9]*/"compared": 0/g' "$blocks" >none.json
plot sqnr --type svg -o sq none.json >out 2>err && drawn sq && silent
ok $? 'sqnr: nothing to compare'
sed 's/"sqnr_db": 28.0/"sqnr_db": 1e308/; s/"sqnr_db": 27.0/"sqnr_db": -1e308/' "$blocks" >far.json
plot sqnr --type svg -o sq far.json >out 2>err && drawn sq && silent
ok $? 'sqnr: as far as numbers go'
sed 's/"blocks": \[/"x": [/' "$blocks" >scales-less.json
"$MPSIM" stat --quiet --json -f mxfp8 -o wide.json "$top/data/charlm/" || :
fails 3 'no block recipes: run mpsim stat --json -f mxfp8' scales -o bad "$report" && nothing bad &&
    fails 3 '"blocks" are missing' scales scales-less.json
ok $? 'scales: a report without block recipes'
fails 2 'not one of kind, tensor, layer, step, total' scales --by x "$blocks" && fails 2 'not one of kind, tensor, layer, step, total' sqnr --by x "$blocks" &&
    fails 2 'the report has none of these' sqnr -f nvfp4 "$blocks" && fails 2 'the report has none of these' scales -f fp16 "$blocks" &&
    fails 2 'scale is not for scales' scales -s 1 "$blocks" && fails 2 'select no tensor' scales -m nothing "$blocks" &&
    fails 2 'more than 60 recipes and groups: choose' scales --by tensor tiles.json && fails 2 'more than 60 rows' sqnr --by tensor wide.json
ok $? 'scales, sqnr: what is refused'

# ---- diff ----
plot diff --type svg --venue icml -o df differ.json >out 2>err && drawn df && says df.svg weight:fc1.bias opt.v:fc2.weight \
    'largest ULPs' step 'first: weight:fc1.bias of step 7: a constant ratio' && silent &&
    grep -q '^6 0 8.40939 apart 0$' df.dat && grep -q '^0 0 0 equal 0$' df.dat && grep -q '^first_column = 6; first_row = 0 ' df.gp
ok $? 'diff: what it says, and no warning of gnuplot'
plot diff --by layer --column sqnr --type svg -o df differ.json >out 2>err && says df.svg fc1 fc2 'SQNR, dB' && ! grep -q 'weight:fc2' df.svg
ok $? 'diff: layers, SQNR'
plot diff -k wgrad --step 9 --type svg -o df differ.json >out 2>err && [ "$(grep -c ' apart 0$' df.dat)" -eq 4 ]
ok $? 'diff: one kind, one step'
due && "$MPSIM" diff --json -o same.json "$top/data/amp-mlp/adam" "$top/data/amp-mlp/adam" && plot diff --type svg -o df same.json >out 2>err && drawn df &&
    says df.svg 'all are equal' && silent
ok $? 'diff: nothing differs'
fails 2 'not one of ulp, sqnr' diff --column x differ.json && fails 2 'not one of tensor, layer' diff --by kind differ.json &&
    fails 3 'takes one of mpsim diff --json' diff "$report"
ok $? 'diff: what is refused'
sed 's/"verdict": "close"/"verdict": 7/' differ.json >bad.json && fails 3 '"verdict" is missing or not a string' diff bad.json &&
    sed 's/"max_ulp": /"max_ulq": /' differ.json >bad.json && fails 3 '"max_ulp" is missing or not a number' diff bad.json
ok $? 'diff: a damaged report'

# ---- heatmap ----
turns 8
plot heatmap --type svg --venue icml -f fp16 -m '*g*:fc*' -o hm one.json >out 2>err && drawn hm && silent &&
    says hm.svg agrad:fc1 wgrad:fc2.weight 20000 step 'underflow in fp16 (%)' none 1 &&
    awk '/"name": "agrad:fc2"/ && /"step": 500,/ { match($0, /"format": "fp16", "scale": 1.0, "underflow": [0-9]*/); n = substr($0, RSTART, RLENGTH)
        match($0, /"count": [0-9]*/); c = substr($0, RSTART, RLENGTH); sub(/.* /, "", n); sub(/.* /, "", c); printf "%.4f\n", log(100 * n / c) / log(10) }' one.json >wanted &&
    awk '/^# cells/ { on = 1 } on && $1 == 2 && $2 == 1 { printf "%.4f\n", $3 }' hm.dat | cmp - wanted >out 2>err && [ -s wanted ]
ok $? 'heatmap: what it says, and the share of the report'
plot heatmap --type svg --by layer --column sqnr -f mxfp8:floor -o hm "$blocks" >out 2>err && says hm.svg fc1 'SQNR in mxfp8:floor (dB)' &&
    grep -q '^0 0 28 apart 0$' hm.dat && silent
ok $? 'heatmap: layers, SQNR of a recipe; the worst is shown'
sed 's/"sqnr_db": 70.0/"sqnr_db": "NaN"/; s/"underflow": 0/"underflow": 13/; s/"nan": 0/"nan": 1/' "$blocks" >far.json
plot heatmap --type svg --column sqnr -o hm far.json >out 2>err && drawn hm && silent && says hm.svg 'NaN, Inf' &&
    plot heatmap --type svg --column amax -k weight -o hm "$blocks" >out 2>err && says hm.svg 'largest magnitude' 2¹ && silent
ok $? 'heatmap: recorded NaN; the largest magnitude of one tensor'
plot heatmap --type svg --column amax -o hm nothing.json >out 2>err && drawn hm && silent &&
    plot heatmap --type svg -o hm nothing.json >out 2>err && drawn hm && silent
ok $? 'heatmap: no elements at all'
long=transformer.encoder.layers
sed "s/weight:fc1.weight/wgrad:$long.7.attention.query_key_value.weight/; s/agrad:fc1/wgrad:$long.8.attention.query_key_value.weight/" "$blocks" >long-names.json
for figure in heatmap sqnr ruler; do
    plot $figure -m 'wgrad:*' --type svg --venue icml -o hm long-names.json >out 2>err && says hm.svg '…encoder.layers.7…' '…encoder.layers.8…'
    ok $? "bug_20261126: $figure: names that differ in the middle still do when they are shortened"
done
fails 2 'not one of underflow, sqnr, amax' heatmap --column ulp "$blocks" && fails 2 "'fp32' is not one format" heatmap -f fp32 "$blocks" &&
    fails 2 'log is not for heatmap' heatmap --log "$blocks" && fails 3 'takes one of mpsim stat --json' heatmap differ.json
ok $? 'heatmap: what is refused'

# ---- accumulation ----
plot accumulation --type svg -m 'hopper-*' -m exact --title "it's" --venue neurips -o acc "$dot" \
    >out 2>err && says acc.svg exact hopper-mma-fp8-fp32 'unit roundoff, binary32' 0 512 10⁻² \
    'relative error' "it's" && ! grep -q '<text>fma\|NaN<' acc.svg &&
    grep -q '^width = 5.5 ' acc.gp
ok $? 'accumulation: names at the ends of the curves, a band for errors of 0'
turns 8 together
plot accumulation --venue icml --type svg -o acc "$dot" >out 2>err &&
    says acc.svg fma blackwell-mma-fp8-fp32 'unit roundoff' binary32 fp16 && [ ! -e acc.jpg ]
ok $? 'accumulation: a key where names do not fit'
again && grep -q '^n_curves = 6; n_models = 7; n_references = 2$' acc.gp &&
    [ "$(grep -c '^4 4096 ' acc.dat)" -eq 2 ] && grep -q "^zero_lane = '0 0 0 1 2 3'\$" acc.gp
ok $? 'accumulation: models with the same errors share a curve'
turns 8
due && "$MPSIM" dot --json -f fp16 -s 2^5 -K 64,256 --rows 3 -M exact,fma:fp16 -o inf.json &&
    plot accumulation --type svg --column bias -o inf inf.json >out 2>err && drawn inf &&
    says inf.svg 'Inf, NaN' 'magnitude of the bias' && ! says inf.svg 0 &&
    silent
ok $? 'accumulation: results that overflow stand apart, and no warning of gnuplot'
due && "$MPSIM" dot --json -f e2m1 -K 100,120 -M exact,fma -o zero.json &&
    plot accumulation --type svg -o zero - <zero.json >out 2>err && drawn zero &&
    says zero.svg 100 120 0 && silent
ok $? 'accumulation: nothing but zeros, from standard input'
sed 's/"rel_err": 0.0158[0-9]*/"rel_err": "Infinity"/; s/"k": 4096/"k": 9223372036854775807/
     s/"rel_err": 6.5[0-9e-]*/"rel_err": 5e-324/; s/"rel_err": 0.00085[0-9]*/"rel_err": 1e308/' \
    "$dot" >far.json
plot accumulation --type svg -o far far.json >out 2>err && drawn far && says far.svg 'Inf, NaN' 2⁶³ 10³⁰⁸ &&
    silent
ok $? 'accumulation: as far as numbers go'

# ---- training ----
turns 8 together
plot training --type svg "$train" >out 2>err && says training.svg 'training loss' 'loss scale' 'weight updates lost (%)' step 2¹⁶ fp32 \
    fp16-unscaled pytorch-amp-fp16 'skipped step' 'from here on NaN or Inf' >err 2>&1
ok $? 'training: all panels; updates, as hardly a weight gradient is lost'
again && grep -q '^2 11 6145.329 1 "fp16-unscaled"' training.dat &&
    grep -q '^1 20 619.3476 0 ' training.dat && grep -q '^11 6141.882 6145.329 NaN ' training.dat &&
    grep -q '^12 4532.193 NaN 18314.38' training.dat
ok $? 'training: where losses end'
again && awk '/^# skipped/ { on = 1 } on && /^3 / { n++; $3 == 17 - $2 || bad = 1 }
    END { exit n != 13 || bad }' training.dat && grep -q "^scaled = '3' " training.gp
ok $? 'training: skipped steps, at their scales'
turns 8
plot training --type svg --column agrad -m 'fp*' --venue icml --title "it's" -o tr - <"$train" \
    >out 2>err && says tr.svg 'activation gradients rounded to zero (%)' "it's" &&
    ! grep -q 'loss scale' tr.svg && ! grep -q 'amp-' tr.svg &&
    silent
ok $? 'training: --column, --match, standard input; no warning of gnuplot'
plot training --type svg --match fp32 -o tr "$train" >out 2>err && ! grep -q lost tr.svg
ok $? 'training: nothing lost, no panel'
cp "$train" half.json
plot training --type svg -m 'fp*' -o tr "$train" half.json >out 2>err &&
    says tr.svg 'fp32, train' 'fp16-unscaled, half'
ok $? 'training: runs of two reports'
plot training --type svg -m fp32 -o tr half.json "$train" half.json >out 2>err &&
    says tr.svg train half && ! grep -q fp32 tr.svg
ok $? 'training: one policy in three reports'
sed 's/"loss": [^,]*/"loss": "Infinity"/' "$train" >nan.json
plot training --type svg -o tr nan.json >out 2>err && drawn tr && gnuplot -d tr.gp >out 2>err &&
    [ ! -s err ] && grep -q '^1 1 0 2 ' tr.dat
ok $? 'training: no finite loss at all'
sed 's/"loss": [^,]*/"loss": 0.0/; s/"lost": [0-9]*/"lost": 0/g; s/"scale": [^,]*/"scale": 5e-324/
     s/"step": 20,/"step": 9223372036854775807,/' "$train" >far.json
plot training --type svg --column act -o tr far.json >out 2>err && drawn tr &&
    silent
ok $? 'training: as far as numbers go'
sed -n '1,7p' "$train" | sed '7s/,$/]}]}/' >single.json
plot training --type svg -o tr single.json >out 2>err && drawn tr &&
    silent
ok $? 'training: a single step'
{
    sed -n '1,6p' "$train"
    sed -n '7s/,$//p' "$train" | awk '{ for (i = 1; i <= 1000; i++) {
        row = $0; sub(/"step": 1,/, "\"step\": " i ",", row); sub(/"loss": [^,]*/, "\"loss\": " i, row)
        print row (i < 1000 ? "," : "") } }'
    echo ']}]}'
} >long.json
plot training --type svg --venue icml -o tr long.json >out 2>err &&
    says tr.svg 'step (a point: mean of 20 steps)' &&
    grep -q '^# steps 1 to 1000, the mean of 20 to a point' tr.dat &&
    grep -q '^10.5 10.5$' tr.dat && grep -q '^990.5 990.5$' tr.dat
ok $? 'training: more steps than a figure can show'

sed 's/"loss": \([0-9]\)/"loss": -\1/' "$train" >below.json
plot training --type svg -o tr below.json >out 2>err && drawn tr && silent && grep -q '^loss_log = 0 ' tr.gp &&
    awk '/^y_low/ { gsub(/[^-0-9. ]/, ""); exit !($1 < $2 && $1 < 0) }' tr.gp
ok $? 'training: losses below 0, on an axis that is not logarithmic'
mkdir named && plot training -o named/loss.svg "$train" >out 2>err && silent && [ "$(ls named)" = "$(printf 'loss.dat\nloss.gp\nloss.svg')" ] &&
    plot training --type pdf,svg -o named/b.png "$train" >out 2>err && [ "$(cd named && echo b.*)" = 'b.dat b.gp b.pdf b.png b.svg' ] &&
    plot training --type svg -o named/v1.5 "$train" >out 2>err && [ -s named/v1.5.svg ] && plot training --type svg -o named/.png "$train" >out 2>err &&
    [ -s named/.png.svg ]
ok $? '--output: a name with the ending of a type is that file'

# ---- curves over the steps ----
turns 8
plot lossscale --type svg --venue icml -o ls scaler.json >out 2>err && drawn ls && silent && says ls.svg torch apex megatron 'skipped step' 'loss scale' 'step, from the first on' 2³⁰ &&
    [ "$(awk '/^# curve 1/ { on = 1 } /^# curve 2/ { exit } on && /^[0-9]/ { printf "%s:%s ", $1, $2 }' ls.dat)" = '1:16 2:15 3:14 4:13 2003:13 2004:14 2005:13 2505:13 2506:12 ' ] &&
    [ "$(sed -n '/^# marks/,$p' ls.dat | grep -c '^1 ')" -eq 3 ]
ok $? 'lossscale: stairs of scalers over a pattern; of marks that lie close the first'
"$MPSIM" log --json -o log.json "$top/data/logs/13-apex-runaway-e202.log" && plot lossscale --type svg -o ls log.json >out 2>err && drawn ls && silent &&
    says ls.svg recorded 'step told by the log' 2⁻⁶⁶⁸ && "$MPSIM" log --json -o log.json "$top/data/logs/27-megatron-deepspeed-loss-spike.log" &&
    plot lossscale --type svg -o ls log.json >out 2>err && awk '/^# curve/ { on = 1 } /^# marks/ { exit } on && /^[0-9]/ { if ($1 < last) exit 1; last = $1 }' ls.dat &&
    "$MPSIM" log --json -o log.json "$top/data/logs/41-arcface-scale-zero.log" && fails 2 'has a step with a loss scale above 0' lossscale log.json
ok $? 'lossscale: of a training log'
plot lossscale --type svg -o ls "$train" >out 2>err && silent && says ls.svg pytorch-amp-fp16 2⁴ && ! grep -q 'fp32\|fp16-unscaled' ls.svg &&
    plot lossscale --type svg -m 'py*' -o ls replay.json >out 2>err && silent && says ls.svg 2¹⁶
ok $? 'lossscale: runs of train and replay that have one'
# a second panel has the norms, in binades, at the steps that tell them; what has none has one panel
for i in 1 2 3 4 5 6; do
    echo " iteration $i/ 9 | lm loss: 2.0E+00 | loss scale: $((i < 4 ? 8 : 4)).0 | grad norm: $((1 << i)).0 | number of skipped iterations: $((i == 3)) | number of nan iterations: 0 |"
done >norms.log
"$MPSIM" log --json -o log.json norms.log && plot lossscale --type svg -o ls log.json >out 2>err && silent && says ls.svg 'gradient norm' 2⁶ 2³ &&
    awk '/^# curve/ { on = 1 } /^# marks/ { exit } on && /^[0-9]/ && $3 != "NaN" { printf "%s,%s,%s ", $1, $2, $3 }' ls.dat >got && [ "$(cat got)" = '1,3,1 2,3,2 3,3,3 4,3,4 5,2,5 6,2,6 ' ]
ok $? 'lossscale: the norms of a log'
"$MPSIM" train -q --json --steps 3 --clip 1e30 -P pytorch-amp-fp16 -o norms.json && plot lossscale --type svg -o ls norms.json >out 2>err && silent && says ls.svg 'gradient norm' &&
    sed 's/"norm": [0-9]/"norm": -1/' norms.json >far.json && fails 3 '"norm" is missing or not a norm' lossscale -o bad far.json && plot lossscale --type svg -o ls "$train" && ! grep -q norm ls.svg
ok $? 'lossscale: the norms of a training; what is none'
plot updates --type svg --venue icml -o up replay.json >out 2>err && silent && says up.svg te-fp8-delayed 'weight updates lost (%)' &&
    "$MPSIM" replay --csv -P te-fp8-delayed "$top/data/digits-cnn/step_019999" "$top/data/digits-cnn/step_020000" 2>err | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { printf "%d %.2f\n", $at["step"], 100 * $at["lost"] / $at["updates"] }' >wanted &&
    awk '/^# curve 1/ { on = 1 } /^# curve 2/ { exit } on && /^[0-9]/ { printf "%d %.2f\n", $1, $2 }' up.dat | cmp - wanted >out 2>err && [ -s wanted ] &&
    plot updates --type svg -o up long.json >out 2>err && silent && says up.svg 'step (a point: mean of 10 steps)'
ok $? 'updates: policies of a replay; of many steps the mean'
plot amax --type svg -o am replay.json >out 2>err && silent && says am.svg 'te-fp8-delayed, act:fc2' 'largest magnitude' 'FP8 scale' 'a stale scale saturates' &&
    plot amax --type svg -k agrad -o am one.json >out 2>err && silent && says am.svg agrad:fc2 && ! grep -q 'FP8' am.svg && grep -q '^n_curves = 6; n_panels = 1$' am.gp
ok $? 'amax: FP8 scales of a replay; tensors of stat'
sed 's/"scale": 65536.0/"scale": 5e-324/; s/"next": 4096.0/"next": 0.0/; s/"index": 2504/"index": 9223372036854775806/' scaler.json >far.json
plot lossscale --type svg -o ls far.json >out 2>err && drawn ls && silent && grep -q "; low_1 = -1074; " ls.gp
ok $? 'lossscale: as far as numbers go'
fails 2 'has a step with a loss scale' lossscale -m fp32 "$train" && fails 2 'more than 20 curves: .*--match GLOB or --kind' amax one.json &&
    fails 3 'takes one of mpsim scaler --json or mpsim train --json or mpsim replay --json' lossscale "$report" && fails 2 'step is not for amax' amax --step 1 one.json
ok $? 'lossscale, amax: what is refused'
bad_run() { # bad_run FIGURE REPORT SED TEXT
    sed "$3" "$2" >changed.json
    fails 3 "changed.json: not a report of .*: .*$4" "$1" -o bad changed.json && nothing bad && [ ! -e bad.gp ]
    ok $? "bad report, $1: $4"
}
bad_run lossscale scaler.json 's/"scale": 32768.0/"scale": -1/' '"scale" is missing or not a scale'
bad_run lossscale scaler.json 's/"trajectory": /"x": /' '"trajectory" is missing or not an array'
bad_run updates replay.json 's/"updates": [0-9]*, "lost"/"updates": 1, "lost": 2, "x"/' 'more are lost than there are'
bad_run amax replay.json 's/"stale": [0-9]*/"stale": "x"/g' '"stale" is missing or not a count'
bad_run amax one.json 's/"amax": 1.0,/"amax": "x",/g' '"amax" is missing or not a magnitude'

# ---- rows: memory, ranking, attention ----
turns 8
plot memory --type svg --venue icml -o me memory.json >out 2>err && drawn me && silent && says me.svg te-fp8-delayed fp32 'optimizer state' weights MB 16.0 &&
    [ "$(sed -n '/^# parts/,$p' me.dat | grep '^0 ' | tr '\n' ' ')" = '0 0 0 0 0 0 0 4 0 4 4 8 0 6 8 16 ' ] && ! grep -q 'scaling state' me.svg
ok $? 'memory: the bytes of fp32 and AdamW; what no eye would find is not in the key'
sed 's/"bytes": [0-9]*/"bytes": 0/g' memory.json >none.json
plot memory --type svg -o me none.json >out 2>err && drawn me && silent && sed 's/"bytes": 4000000,/"bytes": 9223372036854775807,/g' memory.json >far.json &&
    plot memory --type svg -m fp32 -o me far.json >out 2>err && drawn me && silent && says me.svg PB
ok $? 'memory: nothing at all; as far as numbers go'
plot ranking --type svg --venue icml -o ra "$blocks" >out 2>err && drawn ra && silent && says ra.svg fp16 'mxfp8:floor →↓' 'SQNR (dB)' ∞ 'lost (% of elements)' \
    'dot: median of 3 tensors; thick: middle half; thin: all' '↓ along columns; →↓ along rows, then columns' 'steps 1 to 2 together' &&
    grep -q '^0 20 45 70 1070 1070 0$' ra.dat && grep -q '^0 "fp16" ' ra.dat && grep -q '^1 "mxfp8:rceil" ' ra.dat && grep -q '^5 "mxfp8:floor →↓" ' ra.dat
ok $? 'ranking: median, quartiles and range by hand; the best first'
plot ranking --type svg -m 'agrad:*' -f e4m3 -o ra "$blocks" >out 2>err && drawn ra && silent && [ "$(grep -c '^0 NaN' ra.dat)" -eq 1 ] && grep -q '^0 2 2 2 2 2 0$' ra.dat
ok $? 'ranking: nothing to compare, all lost'
plot attention --type svg --venue icml -o at attention.json >out 2>err && drawn at && silent && says at.svg exact fma 'relative error' 'largest error' bias && ! grep -q tile at.svg &&
    due && "$MPSIM" attention --json --heads 1 --tokens 24 --size 8 --tile 8 -o tile8.json && plot attention --type svg -m exact -o at attention.json tile8.json >out 2>err &&
    drawn at && silent && says at.svg 'exact, tile 24' 'exact, tile 8' && ! grep -q fma at.svg
ok $? 'attention: models; tiles of two reports'
sed 's/"rel_err": [^,]*/"rel_err": 0.0/; s/"max_rel_err": [^,]*/"max_rel_err": 1e308/; s/"not_finite": 0/"not_finite": 3/; s/"bias": [^,]*/"bias": "NaN"/' attention.json >far.json
plot attention --type svg -o at far.json >out 2>err && drawn at && silent && says at.svg 0 'exact, 3 NaN, Inf'
ok $? 'attention: as far as numbers go'
sed 's/"rel_err": [^,]*/"rel_err": 3e-8/; s/"max_rel_err": [^,]*/"max_rel_err": 3e-8/; s/"bias": [^,]*/"bias": 3e-8/' attention.json | sed '0,/"rel_err": 3e-8/s//"rel_err": 5e-3/' >ticks.json
plot attention --type svg --venue icml -o at ticks.json >out 2>err && drawn at && silent && says at.svg '10⁻⁴' && ! grep -q '<text>1</text>' at.svg
ok $? 'bug_20261127_a_tick_stood_at_one_beyond_the_axis'
bad_run memory memory.json 's/"bytes": 4000000/"bytes": -1/g' '"bytes" is missing or not a count'
bad_run memory memory.json 's/"policies"/"x"/' '"policies" is missing or not an array'
bad_run attention attention.json 's/"rel_err"/"x"/' '"rel_err" is missing or not a number'
bad_run ranking "$blocks" 's/"underflow": 0/"underflow": 999/' 'counts contradict each other'
fails 2 'selects no policy' memory -m none memory.json && fails 2 'selects no model' attention -m none attention.json && fails 2 'ranking takes one report' ranking "$blocks" "$blocks" &&
    fails 2 'step is not for memory' memory --step 1 memory.json && fails 2 'by is not for ranking' ranking --by kind "$blocks"
ok $? 'memory, ranking, attention: what is refused'

# ---- drawn with characters ----
turns 8
plot heatmap --preview -k weight,act -o pv "$blocks" >printed 2>err && silent && [ ! -s err ] && tr -d '\f' <pv.txt | cmp - printed >out 2>err && [ ! -e pv.svg ] && [ -s pv.gp ] &&
    grep -q 'weight:fc1.weight  *·' printed && [ "$(wc -L <printed)" -eq 120 ] && LC_ALL=C grep -c "$(printf '[\001-\010\013-\037]')" printed >count
    [ "$(cat count 2>&1)" = 0 ]
ok $? 'heatmap --preview: printed as it is kept, no control characters'
for figure in histogram ruler sweep scales sqnr accumulation training diff lossscale updates amax memory ranking attention; do
    source_of $figure
    plot $figure --type txt,svg --venue icml -o pv-$figure "$from" >out 2>err && [ ! -s out ] && drawn pv-$figure && [ "$(wc -L <pv-$figure.txt)" -eq 80 ] && [ ! -e pv-$figure.pdf ]
    ok $? "$figure: with characters, and SVG"
done
fails 2 "'jpg' is not one of pdf, png, svg, txt" ruler --type jpg "$report"
ok $? 'an unknown type: the known ones'

# ---- titles ----
# shellcheck disable=SC2016 # it must not expand
for title in "'fp16' vs 'bf16'" "a''b'" "'" 'say "x"' 'a\tb\' '`id` $x @m {/Symbol a}_b^c %s' "'.system('touch pwned14').'"; do
    plot ruler --title "$title" --type svg -o titled "$report" >out 2>err &&
        sed 's/&quot;/"/g; s/&amp;/\&/g' titled.svg | grep -q -F ">$title<" && [ ! -e pwned14 ]
    ok $? "bug_20261122: the title $title"
done

# ---- names that would harm ----
# shellcheck disable=SC2016 # it must not expand
plot ruler --type svg --match '*' -o inert "$report" >out 2>err && drawn inert &&
    plot histogram --type svg --match 'a*' --title '`touch pwned4`$(touch pwned5)' -o inert2 \
        "$report" >out 2>err && drawn inert2
ok $? 'a name with quotes, backticks, newline: drawn'
plot accumulation --type svg -m "it's*" -o inert3 "$dot" >out 2>err && drawn inert3 &&
    mkdir again-inert3 && cp inert3.gp inert3.dat again-inert3 && (cd again-inert3 && gnuplot -d inert3.gp) >out 2>err
ok $? 'a model with quotes, backticks, newline: drawn'
plot training --type svg -m "it's*" -o inert4 "$train" half.json >out 2>err && drawn inert4 &&
    mkdir again-inert4 && cp inert4.gp inert4.dat again-inert4 && (cd again-inert4 && gnuplot -d inert4.gp) >out 2>err
ok $? 'a policy with quotes, backticks, newline: drawn'
cp "$train" "it's \`touch pwned13\`.json"
plot training --type svg -m 'fp*' -o inert5 "$train" "it's \`touch pwned13\`.json" >out 2>err &&
    drawn inert5
ok $? 'a report whose name has quotes, backticks: drawn'
# the figures whose reports come from the program: each name that they show is replaced
harm='it'"'"'s \\"x\\" `touch pwned22` $(touch pwned23) \\n@x {\/Symbol a}_b^c $0 \\\\ %s '"'"'.system('"'"'touch pwned24'"'"').'"'"''
for figure in heatmap lossscale updates amax memory ranking attention; do
    source_of $figure
    sed "s/\"\(name\|scaler\|policy\|component\|model\|recipe\)\": \"\([^\"\\\\]*\)\"/\"\1\": \"\2 $harm\"/g" "$from" >harm.json
    plot $figure --type svg -o harm-$figure harm.json >out 2>err && drawn harm-$figure && silent && grep -q 'touch pwned22' harm-$figure.dat &&
        mkdir again-harm-$figure && cp harm-$figure.gp harm-$figure.dat again-harm-$figure && (cd again-harm-$figure && gnuplot -d harm-$figure.gp) >out 2>err
    ok $? "$figure: names with quotes, backticks, newline, @, $, braces: drawn"
done
sed "s/mxfp8:floor/it's \`touch pwned25\`/g" "$blocks" >harm.json
plot heatmap -f "it's \`touch pwned25\`" --type svg -o harm-format harm.json >out 2>err && drawn harm-format && silent
ok $? 'heatmap: a recipe with quotes, backticks: drawn'
turns 1
! ls pwned* again-*/pwned* >/dev/null 2>&1
ok $? 'a name with quotes, backticks, newline: inert'
turns 8
for prefix in '<touch pwned6;x' '|touch pwned7;x' "q'\`touch pwned8\`\$(touch pwned9)" -x; do
    plot ruler --type svg --output="$prefix" "$report" >out 2>err && drawn "./$prefix" &&
        gnuplot -d "./$prefix.gp" >out 2>err
    ok $? "prefix $prefix"
done
! ls pwned* >/dev/null 2>&1
ok $? 'prefixes are inert'

# ---- what fails ----
sed 's/"histogram": {[^}]*}/"x": 0/g' "$report" >without.json
fails 3 'no histograms: run mpsim stat --json --histogram' histogram -o bad without.json && nothing bad
ok $? 'a report without histogram'
plot ruler --type svg -o ok without.json >out 2>err && [ -s ok.svg ]
ok $? 'a report without histogram is enough for the ruler'
turns 1
# JSON lines are the same report, whatever else is among them; a training that was killed leaves a line cut off
"$MPSIM" stat --ndjson -q -s 1,2^16 -f fp16,mxfp8 -o lines.jsonl "$top/data/digits-cnn/step_000001" &&
    "$MPSIM" stat --json -q -s 1,2^16 -f fp16,mxfp8 -o lines.json "$top/data/digits-cnn/step_000001" &&
    "$MPSIM" plot sqnr --type svg -o whole lines.json >out 2>err &&
    sed '3i {"level": "update", "moved": 3}' lines.jsonl >more.jsonl && printf '{"level": "tens' >>more.jsonl &&
    "$MPSIM" plot sqnr --type svg -o lines more.jsonl >out 2>err &&
    sed 's/lines.json /more.jsonl /' whole.dat | cmp -s - lines.dat && has 'is cut off' err
ok $? 'JSON lines are the report that they are'
turns 8
sed '3i {"level":' lines.jsonl >more.jsonl
fails 3 'line 3: not JSON' sqnr -o lines more.jsonl
ok $? 'a line that is none'
bad() { # bad NAME SED: the report changed so is refused
    sed "$2" "$report" >changed.json
    fails 3 changed.json histogram -o bad changed.json && nothing bad && [ ! -e bad.gp ]
    ok $? "bad report: $1"
}
bad 'not JSON' 's/^}$//'
bad 'another schema' 's/mpsim.stat.1/mpsim.cast\/1/'
bad 'another version' 's/mpsim.stat.1/mpsim.stat\/2/'
bad 'a negative count' 's/"underflow": [0-9]*/"underflow": -1/'
bad 'a count that is text' 's/"zero": [0-9]*/"zero": "many"/'
bad 'exponents beyond binary64' 's/"first": -30/"first": 1020/'
bad 'an infinite range' 's/"max": 65504.0/"max": "Infinity"/'
bad 'an empty range' 's/"min_normal": [-0-9.e]*/"min_normal": 1e30/'
bad 'counts that overflow' 's/"underflow": [0-9]*/"underflow": 99999999999999999999/'
bad 'an array' "1s/.*/[{/; \$s/.*/}]/"
bad_sweep() { # bad_sweep NAME SED [TEXT]: the same for sweep
    sed "$2" "$report" >changed.json
    fails 3 "changed.json: .*${3:-not a report of mpsim stat: }" sweep -o bad changed.json && nothing bad && [ ! -e bad.gp ]
    ok $? "bad report of stat: $1"
}
bad_sweep 'a single scale' 's/"scales": \[1, 1024\]/"scales": [1]/' 'a single scale: .* -s 2^0..2^32'
bad_sweep 'a scale that casts lack' 's/"scales": \[1, 1024\]/"scales": [1, 512]/' 'a cast is missing'
bad_sweep 'a cast twice' 's/"scale": 1024/"scale": 1/g' 'a cast is missing, or there twice'
bad_sweep 'more underflow than elements' 's/"underflow": 0/"underflow": 999/' 'counts contradict'
bad_sweep 'no SQNR' 's/"sqnr_db"/"x"/' '"sqnr_db"'
bad_sweep 'SQNR that is text' 's/"sqnr_db": 20.5/"sqnr_db": "loud"/' '"sqnr_db"'
bad_sweep 'a negative count' 's/"overflow": 0/"overflow": -1/' '"overflow"'
bad_sweep 'a scale of 0' 's/"scales": \[1, 1024\]/"scales": [0, 1024]/' 'a scale is not a number above zero'
bad_sweep 'nothing that is scaled' 's/"scales": \[1, 1024\]/"scales": [1, 1024], "scaled_kinds": ["dgrad"]/; s/"kind": null/"kind": "act"/' \
    'its scales multiply none of the selected tensors: .*--scale-kinds'
bad_blocks() { # bad_blocks NAME SED TEXT: the same for scales and sqnr
    sed "$2" "$blocks" >changed.json
    for figure in scales sqnr; do
        fails 3 "changed.json: not a report of mpsim stat: .*$3" $figure -o bad changed.json && nothing bad && [ ! -e bad.gp ]
        ok $? "bad report of stat, $figure: $1"
    done
}
bad_blocks 'blocks that are no list' 's/"blocks": \[/"blocks": 1, "x": [/' '"blocks" is missing or not an array'
bad_blocks 'a recipe without a name' 's/"recipe": "mxfp8:floor"/"x": 1/' '"recipe" is missing or not a string'
bad_blocks 'an axis that is none' 's/"axis": "columns"/"axis": "diagonal"/' '"axis" is not one of rows, columns, requantised'
bad_blocks 'a negative count' 's/"lost_blocks": 1/"lost_blocks": -1/' '"lost_blocks" is missing or not a count'
bad_blocks 'no blocks in a recipe' 's/"saturated_blocks"/"x"/' '"saturated_blocks" is missing or not a count'
bad_blocks 'more saturated blocks than blocks' 's/"saturated_blocks": 4/"saturated_blocks": 400/' 'counts contradict each other'
bad_blocks 'more elements than the tensor has' 's/"elements": 512/"elements": 513/' 'counts contradict each other'
bad_blocks 'no scales' 's/"scales": {/"x": {/' '"zero" is missing or not a count'
bad_blocks 'scales that are no list' 's/"counts": \[2, 8, 6\]/"counts": 5/' '"counts" is missing or not an array'
bad_blocks 'a scale beyond binary32' 's/"first": -40/"first": 125/' 'scales have exponents beyond those of binary32'
bad_blocks 'a scale before binary32' 's/"first": -40/"first": -150/' 'scales have exponents beyond those of binary32'
bad_blocks 'scales that are not counted' 's/\[2, 8, 6\]/[2, -8, 6]/' '"counts" is missing or not an array of counts'
sed 's/"first": -8, "counts": \[1\]/"first": -9, "counts": [9223372036854775807]/; s/\[4, 8, 4\]/[1, 9223372036854775807, 4]/
    s/"first": -40, "counts": \[2, 0/"first": -9, "counts": [9223372036854775807, 0/' "$blocks" >changed.json
fails 3 'changed.json: .*: counts are too large' scales -o bad changed.json && nothing bad
ok $? 'bad report of stat, scales: counts that overflow'
for share in -1 101 x '' nan; do
    fails 2 "'$share' is not per cent" sweep --underflow "$share" "$report"
    ok $? "sweep --underflow '$share'"
done
fails 2 "'layer' is not one of kind, tensor, total" sweep --by layer "$report"
ok $? 'sweep --by: the known words'
fails 2 'more than 12 curves: .*--by' sweep -m '*' scales.json
ok $? 'sweep: too many curves: how to choose'
fails 2 '1048576 of 2^0..2^40 is not\|2 of 2^0..2^40 is not a scale of this report' sweep -s 2^0..2^40 "$report"
ok $? 'sweep: a range of scales that the report does not have'
fails 2 'a range must increase' sweep -s 2^8..2^0 "$report"
ok $? 'sweep: a range that goes down'
for figure in histogram ruler training accumulation; do
    from=$report
    [ $figure = accumulation ] && from=$dot
    [ $figure = training ] && from=$train
    [ $figure = diff ] && from=differ.json
    fails 2 "by is not for $figure" $figure --by kind "$from" && fails 2 "underflow is not for $figure" $figure --underflow 1 "$from"
    ok $? "$figure: --by and --underflow refused"
done
bad_dot() { # bad_dot NAME SED [TEXT]: the same for accumulation
    sed "$2" "$dot" >changed.json
    fails 3 "changed.json: .*${3:-not a report of mpsim dot: }" accumulation -o bad changed.json &&
        nothing bad && [ ! -e bad.gp ]
    ok $? "bad report of dot: $1"
}
bad_dot 'not JSON' "\$d" 'not JSON'
bad_dot 'another version' 's/mpsim.dot.1/mpsim.dot\/2/' 'another version'
bad_dot 'another schema' 's/mpsim.dot.1/mpsim.models\/1/'
bad_dot 'no results' "4,\$d; 3s/\$/]}/"
bad_dot 'results that are no list' "4,\$d; 3s/.*/\"results\": 5}/"
bad_dot 'a model that is a number' 's/"model": "fma"/"model": 5/'
bad_dot 'no format' 's/"result_format": "binary32"/"x": 1/'
bad_dot 'a negative error' 's/"rel_err": 0.0158/"rel_err": -0.0158/'
bad_dot 'an error that is text' 's/"rel_err": 0.0158[0-9]*/"rel_err": "small"/'
bad_dot 'no error' 's/"rel_err"/"error"/'
bad_dot 'K = 0' 's/"k": 512/"k": 0/'
bad_dot 'K = 0.5' 's/"k": 512/"k": 0.5/'
bad_dot 'more not finite than there are' 's/"not_finite": 0/"not_finite": 17/'
bad_dot 'a single K' 's/"k": [0-9]*/"k": 64/' 'a single K (64): .*-K 64,256'
bad_train() { # bad_train NAME SED [TEXT]: the same for training
    sed "$2" "$train" >changed.json
    fails 3 "changed.json: .*${3:-not a report of mpsim train: }" training -o bad changed.json &&
        nothing bad && [ ! -e bad.gp ]
    ok $? "bad report of train: $1"
}
bad_train 'not JSON' "\$d" 'not JSON'
bad_train 'another version' 's/mpsim.train.1/mpsim.train\/2/' 'another version'
bad_train 'runs that are no list' 's/"runs"/"x"/'
bad_train 'no name' 's/"name": "fp32"/"name": 5/'
bad_train 'steps that are no list' 's/"steps": \[$/"steps": 5, "x": [/'
bad_train 'no steps' '/^{"step"/{/]}/!d;s/.*]}/]}/}'
bad_train 'a step twice' 's/"step": 7,/"step": 6,/'
bad_train 'step 0' 's/"step": 1,/"step": 0,/'
bad_train 'a loss that is text' 's/"loss": 6[0-9.]*/"loss": "small"/'
bad_train 'no scale' 's/"scale": 16.0/"x": 1/'
bad_train 'a scale of 0' 's/"scale": 16.0/"scale": 0/'
bad_train 'more lost than there are' \
    's/"wgrad": {"nonzero": [0-9]*, "lost": 0/"wgrad": {"nonzero": 3, "lost": 4/'
bad_train 'no counts' 's/"wgrad": {/"x": {/'
fails 2 "'loss' is not one of wgrad" training --column loss "$train"
ok $? 'training: an unknown column: the known ones'
fails 2 'selects no run' training -m 'turing-*' "$train"
ok $? 'training: no run selected'
for r in "$train" "$dot"; do
    fails 3 'a report of mpsim' ruler -o bad "$r" && nothing bad
    ok $? "${r##*/} is not for ruler"
done
fails 3 'a report of mpsim dot: .*training takes one of mpsim train' training -o bad "$train" \
    "$dot" && nothing bad
ok $? 'training: a second report of another command'
set -- "$train" "$train" "$train" "$train" "$train" "$train"
fails 2 'more than 20 runs: .*--match' training -o bad "$@" && nothing bad
ok $? 'training: too many runs: how to choose'
for figure in histogram ruler sweep accumulation; do
    fails 2 "$figure takes one report" $figure -o bad "$report" "$report" && nothing bad
    ok $? "$figure: two reports"
done
for option in -kagrad --step=1 -ffp16 -s1 --log; do
    fails 2 'is not for training' training "$option" -o bad "$train" && nothing bad
    ok $? "training $option: refused"
done
fails 3 'report.json: a report of mpsim stat: .*accumulation takes one of mpsim dot --json' \
    accumulation -o bad "$report" && nothing bad
ok $? 'a report of stat is not for accumulation'
for figure in histogram ruler sweep; do
    fails 3 "dot.json: a report of mpsim dot: .*$figure takes one of mpsim stat --json" \
        $figure -o bad "$dot" && nothing bad
    ok $? "a report of dot is not for $figure"
done
for option in -kagrad --step=1 -ffp16 -s1 --log; do
    fails 2 'is not for accumulation' accumulation "$option" -o bad "$dot" && nothing bad
    ok $? "accumulation $option: refused"
done
fails 2 'column is not for ruler' ruler --column bias "$report"
ok $? 'ruler --column: refused'
fails 2 "'bits_lost' is not one of rel_err" accumulation --column bits_lost "$dot"
ok $? 'an unknown column: the known ones'
fails 2 'selects no model' accumulation -m 'turing-*' "$dot"
ok $? 'no model selected'
awk '/"model": "fma"/ { for (i = 0; i < 15; i++) {
        line = $0; sub(/"fma"/, "\"fma:" i "\"", line); print line } next } { print }' \
    "$dot" >many.json
fails 2 'more than 20 models: .*--match' accumulation -o bad many.json && nothing bad
ok $? 'too many models: how to choose'
: >empty.json
fails 3 empty.json ruler -o bad empty.json && nothing bad
ok $? 'bad report: empty'
fails 4 missing.json ruler -o bad missing.json && nothing bad
ok $? 'no report'
fails 2 'not a figure' pie "$report"
ok $? 'an unknown figure'
fails 2 'select no tensor' ruler --kind none "$report"
ok $? 'nothing selected'
fails 2 option ruler --tensor 'a*' "$report"
ok $? 'the selection is called --match'
awk '/"name": "agrad:fc1"/ { for (i = 0; i < 61; i++) {
        line = $0; sub(/agrad:fc1/, "agrad:" i, line); print line } next } { print }' \
    "$report" >many.json
fails 2 'more than 60 rows: .*--match.*--kind.*--step' ruler -m '*' -o bad many.json &&
    nothing bad
ok $? 'too many rows: how to choose'
fails 2 "'nips' is not one of .*icml.*neurips" ruler --venue nips "$report"
ok $? 'an unknown venue: the known ones'
fails 2 'not a format' ruler --format fp16,fp8 "$report"
ok $? 'a format that the report does not have'
fails 2 'not a scale' histogram --scale 3 "$report"
ok $? 'a scale that the report does not have'

# ---- gnuplot fails ----
cat >no-gnuplot <<'END'
#!/bin/sh
printf '\nplot oops\n     ^\n"x.gp" line 3: invalid command\n' >&2
exit 1
END
chmod +x no-gnuplot
MPSIM_GNUPLOT=./no-gnuplot
export MPSIM_GNUPLOT
fails 4 'line 3: invalid command' ruler -o bad "$report" && nothing bad && [ -s bad.gp ]
ok $? 'gnuplot fails: its message, no figure'
printf '#!/bin/sh\nexit 0\n' >no-gnuplot
fails 4 'drew no pdf' ruler -o bad "$report" && nothing bad
ok $? 'gnuplot draws nothing: no figure'
cat >no-gnuplot <<'END'
#!/bin/sh
eval "$(echo "$3" | sed 's/; data.*//; s/figure = /figure=/')"
echo %%EOF >"$figure.pdf" && printf 'IEND\256B`\202' >"$figure.png" && echo '<svg><text>a' >"$figure.svg"
END
fails 4 'the svg is not complete, the disk may be full' ruler -o half "$report" && nothing half && [ ! -e half.dat ] && [ ! -e half.gp ]
ok $? 'a figure that is cut off: nothing stays'
echo old | tee half.dat half.gp >half.svg
fails 4 'the svg is not complete' ruler -o half "$report" && [ "$(cat half.dat half.gp half.svg | tr '\n' ' ')" = 'old old old ' ]
ok $? 'a figure that is cut off: older files stay'
MPSIM_GNUPLOT=./not-there
fails 4 'bad.gp and bad.dat are written' ruler -o bad "$report" && nothing bad && [ -s bad.dat ]
ok $? 'no gnuplot: data and script are written'
: >not-a-program && rm -f bad.dat
MPSIM_GNUPLOT=./not-a-program
fails 4 'not found, or it may not be run, but bad.gp and bad.dat are written' ruler -o bad "$report" && nothing bad && [ -s bad.dat ]
ok $? 'a gnuplot that may not be run, as where a folder of PATH may not be entered: the same'
unset MPSIM_GNUPLOT
fails 4 'no-such-folder' ruler -o no-such-folder/x "$report"
ok $? 'no such folder'
# ---- templates ----
absent() { # absent PREFIX: neither figures nor data nor script
    nothing "$1" && [ ! -e "$1.dat" ] && [ ! -e "$1.gp" ]
}
mkdir templates folder/bad2.gp
printf 'set terminal nonsense\n' >templates/style.gp
fails 4 'bad2.gp' ruler -o folder/bad2 "$report" && [ ! -e folder/bad2.dat ]
ok $? 'a script that cannot be written: no data either'
plots=$MPSIM_PLOTS
MPSIM_PLOTS=$dir/no-such-folder
fails 4 'no-such-folder/style.gp: .*MPSIM_PLOTS' ruler -o none "$report" && absent none
ok $? 'no templates: nothing is written'
MPSIM_PLOTS=$dir/templates
fails 4 'templates/ruler.gp: ' ruler -o none "$report" && absent none
ok $? 'half of the templates: nothing is written'
: >templates/ruler.gp
fails 4 'not a template' ruler -o none "$report" && absent none
ok $? 'an empty template: nothing is written'
echo '# ruler' >templates/ruler.gp
fails 4 'line ' ruler -o bad "$report" && nothing bad
ok $? 'a broken template: its line, no figure'

# Beside the program.
mkdir -p place/bin place/share/mpsim
cp "$MPSIM" place/bin/mpsim
cp -R "$plots" place/mine
unset MPSIM_PLOTS
if [ -e /proc/self/exe ]; then
    plot ruler --type svg -o found "$report" >out 2>err && [ -s found.svg ]; ok $? "templates of a build folder"
fi
MPSIM=$dir/place/bin/mpsim
for found in bin/plots plots share/mpsim/plots; do
    if [ ! -e /proc/self/exe ] || ! "$MPSIM" --version >/dev/null 2>&1; then
        n=$((n + 1))
        echo "ok $n - templates in $found # SKIP no /proc, or a program that cannot be copied"
        continue
    fi
    rm -rf place/plots place/bin/plots place/share/mpsim/plots
    cp -R place/mine place/$found
    chmod -R u+w place/$found # sources may be read-only
    echo "# from $found" >>place/$found/ruler.gp
    plot ruler --type svg -o found "$report" >out 2>err && [ -s found.svg ] &&
        grep -q "^# from $found\$" found.gp
    ok $? "templates in $found"
done
finish
