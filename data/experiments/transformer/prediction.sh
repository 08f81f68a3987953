#!/bin/sh
# prediction.sh -- one recorded step of an fp32 training ranks the recipes, before any of them trains;
# beside it the order of the losses that they train to.
# shellcheck source=data/experiments/transformer/common.sh
. "$(dirname "$0")/common.sh"

begin prediction 'A prediction from one step'

policy fp8-current <<END
precision: fp8
fp8_recipe: current
autocast: megatron
params: bf16
master_weights: true
grads: fp32
END
policy mxfp4 <<END
precision: mxfp4
autocast: megatron
params: bf16
master_weights: true
grads: fp32
END

# Each recipe: policy, and the formats of its activations, weights and their gradients in linear
# layers, in the words of `mpsim stat`.
cat >"$experiment.recipes" <<END
fp16-unscaled fp16 fp16 fp16
pytorch-amp-fp16 fp16 fp16 fp16*65536
pytorch-amp-bf16 bf16 bf16 bf16
megatron-bf16 bf16 bf16 bf16
bf16-pure bf16 bf16 bf16
bf16-stochastic bf16 bf16 bf16
bf16-kahan bf16 bf16 bf16
nemo-fp8-hybrid-max e4m3/tensor e4m3/tensor e5m2/tensor
nemo-fp8-hybrid-recent e4m3/tensor e4m3/tensor e5m2/tensor
nemo-fp8-e4m3-recent e4m3/tensor e4m3/tensor e4m3/tensor
fp8-current e4m3/tensor e4m3/tensor e5m2/tensor
deepseek-v3-fp8 e4m3/1x128:ue8m0 e4m3/128x128:ue8m0 e4m3/1x128:ue8m0
te-mxfp8 mxfp8:te mxfp8:te mxfp8:te
mxfp4 mxfp4 mxfp4 mxfp4
te-nvfp4 nvfp4 nvfp4:2d nvfp4:sr
te-nvfp4-without-sr nvfp4 nvfp4:2d nvfp4
te-nvfp4-without-rht nvfp4 nvfp4:2d nvfp4:sr
torchao-nvfp4 nvfp4 nvfp4 nvfp4
END
small='--depth 2 --width 32 --context 32 --batch 4'
policies=
while read -r name rest; do
    if [ -s "policies/$name.yaml" ]; then name=policies/$name.yaml; fi
    policies="$policies -P $name"
done <"$experiment.recipes"

# shellcheck disable=SC2086 # lists of options
trainings() { # RUN LR GAIN: all trained, and the table of how well the step predicts the order
    : >"$experiment.rows"
    train "$1" $small --steps 80 --lr "$2" --gain "$3" -P fp32 $policies
    trace=$experiment/trace-$1
    if [ -z "$KEEP" ] || [ ! -s "$trace.replay" ]; then
        rm -rf "$trace"
        "$MPSIM" train --net gpt --quiet --threads 1 $small --steps 20 --lr "$2" --gain "$3" \
            -P fp32 --trace "$trace" --trace-steps 20 -o /dev/null
        "$MPSIM" stat --quiet --threads 1 --csv --level kind -k act,weight,agrad -m '*attn.qkv*' \
            -m '*attn.proj*' -m '*mlp.fc*' -m '*mlp.proj*' -m '*:head*' -s 1,65536 \
            -f "$(sed 's/[^ ]* //; s/[*]65536//; y/ /\n/' "$experiment.recipes" | sort -u | paste -sd, -)" \
            "$trace/step_000020" -o "$trace.stat"
        "$MPSIM" replay --progress never --json $policies "$trace" -o "$trace.replay"
        rm -rf "$trace"
    fi
    predicted "$trace.stat" "$trace.replay"
}

# predicted STAT REPLAY: what the step says of each recipe, and Spearman's rank correlation with the
# mean difference of its validation loss from fp32's. Noise: the power of the casts' errors in
# activations, weights and activation gradients of linear layers, as shares of the powers of these
# (1/SQNR), added. Lost: of activations and their gradients, what becomes zero. Update: the relative distance of the
# weights that are kept from those of fp32, after the step. Together: the mean of the three ranks.
predicted() {
    columns policy 'noise (dB)' 'becomes zero' update 'together: rank' 'rank trained' \
        'validation loss: difference from fp32' verdict
    awk -v files="$1 $2 $experiment.rows" -v out="$experiment.ranked" "$awk"'
        function number(text, key) {
            return match(text, "\"" key "\": *[0-9.eE+-]+") ? \
                substr(text, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0 : 0
        }
        function cast(kind, format, parts) { # the key of a cast
            return split(format, parts, "*") == 2 ? kind " " parts[1] " 65536" : \
                kind " " format " " (kind == "agrad" && !(format ~ /[:\/]|^mx|^nv/) ? 1 : "")
        }
        function report(title, x, chosen, m, i, a, b) {
            m = 0
            for (i = 1; i <= n; i++)
                if (!chosen || far[i]) { m++; a[m] = x[i]; b[m] = trained[i] }
            printf "%s\t%s\t%d\t%s\n", title, chosen ? "those whose loss differs" : "all", m, \
                (m > 2 ? sprintf("%.2f", spearman(a, b, m)) : "too few")
        }
        function both(title, x) { report(title, x, 0); report(title, x, 1) }
        BEGIN {
            split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " ")
            split(files, file, " ")
            FS = ","
            while ((getline <file[1]) > 0) {
                if (column["kind"] == "") { for (i = 1; i <= NF; i++) column[$i] = i; continue }
                key = $column["kind"] " " $column["format"] " " ($column["kind"] == "agrad" ? $column["scale"] : "")
                power[key] = $column["sqnr_db"] ~ /inf/ ? 0 : exp(-$column["sqnr_db"] / 10 * log(10))
                zero[key] = $column["underflow"]; count[key] = $column["count"] - $column["zero"]
            }
            while ((getline line <file[2]) > 0) {
                if (match(line, /^{"policy": *{"name": *"[^"]*"/)) {
                    name = substr(line, RSTART, RLENGTH - 1)
                    sub(/.*"/, "", name)
                } else if (line ~ /^{"step"/ && line ~ /"trains": true/)
                    kept[name] = number(line, "kept_from_fp32")
            }
            FS = "\t"
            while ((getline <file[3]) > 0) {
                loss[$2, $3] = $4
                if (!($3 in known)) { known[$3] = 1; seed[++seeds] = $3 }
            }
            FS = " "
        }
        {
            n++
            name_of[n] = $1
            a = cast("act", $2); w = cast("weight", $3); g = cast("agrad", $4)
            if (!(a in power) || !(w in power) || !(g in power)) {
                print "no cast: " a ", " w ", " g >"/dev/stderr"
                exit 1
            }
            noise[n] = power[a] + power[w] + power[g]
            lost[n] = (zero[a] + zero[g]) / (count[a] + count[g])
            update[n] = kept[$1]
            sum = squares = bad = 0
            for (s = 1; s <= seeds; s++) {
                if (!finite(loss[$1, seed[s]])) { bad++; continue }
                d = difference[n, s] = loss[$1, seed[s]] - loss["fp32", seed[s]]
                sum += d; squares += d * d
            }
            trained[n] = bad ? 1e9 : sum / seeds
            spread[n] = deviation(sum, squares, seeds)
            far[n] = bad || (trained[n] > 0 ? trained[n] : -trained[n]) > t[seeds - 1] * spread[n] / sqrt(seeds)
        }
        END {
            ranks(noise, n, r1); ranks(lost, n, r2); ranks(update, n, r3)
            for (i = 1; i <= n; i++) together[i] = (r1[i] + r2[i] + r3[i]) / 3
            ranks(together, n, rank); ranks(trained, n, rank_trained)
            printf "" >out
            for (place = 1; place <= n; place += 0.5)
                for (i = 1; i <= n; i++)
                    if (rank[i] == place) {
                        for (s = 1; s <= seeds; s++)
                            if ((i, s) in difference)
                                print name_of[i] "\t" seed[s] "\t" difference[i, s] >out
                        printf "%s\t%.1f\t%.3f %%\t%.2e\t%g\t%g\t%s\t%s\n", name_of[i], \
                            10 * log(noise[i]) / log(10), 100 * lost[i], update[i], rank[i], rank_trained[i], \
                            trained[i] == 1e9 ? "NaN" : sprintf("%+.5f ± %.5f", trained[i], spread[i]), \
                            far[i] ? (trained[i] > 0 ? "worse" : "better") : "no difference"
                    }
            print "\nfrom\trecipes\tnumber\trank correlation with the trained losses"
            both("noise", noise); both("becomes zero", lost); both("update", update); both("together", together)
        }' "$experiment.recipes"
}

trainings gain-4 0.003 4
dots prediction 'validation loss: difference from fp32; from best to worst as predicted' 0 "$experiment.ranked"
