#!/bin/sh
# formats.sh -- the page that becomes mpsim-format(7), in Markdown, from the tables of the program: formats.sh MPSIM
set -eu
mpsim=$1
LC_ALL=C
export LC_ALL
# presets: the table of presets, whose cells begin below their heads, as one of Markdown; a cell says its head
presets() {
    awk '
        function cell(i,    text) {
            text = i < n ? substr($0, at[i], at[i + 1] - at[i]) : substr($0, at[i])
            gsub(/^ +| +$/, "", text)
            return text
        }
        /^ *$/ && n { exit }
        !n && /^preset / {
            for (rest = $0; match(rest, /[^ ]+( [^ ]+)*/); rest = substr(rest, RSTART + RLENGTH)) {
                at[++n] = length($0) - length(rest) + RSTART
                name[n] = substr(rest, RSTART, RLENGTH)
                sub(/ becomes$/, "", name[n])
            }
            print "| preset | |"
            print "|---|---|"
            next
        }
        n {
            if (cell(1) != "") preset = cell(1)
            line = "| `" preset "`, " cell(2) " |"
            for (i = 3; i <= n; i++) {
                if ((text = cell(i)) == "") continue
                joined = i < n && text == cell(i + 1) && name[i] == "overflow" && name[i + 1] == "infinity"
                line = line " " (i < n ? (joined ? name[i] ", " name[i + 1] : name[i]) ": " : "") text " |"
                i += joined
            }
            print line
        }'
}
cat <<'END'
# Number formats, rounding modes, presets and block recipes

FORMAT is a name of the table, an alias of one (half, float8_e4m3fn, F8_E4M3, ...), a format of IEEE P3109, which is `binary`
WIDTH `p` PRECISION, then `s` (signed) or `u`, then `e` (with infinities) or `f`, as `binary6p3se`; or a format of your own:
`e`X`m`Y`[:ieee|:fn|:fnuz|:finite][:inf|:noinf][:bias=N][:unsigned]`, with X exponent and Y significand bits. FORMAT`@`PRESET takes
another preset than option `-p` names. A block recipe may stand where a command takes both.

## Formats

END
"$mpsim" formats --csv | awk -F, '
    function row(a, b, c, d, e, f, g, h, max, normal, least) {
        printf "    %-11s %4s %3s %3s %5s %4s %5s %5s %11s %11s %12s\n", a, b, c, d, e, f, g, h, max, normal, least
    }
    NR == 1 { row("format", "bits", "e", "m", "bias", "inf", "nan", "zero", "max", "min normal", "min positive"); next }
    $1 !~ /^binary8p/ { row($1, $2, $3, $4, $5, $6, $7, $8, sprintf("%.5g", $9), sprintf("%.5g", $10), sprintf("%.5g", $11)) }'
cat <<'END'

`e` and `m` are the bits of exponent and significand; `nan` says which codes are NaN (`top`: those above infinity or the largest number;
`-0`: that of minus zero). `mpsim formats` also lists the 8-bit formats of IEEE P3109 and the sources.

## Rounding modes

Option `-r` takes one of these names; `:N` behind a stochastic one is the number of random bits.
END
"$mpsim" formats --modes | sed '1d; s/^  /    /'
cat <<'END'

## Presets

The same name means different casts in different libraries. Unless a row says otherwise, a negative number in an unsigned format becomes
NaN; in formats without NaN or zero, NaN becomes the largest and zero the smallest number; rounding is to nearest even.

END
"$mpsim" formats --presets | presets
cat <<'END'

## Block recipes

Elements of a block share a scale. The rule derives the scale from the largest magnitude in the block. `mpsim formats --recipes` also
lists the sources.

END
"$mpsim" formats --recipes | awk '/^recipe / { source = index($0, "source") } /^ *$/ { print ""; exit } { line = "    " substr($0, 1, source - 1); sub(/ +$/, "", line); print line }'
"$mpsim" formats --recipes | sed -n '/^More words/,$p'
