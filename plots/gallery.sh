#!/bin/sh
# gallery.sh FOLDER -- the figures of doc/gallery.md, by the commands that stand there, and those of published.sh. Run by make figures;
# needs MPSIM and MPSIM_SRCDIR (make sets them), both absolute, and gnuplot.
set -eu
: "${MPSIM:?the program}" "${MPSIM_SRCDIR:?top of the sources}" "${MPSIM_PLOTS:=$MPSIM_SRCDIR/plots}"
export MPSIM MPSIM_SRCDIR MPSIM_PLOTS
command -v "${MPSIM_GNUPLOT:-gnuplot}" >/dev/null || { echo 'make figures: gnuplot is not here: Debian has it as gnuplot-nox' >&2 && exit 1; }
mkdir -p "$1"
cd "$1"
rm -f data
ln -s "$MPSIM_SRCDIR/data" data # as the commands call it
mpsim() { "$MPSIM" "$@" || [ "$1:$?" = diff:1 ]; } # 1: they differ
sed -n 's/^    \(mpsim .*\)/\1/p' "$MPSIM_SRCDIR/doc/gallery.md" >commands.sh
# shellcheck source=/dev/null
. ./commands.sh >/dev/null
rm -f data commands.sh
sh "$MPSIM_SRCDIR/plots/published.sh" .
