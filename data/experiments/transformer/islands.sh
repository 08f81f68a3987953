#!/bin/sh
# islands.sh -- what each island in fp32 is worth: softmax, norms, head and loss, the residual stream.
# Everything else is in bf16 or fp16, parameters in fp32, so that only the islands differ.
# shellcheck source=data/experiments/transformer/common.sh
. "$(dirname "$0")/common.sh"

# island NAME PRECISION LIST: a policy that keeps these layers in fp32
island() {
    policy "$1" <<END
precision: $2
autocast: all
keep_fp32: [$3]
END
}
softmax="'*.attn.softmax'" norm="'*ln*'" head="head, loss" residual="wte, wpe, '*.add*'"
small='--width 32 --context 32 --batch 4 --lr 0.003'

# islands FORMAT: the policies, and all of them as options
islands() {
    policy "$1-none" <<END
precision: $1
autocast: all
END
    island "$1-all" "$1" "$softmax, $norm, $head, $residual"
    island "$1-softmax" "$1" "$softmax"
    island "$1-norm" "$1" "$norm"
    island "$1-head" "$1" "$head"
    island "$1-residual" "$1" "$residual"
    island "$1-all-but-softmax" "$1" "$norm, $head, $residual"
    island "$1-all-but-norm" "$1" "$softmax, $head, $residual"
    island "$1-all-but-head" "$1" "$softmax, $norm, $residual"
    island "$1-all-but-residual" "$1" "$softmax, $norm, $head"
    list=
    for each in all all-but-softmax all-but-norm all-but-head all-but-residual softmax norm head \
        residual none; do
        list="$list -P policies/$1-$each.yaml"
    done
}

# shellcheck disable=SC2086 # lists of options
for format in bf16 fp16; do
    begin islands-$format "What an island in fp32 is worth: $format"
    islands $format
    train stored --gain 4 $small --steps 100 $list
    for part in softmax norm; do
        train "$part-in-$format" --math $part=$format --gain 4 $small --steps 100 \
            -P policies/$format-none.yaml
    done
    table
    paired $format-all stored
    dots islands-$format "validation loss: difference from $format-all"
done
# shellcheck disable=SC2086
{
    begin islands-gain 'Islands at large initial weights'
    islands fp16
    for gain in 1 40 400; do
        train "gain-$gain" --gain $gain $small --steps 40 -P fp32 -P policies/fp16-all.yaml \
            -P policies/fp16-none.yaml
        train "gain-$gain-norm" --gain $gain $small --math norm=fp16 --steps 40 \
            -P policies/fp16-none.yaml
    done
    table
    paired fp16-all

    begin islands-depth 'Islands in eight blocks'
    islands bf16
    train stored --depth 8 --gain 4 $small --steps 40 -P policies/bf16-all.yaml \
        -P policies/bf16-all-but-residual.yaml -P policies/bf16-none.yaml
    for part in softmax norm; do
        train "$part-in-bf16" --depth 8 --math $part=bf16 --gain 4 $small --steps 40 \
            -P policies/bf16-none.yaml
    done
    table
    paired bf16-all stored
    dots islands-depth 'validation loss in eight blocks: difference from bf16-all'
}
