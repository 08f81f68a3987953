#!/bin/sh
# accumulation.sh -- sums of fp8 products on Hopper: in the 14 bits of its tensor cores, moved to fp32
# every 128 products, and exact; in trainings whose weight gradients are sums of 4096 products, and on
# the operands that such a training recorded.
# shellcheck source=data/experiments/transformer/common.sh
. "$(dirname "$0")/common.sh"

begin accumulation 'Accumulation in 14 bits and promotion'

policy e4m3-current <<END
precision: fp8
fp8: e4m3
fp8_recipe: current
autocast: megatron
params: bf16
master_weights: true
grads: fp32
END
long='--gain 4 --depth 1 --width 32 --context 32 --batch 128 --steps 20 --lr 0.003 --warmup 5'
# shellcheck disable=SC2086 # a list of options
{
    train 14-bits --arch hopper $long -P policies/e4m3-current.yaml -P deepseek-v3-fp8
    train promoted --arch hopper-wgmma-fp8-promoted $long -P policies/e4m3-current.yaml
    train exact --arch exact $long -P policies/e4m3-current.yaml
}
table
paired e4m3-current exact

# products: relative errors of single products by their depth, against exact sums of the same operands:
# generated ones and those of weight gradients that an fp32 training recorded at step 10, five seeds of each
products() {
    for seed in $seeds; do
        for values in normal relu; do
            "$MPSIM" dot --progress never --threads 1 --csv -f e4m3 -M $models -K $depths -s amax --values $values \
                --seed "$seed" | errors "$values"
        done
        trace=$experiment/trace
        # shellcheck disable=SC2086 # a list of options
        "$MPSIM" train --net gpt --quiet --threads 1 $long --steps 10 --seed "$seed" -P fp32 --trace "$trace" \
            --trace-steps 10 -o /dev/null
        for layer in attn.qkv attn.proj mlp.fc mlp.proj; do
            "$MPSIM" dot --progress never --threads 1 --csv -f e4m3 -M $models -K $depths -s amax --rows 32 \
                --columns 32 --a "agrad:h0.$layer" --b "act:h0.$layer" --transpose-a --transpose-b \
                "$trace"/step_000010/*.safetensors | errors "gradient of $layer"
        done
        rm -rf "$trace"
    done >"$experiment.dot"
    awk -F '\t' "$awk"'
        {
            run = $1 "\t" $2
            if (!(run in runs)) { runs[run] = 1; run_of[++n_runs] = run }
            if (!($3 in depths)) { depths[$3] = 1; depth[++n_depths] = $3 }
            n[run, $3]++; sum[run, $3] += $4; squares[run, $3] += $4 * $4
        }
        END {
            printf "\noperands\tsums"
            for (k = 1; k <= n_depths; k++) printf "\tdepth %d", depth[k]
            print ""
            for (r = 1; r <= n_runs; r++) {
                printf "%s", run_of[r]
                for (k = 1; k <= n_depths; k++) {
                    m = sum[run_of[r], depth[k]]; c = n[run_of[r], depth[k]]
                    printf "\t%.2e ± %.1e", m / c, deviation(m, squares[run_of[r], depth[k]], c)
                }
                print ""
            }
        }' "$experiment.dot"
}

# errors OPERANDS: lines "operands, sums, depth, relative error" of a report
errors() {
    awk -F , -v operands="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        {
            sums = $column["model"] ~ /promoted/ ? "promoted" : "14 bits"
            print operands "\t" sums "\t" $column["k"] "\t" $column["rel_err"]
        }'
}

models=hopper-wgmma-fp8-fp32,hopper-wgmma-fp8-promoted depths=128,512,1024,2048,4096
products
sed 's/\t/, /' "$experiment.dot" | grep -v '^gradient of attn' >"$experiment.curves"
curves accumulation 'products of a sum' 'relative error of e4m3 products' "$experiment.curves" xy
