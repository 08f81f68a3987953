#!/bin/sh
# explain.sh -- mpsim explain: every row is found from a mangled paste of its message, and is the first that is told.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# ---- every row ----
"$MPSIM" explain --json >"$dir/all"
# a line a form: NAME TEXT, with words and numbers where the message varies
awk '/"name"/ {
    name = $0; sub(/.*"name": "/, "", name); sub(/".*/, "", name)
    list = $0; sub(/.*"messages": \["/, "", list); sub(/"\], "meaning".*/, "", list)
    n = split(list, form, "\", \"")
    for (i = 1; i <= n; i++) { gsub(/\.\.\./, "of tensor 17, 2.5e-3,", form[i]); print name, form[i] }
}' "$dir/all" >"$dir/forms"
rows=$(grep -c '"name"' "$dir/all")
[ "$rows" -ge 30 ] && [ "$(wc -l <"$dir/forms")" -ge "$rows" ]; ok $? "$rows messages"

# what ranks, terminals and people do to a text
mangle() {
    { printf '%s\n' 'Traceback (most recent call last):' '  File "train.py", line 12, in <module>'; cat; } |
        tr '[:lower:]' '[:upper:]' | fold -w 37 | sed 's/^/[rank3]:  /'
}
bad=
awk -v dir="$dir" '{
    name = $1; sub(/^[^ ]* /, ""); text = toupper("RuntimeError: " $0 " (step 12)")
    for (; text != ""; text = substr(text, 38)) print "[rank3]:  " substr(text, 1, 37) >(dir "/paste" NR)
    close(dir "/paste" NR)
}' "$dir/forms"
i=0
while read -r name text; do
    i=$((i + 1))
    case $("$MPSIM" explain --json - <"$dir/paste$i" 2>&1) in
    *'"found": [
 {"name": "'"$name"'"'*) ;;
    *) bad="$bad $name" ;;
    esac
done <"$dir/forms"
[ -z "$bad" ]; ok $? "each is found first from a mangled paste$bad"
cut -d ' ' -f 2- "$dir/forms" | mangle | "$MPSIM" explain --json - >"$dir/out" && [ "$(grep -c '"name"' "$dir/out")" -eq "$rows" ]
ok $? "all of them in one paste are told"

# policies and commands that are named exist
policies=$(sed -n 's/.*"policy": "\([^"]*\)".*/\1/p' "$dir/all" | sort -u)
bad=
for p in $policies; do [ -f "$MPSIM_SRCDIR/data/policies/$p.yaml" ] || bad="$bad $p"; done
for p in $(grep -o 'replay -P [^ ]*' "$dir/all" | cut -d ' ' -f 3 | sort -u); do
    [ -f "$MPSIM_SRCDIR/data/policies/$p.yaml" ] || bad="$bad $p"
done
[ -n "$policies" ] && [ -z "$bad" ]; ok $? "the policies exist$bad"
bad=
grep -o 'mpsim \(formats\|scaler --pattern\) [^"]*' "$dir/all" | sort -u >"$dir/commands"
while read -r _ line; do
    eval "\"\$MPSIM\" $line" >/dev/null 2>"$dir/err" </dev/null || [ $? -eq 1 ] || bad="$bad; $line"
done <"$dir/commands"
[ -s "$dir/commands" ] && [ -z "$bad" ]; ok $? "commands that need no file run$bad"

# ---- the screen ----
run 0 explain 'ValueError: Attempting to unscale FP16 gradients.' && has '^PyTorch: Attempting to unscale FP16 gradients$' &&
    has '^  policy    pytorch-amp-fp16' && has '^  source  .*grad_scaler.py' && ! awk 'length > 100' "$dir/out" | grep -q .
ok $? "the screen"
run 0 explain attempting to unscale fp16 && has 'unscale FP16 gradients'; ok $? "a piece, without quotes"
run 0 explain torch-unscale-fp16 && has '^PyTorch: Attempting'; ok $? "by name"
run 0 explain "\"_amp_foreach_non_finite_check_and_unscale_cuda\" not implemented for 'BFloat16'" && has 'PyTorch' && ! has Half
ok $? "bf16 is not fp16"
run 0 explain && has '^torch-unscale-fp16 ' && cp "$dir/out" "$dir/list" && run 0 explain --list && cmp -s "$dir/list" "$dir/out"; ok $? "the list"

run 0 explain --csv && has '^name,framework,meaning,cause,cure,policy,source$' && has '^torch-unscale-fp16,PyTorch,'; ok $? "csv"

# ---- what is not known ----
run 3 explain 'CUDA out of memory' && has "no message that is known; 'mpsim explain --list'" err; ok $? "not known"
run 3 explain 'tried to unscale FP16 gradients twice, attempting' && has 'the nearest is PyTorch' err && has 'explain torch-unscale-fp16' err
ok $? "the nearest"
run 3 explain ''; ok $? "nothing at all"
run 2 explain --list x; ok $? "--list with a message"
run 0 explain 'Batch 3: Invalid loss, terminating training' && has '^Keras' && run 0 explain 'NaN or Inf found in input tensor.' && has '^tensorboardX'; ok $? "Keras' and tensorboardX's"
finish
