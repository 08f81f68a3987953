#!/bin/sh
# scaler.sh -- what of scaler.md needs a shell: states, raw traces, logs that are made, outputs that are inputs, widths.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
trace=$MPSIM_SRCDIR/data/digits-cnn
logs=$MPSIM_SRCDIR/tests/logs

# ---- tf.keras: after the start 0.05 % of the steps are skipped, one in 2000 (TensorFlow's guide)

# ---- one scaler over a pattern
turns 8
for scaler in megatron deepspeed-fused tutorial; do
    run 0 scaler -s $scaler --pattern '0,{2^10}*12' && has '^Verdict: start-up search, not finished' && has 'A scale of' && ! has 'no loss scale helps'
    ok $? "no runaway while a scale fits: $scaler"
done
# DeepSpeed's LossScaler: 128 at every step, whose second and fourth overflow
run 0 scaler --pattern '0,1,0,1,0' -s deepspeed-static:128 --csv && [ "$(cut -d, -f 2- "$dir/out" | grep -c skip)" -eq 2 ] && ! grep -q backoff "$dir/out"
ok $? "DeepSpeed's skips it, too, and keeps the scale"

# ---- a scale that its own settings keep from what fits
run 0 scaler --pattern '1*53,{2^16}*1000' && has '^Verdict: scale stuck' && has '53 powers of two below 2^16, which fits' && has 'takes 106,000 steps' && ! has normal
ok $? "a scale far below what fits is no search; the way back is counted"
run 0 scaler --pattern '{2^16}*1000' -s torch:init=2^-21 && has '37 powers of two' && has '^  zero meanwhile. At fault is the first scale' && has '74,000 steps'
ok $? "and one that began there"
run 0 scaler --pattern '{2^-4}*100' -s megatron && has '^Verdict: scale stuck' && has '2^-4 fits: the floor$' &&
    ! has 'no loss scale helps'
ok $? "at the floor while a smaller scale fits"
run 0 scaler --pattern '1*12' -s torch:floor=2^10 && has 'A lower floor shows' && ! has 'no loss scale helps'; ok $? "at a floor, and nobody knows what fits"
run 0 scaler --pattern '{2^-4}*3' -s megatron-static:1024 && has '^Verdict: scale stuck' && has 'the constant is at' && ! has 'coming down'
ok $? "a constant scale that is too large"
run 0 scaler --pattern '1*3,0*100' -s megatron-static:1024 && has '^Verdict: spikes' && has '3 of 103 steps overflow at the constant scale' && ! has 'came down'
ok $? "a constant scale does not come down"
run 0 scaler --pattern '(0*9,1)*50' -s torch:window=5 && has 'rows left out: --all shows them'; ok $? "a long trajectory is cut"
run 0 scaler --pattern '(0*9,1)*50' -s torch:window=5 --all && ! has 'left out'; ok $? "--all"
printf '# a comment\n1 1 1,\n(0*10)*2\n' >"$dir/pattern"
run 0 scaler --pattern "@$dir/pattern" && has '^23 steps'; ok $? "a pattern in a file"

# ---- status lines as training scripts print them, and back
run 0 scaler --pattern '1*2,0*3,1' -s torch:window=3 --amp && [ "$(wc -l <"$dir/out")" -eq 6 ] &&
    has '^\[AMP\] step 2: scale 16384, growth_tracker 0, skipped Y$' && has '^\[AMP\] step 5: scale 32768, growth_tracker 0, skipped n$'
ok $? "--amp"
run 0 scaler --pattern '1*2,0*3,1' -s torch:window=3 --amp-stats && [ "$(wc -l <"$dir/out")" -eq 6 ] &&
    [ "$(sed -n 2p "$dir/out")" = '[AMP Stats] Scale: 16384.0, Growth tracker: 0' ] &&
    [ "$(sed -n 4p "$dir/out")" = '[AMP Stats] Scale: 16384.0, Growth tracker: 2' ]
ok $? "--amp-stats: the guide's form"
for word in 0 -1 inf nan 1e-300 1e39 2^-150 2^128; do
    run 2 scaler -s "torch:init=$word" --pattern 1 && has 'the initial scale must be a positive number that binary32 holds' err &&
        run 2 scaler -s "static:$word" --pattern 1 && has 'the initial scale must' err &&
        run 2 scaler -s "deepspeed:window=5,init=$word" --pattern 1 && has 'the initial scale must' err &&
        run 2 train -P fp32 --loss-scaling "torch:init=$word" && has 'the initial scale must' err
    ok $? "an initial scale of $word"
    printf 'precision: fp16\nloss_scaling: {scaler: torch, init_scale: %s}\n' "$word" >"$dir/scale.yaml"
    run 3 train -P "$dir/scale.yaml" && has "scale.yaml: line 2: loss_scaling: init_scale: '.*' is not possible: the initial scale must" err
    ok $? "init_scale: $word"
done
run 0 scaler -s torch:init=2^-149 --pattern 0 && run 0 scaler -s apex:init=2^127 --pattern 0; ok $? "the smallest and a large initial scale"
run 2 scaler -s torch:backoff=1.5 --pattern 1 && has 'torch asserts that the backoff factor is below 1' err && run 2 scaler -s torch-cpu:growth=1 --pattern 1 &&
    run 2 scaler -s megatron:backoff=1 --pattern 1 && has 'Megatron asserts' err && run 2 scaler -s megatron:floor=0 --pattern 1 &&
    run 0 scaler -s apex:backoff=1.5 --pattern 1; ok $? "factors that the framework itself refuses"
run 2 scaler -s keras:growth=3 --pattern 1 && has 'Keras doubles and halves the scale' err && run 2 scaler -s tf-keras:backoff=0.25 --pattern 1 &&
    run 0 scaler -s keras:window=5 --pattern 1; ok $? "factors that are constants of Keras"
header='{"wgrad:w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"wgrad:z":{"dtype":"C64","shape":[1],"data_offsets":[8,16]}}'
# shellcheck disable=SC2059 # octal
{ printf "\\$(printf %03o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; head -c 16 /dev/zero; } >"$dir/complex.safetensors"
run 0 scaler "$dir/complex.safetensors" && has "^1 tensor that may hold numbers is not read: 'wgrad:z' of C64 (complex numbers)$"; ok $? "a gradient that is not read is named"
run 0 scaler --pattern '(0*30,1*3)*4' -s megatron:window=10 --amp && cp "$dir/out" "$dir/amp.log" && run 0 scaler --log "$dir/amp.log" -s megatron:window=10 -s torch:window=10 &&
    grep -q '^  megatron:window=10 *24 of 24$' "$dir/out" && has 'step 31: recorded'
ok $? "what --amp writes is read back and told from another scaler"
"$MPSIM" scaler --pattern '0,1,0' --amp | "$MPSIM" scaler --log - >"$dir/out" 2>"$dir/err"; ok $? "a log from a pipe"
has '^standard input: 3 of 3 lines'; ok $? "and its name"

# ---- states
turns 1
run 0 scaler --pattern '1*3,0*700' --state-out "$dir/state" -s torch:window=1000 && run 0 scaler --pattern '0*300' --state-in "$dir/state" && has '^torch:window=1000' && has '^  300  *2^13  clean, up to 2^14'
ok $? "a state goes on where it was"
run 2 scaler --pattern 0 --state-in "$dir/state" -s apex && has 'state of torch:window=1000' err; ok $? "the state of another scaler"
# with_digest FILE: its lines, and the digest that is due, as the message about a wrong one says it
with_digest() {
    { cat "$1"; echo digest; } >"$dir/unfinished"
    run 3 scaler --pattern 0 --state-in "$dir/unfinished"
    cat "$1"
    sed -n "s/.*should be '\(digest [0-9a-f]*\)'$/\1/p" "$dir/err"
}
printf 'mpsim.scaler-state/2 torch\nscale=1 step=x\n' >"$dir/head"
with_digest "$dir/head" >"$dir/bad"
run 3 scaler --pattern 0 --state-in "$dir/bad" && has 'not a state of torch$' err; ok $? "a broken state"
run 3 scaler --pattern 0 --state-in "$dir/pattern"; ok $? "no state"
{ head -n 1 "$dir/state" | sed 's/ .*/ /'; echo; } >"$dir/bad" && run 3 scaler --pattern 0 --state-in "$dir/bad"; ok $? "a state of no scaler"
# every byte of a state with a bit flipped, one in sixteen of them in turn; lines that are missing, doubled, swapped; cut off, longer
od -An -v -tu1 "$dir/state" | tr -s ' ' '\n' | grep . | awk '{ for (k = 0; k < 8; k += 4) {
    bit = (NR + k) % 8; flipped = int($1 / 2 ^ bit) % 2 ? $1 - 2 ^ bit : $1 + 2 ^ bit; printf "%d %03o\n", NR, flipped } }' |
    awk -v now=" $(turn 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) " 'index(now, " " int(NR / 2) % 16 " ")' >"$dir/flips"
: >"$dir/taken"
while read -r at octal; do
    # shellcheck disable=SC2059 # the byte
    { head -c $((at - 1)) "$dir/state"; printf "\\$octal"; tail -c +$((at + 1)) "$dir/state"; } >"$dir/bad"
    run 3 scaler --pattern 0 --state-in "$dir/bad" && grep -q "^mpsim: $dir/bad: " "$dir/err" || echo "byte $at: $octal" >>"$dir/taken"
done <"$dir/flips"
cp "$dir/taken" "$dir/out"
[ "$(wc -l <"$dir/flips")" -gt 12 ] && [ ! -s "$dir/taken" ]; ok $? "a flipped bit in a state is found: $(wc -l <"$dir/flips") of them"
turns 8
for edit in 1d 2d 3d 1p 2p 3p '1{h;d};2G' '2{h;d};3G' '2s/clean=[0-9]*/clean=1/' '$s/$/ /'; do
    sed "$edit" "$dir/state" >"$dir/bad"
    run 3 scaler --pattern 0 --state-in "$dir/bad"; ok $? "a state edited by $edit"
done
run 3 scaler --pattern 0 --state-in /dev/zero && mkfifo "$dir/fifo" && run 4 scaler --pattern 0 --state-in "$dir/fifo" && has 'nobody writes to' err
ok $? "a state from a device, from a pipe without a writer"

# ---- traces
run 0 scaler "$MPSIM_SRCDIR/data/replay-cases/accumulation" && has '^32 of these tensors to binary32, as the run had them: by numbers that fp16 has not, of 4 names' &&
    run 0 scaler --json "$MPSIM_SRCDIR/data/replay-cases/norms" && has '"binary32_tensors": 32' && has '"wgrad:ln.weight"'
ok $? "which gradients are binary32 is said"
run 0 scaler -f fp16 "$MPSIM_SRCDIR/data/replay-cases/accumulation" && has 'the recorded one in 3 of 8 steps' && ! has 'to binary32'
ok $? "a format that is given is that of all"
"$MPSIM" scaler -s torch:init=2^19 - <"$MPSIM_SRCDIR/data/replay-cases/accumulation/step_000002/rank_00000.safetensors" >"$dir/out" &&
    has '^1 step overflows when rounded to fp16 at a scale at which the record is clean'
ok $? "what can be read once only: the record counts"
run 0 scaler -c torch:init=2^24,window=6,torch:init=2^24,window=7,torch:init=2^24,window=6,hysteresis=2 "$MPSIM_SRCDIR/data/amp-mlp/adam" &&
    has '^  torch:init=2^24,window=6  .* 24 of 24 ' && has '^  torch:init=2^24,window=7  .* 1[0-9] of 24 ' && ! has 'hysteresis=2 .* 24 of 24'
ok $? "and not by other rules"
run 0 scaler -s torch "$MPSIM_SRCDIR/data/amp-mlp/adam" && ! has 'several runs' && has '^8 steps were recorded with Inf or NaN' && has 'recorded one in 0 of 24' && has '^Verdict: no overflow'
ok $? "below the recorded scale nothing is made up"
run 0 scaler -s megatron --repeat 40 "$trace" && has '^The same steps over again, 40 times' && has '^Verdict: start-up search$' && has 'steps       280'
ok $? "--repeat"
run 0 scaler --repeat 40 -c torch,apex:window=50,init=2^20,megatron --csv "$trace" && grep -q '^"apex:window=50,init=2^20",' "$dir/out"
ok $? "a list of scalers whose changes have commas"
run 0 scaler -c all "$trace" && has '^  fairseq ' && has '^  tutorial ' && ! has '^  static '; ok $? "--compare all"
run 0 scaler --json "$trace" && has '"schema": "mpsim.scaler/1"' && has '"fits": 524288.0' && has '"verdict": "no overflow"'; ok $? "JSON"
# x = 2^-10 twice, then 1: at 2^16 in fp16 1 overflows; recorded scaled, and with Inf
put() { # put STEP BYTES: a raw file of binary32
    mkdir -p "$dir/raw/step_$1"
    # shellcheck disable=SC2059 # the bytes are a format
    printf "$2" >"$dir/raw/step_$1/g.f32"
}
put 1 '\0\0\200\072\0\0\200\272'
put 2 '\0\0\200\077\0\0\0\0'
put 10 '\0\0\200\047\0\0\200\072'
run 0 scaler --dtype f32 -m '*' --csv "$dir"/raw/step_*/g.f32 && [ "$(sed -n 2p "$dir/out")" = 'torch,0,1,1,1,65536,65536,,2,0,0,0,33554432' ] &&
    [ "$(sed -n 3p "$dir/out")" = 'torch,1,2,2,1,65536,32768,overflow+skipped+backoff,2,0,1,0,32768' ] &&
    [ "$(sed -n 4p "$dir/out")" = 'torch,2,10,10,1,32768,32768,,2,1,0,0,33554432' ]
ok $? "counts by hand: fits, overflow, lost; steps in natural order"
put 11 '\0\0\200\177\0\0\200\072'
put 12 '\0\0\300\177\0\0\200\072'
run 0 scaler --dtype f32 -m '*' "$dir"/raw/step_*/g.f32 && has '^Verdict: Inf or NaN in the gradients' && has 'g.f32' && has '^  11 .* none '
ok $? "Inf and NaN that were recorded"
run 0 scaler --dtype f32 -m '*' "$dir/raw/step_1/g.f32" "$dir/raw/step_11/g.f32" && has '^Verdict: Inf or NaN in the gradients'; ok $? "once"
# gradients that were recorded scaled, by two ranks: 2^10 is 1, which fits 2^15
tensors() { # tensors FILE METADATA BYTES: a safetensors file of one gradient of two numbers
    mkdir -p "$(dirname "$1")"
    # shellcheck disable=SC2059 # the bytes are a format
    {
        printf '\370\0\0\0\0\0\0\0'
        printf '%-248s' "{\"__metadata__\":{\"mpsim.step\":\"7\"$2},\"wgrad:w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
        printf "$3"
    } >"$1"
}
scaled=',"mpsim.grads_scaled":"true","mpsim.loss_scale":"1024"'
tensors "$dir/ranks/0.safetensors" "$scaled" '\0\0\200\104\0\0\0\0'
tensors "$dir/ranks/1.safetensors" "$scaled" '\0\0\200\72\0\0\0\0'
run 0 scaler --csv "$dir/ranks" && [ "$(sed -n 2p "$dir/out")" = 'torch,0,7,7,1,65536,32768,overflow+skipped+backoff,4,0,1,0,32768' ]
ok $? "recorded scaled: unscaled first; the ranks of a step count together"
run 0 scaler -s torch:init=1024 "$dir/ranks" && has 'divided by their mpsim.loss_scale' && has '^1 recorded step, 2 gradient tensors'; ok $? "and that is told"
tensors "$dir/ranks/1.safetensors" ',"mpsim.grads_scaled":"true"' '\0\0\200\72\0\0\0\0'
run 3 scaler "$dir/ranks" && has 'mpsim.loss_scale says no scale' err; ok $? "scaled, but by what?"
run 5 scaler --keep-going --csv "$dir/ranks" 2>/dev/null || [ "$(sed -n 2p "$dir/out" | cut -d, -f9)" = 2 ]; ok $? "--keep-going"
run 0 scaler -s torch:init=2^-149 --dtype f32 -m '*' --csv "$dir/raw/step_2/g.f32" && [ "$(sed -n 2p "$dir/out" | cut -d, -f9-12)" = 2,1,0,0 ]; ok $? "the smallest scale loses all"
run 0 scaler -s torch-cpu:init=2^127,window=1,guard=0 --repeat 3 --dtype f32 -m '*' --csv "$dir/raw/step_2/g.f32"; ok $? "a scale beyond every number"
# folders of ranks come out step by step; a single file has its step, too
for rank in 0 1; do
    for step in 1 2 10; do
        mkdir -p "$dir/by_rank/rank_$rank/step_$step"
        printf '\0\0\200\077' >"$dir/by_rank/rank_$rank/step_$step/g.f32"
    done
done
run 0 scaler --dtype f32 -m '*' --csv -s torch:init=1 "$dir"/by_rank/rank_*/step_*/g.f32 &&
    [ "$(sed 1d "$dir/out" | cut -d, -f3,4,9 | tr '\n' ' ')" = '1,1,2 2,2,2 10,10,2 ' ]
ok $? "folders of ranks: the files of a step count together"
run 0 scaler --json "$trace/step_000500" && has '"steps": \[{"step": 500,' && has '"from": 500, "to": 500'; ok $? "the step of a single file"
printf 'x' >"$dir/ranks/2.safetensors"
tensors "$dir/ranks/1.safetensors" "$scaled" '\0\0\200\72\0\0\0\0'
"$MPSIM" scaler --keep-going --csv "$dir/ranks/0.safetensors" "$dir/ranks/1.safetensors" "$dir/ranks/2.safetensors" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && [ "$(sed -n 2p "$dir/out" | cut -d, -f9)" = 4 ] &&
    [ "$(grep -c 2.safetensors "$dir/err")" -eq 1 ]
ok $? "--keep-going leaves out a file that does not open, and tells it once"
"$MPSIM" scaler --csv - <"$trace/step_000500/rank_00000.safetensors" >"$dir/out" 2>"$dir/err" && [ "$(sed -n 2p "$dir/out" | cut -d, -f5)" = 1 ]
ok $? "a trace from standard input"
"$MPSIM" scaler --repeat 3 - <"$trace/step_000500/rank_00000.safetensors" >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && has 'standard input can be read once only' err; ok $? "--repeat of standard input"
mkfifo "$dir/pipe"
turns 1
cat "$trace/step_000500/rank_00000.safetensors" >"$dir/pipe" 2>/dev/null &
run 2 scaler --repeat 3 "$dir/pipe" && has 'not a regular file: it can be read once only' err; ok $? "--repeat of a pipe"
kill $! 2>/dev/null
turns 8

# ---- logs
run 0 scaler "$logs/resume.txt" && has 'line 41: the steps begin again at 31' && has 'lost on resume' && has 'jumps 1 time'; ok $? "a resume that lost the state"
run 0 scaler --json "$logs/resume.txt" && has '"jumps": \[{"line": 41, "step": 31, "from": 256.0, "to": 65536.0, "restart": true}\]'; ok $? "logs in JSON"
esc=$(printf '\033') # sed would take \033 as a \0 and 33
for change in 's/$/\r/' "s/^/$esc[31m/;s/\$/$esc[0m/" 's/^/[rank0]: /'; do
    sed "$change" "$logs/apex.txt" >"$dir/changed.log"
    run 0 scaler "$dir/changed.log" && has 'Apex 5$' && has '^Verdict: steady'; ok $? "the same with prefixes, colours, CRLF"
done
printf '\377\376' >"$dir/utf16.log"
sed 's/./&@/g;s/$/@/' "$logs/apex.txt" | tr '@' '\0' >>"$dir/utf16.log"
run 0 scaler "$dir/utf16.log" && has 'Apex 5$'; ok $? "UTF-16"
{ head -c 3000000 /dev/zero | tr '\0' x; printf '\nstep 1 scale 4 skipped 0\n'; } >"$dir/long.log"
run 0 scaler "$dir/long.log" && has '^1 line is longer than 8192 bytes'; ok $? "a line of three megabytes"
printf 'step 1 loss_scale nan\nstep 2 loss_scale 8\nstep 3 loss_scale 1e999\n' >"$dir/nan.log"
run 0 scaler "$dir/nan.log" && has '^2 lines without a usable scale left out'; ok $? "scales that are none"
printf 'step 1 loss 2 loss_scale: 65,536\n\nstep 2 loss: nan loss_scale: 32,768\n' >"$dir/tail.log"
run 0 scaler "$dir/tail.log" && has '2^16  overflow, skipped, down to 2^15' && has '^Verdict: Inf or NaN in the gradients$' && has 'NaN from line 3 on' && has '^    line 3: the loss is NaN'
ok $? "a log that ends in its first overflow"
run 0 scaler --json "$dir/tail.log" && has '"loss_not_finite": 1, "loss_not_finite_since": 3,' && has "\"inputs\": \[\"$dir/tail.log\"\]"; ok $? "and in JSON"
printf 'Epoch: [0] [ 10/90] loss: nan (nan) loss_scale: 0.0000 (0.1)\n' >"$dir/beit.log"
run 0 scaler "$dir/beit.log" && has '^Verdict: runaway$' && has 'NaN from line 1 on'; ok $? "a scale of 0"
odd=$(printf '%s/a\033[31m.log' "$dir")
run 4 scaler --log "$odd" && has '\\x1b\[31m' err && ! grep -q "$(printf '\033')" "$dir/err"; ok $? "names go to the terminal escaped"
cp "$logs/apex.txt" "$odd"
run 0 scaler "$odd" && ! grep -q "$(printf '\033')" "$dir/out"; ok $? "in the report, too"
run 2 scaler --amp "$odd" && ! grep -q "$(printf '\033')" "$dir/err"; ok $? "and in usage errors"
printf 'mpsim.scaler-state/2 to\033[31mrch\nscale=1\n' >"$dir/head"
with_digest "$dir/head" >"$dir/bad"
run 2 scaler --pattern 0 --state-in "$dir/bad" && ! grep -q "$(printf '\033')" "$dir/err"; ok $? "a state with an escape in its name"
printf 'just some text\n' >"$dir/none.log"
run 3 scaler "$dir/none.log" && has 'no line about a loss scale, a loss or a norm in 1 lines: known lines are those of Apex' err; ok $? "no line is recognised"
head -c 100000 /dev/zero >"$dir/zeros.log"
run 3 scaler --log "$dir/zeros.log"; ok $? "only NUL bytes"
: >"$dir/empty.log"
run 3 scaler --log "$dir/empty.log"; ok $? "an empty log"
turns 1
cat "$logs/apex.txt" >"$dir/pipe" 2>/dev/null &
run 0 scaler --log "$dir/pipe" && has '^Verdict: steady'; ok $? "a log from a named pipe"
turns 8
run 3 scaler --log /dev/zero && has "is a character device" err; ok $? "a device as log"
"$MPSIM" scaler --log - </dev/zero >"$dir/out" 2>"$dir/err"; [ $? -eq 3 ] && has "256 MiB without the end of a line" err; ok $? "an endless input without lines"
run 0 scaler "$logs/apex.txt" && has '^  Confidence: likely$' && has '^    line 3: the first scale is 2^16' && has '^  What to do: '; ok $? "the verdict names its lines, how sure it is and what to do"
run 0 scaler --json "$logs/apex.txt" && has '"class": "fine-steady", "confidence": "likely", "evidence": \[{"line": 3, "last_line": 3, "says": ' && has '"missing": null, "advice": '; ok $? "in JSON, too"

# ---- lines of one's own
printf 'it 1 | amp=4096 skip=0\nit 2 | amp=2048 skip=1\nit 3 | amp=2048 skip=0\nit 4 | amp=2048 skip=0\n' >"$dir/own.log"
run 0 scaler --log "$dir/own.log" --log-pattern 'it {step} .* amp={scale} skip={overflow}' && has 'own pattern 4$' && has '^  2  *2^12  overflow, skipped, down to 2^11'; ok $? "--log-pattern"
printf 'boom 8 4\nboom 4 2\n' >"$dir/own.log"
run 0 scaler "$dir/own.log" --log-pattern 'it {step} {scale}' --log-pattern 'boom {before} {after}' && has 'overflows   2,'; ok $? "several, of a log that is an operand"
for words in '{scale' '{step}' '({scale}' '{nosuch} {scale}' '{scale}{2,3}'; do
    run 2 scaler --log "$dir/own.log" --log-pattern "$words" && has 'scaler: --log-pattern: ' err; ok $? "--log-pattern $words: usage error"
done
run 2 scaler --log "$dir/own.log" --log-pattern '{scale} {foo}' && has "'{foo}' is not one of {scale}, " err; ok $? "--log-pattern: what it found and what it expected"

# ---- scales layer by layer: the numbers were computed from the published rule in Python, too
run 0 scaler --adaptive --csv "$trace/step_002000" && [ "$(sed 1d "$dir/out" | tr '\n' ' ')" = "2000,0,fc2,10,4,4,320,0,269,248,119,0,0,0 \
2000,0,fc1,32,1,4,1024,0,214,159,0,0,0,0 2000,0,bn2,0,16,64,8192,0,1778,647,13,0,0,0 2000,0,conv2,144,1,64,8192,0,570,10,0,0,0,0 \
2000,0,bn1,0,1,64,16384,0,197,2,0,0,0,0 2000,0,conv1,72,1,64,16384,0,2909,18,0,0,0,0 " ]
ok $? "--adaptive: layers in backward order, their scales, products and losses"
run 0 scaler --adaptive "$trace" && has '^  2000   bn2  *2^4  *2^6  *21.70 %  *7.90 %  *0.16 %' && has '^Of 353,472 elements lost: 19.03 % without a scale, 2.14 % with the products, 0.61 % at 2^16$' &&
    [ "$(awk 'length > 100' "$dir/out" | wc -l)" -eq 0 ]
ok $? "--adaptive: the table"
run 0 scaler --adaptive --ndjson "$trace/step_002000" && [ "$(wc -l <"$dir/out")" -gt 2 ] && has '^{"step": 2000, "rank": 0, "layer": "fc2", "fan_in": 10.0, "scale": 4.0, ' && has '"lost": {"unscaled": 269, "product": 248, "global": 119}'
ok $? "--adaptive --ndjson"
run 0 scaler --adaptive --json -m 'agrad:fc*' "$trace/step_002000" && has '"schema": "mpsim.adaptive/1"' && has '"layer": "fc1", "fan_in": 32.0, "scale": 1.0' && ! has '"layer": "bn1"'
ok $? "--adaptive: JSON, some of the layers"
adaptive() { # adaptive METADATA BYTES: a gradient of two numbers, without a weight
    tensors "$dir/tensors" "$1" "$2"
    sed 's/wgrad:w/agrad:w/' "$dir/tensors" >"$dir/agrad.safetensors"
    run 0 scaler --adaptive --csv "$dir/agrad.safetensors"
}
adaptive '' '\0\0\0\0\0\0\0\0' && has '^7,,w,0,1,1,2,0,0,0,0,0,0,0$'; ok $? "--adaptive: a gradient that is zero"
adaptive '' '\0\0\200\177\0\0\200\072' && has '^7,,w,0,1,1,2,1,0,0,0,0,0,0$'; ok $? "--adaptive: one with Inf"
adaptive '' '\0\0\200\077\0\0\200\062' && has '^7,,w,0,16,16,2,0,1,0,0,0,0,1$'; ok $? "--adaptive: 1 and 2^-26: 16 times that is kept, 2^16 times 1 overflows"
adaptive "$scaled" '\0\0\200\104\0\0\200\067' && has '^7,,w,0,16,16,2,0,1,0,0,0,0,1$'; ok $? "--adaptive: the same, recorded times 1024"
adaptive "$(printf ',"mpsim.order":"v,w"')" '\0\0\200\077\0\0\200\060' && has '^7,,w,0,16,16,'; ok $? "--adaptive: layers of the order that have no tensor"
run 2 scaler --adaptive -o "$dir/agrad.safetensors" "$dir/agrad.safetensors"; ok $? "--adaptive: the output is the input"

# ---- the table
run 0 scaler --list && has '^deepspeed  *2^16  *1000+1  *1!' && [ "$(awk 'length > 100' "$dir/out" | wc -l)" -eq 0 ]; ok $? "--list"
run 0 scaler --list --json && has '"mpsim.scalers/1"' && has '"name": "apex-hysteresis"'; ok $? "--list --json"
run 0 scaler --list --csv && [ "$(wc -l <"$dir/out")" -eq 17 ]; ok $? "--list --csv"

# ---- usage
cp "$logs/apex.txt" "$dir/same.log"
run 2 scaler -o "$dir/same.log" "$dir/same.log" && cmp -s "$logs/apex.txt" "$dir/same.log"; ok $? "the output is the input"
printf '0*3\n' >"$dir/own"
for words in "--pattern @$dir/own -o $dir/own" "--pattern @$dir/own -o $dir/./own" "--pattern @$dir/own --state-out $dir/own" \
    "--pattern 0 --state-in $dir/state -o $dir/state" "--pattern 0 -o $dir/new --state-out $dir/new" \
    "--pattern 0 -o $dir/new --state-out $dir/./new" "--pattern 0 --state-out -" "--pattern 0 -o - --state-out -"; do
    cp "$dir/state" "$dir/kept"
    # shellcheck disable=SC2086 # a line is several words
    run 2 scaler $words && [ "$(cat "$dir/own")" = '0*3' ] && cmp -s "$dir/state" "$dir/kept" && [ ! -e "$dir/new" ]
    ok $? "scaler $words: nothing is replaced"
done
# shellcheck disable=SC2094 # that is the point
"$MPSIM" scaler --log - -o "$dir/same.log" <"$dir/same.log" 2>"$dir/err"
[ $? -eq 2 ] && cmp -s "$logs/apex.txt" "$dir/same.log"; ok $? "nor what standard input reads"
run 0 scaler --pattern 0 --state-in "$dir/state" --state-out "$dir/state" && ! cmp -s "$dir/state" "$dir/kept"; ok $? "but a state goes back to where it came from"
run 0 scaler --pattern 0 -o /dev/null --state-out /dev/null; ok $? "and /dev/null takes all"
for words in "-c all $trace" "-c torch,apex,megatron,deepspeed $trace" "-c all --repeat 40 $trace" "-c all --pattern {2^14}*100000" \
    "-c all --pattern 1*60" "-c all $MPSIM_SRCDIR/data/amp-mlp/adam" "-s torch $MPSIM_SRCDIR/data/amp-mlp/half"; do
    # shellcheck disable=SC2086 # a line is several words
    run 0 scaler $words && [ "$(awk 'length > 100' "$dir/out" | wc -l)" -eq 0 ]
    ok $? "scaler ${words%% /*}: at most 100 columns"
done
run 0 scaler --json "$trace" && has '^{"schema": "mpsim.scaler/1",$' && has '^"mpsim": "[0-9.]*",$' && has '^"config": {' && has '"inputs": \['; ok $? "JSON: version and inputs"
run 0 scaler --json --pattern "@$dir/own" && has "\"inputs\": \[\"$dir/own\"\]"; ok $? "JSON: a pattern's file"
run 0 scaler --pattern 1,0 -c torch,apex --ndjson && [ "$(sed -n 1p "$dir/out")" = '{"scaler": "torch", "index": 0, "from": null, "to": null, "steps": 1, "scale": 65536.0, "next": 32768.0, "events": ["overflow", "skipped", "backoff"]}' ] &&
    [ "$(grep -c '^{"scaler": "apex", "index": 1, ' "$dir/out")" -eq 1 ] && run 0 scaler --list --ndjson && [ "$(wc -l <"$dir/out")" -eq 16 ] &&
    run 2 scaler --pattern 1 --ndjson --csv && run 0 log --ndjson "$logs/resume.txt" && has '^{"scaler": "recorded", "index": 40, "from": 31, '
ok $? "NDJSON"
run 0 scaler --help && has 'Examples:' && [ "$(awk 'length > 100' "$dir/out" | wc -l)" -eq 0 ]; ok $? "help"
finish
