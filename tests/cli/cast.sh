#!/bin/sh
# cast.sh -- cast of whole files: any number of threads writes the same bytes, elements that stay binary32 on
# their way are cast as those that go through binary64, and files that cannot be read or written leave nothing.
set -u
: "${MPSIM_SRCDIR:=.}"
# shellcheck source=tests/cli/common.sh
. "$MPSIM_SRCDIR/tests/cli/common.sh"

# Tensors of several pieces: the bytes of traces, as if they were numbers; NaNs and subnormal ones among them.
cat "$MPSIM_SRCDIR"/data/charlm/step_*/* "$MPSIM_SRCDIR"/data/digits-cnn/step_*/* | head -c 1600004 >"$dir/raw"
head -c 5 "$dir/raw" >"$dir/odd"
f=$(find "$MPSIM_SRCDIR/data/charlm" -name '*.safetensors' | sort | tail -n 1)

# same TARGET... : 1, 2 and 7 threads, and a pipe, write the same file
same() {
    run 0 cast -q --threads 1 "$@" -o "$dir/one.safetensors" || return 1
    for threads in 2 7; do
        run 0 cast -q --threads $threads "$@" -o "$dir/more.safetensors" &&
            cmp "$dir/one.safetensors" "$dir/more.safetensors" >"$dir/out" || return 1
    done
    "$MPSIM" cast -q --threads 3 "$@" -o - </dev/null 2>"$dir/err" | cmp - "$dir/one.safetensors" >"$dir/out"
}
for to in '-f e4m3' '-f fp16 -s 2^10' '-f bf16 -r src --seed 3' '-f e2m1 --widen' '-f binary64 -s 3'; do
    # shellcheck disable=SC2086 # words
    same $to "$f" && same $to --dtype binary32 "$dir/raw" && same $to --dtype fp16 "$dir/raw" &&
        same $to --dtype e5m2 "$dir/raw" && same $to --dtype binary64 --offset 4 "$dir/raw" &&
        same $to --dtype fp16 --offset 3 --shape 1 --big-endian "$dir/odd"
    ok $? "any number of threads: cast $to"
done

# The same numbers as binary64: a cast to a wider format changes none.
for source in binary32 bf16 fp16 e4m3 e5m2; do
    run 0 cast -q -f "$source@pytorch" --dtype "$source" -o "$dir/narrow.safetensors" "$dir/raw" &&
        run 0 cast -q -f binary64@pytorch -o "$dir/wide.safetensors" "$dir/narrow.safetensors"
    code=$?
    for to in '-f e4m3@cuda' '-f e5m2 -r sra:8 -s 0.3' '-f fp16@pytorch -r rtz' '-f bf16 -r src --seed 3' '-f e2m1 --widen' \
        '-f e8m0 -r rup' '-f e4m3 --widen -s 2^9 --flush-subnormals' '-f bf16@ml-dtypes' '-f binary32'; do
        # shellcheck disable=SC2086 # words
        run 0 cast -q $to -o "$dir/a.safetensors" "$dir/narrow.safetensors" &&
            run 0 cast -q $to -o "$dir/b.safetensors" "$dir/wide.safetensors" &&
            cmp "$dir/a.safetensors" "$dir/b.safetensors" >"$dir/out" || code=1
    done
    ok $code "from $source as from binary64"
done

# counts are those of stat
run 0 cast -f e4m3 --dtype binary32 -o "$dir/a.safetensors" "$dir/raw" && awk '/underflow|subnormal|overflow|inexact/ {
    gsub(",", "", $2); print $1, $2 }' "$dir/out" >"$dir/cast" &&
    run 0 stat -f e4m3 --dtype binary32 --csv "$dir/raw" && awk -F, 'NR == 2 {
    print "underflow", $(NF - 7); print "subnormal", $(NF - 6); print "overflow", $(NF - 5); print "inexact", $(NF - 4) }' \
    "$dir/out" >"$dir/stat" && cmp "$dir/cast" "$dir/stat" >"$dir/out"
ok $? "the counts of a cast are those of stat"

run 3 cast -f e4m3 --dtype binary32 --offset 1600005 -o "$dir/none" "$dir/raw" && [ ! -e "$dir/none" ]
ok $? "nothing is written of what cannot be read"
if [ -e /dev/full ]; then
    run 4 cast -q -f binary64 --dtype binary32 -o /dev/full "$dir/raw"
    ok $? "a full disk is an error, whichever thread meets it"
fi
finish
