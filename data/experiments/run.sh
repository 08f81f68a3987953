#!/bin/sh
# run.sh -- the experiments: trains, writes reports and figures into FOLDER, prints digits.tsv. About a
# minute and a half on one core; the same numbers everywhere.
set -eu
if [ $# -lt 1 ]; then
    echo 'usage: [MPSIM=PROGRAM] run.sh FOLDER [SEED...]   (seeds 0 1 2)' >&2
    exit 2
fi
: "${MPSIM:=mpsim}"
out=$1
shift
[ $# -gt 0 ] || set -- 0 1 2
seeds=$* first=$1

# train NAME OPTION...: a report for each seed, FOLDER/seed-N/EXPERIMENT/NAME.json
train() {
    name=$1
    shift
    echo "# $name: mpsim train $*"
    for seed in $seeds; do
        mkdir -p "$out/seed-$seed/$experiment"
        "$MPSIM" train --quiet --threads 1 --json --seed "$seed" "$@" \
            -o "$out/seed-$seed/$experiment/$name.json"
    done
    for seed in $seeds; do
        rows "$name" "$out/seed-$seed/$experiment/$name.json" >>"$out/rows"
    done
}

# rows NAME REPORT: for each policy, tab-separated, "NAME|POLICY", accuracy, loss at the end, what
# is rounded to zero of activation and of weight gradients, lost updates, skipped steps, verdict
rows() {
    awk -v run="$1" '
        function number(key) { # the member of the line: "Infinity" and "NaN" are 0
            return match($0, "\"" key "\": *[0-9.eE+-]+") ? \
                substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0 : 0
        }
        function text(key) {
            match($0, "\"" key "\": *\"[^\"]*\"")
            return substr($0, RSTART + length(key) + 5, RLENGTH - length(key) - 6)
        }
        function share(kind) { # per cent of a kind of tensor
            match($0, "\"" kind "\": *[{][^}]*")
            whole = $0
            $0 = substr(whole, RSTART, RLENGTH)
            part = number("nonzero") ? 100 * number("lost") / number("nonzero") : 0
            $0 = whole
            return part
        }
        /^{"policy"/ { name = text("name") }
        /^"total"/ {
            match($0, "\"updates\": *[0-9]+, \"lost\": *[0-9]+")
            split(substr($0, RSTART, RLENGTH), u, /[:,] */)
            printf "%s|%s\t%.1f\t%s\t%.4g\t%.4g\t%.4g\t%d\t%s\n", run, name, \
                100 * number("test_accuracy"), \
                /"final_loss": *"/ ? text("final_loss") : sprintf("%.3g", number("final_loss")), \
                share("agrad"), share("wgrad"), u[2] ? 100 * u[4] / u[2] : 0, \
                number("skipped"), text("status")
        }' "$2"
}

# table: of the experiment, a line for each run and policy: accuracies and losses of the seeds, the
# largest of the rest
table() {
    awk -F '\t' '
        function shown(x) { return x == 0 ? "0" : x < 0.1 ? "< 0.1 %" : sprintf("%.1f %%", x) }
        function most(a, b) { return a + 0 > b + 0 ? a + 0 : b + 0 }
        !($1 in accuracy) { order[++n] = $1 }
        {
            accuracy[$1] = accuracy[$1] (accuracy[$1] == "" ? "" : ", ") $2
            loss[$1] = loss[$1] (loss[$1] == "" ? "" : ", ") $3
            agrad[$1] = most(agrad[$1], $4); wgrad[$1] = most(wgrad[$1], $5)
            updates[$1] = most(updates[$1], $6); skipped[$1] = most(skipped[$1], $7)
            if ($8 != "") verdict[$1] = $8
        }
        END {
            OFS = "\t"
            print "\nrun", "policy", "accuracy (%)", "loss at the end", "activation gradients zero", \
                "weight gradients zero", "updates lost", "skipped", "verdict"
            for (i = 1; i <= n; i++) {
                p = order[i]
                sub(/[|]/, OFS, p)
                print p, accuracy[order[i]], loss[order[i]], shown(agrad[order[i]]), shown(wgrad[order[i]]), \
                    shown(updates[order[i]]), skipped[order[i]], verdict[order[i]]
            }
        }' "$out/rows"
    rm "$out/rows"
}

# figure NAME ARGUMENT...: of the first seed
figure() {
    (
        cd "$out/seed-$first/$experiment"
        name=$1
        shift
        "$MPSIM" plot training --type png -o "$name" "$@"
    )
    cp "$out/seed-$first/$experiment/$1.png" "$out/$1.png"
}

begin() { # begin NAME TITLE
    experiment=$1
    printf '\n# %s\n' "$2"
    rm -f "$out/rows"
}

case $MPSIM in */*) MPSIM=$(cd "$(dirname "$MPSIM")" && pwd)/${MPSIM##*/} ;; esac
mkdir -p "$out"
out=$(cd "$out" && pwd)
echo '# Printed by data/experiments/run.sh: each table has its commands above it, numbers of the seeds 0, 1, 2'
echo '# separated by commas, and of the other columns the largest of the three seeds. README.md has the conclusions.'

fp16='-P fp32 -P fp16-unscaled -P fp16-static -P pytorch-amp-fp16 -P keras-mixed-float16'
small='--optimizer adam --lr 0.001 --width 64 --steps 200'
begin loss-scaling 'Loss scaling'
# shellcheck disable=SC2086 # lists of options
{
    train factor-2-18 --loss-factor 0x1p-18 $small $fp16
    for n in 16 14; do
        train factor-2-$n --loss-factor 0x1p-$n $small -P fp32 -P fp16-unscaled \
            -P pytorch-amp-fp16
    done
    table
    figure loss-scaling factor-2-18.json

    begin bf16-updates 'bf16 without a master copy'
    train bf16 --optimizer adam --lr 0.0001 --width 64 --steps 400 \
        -P fp32 -P bf16-pure -P bf16-stochastic -P bf16-kahan -P megatron-bf16
    table
    figure bf16-updates --column updates bf16.json

    begin batchnorm 'Batch normalisation and softmax'
    deep='--gain 20 --depth 6 --width 32 --optimizer adam --lr 0.01 --steps 100'
    three='-P fp32 -P pytorch-amp-fp16 -P pytorch-amp-bf16'
    train plain $deep $three
    train batchnorm --batchnorm $deep $three
    train underflow --batchnorm --loss-factor 0x1p-18 $small -P fp32 -P fp16-unscaled
    large='--batchnorm --gain 1000 --depth 3 --width 32 --optimizer adam --lr 0.01 --steps 100'
    train math-binary32 $large -P fp32 -P pytorch-amp-fp16
    train math-fp16 --math fp16 $large -P fp32 -P pytorch-amp-fp16
    logits='--gain 10 --optimizer adam --lr 0.001 --width 64 --steps 100'
    train softmax-binary32 $logits -P fp32 -P pytorch-amp-fp16
    train softmax-fp16 --math fp16 $logits -P fp32 -P pytorch-amp-fp16
    table
    figure batchnorm plain.json batchnorm.json

    begin clipping 'Clipping'
    steep='--gain 4 --lr 0.5 --width 64 --steps 150'
    train unclipped $steep $three
    train clip-1 --clip 1 $steep $three
    train underflow --clip 1 --loss-factor 0x1p-18 $small -P fp32 -P fp16-unscaled
    table
    figure clipping --match fp32 --match pytorch-amp-fp16 unclipped.json clip-1.json

    begin accumulation 'Accumulation'
    for arch in exact hopper fp32-sequential fma:fp16 fma:e8m3; do
        train "$(echo $arch | tr : -)" --arch $arch --width 32 --steps 100 \
            -P pytorch-amp-fp16
    done
    table
    figure accumulation exact.json hopper.json fma-fp16.json fma-e8m3.json

    begin fp8 'fp8 and fp4'
    train formats --width 64 --steps 200 -P fp32 -P pytorch-amp-bf16 -P nemo-fp8-hybrid-max \
        -P nemo-fp8-hybrid-recent -P te-mxfp8 -P te-nvfp4
    table
    figure fp8 --column agrad formats.json
}
