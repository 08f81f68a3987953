/* t-instruction.c -- models of instructions of CPUs against what their manuals say, written with GMP. */
#include "oracle/instructions.h"
#include "support/dotcases.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/dot.h>
#include <stdio.h>
#include <string.h>

static const struct instruction {
    const char *model, *a, *b;
    size_t n; /* products */
    uint32_t (*gives)(uint32_t c, const instruction_operands *x);
    int which_nan; /* the manual says it */
} instructions[] = {
    {"avx512-bf16-fp32", "bf16", "bf16", 2, instruction_vdpbf16ps, 1},
    {"amx-bf16-fp32", "bf16", "bf16", 32, instruction_tdpbf16ps, 0},
    {"amx-bf16-fp32", "bf16", "bf16", 6, instruction_tdpbf16ps, 0},
    {"amx-fp16-fp32", "fp16", "fp16", 32, instruction_tdpfp16ps, 0},
    {"amx-fp8-fp32", "e5m2", "e5m2", 64, instruction_tdpfp8ps, 0},
    {"amx-fp8-fp32", "e5m2", "e4m3", 64, instruction_tdpfp8ps, 0},
    {"amx-fp8-fp32", "e4m3", "e4m3", 12, instruction_tdpfp8ps, 0},
    {"arm-bf16-fp32", "bf16", "bf16", 2, instruction_bfdot, 0},
    {"arm-ebf16-fp32", "bf16", "bf16", 2, instruction_bfdot_ebf, 0},
    {"arm-bfmlal-fp32", "bf16", "bf16", 1, instruction_fmlal, 0},
    {"arm-fmlal-fp32", "fp16", "fp16", 1, instruction_fmlal, 0},
    {"arm-fp16-fp32", "fp16", "fp16", 2, instruction_bfdot_ebf, 0}, /* the same sum */
};
enum { INSTRUCTIONS = sizeof instructions / sizeof instructions[0] };

static uint32_t widened(const mpsim_format *f, uint64_t code)
{
    if (strcmp(f->name, "bf16") == 0)
        return (uint32_t)code << 16; /* with its payload */
    return bits_of_f32((float)mpsim_decode(f, code));
}

/* `c` and x, codes a and b. */
static void one(const struct instruction *t, const mpsim_model *m, const mpsim_format *fa, const uint64_t *a,
                const mpsim_format *fb, const uint64_t *b, uint32_t c)
{
    unsigned char pa[128], pb[128];
    instruction_operands x = {.n = t->n};
    uint64_t d = 0;
    for (size_t k = 0; k < t->n; k++) {
        x.a[k] = mpsim_decode(fa, a[k]);
        x.b[k] = mpsim_decode(fb, b[k]);
        x.bits_a[k] = widened(fa, a[k]);
        x.bits_b[k] = widened(fb, b[k]);
    }
    dot_pack(fa, pa, 0, a, t->n);
    dot_pack(fb, pb, 0, b, t->n);
    ck_assert(mpsim_dot(m, fa, pa, fb, pb, t->n, c, NULL, &d) == MPSIM_OK);
    const uint32_t want = t->gives(c, &x);
    const int both_nan = !t->which_nan && isnan(f32_of_bits((uint32_t)d)) && isnan(f32_of_bits(want));
    ck_assert_msg(d == want || both_nan, "%s, c = %08x, a = %llx %llx, b = %llx %llx: got %08llx, expected %08x",
                  m->name, c, (unsigned long long)a[0], (unsigned long long)a[1], (unsigned long long)b[0],
                  (unsigned long long)b[1], (unsigned long long)d, want);
}

CASE("instruction", 20);

TESTS(as_the_manual_says, INSTRUCTIONS)
{
    const struct instruction *t = &instructions[_i];
    const mpsim_format *fa = mpsim_format_find(t->a), *fb = mpsim_format_find(t->b);
    const mpsim_format *f32 = mpsim_format_find("binary32");
    uint64_t seed = test_seed() + (uint64_t)_i, a[64] = {0}, b[64] = {0};
    mpsim_model m;
    ck_assert(mpsim_model_parse(&m, t->model) == MPSIM_OK);
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < test_scaled(t->n > 2 ? 2500 : 25000); i++) {
            verify_kinds_fill(fa, a, fb, b, t->n, f32, kind, &seed);
            one(t, &m, fa, a, fb, b, (uint32_t)verify_kinds_addend(f32, kind, &seed));
        }
}

/* 2^-126 less something: where a number is tiny after rounding, and where before it only. */
TESTS(beside_the_smallest, INSTRUCTIONS)
{
    const struct instruction *t = &instructions[_i];
    const mpsim_format *fa = mpsim_format_find(t->a), *fb = mpsim_format_find(t->b);
    mpsim_rounding r;
    mpsim_model m;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert(mpsim_model_parse(&m, t->model) == MPSIM_OK);
    if (strcmp(t->a, "bf16") != 0)
        return;
    for (int e = 145; e < 156; e++)
        for (uint64_t s = 0x3f80; s < 0x4000; s += 3)
            for (size_t place = 0; place < t->n && place < 2; place++) {
                uint64_t a[64] = {0}, b[64] = {0};
                a[place] = mpsim_encode_f64(fa, &r, ldexp(mpsim_decode(fa, s), 100 - e), 0, NULL);
                b[place] = mpsim_encode_f64(fb, &r, -0x1p-100, 0, NULL);
                one(t, &m, fa, a, fb, b, 0x00800000);
                one(t, &m, fa, a, fb, b, 0x80800001);
            }
}

TEST_MAIN("instruction");
