#!/bin/sh
# ptx-engine.sh -- what the kernels of the training engine are compiled to: operations rounded to nearest and
# nothing approximated, flushed or contracted. fma stands where the contract has it: in exp, log, tanh, erf
# and sigmoid (activations, softmax), the optimizer's torch variants, promoted sums and FP4's random bits.
set -u
: "${MPSIM_SRCDIR:=.}"
: "${MPSIM_NVCC_FLAGS:=-fmad=false -ftz=false -prec-div=true -prec-sqrt=true}"
: "${NVCC=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}" # empty: built without CUDA
if [ -z "$NVCC" ] || ! "$NVCC" --version >/dev/null 2>&1; then
    echo "1..0 # SKIP built without CUDA, or no nvcc"
    exit 0
fi
. "$MPSIM_SRCDIR/tests/cli/common.sh"

# shellcheck disable=SC2086 # flags
"$NVCC" -std=c++17 -O2 -I"$MPSIM_SRCDIR/lib/include" $MPSIM_NVCC_FLAGS -ptx -arch=compute_90 \
    -o "$dir/engine.ptx" "$MPSIM_SRCDIR/gpu/kernels/engine.cu" >"$dir/out" 2>"$dir/err"
ok $? "engine.cu compiles to PTX for compute_90"

# Floating-point operations, each as its instruction alone: "function instruction".
awk '/\.entry|^\.func|^\.visible/ { if (match($0, /_Z[A-Za-z0-9_]*/)) name = substr($0, RSTART, RLENGTH) }
    { for (i = 1; i <= NF; i++)
        if ($i ~ /^(add|sub|mul|div|fma|mad|sqrt|rsqrt|rcp|ex2|lg2|sin|cos|tanh)\..*f(16|32|64)$/)
            print name, $i }' "$dir/engine.ptx" | sort -u >"$dir/operations"
[ "$(wc -l <"$dir/operations")" -gt 20 ]
ok $? "operations are recognised"
grep -v -E ' (add|sub|mul|div|fma|sqrt)\.rn\.f(32|64)$' "$dir/operations" >"$dir/out"
[ ! -s "$dir/out" ]
ok $? "every operation is rounded to nearest, with subnormal numbers, exactly"
grep ' fma\.' "$dir/operations" | grep -v -E 'softmax_exp|softmax_kernel|optim_kernel|promote_kernel|quantize_kernel|activate|causal|tile_' >"$dir/out"
[ ! -s "$dir/out" ]
ok $? "no fma but in exp, log and their like, the optimizer, promoted sums and random bits of FP4"
grep -n -E '\.(ftz|approx)|red\.[a-z.]*add\.[a-z.]*f|atom\.[a-z.]*add\.[a-z.]*f' "$dir/engine.ptx" >"$dir/out"
[ ! -s "$dir/out" ]
ok $? "no flushing to zero, no approximation, no floating-point atomics"
! grep -q ' fma.*f64' "$dir/operations"
ok $? "no fma in the binary64 reference"
finish
