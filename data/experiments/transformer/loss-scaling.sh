#!/bin/sh
# loss-scaling.sh -- fp16 without and with a loss scale, over the depth and over the size of the loss.
# shellcheck source=data/experiments/transformer/common.sh
. "$(dirname "$0")/common.sh"

begin loss-scaling 'fp16 loss scaling against depth'
small='--gain 4 --width 32 --context 32 --batch 4 --lr 0.003 --steps 30'
three='-P fp32 -P fp16-unscaled -P pytorch-amp-fp16'
# shellcheck disable=SC2086 # lists of options
{
    for depth in 2 4 8 12; do
        train "depth-$depth" --depth $depth $small $three
    done
    for n in 4 8 12 16; do
        train "factor-2-$n" --loss-factor 0x1p-$n $small $three
    done
}
table
paired fp32
awk -F '\t' '/^depth/ { sub(/depth-/, "", $1); print $2 "\t" $1 "\t" $7 }' loss-scaling.rows \
    >loss-scaling.lost
curves loss-scaling-depth blocks 'activation gradients rounded to zero, %' loss-scaling.lost x
awk -F '\t' '
    $1 == "depth-2" { print $2 "\t0\t" $4 }
    /^factor/ { sub(/factor-2-/, "", $1); print $2 "\t" (-$1) "\t" $4 }' loss-scaling.rows \
    >loss-scaling.factor
curves loss-scaling-factor 'factor of the loss: power of 2' 'validation loss' loss-scaling.factor
