#!/bin/sh
# program.sh -- mpsim-gpu as a whole, without a device: its kernels run on a CPU (mpsim-gpu-host, see
# device_host.cc). Trainings in step, their digests, the record; the runs of gpu/runs.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
tests=$(dirname "$MPSIM")/tests
: "${MPSIM_GPU_HOST:=$tests/gpu/mpsim-gpu-host}"
runs=$MPSIM_SRCDIR/gpu/runs

# ---- the runs are what mpsim train writes today ----
: >"$dir/out"
while read -r name options; do
    # shellcheck disable=SC2086 # options
    "$MPSIM" train $options --write-run "$dir/run" >>"$dir/out" 2>&1 </dev/null &&
        cmp -s "$dir/run" "$runs/$name.run" || echo "$name: another run" >>"$dir/out"
done <"$runs/list"
[ ! -s "$dir/out" ]
ok $? "gpu/runs: what mpsim train writes"

if [ ! -x "$MPSIM_GPU_HOST" ]; then
    echo "ok $((n += 1)) - the program on a CPU # SKIP no C++ compiler"
    finish
fi

gpu() { # gpu CODE ARGUMENT...
    due || return 1
    want=$1
    shift
    "$MPSIM_GPU_HOST" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq "$want" ]
}

# ---- small runs: a perceptron in fp16 that overflows, a convolutional one in fp8 ----
mkdir "$dir/runs" "$dir/to"
{
    echo "# a comment"
    echo "one words that nobody reads"
    echo
    echo "two"
} >"$dir/runs/list"
"$MPSIM" train -P pytorch-amp-fp16 --width 16 --batch 16 --steps 5 --loss-scaling torch:init=2^22 --write-run "$dir/runs/one.run"
"$MPSIM" train -P nemo-fp8-hybrid-max --net cnn --width 4 --depth 1 --batch 4 --steps 5 --optimizer adam --variant ieee --arch ampere --write-run "$dir/runs/two.run"

gpu 0 --runs "$dir/runs" --skip speed --skip checks --output "$dir/to/all.json" && has '^device: CPU executor' &&
    has '^one  *hopper  *5  *5 ' && has '^two  *hopper  *5  *5 ' && has '^record: '
ok $? "two trainings: equal, on the products of the device"
ls "$dir/to" >"$dir/out"
[ "$(tr '\n' ' ' <"$dir/out")" = "all-one.digests all-two.digests all.json " ]
ok $? "the record and the digests are there, and nothing else"
cp "$dir/to/all-two.digests" "$dir/out"
has '^# device CPU executor, driver , 20' && has '^# run arch hopper$' && [ "$(grep -c '^[0-9]' "$dir/out")" -eq 5 ]
ok $? "digests name the device and the whole run"
run 0 train --run "$dir/runs/one.run" --check-digests "$dir/to/all-one.digests" && has 'equal to .* in 5 steps'
ok $? "mpsim train --check-digests reads them"
if [ -x "$tests/train/t-digests" ]; then
    "$tests/train/t-digests" "$dir/to/all-one.digests" "$dir/to/all-two.digests" >"$dir/out" 2>"$dir/err" && has '^1\.\.2$'
    ok $? "train/t-digests repeats them"
    "$tests/gpu/t-record" "$dir/to/all.json" >"$dir/out" 2>"$dir/err" && has '^1\.\.1$'
    ok $? "gpu/t-record reads the record"
fi
cp "$dir/to/all.json" "$dir/out"
has '"device":"CPU executor"' && has '"run":"one","status":"equal","arch":"hopper","steps":5,"compared":5,"tensors":[0-9]*,"skipped_steps":[1-3],' &&
    has '"seconds_step":[0-9.e-]*,"seconds_step_graphs":[0-9.e-]*,"digests":"all-two.digests"' && has '"name":"convert fp16","status":"skipped","text":"not asked for"'
ok $? "the record says what was trained"

# ---- a broken kernel ----
MPSIM_TEST_FAULT=30 gpu 1 --runs "$dir/runs" --only "training one" --output "$dir/to/fault.json" &&
    has '^one .* DIFFERS: step 3: .*\[[0-9]*\]\[[0-9]*\]: 0x[0-9a-f]* (.*) by cuda, 0x[0-9a-f]* (.*) by cpu; they part at products k = [0-9]*\.\.[0-9]*$' &&
    ! has '^two'
ok $? "a difference names step, tensor, index, both numbers and products"
cp "$dir/to/fault.json" "$dir/out"
has '"run":"one","status":"differs","report":"step 3: ' && has '"compared":3,' && has '"run":"two","status":"skipped","report":"not asked for"'
ok $? "the record has it"
[ "$(grep -c '^[0-9]' "$dir/to/fault-one.digests")" -eq 5 ] &&
    [ "$(awk '/^[0-9]/ { step = $1 } /^  act:fc1 / { printf "%s ", step }' "$dir/to/fault-one.digests")" = "1 2 3 4 " ] &&
    run 1 train --run "$dir/runs/one.run" --check-digests "$dir/to/fault-one.digests" && has 'digests differ at step 4$'
ok $? "the device trains on alone: its digests are whole, and differ from the CPU's"

# ---- speed, choices, trouble ----
turns 5
gpu 0 --tiny --only speed --runs "$dir/runs" --output "$dir/to/speed.json" && ! has '^one' && has ' GB/s ' && has ' Tf/s ' &&
    grep -q '"copy, own kernel"' "$dir/to/speed.json" && grep -q 'promoted"' "$dir/to/speed.json"
ok $? "speed alone"
gpu 0 --tiny --runs "$dir/runs" --only training --skip two && has '^one  *hopper  *2  *2 ' && ! has '^two' && ! has '^record'
ok $? "--only and --skip; without --output no record"
gpu 0 --quick --runs "$dir/runs" --only training && has '^one  *hopper  *1  *1 '
ok $? "--quick trains a tenth"
# ---- cuBLAS beside the toolkit: one that computes nothing ----
mkdir -p "$dir/toolkit/targets/any/lib" "$dir/toolkit/bin"
for f in cublasCreate_v2 cublasDestroy_v2 cublasGemmEx; do echo "int $f(void) { return 0; }"; done >"$dir/cublas.c"
: >"$dir/toolkit/bin/nvcc"
if "${CC:-cc}" -shared -fPIC -o "$dir/toolkit/targets/any/lib/libcublas.so.13" "$dir/cublas.c" 2>"$dir/err"; then
    turns 5
    fake="cuBLAS .*$dir/toolkit/targets/any/lib/libcublas.so.13"
    due && (CUDA_HOME=$dir/toolkit; export CUDA_HOME; gpu 0 --tiny --only "speed bf16" --runs "$dir/runs") && has "$fake"
    ok $? "cuBLAS is found in the toolkit of CUDA_HOME"
    due && (PATH=$dir/toolkit/bin:$PATH; gpu 0 --tiny --only "speed bf16" --runs "$dir/runs") &&
        { has "$fake" || has 'cuBLAS .*/libcublas\.so'; } # on the search path, which comes first
    ok $? "and beside the nvcc on PATH, or on the search path"
else
    echo "ok $((n += 1)) - cuBLAS beside the toolkit # SKIP no compiler that makes shared libraries"
fi
echo "three" >>"$dir/runs/list"
turns 1
gpu 4 --tiny --runs "$dir/runs" --only training && has '^three .*FAILED: .*three.run: No such file' && has '^two .* 2 '
ok $? "a run that is not there is trouble, and the others are trained"
gpu 4 --runs "$dir/none" --only training && has '/none/list: No such file' err
ok $? "no runs"
gpu 0 --tiny --runs "$dir/none" --only probes
ok $? "no runs are needed where nothing is trained"
gpu 4 --tiny --output "$dir/no/such/folder" && has '^mpsim-gpu: ' err
ok $? "a record that cannot be written is exit code 4"
gpu 2 --only && gpu 2 --nonsense && gpu 0 --help && has '^usage: mpsim-gpu'
ok $? "usage"
finish
