#!/bin/sh
# nvfp4.sh -- four ingredients of NVFP4 trainings, in all 16 combinations: random Hadamard
# transforms, square blocks of weights, stochastic rounding of gradients, first and last block in bf16.
# shellcheck source=data/experiments/transformer/common.sh
. "$(dirname "$0")/common.sh"

mkdir -p policies

# ingredients NAME: the policy whose name has r (transforms), d (square blocks), s (stochastic
# rounding), e (ends in bf16), each 1 (with) or 0 (without): r1d1s1e1 has all. The head is in bf16
# in all of them, as in the published recipe.
ingredients() {
    {
        echo 'precision: nvfp4'
        case $1 in r0*) echo 'disable_rht: true' ;; esac
        case $1 in *d0*) echo 'disable_2d_quantization: true' ;; esac
        case $1 in *s0*) echo 'disable_stochastic_rounding: true' ;; esac
        case $1 in *e1) echo 'first_last_layers_bf16: true' ;; esac
        echo 'fp8_exclude: [head]
autocast: megatron
params: bf16
master_weights: true
grads: fp32'
    } | policy "$1"
}

all=
for r in 1 0; do
    for d in 1 0; do
        for s in 1 0; do
            for e in 1 0; do
                ingredients "r${r}d${d}s${s}e$e"
                all="$all -P policies/r${r}d${d}s${s}e$e.yaml"
            done
        done
    done
done

# effects: of each ingredient the mean over the eight pairs that differ in nothing else, seed by seed,
# beside its removal from all four. The published ranks are read off words, not numbers: of arXiv
# 2509.25149 4.1 and E.2 (no layer kept: diverges; with stochastic rounding alone: diverges, too), 4.4
# (stochastic rounding: essential for convergence), 4.2 and 4.3 (transforms, square blocks: the loss
# is worse without). The curves of its figure 4 have no numbers in its text.
effects() {
    columns ingredient 'validation loss with it: mean over eight pairs' 'standard error' verdict 'removed from all four' \
        'rank here' 'rank published'
    awk -F '\t' -v out="$experiment.effects" "$awk"'
        function far(m, error, n) {
            return n > 1 && n <= 10 && (m > 0 ? m : -m) > t[n - 1] * error
        }
        function without(name, c) { return substr(name, 1, 2 * c - 1) "0" substr(name, 2 * c + 1) }
        BEGIN {
            split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " ")
            split("random Hadamard transforms|square blocks of weights|" \
                  "stochastic rounding|first and last block in bf16", name, "|")
            split("3.5 3.5 2 1", published, " ")
            printf "" >out
        }
        $2 ~ /^r[01]d[01]s[01]e[01]$/ {
            loss[$2, $3] = $4; policies[$2] = 1
            if (!($3 in known)) { known[$3] = 1; seed[++n] = $3 }
        }
        END {
            for (c = 1; c <= 4; c++) {
                sum = squares = removed = removed_squares = 0
                for (s = 1; s <= n; s++) {
                    effect = 0
                    for (p in policies)
                        if (substr(p, 2 * c, 1) == 1)
                            effect += (loss[p, seed[s]] - loss[without(p, c), seed[s]]) / 8
                    print name[c] "\t" seed[s] "\t" effect >out
                    sum += effect; squares += effect * effect
                    d = loss[without("r1d1s1e1", c), seed[s]] - loss["r1d1s1e1", seed[s]]
                    removed += d; removed_squares += d * d
                }
                mean_effect[c] = sum / n; error[c] = deviation(sum, squares, n) / sqrt(n)
                mean_removed[c] = removed / n
                removed_error[c] = deviation(removed, removed_squares, n) / sqrt(n)
                some += far(mean_effect[c], error[c], n)
            }
            ranks(mean_effect, 4, rank)
            for (c = 1; c <= 4; c++)
                printf "%s\t%+.5f\t%.5f\t%s\t%+.5f ± %.5f%s\t%g\t%g\n", name[c], \
                    mean_effect[c], error[c], !far(mean_effect[c], error[c], n) ? "no difference" : \
                    mean_effect[c] < 0 ? "better" : "worse", mean_removed[c], removed_error[c], \
                    far(mean_removed[c], removed_error[c], n) ? "" : " (no difference)", rank[c], published[c]
            rho = spearman(mean_effect, published, 4)
            printf "# Rank correlation of the four means with the published order: %.2f: they %s. ", rho, \
                (rho > 0.7 ? "agree" : "do not agree")
            printf "%d of the four can be told from nothing%s.\n", some, \
                (some < 2 ? ": of the order of the others that says nothing" : "")
        }' "$experiment.rows"
}

# ablation NAME OPTION...: all combinations beside bf16
ablation() {
    begin "nvfp4-$1" "The ingredients of NVFP4, $1"
    shift
    # shellcheck disable=SC2086 # a list of options
    {
        train bf16 "$@" -P megatron-bf16
        train all "$@" -P pytorch-amp-bf16 $all
    }
    paired megatron-bf16 bf16
    effects
    dots "$experiment" 'validation loss with it minus without it' 0 \
        "$experiment.effects"
}

small='--depth 4 --width 32 --context 32 --batch 4'
# shellcheck disable=SC2086 # lists of options
{
    ablation gain-1 $small --steps 120 --lr 0.001
    ablation gain-4 --gain 4 $small --steps 60 --lr 0.003
}
