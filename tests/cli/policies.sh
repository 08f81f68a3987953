#!/bin/sh
# policies.sh -- mpsim replay --policy: every bundled policy over recorded runs, alone and side by side;
# policies by name, from standard input, and bad ones.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
policies=$MPSIM_SRCDIR/data/policies
digits=$MPSIM_SRCDIR/data/digits-cnn
one=$digits/step_020000/rank_00000.safetensors

# replay POLICY TRACE: exit code 0, and no note but that of attention, of which a replay has no scales
replay() {
    "$MPSIM" replay --no-reference --policy "$1" "$2" >"$dir/out" 2>"$dir/err" &&
        ! grep -qv 'fp8_attention has no effect in a replay$' "$dir/err"
}

# ---- every bundled policy, alone and in the folder's table
for trace in $(turn digits-cnn charlm); do
    replay "$policies" "$MPSIM_SRCDIR/data/$trace" && cp "$dir/out" "$dir/table"
    ok $? "$trace: the folder of policies"
    [ "$(grep -c '^policy  *skipped' "$dir/table")" -eq 1 ]; ok $? "$trace: one table"
    awk '!NF || /^act, agrad/ { table = 0 } table { print $1 } /^policy  *skipped/ { table = 1 }' "$dir/table" >"$dir/rows"
    files=0
    for file in "$policies"/*.yaml; do
        name=${file##*/}
        name=${name%.yaml}
        files=$((files + 1))
        turns 15 together # the folder's table has them all
        due || { ok 1 "$name" && continue; }
        replay "$file" "$MPSIM_SRCDIR/data/$trace" && has "^policy  *$name\$" && has '^plan '
        ok $? "$trace: $name"
        [ "$(grep -c "^$name\$" "$dir/rows")" -eq 1 ]; ok $? "$trace: $name has one row in the table"
    done
    turns 1
    [ "$(wc -l <"$dir/rows")" -eq $files ]; ok $? "$trace: no other rows"
done

# ---- ways to a policy
run 0 replay --policy fp32 "$one" && cp "$dir/out" "$dir/want"; ok $? "a bundled policy by name"
run 0 replay -P "$policies/fp32.yaml" "$one" && cmp -s "$dir/out" "$dir/want"; ok $? "the same by its file"
if [ -e /proc/self/exe ]; then # a program that has only been built, in whatever folder
    (unset MPSIM_POLICIES && run 0 replay --policy fp32 "$one") && cmp -s "$dir/out" "$dir/want"; ok $? "the same without MPSIM_POLICIES"
fi
cp "$one" "$dir/one"
(cd "$dir" && printf 'clip: 1\n' >fp32 && "$MPSIM" replay --policy fp32 one >out 2>err) && has 'clip 1 (torch)'
ok $? "a file of that name in the current folder comes first"
"$MPSIM" replay --policy - "$one" <"$policies/fp32.yaml" >"$dir/out" 2>"$dir/err" && cmp -s "$dir/out" "$dir/want" && [ ! -s "$dir/err" ]
ok $? "from standard input"
run 0 replay --policy fp32 --policy apex-O2 "$one" && has '^fp32 ' && has '^apex-O2 '; ok $? "two side by side"
mkdir "$dir/mine"
printf 'precision: bf16\n' >"$dir/mine/b.yaml"
printf 'precision: fp16\n' >"$dir/mine/a.yaml"
printf 'presicion: fp16\n' >"$dir/mine/c.yml"
printf 'presicion: fp16\n' >"$dir/mine/.d.yaml"
run 0 replay --policy "$dir/mine" "$one" && [ "$(grep '^[ab]  ' "$dir/out" | cut -c1 | tr -d '\n')" = abab ]
ok $? "a folder: *.yaml in the order of their names, named after their files, in both tables"
mkdir "$dir/none"
run 3 replay --policy "$dir/none" "$one" && has 'no policy' err; ok $? "an empty folder"

# ---- bad ones: one line with the file, the line and the key
turns 8
# bad LINE TEXT FRAGMENT
bad() {
    printf '%b' "$2" >"$dir/bad.yaml"
    run 3 replay --policy "$dir/bad.yaml" "$one" && has "^mpsim: $dir/bad.yaml: line $1: .*$3" err
    ok $? "refused, line $1: $3"
}
bad 2 'precision: fp16\nclipp: 1\n' "unknown key 'clipp': did you mean clip?"
bad 3 '# one\n\nprecision: fp61\n' "precision: 'fp61'"
bad 2 'clip: 2\nmax_grad_norm: 1\n' 'max_grad_norm contradicts clip of line 1'
bad 2 'policy:\n  precison: bfloat16\n' "unknown key 'precison': did you mean precision?"
bad 4 'loss_scaling:\n  scaler: torch\n  init_scale: 4\n  growth_interval: 0\n' growth_interval
bad 3 'precision: fp16\nschedule:\n  - precision: bf16\n' 'step or epoch'
bad 2 'clip: 1\nclip: 2\n' 'stands twice'
bad 2 'clip: 1\nnote: *a\n' 'undefined alias'
bad 3 'clip: 1\n---\nclip: 2\n' 'second document'
bad 2 'clip:\n\tmax_norm: 1\n' 'not valid YAML'
bad 1 '"\\\\x1b[31m": 1\n' 'unknown key'
bad 1 '- a\n' 'key: value'
turns 1
: >"$dir/empty.yaml"
run 3 train -P "$dir/empty.yaml" && has "^mpsim: $dir/empty.yaml: no key is given: " err && [ ! -s "$dir/out" ]
ok $? "an empty file is no policy"
# said FRAGMENT TEXT: the policy is taken, and one line on standard error says what of it does not count
said() {
    due || return 1
    printf '%b' "$2" >"$dir/said.yaml"
    "$MPSIM" replay --policy "$dir/said.yaml" "$one" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq 0 ] && [ -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && has "^mpsim: note: $dir/said.yaml: $1" err
    ok $? "said: $1"
}
said 'line 1: precision fp16 does not count beside opt_level O2 of line 2' 'precision: fp16\nopt_level: O2\n'
said 'line 2: ignored in policy: model_name, train_global_batch_size$' '# a guide\npolicy:\n  model_name: m\n  train_global_batch_size: 512\n  precision: bfloat16\n  max_grad_norm: 1.0\n'
said 'line 1: precision float16: NeMo RL.s guide promises a loss scaler, but its DTensor worker has none' 'policy:\n  precision: float16\n'
said 'line 2: buffer_dtype does not count: buffers are not rounded$' 'param_dtype: bf16\nbuffer_dtype: bf16\n'
said 'line 3: max_grad_norm 1.0 does not count: gradient_clipping of line 2 turns the clip off' 'precision: bf16\ngradient_clipping: False\nmax_grad_norm: 1.0\n'
printf 'clipp: 1\n' | "$MPSIM" replay --policy - "$one" >"$dir/out" 2>"$dir/err"
[ $? -eq 3 ] && has '^mpsim: -: line 1: unknown key' err; ok $? "refused from standard input"
printf 'clipp: 1\n' >"$dir/mine/bad.yaml"
run 3 replay --policy "$dir/mine" "$one" && has "/mine/bad.yaml: line 1: " err; ok $? "one bad policy of a folder: no report"
said 'line 4: ignored beside policy: grpo, loss_fn, cluster, my_own$' 'grpo:\n  async_grpo: {enabled: false}\nloss_fn: {ratio_clip_c: null}\npolicy:\n  precision: bfloat16\n  max_grad_norm: 1.0\ncluster: {num_nodes: 1}\nmy_own: [1]\n'
said 'line 1: what defaults brings (grpo_math_1B.yaml) is not read' 'defaults: "grpo_math_1B.yaml"\npolicy:\n  precision: bfloat16\n'
bad 5 'policy:\n  precision: bfloat16\ngrpo:\n  seed: 1\nclipp: 1\n' "unknown key 'clipp': did you mean clip?"
run 4 replay --policy "$dir/missing.yaml" "$one" && has "^mpsim: $dir/missing.yaml: " err; ok $? "missing file"
run 4 replay --policy no-such-policy "$one" && has '^mpsim: no-such-policy: ' err; ok $? "no bundled policy of that name"
MPSIM_POLICIES=$dir/none run 4 replay --policy fp32 "$one"; ok $? "MPSIM_POLICIES says where"
run 2 replay "$one" && has policy err; ok $? "no policy"
finish
