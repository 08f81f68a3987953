/* t-stats.c -- the promises of <mpsim/stats.h>: what is counted for tensors, histograms and
 * casts, and merging. The reference for sums is in exact.h; mpsim_sum itself: t-sum.c. */
#include <mpsim/stats.h>

#include "support/exact.h"

#include <float.h>
#include <stdio.h>

/* sum / n, both rounded to 53 bits but not to the range of binary64 on the way. */
static double rounded_quotient(const mpfr_t sum, uint64_t n)
{
    mpfr_t q;
    mpfr_init2(q, 53);
    mpfr_set(q, sum, MPFR_RNDN);
    mpfr_div_ui(q, q, (unsigned long)n, MPFR_RNDN);
    const double v = mpfr_get_d(q, MPFR_RNDN);
    mpfr_clear(q);
    return v;
}

/* ---- tensors ---- */

/* The accumulator in its canonical form: merged into an empty one. */
static void canonical_stats(mpsim_stats *out, const mpsim_stats *s)
{
    mpsim_stats_init(out);
    mpsim_stats_merge(out, s);
}

/* Values of every kind. */
static void mixed(double *x, size_t n, uint64_t *state)
{
    static const double special[] = {0.0,      -0.0, DENORM_MIN, -DENORM_MIN, DBL_MIN, DBL_MAX,
                                     -DBL_MAX, 1,    -1,         448,         65504,   0x1p-24};
    adversarial(x, n, state, 0);
    for (size_t i = 0; i < n; i++) {
        const uint64_t w = test_random(state);
        if (w % 8 == 0)
            x[i] = special[(w >> 8) % LENGTH(special)];
        if (w % 8 == 1)
            x[i] = w & 256    ? INFINITE
                   : w & 512  ? -INFINITE
                   : w & 1024 ? NOT_A_NUMBER
                              : f64_of_bits(0xfff0000000000001u);
        if (w % 8 == 2)
            x[i] = ldexp((double)(int64_t)(w >> 20) - 0x1p43, -40);
    }
}

static void shuffle(double *x, size_t n, uint64_t *state)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)(test_random(state) % i);
        const double t = x[i - 1];
        x[i - 1] = x[j];
        x[j] = t;
    }
}

CASE("tensors", 20);

TEST(stats_are_those_of_the_definition)
{
    enum { N = 1500 };
    static double x[N], finite[N];
    uint64_t state = test_seed() + 1;
    for (int round = 0; round < 6; round++) {
        uint64_t zero = 0, nan = 0, inf = 0;
        size_t n = 0;
        double amax = 0, amin = 0;
        mpsim_stats s;
        mixed(x, N, &state);
        for (size_t i = 0; i < N; i++) {
            const double a = fabs(x[i]);
            nan += x[i] != x[i];
            inf += a > DBL_MAX;
            zero += a == 0;
            if (!(a <= DBL_MAX))
                continue;
            finite[n++] = x[i];
            amax = a > amax ? a : amax;
            amin = a > 0 && (amin == 0 || a < amin) ? a : amin;
        }
        mpsim_stats_init(&s);
        mpsim_stats_add(&s, x, N);
        ck_assert(s.count == N && s.zero == zero && s.nan == nan && s.inf == inf);
        ck_assert(s.amax == amax && s.amin == amin);
        ck_assert(nan > 0 && inf > 0 && zero > 0);
        const double sum = exact_sum(finite, n, 0);
        mpfr_t exact;
        exact_total(exact, finite, n, 0);
        ck_assert(exact_same(mpsim_sum_value(&s.sum), sum));
        ck_assert(exact_same(mpsim_sum_value(&s.sum_squares), exact_sum(finite, n, 1)));
        ck_assert(exact_same(mpsim_stats_mean(&s), isfinite(sum) ? sum / (double)n : rounded_quotient(exact, n)));
        mpfr_clear(exact);
    }
}

/* The sum of these is beyond binary64, their mean is not. */
TEST(means_do_not_overflow)
{
    static const double x[] = {DBL_MAX, DBL_MAX, DBL_MAX / 2, -DBL_MAX / 2, DBL_MAX, DBL_MAX, 0, 0};
    mpsim_stats s;
    mpsim_stats_init(&s);
    mpsim_stats_add(&s, x, LENGTH(x));
    ck_assert(mpsim_sum_value(&s.sum) == INFINITE);
    ck_assert(mpsim_stats_mean(&s) == DBL_MAX / 2);
}

TEST(stats_of_nothing)
{
    mpsim_stats s;
    mpsim_stats_init(&s);
    mpsim_stats_add(&s, NULL, 0);
    ck_assert(s.count == 0 && s.amax == 0 && s.amin == 0);
    ck_assert(isnan(mpsim_stats_mean(&s)));
    ck_assert(exact_same(mpsim_stats_l2(&s), 0.0));
    static const double none[] = {INFINITE, NOT_A_NUMBER, -INFINITE};
    mpsim_stats_add(&s, none, 3);
    ck_assert(s.count == 3 && s.inf == 2 && s.nan == 1 && s.amax == 0 && s.amin == 0);
    ck_assert(isnan(mpsim_stats_mean(&s)));
    static const double zeros[] = {0.0, -0.0};
    mpsim_stats_add(&s, zeros, 2);
    ck_assert(s.zero == 2 && s.amax == 0 && s.amin == 0);
    ck_assert(exact_same(mpsim_stats_mean(&s), 0.0));
    static const double least[] = {-DENORM_MIN};
    mpsim_stats_add(&s, least, 1);
    ck_assert(s.amax == DENORM_MIN && s.amin == DENORM_MIN);
}

/* Norms of small integers are exact square roots; a norm does not overflow or vanish when
 * the number itself is within range, although its square is not. */
TEST(l2_norms)
{
    static const struct {
        double x[3], want;
    } rows[] = {
        {{0, 0, 0}, 0},
        {{3, -4, 0}, 5},
        {{2, 3, 6}, 7},
        {{0x3p-100, 0x4p-100, 0}, 0x5p-100},
        {{0x3p+800, 0x4p+800, 0}, 0x5p+800},
        {{0x3p-800, 0x4p-800, 0}, 0x5p-800},
        {{DBL_MAX, 0, 0}, DBL_MAX},
        {{DENORM_MIN, 0, 0}, DENORM_MIN},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        mpsim_stats s;
        mpsim_stats_init(&s);
        mpsim_stats_add(&s, rows[i].x, 3);
        const double got = mpsim_stats_l2(&s);
        ck_assert_msg(got == rows[i].want, "(%a, %a, %a): expected %a, got %a", rows[i].x[0], rows[i].x[1],
                      rows[i].x[2], rows[i].want, got);
    }
}

/* Any order, and any split over accumulators that are merged in any order. */
TEST(stats_do_not_depend_on_order_or_split)
{
    enum { N = 1000, PARTS = 7 };
    static double x[N];
    static mpsim_stats part[PARTS], want, got, all;
    uint64_t state = test_seed() + 2;
    mixed(x, N, &state);
    mpsim_stats_init(&all);
    mpsim_stats_add(&all, x, N);
    canonical_stats(&want, &all);
    ck_assert(want.count == all.count && want.zero == all.zero && want.nan == all.nan && want.inf == all.inf &&
              want.amax == all.amax && want.amin == all.amin);
    ck_assert(all.count == N && all.zero && all.nan && all.inf && all.amin > 0);
    mpsim_stats_init(&part[0]); /* merging an empty one changes nothing */
    mpsim_stats_merge(&want, &part[0]);
    ck_assert(want.count == all.count && want.amax == all.amax && want.amin == all.amin);
    for (int round = 0; round < 40; round++) {
        shuffle(x, N, &state);
        for (int p = 0; p < PARTS; p++)
            mpsim_stats_init(&part[p]);
        for (size_t i = 0; i < N;) {
            const size_t n = 1 + (size_t)(test_random(&state) % 50);
            const size_t m = n < N - i ? n : N - i;
            mpsim_stats_add(&part[test_random(&state) % PARTS], x + i, m);
            i += m;
        }
        int root = (int)(test_random(&state) % PARTS);
        for (int p = 0; p < PARTS; p++) /* a chain of merges into a random one */
            if (p != root) {
                const int other = (p + 1) % PARTS;
                if (round % 2 && other != root && p + 1 < PARTS)
                    mpsim_stats_merge(&part[other], &part[p]);
                else
                    mpsim_stats_merge(&part[root], &part[p]);
            }
        canonical_stats(&got, &part[root]);
        ck_assert_mem_eq(&got.sum, &want.sum, sizeof want.sum);
        ck_assert_mem_eq(&got.sum_squares, &want.sum_squares, sizeof want.sum_squares);
        ck_assert_mem_eq(&got, &want, sizeof want);
        char a[400], b[400];
        snprintf(a, sizeof a, "%a %a %.17g %a", mpsim_sum_value(&all.sum), mpsim_sum_value(&all.sum_squares),
                 mpsim_stats_mean(&all), mpsim_stats_l2(&all));
        snprintf(b, sizeof b, "%a %a %.17g %a", mpsim_sum_value(&part[root].sum),
                 mpsim_sum_value(&part[root].sum_squares), mpsim_stats_mean(&part[root]), mpsim_stats_l2(&part[root]));
        ck_assert_str_eq(a, b);
    }
}

/* ---- histograms ---- */

CASE("histograms", 20);

TEST(histogram_bins_are_floor_log2)
{
    static mpsim_histogram h, g;
    size_t wrong = 0;
    for (int e = MPSIM_HISTOGRAM_MIN; e <= MPSIM_HISTOGRAM_MAX; e++) {
        const double power = ldexp(1, e), before = nextafter(2 * power, 0);
        const double x[4] = {power, -power, e < MPSIM_HISTOGRAM_MAX ? before : DBL_MAX,
                             e > MPSIM_HISTOGRAM_MIN ? nextafter(power, 0) : 0};
        mpsim_histogram_init(&h);
        mpsim_histogram_add(&h, x, 4);
        const size_t bin = (size_t)(e - MPSIM_HISTOGRAM_MIN);
        wrong += h.bin[bin] != 3;
        wrong += bin == 0 ? h.zero != 1 : h.bin[bin - 1] != 1;
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_int_eq(MPSIM_HISTOGRAM_BINS, MPSIM_HISTOGRAM_MAX - MPSIM_HISTOGRAM_MIN + 1);
    static const double special[] = {0.0,          -0.0,           INFINITE, -INFINITE,   INFINITE,
                                     NOT_A_NUMBER, 3 * DENORM_MIN, 0.75,     0x1.8p-1022, 0x0.8p-1022};
    mpsim_histogram_init(&h);
    mpsim_histogram_add(&h, special, LENGTH(special));
    ck_assert(h.zero == 2 && h.inf == 3 && h.nan == 1);
    ck_assert(h.bin[-1073 + 1074] == 1 && h.bin[-1 + 1074] == 1 && h.bin[-1022 + 1074] == 1 &&
              h.bin[-1023 + 1074] == 1);
    mpsim_histogram_init(&g);
    mpsim_histogram_add(&g, NULL, 0);
    mpsim_histogram_merge(&g, &h);
    mpsim_histogram_merge(&g, &h);
    ck_assert(g.zero == 4 && g.inf == 6 && g.nan == 2 && g.bin[1] == 2);
}

TEST(histograms_do_not_depend_on_order_or_split)
{
    enum { N = 2000 };
    static double x[N];
    static mpsim_histogram all, part[3];
    uint64_t state = test_seed() + 4, total = 0;
    mixed(x, N, &state);
    mpsim_histogram_init(&all);
    mpsim_histogram_add(&all, x, N);
    for (int p = 0; p < 3; p++)
        mpsim_histogram_init(&part[p]);
    shuffle(x, N, &state);
    for (size_t i = 0; i < N; i += 10)
        mpsim_histogram_add(&part[i / 10 % 3], x + i, 10);
    mpsim_histogram_merge(&part[2], &part[0]);
    mpsim_histogram_merge(&part[1], &part[2]);
    ck_assert_mem_eq(&all, &part[1], sizeof all);
    for (int i = 0; i < MPSIM_HISTOGRAM_BINS; i++)
        total += all.bin[i];
    ck_assert_uint_eq(total + all.zero + all.inf + all.nan, N);
}

/* ---- casts ---- */

typedef struct cast {
    const char *format;
    int mode;
    double scale;
    int overflow;
} cast;

static const cast casts[] = {
    {"e4m3", MPSIM_ROUND_NEAREST_EVEN, 1, MPSIM_OVERFLOW_INF},
    {"e4m3", MPSIM_ROUND_NEAREST_EVEN, 64, MPSIM_OVERFLOW_MAX},
    {"e5m2", MPSIM_ROUND_STOCHASTIC_C, 0x1p-10, MPSIM_OVERFLOW_INF},
    {"fp16", MPSIM_ROUND_TOWARD_ZERO, 1, MPSIM_OVERFLOW_MAX},
    {"bf16", MPSIM_ROUND_UP, 3, MPSIM_OVERFLOW_INF},
    {"e2m1", MPSIM_ROUND_STOCHASTIC_A, 0.7, MPSIM_OVERFLOW_MAX},
    {"e8m0", MPSIM_ROUND_NEAREST_AWAY, 1, MPSIM_OVERFLOW_INF},
    {"binary8p3ue", MPSIM_ROUND_DOWN, 1, MPSIM_OVERFLOW_INF},
    {"binary32", MPSIM_ROUND_NEAREST_EVEN, 1, MPSIM_OVERFLOW_INF},
    {"binary64", MPSIM_ROUND_NEAREST_EVEN, 1, MPSIM_OVERFLOW_INF},
};

static mpsim_rounding rounding_of(const cast *c)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, (mpsim_round_mode)c->mode);
    r.scale = c->scale;
    r.overflow = (uint8_t)c->overflow;
    return r;
}

/* Values around those of the small formats, with everything else in between. */
static void tensor(double *x, size_t n, uint64_t *state)
{
    mixed(x, n, state);
    for (size_t i = 0; i < n; i++) {
        const uint64_t w = test_random(state);
        if (w % 4 != 0)
            x[i] = ldexp((double)(int64_t)(w >> 4) - 0x1p59, -60 + (int)(w % 97) - 48);
    }
}

CASE("casts", 20);

/* Everything once more, one element at a time, by the definitions in the header. */
TESTS(cast_stats_are_those_of_the_definition, LENGTH(casts))
{
    enum { N = 1700 };
    static double x[N];
    const cast *c = &casts[_i];
    const mpsim_format *f = mpsim_format_find(c->format);
    const mpsim_rounding r = rounding_of(c);
    const mpsim_rng rng = {3, 4, 5};
    uint64_t state = test_seed() + 5;
    mpsim_cast_stats s;
    mpsim_stats t;
    mpsim_counts counts = {0, 0, 0, 0, 0};
    uint64_t compared = 0;
    double worst = 0;
    mpfr_t error, left_out, signal;
    mpfr_inits2(WIDE, error, left_out, signal, (mpfr_ptr)0);
    mpfr_set_zero(error, 1);
    mpfr_set_zero(left_out, 1);
    mpfr_set_zero(signal, 1);
    tensor(x, N, &state);
    for (size_t i = 0; i < N; i++) {
        const uint32_t word = mpsim_rng_word(rng.seed, rng.stream, rng.index + i);
        unsigned flags;
        const double q = mpsim_decode(f, mpsim_encode_f64(f, &r, x[i], word, &flags));
        counts.inexact += (flags & MPSIM_FLAG_INEXACT) != 0;
        counts.underflow += (flags & MPSIM_FLAG_UNDERFLOW) != 0;
        counts.subnormal += (flags & MPSIM_FLAG_SUBNORMAL) != 0;
        counts.overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
        counts.nan += (flags & MPSIM_FLAG_NAN) != 0;
        if (!isfinite(x[i]))
            continue;
        if (!isfinite(q)) {
            exact_add(left_out, x[i], 1);
            continue;
        }
        compared++;
        exact_add(signal, x[i], 1);
        const double d = fabs(x[i] - q / c->scale);
        exact_add(error, d, 1);
        if (x[i] != 0 && d / fabs(x[i]) > worst)
            worst = d / fabs(x[i]);
    }
    mpsim_cast_stats_init(&s);
    mpsim_stats_init(&t);
    ck_assert(mpsim_cast_stats_add(&s, f, &r, &rng, x, N) == MPSIM_OK);
    mpsim_stats_add(&t, x, N);
    ck_assert_mem_eq(&s.counts, &counts, sizeof counts);
    ck_assert_uint_eq(s.compared, compared);
    ck_assert_msg(exact_same(s.max_rel_err, worst), "expected %a, got %a", worst, s.max_rel_err);
    const double e = mpfr_get_d(error, MPFR_RNDN);
    ck_assert(exact_same(mpsim_sum_value(&s.sum_squared_error), e));
    ck_assert(exact_same(mpsim_sum_value(&s.sum_squares_left_out), mpfr_get_d(left_out, MPFR_RNDN)));
    ck_assert(exact_same(mpsim_cast_stats_mse(&s), rounded_quotient(error, compared)));
    /* Sums rounded to 53 bits and logarithms that are right to a unit or two: below 2^13
     * decibels a unit is 2^-40, and 1e-10 is a hundred of them. */
    const double got = mpsim_cast_stats_sqnr_db(&s, &t);
    if (mpfr_zero_p(error)) {
        ck_assert(got == INFINITE);
    } else {
        mpfr_div(signal, signal, error, MPFR_RNDN);
        mpfr_log10(signal, signal, MPFR_RNDN);
        const double want = 10 * mpfr_get_d(signal, MPFR_RNDN);
        ck_assert_msg(fabs(got - want) <= 1e-10, "SQNR: expected %.15g, got %.15g", want, got);
    }
    mpfr_clears(error, left_out, signal, (mpfr_ptr)0);
}

/* The same accumulator, byte for byte, from any split with the index moved along. */
TESTS(cast_stats_do_not_depend_on_split, LENGTH(casts))
{
    enum { N = 1700, PARTS = 5 };
    static double x[N];
    static mpsim_cast_stats all, want, part[PARTS], got;
    const cast *c = &casts[_i];
    const mpsim_format *f = mpsim_format_find(c->format);
    const mpsim_rounding r = rounding_of(c);
    uint64_t state = test_seed() + 6;
    mpsim_rng rng = {3, 4, 5};
    tensor(x, N, &state);
    mpsim_cast_stats_init(&all);
    ck_assert(mpsim_cast_stats_add(&all, f, &r, &rng, x, N) == MPSIM_OK);
    mpsim_cast_stats_init(&want);
    mpsim_cast_stats_merge(&want, &all);
    ck_assert_mem_eq(&want.counts, &all.counts, sizeof all.counts);
    ck_assert(want.compared == all.compared && want.max_rel_err == all.max_rel_err);
    ck_assert(exact_same(mpsim_sum_value(&want.sum_squares_left_out), mpsim_sum_value(&all.sum_squares_left_out)));
    for (int round = 0; round < 10; round++) {
        for (int p = 0; p < PARTS; p++)
            mpsim_cast_stats_init(&part[p]);
        for (size_t i = 0; i < N;) {
            const size_t n = 1 + (size_t)(test_random(&state) % (round ? 100 : 1200));
            const size_t m = n < N - i ? n : N - i;
            rng.index = 5 + i;
            ck_assert(mpsim_cast_stats_add(&part[test_random(&state) % PARTS], f, &r, &rng, x + i, m) == MPSIM_OK);
            i += m;
        }
        mpsim_cast_stats_init(&got);
        for (int p = PARTS - 1; p >= 0; p--)
            mpsim_cast_stats_merge(&got, &part[p]);
        ck_assert_mem_eq(&got, &want, sizeof got);
        ck_assert(exact_same(mpsim_cast_stats_mse(&got), mpsim_cast_stats_mse(&all)));
    }
}

TEST(mse_and_sqnr_of_special_casts)
{
    const mpsim_format *e4m3 = mpsim_format_find("e4m3"), *e8m0 = mpsim_format_find("e8m0");
    mpsim_rounding r;
    mpsim_cast_stats c;
    mpsim_stats s;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);

    mpsim_cast_stats_init(&c); /* nothing at all */
    mpsim_stats_init(&s);
    ck_assert(mpsim_cast_stats_add(&c, e4m3, &r, NULL, NULL, 0) == MPSIM_OK);
    ck_assert(isnan(mpsim_cast_stats_mse(&c)) && isnan(mpsim_cast_stats_sqnr_db(&c, &s)));

    static const double lost[] = {1e6, -1e6, INFINITE, NOT_A_NUMBER}; /* nothing compared */
    ck_assert(mpsim_cast_stats_add(&c, e4m3, &r, NULL, lost, 4) == MPSIM_OK);
    mpsim_stats_add(&s, lost, 4);
    ck_assert(c.compared == 0 && c.counts.overflow == 2 && c.counts.nan == 1);
    ck_assert(c.counts.inexact == 2);
    ck_assert(mpsim_sum_value(&c.sum_squares_left_out) == 2e12 && c.max_rel_err == 0);
    ck_assert(isnan(mpsim_cast_stats_mse(&c)) && isnan(mpsim_cast_stats_sqnr_db(&c, &s)));

    static const double exact[] = {1, -0.5, 448}; /* no error */
    ck_assert(mpsim_cast_stats_add(&c, e4m3, &r, NULL, exact, 3) == MPSIM_OK);
    mpsim_stats_add(&s, exact, 3);
    ck_assert(c.compared == 3 && c.max_rel_err == 0);
    ck_assert(exact_same(mpsim_cast_stats_mse(&c), 0.0));
    ck_assert(mpsim_cast_stats_sqnr_db(&c, &s) == INFINITE);

    /* Errors 1/16 and 1/8 of 17/16 and 9: sum of squares without the million ones. */
    static const double inexact[] = {1.0625, 9.5};
    ck_assert(mpsim_cast_stats_add(&c, e4m3, &r, NULL, inexact, 2) == MPSIM_OK);
    mpsim_stats_add(&s, inexact, 2);
    ck_assert(c.compared == 5);
    ck_assert(mpsim_sum_value(&c.sum_squared_error) == 0x1p-8 + 0x1p-2);
    ck_assert(exact_same(mpsim_cast_stats_mse(&c), (0x1p-8 + 0x1p-2) / 5));
    ck_assert(exact_same(c.max_rel_err, 0.0625 / 1.0625));
    const double signal = 1 + 0.25 + 448 * 448 + 1.0625 * 1.0625 + 9.5 * 9.5;
    ck_assert_double_eq_tol(mpsim_cast_stats_sqnr_db(&c, &s), 10 * log10(signal / (0x1p-8 + 0x1p-2)), 1e-10);

    /* Error without signal: zero becomes 2^-127. */
    static const double zero[] = {0};
    mpsim_cast_stats_init(&c);
    mpsim_stats_init(&s);
    ck_assert(mpsim_cast_stats_add(&c, e8m0, &r, NULL, zero, 1) == MPSIM_OK);
    mpsim_stats_add(&s, zero, 1);
    ck_assert(c.compared == 1 && c.max_rel_err == 0);
    ck_assert(exact_same(mpsim_cast_stats_mse(&c), 0x1p-254));
    ck_assert(mpsim_cast_stats_sqnr_db(&c, &s) == -INFINITE);
}

/* Tensors whose squares lie outside of binary64: there is an error, so the ratio is finite.
 * 1.0625 y -> y in e4m3 with the scale 1 / y; (17/16)^2 / (1/16)^2 = 289. */
TEST(sqnr_of_very_small_and_very_large_tensors)
{
    for (int e = -900; e <= 900; e += 300) {
        const double y = ldexp(1, e), x = 1.0625 * y;
        const mpsim_format *f = mpsim_format_find("e4m3");
        mpsim_rounding r;
        mpsim_cast_stats c;
        mpsim_stats s;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        r.scale = 1 / y;
        mpsim_cast_stats_init(&c);
        mpsim_stats_init(&s);
        ck_assert(mpsim_cast_stats_add(&c, f, &r, NULL, &x, 1) == MPSIM_OK);
        mpsim_stats_add(&s, &x, 1);
        const double got = mpsim_cast_stats_sqnr_db(&c, &s), want = 10 * log10(289.0);
        ck_assert_msg(fabs(got - want) <= 1e-9, "2^%d: expected %.15g, got %.15g", e, want, got);
    }
}

/* q / scale can be 2^1024 although x is finite: the difference is 2^971. */
TEST(errors_next_to_the_end_of_binary64)
{
    static const double x[] = {DBL_MAX};
    const mpsim_format *f = mpsim_format_find("e5m2");
    mpsim_rounding r;
    mpsim_cast_stats c;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.scale = 0x1p-1010; /* DBL_MAX 2^-1010 rounds to 2^14 */
    mpsim_cast_stats_init(&c);
    ck_assert(mpsim_cast_stats_add(&c, f, &r, NULL, x, 1) == MPSIM_OK);
    ck_assert(c.compared == 1 && c.counts.overflow == 0 && c.counts.inexact == 1);
    ck_assert_msg(isfinite(c.max_rel_err) && c.max_rel_err <= 0x1p-52, "relative error %a", c.max_rel_err);
    mpsim_sum want;
    mpsim_sum_init(&want);
    mpsim_sum_add_square(&want, 0x1p971);
    mpsim_sum_subtract(&want, &c.sum_squared_error);
    ck_assert(mpsim_sum_value(&want) == 0);
}

TEST(cast_errors_leave_the_accumulator_alone)
{
    const mpsim_format *f = mpsim_format_find("e4m3");
    mpsim_format bad = *f;
    mpsim_rounding r, w;
    mpsim_cast_stats c, before;
    static const double x[] = {1.0625, 1e9};
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_cast_stats_init(&c);
    ck_assert(mpsim_cast_stats_add(&c, f, &r, NULL, x, 2) == MPSIM_OK);
    before = c;
    bad.max_finite = 0x7f;
    ck_assert_int_eq(mpsim_cast_stats_add(&c, &bad, &r, NULL, x, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_cast_stats_add(NULL, f, &r, NULL, x, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_cast_stats_add(&c, NULL, &r, NULL, x, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_cast_stats_add(&c, f, NULL, NULL, x, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_cast_stats_add(&c, f, &r, NULL, NULL, 2), MPSIM_EINVAL);
    w = r;
    w.mode = MPSIM_ROUND_STOCHASTIC_B;
    ck_assert_int_eq(mpsim_cast_stats_add(&c, f, &w, NULL, x, 2), MPSIM_EINVAL);
    w = r;
    w.scale = 0;
    ck_assert_int_eq(mpsim_cast_stats_add(&c, f, &w, NULL, x, 2), MPSIM_EINVAL);
    ck_assert_mem_eq(&c, &before, sizeof c);
}

TEST_MAIN("stats");
