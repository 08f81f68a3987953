/* t-tiny.c -- tininess before and after rounding: MPFR, and the underflow flag of this machine. */
#include "support/support.h"

#include <mpsim/arith.h>

#include <fenv.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>

static const mpsim_round_mode modes[] = {MPSIM_ROUND_NEAREST_EVEN, MPSIM_ROUND_TOWARD_ZERO, MPSIM_ROUND_UP,
                                         MPSIM_ROUND_DOWN};
static const mpfr_rnd_t theirs[] = {MPFR_RNDN, MPFR_RNDZ, MPFR_RNDU, MPFR_RNDD};

/* MPSIM_TINY_* of x * scale, to p bits with unbounded exponent. */
static unsigned judge(double x, double scale, int p, int emin, mpfr_rnd_t mode)
{
    mpfr_t exact, rounded, least;
    mpfr_inits2(200, exact, least, (mpfr_ptr)0);
    mpfr_init2(rounded, p);
    mpfr_set_d(exact, x, MPFR_RNDN);
    mpfr_mul_d(exact, exact, scale, MPFR_RNDN);
    mpfr_set_ui_2exp(least, 1, emin, MPFR_RNDN);
    mpfr_set(rounded, exact, mode);
    const int is_zero = mpfr_zero_p(exact);
    const unsigned tiny = is_zero ? 0
                                  : (mpfr_cmpabs(exact, least) < 0 ? MPSIM_TINY_BEFORE : 0u) |
                                        (mpfr_cmpabs(rounded, least) < 0 ? MPSIM_TINY_AFTER : 0u);
    mpfr_clears(exact, least, rounded, (mpfr_ptr)0);
    return tiny;
}

START_TEST(as_mpfr_says)
{
    static const struct {
        const char *name;
        int p, emin;
    } formats[] = {{"fp16", 11, -14}, {"bf16", 8, -126}, {"e4m3", 4, -6},
                   {"e5m2", 3, -14},  {"e2m1", 2, 0},    {"tf32", 11, -126}};
    uint64_t seed = test_seed();
    size_t both = 0, before = 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const mpsim_format *f = mpsim_format_find(formats[i].name);
        for (size_t k = 0; k < 4; k++)
            for (int n = 0; n < 4000; n++) {
                mpsim_rounding r;
                mpsim_rounding_init(&r, modes[k]);
                /* around 2^emin: far below, some units of a lower precision below, just above */
                const uint64_t u = test_random(&seed);
                const double part = ldexp((double)(u & 0xffff), -16 - (int)(u >> 16 & 15));
                const double x = ldexp((u >> 20 & 1 ? -1 : 1) * (1 - part / (1 + (double)(u >> 21 & 255))),
                                       formats[i].emin + (int)(u >> 40 & 3) - 1);
                r.scale = u >> 42 & 1 ? 1 : 1.5;
                const unsigned want = judge(x, r.scale, formats[i].p, formats[i].emin, theirs[k]);
                const unsigned got = mpsim_tiny_f64(f, &r, x, 0);
                ck_assert_msg(got == want, "%s %s %a * %g: %u, expected %u", f->name, mpsim_round_mode_name(modes[k]),
                              x, r.scale, got, want);
                both += want == 3;
                before += want == MPSIM_TINY_BEFORE;
            }
    }
    printf("# %zu tiny, %zu before rounding only\n", both, before);
    ck_assert(before > 100 && both > 1000);
}

/* Products and quotients of binary32: the flag that the machine raises. */
START_TEST(as_this_machine_raises_it)
{
#if defined __x86_64__ || defined __aarch64__
#ifdef __x86_64__
    const unsigned tiny = MPSIM_TINY_AFTER; /* SSE */
#else
    const unsigned tiny = MPSIM_TINY_BEFORE;
#endif
    const mpsim_format *f = mpsim_format_find("binary32");
    static const mpsim_op ops[] = {MPSIM_OP_MUL, MPSIM_OP_DIV};
    uint64_t seed = test_seed() + 1;
    size_t raised = 0, edge = 0;
    for (int n = 0; n < 200000; n++) {
        const uint64_t u = test_random(&seed);
        mpsim_arith o;
        mpsim_arith_init(&o, ops[n & 1], f, MPSIM_ROUND_NEAREST_EVEN);
        /* (1 + fa) / 2 times 2^-126 (1 + fb), or 2^-126 (1 + fa) over 1 + fb: about 2^-126 */
        const uint32_t fa = (uint32_t)(u & 0x7fffff);
        uint32_t fb = (uint32_t)(u >> 23 & 0x7fffff);
        if (n & 2) { /* within some units of it */
            const double one = 1 + (double)fa * 0x1p-23, near = n & 1 ? one - 1 : 2 / one - 1;
            fb = ((uint32_t)(near * 0x1p23) + (uint32_t)(u >> 60) - 8) & 0x7fffff;
        }
        const uint32_t a = n & 1 ? 0x00800000u | fa : 0x3f000000u | fa;
        const uint32_t b = (u >> 63 ? 0x80000000u : 0) | (n & 1 ? 0x3f800000u : 0x00800000u) | fb;
        volatile float x = f32_of_bits(a), by = f32_of_bits(b), z;
        feclearexcept(FE_ALL_EXCEPT);
        z = n & 1 ? x / by : x * by;
        const int want = fetestexcept(FE_UNDERFLOW) != 0;
        (void)z;
        unsigned flags;
        mpsim_arith_apply(&o, a, b, 0, 0, &flags);
        const unsigned is = mpsim_arith_tiny(&o, a, b, 0, 0);
        const int got = (flags & MPSIM_FLAG_INEXACT) && (is & tiny);
        ck_assert_msg(got == want, "%s %a %a: %d, expected %d", mpsim_op_name(o.op), (double)x, (double)by, got, want);
        raised += (size_t)want;
        edge += is == MPSIM_TINY_BEFORE;
    }
    printf("# underflow raised %zu times, %zu tiny before rounding only\n", raised, edge);
    ck_assert(raised > 1000 && edge > 1000);
#else
    printf("# skipped: which tininess this machine detects is not known here\n");
#endif
}

START_TEST(at_the_edge)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert_uint_eq(mpsim_tiny_f64(f, &r, 0x1p-14, 0), 0);
    /* a quarter unit of the subnormals below: normal once rounded to 11 bits; half a unit: to 2^-14 in
       the format, yet 0x1.ffcp-15 is a number of 11 bits */
    ck_assert_uint_eq(mpsim_tiny_f64(f, &r, 0x1.fffp-15, 0), MPSIM_TINY_BEFORE);
    ck_assert_uint_eq(mpsim_tiny_f64(f, &r, 0x1.ffcp-15, 0), MPSIM_TINY_BEFORE | MPSIM_TINY_AFTER);
    ck_assert_uint_eq(mpsim_encode_f64(f, &r, 0x1.ffcp-15, 0, NULL), 0x0400);
    ck_assert_uint_eq(mpsim_tiny_f64(f, &r, 0, 0), 0);
    ck_assert_uint_eq(mpsim_tiny_f32(f, &r, INFINITY, 0), 0);
    ck_assert_uint_eq(mpsim_tiny_f32(f, &r, NAN, 0), 0);
    ck_assert_uint_eq(mpsim_tiny_f32(f, &r, 1e-30f, 0), MPSIM_TINY_BEFORE | MPSIM_TINY_AFTER);
    r.flush_input = 1;
    ck_assert_uint_eq(mpsim_tiny_f32(f, &r, 0x1p-140f, 0), 0);
}

int main(void)
{
    TCase *tiny = test_case("tiny", 20);
    tcase_add_test(tiny, as_mpfr_says);
    if (!test_under_valgrind())
        tcase_add_test(tiny, as_this_machine_raises_it);
    tcase_add_test(tiny, at_the_edge);
    return test_main("tiny", (TCase *const[]){tiny, NULL});
}
