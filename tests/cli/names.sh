#!/bin/sh
# names.sh -- names of other programs: kinds by convention and by --map, in every command that reads traces; the same
# step in two forms; one unreadable file of several.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
data=$MPSIM_SRCDIR/data

# rename SCRIPT FROM TO: a safetensors file whose names sed has changed
rename() {
    bytes=$(od -An -tu8 -N8 "$2")
    header=$(tail -c +9 "$2" | head -c "$((bytes))" | sed -E "$1") # ASCII
    size=${#header} length=
    for shift in 0 8 16 24; do
        byte=$((size >> shift & 255))
        length=$length\\$((byte >> 6))$((byte >> 3 & 7))$((byte & 7))
    done
    {
        # shellcheck disable=SC2059 # octal
        printf "$length\0\0\0\0"
        printf %s "$header"
        tail -c +$((9 + bytes)) "$2"
    } >"$3"
}

# renamed NAME TRACE SCRIPT: NAME/run, a copy of TRACE
renamed() {
    for step in "$2"/step_*; do
        mkdir -p "$dir/$1/run/${step##*/}"
        rename "$3" "$step/rank_00000.safetensors" "$dir/$1/run/${step##*/}/rank_00000.safetensors" || return 1
    done
}

# k FROM TO: names of kind FROM become TO
k() { printf 's#"%s:([^"]*)":\\{#"%s":{#g;' "$1" "$2"; }
mkdir "$dir/short"
cp -r "$data"/amp-mlp/adam/step_00000* "$dir/short"
chmod -R u+w "$dir/short"
# ready NAME: the folder of that name, made when a case asks for it
ready() {
    [ ! -d "$dir/$1" ] || return 0
    case $1 in
    mpsim) renamed mpsim "$dir/short" '' ;;
    torch) renamed torch "$dir/short" "$(k weight 'model\/\1')$(k wgrad 'grads\/\1')$(k opt.m 'optimizer\/state\/\1\/exp_avg')$(
        k opt.v 'optimizer\/state\/\1\/exp_avg_sq')" ;;
    dcp) renamed dcp "$dir/short" "$(k weight 'model._orig_mod.\1')$(k wgrad '\1.grad')$(k opt.m 'optim.state.\1.exp_avg')$(
        k opt.v 'optim.state.\1.exp_avg_sq')" ;;
    megatron) renamed megatron "$dir/short" "$(k weight 'module.\1')$(k wgrad 'module.\1.main_grad')$(
        k opt.m 'optimizer.state.exp_avg.module.\1')$(k opt.v 'optimizer.state.exp_avg_sq.module.\1')" ;;
    flax) renamed flax "$dir/short" 's#"(weight|wgrad|opt.m|opt.v):([^".]*)[.]([^"]*)":#"\1:\2/\3":#g;'"$(
        k weight 'params\/\1')$(k wgrad 'grads\/\1')$(k opt.m 'opt_state\/0\/mu\/\1')$(k opt.v 'opt_state\/0\/nu\/\1')" ;;
    esac
}
renamed own "$dir/short" "$(k weight 'w-\1')$(k wgrad 'g-\1')$(k opt.m 'm-\1')$(k opt.v 'v-\1')"
cat >"$dir/own/run/mpsim-names.map" <<'END'
# what our own script calls things
w-(.*)=weight:\1
g-(.*)=wgrad:\1    # before unscaling

  [m]-(.*)=opt.m:\1
v-(.*)=opt.v:\1
END

# in FOLDER ARGUMENT...: the report of ./run there; what is said aside is in err
in_folder() {
    due || return 1
    folder=$1
    shift
    ready "$folder"
    (cd "$dir/$folder" && "$MPSIM" "$@" run) >"$dir/out" 2>"$dir/err" </dev/null
}
for command in 'replay --json --policy pytorch-amp-fp16' 'replay --policy te-mxfp8' 'replay --csv --policy apex-O2' \
    'stat --csv --level kind -k wgrad,opt.v' 'stat --csv --level kind -s 2^10' 'stat --csv --level step'; do
    turns 1
    # shellcheck disable=SC2086 # words
    in_folder mpsim $command && cp "$dir/out" "$dir/expected" && [ -s "$dir/expected" ]
    ok $? "$command"
    turns 8
    for convention in torch dcp megatron flax own; do
        # shellcheck disable=SC2086 # words
        in_folder $convention $command && cmp "$dir/expected" "$dir/out" >>"$dir/err"
        ok $? "$command: the same by the names of $convention"
    done
done

# ---- info ----
in_folder torch info && has '^  names: PyTorch checkpoint, gradients$' &&
    has 'optimizer/state/fc1.weight/exp_avg_sq  *opt.v:fc1.weight ' && [ ! -s "$dir/err" ]
ok $? "info: whose names they are, and what each is"
in_folder torch info --json && has '"names": "PyTorch checkpoint, gradients", "without_kind": 0' &&
    has '"name": "grads/fc1.weight", "kind": "wgrad", "fqn": "fc1.weight"'
ok $? "info --json: the same"
in_folder megatron info && has '^  names: Megatron-Core, gradients$'; ok $? "info: Megatron"
in_folder flax info && has '^  names: Flax, gradients$' && has 'weight:fc1.weight '; ok $? "info: Flax"
in_folder mpsim info && ! has names; ok $? "info: nothing is said of mpsim's own names"
in_folder own info && has '^  names: run/mpsim-names.map$' && has 'note: names by run/mpsim-names.map (4 rules)' err
ok $? "a map beside a trace is used, and said"
turns 1
(cd "$dir/own/run" && "$MPSIM" info step_000001/rank_00000.safetensors) >"$dir/out" 2>"$dir/err"
has '^  names: mpsim-names.map$'; ok $? "it is found from one file of the trace"
in_folder own stat -q && [ ! -s "$dir/err" ] && in_folder own stat --json && has '"map": {"run/mpsim-names.map": \["w-(.\*)=weight:'
ok $? "stat: rules are in the configuration of a report; --quiet"
mkdir "$dir/theirs" && cp -r "$dir/own/run" "$dir/theirs/run" && theirs=$dir/theirs/run/mpsim-names.map
if chown 12345 "$theirs" 2>/dev/null; then
    "$MPSIM" stat -q "$dir/theirs/run/step_000001/rank_00000.safetensors" >"$dir/out" 2>"$dir/err" &&
        has 'note: names by .*/mpsim-names.map (4 rules), a file of another user above what was named' err
    ok $? "-q: a map of another user above the file that is named is told of"
    run 0 stat -q "$dir/theirs/run" && [ ! -s "$dir/err" ]; ok $? "not one in a folder that is named"
else
    echo "ok $((n += 1)) - -q: a map of another user # SKIP only root can make one"
fi
rm -rf "$dir/bare" && mkdir "$dir/bare" && cp -r "$dir/own/run" "$dir/bare/run" && mv "$dir/bare/run/mpsim-names.map" "$dir/own.map"
in_folder bare info && has '^  names: of no convention that is known; 16 tensors without a kind (see --map)$'; ok $? "info: names that nothing is known of"

# ---- --map ----
turns 6
in_folder bare stat --csv --level kind -k wgrad --map 'g-(.*)=wgrad:\1' && cp "$dir/out" "$dir/given" &&
    in_folder mpsim stat --csv --level kind -k wgrad && cmp "$dir/out" "$dir/given" >"$dir/err"; ok $? "--map"
in_folder bare replay --json --policy pytorch-amp-fp16 --map "@$dir/own.map" && cp "$dir/out" "$dir/given" &&
    in_folder mpsim replay --json --policy pytorch-amp-fp16 && cmp "$dir/out" "$dir/given" >"$dir/err"; ok $? "--map @FILE"
in_folder own info --map '[wm]-(.*)=none' && has '^  names: run/mpsim-names.map; 8 tensors without a kind'
ok $? "--map comes before the file beside the trace, and takes kinds away"
in_folder torch info --map 'grads/(.*)=agrad:\1' && has 'names: --map, PyTorch checkpoint$' && has 'agrad:fc1.weight'
ok $? "--map comes before conventions"
one=$dir/bare/run/step_000001
run 2 stat --map 'g-(.*=wgrad:\1' "$one" && has "stat: --map: 'g-(.\*=wgrad:.1': at 3: a parenthesis that is not closed" err
ok $? "an error of a rule says where"
run 2 info --map 'g=grad:x' "$one" && has 'at 3: not one of weight act' err; ok $? "a kind that is none"
run 2 replay --policy fp32 --map 'x' "$one" && has 'expected REGEX=KIND:NAME' err; ok $? "no rule"
printf '# rules\n\ng-(.*)=wgrad:\\1\nv-.*=opt.v:\\1\n' >"$dir/bad.map"
run 3 stat --map "@$dir/bad.map" "$one" && has 'bad.map: line 4: at 12: so many parentheses are not in the pattern' err
ok $? "an error in a file of rules: file, line and place"
run 4 stat --map "@$dir/none.map" "$one"; ok $? "a file of rules that is not there"
head -c 200000 /dev/zero | tr '\0' '#' >"$dir/bad.map"
run 3 stat --map "@$dir/bad.map" "$one"; ok $? "a file of rules that is too large"
cp "$dir/bad.map" "$dir/bare/run/mpsim-names.map"
run 3 stat "$one"; ok $? "the same beside the trace"
rm "$dir/bare/run/mpsim-names.map"
run 3 stat --map '[wg]-(.*)=wgrad:\1' "$one" &&
    has "step_000001/rank_00000.safetensors: --map: 'w-fc1.bias' and 'g-fc1.bias' would both be wgrad:fc1.bias" err
ok $? "two that would be the same by --map"
run 2 stat -o "$dir/own/run/mpsim-names.map" "$dir/own/run" >/dev/null 2>&1; [ "$(wc -l <"$dir/own/run/mpsim-names.map")" -eq 6 ]
ok $? "a report does not replace the rules"
cp "$dir/own.map" "$dir/short/mpsim-names.map"
run 0 stat -q --dtype e4m3 --csv --level total "$dir/short/" && mv "$dir/out" "$dir/with" && rm "$dir/short/mpsim-names.map" &&
    run 0 stat -q --dtype e4m3 --csv --level total "$dir/short/" && cmp "$dir/with" "$dir/out" >"$dir/err"
ok $? "--dtype: the rules are no data"

# ---- two that would be the same by a convention ----
mkdir "$dir/clash"
rename 's#"wgrad:#"state_dict/#g; s#"weight:#"model/#g' "$dir/short/step_000001/rank_00000.safetensors" "$dir/clash/step_1.safetensors"
run 0 stat -q "$dir/clash" && run 0 info "$dir/clash" &&
    has "not told apart: 'model/fc1.bias' and 'state_dict/fc1.bias' would both be weight:fc1.bias"
ok $? "conventions that clash: said by info, no matter to stat"
for command in 'stat -k weight' 'replay --policy fp32' scaler 'scaler --adaptive'; do
    # shellcheck disable=SC2086 # words
    run 3 $command "$dir/clash" && has "'model/fc1.bias' and 'state_dict/fc1.bias' would both be weight:fc1.bias (PyTorch" err
    ok $? "$command: an error that names both"
done
run 0 stat -q -k weight --map 'state_dict/.*=none' "$dir/clash"; ok $? "--map tells them apart"

# ---- the same step in two forms ----
turns 1
ready torch
mkdir -p "$dir/forms/checkpoint-3"
cp "$dir/short/step_000003/rank_00000.safetensors" "$dir/forms/step_3.safetensors"
cp "$dir/torch/run/step_000003/rank_00000.safetensors" "$dir/forms/checkpoint-3/model.pt"
for command in 'stat' 'info' 'replay --policy fp32' 'scaler'; do
    # shellcheck disable=SC2086 # words
    "$MPSIM" $command "$dir/forms" >"$dir/out" 2>"$dir/err"
    [ "$(grep -c 'the same tensors twice, in two forms: step 3 is in .*/checkpoint-3/model.pt (safetensors) and in .*/step_3.safetensors' "$dir/err")" -eq 1 ]
    ok $? "$command: a step in two forms is said, once"
done
mkdir "$dir/ranks"
cp "$dir/short/step_000003/rank_00000.safetensors" "$dir/ranks/rank_0_step_3.safetensors"
cp "$dir/torch/run/step_000003/rank_00000.safetensors" "$dir/ranks/rank_1_step_3.safetensors"
cp "$dir/short/step_000003/rank_00000.safetensors" "$dir/ranks/rank_0_step_3-copy.safetensors"
run 0 stat "$dir/ranks"; ok $? "other ranks, and files of the same form, are no matter"

# ---- what is no file of tensors says what it is ----
mkdir "$dir/other"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n' >"$dir/other/model.safetensors"
run 3 info "$dir/other/model.safetensors" && has 'a Git LFS pointer.*run git lfs pull$' err
ok $? "bug_20261123_git_lfs_pointer"
run 3 info "$dir/other" && has 'other/model.safetensors: .*a Git LFS pointer' err; ok $? "and is not passed over in a folder"
while IFS='|' read -r text what; do
    # shellcheck disable=SC2059 # octal
    printf "$text" >"$dir/other.pt"
    run 3 info "$dir/other.pt" && has "ONNX or llm.c file but $what" err
    ok $? "a file that is $what"
done <<'TABLE'
\n<!DOCTYPE html>\n<html><body>404</body></html>|a page of HTML
{"architectures": ["LlamaForCausalLM"]}|JSON
\357\273\277 [1, 2, 3, 4]|JSON
<?xml version="1.0"?><a/>|XML
a line of text\nand another, gr\303\274n\n|text
\030\0\0\0\0\0\0\0\243\177\113\042\011\0\0\0\0\0\0\360\077\032\015brain.Event:2\0|an event file of TensorBoard, which is not read: export its scalars as CSV
\034\000\000\000TFL3\024\000\040\000|a TensorFlow Lite model
TABLE
printf 'a line\377 that is no text' >"$dir/other.pt"
run 3 info "$dir/other.pt" && has 'as safetensors: header length' err; ok $? "and one that is nothing known"

# ---- a kind alone: {n: p.grad for n, p in model.named_parameters()}, and a checkpoint that calls its optimizer "opt"
st() { # st NAME HEADER BYTES: a safetensors file of so many zeros
    printf "\\$(printf %03o $((${#2} % 256)))\\$(printf %03o $((${#2} / 256)))\\0\\0\\0\\0\\0\\0%s" "$2" >"$dir/$1"
    head -c "$3" /dev/zero >>"$dir/$1"
}
st bare.safetensors '{"fc1.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"fc1.bias":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}' 24
st opt.safetensors '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"n":{"dtype":"I64","shape":[],"data_offsets":[8,16]},"opt/state/0/exp_avg":{"dtype":"F32","shape":[2],"data_offsets":[16,24]},"opt/state/0/step":{"dtype":"F32","shape":[],"data_offsets":[24,28]}}' 28
for command in 'stat -q -k wgrad' scaler; do
    # shellcheck disable=SC2086 # words
    run 3 $command "$dir/bare.safetensors" && has '2 tensors have no kind; --map wgrad says what they are$' err &&
        run 0 $command --map wgrad "$dir/bare.safetensors" && has '2 gradient tensors, 6 elements\|wgrad  *2  *6 '
    ok $? "bug_20261127_a_file_of_gradients_by_bare_names: $command"
done
run 0 info --map wgrad "$dir/opt.safetensors" && has '^  w  *wgrad:w ' && has '^  n  *-  *I64 ' && has '^  opt/state/0/exp_avg  *opt.m:0 ' && has '^  opt/state/0/step  *-  *F32 '
ok $? "a kind alone is that of tensors without one; moments under \"opt\""
run 2 info --map grad "$dir/opt.safetensors" && has 'or a kind, as wgrad$' err; ok $? "a word that is no kind"

# ---- one unreadable file of several ----
mkdir "$dir/cut"
cp "$dir/short/step_000001/rank_00000.safetensors" "$dir/cut/a.safetensors"
head -c 3000 "$dir/cut/a.safetensors" >"$dir/cut/b.safetensors"
for command in stat info scaler 'scaler --adaptive'; do
    # shellcheck disable=SC2086 # words
    run 3 $command "$dir/cut" 2>/dev/null; has 'b.safetensors.*(--keep-going goes on without such files)$' err
    ok $? "$command: --keep-going is named"
done
run 3 stat "$dir/cut/b.safetensors" && ! has keep-going err; ok $? "but not for a single file"
run 3 replay --policy fp32 "$dir/cut" && ! has keep-going err; ok $? "nor where there is no such option"
finish
