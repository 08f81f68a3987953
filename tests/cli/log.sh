#!/bin/sh
# log.sh -- mpsim log: its forms, losses near the ends of binary64, logs that are no texts. Runs side by side, and one log: log.md.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
cd "$dir" || exit 99

made() { # made FILE BATCHES SEED BIAS DRIFT
    awk -v batches="$2" -v seed="$3" -v bias="$4" -v drift="$5" -f "$top/tests/cli/logmade.awk" >"$1"
}
made a 1 1 0 0
made b 4 4 0 0
made fp8 1 9 0.015 0
made far 1 9 0.2 0

run 0 log --csv a fp8 && [ "$(head -n 1 out)" = quarter,from,to,others,last,gap,error ] && has '^1,0,49,' && [ "$(wc -l <out)" -eq 5 ] &&
    run 0 log --ndjson a fp8 && has '^{"quarter": 4, "from": 150, "to": 199, "others": ' && run 0 log --csv a && has '^scaler,index,' &&
    run 2 log --csv --json a fp8
ok $? "CSV and NDJSON: a row per quarter"

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

# ---- what is not text is not judged ----
{
    printf '\030\0\0\0\0\0\0\0\243\177\113\042\011\0\0\0\0\0\0\360\077\032\015brain.Event:2\0\0\0\0'
    for k in 1 2 3 4 5 6 7; do printf '\037\0\0\0\0\0\0\0\336\255\276\357\011\0\0\0\0\0\0\0\100\020\00%s\052\015\012\013\012\004loss\025\0\0\0\077\1\2\3\4' $k; done
} >events
run 3 log events && has 'offset 0: not a text log but an event file of TensorBoard, which is not read: export its scalars as CSV$' err &&
    [ "$(wc -l <err)" -eq 1 ] && run 3 scaler --log events && has 'an event file of TensorBoard' err; ok $? "bug_20261126_events_of_tensorboard"
tail -c +40 events >binary
run 3 log binary && has 'offset 0: not a text log but a binary file$' err; ok $? "the same without its beginning: a binary file"
finish
