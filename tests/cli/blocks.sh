#!/bin/sh
# blocks.sh -- stat under block recipes: words, forms of the report, conditions, shards and threads, what is interrupted,
# what is no recipe or has no columns.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
step=$MPSIM_SRCDIR/data/charlm/step_000100
cnn=$MPSIM_SRCDIR/data/digits-cnn/step_020000

# ---- words ----
# names WORDS...: the recipes and axes of the report, one a line
names() { "$MPSIM" stat --csv --level total "$@" "$cnn" 2>"$dir/err" | tail -n +2 | awk -F, '{ print $16, $(NF - 12) }'; }
[ "$(names -f 'mxfp8:*' | tr '\n' ' ')" = 'mxfp8:floor rows mxfp8:even rows mxfp8:ceil rows mxfp8:rceil rows mxfp8:te rows mxfp8:microx rows ' ]; ok $? "* is all rules"
[ "$(names -f nvfp4,bf16,mxfp6e3m2 --rht 16 | tr '\n' ' ')" = 'bf16  nvfp4 rows nvfp4:rht16 rows mxfp6-e3m2 rows mxfp6-e3m2:rht16 rows ' ]; ok $? "formats first; --rht stands beside each"
[ "$(names -f e4m3/1x128:ue8m0 --axis both | tr '\n' ' ')" = 'e4m3/1x128:ue8m0 rows e4m3/1x128:ue8m0 columns e4m3/1x128:ue8m0 requantised ' ]; ok $? "--axis both"
[ "$(names -f nvfp4:rht32 --rht 16 --axis columns)" = 'nvfp4:rht32 columns' ]; ok $? "a transform of its own; --axis columns"
# refused TEXT ARGUMENT...: a usage error that says so
refused() {
    text=$1
    shift
    run 2 stat "$@" "$cnn" && has "$text" err
    ok $? "$*: $text"
}
turns 8
refused "unknown format 'mxfp9': did you mean mxfp8" -f mxfp9
refused 'mxfp8:foo: "foo" is not a word of this recipe; its words are floor' -f fp16,mxfp8:foo
refused 'nvfp4:rceil: "rceil" is not a word of this recipe' -f nvfp4:rceil
refused "'\\*' stands for the scale rules of a family" -f 'nvfp4:*'
refused "recipe 'mxfp8' is given twice" -f mxfp8,fp16,mxfp8
refused "recipe 'mxfp8:floor' is given twice" -f 'mxfp8:*,mxfp8:floor'
refused '"0x4" is not a shape of blocks' -f e4m3/0x4
refused 'a block is of more than 1048576 elements' -f e4m3/2000x2000
refused 'the smallest square of whole blocks along both axes is of more than' -f e4m3/100x77 --axis both
refused "--rht is 16, 32, 64 or 128, not '17'" -f mxfp8 --rht 17
refused "--axis is rows, columns or both, not 'x'" -f mxfp8 --axis x
refused '--axis needs a block recipe' -f fp16 --axis rows
refused '--rht needs a block recipe' --rht 16
refused '--scale needs a number format in -f' -f mxfp8 -s 2
refused '--round needs a number format in -f' -f mxfp8 -r sr
refused 'lost_blocks needs a block recipe in -f' -f fp16 --fail-if lost_blocks
refused 'sqnr is not computed with --counts' -f mxfp8 --counts --fail-if 'sqnr<3'

# ---- forms ----
turns 6
run 0 stat -f mxfp8:floor,mxfp8:rceil -k weight "$step" && has '^  kind    recipe       underflow  saturated  sat. blocks       scales  SQNR dB$' &&
    has '^  weight  mxfp8:floor          0     0.68 %      15.58 %  2^-13..2^-6     30.6$' &&
    has '^          mxfp8:rceil          0          0            0  2^-13..2^-6     31.3$' && ! has 'max rel err'; ok $? "text: rules side by side, nothing of formats"
run 0 stat -f fp16,mxfp8 -k weight "$step" && has 'rounding nearest-even' && has 'max rel err' && has '  recipe  '; ok $? "text: both"
run 0 stat -f mxfp8 --counts -k weight "$step" && ! has 'SQNR' && has 'sat. blocks'; ok $? "text: counts"
run 0 stat -f mxfp8 -k act "$step" && has '^  act   mxfp8 *.* 2^-.*2^127 ' ; ok $? "text: a block with infinity"
run 0 stat -f mxfp8:rceil -k act "$step" && has ' [0-9.]*+$' && has '^+ without finite elements that their block made Inf or NaN (spoilt)$'; ok $? "text: what SQNR leaves out"
run 0 stat -q -f bf16,e4m3/128x128 --axis both --rht 16 --json -k weight "$step" && [ "$(tail -c 3 "$dir/out" | head -c 1)" = '}' ] &&
    has '^"recipes": \[{"name": "e4m3/128x128", "element": "e4m3", "rule": "f32", "block_rows": 128, "block_cols": 128, "scale_format": "binary32", "tensor_scale": false, "transform": 0, "source": "' &&
    has '"blocks": \[{"recipe": "e4m3/128x128", "axis": "rows", "elements": [0-9]*, "underflow": 0' && has '"scales": {"zero": 0, "nonfinite": 0, "first": -14, "counts": \[' &&
    has '"axes": \["rows", "columns", "requantised"\]'; ok $? "JSON"
run 0 stat -f mxfp8 --counts --ndjson -k weight "$step" && ! has sqnr_db && [ "$(grep -c '"blocks": \[{"recipe": "mxfp8"' "$dir/out")" -eq 32 ]; ok $? "NDJSON, counts"
run 0 stat -f fp16,mxfp8 --csv -k weight "$step" && [ "$(awk -F'"[^"]*"|,' '{ print NF }' "$dir/out" | sort -u | wc -l)" -le 2 ] &&
    head -n 1 "$dir/out" | grep -q ',compared,axis,spoilt,blocks,zero_blocks,saturated_blocks,'; ok $? "CSV: columns of recipes behind"
run 0 stat -f fp16 --csv -k weight "$step" && ! has axis; ok $? "CSV: none without recipes"

# ---- what has no columns ----
turns 1
"$MPSIM" stat -f nvfp4 --axis both --json -k weight "$cnn" >"$dir/out" 2>"$dir/err" && [ "$(wc -l <"$dir/err")" -eq 1 ] &&
    has '^mpsim: note: 6 tensors of one dimension, without columns, ignored along columns$' err &&
    grep '"name": "weight:fc2.bias"' "$dir/out" | grep -q '"axis": "rows"' &&
    ! grep '"name": "weight:fc2.bias"' "$dir/out" | grep -q '"axis": "columns"'; ok $? "one dimension: rows, and a note"
"$MPSIM" stat -f nvfp4 --axis columns -q -m '*fc2.bias' -k weight "$cnn" >"$dir/out" 2>"$dir/err" && ! has nvfp4; ok $? "nothing else: an empty table"

# ---- conditions ----
"$MPSIM" stat -f mxfp8:floor,mxfp8:rceil --fail-if 'total:saturated_blocks>10%,total:sqnr<31,total:saturated' -k weight "$cnn" >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] && has '^mpsim: stat: --fail-if total:saturated_blocks>10%: in total as mxfp8:floor: [0-9]* blocks, 1[0-9.]* %$' err &&
    has '^mpsim: stat: --fail-if total:sqnr<31: in total as mxfp8:floor: 30.[0-9]* dB$' err &&
    has '^mpsim: stat: --fail-if total:saturated: in total as mxfp8:floor: [0-9]* elements' err && [ "$(wc -l <"$dir/err")" -eq 3 ]; ok $? "--fail-if of recipes"
"$MPSIM" stat -f mxfp8:rceil --axis columns --fail-if 'total:underflow>99%,kind:sqnr<99' -q -k weight "$cnn" >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] && has 'weight as mxfp8:rceil, columns: 31.[0-9]* dB$' err; ok $? "--fail-if says the axis"

# binary64 beyond binary32: 2^-166 becomes 0, 2^166 infinite
for i in 1 2 3 4 5 6 7 8; do printf '\0\0\0\0\0\0\220\065'; done >"$dir/tiny"
for i in 1 2 3 4 5 6 7 8; do printf '\0\0\0\0\0\0\120\112'; done >"$dir/huge"
"$MPSIM" stat -q -f mxfp8 --dtype binary64 --fail-if 'underflow,sqnr<20,spoilt' "$dir/tiny" >/dev/null 2>"$dir/err"
[ $? -eq 1 ] && has 'underflow: .* 8 elements, 100 %$' err && has 'sqnr<20: .* 0 dB$' err && [ "$(wc -l <"$dir/err")" -eq 2 ]; ok $? "what binary32 makes 0 is underflow"
"$MPSIM" stat -q -f mxfp8 --dtype binary64 --fail-if 'underflow,sqnr<20,spoilt' "$dir/huge" >/dev/null 2>"$dir/err"
[ $? -eq 1 ] && has 'spoilt: .* 8 elements, 100 %$' err && has 'sqnr<20: .* -inf dB$' err && [ "$(wc -l <"$dir/err")" -eq 2 ]; ok $? "what binary32 makes infinite is spoilt"

# ---- shards and threads ----
merge_backwards() { # merge_backwards COUNT FORM: the last part first
    count=$1 form=$2
    set --
    for k in $(seq "$count"); do set -- "$dir/part.$k" "$@"; done
    "$MPSIM" merge "$form" "$@"
}
# same NAME FORM WORDS...: a run on one and three threads, and merged shards
same() {
    due || return 1
    name=$1
    form=$2
    shift 2
    "$MPSIM" stat "$form" --threads 1 "$@" >"$dir/whole" 2>"$dir/whole.err" && "$MPSIM" stat "$form" --threads 3 "$@" 2>&1 >"$dir/out" | cmp - "$dir/whole.err" &&
        cmp "$dir/whole" "$dir/out" || return 1
    for count in $(turn 1 2 5 23); do
        rm -f "$dir"/part.*
        for k in $(seq "$count"); do
            "$MPSIM" stat --shard "$k/$count" -o "$dir/part.$k" "$@" || return 1
        done
        merge_backwards "$count" "$form" >"$dir/out" 2>"$dir/err" && cmp "$dir/whole" "$dir/out" &&
            cmp "$dir/whole.err" "$dir/err" || return 1
    done
}
turns 6
same rows --json -f 'bf16,mxfp8:rceil,nvfp4,e4m3/row,e4m3/tensor,nvfp4:sr' "$cnn"; ok $? "rows: one run's bytes from any shards, on any threads"
same both --csv -f 'mxfp4,nvfp4:2d,e4m3/128x128,e4m3/tensor,e4m3/row,torchao-tensorwise' --axis both --rht 16 "$cnn"; ok $? "both axes and transforms"
dd if=/dev/zero bs=1000 count=400 2>/dev/null | tr '\000' '\123' >"$dir/raw" && cat "$step"/* >>"$dir/raw"
same raw --ndjson -f 'mxfp8,e4m3/row,e4m3/tensor' --dtype bf16 "$dir/raw"; ok $? "one line that shards divide"
head -c 420000 "$dir/raw" >"$dir/matrix"
same matrix --json -f 'mxfp8,nvfp4,e4m3/3x7,e4m3/5x40' --axis columns --dtype bf16 --shape 700,300 "$dir/matrix"; ok $? "a matrix that shards divide between blocks"
mkdir "$dir/columns"
for i in 1 2; do
    header="{'descr': '<f2', 'fortran_order': True, 'shape': ($((6 + i)), 20, 150), }"
    { printf '\223NUMPY\001\000v\000%-117s\n' "$header" && tail -c $((6000 * (6 + i))) "$dir/raw"; } >"$dir/columns/$i.npy"
done
same columns --json -f 'fp16,mxfp8,nvfp4:2d,e4m3/3x7,nvfp4:sr' -r sra --axis both "$dir/columns"; ok $? "column-major tensors of three dimensions, whole in a shard"
turns 1
"$MPSIM" stat --shard 1/2 -f mxfp8 -o "$dir/part.1" "$cnn" && [ "$(head -n 1 "$dir/part.1")" = mpsim-part/4 ] &&
    "$MPSIM" stat --shard 1/2 -f fp16 -o "$dir/part.2" "$cnn" && [ "$(head -n 1 "$dir/part.2")" = mpsim-part/3 ]; ok $? "parts with recipes are version 4, others 3"
"$MPSIM" stat --shard 2/2 -f mxfp8 --axis both -o "$dir/part.2" "$cnn"
run 3 merge "$dir/part.1" "$dir/part.2" && has 'other options: with --axis both' err; ok $? "parts of other axes"
"$MPSIM" stat --shard 2/2 -f mxfp8 -o "$dir/part.2" "$cnn" && size=$(wc -c <"$dir/part.2") && bad=0
for at in 300 2000 5000 $((size - 300)); do
    cp "$dir/part.2" "$dir/part.3" && printf '\377' | dd of="$dir/part.3" bs=1 seek="$at" conv=notrunc 2>/dev/null
    run 3 merge "$dir/part.1" "$dir/part.3" || bad=1
done; ok $bad "damaged parts"

# ---- saturated: beyond the largest number after rounding. 448 is the largest of E4M3; 451.2 and 464, a tie, round to it, 465 does not
header="{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }"
for row in '\232\231\341\103 0 0' '\000\000\350\103 0 0' '\000\200\350\103 1 1'; do # 451.2, 464, 465
    { printf '\223NUMPY\001\000v\000%-117s\n' "$header"; printf '%b' "$(printf '%s' "${row%% *}" | sed 's/\\/\\0/g')"; } >"$dir/one.npy"
    run 0 stat --json -f mxfp8:floor "$dir/one.npy" && has "\"overflow\": ${row##* }," && has "\"saturated_blocks\": ${row##* }," && has '"inexact": 1'
    ok $? "what saturates: ${row#* }"
done
# ---- interrupted ----
if timeout --foreground 1 true 2>/dev/null; then
    mkdir "$dir/sparse" && truncate -s 40960000000 "$dir/sparse/raw"
    turns 8
    signalled INT 1 'has interrupted err' stat -f mxfp8:rceil,nvfp4 --dtype bf16 --shape 5000000,4096 --json "$dir/sparse/raw"
    [ $? -eq 130 ] && has 'interrupted before a tensor was read' err; ok $? "nothing of a tensor while its largest magnitude is looked for"
    read_all() { [ "$(awk -F, '/^tensor/ { bad += $(NF - 10) < 100 } END { print NR, bad + 0 }' "$dir/out")" = '8 0' ]; }
    signalled INT 2 read_all stat -f mxfp8:rceil,e4m3/128x128 --axis both --dtype bf16 --shape 5000000,4096 --csv "$dir/sparse/raw"
    [ $? -eq 130 ] && tail -n 1 "$dir/out" | grep -q '^partial,,' && read_all; ok $? "blocks that were read are in a partial report"
    rm -r "$dir/sparse"
else
    echo "# no timeout of coreutils: nothing is interrupted"
fi
finish
