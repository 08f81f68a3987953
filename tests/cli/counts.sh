#!/bin/sh
# counts.sh -- stat of the bundled traces against counts made independently with NumPy and
# ml_dtypes (data/counts). Counts, amax and amin must be equal; mean, l2 and mse agree to 1e-14
# (both sums are exact or fsum; the divisions and roots after them differ in rounding at most),
# sqnr_db to 1e-11 dB (logarithms).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# shellcheck disable=SC2016 # fields of awk
compare='
function close_to(a, b, tolerance) {
    if (a == b) return 1
    if (a == "-" || b == "-" || a == "nan" || b == "nan") return (a == "-" || a == "nan") && (b == "-" || b == "nan")
    if (a == "inf" || b == "inf") return 0
    d = a - b; if (d < 0) d = -d
    m = a < 0 ? -a : a
    return d <= tolerance * m
}
function bad(what, got, want) {
    if (wrong++ < 5) printf "# %s: %s: got %s, expected %s\n", key, what, got, want
}
BEGIN { FS = "\t" }
FNR == NR { # ours
    if ($1 == "tensor") ours[$2 "|" $3 "|" $16 "|" ($17 + 0)] = $0
    next
}
/^#/ { next }
{
    key = $1 "|" $2 "|" $3 "|" ($4 + 0)
    if (!(key in ours)) { bad("row", "none", "one"); next }
    split(ours[key], o, "\t")
    rows++
    split("8 9 10 11", from, " ")
    for (i = 1; i <= 4; i++) if (o[from[i]] != $(4 + i)) bad("count column " i, o[from[i]], $(4 + i))
    if (!close_to(o[12], $9, 0)) bad("amax", o[12], $9)
    if (!close_to(o[13], $10, 0)) bad("amin", o[13], $10)
    if (!close_to(o[14], $11, 1e-14)) bad("mean", o[14], $11)
    if (!close_to(o[15], $12, 1e-14)) bad("l2", o[15], $12)
    for (i = 0; i < 4; i++) if (o[18 + i] != $(13 + i)) bad("cast count " i, o[18 + i], $(13 + i))
    if (!close_to(o[23], $17, 1e-14)) bad("mse", o[23], $17)
    if (!close_to(o[22], $18, 1e-11)) bad("sqnr_db", o[22], $18)
    if ($19 == "-") $19 = 0 # no element to compare: mpsim says 0
    if (!close_to(o[24], $19, 1e-15)) bad("max_rel_err", o[24], $19)
}
END {
    printf "# %d rows compared, %d values differ\n", rows, wrong
    exit wrong > 0 || rows == 0
}'

for trace in digits-cnn charlm; do
    # the CSV columns hold no commas but in the quoted shape: turn them into tabs
    (cd "$MPSIM_SRCDIR/data/$trace" &&
        "$MPSIM" stat --csv -f fp16,bf16,e4m3,e5m2 -s 1,1024,65536 --scale-kinds all step_*) 2>"$dir/err" |
        sed 's/"\([^"]*\)"/\1/; s/, / /g; s/,/\t/g' >"$dir/ours"
    awk "$compare" "$dir/ours" "$MPSIM_SRCDIR/data/counts/$trace.tsv" >"$dir/out" 2>>"$dir/err"
    ok $? "$trace equals the independent counts"
    [ $failed -ne 0 ] || cat "$dir/out"
done
finish
