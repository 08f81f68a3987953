#!/bin/sh
# environment.sh -- what a run is started in changes no result: rounding mode, flushing, instruction set.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
trace=$MPSIM_SRCDIR/data/digits-cnn
unset MPSIM_ISA

printf '\001\000\000\000\000\000\000\000\377\377\377\377\377\377\007\200' >"$dir/subnormal" # binary64

# what FILE: results of commands whose arithmetic is the machine's, or could be
what() {
    {
        "$MPSIM" stat --csv -f fp16,e4m3 -r sr:8 -s 0.1 "$trace/step_000001" &&
        "$MPSIM" stat --csv --dtype binary64 -f binary64 -s 2^10 "$dir/subnormal" | sed 's,^tensor[^,]*/,,' &&
        "$MPSIM" dot --csv -f bf16 -K 64,1000 &&
        "$MPSIM" attention --csv --tokens 50 --tile 16 -M fma,hopper-bf16-fp32:result=bf16 --causal &&
        "$MPSIM" judge product --csv --like hopper-bf16-fp32+operands=bf16 --role a=act:fc2 --role b=weight:fc2.weight --role d=out:fc2 --role bias=weight:fc2.bias "$trace/step_020000/rank_00000.safetensors" &&
        "$MPSIM" mismatch --csv -a hopper-bf16-fp32,softmax=bf16 -b fma,split=2 --count 20 --vocabulary 90 --size 64 &&
        "$MPSIM" advise -q --csv "$trace/step_000001" &&
        "$MPSIM" replay --csv -P pytorch-amp-fp16 -P nemo-fp8-e4m3-max "$trace" &&
        "$MPSIM" train --csv -P pytorch-amp-fp16 -P bf16-kahan --steps 2 --batch 8 &&
        "$MPSIM" scaler --csv -k act -c torch,deepspeed "$trace" &&
        "$MPSIM" calc div -f binary32 1e-40 3 && "$MPSIM" formats --check 1e-40 fp16 bf16
    } >"$1" 2>"$dir/err"
}
what "$dir/want"
[ $? -le 1 ] && [ ! -s "$dir/err" ]; ok $? "the results"

# ---- instruction sets ----
turns 3
for isa in scalar generic neon avx2 avx512; do
    due || { ok 1 "$isa" && continue; }
    MPSIM_ISA=$isa "$MPSIM" --version >"$dir/out" 2>"$dir/err"
    code=$?
    if [ $code -eq 2 ] && { has "no $isa" err || has "is not one of" err; }; then
        echo "ok $((n += 1)) - MPSIM_ISA=$isa # SKIP not here"
        continue
    fi
    [ $code -eq 0 ] && has "^instruction set $isa\$" && { MPSIM_ISA=$isa; export MPSIM_ISA; what "$dir/got"; unset MPSIM_ISA; cmp "$dir/want" "$dir/got" >"$dir/out" 2>&1; }
    ok $? "MPSIM_ISA=$isa: in use, and the same results"
done
turns 1
for isa in sse9 AVX2 'avx2 '; do
    MPSIM_ISA=$isa "$MPSIM" formats >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] && [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && has "MPSIM_ISA: '$isa' is not one of .*generic" err
    ok $? "MPSIM_ISA='$isa' is an error, exit code 2"
done
MPSIM_ISA='' "$MPSIM" formats >"$dir/out" 2>"$dir/err"; ok $? "MPSIM_ISA without a value is none"

# ---- floating-point environment: set before main by an object that is loaded into the program ----
cat >"$dir/float.c" <<'C'
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif
static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
__attribute__((constructor)) static void set(void)
{
    const char *s = getenv("TEST_FLOAT"); /* a mode, and f where subnormals are flushed */
    if (!s)
        return;
    fesetround(modes[(*s - '0') & 3]);
#if defined(__SSE2__)
    if (strchr(s, 'f'))
        _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}
C
cat >"$dir/judge.c" <<'C'
#include <stdio.h>
int main(void)
{
    volatile double one = 1, ten = 10, least = 0x1p-1022, half = 0.5;
    printf("%a %a %a\n", one / ten, -one / ten, least * half);
    return 0;
}
C
cc=${CC:-$(command -v cc || command -v gcc || echo none)}
# shellcheck disable=SC2086 # words
if $cc -shared -fPIC -o "$dir/float.so" "$dir/float.c" -lm 2>/dev/null && $cc -o "$dir/judge" "$dir/judge.c" 2>/dev/null; then
    "$dir/judge" >"$dir/plain"
    ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 # a build with AddressSanitizer lets what is loaded come first
    export ASAN_OPTIONS
    turns 3
    for setting in 1 2 3 0f 2f; do
        due || { ok 1 "$setting" && continue; }
        TEST_FLOAT=$setting LD_PRELOAD=$dir/float.so "$dir/judge" >"$dir/out" 2>/dev/null
        if cmp -s "$dir/plain" "$dir/out"; then
            echo "ok $((n += 1)) - setting $setting # SKIP it cannot be set here"
            continue
        fi
        (TEST_FLOAT=$setting LD_PRELOAD=$dir/float.so; export TEST_FLOAT LD_PRELOAD; what "$dir/got")
        cmp "$dir/want" "$dir/got" >"$dir/out" 2>&1
        ok $? "rounding mode and flushing $setting: the same results"
    done
else
    echo "ok $((n += 1)) - floating-point environment # SKIP no compiler"
fi

finish
