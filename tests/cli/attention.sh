#!/bin/sh
# attention.sh -- mpsim attention: published failures and their cures on generated operands, files in every order, bad input (usage errors: attention.md).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
real=$MPSIM_SRCDIR/data/digits-cnn/step_020000/rank_00000.safetensors

# field MODEL NAME: of the CSV report
field() {
    awk -F, -v m="$1" -v c="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) at = i } $1 == m { print $at }' "$dir/out"
}
# between X LOW HIGH
between() { awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x != "" && x + 0 >= a && x + 0 <= b) }'; }

# ---- arXiv 2510.04212: where the largest score of a row repeats, P is exactly 1 more than once. Sums of two bf16 numbers of one
# sign are ties of bf16 half of the time, which the little that other keys add breaks always away from zero. With magnitudes
# uniform in [2, 4), sums around 6, half of them moved by 2^-6: a bias of 2^-7 / 6, 1.3e-3, in two thirds of the columns
biased=hopper-bf16-fp32:result=bf16
run 0 attention --csv --values repeated -M "$biased,hopper-bf16-fp32"
bias=$(field $biased bias)
between "$bias" 0.0008 0.0013; ok $? "repeated maxima, O in bf16: magnitudes are gained ($bias)"
lean=$(field $biased lean)
between "$lean" 0.4 1; ok $? "errors go with the sign of the result ($lean)"
bias=$(field hopper-bf16-fp32 bias)
between "$bias" -0.000005 0; ok $? "O in binary32 does not have it ($bias)"
[ "$(field $biased repeated)" = 1024 ] && [ "$(field $biased p_one)" = 2048 ]; ok $? "P is exactly 1 twice in every row"
run 0 attention --csv --values repeated -M $biased --sum-rounded --cure 2
bias=$(field $biased bias) lean=$(field $biased lean)
between "$bias" -0.00002 0.00002 && between "$lean" -0.02 0.02; ok $? "the cure: P below 1, no bias ($bias, $lean)"
[ "$(field $biased p_one)" = 0 ] && [ "$(field $biased moved)" = 1024 ]; ok $? "the largest score of every row is moved"
run 0 attention --csv --values repeated -M $biased --tokens 2 --queries 256
lean=$(field $biased lean)
between "$lean" -0.1 0.1; ok $? "with no other key ties go either way ($lean)"
run 0 attention --json --values repeated -M $biased &&
    has '"repeated": 1024, ' && grep -q '"errors": {"others": {.*"repeated": {"negative": {"count": [0-9]*, "away": [0-9]*, "mean_error": -0.001' "$dir/out" &&
    grep -q '"positive": {"count": [0-9]*, "away": [0-9]*, "mean_error": 0.0009' "$dir/out"; ok $? "errors below 0 are negative, those above positive"

# ---- arXiv 2606.06521: beside a sink most of P is below e4m3's smallest number; times 256 it is not
run 0 attention --csv --values sink -f e4m3 -M exact
plain=$(field exact p_zero) seen=$(field exact elements)
run 0 attention --csv --values sink -f e4m3 -M exact --p-scale 256
scaled=$(field exact p_zero)
between "$plain" $((seen / 2)) "$seen" && between "$scaled" 0 $((seen / 100)); ok $? "a sink: $plain of $seen become zero, times 256 $scaled"
turns 3
run 0 attention --csv --values sink -f e4m3 -M exact --reverse
between "$(field exact p_zero)" 0 $((plain - 1)); ok $? "fewer from the last tile on"
run 0 attention --csv --values sink --causal --queries 40 --tokens 30 -M exact && [ "$(field exact masked)" = 40 ]; ok $? "rows that see no key"
run 0 attention --values normal --tokens 40 --cure 1.5 -M fma && ! has 'P = 1  moved'; ok $? "nothing repeats, nothing is moved"
run 0 attention --values repeated -M fma --cure 1e30 && has vanished && has '1,024 .* 1,024'; ok $? "moved too far: the sums are 0"
for threads in 1 3; do
    run 0 attention --json --causal --threads $threads -M fma,hopper-bf16-fp32 && cp "$dir/out" "$dir/threads$threads"
done
due && cmp -s "$dir/threads1" "$dir/threads3"; ok $? "threads do not show"
run 0 attention --ndjson -M fma,exact --tokens 20 && [ "$(wc -l <"$dir/out")" -eq 2 ] && has '"config": {'; ok $? "ndjson"
run 0 attention --tokens 20 -M fma:bf16:round=sr --seed 2 && cp "$dir/out" "$dir/first" && run 0 attention --tokens 20 -M fma:bf16:round=sr --seed 2 &&
    cmp -s "$dir/out" "$dir/first"; ok $? "a stochastic model, again"
run 0 attention -f e5m2,e4m3 --p-format e4m3 --p-round rtz --scores same -M hopper-wgmma-fp8-fp32 --tokens 20 && has '^Q  e5m2' && has '^V  e4m3' &&
    has 'scores by each model' && has 'P in e4m3 toward-zero'; ok $? "formats, each model's own scores"
run 0 attention --csv --heads 6 --kv-heads 2 --tokens 20 --reciprocal --separate --output-format bf16 --scale 0.1 -M fma && [ "$(field fma rows)" = 120 ]
ok $? "grouped heads"

# ---- what a query sees, powers of two, a softmax in bf16
run 0 attention --csv --tokens 20 --size 8 --window 0 -M exact -f bf16 && [ "$(field exact rel_err)" = 0 ] && [ "$(field exact p_one)" = 80 ] && [ "$(field exact elements)" = 80 ]
ok $? "a window of its own key: the value of that key"
run 0 attention --csv --tokens 9 --queries 7 --heads 1 --window 2,1 -M exact && [ "$(field exact elements)" = 27 ]; ok $? "a window of four keys at the edge" # 6 queries see 4, the last 3
run 0 attention --csv --tokens 30 --queries 25 --window 40,0 -M fma && cp "$dir/out" "$dir/wide" && run 0 attention --csv --tokens 30 --queries 25 --causal -M fma && cmp -s "$dir/out" "$dir/wide"
ok $? "a window that is wide enough, none behind: causal"
run 0 attention --csv --tokens 30 --window 3 --causal -M fma && cp "$dir/out" "$dir/wide" && run 0 attention --csv --tokens 30 --window 3,0 -M fma && cmp -s "$dir/out" "$dir/wide"
ok $? "causal in a window"
run 0 attention --csv -M exact --p-format binary32 --exp2 && between "$(field exact rel_err)" 1e-9 5e-7; ok $? "--exp2: as near"
run 0 attention --csv -M exact --p-format binary32 --softmax-format bf16 && between "$(field exact rel_err)" 1e-3 5e-2; ok $? "--softmax-format bf16: far"
run 0 attention --json -M exact --exp2 --softmax-format bf16 --window 5,2 && has '"window": \[5, 2\]' && has '"exp2": true, "softmax_format": "bf16"' && has '"mask": null'; ok $? "told in JSON"
run 0 attention -M exact --exp2 --softmax-format bf16 --window 5,2 && has '^softmax by powers of two, in bf16$' && has '^a window of 5 keys'; ok $? "told"

# ---- files: [batch, heads, tokens, size] of binary32, of numbers that printf writes
turns 1
npy() { # npy FILE SHAPE NUMBER...: binary32 numbers of 0, 1, 2 and nan
    to=$1 shape=$2
    shift 2
    header="{'descr': '<f4', 'fortran_order': False, 'shape': ($shape), }"
    {
        printf '\223NUMPY\1\0\166\0%s%*s\n' "$header" $((118 - ${#header} - 1)) ''
        for x in "$@"; do
            case $x in 0) printf '\0\0\0\0' ;; 1) printf '\0\0\200\077' ;; 2) printf '\0\0\0\100' ;; nan) printf '\0\0\300\177' ;; esac
        done
    } >"$dir/$to.npy"
}
npy q 1,2,1,2 1 0 0 2       # heads 0 and 1: (1, 0), (0, 2)
npy k 1,1,3,2 1 2 1 1 0 1   # keys (1, 2), (1, 1), (0, 1)
npy v 1,1,3,1 1 2 0
npy kt 1,3,1,2 1 2 1 1 0 1
npy vt 1,3,1,1 1 2 0
npy qt 1,1,2,2 1 0 0 2
# head 0: scores 1, 1, 0: (e + 2 e) / (2 e + 1) = 1.2670...; head 1: 4, 2, 2: (1 + 2 e^-2) / (1 + 2 e^-2) = 1
run 0 attention --csv -f binary32 --scale 1 "$dir/q.npy" "$dir/k.npy" "$dir/v.npy" -M exact && [ "$(field exact repeated)" = 1 ] && between "$(field exact rel_err)" 0 2e-7 &&
    cut -d, -f1-16 "$dir/out" >"$dir/heads"; ok $? "two heads of Q share one of K and V"
run 0 attention --csv -f binary32 --scale 1 "$dir/qt.npy" "$dir/kt.npy" "$dir/vt.npy" -M exact --tokens-first && cut -d, -f1-16 "$dir/out" | cmp -s - "$dir/heads"
ok $? "tokens first"
# query heads 0 and 1 see the first head of keys, in which (1, 0) finds two largest scores and (0, 1) one; 2 and 3 the second, the other way
npy q4 1,4,1,2 1 0 1 0 0 1 0 1
npy k2 1,2,2,2 1 0 1 1 0 1 1 1
run 0 attention --csv "$dir/q4.npy" "$dir/k2.npy" "$dir/k2.npy" -M exact && [ "$(field exact repeated)" = 4 ]; ok $? "which heads share which"
# raw: behind the header of npy, the number of heads of each file from its size
run 0 attention --csv -f binary32 --scale 1 --dtype binary32 --offset 128 --shape '*,3,2' "$dir/k.npy" "$dir/k.npy" "$dir/k.npy" -M exact && cut -d, -f1-16 "$dir/out" >"$dir/raw" &&
    run 0 attention --csv -f binary32 --scale 1 "$dir/k.npy" "$dir/k.npy" "$dir/k.npy" -M exact && cut -d, -f1-16 "$dir/out" | cmp -s - "$dir/raw"; ok $? "raw files"
npy m 2,3 1 2 0 0 0 1
npy m3 3,2 1 2 0 0 0 1
npy q2 2,2 1 0 0 2
npy k3 3,2 1 2 1 1 0 1
npy v3 3,1 1 2 0
# query 0 sees keys 0 and 1, of equal scores: 3 / 2; query 1 key 2 alone: 0
run 0 attention --csv -f binary32 --mask "$dir/m.npy" "$dir/q2.npy" "$dir/k3.npy" "$dir/v3.npy" -M exact && [ "$(field exact elements)" = 3 ] && [ "$(field exact rel_err)" = 0 ] &&
    [ "$(field exact repeated)" = 1 ] && [ "$(field exact p_one)" = 3 ]; ok $? "a mask"
run 3 attention --mask "$dir/m3.npy" "$dir/q2.npy" "$dir/k3.npy" "$dir/v3.npy" && has '\[queries, keys\] = \[2, 3\]' err; ok $? "a mask of another shape"
run 0 attention -f bf16 --q act:fc1 --k weight:fc1.weight --v weight:fc1.weight "$real" && has '^Q  bf16, act:fc1: 1 head of 32 tokens, 64 numbers each'
ok $? "tensors of one file"

# ---- against the operands as given: 2^-12 beside 1, which bf16 has not, and a format that has all
run 0 attention --csv -M exact -f bf16 && between "$(field exact given_rel_err)" 1e-3 1e-2 && between "$(field exact rounded_rel_err)" 5e-4 2e-3 &&
    [ "$(field exact rounded_rel_err)" = "$(field exact rel_err)" ] && between "$(field exact given_rmse)" 1e-4 1e-3 && [ "$(field exact compared)" = 65536 ]
ok $? "bug_20261127_errors_of_rounded_operands: attention"
run 0 attention -M exact && has '^ *operands as given  *operands as rounded$' && run 0 attention -M exact --absolute --above 0.1 && has 'compared .*RMSE'; ok $? "told in text"
run 0 attention -M exact "$dir/q.npy" "$dir/k.npy" "$dir/v.npy" && ! has 'operands as' && run 0 attention --csv -M exact "$dir/q.npy" "$dir/k.npy" "$dir/v.npy" &&
    [ "$(field exact given_rel_err)" = "$(field exact rel_err)" ]; ok $? "operands that the format has: once"

# ---- bad input
npy narrow 1,1,3,1 1 2 0
npy few 1,1,2,2 1 2 1 1
npy three 1,3,3,2 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2
npy nan 1,1,3,1 1 nan 0
npy flat 4, 0 1 2 0
npy none 0,2
q=$dir/q.npy k=$dir/k.npy v=$dir/v.npy
run 3 attention "$q" "$dir/narrow.npy" "$v" && has 'Q has 2 numbers a token and K 1, which must be the same' err; ok $? "Q and K do not fit"
run 3 attention "$q" "$dir/few.npy" "$v" && has 'K has 2 tokens and V 3, which must be the same' err; ok $? "K and V do not fit"
run 3 attention "$q" "$dir/three.npy" "$dir/three.npy" && has 'Q has 2 heads and K 3: not a multiple' err; ok $? "heads do not fit"
run 3 attention "$q" "$k" "$dir/nan.npy" && has 'element 1 is NaN: only finite numbers are taken' err; ok $? "NaN"
run 3 attention "$dir/flat.npy" "$k" "$v" && has 'has the shape \[4\]; expected' err; ok $? "one dimension"
run 3 attention "$q" "$dir/none.npy" "$v" && has 'the tensor is empty' err; ok $? "an empty tensor"
turns 3
run 2 attention --heads 2 "$q" "$k" "$v" && has 'are for generated operands' err; ok $? "sizes beside files"
finish
