#!/bin/sh
# updates.sh -- lost updates of each layer over a training, of weights kept in bf16: a recorded step
# is replayed, which gives the same weights and counts those that would move and do not.
# shellcheck source=data/experiments/transformer/common.sh
. "$(dirname "$0")/common.sh"

begin updates 'Lost updates of each layer'
steps=1,20,50,100,150,200

# record LR: both policies at a learning rate: rows, and UPDATES.lost, lines "LR, policy, seed, step,
# layer, weights that would move, those that do not"
record() {
    options="--depth 2 --width 32 --context 32 --batch 4 --steps 200 --lr $1"
    echo "# lr-$1: mpsim train --net gpt $options --trace DIR --trace-steps $steps -P POLICY," \
        'mpsim replay --json -P POLICY DIR'
    for each in bf16-pure bf16-stochastic; do
        for seed in $seeds; do
            report=$experiment/$each-$1-$seed.json trace=$experiment/trace
            if [ -z "$KEEP" ] || [ ! -s "$report.replay" ]; then
                rm -rf "$trace"
                # shellcheck disable=SC2086 # a list of options
                "$MPSIM" train --net gpt --quiet --threads 1 --json --every 100000 --seed "$seed" \
                    $options --trace "$trace" --trace-steps $steps -P $each -o "$report"
                "$MPSIM" replay --progress never --json --seed "$seed" -P $each "$trace" \
                    -o "$report.replay"
                rm -rf "$trace"
            fi
            rows "lr-$1" "$seed" "$report" >>"$experiment.rows"
            lost "$1" "$each" "$seed" "$report.replay" >>"$experiment.lost"
        done
    done
}

# lost LR POLICY SEED REPLAY
lost() {
    awk -v lr="$1" -v policy="$2" -v seed="$3" '
        function number(text, key) {
            return match(text, "\"" key "\": *[0-9]+") ? \
                substr(text, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0 : 0
        }
        function layer(name) { # what a parameter is counted as
            if (name ~ /bias$/) return "biases"
            if (name ~ /ln/) return "norms"
            sub(/^h[0-9]+[.]/, "", name)
            sub(/[.]weight$/, "", name)
            return name
        }
        /^{"step"/ && /"trains": true/ {
            step = number($0, "step")
            if (!match($0, /"weights": *\[.*/)) next
            n = split(substr($0, RSTART), part, "{\"name\": *\"")
            for (i = 2; i <= n; i++) {
                name = part[i]
                sub(/".*/, "", name)
                print lr "\t" policy "\t" seed "\t" step "\t" layer(name) "\t" \
                    number(part[i], "updates") "\t" number(part[i], "lost")
            }
        }' "$4"
}

# shares: of each layer and step, in per cent of the weights that would move: mean and deviation over
# seeds; POLICY-LR.curves has those of the seeds
shares() {
    awk -F '\t' -v experiment="$experiment" "$awk"'
        {
            run = $2 "\t" $1; key = run "\t" $5
            if (!(run in runs)) { runs[run] = 1; run_of[++n_runs] = run; file[run] = experiment "/" $2 "-" $1 ".curves" }
            if (!($5 in layers)) { layers[$5] = 1; layer[++n_layers] = $5 }
            if (!($4 in steps)) { steps[$4] = 1; step[++n_steps] = $4 }
            if (!($3 in seeds)) { seeds[$3] = 1; seed[++n] = $3 }
            moves[key, $4, $3] += $6; lost[key, $4, $3] += $7
        }
        END {
            printf "\npolicy\tlearning rate\tlayer"
            for (s = 1; s <= n_steps; s++) printf "\tstep %d", step[s]
            print ""
            for (r = 1; r <= n_runs; r++) {
                printf "" >file[run_of[r]]
                for (l = 1; l <= n_layers; l++) {
                    key = run_of[r] "\t" layer[l]
                    printf "%s\t%s", run_of[r], layer[l]
                    for (s = 1; s <= n_steps; s++) {
                        sum = squares = 0
                        for (i = 1; i <= n; i++) {
                            x = moves[key, step[s], seed[i]]
                            x = x ? 100 * lost[key, step[s], seed[i]] / x : 0
                            print layer[l] "\t" step[s] "\t" x >file[run_of[r]]
                            sum += x; squares += x * x
                        }
                        printf "\t%.1f ± %.1f", sum / n, deviation(sum, squares, n)
                    }
                    print ""
                }
            }
        }' "$experiment.lost"
}

: >"$experiment.lost"
train lr-0.001 --depth 2 --width 32 --context 32 --batch 4 --steps 200 --lr 0.001 -P fp32
train lr-0.0001 --depth 2 --width 32 --context 32 --batch 4 --steps 200 --lr 0.0001 -P fp32
record 0.001
record 0.0001
table
paired fp32
shares
curves updates-nearest step 'updates lost, per cent (bf16 to nearest, lr 0.001)' "$experiment/bf16-pure-0.001.curves"
curves updates-stochastic step 'updates lost, per cent (bf16 stochastic, lr 0.001)' \
    "$experiment/bf16-stochastic-0.001.curves"
