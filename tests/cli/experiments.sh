#!/bin/sh
# experiments.sh -- what data/experiments claims of loss scaling and of masters, in shorter runs.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# of POLICY COLUMN: a number of the table of the last run
of() {
    awk -F, -v policy="$1" -v column="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) at = i }
        $1 == policy { print $at; found = 1 }
        END { if (!found || !at) print "missing" }' "$dir/out"
}
# share POLICY PART WHOLE: per cent
share() { awk -v n="$(of "$1" "$2")" -v of="$(of "$1" "$3")" 'BEGIN { print 100 * n / of }'; }
# holds EXPRESSION: of numbers, as 'x < y'
holds() {
    awk "BEGIN { exit !($1) }" && return
    echo "not true: $1" >>"$dir/err"
    return 1
}

# ---- gradients of 2^-18: fp16 needs a loss scale ----
turns 2 together
run 0 train --quiet --threads 1 --csv --compare --loss-factor 0x1p-18 --optimizer adam --lr 0.003 \
    --width 32 --steps 60 -P fp32 -P fp16-unscaled -P fp16-static -P pytorch-amp-fp16
ok $? 'loss scaling: trains'
best=$(of fp32 test_accuracy) loss=$(of fp32 final_loss)
holds "$best > 0.5 && $loss < 1.8"
ok $? 'fp32 learns'
holds "$(of fp16-unscaled test_accuracy) < 0.25 && $(of fp16-unscaled final_loss) > 2.2"
ok $? 'fp16 without loss scaling does not'
for policy in fp16-static pytorch-amp-fp16; do
    holds "$(of $policy test_accuracy) > $best - 0.03 && $(of $policy final_loss) < 1.02 * $loss"
    ok $? "$policy learns as fp32 does"
done
holds "$(share fp16-unscaled agrad_lost agrad_nonzero) > 70 &&
    $(share fp16-unscaled wgrad_lost wgrad_nonzero) > 30"
ok $? 'most gradients of unscaled fp16 become zero'
holds "$(share fp16-static wgrad_lost wgrad_nonzero) < 3 &&
    $(share pytorch-amp-fp16 wgrad_lost wgrad_nonzero) < 0.5"
ok $? 'few do with a loss scale'

turns 2 together
# ---- updates below half a unit in the last place of bf16 ----
run 0 train --quiet --threads 1 --csv --compare --optimizer adam --lr 0.0002 --width 32 \
    --steps 400 -P fp32 -P bf16-pure -P bf16-stochastic -P bf16-kahan -P megatron-bf16
ok $? 'bf16: trains'
loss=$(of fp32 final_loss)
holds "$loss < 1.9"
ok $? 'fp32 learns'
holds "$(of bf16-pure final_loss) > $loss + 0.25 && $(share bf16-pure lost updates) > 60"
ok $? 'bf16 without a master copy hardly does: most updates are lost'
for policy in bf16-stochastic bf16-kahan megatron-bf16; do
    holds "$(of $policy final_loss) < $loss + 0.05"
    ok $? "$policy learns as fp32 does"
done
for policy in bf16-kahan megatron-bf16; do
    holds "$(share $policy lost updates) < 5"
    ok $? "$policy: few updates are lost"
done
finish
