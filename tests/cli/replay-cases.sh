#!/bin/sh
# replay-cases.sh -- mpsim replay of tiny recorded trainings (data/replay-cases), each with one thing to
# get right: under a policy of a few lines, which says nothing of the optimizer and the clip, every carried
# number is the recorded one. The table is printed: case, values compared, values that differ.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
cases=$MPSIM_SRCDIR/data/replay-cases

# The policies, by precision: scalers as the recorded runs have them.
amp() { printf 'precision: fp16\nloss_scaling: {scaler: torch-cpu, init_scale: %s, growth_interval: 3}\n' "$1"; }
amp 2^19 >"$dir/amp.yaml"
amp 2^17 >"$dir/amp17.yaml"
amp 2^21 >"$dir/amp21.yaml"
printf 'precision: fp32\n' >"$dir/fp32.yaml"
printf 'precision: bf16\n' >"$dir/bf16.yaml"
printf 'precision: fp16\nautocast: all\nparams: fp16\nloss_scaling: none\n' >"$dir/half.yaml"
printf 'precision: fp16\nautocast: all\nparams: fp16\nmaster_weights: true\n' >"$dir/masters.yaml"
printf 'loss_scaling: {scaler: torch-cpu, init_scale: 2^19, growth_interval: 3}\n' >>"$dir/masters.yaml"
printf 'precision: bf16\noptimizer: {name: trace, muon: {}}\n' >"$dir/muon.yaml"
policy_of() {
    case $1 in
    scheduler-sgd) echo fp32 ;;
    bf16 | mixed) echo bf16 ;;
    muon) echo muon ;;
    fused-sgd) echo amp17 ;;
    two-optimizers*) echo amp21 ;;
    half) echo half ;;
    half-masters) echo masters ;;
    *) echo amp ;;
    esac
}

# record: "0 of 1,234 carried ..." as "1234 0"
record() { sed -n 's/^record  *\([0-9,]*\) of \([0-9,]*\) carried .*/\2 \1/p' "$dir/out" | tr -d ,; }

echo "# case compared differ"
for at in "$cases"/*/; do
    name=$(basename "$at")
    turns 4 together
    due || { ok 1 "$name" && continue; }
    run 0 replay -P "$dir/$(policy_of "$name").yaml" "$at"
    ran=$?
    counts=$(record)
    echo "# $name $counts"
    [ $ran -eq 0 ] && [ "${counts#* }" = 0 ] && [ "${counts% *}" -gt 1000 ]; ok $? "$name: 0 differ"
    [ $ran -eq 0 ] && ! has '^lacks ' && ! has "^policy's " && ! has '^gradients  *recorded'; ok $? "$name: nothing is lacking"
    has '^variant  *[a-z]' && ! has 'equal to recorded steps of other runs'; ok $? "$name: the variant line holds"
done
turns 1

# ---- bug_20261123: parameters in bf16 beside others in fp32 are so in the replay, and that is said; where the policy keeps
# them in one format, what is not compared is counted and named, and equality is not claimed
run 0 replay -P "$dir/bf16.yaml" "$cases/mixed" && [ "$(record)" = '7440 0' ] &&
    has '^parameters  *each parameter is in the format that the record has it in' &&
    run 0 replay --json -P "$dir/bf16.yaml" "$cases/mixed" && has '"formats": "each parameter'
ok $? "mixed: each parameter as the record has it"
printf 'precision: bf16\nparams: fp32\n' >"$dir/params.yaml"
run 0 replay -P "$dir/params.yaml" "$cases/mixed" && [ "$(record)" = '2448 0' ] && ! has '^parameters ' &&
    has '^uncompared  *4,992 of 7,440 carried and recorded numbers are not compared' &&
    has '^ *opt.m:fc1.weight 1,536\|^ *weight:fc1.bias 128, weights recorded in bf16, here binary32' &&
    has 'equal to recorded steps of other runs, and to what of this one can be compared'
ok $? "mixed: what is not compared is counted and named"
run 0 replay --json -P "$dir/params.yaml" "$cases/mixed" && has '"equal_to_record": null' && has '"not_compared": 4992' &&
    has '"not_compared_in": \[{"name": "weight:fc1.bias", "count": 128, "weight_recorded_in": "bf16", "weight_here_in": "binary32"}'
ok $? "mixed: in JSON"

# ---- bug_20261123: of several optimizers under one scaler each skips, and is clipped, by itself
run 0 replay -P "$dir/amp21.yaml" "$cases/two-optimizers" && has '^skipped  *of the optimizers, each by itself: 2, 4 of 8 steps' &&
    run 0 replay -P "$dir/amp21.yaml" "$cases/two-optimizers-clip" &&
    has '^clipped  *6 of 8 steps, as recorded: each optimizer by itself'
ok $? "two-optimizers: who skipped and was clipped is said"
run 0 replay --json -P "$dir/amp21.yaml" "$cases/two-optimizers-clip" && has '"optimizer_skips": \[2, 4\]' &&
    has '"optimizers": \[{"skipped": false, "norm": 0.39205[0-9]*, "clipped": true}, {"skipped": true, "norm": "NaN", "clipped": false}\]'
ok $? "two-optimizers: in JSON"
# a scaler that asks all gradients, as Apex's, skips both
sed 's/scaler: torch-cpu/scaler: apex/' "$dir/amp21.yaml" >"$dir/apex.yaml"
run 0 replay -P "$dir/apex.yaml" "$cases/two-optimizers" && has '^skipped  *of the optimizers, each by itself: \([0-9]*\), \1 of 8 steps' &&
    has '^most  *[a-z.]*:'
ok $? "two-optimizers: another scaler skips both"

wrong() { # CASE POLICY-FILE NAME: it is seen
    run 0 replay -P "$2" "$cases/$1" && [ "$(record | cut -d' ' -f2)" -gt 0 ] && has '^most  *[a-z.]*:'
    ok $? "$1: $3 is seen"
}

# ---- bug_20261125: torch.optim.Muon in the record: its settings and products are the record's (above), unless the policy
# has its own
run 0 replay -P "$MPSIM_SRCDIR/data/policies/muon-bf16.yaml" "$cases/muon" && [ "$(record)" = '5136 2447' ] &&
    has "^policy's  *muon's lr 0.02 (recorded 0.01)" && has "^policy's  *variant torch-foreach" &&
    run 3 replay -P "$dir/bf16.yaml" "$cases/muon" && has "the trace's optimizer (mpsim.optimizer) is 'muon'.*muon: {}" err
ok $? "muon: under a policy that has it, and under another"
for own in 'ns_coefficients: [3.4, -4.7, 2]' 'ns_steps: 4' 'adjust_lr: match_rms_adamw' 'nesterov: false' 'variant: torch-cpu'; do
    printf 'precision: bf16\noptimizer: {name: trace, muon: {%s}}\n' "$own" >"$dir/own.yaml"
    wrong muon "$dir/own.yaml" "$own"
done
# what newer recorders say, too; AVX-512 alone does not say how bf16 products are summed
mkdir "$dir/said" && for at in "$cases/muon"/step_00000[123]; do
    to=$dir/said/$(basename "$at") && mkdir "$to" && sed 's/"ns_steps\\":5,\\"steps/"ns_steps\\":4,\\"steps/; s/"mpsim.cpu_capability":"default"/"mpsim.cpu_capability":"avx512 "/' \
        "$at/rank_00000.safetensors" >"$to/rank_00000.safetensors"
done
run 0 replay -P "$dir/muon.yaml" "$dir/said" && has '^muon .*' && has ' 4 steps of Newton' && has 'products by torch-cpu-onednn,' &&
    has '^lacks  *whether the CPU has AVX512-BF16 or AMX'
ok $? "muon: steps of the iteration, and instructions that are not known, are the record's"

# ---- the same runs under what is wrong in one thing
turns 4
for name in groups-sgd groups-adamw scheduler-sgd scheduler-adamw; do
    policy=$dir/$(policy_of "$name").yaml
    { cat "$policy"; echo 'optimizer: {name: trace, lr: 0.003}'; } >"$dir/wrong.yaml"
    wrong $name "$dir/wrong.yaml" "another lr" && has "^policy's  *lr 0.003 (recorded"; ok $? "$name: and said"
done
for name in clip clip-no-norm clip-value accumulation-clip; do
    { cat "$dir/amp.yaml"; echo 'clip: none'; } >"$dir/wrong.yaml"
    wrong $name "$dir/wrong.yaml" "no clip"
done
for name in amsgrad-adam amsgrad-adamw amsgrad-gap; do
    { cat "$dir/amp.yaml"; echo 'optimizer: {name: trace, amsgrad: false}'; } >"$dir/wrong.yaml"
    wrong $name "$dir/wrong.yaml" "no amsgrad" && has "^policy's  *amsgrad false (recorded true)"; ok $? "$name: and said"
done
{ cat "$dir/amp.yaml"; echo 'grads: fp16'; } >"$dir/wrong.yaml"
for name in accumulation accumulation-clip tied; do
    wrong $name "$dir/wrong.yaml" "sums that are rounded"
    has '^gradients  *recorded gradients are binary32 numbers that fp16 cannot hold: [1-9]'; ok $? "$name: and said"
done
{ cat "$dir/amp.yaml"; echo 'optimizer: {name: trace, variant: torch-cpu}'; } >"$dir/wrong.yaml"
for name in groups-adamw sgd-nesterov foreach-adamw; do
    wrong $name "$dir/wrong.yaml" "FMA" && has 'equal to recorded steps of other runs'
    ok $? "$name: equality is not claimed"
done

finish
