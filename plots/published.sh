#!/bin/sh
# published.sh FOLDER -- mpsim's numbers beside published ones: five tables and, where gnuplot is, five figures. doc/gallery.md
# shows them, with what is claimed and why some of it differs. Run by make figures; needs MPSIM and MPSIM_SRCDIR (make sets them).
set -eu
: "${MPSIM:?the program}" "${MPSIM_SRCDIR:?top of the sources}" "${MPSIM_GNUPLOT:=gnuplot}"
LC_ALL=C.UTF-8
export LC_ALL
out=$1 data=$MPSIM_SRCDIR/data plots=${MPSIM_PLOTS:-$MPSIM_SRCDIR/plots}
mkdir -p "$out"
: >"$out/published.md"

# ---- a table and a figure: begin, row by row, draw ----
begin() { # begin NAME HEADING UNIT: one table
    name=$1 unit=$3
    : >"$out/$name.tsv"
    { echo "## $2" && echo && echo "| | published | here | difference |" && echo "|---|---|---|---|"; } >>"$out/published.md"
}
# row LABEL PUBLISHED HERE: a number, LOW..HIGH, or none: –; and a number; in the unit of the table
row() {
    awk -v label="$1" -v published="$2" -v here="$3" -v file="$out/$name.tsv" 'BEGIN {
        low = high = published
        if (split(published, ends, /\.\./) == 2) { low = ends[1]; high = ends[2] }
        here = sprintf("%.4g", here) + 0
        gap = here < low + 0 ? here - low : here - high
        gap = published == "–" ? published : low != high && here >= low + 0 && here <= high + 0 ? "within" : sprintf(gap == 0 ? "%.3g" : "%+.3g", gap)
        if (published == "–") low = high = "NaN"
        sub(/\.\./, " to ", published)
        printf "| %s | %s | %s | %s |\n", label, published, here, gap
        printf "%s\t%s\t%s\t%s\t%s\n", label, low, high, here, gap >>file }' >>"$out/published.md"
}
draw() { # draw LOGARITHMIC: 1 or 0
    echo >>"$out/published.md"
    command -v "$MPSIM_GNUPLOT" >/dev/null || return 0
    { printf "if (!exists('data')) data = '%s.tsv'\nif (!exists('figure')) figure = '%s'\n" "$name" "$name"
      printf "types = 'pdf png svg'\nunit = '%s'\nlogarithmic = %d\n" "$unit" "$1"
      cat "$plots/style.gp" "$plots/published.gp"; } >"$out/$name.gp"
    (cd "$out" && "$MPSIM_GNUPLOT" -d "$name.gp")
}

# ---- exponents of gradients ----
bins() { # bins TRACE KIND: the data of plot histogram
    "$MPSIM" stat -q --json --histogram -f fp16 -k "$2" -o "$out/report.json" "$data/$1"
    rm -f "$out/bins.dat" # without gnuplot the data are written, and a line says that there is none
    MPSIM_GNUPLOT=none "$MPSIM" plot histogram --type svg -o "$out/bins" "$out/report.json" 2>"$out/bins.log" ||
        [ -s "$out/bins.dat" ] || { cat "$out/bins.log" >&2 && exit 4; }
}
share() { # share FROM TO: per cent of all elements with 2^FROM <= |x| < 2^TO; share zero
    awk -v from="$1" -v to="${2-}" '/^# bins/ { block = "bins" } /^# special/ { block = "special" } /^# formats/ { block = "" }
        /^#/ { next } block == "bins" && from != "zero" && $1 >= from && $1 < to { sum += $3 }
        block == "special" && from == "zero" && /x = 0/ { sum += $3 } END { print sum + 0 }' "$out/bins.dat"
}
begin published-exponents 'Exponents of gradients' '% of all elements'
for trace in digits-cnn charlm; do
    bins $trace wgrad
    row "weight gradients below 2⁻²⁴, $trace" 5 "$(share -2000 -24)"
done
for trace in digits-cnn charlm; do
    bins $trace agrad
    row "activation gradients that are 0, $trace" 67 "$(share zero)"
    row "activation gradients from 2⁻³⁴ to 2⁻³², $trace" 2 "$(share -34 -32)"
    row "activation gradients from 2⁻²⁴ to 2⁻²³, $trace" 2 "$(share -24 -23)"
done
draw 0

# ---- signal to noise of formats: weights as a GPT begins, normal with deviation 0.02, times 50 ----
"$MPSIM" train -q --net gpt --depth 2 --width 128 --context 16 --batch 1 --steps 1 --gain 50 -P fp32 --trace "$out/normal" >/dev/null
"$MPSIM" stat -q --csv --level kind -f fp16,bf16,e5m2,e4m3,e3m4,nvfp4 -m 'weight:wte*' -m 'weight:*qkv.weight' -m 'weight:*mlp.fc.weight' \
    -o "$out/normal.csv" "$out/normal/step_000001"
rm -rf "$out/normal"
decibels() { # decibels FORMAT
    awk -F, -v format="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $at["format"] == format { print $at["sqnr_db"] }' "$out/normal.csv"
}
begin published-snr 'Signal to noise of normally distributed numbers' 'dB'
while read -r format label published; do
    row "$label" "$published" "$(decibels "$format")"
done <<'END'
fp16 fp16 73.7
bf16 bf16 55.6
e3m4 E3M4 37.5
e4m3 E4M3 31.5
e5m2 E5M2 25.5
nvfp4 NVFP4 20.46
END
draw 0

# ---- sums of FP8 products in 14 bits ----
error() { # error VALUES MODEL COLUMN: per cent
    "$MPSIM" dot --csv -f e4m3 --values "$1" -K 4096 -M "$2" | awk -F, -v column="$3" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print 100 * $at[column] }'
}
begin published-accumulation 'Sums of 4096 FP8 products' 'relative error (%)'
row '14 bits, largest error, positive numbers' 2 "$(error relu hopper-wgmma-fp8-fp32 max_rel_err)"
row '14 bits, largest error, uniform in (0, 1)' 2 "$(error uniform hopper-wgmma-fp8-fp32 max_rel_err)"
row '14 bits, error of all results together, normal' – "$(error normal hopper-wgmma-fp8-fp32 rel_err)"
row 'promoted every 128, largest error, positive numbers' – "$(error relu hopper-wgmma-fp8-promoted max_rel_err)"
draw 1

# ---- a loss scaler over 42,000 steps ----
"$MPSIM" scaler --csv --repeat 6000 -s torch:init=2^32 -o "$out/scaler.csv" "$data/digits-cnn"
# What the spans say: columns scaler,index,from,to,steps,scale,next,events,...
course() { # course WHAT
    awk -F, -v what="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { steps = $at["steps"]; events = $at["events"]; skip = events ~ /skip/
          if (skip) { clean = 0; backoff = $at["next"] / $at["scale"] } else { clean += steps; if (clean >= 2000) begun = 1 }
          if (skip && !begun) first++
          if (begun) { after += steps; lost += skip }
          if (events ~ /growth/) { growth = $at["next"] / $at["scale"]; interval = clean; clean = 0 } }
        END { print what == "first" ? first : what == "rate" ? 100 * lost / after : what == "interval" ? interval : what == "growth" ? growth : backoff }' "$out/scaler.csv"
}
begin published-scaler 'A dynamic loss scaler' 'steps, factors and %'
row 'clean steps before the scale grows' 2000 "$(course interval)"
row 'factor of growth' 2 "$(course growth)"
row 'factor after an overflow' 0.5 "$(course backoff)"
row 'steps skipped at the start' 2..15 "$(course first)"
row 'steps skipped later (%)' 0.05 "$(course rate)"
draw 1

# ---- the ingredients of NVFP4: what data/experiments/transformer/nvfp4.sh printed, initial weights times 4 ----
rank() { # rank INGREDIENT: its row of the table of gain-4
    awk -F '\t' -v name="$1" '/gain-4$/ { on = 1 } on && $1 == name { print $6; exit }' "$data/experiments/transformer/nvfp4.tsv"
}
begin published-nvfp4 'What NVFP4 needs most' 'rank, 1 first'
row 'layers kept in bf16' 1 "$(rank 'first and last block in bf16')"
row 'stochastic rounding of gradients' 2 "$(rank 'stochastic rounding')"
row 'random Hadamard transforms' 3..4 "$(rank 'random Hadamard transforms')"
row 'square blocks of weights' 3..4 "$(rank 'square blocks of weights')"
draw 0
rm -f "$out/report.json" "$out/bins.dat" "$out/bins.gp" "$out/bins.log" "$out/normal.csv" "$out/scaler.csv"
cat "$out/published.md"
