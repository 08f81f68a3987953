#!/bin/sh
# mismatch.sh -- mpsim mismatch: a case by hand, the same log-probabilities by diff --logprob, files of every kind, bad input (usage errors: mismatch.md).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
real=$MPSIM_SRCDIR/data/digits-cnn/step_020000/rank_00000.safetensors

# npy FILE DESCR SHAPE OCTAL...: an npy file of these bytes
npy() {
    to=$1 header="{'descr': '$2', 'fortran_order': ${fortran:-False}, 'shape': ($3), }"
    shift 3
    {
        printf '\223NUMPY\1\0\166\0%s%*s\n' "$header" $((118 - ${#header} - 1)) ''
        for x in "$@"; do printf "$x"; done
    } >"$dir/$to.npy"
}
zero='\0\0\0\0' one='\0\0\200\077' two='\0\0\0\100' third='\253\252\252\076' big='\0\044\164\111'

# ---- by hand: two tokens, three words. Logits of (1, 0): 1, 0, 2; of (0, 2): 0, 2, 0. log p of words 0 and 1: 1 - log(e + 1 + e^2) =
# -1.407606, 2 - log(2 + e^2) = -0.239545
npy h '<f4' 2,2 $one $zero $zero $two
npy w '<f4' 3,2 $one $zero $zero $one $two $zero
npy t '<i8' 2, '\0\0\0\0\0\0\0\0' '\1\0\0\0\0\0\0\0'
set -- --hidden "$dir/h.npy" --head "$dir/w.npy"
run 0 mismatch -a fma -b exact,logits=bf16 "$@" --tokens "$dir/t.npy" --csv &&
    awk -F, 'NR == 2 { e = exp(1); want = 1 - log(e + 1 + e * e); if ($2 != 0 || ($5 - want)^2 > 1e-28 || ($3 - want)^2 > 1e-13) exit 1 }
        NR == 3 { e = exp(1); want = 2 - log(2 + e * e); if ($2 != 1 || ($5 - want)^2 > 1e-28 || $3 != $4 || $6 != 0) exit 1 } END { if (NR != 3) exit 1 }' "$dir/out"
ok $? "two tokens by hand"
cp "$dir/out" "$dir/csv"
# the same log-probabilities, told by diff --logprob: the same words
run 0 mismatch -a hopper-bf16-fp32,softmax=bf16 -b fma --count 40 --csv --worst 0
awk -F, -v to="$dir" 'NR > 1 { print $3 >(to "/a"); print $4 >(to "/b") }' "$dir/out"
cp "$dir/out" "$dir/tokens"
run 0 mismatch -a hopper-bf16-fp32,softmax=bf16 -b fma --count 40 --worst 0 && sed -n '/^B - A/,/^KL/p' "$dir/out" >"$dir/told" && [ -s "$dir/told" ]
ok $? "what is told of 40 tokens"
awk -F, 'NR > 1 { d = $4 - $3; s += d; m += d < 0 ? -d : d; r = exp(d); k += r - 1 - d; if (r < 0.999 || r > 1.001) o++ }
    END { printf "%.4e %.4e %.3e %d\n", s / 40, m / 40, k / 40, o }' "$dir/tokens" >"$dir/want"
run 0 mismatch -a hopper-bf16-fp32,softmax=bf16 -b fma --count 40 --json --clip 0.001 &&
    awk -v want="$(cat "$dir/want")" '/^"tokens": / {
        seen = split(want, w, " ")
        if (!match($0, /"mean": [-0-9.e]+, "mean_magnitude": [0-9.e-]+, "deviation"/)) exit 1
        s = substr($0, RSTART, RLENGTH); gsub(/[^-0-9.e ]/, "", s); split(s, x, " ")
        for (i in x) if (x[i] ~ /[0-9]/) v[++n] = x[i]
        match($0, /"k3": [-0-9.e]+/); k = substr($0, RSTART + 6, RLENGTH - 6); match($0, /"outside": [0-9]+/); o = substr($0, RSTART + 11, RLENGTH - 11)
        if (sprintf("%.4e", v[1]) != w[1] || sprintf("%.4e", v[2]) != w[2] || sprintf("%.3e", k) != w[3] || o != w[4]) exit 1 }
        END { exit !seen }' "$dir/out"
ok $? "means, k3 and the band are those of the tokens ($(cat "$dir/want"))"

run 0 mismatch -a hopper-bf16-fp32,softmax=bf16 -b fma --count 40 --ndjson &&
    sed 's/"[a-z_]*": //g; s/[{}]//g; s/, /,/g' "$dir/out" | awk -F, -v OFS=, '{ for (i = 3; i < 7; i++) $i = sprintf("%.12g", $i); print }' >"$dir/lines" &&
    awk -F, -v OFS=, 'NR > 1 { for (i = 3; i < 7; i++) $i = sprintf("%.12g", $i); print }' "$dir/tokens" | cmp - "$dir/lines"
ok $? "a line for each token as in the CSV"

# ---- what one expects of formats and orders
mean() { # of |A - exact| in the JSON report
    sed -n 's/.*"a": {"count": [0-9]*, "mean": [-0-9.e]*, "mean_magnitude": \([0-9.e-]*\).*/\1/p' "$dir/out"
}
run 0 mismatch -a hopper-fp16-fp32 -b fma --json && fp16=$(mean) && run 0 mismatch -a hopper-bf16-fp32 -b fma --json && bf16=$(mean) &&
    run 0 mismatch -a fma -b fma --json && binary32=$(mean) &&
    awk -v a="$fp16" -v b="$bf16" -v c="$binary32" 'BEGIN { exit !(b > 5 * a && b < 11 * a && a > 100 * c && c > 0) }'
ok $? "bf16, of three bits less, is 5 to 11 times farther from exact than fp16, and binary32 far nearer: ${bf16:-} ${fp16:-} ${binary32:-}"
run 0 mismatch -a fma -b fma && has '; 100 % equal' && has 'KL(A || B): mean 0, largest 0; the most likely one differs at 0 tokens'; ok $? "a side beside itself"
run 0 mismatch -a hopper-bf16-fp32,split=3 -b hopper-bf16-fp32 && has 'K in 3 parts kept in binary32, added in binary32' && ! has '; 100 % equal' && has ' 0 of the tokens outside'
ok $? "another order of the sum"
turns 3
run 0 mismatch -a hopper-fp16-fp16 -b fma --spread 30000 --worst 1 && has '^A - exact  *256 not finite$' && has '^256 left out below' && has ' nan '; ok $? "logits beyond fp16"
for threads in 1 3; do
    run 0 mismatch -a ampere-bf16-fp32,split=2 -b fma --json --threads $threads && cp "$dir/out" "$dir/threads$threads"
done
due && cmp -s "$dir/threads1" "$dir/threads3"; ok $? "threads do not show"
run 0 mismatch -a fma -b fma --seed 2 --csv && cp "$dir/out" "$dir/two" && run 0 mismatch -a fma -b fma --csv && ! cmp -s "$dir/out" "$dir/two"; ok $? "another seed"

# ---- files
turns 1
npy short '<u2' '2,1' '\0\0' '\1\0'
npy other '>i4' 2, '\0\0\0\0' '\0\0\0\1'
npy whole '<f4' 2, $zero $one
for tokens in short other whole; do
    run 0 mismatch -a fma -b exact,logits=bf16 "$@" --tokens "$dir/$tokens.npy" --csv && cmp -s "$dir/out" "$dir/csv"; ok $? "tokens: $tokens"
done
run 0 mismatch -a fma -b exact,logits=bf16 --dtype binary32 --offset 128 --shape '*,2' "$@" --tokens "$dir/t.npy" --csv && cmp -s "$dir/out" "$dir/csv"; ok $? "raw hidden states and weights"
npy h3 '<f4' 2,1,2 $one $zero $zero $two
run 0 mismatch -a fma -b fma --hidden "$dir/h3.npy" --head "$dir/w.npy" --json && has '"sequences": 2'; ok $? "two sequences"
run 0 mismatch -a fma -b hopper-bf16-fp32 --hidden "$real" --hidden-name act:fc1 --head "$real" --head-name weight:fc1.weight && has '^H  act:fc1, 32 tokens of 64 numbers' &&
    has '^tokens drawn from A, seed 1'; ok $? "tensors of a trace"

# Scores are 0: attention gives v0, then (v0 + v1) / 2, of v0 = (1, 0) and v1 = (0, 2). Divided by their root mean square: (r, 0), (1, 2) r / sqrt(5).
npy q '<f4' 2,2 $zero $zero $zero $zero
run 0 mismatch -a fma,kv=bf16 -b fma --query "$dir/q.npy" --key "$dir/h.npy" --value "$dir/h.npy" --head "$dir/w.npy" --tokens "$dir/t.npy" --csv &&
    awk -F, 'function near(x, y) { return (x - y)^2 < 1e-12 } NR == 1 { r = sqrt(2); next }
        NR == 2 { if (!near($3, r - log(exp(r) + 1 + exp(2 * r))) || $3 != $4) exit 1 }
        NR == 3 { x = r / sqrt(5); if (!near($3, 2 * x - log(exp(x) + exp(2 * x) + exp(2 * x))) || $3 != $4) exit 1 } END { if (NR != 3) exit 1 }' "$dir/out"
ok $? "attention of two tokens by hand"
run 0 mismatch -a fma,kv=e4m3 -b fma --query "$dir/q.npy" --key "$dir/h.npy" --value "$dir/h.npy" --hidden "$dir/h.npy" --head "$dir/w.npy" --json &&
    has '"hidden": ".*h.npy", "query": ".*q.npy"' && has '"kv": "e4m3", "kv_scale": "tensor"'; ok $? "attention beside hidden states"

# ---- bad input
npy narrow '<f4' 3,1 $one $zero $zero
npy flat '<f4' 2, $one $zero
npy one '<f4' 1,2 $one $zero
npy nan '<f4' 2,2 $one '\0\0\300\177' $zero $one
npy none '<f4' 0,2
npy large '<f4' 2,2 $big $zero $zero $one
npy beyond '<i4' 2, '\0\0\0\0' '\3\0\0\0'
npy negative '<i4' 2, '\0\0\0\0' '\377\377\377\377'
npy three '<i4' 3, '\0\0\0\0' '\0\0\0\0' '\0\0\0\0'
npy part '<f4' 2, $third $one
npy flags '|b1' 2, '\0' '\1'
npy deep '<f4' 1,1,1,1,1,1,1,1,1 $one
fortran=True npy columns '<i4' 2,1 '\0\0\0\0' '\1\0\0\0'
refused() { # refused CODE TEXT WORD...: with fma on both sides
    code=$1 text=$2
    shift 2
    run "$code" mismatch -a fma -b fma "$@" && has "$text" err; ok $? "refused: $text"
}
h=$dir/h.npy w=$dir/w.npy
refused 3 'have 2 numbers and rows of --head (.*) 1, which must be the same' --hidden "$h" --head "$dir/narrow.npy"
refused 3 'has the shape \[2\]; expected \[tokens, size\]' --hidden "$dir/flat.npy" --head "$w"
refused 3 'has the shape \[2\]; expected \[vocabulary, size\]' --hidden "$h" --head "$dir/flat.npy"
refused 3 'element 1 is NaN: only finite numbers' --hidden "$dir/nan.npy" --head "$w"
refused 3 'the tensor is empty' --hidden "$dir/none.npy" --head "$w"
refused 3 'token 1 is 3: expected 0 to 2' --hidden "$h" --head "$w" --tokens "$dir/beyond.npy"
refused 3 'token 1 is -1: expected 0 to 2' --hidden "$h" --head "$w" --tokens "$dir/negative.npy"
refused 3 'token 0 is 0.333333: expected 0 to 2' --hidden "$h" --head "$w" --tokens "$dir/part.npy"
refused 3 'no tensor of floating-point numbers' --hidden "$h" --head "$dir/negative.npy"
refused 3 'i4 is not a floating-point dtype' --hidden "$h" --head "$dir/negative.npy" --head-name '*'
refused 3 'has the shape \[1, 1, 1, 1, 1, 1, 1, 1, 1\]; expected \[vocabulary, size\]' --hidden "$h" --head "$dir/deep.npy"
refused 3 '3 tokens; the hidden states are of 2' --hidden "$h" --head "$w" --tokens "$dir/three.npy"
refused 3 'tokens must be integers, not |b1' --hidden "$h" --head "$w" --tokens "$dir/flags.npy"
refused 3 'tokens are column-major' --hidden "$h" --head "$w" --tokens "$dir/columns.npy"
refused 3 'K has 3 tokens and V 2, which must be the same' --query "$h" --key "$dir/narrow.npy" --value "$h" --head "$w"
refused 3 'has 1 rows of 2 numbers and attention 2 rows of 2, which must be the same' --query "$h" --hidden "$dir/one.npy" --head "$w"
refused 3 'rows of attention (.*) have 2 numbers and rows of --head (.*) 1' --query "$h" --head "$dir/narrow.npy"
refused 4 'cannot open' --hidden "$h" --head "$dir/missing"
run 3 mismatch -a fma -b hopper-fp16-fp32 --hidden "$dir/large.npy" --head "$w" && has 'side B: --hidden: 1 of [0-9]* elements are beyond the largest number of fp16' err; ok $? "operands beyond a format"
turns 3
refused 2 'hidden needs --head' --hidden "$h"
refused 2 'are for generated operands' --hidden "$h" --head "$w" --count 3
refused 2 'a FILE: name files with' x
finish
