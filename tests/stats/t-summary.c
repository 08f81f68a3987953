/* t-summary.c -- the promise of <mpsim/summary.h>: what the simple functions of <mpsim/stats.h> say of the
 * widened elements, element by element, is what a summary says, in every instruction set. */
#include <mpsim/isa.h>
#include <mpsim/summary.h>

#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASTS = 64, MOST = 70000 };
enum { ALL = MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS | MPSIM_SUMMARY_HISTOGRAM };

/* What is known of an array. */
typedef struct facts {
    mpsim_stats stats;
    mpsim_histogram histogram;
    mpsim_cast_stats casts[CASTS];
} facts;

static const mpsim_rng rng = {11, 22, 33};

static void facts_init(facts *f)
{
    memset(f, 0, sizeof *f);
}

/* Equal numbers in accumulators have equal digits only after a merge. */
static int same_sum(const mpsim_sum *a, const mpsim_sum *b)
{
    mpsim_sum x, y;
    int exponent;
    mpsim_sum_init(&x);
    mpsim_sum_init(&y);
    mpsim_sum_merge(&x, a);
    mpsim_sum_merge(&y, b);
    mpsim_sum_subtract(&x, &y);
    return mpsim_sum_frexp(&x, &exponent) == 0 && mpsim_sum_value(a) == mpsim_sum_value(b);
}

static int same_stats(const mpsim_stats *a, const mpsim_stats *b)
{
    return a->count == b->count && a->zero == b->zero && a->nan == b->nan && a->inf == b->inf && a->amax == b->amax &&
           a->amin == b->amin && same_sum(&a->sum, &b->sum) && same_sum(&a->sum_squares, &b->sum_squares);
}

static int same_cast(const mpsim_cast_stats *a, const mpsim_cast_stats *b)
{
    return memcmp(&a->counts, &b->counts, sizeof a->counts) == 0 && a->compared == b->compared &&
           a->max_rel_err == b->max_rel_err && same_sum(&a->sum_squared_error, &b->sum_squared_error) &&
           same_sum(&a->sum_squares_left_out, &b->sum_squares_left_out);
}

static void describe(char *text, size_t bytes, const mpsim_cast_stats *c)
{
    snprintf(text, bytes,
             "inexact %llu underflow %llu subnormal %llu overflow %llu nan %llu compared %llu "
             "rel %a error %a left %a",
             (unsigned long long)c->counts.inexact, (unsigned long long)c->counts.underflow,
             (unsigned long long)c->counts.subnormal, (unsigned long long)c->counts.overflow,
             (unsigned long long)c->counts.nan, (unsigned long long)c->compared, c->max_rel_err,
             mpsim_sum_value(&c->sum_squared_error), mpsim_sum_value(&c->sum_squares_left_out));
}

static void compare(const facts *got, const facts *want, const mpsim_cast *casts, size_t n, const char *what)
{
    char a[400], b[400];
    ck_assert_msg(same_stats(&got->stats, &want->stats), "%s: statistics differ: sum %a, not %a", what,
                  mpsim_sum_value(&got->stats.sum), mpsim_sum_value(&want->stats.sum));
    ck_assert_msg(memcmp(&got->histogram, &want->histogram, sizeof want->histogram) == 0, "%s: histograms differ",
                  what);
    for (size_t i = 0; i < n; i++) {
        if (same_cast(&got->casts[i], &want->casts[i]))
            continue;
        describe(a, sizeof a, &got->casts[i]);
        describe(b, sizeof b, &want->casts[i]);
        ck_abort_msg("%s %s (%s): %s %s scale %a:\n got %s\nwant %s", what, mpsim_isa_active(), "summary",
                     casts[i].format->name, mpsim_round_mode_name((mpsim_round_mode)casts[i].rounding.mode),
                     casts[i].rounding.scale, a, b);
    }
}

/* The simple functions. */
static void judge(facts *f, const mpsim_cast *casts, size_t n_casts, const double *x, size_t n, uint64_t first)
{
    const mpsim_rng at = {rng.seed, rng.stream, rng.index + first};
    mpsim_stats_add(&f->stats, x, n);
    mpsim_histogram_add(&f->histogram, x, n);
    for (size_t i = 0; i < n_casts; i++)
        ck_assert(mpsim_cast_stats_add(&f->casts[i], casts[i].format, &casts[i].rounding, &at, x, n) == MPSIM_OK);
}

/* ---- inputs ---- */

static float x[MOST];
static double wide[MOST];

static float random_in(uint64_t *state, int low, int high)
{
    const uint64_t w = test_random(state);
    const uint32_t key = (uint32_t)(127 + low) + (uint32_t)(w >> 40) % (uint32_t)(high - low + 1);
    return f32_of_bits(((uint32_t)w & 0x807fffff) | key << 23);
}

static void uniform(size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_in(state, -60, 60);
}

/* Sums of a few uniform numbers: like gradients. */
static void gradients(size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++) {
        double s = 0;
        for (int k = 0; k < 6; k++)
            s += (double)(test_random(state) >> 11) * 0x1p-53 - 0.5;
        x[i] = (float)(s * 0x1p-9);
    }
}

static void everything(size_t n, uint64_t *state)
{
    static const uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
                                       0xffffffff, 1,          0x807fffff, 0x7f7fffff, 0x00800000};
    for (size_t i = 0; i < n; i++) {
        const uint64_t w = test_random(state);
        const uint32_t bits = w % 5 == 0 ? special[(w >> 8) % 11] : (uint32_t)(w >> 32);
        x[i] = f32_of_bits(bits);
        if (w % 5 == 1) /* few bits */
            x[i] = f32_of_bits(bits & 0xfff80000u);
        if (w % 5 == 2)
            x[i] = random_in(state, 40, 90);
    }
}

static void constant(size_t n, uint64_t *state)
{
    const float v = random_in(state, -20, 10);
    for (size_t i = 0; i < n; i++)
        x[i] = i % 3 ? v : -v;
}

static void narrow(size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        x[i] = f32_of_bits(bits_of_f32(random_in(state, -24, 17)) & 0xffff0000u);
}

/* One binade in which the largest relative error of a drop grows again and again, by as little as can be:
 * significands that come closer to the first tie, or to what is truncated most, from either side. */
static void records(size_t n, uint64_t *state)
{
    const uint32_t drop = 13 + (uint32_t)(test_random(state) % 11);
    const uint32_t key = 127 - (uint32_t)(test_random(state) % 30);
    const uint32_t peak = test_random(state) % 2 ? 1u << (drop - 1) : (1u << drop) - 1;
    const uint32_t side = (uint32_t)test_random(state);
    for (size_t i = 0; i < n; i++) {
        const uint32_t far = (uint32_t)((n - i - 1) / 600) + (uint32_t)(test_random(state) % 2) * 3;
        const uint32_t fraction = (side >> i / 2000 % 32 & 1) ? peak - far : peak + far;
        x[i] = f32_of_bits(key << 23 | (fraction & 0x7fffff));
        if (i % 7 == 0)
            x[i] = f32_of_bits(key << 23 | 0x700000 | ((uint32_t)i << 4 & 0xfffff));
    }
}

static void (*const inputs[])(size_t n, uint64_t *state) = {uniform, gradients, everything, constant, narrow, records};
enum { INPUTS = 6 };

/* Codes of a format, the midpoints between them and their neighbours, as binary32 numbers / scale; some. */
static size_t boundaries(const mpsim_format *f, double scale, size_t most, uint64_t *state)
{
    size_t n = 0;
    const uint64_t codes = f->bits < 20 ? (uint64_t)1 << f->bits : 1 << 20;
    const uint64_t step = codes / (most / 6) + 1;
    for (uint64_t code = test_random(state) % step; code < codes && n + 6 <= most; code += step) {
        const double v = mpsim_decode(f, code), up = mpsim_decode(f, mpsim_next_up(f, code));
        const double pair[] = {v / scale, (v / 2 + up / 2) / scale};
        for (int k = 0; k < 2; k++) {
            const float y = (float)pair[k];
            x[n++] = y;
            x[n++] = isfinite(y) ? nextafterf(y, INFINITY) : y;
            x[n++] = isfinite(y) ? nextafterf(y, -INFINITY) : y;
        }
    }
    /* the same around the ends */
    const double max = mpsim_format_max(f);
    const double ends[] = {max, mpsim_format_min_normal(f), mpsim_format_min_positive(f),
                           max * (1 + mpsim_format_epsilon(f) / 4)};
    for (size_t k = 0; k < 4 && n + 12 <= most + 48; k++)
        for (int half = -1; half <= 2; half++) {
            const float y = (float)ldexp(ends[k] / scale, half);
            x[n++] = y;
            x[n++] = isfinite(y) ? nextafterf(y, INFINITY) : y;
            x[n++] = -(isfinite(y) ? nextafterf(y, 0) : y);
        }
    return n;
}

/* ---- casts ---- */

/* Cast number k of format f: modes, presets, scales, choices in turn. */
static mpsim_cast cast_of(const mpsim_format *f, uint64_t k)
{
    static const double odd[] = {0.1, 3, 0x1.fp-9, 0x1p-400, 0x1p300};
    mpsim_cast c = {.format = f};
    mpsim_rounding_init(&c.rounding, (mpsim_round_mode)(k % MPSIM_ROUND_MODES));
    if (k / 9 % 3 == 1) {
        mpsim_rounding_preset(&c.rounding, mpsim_preset_at(k / 27 % mpsim_preset_count()), f);
        c.rounding.mode = (uint8_t)(k % MPSIM_ROUND_MODES);
    }
    if (k % 2)
        c.rounding.overflow = MPSIM_OVERFLOW_MAX;
    if (k / 9 % 5 == 2)
        c.rounding.flush_output = 1;
    if (k / 9 % 7 == 3) {
        c.rounding.flush_input = 1;
        c.rounding.flush_below = k % 2 ? 0x1p-126 : 0x1.23456p-12;
    }
    c.rounding.scale = k % 11 == 5 ? odd[k / 11 % 5] : ldexp(1, (int)(k * 7 % 81) - 40);
    if (k % 4 == 0)
        c.rounding.scale = 1;
    return c;
}

static size_t random_casts(mpsim_cast *casts, uint64_t *state)
{
    for (size_t i = 0; i < CASTS; i++) {
        uint64_t k = test_random(state) % 100000;
        if (i % 4)
            k -= k % 9 >= 3 ? k % 9 - k % 3 : 0; /* mostly the modes that have a fast way */
        casts[i] = cast_of(mpsim_format_at((size_t)(test_random(state) % mpsim_format_count())), k);
    }
    return CASTS;
}

/* ---- tests ---- */

/* n elements of x in random parts to one of two summaries, which are merged and read. */
static void summarise(facts *f, mpsim_summary *const s[2], const mpsim_cast *casts, size_t n_casts, unsigned want,
                      size_t n, uint64_t *state)
{
    facts_init(f);
    for (int k = 0; k < 2; k++)
        ck_assert(mpsim_summary_begin(s[k], casts, n_casts, want) == MPSIM_OK);
    for (size_t i = 0; i < n;) {
        const size_t some = 1 + (size_t)(test_random(state) % 5000), m = some < n - i ? some : n - i;
        const mpsim_rng at = {rng.seed, rng.stream, rng.index + i};
        mpsim_summary *to = s[test_random(state) % 2];
        if (test_random(state) % 16 == 0) {
            ck_assert(mpsim_summary_add_f64(to, &at, wide + i, m) == MPSIM_OK);
        } else {
            unsigned char moved[4 * 5000 + 1]; /* any alignment */
            const void *from = memcpy(moved + 1, x + i, 4 * m);
            ck_assert(mpsim_summary_add_f32(to, &at, from, m) == MPSIM_OK);
        }
        i += m;
    }
    ck_assert(mpsim_summary_merge(s[0], s[1]) == MPSIM_OK);
    ck_assert(mpsim_summary_read(s[0], &f->stats, &f->histogram, f->casts) == MPSIM_OK);
}

/* What is not wanted is 0. */
static void without(facts *f, unsigned want)
{
    if (!(want & MPSIM_SUMMARY_SUMS)) {
        mpsim_sum_init(&f->stats.sum);
        mpsim_sum_init(&f->stats.sum_squares);
    }
    if (!(want & MPSIM_SUMMARY_HISTOGRAM))
        mpsim_histogram_init(&f->histogram);
    for (size_t i = 0; i < CASTS && !(want & MPSIM_SUMMARY_ERRORS); i++) {
        const mpsim_counts counts = f->casts[i].counts;
        mpsim_cast_stats_init(&f->casts[i]);
        f->casts[i].counts = counts;
    }
}

static facts want_facts, got_facts, fewer;

/* n elements at once. */
static void whole(mpsim_summary *s, const mpsim_cast *casts, size_t n_casts, unsigned want, size_t n, const char *what)
{
    fewer = want_facts;
    without(&fewer, want);
    facts_init(&got_facts);
    ck_assert(mpsim_summary_begin(s, casts, n_casts, want) == MPSIM_OK);
    ck_assert(mpsim_summary_add_f32(s, &rng, x, n) == MPSIM_OK);
    ck_assert(mpsim_summary_read(s, &got_facts.stats, &got_facts.histogram, got_facts.casts) == MPSIM_OK);
    compare(&got_facts, &fewer, casts, n_casts, what);
}

/* Counts alone by every instruction set, everything by the best. */
static void check_counts(mpsim_summary *s, const mpsim_cast *casts, size_t n_casts, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)x[i];
    facts_init(&want_facts);
    judge(&want_facts, casts, n_casts, wide, n, 0);
    for (int isa = 0; isa < test_isa_count(); isa++)
        if (test_isa_use((size_t)isa))
            whole(s, casts, n_casts, MPSIM_SUMMARY_HISTOGRAM, n, what);
    test_isa_use((size_t)0);
    whole(s, casts, n_casts, ALL, n, what);
}

/* Three whose largest numbers lie in one binade. */
static void near_overflows(mpsim_cast *casts)
{
    static const char *const names[] = {"fp16", "e4m3", "e5m2"};
    for (size_t i = 0; i < 3; i++) {
        casts[i].format = mpsim_format_find(names[i]);
        mpsim_rounding_init(&casts[i].rounding, MPSIM_ROUND_NEAREST_EVEN);
        casts[i].rounding.scale = i == 1 ? 0x1p-7 : 1;
    }
}

/* By the best instruction set each day, by the others in turn. */
static void check_array(mpsim_summary *const s[2], const mpsim_cast *casts, size_t n_casts, size_t n, uint64_t *state,
                        const char *what)
{
    static uint64_t called;
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)x[i];
    facts_init(&want_facts);
    judge(&want_facts, casts, n_casts, wide, n, 0);
    called++;
    for (int isa = 0; isa < test_isa_count(); isa++) {
        if (!test_isa_use((size_t)isa) || (isa > 0 && !test_in_part(called + (uint64_t)isa, 1)))
            continue;
        const unsigned want = (unsigned)(test_random(state) % 8);
        summarise(&got_facts, s, casts, n_casts, ALL, n, state);
        compare(&got_facts, &want_facts, casts, n_casts, what);
        fewer = want_facts;
        without(&fewer, want);
        summarise(&got_facts, s, casts, n_casts, want, n, state);
        compare(&got_facts, &fewer, casts, n_casts, what);
    }
    test_isa_use((size_t)0);
}

CASE("summary", 60);

TESTS(summaries_of_any_input, INPUTS)
{
    uint64_t state = test_seed() + (uint64_t)_i;
    mpsim_summary *const s[2] = {mpsim_summary_new(), mpsim_summary_new()};
    mpsim_cast casts[CASTS];
    char what[40];
    for (int round = 0; round < (int)test_scaled(6); round++) {
        const size_t n = round == 0 ? 20000 : (size_t)(test_random(&state) % 2500);
        const size_t n_casts = round == 0 ? 6 : random_casts(casts, &state);
        if (round == 0)
            (void)random_casts(casts, &state);
        inputs[_i](n, &state);
        snprintf(what, sizeof what, "input %d round %d", _i, round);
        check_array(s, casts, n_casts, n, &state, what);
    }
    mpsim_summary_free(s[0]);
    mpsim_summary_free(s[1]);
}

TESTS(counts_of_large_arrays, INPUTS)
{
    uint64_t state = test_seed() + 400 + (uint64_t)_i;
    mpsim_summary *s = mpsim_summary_new();
    mpsim_cast casts[CASTS];
    for (int round = 0; round < 2; round++) {
        (void)random_casts(casts, &state);
        if (round == 1)
            near_overflows(casts);
        inputs[_i](MOST, &state);
        check_counts(s, casts, 7, MOST - 11, "counts");
    }
    mpsim_summary_free(s);
}

/* Few casts over many elements of one binade, and no element of it is special. */
TEST(largest_errors_that_grow)
{
    uint64_t state = test_seed() + 500;
    mpsim_summary *const s[2] = {mpsim_summary_new(), mpsim_summary_new()};
    mpsim_cast casts[CASTS];
    for (int round = 0; round < 12; round++) {
        for (size_t i = 0; i < 13; i++) {
            mpsim_rounding_init(&casts[i].rounding, i % 2 ? MPSIM_ROUND_TOWARD_ZERO : MPSIM_ROUND_NEAREST_EVEN);
            casts[i].format = mpsim_format_find(i % 3 ? "e5m2" : "fp16");
            casts[i].rounding.scale = ldexp(1, (int)i * 2);
        }
        records(16000, &state);
        check_array(s, casts, 13, 16000, &state, "records");
    }
    mpsim_summary_free(s[0]);
    mpsim_summary_free(s[1]);
}

TEST(summaries_at_the_boundaries_of_every_format)
{
    uint64_t state = test_seed() + 100;
    mpsim_summary *const s[2] = {mpsim_summary_new(), mpsim_summary_new()};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        mpsim_cast casts[CASTS];
        for (size_t k = 0; k < 12; k++) {
            const uint64_t w = test_random(&state) % 100000;
            casts[k] = cast_of(f, k < 9 ? w - w % 9 + k % 3 : w);
            casts[k].rounding.scale = k < 9 ? 4 : casts[k].rounding.scale;
        }
        const size_t n = boundaries(f, 4, 400, &state);
        check_array(s, casts, 12, n, &state, f->name);
    }
    mpsim_summary_free(s[0]);
    mpsim_summary_free(s[1]);
}

TEST(many_scales)
{
    uint64_t state = test_seed() + 200;
    mpsim_summary *const s[2] = {mpsim_summary_new(), mpsim_summary_new()};
    static const char *const names[] = {"fp16", "bf16", "e4m3", "e5m2"};
    mpsim_cast casts[CASTS];
    for (size_t i = 0; i < CASTS; i++) {
        casts[i].format = mpsim_format_find(names[i % 4]);
        mpsim_rounding_init(&casts[i].rounding, MPSIM_ROUND_NEAREST_EVEN);
        casts[i].rounding.scale = ldexp(1, (int)(i / 4 * 3) - 8);
        casts[i].rounding.overflow = i / 4 % 2;
    }
    gradients(30000, &state);
    check_array(s, casts, CASTS, 30000, &state, "scales");
    mpsim_summary_free(s[0]);
    mpsim_summary_free(s[1]);
}

TEST(summaries_of_codes)
{
    static unsigned char codes[8 * 20000];
    uint64_t state = test_seed() + 300;
    mpsim_summary *s = mpsim_summary_new();
    mpsim_cast casts[CASTS];
    mpsim_format odd; /* numbers that binary32 has not, in its range */
    ck_assert_int_eq(mpsim_format_parse(&odd, "e5m24"), MPSIM_OK);
    for (size_t i = 0; i <= mpsim_format_count(); i++) {
        const mpsim_format *f = i < mpsim_format_count() ? mpsim_format_at(i) : &odd;
        const size_t bytes = mpsim_format_code_bytes(f), n = i % 5 == 0 ? 20000 : 1000;
        const size_t n_casts = n == 1000 ? CASTS : 5;
        (void)random_casts(casts, &state);
        for (size_t k = 0; k < n; k++)
            code_store(codes + k * bytes, bytes, test_random(&state) & (((uint64_t)2 << (f->bits - 1)) - 1));
        ck_assert(mpsim_decode_array(f, wide, codes, n) == MPSIM_OK);
        facts_init(&want_facts);
        judge(&want_facts, casts, n_casts, wide, n, 0);
        for (int isa = 0; isa < test_isa_count(); isa++) {
            if (!test_isa_use((size_t)isa) || (isa > 0 && !test_in_part(i + (uint64_t)isa, 1)))
                continue;
            const mpsim_rng later = {rng.seed, rng.stream, rng.index + n / 2};
            facts_init(&got_facts);
            ck_assert(mpsim_summary_begin(s, casts, n_casts, ALL) == MPSIM_OK);
            ck_assert(mpsim_summary_add_codes(s, f, &rng, codes, n / 2) == MPSIM_OK);
            ck_assert(mpsim_summary_add_codes(s, f, &later, codes + n / 2 * bytes, n - n / 2) == MPSIM_OK);
            ck_assert(mpsim_summary_read(s, &got_facts.stats, &got_facts.histogram, got_facts.casts) == MPSIM_OK);
            compare(&got_facts, &want_facts, casts, n_casts, f->name);
        }
    }
    test_isa_use((size_t)0);
    mpsim_summary_free(s);
}

/* Casts that do not depend on where an element stands. */
static void without_random_bits(mpsim_cast *casts)
{
    for (size_t i = 0; i < CASTS; i++)
        if (casts[i].rounding.mode >= MPSIM_ROUND_STOCHASTIC_A)
            casts[i].rounding.mode = MPSIM_ROUND_UP;
}

static void add_counts(facts *f, mpsim_summary *s, const mpsim_cast *casts, size_t n_casts, const mpsim_format *format,
                       const uint64_t *counts, const uint64_t *more)
{
    facts_init(f);
    ck_assert(mpsim_summary_begin(s, casts, n_casts, ALL) == MPSIM_OK);
    ck_assert(mpsim_summary_add_counts(s, format, counts) == MPSIM_OK);
    ck_assert(!more || mpsim_summary_add_counts(s, format, more) == MPSIM_OK);
    ck_assert(mpsim_summary_read(s, &f->stats, &f->histogram, f->casts) == MPSIM_OK);
}

/* Of few elements as of an array; of very many as of two parts. */
TEST(summaries_of_counts)
{
    static uint64_t counts[65536], half[65536], other[65536];
    uint64_t state = test_seed() + 400;
    mpsim_summary *s = mpsim_summary_new();
    mpsim_cast casts[CASTS];
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        if (f->bits > 16) {
            ck_assert(mpsim_summary_begin(s, casts, 0, ALL) == MPSIM_OK);
            ck_assert_int_eq(mpsim_summary_add_counts(s, f, counts), MPSIM_EINVAL);
            continue;
        }
        size_t n = 0;
        (void)random_casts(casts, &state);
        without_random_bits(casts);
        memset(counts, 0, sizeof counts);
        for (int k = 0; k < 200; k++)
            counts[test_random(&state) >> (64 - f->bits)] = test_random(&state) % 6;
        for (uint64_t code = 0; code >> f->bits == 0; code++)
            for (uint64_t k = 0; k < counts[code]; k++)
                wide[n++] = mpsim_decode(f, code);
        facts_init(&want_facts);
        judge(&want_facts, casts, CASTS, wide, n, 0);
        for (int isa = 0; isa < test_isa_count(); isa++) {
            if (!test_isa_use((size_t)isa) || (isa > 0 && !test_in_part(i + (uint64_t)isa, 1)))
                continue;
            add_counts(&got_facts, s, casts, CASTS, f, counts, NULL);
            compare(&got_facts, &want_facts, casts, CASTS, f->name);
        }
        test_isa_use((size_t)0);
        for (uint64_t code = 0; code >> f->bits == 0; code++) {
            counts[code] = counts[code] ? test_random(&state) >> 24 : 0;
            half[code] = counts[code] / 2;
            other[code] = counts[code] - half[code];
        }
        add_counts(&got_facts, s, casts, 3, f, counts, NULL);
        add_counts(&want_facts, s, casts, 3, f, half, other);
        compare(&got_facts, &want_facts, casts, 3, f->name);
    }
    mpsim_summary_free(s);
}

TEST(summaries_refuse_what_is_invalid)
{
    mpsim_summary *a = mpsim_summary_new(), *b = mpsim_summary_new();
    mpsim_cast c = cast_of(mpsim_format_find("fp16"), 0);
    static const float one[1] = {1};
    mpsim_format bad = *c.format;
    bad.max_finite = 1;
    ck_assert_int_eq(mpsim_summary_add_f32(a, NULL, one, 1), MPSIM_EINVAL); /* did not begin */
    ck_assert_int_eq(mpsim_summary_begin(NULL, &c, 1, ALL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_begin(a, NULL, 1, ALL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_begin(a, &c, 1, ALL | 8), MPSIM_EINVAL);
    c.format = &bad;
    ck_assert_int_eq(mpsim_summary_begin(a, &c, 1, ALL), MPSIM_EINVAL);
    c = cast_of(mpsim_format_find("fp16"), MPSIM_ROUND_STOCHASTIC_A);
    ck_assert_int_eq(mpsim_summary_begin(a, &c, 1, ALL), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_add_f32(a, NULL, one, 1), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_counts(a, mpsim_format_find("e4m3"), (uint64_t[256]){0}), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_f32(a, &rng, NULL, 1), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_f32(a, &rng, NULL, 0), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_add_codes(a, &bad, &rng, one, 1), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_begin(b, &c, 1, 0), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_merge(a, b), MPSIM_EINVAL);
    facts_init(&got_facts);
    ck_assert_int_eq(mpsim_summary_read(a, &got_facts.stats, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_read(a, &got_facts.stats, NULL, got_facts.casts), MPSIM_OK);
    ck_assert(got_facts.stats.count == 0 && got_facts.casts[0].compared == 0);
    ck_assert_int_eq(mpsim_summary_begin(a, NULL, 0, 0), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_add_f32(a, NULL, one, 1), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_read(a, &got_facts.stats, NULL, NULL), MPSIM_OK);
    ck_assert(got_facts.stats.count == 1 && got_facts.stats.amax == 1);
    mpsim_summary_free(a);
    mpsim_summary_free(b);
    mpsim_summary_free(NULL);
}

TEST_MAIN("summary");
