#!/bin/sh
# all-policies.sh -- the validation losses of all bundled policies that a training takes, on one GPT.
# shellcheck source=data/experiments/transformer/common.sh
. "$(dirname "$0")/common.sh"

begin all-policies 'All policies'
list=
for file in "$MPSIM_POLICIES"/*.yaml; do
    # those whose optimizer wants a learning rate of its own
    if ! grep -Eq '^ +(states|muon):|name: lion' "$file"; then
        name=${file##*/}
        list="$list -P ${name%.yaml}"
    fi
done
# shellcheck disable=SC2086 # a list of options
train all --gain 4 --width 32 --context 32 --batch 4 --lr 0.003 --steps 100 $list
table sorted
paired fp32
awk -F '\t' '
    { sum[$1] += $3; line[NR] = $0; of[NR] = $1 }
    END { for (i = 1; i <= NR; i++) printf "%.9f\t%s\n", sum[of[i]], line[i] }' \
    all-policies.paired | sort -s -k 1,1n | cut -f 2- >all-policies.sorted
dots all-policies 'validation loss: difference from fp32' 0.05 all-policies.sorted
