#!/bin/sh
# bf16-masters.sh -- bf16 with and without fp32 masters, over learning rates, with and without a
# cool-down to zero.
# shellcheck source=data/experiments/transformer/common.sh
. "$(dirname "$0")/common.sh"

begin bf16-masters 'bf16 without masters'
small='--gain 4 --width 32 --context 32 --batch 4 --schedule constant --steps 100'
# shellcheck disable=SC2086 # a list of options
for lr in 0.0001 0.0003 0.001 0.003; do
    for cooldown in 0 40; do
        train "lr-$lr-cooldown-$cooldown" --lr $lr --cooldown $cooldown $small -P fp32 \
            -P bf16-pure -P bf16-stochastic -P bf16-kahan -P megatron-bf16
    done
done
table
paired fp32
awk -F '\t' '
    !/cooldown-40/ || /pure/ {
        split($1, part, /[-:] */)
        sub(/.*: /, "", $1)
        print $1 (part[4] ? " and cool-down" : "") "\t" part[2] "\t" $3
    }' bf16-masters.paired >bf16-masters.loss
curves bf16-masters-loss 'learning rate' 'validation loss: difference from fp32' bf16-masters.loss x
awk -F '\t' '/cooldown-0/ { split($1, part, "-"); print $2 "\t" part[2] "\t" $9 }' \
    bf16-masters.rows >bf16-masters.updates
curves bf16-masters-updates 'learning rate' 'updates lost, %' bf16-masters.updates x
