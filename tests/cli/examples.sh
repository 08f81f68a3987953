#!/bin/sh
# examples.sh -- every example of a manual page, and every command that a page of doc/ or data/ shows without its output, runs:
# it ends with 0 (1 where it judges), and no line is an error. The manual page and --help show the same ones.
#
# The files that examples name (trace/, model.safetensors, train.log, ...) are made here, in a folder of their own for each page.
# Screens with their output are tests/cli/doc.sh's. A tenth of the pages a day. Of trainings that take minutes two steps are made,
# all of them with MPSIM_TEST_EXPENSIVE=1.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
mkdir "$dir/bin" "$dir/files"
ln -s "$MPSIM" "$dir/bin/mpsim"
# clients of stores that are not here: what they would fetch
printf '#!/bin/sh\ngzip -c grads.safetensors\n' >"$dir/bin/aws"
printf '#!/bin/sh\ncat grads.safetensors\n' >"$dir/bin/rclone"
printf '#!/bin/sh\ntail -c 1048576 grads.safetensors\n' >"$dir/bin/curl"
chmod +x "$dir"/bin/*
PATH=$dir/bin:$PATH PYTHON=true # which runs every script of emulate
export PATH PYTHON

# ---- the files ----
# safetensors FILE HEADER SIZE: a file of this header; elements are the last bytes of a recorded one
safetensors() {
    { printf '%b%s' "$(printf '\\0%o\\0%o\\0\\0\\0\\0\\0\\0' $((${#2} % 256)) $((${#2} / 256)))" "$2" && tail -c "$3" "$lm"; } >"$1"
}
# npy FILE DESCR SHAPE SIZE: the same of an npy file
npy() {
    header="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
    { printf '\223NUMPY\1\0\166\0%s%*s\n' "$header" $((118 - ${#header} - 1)) '' && cat; } >"$1"
}
lm=$top/data/charlm/step_012000/rank_00000.safetensors
(
    cd "$dir/files" || exit
    cp -r "$top/data/digits-cnn" trace
    cp -r "$top/data/amp-mlp/sgd" run-a
    cp -r "$top/data/amp-mlp/adam" run-b
    ln -s ../bin/mpsim mpsim
    cp "$top/tests/trace/torch/torch-2.6.0/train.zip.pt" grads.pt
    for folder in data tests; do ln -s "$top/$folder" $folder; done
    cp "$lm" grads.safetensors
    for name in after new x; do cp "$lm" $name.safetensors; done
    for name in before old; do cp "$top/data/charlm/step_011999/rank_00000.safetensors" $name.safetensors; done
    mpsim cast -q -f binary32 --only -m 'weight:*' -o master.safetensors "$lm"
    mpsim cast -q -f binary32 --only -m weight:blocks.0.fc1.weight -o weight.npy "$lm"
    for part in q k v; do mpsim cast -q -f binary32 --only -m act:blocks.0.fc1 -o $part.npy "$lm"; done
    safetensors model.safetensors '{"embed_tokens.weight":{"dtype":"F32","shape":[96,128],"data_offsets":[0,49152]},"fc.weight":{"dtype":"F32","shape":[128,128],"data_offsets":[49152,114688]},"lm_head.weight":{"dtype":"F32","shape":[96,32],"data_offsets":[114688,126976]}}' 126976
    echo '{"model_type":"llama","hidden_size":8,"num_attention_heads":2,"num_hidden_layers":2,"vocab_size":16}' >config.json
    mkdir model
    cp model.safetensors model/
    for states in h residual; do tail -c 1280 "$lm" | npy $states.npy '<f4' 10,32; done
    safetensors qkv.safetensors '{"q":{"dtype":"F32","shape":[10,32],"data_offsets":[0,1280]},"k":{"dtype":"F32","shape":[10,32],"data_offsets":[1280,2560]},"v":{"dtype":"F32","shape":[10,32],"data_offsets":[2560,3840]}}' 3840
    cp "$top/data/vectors/dot/volta.npz" dump.npz
    { for token in 0 1 2 3 4 5 6 7 10 11; do printf "%b" "\\0$token\\0\\0\\0\\0\\0\\0\\0"; done; } | npy t.npy '<i8' 10,
    mpsim cast -q -f binary32 --only -m act:blocks.0.fc1 -o sampler.safetensors "$lm"
    mpsim cast -q -f bf16 --only -m act:blocks.0.fc1 -o trainer.safetensors "$lm"
    mpsim cast -q -f binary32 --only -m act:blocks.0.fc1 -o x.npy "$lm"
    mpsim cast -q -f e4m3@cuda --only -m act:blocks.0.fc1 -o y.npy "$lm"
    mkdir run
    cp x.npy y.npy run/
    printf '{"schema": "mpsim.run/1", "files": ["x.npy", "y.npy"], "operations": [%s]}\n' \
        '{"name": "fc1", "kind": "cast", "row": "e4m3@cuda", "arrays": {"x": "x", "y": "y"}}' >run/run.json
    head -c 8388608 /dev/zero | gzip -1 >grads.bin.gz
    cp grads.bin.gz dump.bin.gz
    cp "$top/data/policies/pytorch-amp-fp16.yaml" mine.yaml
    cp "$top/tests/logs/megatron.txt" train.log
    cp "$top/tests/logs/runs/bf16-seed1.txt" bf16.log
    cp "$top/tests/logs/runs/fp8-seed1.txt" fp8.log
    for seed in 1 2 3; do cp "$top/tests/logs/runs/bf16-seed$seed.txt" seed$seed.log; done
    for run in a b; do awk -v run=$run 'BEGIN { print "step,loss,norm"; for (i = 1; i < 300; i++) print i "," 3 / i "," (run == "a" ? 1 : 1.1) }' >$run.csv; done
    echo 'ValueError: Attempting to unscale FP16 gradients.' >train.err
    yes 'All work and no play makes Jack a dull boy.' | head -n 400 >book.txt
    ln -s "$top/data/vectors/dot" recorded
) >"$dir/out" 2>"$dir/err"
[ ! -s "$dir/err" ]; ok $? "the files that examples name"

# ---- what a page shows ----
# examples: of the lines of a manual page or --help: an example begins with two blanks; what follows two blanks or more is a remark
examples() {
    awk '
        function flush() { if (text != "") print text; text = "" }
        /^  [^ ]/ || more {
            if (!more) flush()
            line = substr($0, 3)
            more = line ~ /\\$/
            sub(/\\$/, "", line)
            sub(/^ +/, "", line)
            sub(/   *[^ ].*/, "", line)
            text = text line
            next
        }
        { more = 0 }
        END { flush() }'
}
# shown PAGE: the commands that a page shows without output, on one line each
shown() {
    awk '
        /^    / && more { text = text "\n" substr($0, 5); more = /\\$/; if (!more) print text; next }
        /^    ((\.\/)?mpsim |[a-z]+ .*\| mpsim )/ { text = substr($0, 5); more = /\\$/; if (!more) print text; next }
        { more = 0 }' "$1" | awk '{ if (sub(/\\$/, "")) printf "%s", $0; else print }'
}

# try PAGE: runs the lines of $dir/examples, a case each
try() {
    rm -rf "$dir/user"
    cp -r "$dir/files" "$dir/user"
    while IFS= read -r example; do
        case $example in
        *' --thorough '*) why='minutes: with MPSIM_TEST_EXPENSIVE=1' && [ "${MPSIM_TEST_EXPENSIVE:-0}" != 1 ] ;;
        *'mpsim plot'*) why='gnuplot not found' && ! command -v gnuplot >/dev/null ;;
        *) false ;;
        esac && n=$((n + 1)) && echo "ok $n - $1: $example # SKIP $why" && continue
        short=
        case $example in
        'mpsim train '*--compare* | 'mpsim train --net llama '*) [ "${MPSIM_TEST_EXPENSIVE:-0}" = 1 ] || short=' --steps 2' ;;
        esac
        (cd "$dir/user" && printf '%s\n' "$example$short" | sh) >"$dir/out" 2>"$dir/err"
        code=$?
        [ $code -le 1 ] && ! grep -v '^mpsim: note: \|^mpsim: [a-z]*: --fail-if ' "$dir/err" >"$dir/said"; ok $? "$1: $example$short"
    done <"$dir/examples"
}

"$MPSIM" --help >"$dir/program"
commands=$(sed -n "1,/help TOPIC/s/^  \([a-z][a-z]*\) .*/\1/p" "$dir/program")
for c in $commands; do
    turns 10 together
    [ "$c" != verify ] || turns 70 together # ten seconds
    due || { ok 1 "$c" && continue; }
    "$MPSIM" "$c" --help | sed -n '/^Examples:/,$p' | examples >"$dir/examples"
    "$MPSIM" "$c" --help=man | sed -n '/^\.SH EXAMPLES/,/^\.SH "SEE/p' |
        sed "/^\\./d; s/^\\\\&//; s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\(ti/~/g; s/\\\\(ha/^/g; s/\\\\(ga/\`/g; s/\\\\e/\\\\/g" | examples >"$dir/of-page"
    [ -s "$dir/examples" ] && cmp -s "$dir/examples" "$dir/of-page"; ok $? "mpsim-$c.1 has the examples of --help"
    try "mpsim $c"
done
# gallery.sh runs those of gallery.md
pages=$(cd "$top" && grep -l '^    \(\(\./\)\{0,1\}mpsim \|[a-z]* .*| mpsim \)' ./*.md doc/*.md doc/*/*.md data/*.md data/*/README.md plots/*.md |
    sed 's,^\./,,' | grep -v '^doc/gallery\.md$')
for page in $pages; do
    turns 10 together
    due || { ok 1 "$page" && continue; }
    shown "$top/$page" >"$dir/examples"
    [ -s "$dir/examples" ]; ok $? "$page: has commands"
    try "$page"
done
turns 1
finish
