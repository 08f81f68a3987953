#!/bin/sh
# plot-types.sh -- mpsim plot: figures for LaTeX, in which no name is a command, on a dark ground, and those that gnuplot leaves broken.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
# shellcheck source=tests/cli/plotting.sh
. "$MPSIM_SRCDIR/tests/cli/plotting.sh"

# What is left of the texts of a .tex file without what stands for a character: nothing may be that LaTeX acts on.
left_over() {
    sed -n 's/^ *\\put([0-9,-]*){\\makebox(0,0)\(\[[lr]\]\)*{\\strut{}\(.*\)}}%$/\2/p
            s/^ *\\put([0-9,-]*){\\rotatebox{90}{\\makebox(0,0)\(\[[lr]\]\)*{\\strut{}\(.*\)}}}%$/\2/p' "$1" >texts
    sed 's/\$-\{0,1\}[0-9.]\{1,\}\$//g; s/\$[_^]{[-0-9]}\$//g; s/\$\\times\$//g; s/\$\\leq\$//g; s/\$\\infty\$//g; s/\$-\$//g; s/\$\\[a-z]*arrow\$//g
         s/\\text[a-z]*{}//g; s/\\[lr]brack{}//g; s/\\dots{}//g; s/\\[{}$&#%_]//g; s/[-'"'"']{}//g; s/é//g' texts | LC_ALL=C grep '[^- !'"'"'()*+,./0-9:;=?@A-Za-z]'
}
drew_latex() { # drew_latex PREFIX: both files whole, its texts inert, and the picture called by its name, wherever it was drawn
    magic "$1-latex.pdf" 25504446 && [ "$(tail -n 1 "$1-latex.tex")" = '\endgroup' ] && grep -qF "{./$1-latex}}%" "$1-latex.tex" &&
        ! left_over "$1-latex.tex" >err && [ -s texts ]
}
# the judge sees what it is to see
for text in '\input{x}' 'a_b' '$x$' '{' 'a\\' '50%' '^^41' '\end{picture}' '#1' '&' '~' '[x]'; do
    printf '      \\put(3,4){\\makebox(0,0)[l]{\\strut{}%s}}%%\n' "$text" >judged.tex
    left_over judged.tex >out || echo "$text" >>unseen
done
printf '      \\put(3,4){\\rotatebox{90}{\\makebox(0,0){\\strut{}a\\_b \\{50\\%%\\} 2$^{-}$$^{3}$ $-3$ \\textbackslash{}x-{}}}}%%\n' >judged.tex
[ ! -e unseen ] && ! left_over judged.tex >err && [ -s texts ]
ok $? 'the judge of texts'

harm='\\\\input{x} $x$ _^^41 \& # %% ~ }}{ [b] <q> \\\\end{picture}\\\\write18{touch pwned} '"'"'\\"`|é€'
title='\input{x} $x$ _^^41 & # %% ~ }}{ [b] <q> \end{picture} '"'"'"`|'
for figure in $figures; do
    source_of $figure
    by=
    case $figure in ruler | sweep) by="-m *" ;; scales | sqnr) by="--by tensor" ;; esac
    sed "/\"bits\": /!s/\"\(name\|scaler\|policy\|component\|model\|recipe\)\": \"\([^\"\\\\]*\)\"/\"\1\": \"$harm \2\"/g
         s/mxfp8:floor/$harm floor/g; s/\"e4m3\"/\"$harm\"/g" "$from" >harm.json 2>err
    turns 8 together
    due || { ok 1 "$figure" && continue; }
    # shellcheck disable=SC2086 # words
    (set -f && "$MPSIM" plot $figure $by --terminal cairolatex --title "$title" --venue icml -o harm harm.json) >out 2>err && silent && drew_latex harm && grep -qF '\textbackslash{}input' texts
    ok $? "$figure: for LaTeX, names are inert"
    mkdir again && cp harm.gp harm.dat again && (cd again && gnuplot -d harm.gp) >out 2>err && cmp harm-latex.tex again/harm-latex.tex >err 2>&1
    ok $? "$figure: the script gives the same .tex elsewhere"
    rm -rf again
    if command -v pdflatex >/dev/null; then
        printf '\\documentclass{article}\\usepackage{graphicx,color}\\begin{document}\\input{harm-latex}\\end{document}\n' >page.tex
        pdflatex -halt-on-error -interaction=batchmode page.tex >out 2>err </dev/null && magic page.pdf 25504446
        status=$?
        if [ $status -ne 0 ] && grep -q '^mktexpk: .* failed' err; then # without a home, or in a folder that TeX's scripts cannot name
            echo "ok $((n += 1)) - $figure: pdflatex sets it # SKIP TeX cannot make a font here"
        else
            ok $status "$figure: pdflatex sets it"
        fi
    fi
    rm -f harm* page*
    "$MPSIM" plot $figure --dark --type svg -o dark "$from" >out 2>err && silent && grep -q 'fill="#16181c"' dark.svg &&
        grep -q 'fill="rgb(232,232,232)"' dark.svg && ! grep -q 'fill="black"' dark.svg
    ok $? "$figure: a dark ground, and no text in black"
done
turns 1
[ ! -e pwned ]
ok $? 'nothing was run'
"$MPSIM" plot ruler --type svg,cairolatex -o 'a%b' "$report" >out 2>err
[ $? -eq 2 ] && one_line && grep -q "'a%b' is not a name that LaTeX reads" err && [ ! -e 'a%b.dat' ]
ok $? 'a name that LaTeX would not read'
mkdir -p sub && "$MPSIM" plot ruler --type cairolatex -o sub/fig "$report" >out 2>err && grep -q '{./fig-latex}}%' sub/fig-latex.tex
ok $? 'a folder'

# ---- gnuplot leaves half of it ----
for cut in tex pdf; do
    cat >no-gnuplot <<'END'
#!/bin/sh
eval "$(echo "$3" | sed 's/; data.*//; s/figure = /figure=/')"
END
    [ $cut = tex ] || printf '%s\n' 'printf "%s\n" "\\endgroup" >"$figure-latex.tex"; echo half >"$figure-latex.pdf"' >>no-gnuplot
    [ $cut = pdf ] || printf '%s\n' 'echo half >"$figure-latex.tex"; echo %%EOF >"$figure-latex.pdf"' >>no-gnuplot
    chmod +x no-gnuplot
    MPSIM_GNUPLOT=$dir/no-gnuplot "$MPSIM" plot ruler --type cairolatex -o half "$report" >out 2>err
    [ $? -eq 4 ] && one_line && grep -q "the $cut is not complete" err && [ "$(echo half*)" = 'half*' ]
    ok $? "the $cut is cut off: nothing stays"
done
finish
