#!/bin/sh
# optimizers.sh -- what quantised moments, bf16 weights and Muon do to the steps of a GPT: recorded steps
# of a training in fp32 through the policies that are for replays, beside those whose only differences
# from them are the moments. A replay has the recorded gradients, so nothing here says how such a run
# would train.
# shellcheck source=data/experiments/transformer/common.sh
. "$(dirname "$0")/common.sh"

begin optimizers 'Moments in few bits, bf16 weights, Muon: the same gradients'
policies='pytorch-amp-bf16 coat-fp8-states fp8-lm muon-bf16 bf16-pure torchao-bf16-sr torchao-adamw8bit torchao-adamwfp8 torchao-adamw4bit'
options='--depth 2 --width 64 --context 32 --batch 4 --lr 0.003 --steps 40'
echo "# recorded: mpsim train --net gpt $options -P fp32 --trace TRACE --trace-steps 33-40"
echo "# replayed: mpsim replay -P POLICY TRACE"
list=
for policy in $policies; do
    list="$list -P $policy"
done
for seed in $seeds; do
    report=$experiment/replay-$seed.csv
    if [ -z "$KEEP" ] || [ ! -s "$report" ]; then
        rm -rf "$experiment/trace"
        # shellcheck disable=SC2086 # lists of options
        "$MPSIM" train --net gpt --quiet --threads 1 --every 100000 --seed "$seed" $options -P fp32 \
            --trace "$experiment/trace" --trace-steps 33-40 --csv -o "$experiment/recorded-$seed.csv"
        # shellcheck disable=SC2086
        "$MPSIM" replay --csv --seed "$seed" $list "$experiment/trace" -o "$report" 2>"$experiment/notes"
        rm -rf "$experiment/trace"
    fi
    sed 1d "$report" | awk -F , -v seed="$seed" '{ print seed "," $0 }' >>"$experiment.rows"
done

# seed, policy, steps, ..., 13 updates, 14 lost, 15 distance from fp32, 17 weights, 18 master, 20 state
columns policy 'distance of the weights from fp32 after 8 steps' 'lowest to highest' 'updates lost' \
    'bytes a weight: weights and master' 'bytes a weight: moments'
awk -F , -v out="$experiment.distances" "$awk"'
    BEGIN { printf "" >out }
    function shown(x) { return x == 0 ? "0" : x < 0.01 ? "< 0.01 %" : sprintf("%.2f %%", x) }
    !($2 in runs) { order[++n] = $2 }
    {
        runs[$2]++
        d = 100 * $15
        print $2 "\t" $1 "\t" d >out
        sum[$2] += d; squares[$2] += d * d; lost[$2] += 100 * $14 / $13
        if (runs[$2] == 1 || d < low[$2]) low[$2] = d
        if (runs[$2] == 1 || d > high[$2]) high[$2] = d
        elements = $13 / $3
        weights[$2] = ($17 + $18) / elements; state[$2] = $20 / elements
    }
    END {
        for (i = 1; i <= n; i++) {
            p = order[i]; r = runs[p]
            printf "%s\t%.3f ± %.3f %%\t%.3f to %.3f %%\t%s\t%.2f\t%.2f\n", p, sum[p] / r, \
                deviation(sum[p], squares[p], r), low[p], high[p], shown(lost[p] / r), weights[p], state[p]
        }
    }' "$experiment.rows"
dots optimizers 'distance of the weights from fp32 (%)' 0 "$experiment.distances"
