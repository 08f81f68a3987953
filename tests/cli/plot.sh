#!/bin/sh
# plot.sh -- mpsim plot: figures appear whole or not at all, names are inert, bad reports fail.
set -u
: "${MPSIM:?the program}" "${MPSIM_SRCDIR:?top of the sources}"
MPSIM_PLOTS=$MPSIM_SRCDIR/plots
export MPSIM_PLOTS
case $MPSIM in */*) MPSIM=$(cd "$(dirname "$MPSIM")" && pwd)/${MPSIM##*/} ;; esac
case $MPSIM_SRCDIR in /*) ;; *) MPSIM_PLOTS=$(cd "$MPSIM_PLOTS" && pwd) ;; esac
report=${MPSIM_PLOTS%/plots}/tests/cli/plot/report.json

if ! gnuplot --version >/dev/null 2>&1; then
    echo '1..0 # SKIP gnuplot not found'
    exit 0
fi
unset MPSIM_GNUPLOT
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
cd "$work" || exit 99

n=0
result() { # result STATUS NAME: one line of TAP
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        sed 's/^/# /' err 2>/dev/null
    fi
}
magic() { # magic FILE HEX: the file begins with these bytes
    [ "$(od -An -tx1 -N4 "$1" 2>/dev/null | tr -d ' \n')" = "$2" ]
}
whole() { # whole PREFIX: all three figures
    magic "$1.pdf" 25504446 && magic "$1.png" 89504e47 && grep -q '</svg>' "$1.svg" 2>/dev/null
}
fails() { # fails CODE TEXT ARGUMENT...: that exit code and one line on stderr with TEXT
    want=$1 text=$2
    shift 2
    "$MPSIM" plot "$@" >out 2>err </dev/null
    code=$?
    [ "$code" -eq "$want" ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -- "$text" err
}
nothing() { # nothing PREFIX: no figure, no temporary
    for f in "$1".pdf "$1".png "$1".svg "$1".??????; do
        [ ! -e "$f" ] || return 1
    done
}

# ---- figures ----
for figure in histogram ruler; do
    "$MPSIM" plot "$figure" "$report" >out 2>err && whole "$figure" && [ ! -s err ]
    result $? "$figure: pdf, png and svg"
    mkdir again-$figure
    cp $figure.gp $figure.dat again-$figure
    (cd again-$figure && gnuplot -d $figure.gp) >out 2>err && whole again-$figure/$figure
    result $? "$figure: the script draws it again elsewhere"
    cmp again-$figure/$figure.svg $figure.svg >err 2>&1 &&
        cmp again-$figure/$figure.png $figure.png >>err 2>&1
    result $? "$figure: the same bytes"
done
"$MPSIM" plot histogram --log --kind agrad --step 1 --format e4m3 --scale 2^10 --venue icml \
    --title "it's" -o 'a b' "$report" >out 2>err && whole 'a b' &&
    grep -q "^title = 'it''s'\$" 'a b.gp' && grep -q '^width = 3.25 ' 'a b.gp'
result $? 'histogram: options'
"$MPSIM" plot histogram --tensor zeros --type svg -o zeros "$report" >out 2>err &&
    grep -q '</svg>' zeros.svg && [ ! -e zeros.png ] && [ ! -s err ]
result $? 'histogram: nothing but zeros, and only svg'
"$MPSIM" plot histogram --log --tensor zeros --type svg -o zeros "$report" >out 2>err &&
    grep -q '</svg>' zeros.svg
result $? 'histogram: nothing but zeros, logarithmic'
sed 's/"count": [0-9]*/"count": 0/g; s/"zero": [0-9]*/"zero": 0/g; s/"nan": [0-9]*/"nan": 0/g
     s/"inf": [0-9]*/"inf": 0/g; s/"counts": [^]]*/"counts": [/' "$report" >nothing.json
for log in --type=svg --log; do
    "$MPSIM" plot histogram $log --type svg -o nothing nothing.json >out 2>err &&
        grep -q '</svg>' nothing.svg
    result $? "histogram: no elements at all ($log)"
done
"$MPSIM" plot ruler -o from-stdin - <"$report" >out 2>err && whole from-stdin
result $? 'ruler: report on standard input'
mkdir folder
"$MPSIM" plot ruler -o folder/ "$report" >out 2>err && whole folder/ruler
result $? 'ruler: into a folder'

# ---- names that would harm ----
# shellcheck disable=SC2016 # it must not expand
"$MPSIM" plot ruler --tensor '*' -o inert "$report" >out 2>err && whole inert &&
    "$MPSIM" plot histogram --tensor 'a*' --title '`touch pwned4`$(touch pwned5)' -o inert2 \
        "$report" >out 2>err && whole inert2
result $? 'a name with quotes, backticks, newline: drawn'
! ls pwned* again-*/pwned* >/dev/null 2>&1
result $? 'a name with quotes, backticks, newline: inert'
for prefix in '<touch pwned6;x' '|touch pwned7;x' "q'\`touch pwned8\`\$(touch pwned9)" -x; do
    "$MPSIM" plot ruler --output="$prefix" "$report" >out 2>err && whole "./$prefix" &&
        gnuplot -d "./$prefix.gp" >out 2>err
    result $? "prefix $prefix"
done
! ls pwned* >/dev/null 2>&1
result $? 'prefixes are inert'

# ---- what fails ----
sed 's/"histogram": {[^}]*}/"x": 0/g' "$report" >without.json
fails 3 'made without --histogram' histogram -o bad without.json && nothing bad
result $? 'a report without histogram'
"$MPSIM" plot ruler --type svg -o ok without.json >out 2>err && [ -s ok.svg ]
result $? 'a report without histogram is enough for the ruler'
bad() { # bad NAME SED: the report changed so is refused
    sed "$2" "$report" >changed.json
    fails 3 changed.json histogram -o bad changed.json && nothing bad && [ ! -e bad.gp ]
    result $? "bad report: $1"
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
: >empty.json
fails 3 empty.json ruler -o bad empty.json && nothing bad
result $? 'bad report: empty'
fails 4 missing.json ruler -o bad missing.json && nothing bad
result $? 'no report'
fails 2 'not a figure' pie "$report"
result $? 'an unknown figure'
fails 2 'no tensor' ruler --kind none "$report"
result $? 'nothing selected'
fails 2 'not a format' ruler --format fp16,fp8 "$report"
result $? 'a format that the report does not have'
fails 2 'not a scale' histogram --scale 3 "$report"
result $? 'a scale that the report does not have'

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
result $? 'gnuplot fails: its message, no figure'
printf '#!/bin/sh\nexit 0\n' >no-gnuplot
fails 4 'drew no pdf' ruler -o bad "$report" && nothing bad
result $? 'gnuplot draws nothing: no figure'
MPSIM_GNUPLOT=./not-there
fails 4 'bad.gp and bad.dat are written' ruler -o bad "$report" && nothing bad && [ -s bad.dat ]
result $? 'no gnuplot: data and script are written'
unset MPSIM_GNUPLOT
fails 4 'no-such-folder' ruler -o no-such-folder/x "$report"
result $? 'no such folder'
printf 'set terminal nonsense\n' >style.gp
: >ruler.gp
echo '# ruler' >ruler.gp
mkdir templates
mv style.gp ruler.gp templates
MPSIM_PLOTS=$work/templates
fails 4 'line ' ruler -o bad "$report" && nothing bad
result $? 'a broken template: its line, no figure'
echo "1..$n"
