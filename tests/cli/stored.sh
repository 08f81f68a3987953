#!/bin/sh
# stored.sh -- quantised checkpoints in the commands: what info says of them, the same numbers in stat whatever holds
# them, on any threads and shards, in diff and cast, from pipes and packed files; --stored.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
files=$MPSIM_SRCDIR/tests/trace/quantised

line() { # line FILE N BYTES WAYS
    run 0 info "$files/$1" && has "^  quantised: $2 tensors\\{0,1\\}, $3 of codes and scales; $4\$"
    ok $? "info: $1"
}
turns 3
line torchao.safetensors 12 '13.1 KiB' 'torchao by metadata'
line torchao.pt 13 '13.6 KiB' 'torchao by metadata, torchao by names and shapes'
line te.pt 5 '68.3 KiB' 'te by metadata'
line compressed-tensors.safetensors 7 '4.5 KiB' 'compressed-tensors by names and shapes'
line modelopt.safetensors 3 '1.3 KiB' 'compressed-tensors by names and shapes, modelopt by names and shapes'
line deepseek.safetensors 1 '32.7 KiB' 'deepseek by names and shapes'
line gpt-oss.safetensors 1 '408 B' 'gpt-oss by names and shapes'

run 0 info "$files/torchao.safetensors" &&
    has 'm.nvfp4_swizzled  U8       binary32  \[130, 80\]     10,400  torchao NVFP4Tensor: e2m1 in 1x16, swizzled e4m3 scales, tensor scale  7.1 KiB$' &&
    has 'm.plain           F32      binary32  \[6\]                6$'
ok $? "info: layout, elements, blocks, scales and bytes of each"
run 0 info --scales "$files/torchao.safetensors" && has 'm.e4m3_odd .* 528 B      16  5.877e-39  1.329e+36  2 least, 1 not finite$'
ok $? "info: --scales"
run 0 info --json --scales -m m.nvfp4_tensor "$files/torchao.safetensors" &&
    has '"quantised": {"layout": "torchao", "type": "NVFP4Tensor", "element": "e2m1", "scale": "e4m3", "order": "plain", "tensor_scale": "m._nvfp4_tensor_per_tensor_scale", "transform": 0, "bytes": 292, "evidence": "metadata", "block": \[1, 16\], "scales": {"count": 32, '
ok $? "info: JSON"
run 0 info --stored parts "$files/torchao.safetensors" && ! has quantised: && has '^  m._nvfp4_qdata  *U8  *-  *\[8, 32\]' && has '27 tensors'
ok $? "info: parts instead"

turns 1
# columns of a report but for the file and its dtypes, sorted
numbers() { grep '^tensor' "$dir/out" | sed -e 's/^tensor,[^,]*,//' -e 's/,\(F8_[^,]*\|U8\|F32\|float[^,]*\|uint8\),/,/' | sort; }
run 0 stat --csv "$files/torchao.safetensors" && numbers >"$dir/st"
run 0 stat --csv "$files/torchao.pt" && numbers | grep -v transposed >"$dir/pt"
[ -s "$dir/st" ] && cmp -s "$dir/st" "$dir/pt"
ok $? "stat: a state dict has the same numbers"
run 0 cast -f binary32 "$files/torchao.safetensors" -o "$dir/values.safetensors" && run 0 stat --csv "$dir/values.safetensors" && numbers >"$dir/f32"
cmp -s "$dir/st" "$dir/f32"
ok $? "cast: binary32 values, the same numbers"
run 0 diff "$dir/values.safetensors" "$files/torchao.safetensors" && has '13 equal'
ok $? "diff: values and codes are equal"

turns 3
same=0
run 0 stat --csv --threads 1 "$files" && cp "$dir/out" "$dir/one"
for threads in 2 3 7; do
    run 0 stat --csv --threads $threads "$files" && cmp -s "$dir/out" "$dir/one" || same=1
done
ok $same "stat: the same on any number of threads"
for how in "" "--stored parts"; do
    due || { ok 1 "merge $how" && continue; }
    # shellcheck disable=SC2086 # words
    "$MPSIM" stat --csv $how "$files" >"$dir/whole" 2>"$dir/whole.err"
    for k in 1 2 3 4 5; do
        # shellcheck disable=SC2086
        "$MPSIM" stat --shard $k/5 $how -o "$dir/part$k" "$files" 2>"$dir/err"
    done
    "$MPSIM" merge --csv "$dir/part3" "$dir/part1" "$dir/part2" "$dir/part5" "$dir/part4" >"$dir/out" 2>"$dir/err"
    cmp -s "$dir/out" "$dir/whole" && cmp -s "$dir/err" "$dir/whole.err" && [ -s "$dir/whole" ]
    ok $? "merge: the parts of five shards${how:+ with $how}"
done

turns 1
gzip -c "$files/modelopt.safetensors" >"$dir/packed.gz" && run 0 info "$dir/packed.gz" && has ': safetensors (gzip), ' && has 'quantised: 3 tensors'
ok $? "a packed file"
"$MPSIM" stat --csv - <"$files/gpt-oss.safetensors" >"$dir/out" 2>"$dir/err" && numbers >"$dir/pipe"
run 0 stat --csv "$files/gpt-oss.safetensors" && numbers | cmp -s - "$dir/pipe"
ok $? "standard input"

turns 3
# what cast writes is read as what its recipe stands for, whatever the layout and the order of scales
same=0
for layout in plain torchao te compressed-tensors modelopt; do
    due || break
    for order in plain swizzled; do
        run 0 cast -f mxfp8:rceil --quantised $layout --scale-order $order --only -m m.mxfp8 "$files/te.pt" -o "$dir/q.safetensors" || continue
        run 0 info "$dir/q.safetensors" && has "; $layout by metadata$" && run 0 stat --csv "$dir/q.safetensors" || same=1
        numbers >"$dir/$layout.$order"
        cmp -s "$dir/$layout.$order" "$dir/plain.plain" || same=1
    done
done
[ $same -eq 0 ] && [ -s "$dir/plain.plain" ] && [ -s "$dir/te.swizzled" ] && [ -s "$dir/modelopt.plain" ]
ok $? "cast: the same numbers in every layout"

# blocks that are longer than the matrix keep their direction
printf '\315\314\314\075\000\000\100\300\012\327\243\074\000\000\000\000' >"$dir/four"
for i in 1 2 3 4 5 6 7 8 9 10; do cat "$dir/four"; done >"$dir/forty"
same=0
for recipe in mxfp8 nvfp4; do
    due || break
    for shape in 1,40 1,1,40 40,1 3,8; do
        for axis in rows columns; do
            for order in plain swizzled; do
                head -c $((4 * $(echo $shape | sed 's/,/*/g'))) "$dir/forty" >"$dir/raw"
                run 0 cast -q -f $recipe --axis $axis --scale-order $order --dtype binary32 --shape $shape "$dir/raw" -o "$dir/q.safetensors" &&
                    run 0 info --scales "$dir/q.safetensors" && run 0 stat --csv "$dir/q.safetensors" || same=1
                numbers >"$dir/long.$order"
            done
            [ -s "$dir/long.plain" ] && cmp -s "$dir/long.plain" "$dir/long.swizzled" || same=1
        done
    done
done
ok $same "blocks longer than the matrix: the same numbers in both orders of scales"

run 2 stat --stored tea "$files" && has "stat: --stored: 'tea' is not one of parts plain torchao te compressed-tensors" err
ok $? "a word that is none"
run 0 info --stored modelopt "$files/modelopt.safetensors" && has '; modelopt by --stored$'
ok $? "a layout that the user says"
turns 1
run 0 cast -q -f mxfp8 -m m.mxfp8 "$files/te.pt" -o "$dir/q.safetensors"
for word in te:e5m2 gpt-oss deepseek plain:e5m2; do
    run 3 info --stored $word "$dir/q.safetensors" && has "q.safetensors: no tensor of the layout $word (--stored parts reads what is stored)$" err &&
        run 3 stat --stored $word "$dir/q.safetensors" && [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ]
    ok $? "a layout that the file has not: $word"
done
run 0 info --stored plain:e4m3 "$dir/q.safetensors" && has '; plain by --stored$' && run 0 info --stored te "$dir/values.safetensors"
ok $? "a layout that it has; a file that has nothing to say it of"
finish
