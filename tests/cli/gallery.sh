#!/bin/sh
# gallery.sh -- doc/gallery.md: its tables are what plots/published.sh computes, and it shows every figure.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
page=$MPSIM_SRCDIR/doc/gallery.md

MPSIM_GNUPLOT=none sh "$MPSIM_SRCDIR/plots/published.sh" "$dir/numbers" >"$dir/out" 2>"$dir/err"
ok $? 'the tables are computed'
# those of the page stand behind its second heading; python/tests/test_papers.py compares what follows the third
sed -n '/^# Beside/,/^# Papers/p' "$page" | grep '^|\|^## ' >"$dir/shown"
grep '^|\|^## ' "$dir/numbers/published.md" >"$dir/computed"
[ "$(grep -c '^| [a-zA-Z0-9]' "$dir/computed")" -ge 20 ] && diff "$dir/shown" "$dir/computed" >"$dir/out"
ok $? 'the page shows them'
: >"$dir/err"
"$MPSIM" plot pie x 2>&1 | sed 's/.*not a figure: //; s/, / /g' >"$dir/names"
for figure in $(cat "$dir/names"); do
    grep -q "^    mpsim plot $figure " "$page" && grep -q "](gallery/$figure.png)" "$page" || echo "no $figure" >>"$dir/err"
done
[ "$(wc -w <"$dir/names")" -ge 15 ] && [ ! -s "$dir/err" ]
ok $? 'every figure has a command and a picture'
turns 8
if ! command -v "${MPSIM_GNUPLOT:-gnuplot}" >/dev/null; then
    echo "ok $((n += 1)) - make figures draws all of them # SKIP no gnuplot"
elif due; then
    sh "$MPSIM_SRCDIR/plots/gallery.sh" "$dir/figures" >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/err" ] &&
        # emulate.png is drawn by doc/scripts/emulate-gpt2.py, which needs PyTorch
        (cd "$MPSIM_SRCDIR/doc/gallery" && for p in *.png; do
            [ $p = emulate.png ] || { [ -s "$dir/figures/$p" ] && [ -s "$dir/figures/${p%.png}.svg" ]; } || exit
        done)
    ok $? 'make figures draws all of them'
fi
finish
