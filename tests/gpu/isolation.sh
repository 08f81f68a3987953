#!/bin/sh
# isolation.sh -- what a kernel that faults or hangs costs, in every part of mpsim-gpu: one row. The program
# without a device (mpsim-gpu-host), whose kernels fault and hang on request (host_faults.h).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
: "${MPSIM_GPU_HOST:=$(dirname "$MPSIM")/tests/gpu/mpsim-gpu-host}"
if [ ! -x "$MPSIM_GPU_HOST" ]; then
    echo "1..0 # SKIP no C++ compiler"
    exit 0
fi
mkdir "$dir/runs"
printf 'one\ntwo\nthree\n' >"$dir/runs/list"
for p in one three; do
    "$MPSIM" train -P pytorch-amp-fp16 --width 16 --batch 8 --steps 3 --write-run "$dir/runs/$p.run"
done
"$MPSIM" train -P pytorch-amp-fp16 --net cnn --width 4 --depth 1 --batch 2 --steps 3 --write-run "$dir/runs/two.run"

# Each part has its day; a fault in a training costs a row every day.
asks() { # asks "fault NAME"|"hang NAME" CODE ARGUMENT...: a tiny run, ten seconds an item; the record in $dir/out
    due || return 1
    what=$1 want=$2
    shift 2
    rm -f "$dir"/record*
    MPSIM_TEST_KERNEL=$what "$MPSIM_GPU_HOST" --tiny --limit 10 --runs "$dir/runs" "$@" --output "$dir/record.json" \
        >"$dir/said" 2>"$dir/err" </dev/null
    [ $? -eq "$want" ] && mv "$dir/record.json" "$dir/out" && [ ! -e "$dir/record.json.part" ]
}
count() { again && grep -c "$1" "$dir/out"; }

# ---- checks ----
turns 6 together
asks "none" 0 --only "checks wgmma" && ! has '"status":"failed"'
ok $? "checks: all agree where nothing is wrong"
all=$(count '"name":.*"status":"done","model":\|"name":.*"status":"done","count":')
w='wgmma_kernel wgmma.k16 bf16-fp32'
asks "fault $w" 4 --only "checks wgmma" && [ "$(count '"status":"failed"')" -eq 1 ] &&
    has '"name":"wgmma.k16 bf16-fp32 random","status":"failed","text":"a first look: CUDA: .*the context is lost'
ok $? "checks: a faulting instruction fails in one row"
lost=$(count '"status":"skipped","text":"not run: wgmma.k16 bf16-fp32 failed in checks wgmma.k16 bf16-fp32 random"')
again && [ "$lost" -gt 3 ] && [ "$(count '"name":.*"status":"done"')" -eq $((all - lost - 1)) ]
ok $? "its other checks are not tried, all others are done"
asks "hang $w" 4 --only "checks wgmma" && [ "$(count '"status":"failed"')" -eq 1 ] &&
    has '"name":"wgmma.k16 bf16-fp32 random","status":"failed","text":"a first look: hung: no answer within 10 s, its process was killed"' &&
    [ "$(count '"name":.*"status":"done"')" -eq $((all - lost - 1)) ]
ok $? "a hanging one: the same"
asks "wrong mma_kernel mma.k16 bf16-fp32 inputs" 1 --only "mma.k16 bf16-fp32 normal" --skip wgmma && has '"mismatches":[1-9]' &&
    has '"samples":\[\[0,[0-9]*\],\[3,'
ok $? "a wrong one differs: nothing is lost, mismatches are kept"

# ---- orders: a fault costs its instruction, a thread that adds out of order differs ----
turns 6 together
asks "fault order_kernel 4." 4 --only orders && [ "$(count '"name":".*, a warp","status":"failed"')" -eq 1 ] &&
    [ "$(count '"status":"skipped","text":"not run: order of red.global.add.noftz.f16 failed in orders red')" -eq 1 ] &&
    [ "$(count '"name":".*, a [a-z]*","status":"done"')" -eq 56 ]
ok $? "orders: an instruction's fault costs its two rows"
t_orders=$(dirname "$MPSIM")/tests/gpu/t-orders
[ ! -x "$t_orders" ] || { asks "none" 0 --only orders && "$t_orders" "$dir/out" >"$dir/said" && grep -q '^# red.shared.add.f32, a warp: lane by lane$' "$dir/said"; }
ok $? "orders: what a record says is read"
asks "wrong order_kernel 1." 1 --only orders && grep -q '^red.global.add.noftz.f16x2, a thread .*: no way that is known BUT ONE THREAD ADDS IN ITS ORDER$' "$dir/said"
ok $? "orders: a thread that adds in another order is an error"

# ---- probes: an instruction that faults in probes alone ----
turns 6 together
asks "none" 0 --only probes
answers=$(count '"id":.*"status":"done"')
for how in fault hang; do
    asks "$how mma_kernel mma.k16 fp16-fp32 probe" 4 --only probes && [ "$(count '"id":.*"status":"failed"')" -eq 1 ] &&
        lost=$(count '"id":.*"status":"skipped".*"text":"not run: mma.k16 fp16-fp32 failed in probes P') &&
        [ "$(count '"id":.*"status":"done"')" -eq $((answers - lost - 1)) ] && [ "$lost" -gt 0 ]
    ok $? "probes: one instruction's $how costs that instruction's"
done

# ---- speed ----
turns 6 together
asks "none" 0 --only "speed bf16" --only "speed copy"
rows=$(count '^  {"name":".*"seconds":.*"bits":')
for how in fault hang; do
    asks "$how gemm_wgmma_kernel" 4 --only "speed bf16" --only "speed copy" && [ "$(count '"name":.*"status":"failed"')" -ge 1 ] &&
        done=$(count '^  {"name":".*"seconds":.*"bits":') && [ "$done" -eq $((rows - 2)) ] &&
        ! grep '"status":"done"' "$dir/out" | grep -v 'by TMA' | grep -q '"name":"[^"]*wgmma' &&
        has '"name":"[^"]*mma.sync[^"]*","status":"done"' && has '"name":"[^"]*wgmma by TMA[^"]*","status":"done"'
    ok $? "speed: kernels by wgmma that $how cost rows of wgmma, of the same kernel"
done

# ---- trainings ----
for how in fault hang; do
    [ $how = fault ] && turns 1 || turns 6 together
    asks "$how maxpool" 4 --only training && has '"run":"one","status":"equal"' && has '"run":"three","status":"equal"' &&
        has '"run":"two","status":"failed","report":'
    ok $? "trainings: one run's $how costs that run"
done
has '"report":"behind 0 equal steps: hung: no answer within 10 s, its process was killed"'
ok $? "the report says how far it came"
# ---- everything, in one run ----
turns 6
asks "hang $w" 4 --skip variant && has '"run":"three","status":"equal"' && has '"id":"P.*"status":"done"' && has '"name":"copy[^"]*","status":"done"'
ok $? "a hang in the first part: all parts are run"
asks "fault $w" 4 --one-process --skip variant && has 'not run: an item before it spoilt the process'
ok $? "--one-process: nothing follows a fault, and says so"
finish
