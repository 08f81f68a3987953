/* t-sum.c -- the promises of mpsim_sum in <mpsim/stats.h>: sums of numbers and of squares are
 * exact, in any order, and merge. The reference is in exact.h. */
#include <mpsim/stats.h>

#include "support/exact.h"

#include <float.h>
#include <stdio.h>

static double library_sum(const double *x, size_t n, int square)
{
    mpsim_sum s;
    mpsim_sum_init(&s);
    for (size_t i = 0; i < n; i++)
        if (square)
            mpsim_sum_add_square(&s, x[i]);
        else
            mpsim_sum_add(&s, x[i]);
    return mpsim_sum_value(&s);
}

#define ck_sums(x, n, square, what)                                                           \
    do {                                                                                      \
        const double want_ = exact_sum(x, n, square), got_ = library_sum(x, n, square);       \
        ck_assert_msg(exact_same(want_, got_), "%s: expected %a, got %a", what, want_, got_); \
    } while (0)

CASE("sums", 20);

TEST(sums_are_exact_under_cancellation)
{
    static const double a[] = {1e308, -1e308, DENORM_MIN};
    static const double b[] = {1e308, DENORM_MIN, -1e308, -DENORM_MIN};
    static const double c[] = {1, 0x1p-53, 0x1p-1074}; /* a tie, broken far below */
    static const double d[] = {1, 0x1p-53};            /* a tie: even */
    static const double e[] = {1, 0x1p-53, -0x1p-1074};
    static const double f[] = {1 + 0x1p-52, 0x1p-53};         /* a tie: up to even */
    static const double g[] = {DBL_MAX, 0x1p969, DENORM_MIN}; /* just short of overflow */
    static const double h[] = {DBL_MAX, 0x1p970};             /* the tie that overflows */
    static const double i[] = {DBL_MAX, DBL_MAX, -DBL_MAX, -DBL_MAX, -3e-320};
    static const double j[] = {-1e308, -1e308, 1e308, 1, 1e308};
    static const double k[] = {DBL_MAX, DBL_MAX};
    static const double l[] = {-DBL_MAX, -DBL_MAX};
    static const double m[] = {DBL_MIN, -DENORM_MIN}; /* the largest subnormal */
    static const double n[] = {0.1, 0.2, -0.3};
    ck_sums(a, LENGTH(a), 0, "a");
    ck_sums(b, LENGTH(b), 0, "b");
    ck_sums(c, LENGTH(c), 0, "c");
    ck_sums(d, LENGTH(d), 0, "d");
    ck_sums(e, LENGTH(e), 0, "e");
    ck_sums(f, LENGTH(f), 0, "f");
    ck_sums(g, LENGTH(g), 0, "g");
    ck_sums(h, LENGTH(h), 0, "h");
    ck_sums(i, LENGTH(i), 0, "i");
    ck_sums(j, LENGTH(j), 0, "j");
    ck_sums(k, LENGTH(k), 0, "k");
    ck_sums(l, LENGTH(l), 0, "l");
    ck_sums(m, LENGTH(m), 0, "m");
    ck_sums(n, LENGTH(n), 0, "n");
    /* And the values themselves, without MPFR. */
    ck_assert(library_sum(a, LENGTH(a), 0) == DENORM_MIN);
    ck_assert(exact_same(library_sum(b, LENGTH(b), 0), 0.0));
    ck_assert(library_sum(c, LENGTH(c), 0) == 1 + 0x1p-52);
    ck_assert(library_sum(d, LENGTH(d), 0) == 1);
    ck_assert(library_sum(e, LENGTH(e), 0) == 1);
    ck_assert(library_sum(f, LENGTH(f), 0) == 1 + 0x1p-51);
    ck_assert(library_sum(g, LENGTH(g), 0) == DBL_MAX);
    ck_assert(library_sum(h, LENGTH(h), 0) == INFINITE);
    ck_assert(library_sum(l, LENGTH(l), 0) == -INFINITE);
}

TEST(an_exact_zero_is_plus_zero)
{
    static const double zeros[] = {-0.0, -0.0};
    static const double cancel[] = {-1, 1};
    mpsim_sum s;
    mpsim_sum_init(&s);
    ck_assert(exact_same(mpsim_sum_value(&s), 0.0));
    ck_assert(exact_same(library_sum(zeros, 2, 0), 0.0));
    ck_assert(exact_same(library_sum(zeros, 2, 1), 0.0));
    ck_assert(exact_same(library_sum(cancel, 2, 0), 0.0));
}

TEST(squares_are_exact_at_both_ends)
{
    static const double tiny[] = {DENORM_MIN};                   /* 2^-2148: 0 */
    static const double half[] = {0x1p-537, 0x1p-538, 0x1p-538}; /* 1.5 units: to 2^-1073 */
    static const double tie[] = {0x1p-538, 0x1p-538};            /* half a unit: to 0 */
    static const double above[] = {0x1p-538, 0x1p-538, DENORM_MIN};
    static const double large[] = {DBL_MAX};
    static const double root[] = {0x1.fffffffffffffp+511};
    static const double ones[] = {0x1.fffffffffffffp+0, 0x1.fffffffffffffp-1000};
    ck_sums(tiny, 1, 1, "tiny");
    ck_sums(half, 3, 1, "half");
    ck_sums(tie, 2, 1, "tie");
    ck_sums(above, 3, 1, "above");
    ck_sums(large, 1, 1, "large");
    ck_sums(root, 1, 1, "root");
    ck_sums(ones, 2, 1, "ones");
    ck_assert(library_sum(half, 3, 1) == 0x1p-1073);
    ck_assert(library_sum(tie, 2, 1) == 0);
    ck_assert(library_sum(above, 3, 1) == DENORM_MIN);
    ck_assert(library_sum(large, 1, 1) == INFINITE);
    /* Taken away again, even the square of the largest number leaves the smallest's. */
    mpsim_sum s, t;
    mpsim_sum_init(&s);
    mpsim_sum_init(&t);
    for (int i = 0; i < 3; i++) {
        mpsim_sum_add_square(&s, DBL_MAX);
        mpsim_sum_add_square(&t, DBL_MAX);
    }
    mpsim_sum_add_square(&s, 0x1p-537);
    mpsim_sum_subtract(&s, &t);
    ck_assert(mpsim_sum_value(&s) == DENORM_MIN);
    mpsim_sum_subtract(&s, &t);
    ck_assert(mpsim_sum_value(&s) == -INFINITE);
    mpsim_sum_merge(&s, &t);
    ck_assert(mpsim_sum_value(&s) == DENORM_MIN);
}

/* The same sums by their fraction and exponent, which have no range. */
static void check_frexp(const double *x, size_t n, int square, const char *what)
{
    mpsim_sum s;
    mpfr_t exact, want;
    int got_exponent = 99;
    mpfr_exp_t exponent = 0;
    mpsim_sum_init(&s);
    for (size_t i = 0; i < n; i++)
        if (square)
            mpsim_sum_add_square(&s, x[i]);
        else
            mpsim_sum_add(&s, x[i]);
    exact_total(exact, x, n, square);
    mpfr_init2(want, 53);
    mpfr_set(want, exact, MPFR_RNDN);
    const double f = mpfr_zero_p(want) ? 0 : mpfr_get_d_2exp(&exponent, want, MPFR_RNDN);
    const double got = mpsim_sum_frexp(&s, &got_exponent);
    ck_assert_msg(got == f && got_exponent == exponent, "%s: expected %a 2^%ld, got %a 2^%d", what, f, (long)exponent,
                  got, got_exponent);
    mpfr_clears(exact, want, (mpfr_ptr)0);
}

TEST(fractions_and_exponents_of_sums)
{
    static const double none[] = {0.0}, tiny[] = {DENORM_MIN}, large[] = {DBL_MAX, DBL_MAX};
    static const double minus[] = {-3}, cancel[] = {1e300, -1e300};
    static const double carry[] = {0x1.fffffffffffffp+0, 0x1p-53}; /* rounds to 2 */
    static const double below[] = {0x1.fffffffffffffp+0, 0x1.fffffffffffffp-54};
    for (int square = 0; square < 2; square++) {
        check_frexp(none, 1, square, "zero");
        check_frexp(none, 0, square, "nothing");
        check_frexp(tiny, 1, square, "tiny");
        check_frexp(large, 2, square, "large");
        check_frexp(minus, 1, square, "minus");
        check_frexp(cancel, 2, square, "cancel");
        check_frexp(carry, 2, square, "carry");
        check_frexp(below, 2, square, "below");
    }
}

TEST(random_sums_equal_mpfr)
{
    enum { N = 400 };
    static double x[N];
    uint64_t state = test_seed();
    const size_t rounds = test_scaled(60);
    for (size_t r = 0; r < rounds; r++) {
        const size_t n = 1 + (size_t)(test_random(&state) % N);
        char what[80];
        adversarial(x, n, &state, (int)(r % 5));
        snprintf(what, sizeof what, "round %zu, kind %zu, n = %zu", r, r % 5, n);
        ck_sums(x, n, 0, what);
        ck_sums(x, n, 1, what);
        check_frexp(x, n, 0, what);
        check_frexp(x, n, 1, what);
    }
}

/* ---- carries ---- */

/* A limb takes less than 2^32 from an addition, and carries are propagated after at most 2^29
 * of them. Here are limbs in the state of just before: full of the largest deposits, of one
 * sign or alternating, and then one addition more. */
TEST(limbs_hold_all_additions_until_carries_are_due)
{
    for (int kind = 0; kind < 3; kind++)
        for (uint32_t more = 1; more <= 3; more++) {
            mpsim_sum s;
            mpfr_t want, t;
            mpfr_init2(want, WIDE);
            mpfr_init2(t, 64);
            mpfr_set_zero(want, 1);
            mpsim_sum_init(&s);
            s.pending = ((uint32_t)1 << 29) - 2;
            s.end = MPSIM_SUM_LIMBS;
            for (int i = 0; i < MPSIM_SUM_LIMBS - 4; i++) { /* below 2^2048: room for the sum */
                const int64_t full = (int64_t)s.pending * 0xffffffff;
                s.limb[i] = kind == 0 || (kind == 2 && i % 2) ? full : -full;
                mpfr_set_sj_2exp(t, s.limb[i], 32 * i - 2176, MPFR_RNDN);
                ck_assert(mpfr_add(want, want, t, MPFR_RNDN) == 0);
            }
            for (uint32_t i = 0; i < more; i++) {
                mpsim_sum_add(&s, 0x1.fffffffffffffp+10);
                exact_add(want, 0x1.fffffffffffffp+10, 0);
                mpsim_sum_add_square(&s, 0x1.fffffffffffffp-300);
                exact_add(want, 0x1.fffffffffffffp-300, 1);
            }
            /* Take the top away, so that the value is a finite number that all limbs made. */
            for (int step = 0; step < 70; step++) {
                const double top = mpsim_sum_value(&s);
                const double v = mpfr_get_d(want, MPFR_RNDN);
                ck_assert_msg(exact_same(v, top), "kind %d, %u more, step %d: expected %a, got %a", kind, more, step, v,
                              top);
                const double take = isfinite(v) ? -v : v > 0 ? -DBL_MAX : DBL_MAX;
                for (int k = 0; k < (isfinite(v) ? 1 : 20); k++) {
                    mpsim_sum_add(&s, take);
                    exact_add(want, take, 0);
                }
            }
            mpfr_clear(want);
            mpfr_clear(t);
        }
}

/* Many additions of all ones with pending just below its bound, so that the propagation falls
 * into the loop; the sum is n x exactly. */
TEST(propagation_does_not_change_a_sum)
{
    mpsim_sum s, plain;
    mpsim_sum_init(&s);
    mpsim_sum_init(&plain);
    s.pending = ((uint32_t)1 << 29) - 1000;
    for (int i = 0; i < 4096; i++) {
        mpsim_sum_add(&s, -0x1.fffffffffffffp+400);
        mpsim_sum_add(&plain, -0x1.fffffffffffffp+400);
    }
    ck_assert(mpsim_sum_value(&s) == -0x1.fffffffffffffp+412);
    ck_assert(mpsim_sum_value(&plain) == -0x1.fffffffffffffp+412);
    ck_assert_uint_lt(s.pending, 1u << 29);
}

/* Merging and subtracting equal adding the elements, or their negatives. */
TEST(merge_and_subtract_are_sums_of_sums)
{
    enum { N = 300 };
    static double x[N], y[N];
    uint64_t state = test_seed() + 3;
    for (int kind = 0; kind < 5; kind++) {
        mpsim_sum a, b, before, sum, difference;
        mpsim_sum_init(&a);
        mpsim_sum_init(&b);
        adversarial(x, N, &state, kind);
        for (size_t i = 0; i < N; i++)
            mpsim_sum_add(i % 3 ? &a : &b, x[i]);
        before = b;
        sum = a;
        mpsim_sum_merge(&sum, &b);
        ck_assert_mem_eq(&before, &b, sizeof b);
        ck_assert(exact_same(mpsim_sum_value(&sum), exact_sum(x, N, 0)));
        difference = a;
        mpsim_sum_subtract(&difference, &b);
        ck_assert_mem_eq(&before, &b, sizeof b);
        for (size_t i = 0; i < N; i++)
            y[i] = i % 3 ? x[i] : -x[i];
        ck_assert(exact_same(mpsim_sum_value(&difference), exact_sum(y, N, 0)));
        before = a;
        mpsim_sum_subtract(&a, &before);
        ck_assert(exact_same(mpsim_sum_value(&a), 0.0));
    }
}

TEST(sums_of_products_equal_mpfr)
{
    enum { N = 200 };
    uint64_t state = test_seed();
    double x[N], y[N];
    for (int round = 0; round < 400; round++) {
        mpsim_sum s;
        mpfr_t exact, p;
        int inexact = 0;
        mpsim_sum_init(&s);
        mpfr_inits2(WIDE, exact, p, (mpfr_ptr)NULL);
        mpfr_set_zero(exact, 1);
        adversarial(x, N, &state, round % 5);
        adversarial(y, N, &state, round / 5 % 5);
        for (size_t i = 0; i < N; i++) {
            if (i % 4 == 3) { /* take an earlier product away again */
                x[i] = -x[i - 1];
                y[i] = y[i - 1];
            }
            mpsim_sum_add_product(&s, x[i], y[i]);
            inexact |= mpfr_set_d(p, x[i], MPFR_RNDN);
            inexact |= mpfr_mul_d(p, p, y[i], MPFR_RNDN);
            inexact |= mpfr_add(exact, exact, p, MPFR_RNDN);
        }
        const double want = mpfr_zero_p(exact) ? 0 : mpfr_get_d(exact, MPFR_RNDN);
        const double got = mpsim_sum_value(&s);
        mpfr_clears(exact, p, (mpfr_ptr)NULL);
        ck_assert(!inexact);
        ck_assert_msg(exact_same(want, got), "round %d: expected %a, got %a", round, want, got);
    }
}

TEST_MAIN("sum");
