#!/bin/sh
# diff.sh -- mpsim diff: recorded traces that are equal, renamed, and with a difference put in.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
adam=$MPSIM_SRCDIR/data/amp-mlp/adam
name=rank_00000.safetensors

fresh() { rm -rf "$dir/b"; cp -r "$adam" "$dir/b"; chmod -R u+w "$dir/b"; } # a copy, to be changed
edit() { # edit STEP EXPRESSION: of its header, whose length stays
    sed "$2" "$dir/b/step_0000$1/$name" >"$dir/edited" && mv "$dir/edited" "$dir/b/step_0000$1/$name"
}
json() { "$MPSIM" diff --json "$@" >"$dir/out" 2>"$dir/err" </dev/null; }
first() { # first TEXT...: of the entry of the first difference
    sed -n 's/^"first": //p' "$dir/out" >"$dir/first"
    for text in "$@"; do grep -qF -- "$text" "$dir/first" || return 1; done
}

# ---- no difference ----
run 0 diff "$adam" "$adam" && has '^Equal: 348 tensors, 105,270 elements$'; ok $? "a run and itself"
json "$adam" "$adam" && has '^"equal": true,$' && has '^"first": null}$' && has '"schema": "mpsim.diff/1"'
ok $? "the same, in JSON"
fresh
for step in 01 07 20; do edit $step 's/fc1/FC9/g; s/opt\.m/opt_m/g'; done
run 0 diff "$adam" "$dir/b" && has '^[0-9]* of other names in A and B, matched by their numbers$'; ok $? "other names: matched by their numbers"
fresh
edit 12 's/"weight:fc/"module:fc/g'
run 0 diff "$adam/step_000012" "$dir/b/step_000012" && has '^4 of other names'; ok $? "names of another kind"
"$MPSIM" diff "$adam/step_000003" - <"$adam/step_000003/$name" >"$dir/out" 2>"$dir/err" && has '^Equal: 8 tensors'
ok $? "standard input"
"$MPSIM" cast -q -f fp32 -m 'weight:fc1.weight' --to npy -o "$dir/w.npy" "$adam/step_000009/$name" &&
    "$MPSIM" cast -q --only -f fp32 -m 'weight:fc1.weight' -o "$dir/w.safetensors" "$adam/step_000009/$name" &&
    run 0 diff "$dir/w.safetensors" "$dir/w.npy" && has '^Equal: 1 tensor, 1,024 elements$'
ok $? "safetensors and npy, one tensor each"

# ---- a difference ----
fresh
edit 09 '1s/"F32"/"I32"/'
run 1 diff "$adam" "$dir/b" && has 'numbers on one side only$' && has '^I32 in B\|F32 in A, I32 in B'
ok $? "bug_20261122_integers_against_numbers"
for side in c/step_000001 c/step_9223372036854775807 d/step_000001 d/step_000002; do
    mkdir -p "$dir/$side" && cp "$dir/w.npy" "$dir/$side/weight.npy"
done
run 1 diff "$dir/c" "$dir/d" && has '^Differ: 0 of 1 tensor and 2 steps, first step 2: only in B$' && has '^ *9223372036854775807  all  *missing$' &&
    run 1 diff "$dir/d" "$dir/c" && has 'first step 2: missing in B$' && has '^ *9223372036854775807  all  *extra$'
ok $? "bug_20261126_the_last_step_that_there_can_be"
rm -r "$dir/c" "$dir/d"
run 2 diff - - && has 'cannot be both' err; ok $? "standard input twice"
fresh
file=$dir/b/step_000017/$name
size=$(wc -c <"$file")
last=$(od -An -tu1 -j $((size - 1)) -N1 "$file" | tr -d ' ')
# shellcheck disable=SC2059 # an octal byte
printf "\\$(printf %03o $(((last + 128) % 256)))" | dd of="$file" bs=1 seek=$((size - 1)) conv=notrunc 2>"$dir/err"
run 1 diff "$adam" "$dir/b" && has '^Differ: 1 of 348 tensors, first wgrad:fc2.weight of step 17: a flipped bit$' &&
    has 'bit 31, of the sign' && has '^All others are equal.$'; ok $? "a flipped bit: text"
json "$adam" "$dir/b"; [ $? -eq 1 ] && first '"step": 17' '"name": "wgrad:fc2.weight"' '"verdict": "flipped-bit"' '"bit": 31' \
    '"index": [9, 15]' '"differ": 1' && has '"verdicts": {"equal": 347, "flipped-bit": 1}'; ok $? "a flipped bit: JSON"
run 1 diff --csv "$adam" "$dir/b" && [ "$(wc -l <"$dir/out")" -eq 349 ] &&
    has '^17,0,wgrad:fc2.weight,wgrad:fc2.weight,name,wgrad,F32,F32,"\[10, 16\]","\[10, 16\]",160,flipped-bit,1,"\[9, 15\]",'
ok $? "a flipped bit: CSV"
run 1 diff --ndjson "$adam" "$dir/b" && [ "$(wc -l <"$dir/out")" -eq 348 ] && [ "$(grep -c '"verdict": "equal"}$' "$dir/out")" -eq 347 ] &&
    has '^{"step": 17, "name": "wgrad:fc2.weight", .*"verdict": "flipped-bit", .*"bit": 31}$'; ok $? "a flipped bit: NDJSON"
run 0 diff --tolerance 2.5 "$adam" "$dir/b" && has '1 within the tolerance$'; ok $? "within a relative tolerance"
run 1 diff --tolerance 4ulp "$adam" "$dir/b"; ok $? "beyond one in ULPs"
run 0 diff -k weight "$adam" "$dir/b" && has '^Equal: 100 tensors'; ok $? "--kind leaves it out"

fresh
cp "$adam/step_000007/$name" "$dir/b/step_000008/$name"
chmod u+w "$dir/b/step_000008/$name"
edit 08 's/"mpsim.step":"7"/"mpsim.step":"8"/; s/"mpsim.step": "7"/"mpsim.step": "8"/'
json "$adam" "$dir/b"; [ $? -eq 1 ] && first '"step": 8' '"name": "opt.m:fc1.bias"' '"verdict": "step-skipped"' 'at step 7'
ok $? "a step skipped"
six() { # six FOLDER STEP BYTES: six floats, each of four letters; diff looks for fewer than eight in no other step
    mkdir -p "$dir/$1/step_00000$2"
    printf '\100\0\0\0\0\0\0\0%-64s%s' '{"weight:w":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}}' "$3" \
        >"$dir/$1/step_00000$2/$name"
}
old='abc?deF?ghI?jkL?mn5?op@?' other='zzb?qqE?vvJ?wwM?xy6?ee??' updated='bcc?AzG?xyH?klL?xx4?ppB?'
six c 1 "$old" && six c 2 "$updated" && six d 1 "$other" && six d 2 "$old"
behind='"step": 2, .*"verdict": "step-skipped", .*"evidence": "'
run 1 diff --ndjson "$dir/c" "$dir/d" && has "${behind}B is what A was at step 1, in all bits: it is a step behind\"" &&
    run 1 diff --ndjson "$dir/d" "$dir/c" && has "${behind}A is what B was at step 1, in all bits: it is a step behind\""
ok $? "a step behind: what the other side was"
six d 1 "$old"
run 1 diff --ndjson "$dir/c" "$dir/d" && has "${behind}B is what it was at step 1, .*: an update was skipped; A was the same there\""
ok $? "a step skipped by one of two runs that were equal"
rm -r "$dir/c" "$dir/d"
# files whose path is the name of their tensor: the number of the step is no part of it
for step in 3 4 5; do
    "$MPSIM" cast -q -f fp32 -m 'weight:fc1.weight' --to npy -o "$dir/w$step.npy" "$adam/step_00001$step/$name"
done
for layout in w_step w/step_; do
    rm -rf "$dir/c" "$dir/d" && mkdir -p "$dir/c/w" "$dir/d/w"
    for step in 3 4 5; do
        cp "$dir/w$step.npy" "$dir/c/$layout$step.npy" && cp "$dir/w$step.npy" "$dir/d/$layout$step.npy"
    done
    cp "$dir/w3.npy" "$dir/d/${layout}4.npy"
    run 1 diff --ndjson "$dir/c" "$dir/d" && has "\"step\": 4, \"name\": \"${layout}4.npy\".*\"verdict\": \"step-skipped\".*B is what it was at step 3, in all bits"
    ok $? "a step skipped: npy files $layout"
    cp "$dir/w4.npy" "$dir/d/${layout}3.npy" && cp "$dir/w5.npy" "$dir/d/${layout}4.npy" && rm "$dir/d/${layout}5.npy"
    run 1 diff --ndjson "$dir/c" "$dir/d" && has "\"step\": 3, .*\"verdict\": \"step-shifted\".*B is what A is at step 4"
    ok $? "steps that are counted otherwise: npy files $layout"
done
rm -r "$dir/c" "$dir/d"
fresh
for step in 11 12 13 14 15 16 17 18; do
    cp "$adam/step_0000$((step + 1))/$name" "$dir/b/step_0000$step/$name"
    chmod u+w "$dir/b/step_0000$step/$name"
    edit $step "s/\"mpsim.step\":\"$((step + 1))\"/\"mpsim.step\":\"$step\"/"
done
json "$adam" "$dir/b"; [ $? -eq 1 ] && first '"step": 11' '"name": "opt.m:fc1.bias"' '"verdict": "step-shifted"' 'A is at step 12' &&
    has '"verdicts": {"equal": [0-9]*, "step-shifted": 1[0-9]*[,}]'; ok $? "steps that are counted otherwise: B is A of another step"
fresh
cp "$adam/step_000007/$name" "$dir/b/step_000008/$name"
run 1 diff "$adam" "$dir/b" && has '^B: step_000008/rank_00000.safetensors is of step 7 by its metadata, of step 8 by its name; the'
ok $? "metadata and a name that disagree"
json "$adam" "$dir/b"; has '^"notes": \["B: step_000008/rank_00000'; ok $? "the same, in JSON"
run 1 diff -k weight "$adam/step_000007" "$adam/step_000009" && has '^A is of step 7, B of step 9$'; ok $? "two steps of other numbers"
fresh
rm -r "$dir/b/step_000013"
run 1 diff "$adam" "$dir/b" && has 'first step 13: missing in B$'; ok $? "a step is missing"
run 1 diff --csv "$adam" "$dir/b" && has '^13,,,,,,,,,,,missing,,,,,,,,,,,the whole step is in A alone$'; ok $? "the same, in CSV"
run 1 diff "$dir/b" "$adam" && has 'first step 13: only in B$'; ok $? "a step too many"
for to in bf16 fp16 e4m3; do
    "$MPSIM" cast -q -f $to -m 'weight:*' -o "$dir/cast.safetensors" "$adam/step_000020/$name" &&
        json -k weight "$adam/step_000020" "$dir/cast.safetensors"
    [ $? -eq 1 ] && first '"verdict": "rounded"' "\"format\": \"$to\"" '"mode": "nearest-even"'; ok $? "one rounding to $to"
done
"$MPSIM" cast -q -f bf16 -r src --widen -m 'weight:*' -o "$dir/cast.safetensors" "$adam/step_000020/$name" &&
    json -k weight "$adam/step_000020" "$dir/cast.safetensors"
[ $? -eq 1 ] && first '"verdict": "rounded"' '"format": "bf16"' '"mode": "stochastic"'; ok $? "stochastic rounding, kept as binary32"
"$MPSIM" cast -q -f fp32 -s 2^13 -m 'wgrad:*' -o "$dir/cast.safetensors" "$adam/step_000020/$name" &&
    json -k wgrad "$adam/step_000020" "$dir/cast.safetensors"
[ $? -eq 1 ] && first '"name": "wgrad:fc2.bias"' '"verdict": "scaled"' '"scale": 8192.0' 'loss scale that was not removed'
ok $? "a scale that was not removed, first in the backward pass"
run 1 diff -k opt.m "$adam" "$MPSIM_SRCDIR/data/amp-mlp/sgd" && has 'B = A \* 10 exactly'; ok $? "two optimizers"

# ---- constants: what rounds to what is said, whichever side ----
tenth='\315\314\314\075'
for count in 1 2; do
    # shellcheck disable=SC2059 # octal bytes
    printf "$tenth$tenth" | head -c $((4 * count)) >"$dir/constant.raw"
    for format in fp32 bf16; do
        "$MPSIM" cast -q --dtype binary32 --shape $count -f $format -o "$dir/$format.safetensors" "$dir/constant.raw"
    done
    run 1 diff "$dir/fp32.safetensors" "$dir/bf16.safetensors" && has 'B is A rounded to bf16' &&
        run 1 diff "$dir/bf16.safetensors" "$dir/fp32.safetensors" && has 'A is B rounded to bf16'; ok $? "constants of $count elements, rounded"
done

# ---- log-probabilities: -1 -2 (padding), -0.5 -1 -2 against -1 -1.5 (padding), -0.5 -1 -3 ----
o='\000\000\200\277' z='\000\000\000\000' h='\000\000\000\277'
# shellcheck disable=SC2059 # octal bytes
printf "$o\\000\\000\\000\\300$z$h$o\\000\\000\\000\\300" >"$dir/a.raw"
# shellcheck disable=SC2059
printf "$o\\000\\000\\300\\277$z$h$o\\000\\000\\100\\300" >"$dir/b.raw"
logprob() { run "$@" diff --logprob --dtype binary32 --shape 2,3 "$dir/a.raw" "$dir/b.raw"; }
logprob 1 && has '^5 tokens in 2 sequences; 1 of padding left out$' && has '^B - A  *mean -0.1, mean magnitude 0.3, ' &&
    has '; 60.00 % equal$' && has '50 %: 0, 90 %: 1, 99 %: 1, 99.9 %: 1, largest 1$' && has '\[1, 2\]: A -2, B -3$' &&
    has '; 40.00 % of the tokens outside of 0.8 to 1.2' && has 'median 0.3679, 0.3679 to 1.649; 100 % of the sequences outside' &&
    has 'k1 0.1, k3 0.10332; perplexity of B over A.s 1.10517$'; ok $? "--logprob: differences, ratios, products"
run 1 diff --logprob --json --clip 0.3,2 --dtype binary32 --shape 2,3 "$dir/a.raw" "$dir/b.raw" && has '"outside": 0' &&
    has '"schema": "mpsim.logprob/1"' && has '"tokens": 5' && has '"product_max": 1.6487'; ok $? "--logprob --json --clip"
run 0 diff --logprob --dtype binary32 --shape 2,3 "$dir/a.raw" "$dir/a.raw" && has '100 % equal$'; ok $? "--logprob: equal"
run 1 diff --logprob -k weight "$adam" "$MPSIM_SRCDIR/data/amp-mlp/adamw" && has '^15,180 above 0, which no logarithm' &&
    has '^ *25  weight:fc2.weight '; ok $? "--logprob of what is none, a row for each step and tensor"
run 1 diff --logprob --json --clip 0.25 --dtype binary32 --shape 2,3 "$dir/a.raw" "$dir/b.raw" && has '"clip": \[0.75, 1.25\]'; ok $? "--clip: a distance from 1"
run 2 diff --logprob --clip 1.5 "$adam" "$adam" && has 'nor one distance from 1' err; ok $? "--clip: too far"
run 2 diff --clip 1,2 "$adam" "$adam" && has 'clip needs --logprob' err; ok $? "--clip alone"
run 2 diff --logprob --clip 2,1 "$adam" "$adam" && has 'the lower one first' err; ok $? "--clip the wrong way round"
run 1 diff --logprob --csv --dtype binary32 --shape 2,3 "$dir/a.raw" "$dir/b.raw" && has '^step,name,sequences,tokens,.*,magnitude_max,worst_sequence,' &&
    has '^,,2,5,1,0,0,3,2,2,-0.1'; ok $? "--logprob --csv"
logprob 1 && has '^verdict  *too few tokens for a verdict: 5 of 32' && has '^clipping drops  *1 above 1.2 (advantage > 0), 1 below 0.8 and 0 above 3' &&
    has '^truncation at 2   0 tokens, 0 of the ratios. sum; 0 sequences, 0 of the products. sum$'; ok $? "--logprob: too few for a verdict, what a loss drops"
run 1 diff --logprob --dual-clip 1.5 --truncate 1.25 --json --dtype binary32 --shape 2,3 "$dir/a.raw" "$dir/b.raw" && has '"dual": 1' && has '"verdict": "too-few"' &&
    has '"truncate": 1.25' && has '"truncated": 1, '; ok $? "--logprob --dual-clip --truncate"
run 2 diff --truncate 2 "$adam" "$adam" && has 'truncate needs --logprob' err; ok $? "--truncate alone"
run 2 diff --logprob --tolerance 1ulp "$adam" "$adam"; ok $? "--logprob with a tolerance"

# ---- the same whatever the threads ----
for threads in 2 5; do
    "$MPSIM" diff --json --threads 1 "$adam" "$MPSIM_SRCDIR/data/amp-mlp/adamw" >"$dir/one"
    "$MPSIM" diff --json --threads $threads "$adam" "$MPSIM_SRCDIR/data/amp-mlp/adamw" >"$dir/out"
    cmp "$dir/one" "$dir/out" >"$dir/err" 2>&1; ok $? "$threads threads"
done

# ---- the recipe that a file names ----
for form in 'mxfp4' 'nvfp4' 'mxfp8:rceil --axis columns' 'mxfp4 --widen' 'mxfp8:even --quantised torchao'; do
    # shellcheck disable=SC2086 # words
    "$MPSIM" cast -q --only -m 'weight:fc1.weight' -f $form -o "$dir/q.safetensors" "$adam/step_000009/$name" 2>"$dir/err" &&
    run 1 diff -m 'weight:fc1.weight*' "$adam/step_000009/$name" "$dir/q.safetensors" && has 'quantised as its file says$' && has "^B = ${form%% *}.*(A) \(exactly\|but for the last bits of its scales\)"
    ok $? "bug_20261127_the_recipe_that_a_file_names: $form"
done

# ---- tensors that are not read as numbers ----
st() { # st NAME HEADER BYTES: a safetensors file
    head=$2
    printf "\\$(printf %03o $((${#head} % 256)))\\$(printf %03o $((${#head} / 256)))\\0\\0\\0\\0\\0\\0%s" "$head" >"$dir/$1"
    printf '%b' "$3" >>"$dir/$1"
}
head='{"n":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"z":{"dtype":"C64","shape":[1],"data_offsets":[16,24]}}'
st ia.safetensors "$head" '\07\0\0\0\0\0\0\0\0376\0377\0377\0377\0377\0377\0377\0377ABCDEFGH'
st ib.safetensors "$head" '\07\0\0\0\0\0\0\0\0377\0377\0377\0377\0377\0377\0377\0377ABCDEFGH'
st ic.safetensors "$head" '\07\0\0\0\0\0\0\0\0376\0377\0377\0377\0377\0377\0377\0377ABCDEFGI'
run 0 diff "$dir/ia.safetensors" "$dir/ia.safetensors" && has '^Equal: 2 tensors' && has '^2 without floating-point numbers, compared by' &&
    run 1 diff "$dir/ia.safetensors" "$dir/ib.safetensors" && has 'first n: other integers$' && has '^1 of 2 integers differ, the first at 1: -2 in A, -1 in B$' &&
    run 1 diff "$dir/ia.safetensors" "$dir/ic.safetensors" && has 'first z: other bytes, whose numbers are not read$' &&
    has '^1 of 8 bytes differ, the first at 7: 0x48 in A, 0x49 in B$' && json "$dir/ia.safetensors" "$dir/ic.safetensors"
[ $? -eq 1 ] && first '"verdict": "bytes"' && has '"not_numbers": 2, "not_compared": 0'
ok $? "integers and complex numbers differ"
# ONNX: w of two floats, and v whose data are in a file that is not there
onnx() { printf '\010\010\072\061\052\021\010\002\020\001\102\001w\112\010\0\0\200?\0\0\0@\052\034\010\002\020\001\102\001v\160\001\152\021\012\010location\022\005v.bin\102\002\020\021'; }
onnx >"$dir/a.onnx" && onnx >"$dir/b.onnx"
"$MPSIM" diff "$dir/a.onnx" "$dir/b.onnx" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has '^Equal in what was compared: 1 tensor, 2 elements$' && has "^1 tensor was not compared: 'v' of F32 (A: its data" && { json "$dir/a.onnx" "$dir/b.onnx" || [ $? -eq 5 ]; } &&
    has '^"equal": false,$' && has '^"verdict": "equal-in-part",$' && has '^"unread": \[{"name": "v", "dtype": "F32", "reason": "A: its data' &&
    run 3 diff -m v "$dir/a.onnx" "$dir/b.onnx" && has "no tensor can be compared: 'v' of F32" err
ok $? "bug_20261127_equal_in_what_was_compared"

# ---- what is refused ----
run 2 diff "$adam" && has 'takes 2 FILEs' err; ok $? "one operand"
run 2 diff --tolerance 4x "$adam" "$adam" && has '4ulp, 1e-3 (relative), 60dB' err; ok $? "a tolerance of no unit"
run 0 diff --json -m "$(printf '*\377*')" -m '*' "$adam/step_000010" "$adam/step_000010" && has '"match": \["\*\\\\xff\*", "\*"\]'; ok $? "a pattern that is no UTF-8"
run 2 diff --json --csv "$adam" "$adam"; ok $? "two forms"
run 4 diff "$adam" "$dir/nowhere"; ok $? "a file that is not there"
run 3 diff -m nothing "$adam" "$adam"; ok $? "nothing is selected"
fresh
rm -rf "$dir/b/step_0000"[01]* "$dir/b/step_000020" "$dir/b/step_000021"
rm -rf "$dir/c"
cp -r "$adam" "$dir/c"
chmod -R u+w "$dir/c"
rm -r "$dir/c/step_00002"[2-5]
run 3 diff "$dir/b" "$dir/c" && has 'no step in common' err; ok $? "no step in common"
fresh
echo '{' >"$dir/b/step_000004/$name"
head -c 100 "$adam/step_000004/$name" >"$dir/b/step_000004/$name"
run 3 diff "$adam" "$dir/b"; ok $? "a truncated file"
"$MPSIM" diff --keep-going "$adam" "$dir/b" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has '^1 could not be read$' && [ "$(wc -l <"$dir/err")" -eq 1 ]; ok $? "a truncated file, --keep-going"
finish
