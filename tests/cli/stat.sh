#!/bin/sh
# stat.sh -- the report of stat does not depend on threads, on how elements are split over files, or on what
# else is asked for: --counts leaves columns and keys out, and changes none of the others.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
data=$MPSIM_SRCDIR/data

# same ARGUMENT...: one thread and several (2 and 7, in turn) give the same report
same() {
    due || return 1
    "$MPSIM" stat --threads 1 "$@" >"$dir/one" 2>"$dir/one.err" || return 1
    for threads in $(turn 2 7); do
        "$MPSIM" stat --threads $threads "$@" >"$dir/more" 2>"$dir/err" &&
            cmp "$dir/one" "$dir/more" >"$dir/out" && cmp "$dir/one.err" "$dir/err" >"$dir/out" || return 1
    done
}
turns 7 # not a multiple of the turns of same
for trace in charlm digits-cnn; do
    for options in '' --json --ndjson '--csv --level kind' '--json --histogram --counts' '-f e4m3,e5m2 -s 1,2^10 -t' \
        '-f bf16 -r src --seed 5 --csv' '-f e4m3 -r rtz --flush-inputs -s 3 --csv --counts'; do
        # shellcheck disable=SC2086 # words
        same $options "$data/$trace"
        ok $? "any number of threads: $trace $options"
    done
done

# Numbers of all kinds in one file, and the same in parts: as large tensors, and as many small ones.
cat "$data"/charlm/step_*/* "$data"/digits-cnn/step_*/* "$data"/amp-mlp/*/*/* 2>/dev/null | head -c 2800000 >"$dir/half"
cat "$dir/half" "$dir/half" >"$dir/raw"
mkdir "$dir/parts" "$dir/few"
split -b 40000 -a 3 "$dir/raw" "$dir/parts/p"
split -b 2800000 "$dir/raw" "$dir/few/p"
turns 30
for source in binary32 bf16 fp16 e4m3 binary64; do
    for options in '-f fp16,e4m3@cuda,e2m1' '-f e5m2,bf16 -r rup -s 1,3 --flush-subnormals' '--counts -s 2^-3,2^9'; do
        # shellcheck disable=SC2086 # words
        for threads in 1 2; do
            run 0 stat --csv --level total --dtype $source $options --threads $threads "$dir/raw" && mv "$dir/out" "$dir/whole" &&
                run 0 stat --csv --level total --dtype $source $options --threads $threads "$dir/few" &&
                cmp "$dir/whole" "$dir/out" >"$dir/err" &&
                run 0 stat --csv --level total --dtype $source $options --threads $threads "$dir/parts" &&
                cmp "$dir/whole" "$dir/out" >"$dir/err"
            ok $? "any split over files: $source, $threads threads, $options"
        done
    done
done
turns 5

# --counts
run 0 stat --csv -s 1,2^9 "$data/charlm/step_000100" && sed 's/"\([^"]*\)"/\1/; s/, / /g' "$dir/out" |
    cut -d, -f 1-13,16-21 >"$dir/cut" && run 0 stat --csv --counts -s 1,2^9 "$data/charlm/step_000100" &&
    sed 's/"\([^"]*\)"/\1/; s/, / /g' "$dir/out" | cmp - "$dir/cut" >"$dir/err"
ok $? "--counts: the same numbers in CSV, without the columns of sums"
run 0 stat --json -f fp16 --seed 9223372036854775807 -m weight:fc2.bias "$data/digits-cnn/step_000001" && has '"seed": 9223372036854775807,'; ok $? "the largest seed"
run 2 stat --seed 2^63 "$data/digits-cnn/step_000001" && has "'2^63' is larger than 2^63 - 1" err; ok $? "a seed beyond JSON's integers"
run 0 stat --json --counts --histogram "$data/charlm/step_000100" && has '"counts": true' && has '"histogram"' && has '"amin"' &&
    ! grep -qE '"(mean|l2|sqnr_db|mse|max_rel_err|compared)"' "$dir/out"
ok $? "--counts: keys left out of JSON"
run 0 stat --counts "$data/charlm/step_000100" && has 'inexact$' && has 'amax$' && ! has SQNR && ! has mean
ok $? "--counts: columns left out of text"
for condition in 'sqnr<40' 'total:mse>1' 'inf,kind:max_rel_err>0.1'; do
    run 2 stat --counts --fail-if "$condition" "$data/charlm/step_000100" && has 'is not computed with --counts' err
    ok $? "--counts does not know $condition"
done
turns 1
"$MPSIM" stat --counts --fail-if 'inf,underflow>1%' "$data/charlm/step_000100" >/dev/null 2>"$dir/err"
[ $? -eq 1 ] && has 'underflow>1%' err
ok $? "--counts judges counts"

# errors: the first in the order of files, whoever reads
mkdir "$dir/mixed"
for i in 1 2 3 4 5 6; do cat "$data/charlm/step_000100/rank_00000.safetensors" >"$dir/mixed/$i.safetensors"; done # sources may be read-only
head -c 5000 "$dir/mixed/1.safetensors" >"$dir/mixed/3.safetensors"
head -c 6 "$dir/mixed/1.safetensors" >"$dir/mixed/5.safetensors"
code=0
for threads in 1 2 7; do
    run 3 stat --threads $threads "$dir/mixed/1.safetensors" "$dir/mixed/3.safetensors" "$dir/mixed/5.safetensors" && has mixed/3 err || code=1
    "$MPSIM" stat --keep-going --csv --level total --threads $threads "$dir/mixed" >"$dir/$threads" 2>"$dir/err"
    [ $? -eq 5 ] && [ "$(wc -l <"$dir/err")" -ge 1 ] && has mixed/3 err && cmp "$dir/1" "$dir/$threads" >"$dir/out" || code=1
done
ok $code "errors in the order of files"
# ---- tensors that are not read ----
st() { # st NAME HEADER BYTES: a safetensors file of so many zeros
    printf "\\$(printf %03o $((${#2} % 256)))\\$(printf %03o $((${#2} / 256)))\\0\\0\\0\\0\\0\\0%s" "$2" >"$dir/$1"
    head -c "$3" /dev/zero >>"$dir/$1"
}
count='"bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}'
st plain.safetensors "{$count}" 16
st packed.safetensors "{$count,\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[16,32]},\"a.sc\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[32,36]}}" 36
st complex.safetensors "{$count,\"z\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[16,24]}}" 24
"$MPSIM" stat -q --fail-if nan "$dir/plain.safetensors" >"$dir/out" 2>"$dir/err"; ok $? "a gate: a counter is no number that was not seen"
gate() { # gate FILE TENSOR REASON
    "$MPSIM" stat -q --fail-if nan "$dir/$1" >"$dir/out" 2>"$dir/err"
    [ $? -eq 5 ] && one_line && has "^mpsim: stat: --fail-if could not check 1 tensor: '$2' of .* ($3)$" err &&
        has "^1 tensor that may hold numbers is not read: '$2' of " && "$MPSIM" stat -q --fail-if nan -m b "$dir/$1" >"$dir/out" 2>"$dir/err" &&
        "$MPSIM" stat --json "$dir/$1" >"$dir/out" 2>"$dir/err" && has "\"unread\": .*{\"name\": \"$2\", \"dtype\": \"[A-Z0-9]*\", \"reason\": \"$3\", \"file\": \"[^\"]*\", \"tensors\": 1, \"unseen\": true}" &&
        has '{"name": "bn.num_batches_tracked", "dtype": "I64", "reason": "integers", .*"unseen": false}'
}
gate packed.safetensors a.qweight 'integers that may be packed weights'; ok $? "bug_20261127_a_gate_that_could_not_look: packed weights"
gate complex.safetensors z 'complex numbers'; ok $? "bug_20261127_a_gate_that_could_not_look: complex numbers"
"$MPSIM" stat -q --fail-if 'zero,nan' "$dir/complex.safetensors" >"$dir/out" 2>"$dir/err"; [ $? -eq 1 ]; ok $? "a condition that holds comes first"
for k in 1 2; do "$MPSIM" stat --shard $k/2 -o "$dir/part.$k" "$dir/complex.safetensors" 2>"$dir/err"; done
"$MPSIM" stat --json "$dir/complex.safetensors" >"$dir/whole" 2>"$dir/err"
"$MPSIM" merge -q --json --fail-if nan -o "$dir/merged" "$dir/part.2" "$dir/part.1" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has "^mpsim: merge: --fail-if could not check 1 tensor: 'z' of C64" err && cmp "$dir/whole" "$dir/merged"; ok $? "the gate of merge, and its list"
"$MPSIM" advise -q --fail-if 'binary32>99' "$dir/complex.safetensors" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has "^mpsim: advise: --fail-if could not check 1 tensor: 'z'" err; ok $? "the gate of advise"
run 0 info --json "$dir/complex.safetensors" && has '"unread": "complex numbers", "unseen": true' && has '"unread": "integers", "unseen": false'; ok $? "info says why"
finish
