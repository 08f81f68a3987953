#!/bin/sh
# noreplace.sh -- no output replaces an input, through any command, option, link or standard input.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
run='--width 8 --depth 1 --batch 8 --steps 3'

# ---- inputs of every sort, in $dir/made ----
mkdir "$dir/made" "$dir/plots" "$dir/work" && cd "$dir/made" || exit 99
# shellcheck disable=SC2086 # words
{
    cp "$top/data/amp-mlp/sgd/step_000001/rank_00000.safetensors" trace &&
    cp "$top/data/policies/pytorch-amp-fp16.yaml" policy &&
    printf 'step %d scale 65536 skipped 0\n' 1 2 3 >log && echo '1*3,0*20' >pattern &&
    "$MPSIM" scaler --pattern 1,0 -s torch --state-out state >/dev/null &&
    "$MPSIM" train -P "$top/data/policies/fp32.yaml" $run --write-run plan &&
    "$MPSIM" train --run plan -q --digests digests --checkpoint checkpoint >/dev/null &&
    "$MPSIM" stat --shard 1/1 -o part trace &&
    "$MPSIM" stat --json --histogram -o report trace && cp "$top"/plots/*.gp "$dir/plots"
} || exit 99
cp "$dir/plots/histogram.gp" template
chmod u+w ./* # they may come from a folder that is read-only
cd "$dir/work" || exit 99

# Where an input is and how the output is called, so that both are one file.
links='spelled hard symbolic chain descriptor'
link() { # link KIND INPUT: $out
    out=$2
    case $1 in
    spelled) out=./../work/$2 ;;
    hard) out=hard && ln "$2" hard ;;
    symbolic) out=symbolic && ln -s "$2" symbolic ;;
    chain) ln -s "$dir/work" there && ln -s "there/$2" first && ln -s first second && out=second ;;
    descriptor) out=/proc/self/fd/9 ;;
    esac
}

# refuses INPUT WORDS KINDS: OUT among the words is the output, whatever it is called; the run ends with
# one line, and the input is as it was
refuses() {
    due || return 1
    bad=
    for kind in $3; do
        [ "$kind" != descriptor ] || [ -e /proc/self/fd/0 ] || continue
        rm -rf "$dir/work/"* && cp "$dir/made/$1" "$1" && link "$kind" "$1"
        # shellcheck disable=SC2046 # words
        "$MPSIM" $(echo "$2" | sed "s,OUT,$out,") >../out 2>../err <"$1" 9<"$1"
        [ $? -eq 2 ] && [ "$(wc -l <../err)" -eq 1 ] && grep -q '^mpsim: .*is an input' ../err &&
            cmp -s "$1" "$dir/made/$1" && [ -z "$(find . -name '*.tmp')" ] || bad="$bad $kind"
    done
    [ -z "$bad" ] || echo "replaced or no error:$bad" >>../err
    [ -z "$bad" ]
}

# An input, and a command that reads it and would write it: as it is called, and by a link, each sort in turn.
turns 4
while read -r input words; do
    refuses "$input" "$words" "same ${links%% *}"; ok $? "$words (same, ${links%% *})"
    links="${links#* } ${links%% *}"
done <<'TABLE'
trace stat -o OUT trace
trace stat --ndjson -o OUT trace
trace stat --shard 1/2 -o OUT trace
part merge -o OUT part
part merge --ndjson -o OUT part
part merge --partial -o OUT part
part merge --list -o OUT part
trace cast -f bf16 -o OUT trace
trace cast -f bf16 --match wgrad:fc1.weight --to npy -o OUT trace
trace info --json -o OUT trace
trace memory -P fp32 --json -o OUT trace
trace dot -f fp16 --a weight:fc1.weight --b weight:fc1.weight -o OUT trace trace
trace dot -f fp16 --a weight:fc1.weight --b weight:fc1.weight -o OUT ../made/trace trace
trace attention --q weight:fc1.weight --k weight:fc1.weight --v weight:fc1.weight -o OUT trace
trace judge sum --role x=weight:fc1.weight --role y=weight:fc1.bias -o OUT trace
trace mismatch -a fma -b fma --hidden trace --hidden-name weight:fc1.weight --head trace --head-name weight:fc1.weight -o OUT
trace scaler -o OUT trace
trace scaler --state-out OUT trace
trace scaler --adaptive -o OUT trace
trace replay -P fp32 -o OUT trace
trace advise -o OUT trace
trace advise --policy-out OUT trace
trace report --no-figures -o OUT trace
policy replay -P policy -o OUT ../made/trace
policy replay -P fp32 -P policy -o OUT ../made/trace
policy train -P policy --width 8 --steps 2 -o OUT
policy train -P policy --width 8 --steps 2 --digests OUT
policy train -P policy --width 8 --steps 2 --checkpoint OUT
policy train -P policy --width 8 --steps 2 --write-run OUT
log scaler --log log -o OUT
log scaler -o OUT log
pattern scaler --pattern @pattern -o OUT
pattern scaler --pattern @pattern --state-out OUT
state scaler --pattern 1,0 --state-in state -o OUT
plan train --run plan -o OUT
plan train --run plan --digests OUT
plan train --run plan --checkpoint OUT
plan train --run plan --write-run OUT
digests train --run ../made/plan --check-digests digests -o OUT
digests train --run ../made/plan --check-digests digests --digests OUT
digests train --run ../made/plan --check-digests digests --checkpoint OUT
checkpoint train --resume checkpoint --steps 5 -o OUT
checkpoint train --resume checkpoint --steps 5 --digests OUT
TABLE

# The same from standard input: by the name of the file, or by that of the descriptor.
while read -r input words; do
    refuses "$input" "$words" 'same hard symbolic descriptor'; ok $? "standard input: $words"
    ! [ -e /dev/stdin ] || refuses "$input" "$(echo "$words" | sed s,OUT,/dev/stdin,)" same
    ok $? "standard input as the output: $words"
done <<'TABLE'
trace stat -o OUT -
trace cast -f bf16 -o OUT -
trace info -o OUT -
trace dot -f fp16 --a weight:fc1.weight --b weight:fc1.weight -o OUT - ../made/trace
trace scaler -o OUT -
policy replay -P - -o OUT ../made/trace
policy train -P - --width 8 --steps 2 -o OUT
log scaler --log - -o OUT
plan train --run - -o OUT
TABLE

# Standard output that goes to the end of the input.
for words in 'stat trace' 'stat --ndjson trace' 'info trace' 'cast -f bf16 -q -o - trace' \
    'scaler --log log' 'replay -P fp32 trace' 'train --run plan'; do
    input=${words##* }
    cp "$dir/made/$input" . # shellcheck disable=SC2086 # words
    due && "$MPSIM" $words >>"$input" 2>../err
    [ $? -eq 2 ] && grep -q 'standard output: is an input' ../err && cmp -s "$input" "$dir/made/$input"
    ok $? "appending to the input: $words"
done

make=$(dirname "$MPSIM")/tests/support/mkvectors
if [ -x "$make" ]; then
    "$make" ../made/h100.npz hopper-fp16-fp32 fp16 8 16 >/dev/null && refuses h100.npz 'verify vectors --vectors h100.npz -o OUT' same; ok $? "verify vectors"
fi

# ---- folders: every file in them is an input ----
clean() { rm -rf "$dir/work" && mkdir "$dir/work" && cd "$dir/work" || exit 99; }
clean && cp -r "$top/data/amp-mlp/sgd" trace && chmod -R u+w trace
of=trace/step_000002/rank_00000.safetensors
for words in 'stat' 'info' 'scaler' 'replay -P fp32'; do
    # shellcheck disable=SC2086 # words
    due && "$MPSIM" $words -o $of trace >../out 2>../err
    [ $? -eq 2 ] && grep -q 'is an input' ../err && cmp -s $of "$top/data/amp-mlp/sgd/${of#trace/}"
    ok $? "a file of a folder: $words"
done
mkdir policies && cp ../made/policy policies/a.yaml && cp "$top/data/policies/fp32.yaml" policies/b.yaml
turns 1
"$MPSIM" replay -P policies -o policies/b.yaml trace >../out 2>../err
[ $? -eq 2 ] && cmp -s policies/b.yaml "$top/data/policies/fp32.yaml"; ok $? "a file of a folder of policies"

# ---- no output of a command replaces another ----
# apart WORD...: refused in one line, and nothing is written
apart() {
    "$MPSIM" "$@" >../out 2>../err
    [ $? -eq 2 ] && [ "$(wc -l <../err)" -eq 1 ] && grep -q 'write to the same place' ../err && [ ! -s ../out ] && [ ! -e out ]
}
while read -r words; do
    due || { ok 1 "two outputs: $words" && continue; }
    clean && ln -s middle other && ln -s out middle && ln -s "$dir/work" here && bad=
    # shellcheck disable=SC2086 # words
    for name in out ./out other here/out here/middle; do
        apart $words "$name" -o out || bad="$bad $name"
    done
    # shellcheck disable=SC2086 # words
    apart $words /dev/stdout -o - && apart $words - || bad="$bad -"
    # shellcheck disable=SC2086 # words
    "$MPSIM" $words out >out 2>../err
    [ $? -eq 2 ] && grep -q 'write to the same place' ../err && [ ! -s out ] || bad="$bad standard output"
    [ -z "$bad" ]; ok $? "two outputs: $words$bad"
done <<'TABLE'
advise ../made/trace --policy-out
scaler -s torch --pattern 1,0 --state-out
train -q --run ../made/plan --checkpoint
train -q --run ../made/plan --digests
verify cpu -q --record
TABLE
turns 1
clean && apart train -q --run ../made/plan --trace out --checkpoint ./out; ok $? "two outputs: a folder and a file"

# ---- figures: every file that belongs to one, the report and the templates ----
turns 4
for suffix in dat gp pdf png svg; do
    for kind in same hard symbolic; do
        due || { ok 1 "plot: name.$suffix, $kind" && continue; }
        clean && cp ../made/report report
        case $kind in
        same) input=name.$suffix && mv report "$input" ;;
        hard) input=report && ln report name.$suffix ;;
        symbolic) input=report && ln -s report name.$suffix ;;
        esac
        "$MPSIM" plot histogram -o name "$input" >../out 2>../err
        [ $? -eq 2 ] && grep -q 'is an input' ../err && cmp -s "$input" ../made/report &&
            [ "$(find . ! -type d | wc -l)" -le 2 ]
        ok $? "plot: name.$suffix, $kind"
    done
done
turns 1
clean
"$MPSIM" plot histogram -o name - <../made/report >../out 2>../err && [ -s name.svg ]; ok $? "plot: a report from standard input"
cp ../made/report name.dat && "$MPSIM" plot histogram -o name - <name.dat >../out 2>../err
[ $? -eq 2 ] && cmp -s name.dat ../made/report; ok $? "plot: standard input is not replaced"
MPSIM_PLOTS=$dir/plots "$MPSIM" plot histogram -o "$dir/plots/histogram" ../made/report >../out 2>../err
[ $? -eq 2 ] && cmp -s "$dir/plots/histogram.gp" ../made/template; ok $? "plot: a template is not replaced"
rm -f name.* && ln -s name.gp name.dat && : >name.gp
"$MPSIM" plot histogram -o name ../made/report >../out 2>../err
[ $? -eq 2 ] && grep -q 'name.dat.*name.gp' ../err && [ ! -s name.gp ]; ok $? "plot: two of its files are one"

# ---- outputs against each other ----
clean && : >one && ln one two && ln -s one three
turns 4
for words in 'scaler --pattern 1,0 -o one --state-out two' 'scaler --pattern 1,0 -o three --state-out one' \
    'train --run ../made/plan -o one --digests three' 'train --run ../made/plan --checkpoint two --digests ./one' \
    'train --run ../made/plan -o new --checkpoint ./new'; do
    # shellcheck disable=SC2086 # words
    due && "$MPSIM" $words >../out 2>../err
    [ $? -eq 2 ] && [ ! -s one ] && [ ! -e new ]; ok $? "two outputs are one file: $words"
done

# ---- what may be replaced: a state by its next one, a file that is read by nobody ----
turns 1
clean && cp ../made/state ../made/checkpoint .
run 0 scaler --pattern 1,0 --state-in state --state-out state; ok $? "a state is renewed"
! cmp -s state ../made/state; ok $? "the state is a new one"
run 2 scaler --pattern 1,0 --state-in state --state-out new -o state && has 'is an input' err; ok $? "but not by the report"
run 0 train -q --resume checkpoint --steps 5 --checkpoint checkpoint; ok $? "a checkpoint is renewed"
! cmp -s checkpoint ../made/checkpoint; ok $? "the checkpoint is a new one"
run 2 train -q --resume checkpoint --steps 7 --checkpoint checkpoint -o checkpoint; ok $? "but not by the report"
echo old >report && run 0 stat -o report ../made/trace && ! grep -q old report; ok $? "an older report is replaced"
run 0 stat -o report ../made/trace; ok $? "and once more"

finish
