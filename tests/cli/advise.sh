#!/bin/sh
# advise.sh -- mpsim advise: advice that is known because the numbers are made here, its policy replayed, bounds kept in steps held
# back, gates, bad input.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
digits=$MPSIM_SRCDIR/data/digits-cnn charlm=$MPSIM_SRCDIR/data/charlm amp=$MPSIM_SRCDIR/data/amp-mlp

# file NAME METADATA TENSOR=HEX,HEX,...: vectors of binary32, as safetensors
file() {
    to=$dir/$1 header="{\"__metadata__\":{$2}" at=0 data=
    shift 2
    for t in "$@"; do
        words=$(echo "${t#*=}" | tr ',' ' ')
        count=$(echo "$words" | wc -w)
        header="$header,\"${t%%=*}\":{\"dtype\":\"F32\",\"shape\":[$((count))],\"data_offsets\":[$at,$((at + 4 * count))]}"
        at=$((at + 4 * count)) data="$data $words"
    done
    header="$header}"
    # shellcheck disable=SC2059 # octal numbers
    printf "$(printf '\\%03o\\%03o\\000\\000\\000\\000\\000\\000' $((${#header} % 256)) $((${#header} / 256)))" >"$to"
    printf '%s' "$header" >>"$to"
    for w in $data; do
        v=$((0x$w))
        # shellcheck disable=SC2059
        printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $((v & 255)) $((v >> 8 & 255)) $((v >> 16 & 255)) $((v >> 24 & 255)))" >>"$to"
    done
}

# column NAME TENSOR: of the CSV report
column() {
    awk -F, -v t="$2" -v c="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) at = i } $1 == t { print $at }' "$dir/out"
}

# says TEXT: in lines that may be broken anywhere
says() { tr -s '\n ' '  ' <"$dir/out" | grep -q -- "$1"; }

# ---- the loss scale: 1 overflows fp16 from 2^16 on; 2^-30 becomes 2^-25, half of the smallest number, at 2^5, and 0; at 2^6 it
# stands. With numbers recorded 2^3 times as large the window is the same
file grads '"mpsim.step":"7"' wgrad:fc.weight=3f800000,35800000,30800000,00000000
run 0 advise --csv "$dir/grads" && [ "$(column scale_low wgrad:fc.weight)" = 6 ] && [ "$(column scale_high wgrad:fc.weight)" = 15 ]; ok $? "a loss scale from 2^6 to 2^15"
run 0 advise "$dir/grads" && says '2^13 (2^6 to 2^15) keeps 1 of 1' && says 'wgrad:fc.weight needs 2^6 at step 7'; ok $? "with its evidence, two powers below the end"
file scaled '"mpsim.step":"7","mpsim.grads_scaled":"true","mpsim.loss_scale":"8"' wgrad:fc.weight=41000000,37000000,32000000,00000000
run 0 advise --csv "$dir/scaled" && [ "$(column scale_low wgrad:fc.weight)" = 6 ] && [ "$(column scale_high wgrad:fc.weight)" = 15 ]; ok $? "of gradients that were recorded scaled"
file third '"mpsim.step":"7","mpsim.grads_scaled":"true","mpsim.loss_scale":"3"' wgrad:fc.weight=41000000,37000000
run 0 advise "$dir/third" && has 'Loss scale: not known'; ok $? "by what is no power of two: not known"
run 0 advise --max-underflow 25% --csv "$dir/grads" && [ "$(column scale_low wgrad:fc.weight)" = -4 ]; ok $? "one of four may become zero: 2^-20 at 2^-4"
file apart '"mpsim.step":"1"' wgrad:a=3f800000,3f800000 wgrad:b=30800000,30800000 wgrad:c=47000000,47000000 wgrad:d=2b800000,2b800000
run 0 advise "$dir/apart" && says 'keeps [12] of 4 gradients' && says '; not wgrad'; ok $? "no scale for all: which is left out, and why"

# ---- round-off is no gradient: the key part of qkv.bias is 0 mathematically, and asked for 2^16
run 0 advise --json "$charlm" && has '"loss_scale": {"window": {"low_exponent": 7, "high_exponent": 18}' && [ "$(grep -o '"roundoff": 32,' "$dir/out" | wc -l)" = 2 ] && has '"roundoff_evidence": "the recorded terms'; ok $? "bug_20261127: what rounding left asks for no loss scale"
run 0 advise "$charlm" && says 'wgrad:blocks.1.attn.qkv.bias 96 32 the recorded terms'; ok $? "it is counted apart, and named"
run 0 advise --json "$digits" && ! has '"roundoff": [1-9]'; ok $? "gradients that are small are gradients"
run 0 advise "$charlm" -m 'wgrad:blocks.0.attn.qkv.bias' && has 'round-off' && run 0 stat -q --json --without-roundoff -f fp16 -m wgrad:blocks.1.attn.qkv.bias "$charlm/step_000100" && has '"count": 64, "zero": 0, "nan": 0, "inf": 0, .*"roundoff": 32,' && ! has '"underflow": [1-9]'; ok $? "stat leaves it out, where it is asked to"
run 2 stat --without-roundoff --shard 1/2 "$charlm"; ok $? "not of a shard"
run 0 scaler --json "$charlm" && has '"roundoff": 311'; ok $? "scaler does not count it as lost"
# the bias before a normalisation, which has no gradient at all, without its terms: 2^-30 beside weights of 1
file norm '"mpsim.step":"7"' wgrad:conv.bias=30800000,b0900000,30a00000,b0b00000 wgrad:conv.weight=3f800000,bf800000,3f900000,3fa00000 wgrad:fc.bias=3a800000,3a900000
run 0 advise "$dir/norm" && says 'wgrad:conv.bias 4 4 a guess from the gradient of the weight' && says 'keeps 2 of 2 gradients'; ok $? "a bias before BatchNorm is no gradient"

# ---- scaled gradients: 96 numbers of fp16, which 2^-16 makes numbers that fp16 has not
halves() { awk -v f="$1" 'BEGIN { for (i = 1; i <= 96; i++) printf "%s%s%02x0000", (i > 1 ? "," : ""), f, 128 + i }'; }
file backward '"mpsim.step":"7"' "wgrad:fc.weight=$(halves 3a),33800000,b4400000"
file unscaled '"mpsim.step":"7"' "wgrad:fc.weight=$(halves 32),2b800000,ac400000"
run 0 advise "$dir/backward" && says 'Loss scale: not known: all gradients are numbers of fp16' && says 'Give it as --loss-scale S'; ok $? "bug_20261127: gradients that a backward pass in fp16 left scaled: asked for the scale"
file norms '"mpsim.step":"7"' "wgrad:fc.weight=$(halves 3a),33800000,b4400000" wgrad:norm.weight=3f800001,bf800003
run 0 advise "$dir/norms" && says 'Loss scale: not known: most gradients are numbers of fp16'; ok $? "as well where norms and embeddings, which autocast leaves in binary32, have others"
run 0 advise --loss-scale 2^16 --csv "$dir/backward" && low=$(column scale_low wgrad:fc.weight) && run 0 advise --csv "$dir/unscaled" && [ "$low" = "$(column scale_low wgrad:fc.weight)" ] && [ "$low" -gt 8 ]; ok $? "which --loss-scale says: the window of unscaled gradients"
run 0 advise "$dir/unscaled" && says 'The files do not say whether these gradients are unscaled' && run 0 scaler "$dir/unscaled" && says 'files do not say whether gradients are unscaled'; ok $? "that gradients are unscaled is said to be taken for granted"
run 0 scaler --loss-scale 65536 "$dir/backward" && says 'were divided by their mpsim.loss_scale' && run 0 stat "$dir/backward" && says 'All weight gradients are numbers of fp16'; ok $? "scaler divides, stat warns"
file kindless '"mpsim.step":"7"' "fc.weight=$(halves 32),2b800000,ac400000"
run 0 advise "$dir/kindless" && says 'names of 1 tensor do not say what the tensors are' && run 0 advise --map wgrad "$dir/kindless" && ! says 'do not say what the tensors are'; ok $? "that tensors without a kind are gradients is said to be taken for granted"
file checkpoint '"mpsim.step":"7"' "weight:fc.weight=$(halves 32)" step=40e00000
run 0 advise "$dir/checkpoint" && has '^step 7, 1 tensor$' && says 'Loss scale: not known: the trace has no gradients' && ! says 'taken as gradients'; ok $? "but not beside tensors with a kind: an optimizer's counter is no gradient"
file buffers '"mpsim.step":"7"' "weight:fc.weight=$(halves 32)" running_mean=40e00000,3f800000
"$MPSIM" advise "$dir/buffers" >"$dir/out" 2>"$dir/err" && has '^step 7, 1 tensor$' && one_line && has 'left out, such as running_mean;' err; ok $? "nor a buffer, which is named"
run 0 advise --ndjson "$dir/grads" && [ "$(wc -l <"$dir/out")" = 1 ] && has '^{"name": "wgrad:fc.weight", .*"fp16_scales": {"low_exponent": 6, "high_exponent": 15}, .*"formats": \[{"format"'; ok $? "a line of JSON for each tensor"
run 2 advise --loss-scale 0 "$dir/backward"; ok $? "0 is no scale"
run 2 advise --loss-scale 8 "$dir/scaled" && has 'mpsim.grads_scaled is' err; ok $? "nor what a file says itself"
run 0 advise "$charlm" && ! says 'do not say'; ok $? "recorded traces say it"

# ---- the narrowest format
file acts '"mpsim.step":"3"' act:three=3f800000,40000000,40400000 act:far=3f800000,0da24260 act:fine=3f807fff,0da24260
run 0 advise --csv "$dir/acts" && [ "$(column narrowest act:three)" = nvfp4 ]; ok $? "1, 2, 3 are numbers of e2m1"
[ "$(column narrowest act:far)" = bf16 ]; ok $? "1 and 1e-30: bf16 alone holds both"
run 0 advise --min-sqnr 60dB --csv "$dir/acts" && [ "$(column narrowest act:fine)" = binary32 ] && has 'bf16: SQNR 4[0-9.]* dB at step 3\|fp16: 50 % underflow'; ok $? "and where that is too coarse, nothing"
run 0 advise -f e5m2,bf16 --csv "$dir/acts" && [ "$(column narrowest act:three)" = e5m2 ]; ok $? "of the formats that are asked for"
run 0 advise "$dir/acts" && says 'whether bf16 would do is not known: the trace has no weights' && says 'FP4: not known' && says 'no gradients'; ok $? "what the trace does not tell is not known"

# ---- bf16 weights: below 1 its numbers are 2^-8 apart, so 1 - lr moves from more than 2^-9 on: lr 2^-8
file step '"mpsim.step":"5","mpsim.optimizer":"sgd","mpsim.lr":"0.000244140625","mpsim.momentum":"0","mpsim.weight_decay":"0","mpsim.dampening":"0"' \
    weight:fc.weight=3f800000,3f800000 wgrad:fc.weight=3f800000,3f800000
run 0 advise "$dir/step" && says 'alone 100 % of the updates are lost at step 5 (lr 0.000244); a learning rate 2^4 times as large (0.00391) would be needed to lose no more than 10 %' && run 0 advise --json "$dir/step" && has '"lr_enough": 0.00390625'; ok $? "updates are lost below lr 2^-8"
sed 's/0.000244140625/0.250000000000/' "$dir/step" >"$dir/fast"
run 0 advise --json "$dir/fast" && has '"lost": 0' && has '"lr_enough": 0.00390625' && has '"masters": false'; ok $? "and above it not, down to there"
run 0 advise --policy-out "$dir/p.yaml" "$dir/fast" && grep -q '^params: bf16' "$dir/p.yaml"; ok $? "then bf16 is advised"
sed 's/"sgd"/"abc"/' "$dir/step" >"$dir/other"
run 0 advise "$dir/other" && says 'not known: the trace does not name an optimizer'; ok $? "an optimizer that is not known"

sed 's/"mpsim.step":"5"/"mpsim.stop":"5"/' "$dir/step" >"$dir/when"
run 0 advise "$dir/when" && says 'not known: files do not say of which step'; ok $? "files without a step"

# ---- bounds kept in steps held back: nine of ten, with every bundled trace, and the one that is not is named
# kept TRACE K
kept() {
    run 0 advise -q --hold-back "$2" "$1" && has '^Held back: [0-9]* step' &&
        awk '/kept in/ { gsub(",", ""); for (i = 1; i <= NF; i++) if ($i == "of" && $(i + 1) + 0 > 0) { k = $(i - 1); n = $(i + 1) } if (k < 0.9 * n) bad = 1; lines++ } END { exit bad || lines < 2 }' "$dir/out"
}
turns 4
for k in 2 3; do
    for t in "$digits" "$charlm" "$amp/sgd" "$amp/adam" "$amp/adamw" "$amp/half"; do
        kept "$t" $k; ok $? "$(grep -c 'kept in' "$dir/out") sorts of advice kept: $(basename "$t"), every ${k}th step held back"
    done
done
turns 1
run 0 advise -q --hold-back 4 --json "$charlm" && has '"held_back": {"steps": 1, ' && has '"schema": "mpsim.advise/1"'; ok $? "JSON says so, too"

# ---- the policy: replayed, what is quantised loses no more than the bound, and what is excluded is in 16 bits
run 0 advise -q --policy-out "$dir/p.yaml" "$charlm" && grep -q '^fp8_exclude:' "$dir/p.yaml"; ok $? "a policy"
run 0 replay --csv --tensors -P "$dir/p.yaml" "$charlm" && awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    NR > 1 && $at["format"] ~ />/ { seen++; if ($at["underflow"] > 0.01 * $at["count"]) bad = 1 }
    END { exit bad || !seen }' "$dir/out"; ok $? "replayed: what is quantised keeps the bound"
turns 3
run 0 advise -q --compute fp16 --policy-out "$dir/q.yaml" "$charlm" && run 0 replay -P "$dir/q.yaml" "$charlm" && has 'scaler torch' && has '2^1[0-9]'; ok $? "in fp16, with its loss scale"
run 0 advise -q -f nvfp4,bf16 --max-underflow 100% --min-sqnr 12dB --policy-out "$dir/r.yaml" "$charlm" && says ' nvfp4 for 9 of 9' && run 0 replay -P "$dir/r.yaml" "$charlm"; ok $? "in four bits"
run 0 train -P "$dir/p.yaml" --width 8 --steps 2 --batch 8; ok $? "train takes it"
turns 1

file odd '"mpsim.step":"5","mpsim.optimizer":"sgd","mpsim.lr":"0.1"' 'act:a*[b]\"\\?c\u202e=3f800000,0da24260' act:plain=3f800000 weight:plain.weight=3f800000 wgrad:plain.weight=3f800000
run 0 advise -f fp16 --policy-out "$dir/odd.yaml" "$dir/odd" && [ "$(grep -c '^  - ' "$dir/odd.yaml")" -eq 1 ] && run 0 replay --json -P "$dir/odd.yaml" "$dir/odd" && has '"unmatched_patterns": ""'
ok $? "a layer whose name is no plain pattern is kept, and no other"

# ---- gates
"$MPSIM" advise -q --fail-if 'lost>50%,unscaled>5%,broken' "$charlm" >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] && has 'fail-if lost>50%: 21,661 of 32,256 updates lost in bf16 weights, 67.15 %$' err && has 'fail-if broken: nothing is held back' err && [ "$(wc -l <"$dir/err")" -eq 2 ]; ok $? "conditions that hold, and one that is not known"
run 0 advise -q --fail-if 'lost>70%,unscaled,excluded>=2' "$charlm"; ok $? "none holds"

# ---- threads, forms, bad input
turns 3
for threads in 1 3; do
    run 0 advise --json --threads $threads "$digits" && cp "$dir/out" "$dir/threads$threads"
done
due && cmp -s "$dir/threads1" "$dir/threads3"; ok $? "threads do not show"
run 0 advise -q --tensors "$amp/half" && has '^  wgrad:fc1.weight ' && run 0 advise -q --tensors "$digits" && has 'agrad:fc2 .* none'; ok $? "every tensor"
while read -r code text words; do
    # shellcheck disable=SC2086 # words
    (cd "$dir" && exec "$MPSIM" advise $words) >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq "$code" ] && [ ! -s "$dir/out" ] && one_line && has "$text" err; ok $? "refused: $words"
done <<'TABLE'
2 no.TRACE.given
2 not.one.of -f fp61 grads
2 all.steps --hold-back 1 grads
3 holds.back.none --hold-back 2 grads
2 is.not.a.number --max-underflow foo grads
2 is.not.a.share --max-underflow 101% grads
2 is.not.a.number --min-sqnr 25db grads
2 does.not.list --compute fp16 -f bf16 grads
2 not.one.of.bf16,.fp16 --compute fp8 grads
2 is.not.a.condition --fail-if sqnr grads
2 is.not.a.number --fail-if lost>x grads
2 exclude.each.other --json --csv grads
2 tensors.does.not.go.with.--json --json --tensors grads
2 same.place --policy-out x -o x grads
2 same.place --policy-out - grads
2 input --policy-out grads grads
2 only.once -
4 cannot.open none
TABLE
run 0 advise "$top/tests/trace/recorded/fsdp" && has '^6 tensors'
ok $? "a folder that is one trace can be read as often as needed"
finish
