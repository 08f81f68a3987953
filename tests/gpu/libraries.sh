#!/bin/sh
# libraries.sh -- libraries of NVIDIA that mpsim-gpu looks for at run time, played by stand-ins: cuBLAS and
# cublasLt, which compute what standin-cublas.c says, and NVML. The program's kernels run on a CPU
# (mpsim-gpu-host), so the stand-ins read and write its memory.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
: "${MPSIM_GPU_HOST:=$(dirname "$MPSIM")/tests/gpu/mpsim-gpu-host}"
if [ ! -x "$MPSIM_GPU_HOST" ]; then
    echo "1..0 # SKIP no C++ compiler"
    exit 0
fi

library() { # library FILE: of a source on standard input
    # shellcheck disable=SC2086 # CC may be two words
    ${CC:-cc} -shared -fPIC -O1 -o "$1" -x c - -lm 2>"$dir/err"
}
mkdir -p "$dir/toolkit/lib64" "$dir/none/lib64" "$dir/nvml" "$dir/old"
# shellcheck disable=SC2086 # CC may be two words
if ! ${CC:-cc} -shared -fPIC -O1 -o "$dir/toolkit/lib64/libcublas.so.13" "$MPSIM_SRCDIR/tests/gpu/standin-cublas.c" -lm \
    2>"$dir/err"; then
    echo "1..0 # SKIP no compiler that makes shared libraries"
    exit 0
fi
cp "$dir/toolkit/lib64/libcublas.so.13" "$dir/toolkit/lib64/libcublasLt.so.13"

speed() { # speed CODE ROWS [NAME=VALUE]...: the rows with that word in their names, in $dir/out
    due || return 1
    want=$1 rows=$2
    shift 2
    env CUDA_HOME="$dir/toolkit" "$@" "$MPSIM_GPU_HOST" --tiny --only "$rows" --runs "$dir" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq "$want" ]
}

# ---- products ----
: >"$dir/out"
small='largest difference [0-9.]*e-0[6-9] of'
for format in fp16 bf16 tf32 binary32 e4m3; do
    turns 5 together
    speed 0 "$format 128^3"
    ok $? "rows beside the stand-ins"
    for row in 'fp16 128^3, cuBLAS' 'fp16 128^3, cuBLAS, b transposed' 'bf16 128^3, cuBLAS' 'bf16 128^3, cuBLAS, b transposed' \
        'tf32 128^3, cuBLAS' 'tf32 128^3, cuBLAS, b transposed' 'binary32 128^3, cuBLAS' 'binary32 128^3, cuBLAS, b transposed' \
        'e4m3 128^3, cublasLt, b transposed'; do
        case $row in "$format "*) ;; *) continue ;; esac
        case $row in e4m3*) small='largest difference 0.000[0-9]* of' ;; esac # the model keeps 13 bits
        has "^$row  .* $dir/toolkit/lib64/libcublas[Lt]*.so.13, $small"
        ok $? "$row: the same product"
    done
done
has '^e4m3 128^3, cublasLt, fast, b transposed .* largest difference 0.00[34][0-9]* of'
ok $? "fast accumulation is asked for in a row of its own"
turns 5
speed 0 e4m3 STANDIN_STATUS=15 && has '^e4m3 128^3, cublasLt, b transposed  *skipped: cublasLtMatmulAlgoGetHeuristic gives 15$' &&
    has '^e4m3 128^3, wgmma, b transposed .* equal'
ok $? "what the library does not do is skipped, with its status"
speed 4 e4m3 STANDIN_STATUS=13 && has '^e4m3 128^3, cublasLt, b transposed  *FAILED: cublasLtMatmulAlgoGetHeuristic gives 13$'
ok $? "what goes wrong in it is a failure"
turns 1
echo "int cublasCreate_v2;" | library "$dir/none/lib64/libcublas.so.13"
speed 0 cuBLAS CUDA_HOME="$dir/none" && has "^fp16 128^3, cuBLAS  *skipped: $dir/none/lib64/libcublas.so.13 lacks a function"
ok $? "a library without the functions is named"

# ---- clocks ----
cat >"$dir/nvml.c" <<'C'
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) { *device = (void *)(i ? 0 : 0x77); return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) { (void)bus; *device = (void *)0x77; return 0; }
int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *mhz)
{
    *mhz = kind == 1 ? 1755 : kind == 2 ? 2619 : 1;
    return d != (void *)0x77;
}
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 652345; return d != (void *)0x77; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *t) { *t = sensor ? 1 : 54; return d != (void *)0x77; }
int REASONS(void *d, unsigned long long *mask) { *mask = MASK; return d != (void *)0x77; }
C
{ echo '#define REASONS nvmlDeviceGetCurrentClocksEventReasons'; echo '#define MASK 0x24'; cat "$dir/nvml.c"; } |
    library "$dir/nvml/libnvidia-ml.so.1"
{ echo '#define REASONS nvmlDeviceGetCurrentClocksThrottleReasons'; echo '#define MASK 0'; cat "$dir/nvml.c"; } |
    library "$dir/old/libnvidia-ml.so.1"
turns 2 together
speed 0 of LD_LIBRARY_PATH="$dir/nvml" && has '^digest of bf16 .*; 1755 and 2619 MHz, 652 W, 54 C, held down by: power cap, thermal (software)$'
ok $? "clocks, power, temperature, and what holds clocks down"
again && [ "$(grep -c ' equal ' "$dir/out")" -eq "$(grep -c ' equal .* 1755 and 2619 MHz' "$dir/out")" ]
ok $? "in every row that is measured"
turns 1
speed 0 "copy, own" LD_LIBRARY_PATH="$dir/old" && has '^copy, own kernel .*; 1755 and 2619 MHz, 652 W, 54 C$'
ok $? "an older library, and nothing that holds them down"
echo "int nvmlInit_v2(void) { return 9; }" | library "$dir/old/libnvidia-ml.so.1"
speed 0 "copy, own" LD_LIBRARY_PATH="$dir/old" && has '^copy, own kernel ' && ! has 'MHz'
ok $? "a library that is none: no clocks"
finish
