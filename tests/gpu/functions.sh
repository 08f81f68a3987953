#!/bin/sh
# functions.sh -- mpsim-gpu-functions without a device, its unit made up: the record and the tables are read again by
# t-functions; a kernel that faults or hangs costs its own item; options, files that cannot be written.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
here=$(dirname "$MPSIM")/tests/gpu
if [ ! -x "$here/mpsim-gpu-functions-host" ]; then
    echo "1..0 # SKIP built without a C++ compiler"
    exit 0
fi
functions() {
    "$here/mpsim-gpu-functions-host" "$@" >"$dir/out" 2>"$dir/err"
}
reader() {
    "$here/t-functions" "$dir/r.json" >"$dir/out" 2>"$dir/err"
}

functions --tiny --output "$dir/r.json" --tables "$dir/r.tables"
ok $? "a tiny run"
[ "$(grep -c ' digests .*done' "$dir/out")" -eq 27 ] && [ "$(grep -c ' table .*done' "$dir/out")" -eq 35 ] &&
    [ "$(grep -c ' distances .*done' "$dir/out")" -eq 8 ] && [ ! -e "$dir/r.json.part" ]
ok $? "it asks digests, tables and distances"
if [ -x "$here/t-functions" ]; then
    reader && [ "$(grep -c '^# .*: fits' "$dir/out")" -eq 27 ]
    ok $? "the record is read again, and everything follows from its tables"
    printf x | dd of="$dir/r.tables" bs=1 seek=4500 conv=notrunc 2>/dev/null
    ! reader && has 'another digest'
    ok $? "a changed byte of the tables is found"
    functions --tiny --only lg2 --output "$dir/r.json" --tables "$dir/r.tables" && reader && has '^# lg2.approx.f32: fits'
    ok $? "one function alone"
    functions --tiny --most 4096 --output "$dir/r.json" --tables "$dir/r.tables" && has 'left out: no room in 4096 bytes' && reader
    ok $? "tables that have no room are left out"
fi

# faults and hangs: the item is lost, and the others are not
MPSIM_TEST_KERNEL='fault digests_kernel<3>'
export MPSIM_TEST_KERNEL
functions --tiny --output "$dir/r.json" --tables "$dir/r.tables"
[ $? -eq 4 ] && has '^lg2.approx.ftz.f32 *digests *FAILED' && [ "$(grep -c ' done ' "$dir/out")" -eq 69 ]
ok $? "a kernel that faults costs its item"
grep -q '"operation":"lg2.approx.ftz.f32","status":"failed","text":' "$dir/r.json"
ok $? "the record says so"
MPSIM_TEST_KERNEL='hang values_kernel<1>'
functions --tiny --limit 0.5 --only rcp --output "$dir/r.json" --tables "$dir/r.tables"
[ $? -eq 4 ] && has '^rcp.approx.ftz.f32 *table *FAILED' && has '^rcp.approx.ftz.f32 *distances *done'
ok $? "one that hangs is ended by its limit"
unset MPSIM_TEST_KERNEL

functions --tiny --only rcp --output "$dir/none/r.json"
[ $? -eq 4 ] && has 'none/r.json.part: No such file' err && ! has digests
ok $? "a record that cannot be written is known before anything is asked"
functions --tiny --nonsense
[ $? -eq 2 ] && has '^usage: mpsim-gpu-functions' err
ok $? "usage"
finish
