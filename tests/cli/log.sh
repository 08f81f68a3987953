#!/bin/sh
# log.sh -- mpsim log: runs side by side, whose gap is known because they are made here; one log, as mpsim scaler judges it.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
cd "$dir" || exit 99

# made FILE BATCHES SEED BIAS DRIFT: 200 steps; noise of 0.03 that the batches make, a tenth of it of the run's own
made() {
    awk -v batches="$2" -v seed="$3" -v bias="$4" -v drift="$5" '
        function one() { x = x * 16807 % 2147483647; return x / 2147483647 } # the same with every awk
        function noise() { return one() + one() + one() + one() - 2 }
        BEGIN {
            x = 1000 + 7919 * batches; for (i = 0; i < 200; i++) batch[i] = 0.052 * noise()
            x = 1000 + 104729 * seed; own = 0.004 * noise()
            for (i = 0; i < 200; i++) {
                loss = 10.8 * exp(-i / 30) + 3 + batch[i] + 0.005 * noise() + own + bias + drift * i
                printf "step %d loss: %.4f grad_norm: %.3f\n", i, loss, 0.8 + 0.02 * noise()
            }
        }' >"$1"
}
made a 1 1 0 0
made b 4 4 0 0
made c 3 3 0 0
made fp8 1 9 0.015 0
made far 1 9 0.2 0
made drift 1 9 0 0.002

run 0 log a a && has '^Verdict: the same' && has 'first gap *none'; ok $? "a run and itself"
run 0 log a b && has '^Verdict: no gap that shows' && has ': other batches, or another order'; ok $? "two seeds: no gap that shows"
run 0 log a fp8 && has '^Verdict: a small gap' && has 'Two runs cannot tell' && has ': the same batches in the same order' &&
    grep -Eq 'the gap is \+0\.01[0-9]' out
ok $? "the same batches: a gap below the noise of a step shows, and is not called more than that"
run 0 log a far && has '^Verdict: apart' && has '^  apart *from step [0-9]* on'; ok $? "a large gap"
run 0 log a drift && has '^Verdict: apart' && has 'grows'; ok $? "one that grows"
run 0 log a b c far && has '^Verdict: outside the spread' && has '19 of 20'; ok $? "outside what three seeds give"
run 0 log a b fp8 && has '^Verdict: within the spread'; ok $? "two seeds can tell little, and it is said so"
run 0 log --json a fp8 && has '"schema": "mpsim.log/1"' && has '"verdict": "a small gap"' && has '"first_gap": 0' && has '"trend": "none"'
ok $? "JSON"
run 0 log --csv a fp8 && [ "$(head -n 1 out)" = quarter,from,to,others,last,gap,error ] && has '^1,0,49,' && [ "$(wc -l <out)" -eq 5 ] &&
    run 0 log --ndjson a fp8 && has '^{"quarter": 4, "from": 150, "to": 199, "others": ' && run 0 log --csv a && has '^scaler,index,' &&
    run 2 log --csv --json a fp8
ok $? "CSV and NDJSON: a row per quarter"
run 0 log --of norm a b && has '^norm of the gradients of B beside A, at 200'; ok $? "another number"

# steps: every tenth of one run, the lines of a run that was resumed, no steps at all
awk 'NR % 10 == 1' a >tenth
run 0 log tenth a && has 'at 20 common steps' && has '^Verdict: the same'; ok $? "runs that log at other intervals"
{ sed -n 1,120p b; sed -n 101,200p a; } >resumed
run 0 log resumed a && has 'step 0: ' && has 'at 200 common steps'; ok $? "of a step that is told twice the last counts"
sed 's/^step [0-9]*/x/' a >a.plain && sed 's/^step [0-9]*/x/' b >b.plain
run 0 log a.plain b.plain && has '^The lines carry no steps' && has 'at 200 common lines'; ok $? "without steps: line by line"
{ sed -n 1,150p a; sed -n 151,200p a | sed 's/loss: [0-9.]*/loss: nan/'; } >lost
run 0 log a lost && has '^Verdict: one is lost' && has '50 lines Inf or NaN, first line 151'; ok $? "a run that is lost"

# bug_20261126: sums and squares of losses near the ends of binary64 were infinite or 0, and what is apart had "no gap that shows"
told() { # told LOG...: the verdict and its numbers that have no unit
    run 0 log "$@" && ! has 'inf\|nan' && sed -n 's/ The gap.*//; /^  moves together/p; /^Verdict/p' out &&
        sed -n '/^Verdict/,$p' out | tr -s ' \n' ' ' | grep -o '[0-9.]* times the noise.*\|further runs'
}
for exponent in e307 e-310; do
    for run in a b fp8 far; do sed "s/loss: [0-9.]*/&$exponent/" $run >$run.$exponent; done
    : >differing
    for runs in 'a fp8' 'a far' 'a b far'; do
        # shellcheck disable=SC2046,SC2086 # names
        told $runs >want && told $(printf "%s.$exponent " $runs) >given && [ -s want ] && cmp -s want given || echo "$runs" >>differing
    done
    [ ! -s differing ]; ok $? "losses times 1$exponent have the verdict of the losses"
done

run 0 log a && has '^Verdict: nothing unusual' && cp out one && run 0 scaler --log a && cmp -s one out; ok $? "one log: as mpsim scaler judges it"
run 0 log --json a && has '"schema": "mpsim.scaler/1"' && has '"class": "fine-steady"'; ok $? "the same as JSON"
run 2 log; ok $? "no log"
run 2 log --of norm a && has 'of needs more than 1 LOG' err; ok $? "--of with one log"
run 2 log --of speed a b && has "'speed' is not a number that logs are read for" err; ok $? "a number that is not known"
run 2 scaler --log a --log b && has 'more than 1 --log: .mpsim log A B. compares runs' err; ok $? "--log twice"
run 2 scaler a b && has 'one at a time, or .mpsim log' err; ok $? "two logs as traces"
sed 's/^step /step 1000/' a >later
run 3 log a later && has 'no step of it is in' err; ok $? "no common step"
printf 'step 1 reward: 2\n' >reward
run 3 log a reward && has 'reward: no loss in 1 lines' err; ok $? "a log without losses"

# ---- what is not text is not judged ----
{
    printf '\030\0\0\0\0\0\0\0\243\177\113\042\011\0\0\0\0\0\0\360\077\032\015brain.Event:2\0\0\0\0'
    for k in 1 2 3 4 5 6 7; do printf '\037\0\0\0\0\0\0\0\336\255\276\357\011\0\0\0\0\0\0\0\100\020\00%s\052\015\012\013\012\004loss\025\0\0\0\077\1\2\3\4' $k; done
} >events
run 3 log events && has 'offset 0: not a text log but an event file of TensorBoard, which is not read: export its scalars as CSV$' err &&
    [ "$(wc -l <err)" -eq 1 ] && run 3 scaler --log events && has 'an event file of TensorBoard' err; ok $? "bug_20261126_events_of_tensorboard"
tail -c +40 events >binary
run 3 log binary && has 'offset 0: not a text log but a binary file$' err; ok $? "the same without its beginning: a binary file"
sed 's/loss/perte \xe9/; s/$/ \x1b[0m/' a >latin1
run 0 log latin1; ok $? "a log in Latin-1 with colours is text"
gbk=$(printf '\265\332\322\273\302\326\321\265\301\267\264\363\304\243\320\315') && sed "s/^/$gbk$gbk$gbk /" a >gbk
run 0 log gbk; ok $? "a log in GBK, most of which is not ASCII, is text"
finish
