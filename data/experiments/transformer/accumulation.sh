#!/bin/sh
# accumulation.sh -- sums of fp8 products on Hopper: in the 14 bits of its tensor cores, moved to fp32
# every 128 products, and exact; in trainings whose weight gradients are sums of 2048 products, and on
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
long='--depth 1 --width 32 --context 32 --batch 64 --steps 40 --lr 0.003 --warmup 5'
# shellcheck disable=SC2086 # a list of options
{
    train 14-bits --arch hopper $long -P policies/e4m3-current.yaml -P deepseek-v3-fp8 -P megatron-bf16
    train promoted --arch hopper-wgmma-fp8-promoted $long -P policies/e4m3-current.yaml
    train exact --arch exact $long -P policies/e4m3-current.yaml -P megatron-bf16
}
table
paired e4m3-current exact
