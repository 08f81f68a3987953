# shellcheck shell=sh
# plotting.sh -- what the tests of mpsim plot share, after common.sh: a report for each figure. They run in $dir.
# gnuplot is asked for warnings below: in the locale C it has one of its own, of a sign that no figure has
LC_ALL=C.UTF-8
export LC_ALL
report=$top/tests/cli/reports/report.json
dot=$top/tests/cli/reports/dot.json
train=$top/tests/cli/reports/train.json
blocks=$top/tests/cli/reports/blocks.json

if ! gnuplot --version >/dev/null 2>&1; then
    echo '1..0 # SKIP gnuplot not found'
    exit 0
fi
cd "$dir" || exit 99 # where out and err are
# what gnuplot says is kept: a figure that is drawn may come with a warning
cat >gnuplot-heard <<'END'
#!/bin/sh
gnuplot "$@" 2>heard
code=$?
cat heard >&2
exit $code
END
chmod +x gnuplot-heard
MPSIM_GNUPLOT=$dir/gnuplot-heard
export MPSIM_GNUPLOT
silent() { [ -e heard ] && [ ! -s heard ] && rm heard; } # silent: the last figure came without a warning

magic() { # magic FILE HEX: the file begins with these bytes
    [ "$(od -An -tx1 -N4 "$1" 2>/dev/null | tr -d ' \n')" = "$2" ]
}
whole() { # whole PREFIX: all three figures
    magic "$1.pdf" 25504446 && magic "$1.png" 89504e47 && grep -q '</svg>' "$1.svg" 2>/dev/null
}
"$MPSIM" diff --json -o differ.json "$top/data/amp-mlp/adam" "$top/data/amp-mlp/adamw" >out 2>err
source_of() { # source_of FIGURE: from=a report that it takes
    from=$report
    case $1 in
    scales | sqnr | heatmap | ranking) from=$blocks ;;
    accumulation) from=$dot ;;
    training) from=$train ;;
    diff) from=differ.json ;;
    lossscale) from=scaler.json ;;
    updates | amax) from=replay.json ;;
    memory | attention) from=$1.json ;;
    esac
}
"$MPSIM" scaler --json --pattern '1*3,0*2000,1,0*500,1' -c torch,apex,megatron -o scaler.json &&
    "$MPSIM" replay --json -P te-fp8-delayed -P pytorch-amp-fp16 -o replay.json "$top/data/digits-cnn/step_019999" "$top/data/digits-cnn/step_020000" >out 2>err
"$MPSIM" memory --json --params 1000000 -P fp32 -P te-fp8-delayed -o memory.json && "$MPSIM" attention --json --heads 1 --tokens 24 --size 8 -o attention.json >out 2>err
figures='histogram ruler sweep scales sqnr heatmap accumulation training diff lossscale updates amax memory ranking attention'
