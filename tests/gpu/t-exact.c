/* t-exact.c -- gpu/functions/exact.h, from which results of a device are kept as differences, against MPFR: drawn operands, all
 * specials, and how wrong a value is before it is rounded. --all: all 2^32 operands of each function whose values are not
 * algebraic; those whose rounding is open are asked of MPFR (minutes; make check-long). TAP of its own. */
#include "../../gpu/functions/functions.h"
#include "lib/round/scalar.h"

typedef struct seen_value {
    int is_there, exp;
    uint64_t m;
} seen_value;
static seen_value seen;
#define GPU_SEEN(y) (seen = (seen_value){1, (y).exp, (y).m})
#include "../../gpu/functions/exact.h"

#include "support/extent.h"

#include <inttypes.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mpfr_t operand, value, turn;

static float number(uint32_t code)
{
    float x;
    memcpy(&x, &code, sizeof x);
    return x;
}

static void wave(gpu_function f, uint32_t turns)
{
    mpfr_set_flt(operand, number(turns), MPFR_RNDN);
    mpfr_frac(operand, operand, MPFR_RNDN);
    mpfr_mul(operand, operand, turn, MPFR_RNDN);
    if (f == GPU_SIN)
        mpfr_sin(value, operand, MPFR_RNDN);
    else
        mpfr_cos(value, operand, MPFR_RNDN);
}

/* The value with 160 bits; sin and cos: a quarter turn, where MPFR's pi would leave a rest, is for the caller. */
static void evaluate(gpu_function f, uint32_t x)
{
    if (f == GPU_SIN || f == GPU_COS) {
        wave(f, gpu_turns(x));
        return;
    }
    mpfr_set_flt(operand, number(x), MPFR_RNDN);
    if (f == GPU_EX2)
        mpfr_exp2(value, operand, MPFR_RNDN);
    else if (f == GPU_RCP)
        mpfr_ui_div(value, 1, operand, MPFR_RNDN);
    else if (f == GPU_RSQRT)
        mpfr_rec_sqrt(value, operand, MPFR_RNDN);
    else if (f == GPU_LG2)
        mpfr_log2(value, operand, MPFR_RNDN);
    else if (f == GPU_TANH)
        mpfr_tanh(value, operand, MPFR_RNDN);
    else
        mpfr_sqrt(value, operand, MPFR_RNDN);
}

static uint32_t rounded(gpu_function f)
{
    const float y = mpfr_get_flt(value, MPFR_RNDN);
    uint32_t code;
    memcpy(&code, &y, sizeof code);
    if (y != y)
        return 0x7fffffff;
    return f != GPU_TANH && (code & 0x7fffffff) < 0x800000 ? code & 0x80000000u : code;
}

/* Units of the last of 64 bits by which the value is wrong, rounded up. */
static double wrong_by(void)
{
    mpfr_set_ui_2exp(operand, (unsigned long)(seen.m >> 32), seen.exp - 31, MPFR_RNDN);
    mpfr_set_ui_2exp(turn, (unsigned long)(seen.m & 0xffffffff), seen.exp - 63, MPFR_RNDN);
    mpfr_add(operand, operand, turn, MPFR_RNDN);
    mpfr_abs(value, value, MPFR_RNDN);
    mpfr_sub(operand, operand, value, MPFR_RNDN);
    mpfr_abs(operand, operand, MPFR_RNDN);
    mpfr_mul_2si(operand, operand, 63 - seen.exp, MPFR_RNDN);
    mpfr_const_pi(turn, MPFR_RNDN);
    mpfr_mul_2ui(turn, turn, 1, MPFR_RNDN);
    return mpfr_get_d(operand, MPFR_RNDU);
}

/* Turns that are multiples of a quarter: what is exactly 0 or 1. */
static int is_quarter(gpu_function f, uint32_t x)
{
    const float r = 4 * number(gpu_turns(x));
    return (f == GPU_SIN || f == GPU_COS) && (!(r < 0x1p31f && r > -0x1p31f) || r == (float)(int64_t)r);
}

typedef struct outcome {
    uint64_t n, bad;
    double wrong;
    uint32_t first;
} outcome;

static void compare(outcome *o, gpu_function f, uint32_t x)
{
    const uint32_t size = x & 0x7fffffff;
    int open = 0;
    if ((size < 0x800000 && f != GPU_TANH) || is_quarter(f, x) ||
        ((f == GPU_SIN || f == GPU_COS) && (gpu_turns(x) & 0x7fffffff) < 0x800000))
        return;
    seen.is_there = 0;
    const uint32_t y = gpu_exact(f, x, &open);
    evaluate(f, x);
    const int bad = rounded(f) != y;
    o->first = bad && !o->bad ? x : o->first;
    o->bad += (uint64_t)bad;
    o->n++;
    const double wrong = seen.is_there ? wrong_by() : 0;
    o->wrong = wrong > o->wrong ? wrong : o->wrong;
}

static int plan, failures;

static void report(gpu_function f, const char *what, const outcome *o)
{
    const int bad = o->bad || o->wrong >= GPU_DOUBT / 2;
    printf("%sok %d - %s: %s, %" PRIu64 " operands as MPFR, values wrong by %.1f units of the 64th bit at most\n",
           bad ? "not " : "", ++plan, gpu_operation_at(f)->name, what, o->n, o->wrong);
    if (o->bad)
        printf("# %" PRIu64 " differ, the first is %08" PRIx32 "\n", o->bad, o->first);
    failures += bad;
}

static void draw(gpu_function f)
{
    static const uint32_t edges[] = {0x7f800000, 0x7f800001, 0x7fffffff, 0x7f7fffff, 0x00800000, 0x3f800000,
                                     0x3f800001, 0x3f7fffff, 0x3fb504f3, 0x3fb504f4, 0x41100000, 0x41900000,
                                     0x42fc0000, 0x43000000, 0x3e000000, 0x3effffff, 0x40490fdb, 0x3fc90fdb,
                                     0x40c90fdb, 0x4b000000, 0x4b800000};
    outcome o = {0, 0, 0, 0};
    uint64_t state = test_seed() + (uint64_t)f;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        compare(&o, f, edges[i]);
        compare(&o, f, edges[i] | 0x80000000u);
    }
    for (size_t i = 0; i < test_scaled(20000); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint32_t w = (uint32_t)(state >> 32), near = (w & 0x807fffff) | (112 + (uint32_t)(state >> 20 & 31))
                                                                                  << 23;
        compare(&o, f, i % 8 ? near : w);
    }
    report(f, "drawn", &o);
}

/* 0, infinities, NaNs and the signs of zeros: PTX ISA, the tables of special values; multiples of a quarter turn. */
static void specials(void)
{
    static const struct {
        gpu_function f;
        uint32_t x, y;
    } rows[] = {{GPU_RCP, 0x80000000, 0xff800000},
                {GPU_RCP, 0xff800000, 0x80000000},
                {GPU_RCP, 0x7f000000, 0x00000000},
                {GPU_RSQRT, 0x00000000, 0x7f800000},
                {GPU_RSQRT, 0x7f800000, 0},
                {GPU_RSQRT, 0xbf800000, 0x7fffffff},
                {GPU_SQRT, 0x80000000, 0x80000000},
                {GPU_SQRT, 0x40800000, 0x40000000},
                {GPU_SQRT, 0xff800000, 0x7fffffff},
                {GPU_LG2, 0x80000000, 0xff800000},
                {GPU_LG2, 0x3f800000, 0},
                {GPU_LG2, 0x3e000000, 0xc0400000},
                {GPU_EX2, 0xff800000, 0},
                {GPU_EX2, 0x00000001, 0x3f800000},
                {GPU_EX2, 0xc2fc0000, 0x00800000},
                {GPU_TANH, 0x80000001, 0x80000001},
                {GPU_TANH, 0xff800000, 0xbf800000},
                {GPU_TANH, 0x7fc00000, 0x7fffffff},
                {GPU_SIN, 0x80000000, 0x80000000},
                {GPU_SIN, 0x7f800000, 0x7fffffff},
                {GPU_COS, 0x00000000, 0x3f800000},
                {GPU_COS, 0x7f000000, 0x3f800000},
                {GPU_SIN, 0x7f000000, 0}};
    int bad = 0, open = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t y = gpu_exact(rows[i].f, rows[i].x, &open);
        bad += y != rows[i].y;
        if (y != rows[i].y)
            printf("# %s of %08" PRIx32 ": %08" PRIx32 "\n", gpu_operation_at(rows[i].f)->name, rows[i].x, y);
    }
    printf("%sok %d - zeros, infinities, NaNs\n", bad ? "not " : "", ++plan);
    failures += bad != 0;
}

/* Of all operands those whose rounding is open. */
static void open_ones(gpu_function f)
{
    outcome o = {0, 0, 0, 0};
    for (uint64_t x = 0; x >> 32 == 0; x++) {
        int open = 0;
        (void)gpu_exact(f, (uint32_t)x, &open);
        if (open)
            compare(&o, f, (uint32_t)x);
    }
    report(f, "whose rounding is open, of all 2^32", &o);
}

int main(int argc, char **argv)
{
    static const gpu_function transcendental[] = {GPU_EX2, GPU_LG2, GPU_TANH, GPU_SIN, GPU_COS};
    mpfr_inits2(160, operand, value, turn, (mpfr_ptr)NULL);
    mpfr_const_pi(turn, MPFR_RNDN);
    mpfr_mul_2ui(turn, turn, 1, MPFR_RNDN);
    specials();
    for (int f = 0; f < GPU_FUNCTIONS; f++)
        draw((gpu_function)f);
    for (size_t i = 0; i < 5 && argc > 1 && strcmp(argv[1], "--all") == 0; i++)
        open_ones(transcendental[i]);
    printf("1..%d\n", plan);
    mpfr_clears(operand, value, turn, (mpfr_ptr)NULL);
    return failures != 0;
}
