/* plainsummary.c -- see plainsummary.h. */
#include "plainsummary.h"

#include "subjects.h"
#include "support.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- sums: significands, or their squares, by the exponent field ---- */

enum { FIELDS = 2047 };

/* Sums of 192 bits, least word first, positive and negative terms apart. */
typedef struct bins {
    uint64_t words[2][FIELDS][3];
} bins;

/* A number of 53 bits, or its square: the lower word; *high is the other. */
static uint64_t term(uint64_t m, int square, uint64_t *high)
{
    const uint64_t a = m & 0xffffffffu, b = m >> 32, crossed = a * b, low = a * a + (crossed << 33);
    *high = square ? b * b + (crossed >> 31) + (low < crossed << 33) : 0;
    return square ? low : m;
}

static void add(bins *b, double x, int square)
{
    const uint64_t u = bits_of_f64(x), field = u >> 52 & 0x7ff;
    const uint64_t m = (u & 0xfffffffffffffu) | (uint64_t)(field != 0) << 52;
    const int sign = !square && u >> 63;
    uint64_t high, *to = b->words[sign][field];
    const uint64_t low = term(m, square, &high);
    to[0] += low;
    high += to[0] < low; /* less than 2^43 before */
    to[1] += high;
    to[2] += to[1] < high;
}

static void total(mpz_t z, const bins *b, int square, uint64_t times)
{
    mpz_t t;
    mpz_init(t);
    mpz_set_ui(z, 0);
    for (int sign = 0; sign < 2; sign++)
        for (unsigned field = 0; field < FIELDS; field++) {
            const uint64_t *words = b->words[sign][field];
            if (!words[0] && !words[1] && !words[2])
                continue;
            mpz_import(t, 3, -1, 8, 0, 0, words);
            const unsigned e = field ? field : 1; /* the unit is 2^(e - 1075) */
            mpz_mul_2exp(t, t, square ? 2 * e + 26 : e + 1101);
            if (sign)
                mpz_neg(t, t);
            mpz_add(z, z, t);
        }
    mpz_import(t, 1, 1, sizeof times, 0, 0, &times);
    mpz_mul(z, z, t);
    mpz_clear(t);
}

void plain_sum(mpz_t z, const mpsim_sum *s)
{
    mpz_t limb;
    mpz_init(limb);
    mpz_set_ui(z, 0);
    for (int i = MPSIM_SUM_LIMBS; i-- > 0;) {
        const uint64_t size = s->limb[i] < 0 ? -(uint64_t)s->limb[i]
                                             : (uint64_t)s->limb[i]; /* a long may have 32 bits */
        mpz_import(limb, 1, 1, sizeof size, 0, 0, &size);
        mpz_mul_2exp(z, z, 32);
        if (s->limb[i] < 0)
            mpz_sub(z, z, limb);
        else
            mpz_add(z, z, limb);
    }
    mpz_clear(limb);
}

/* ---- by the definitions ---- */

void plain_init(plain_summary *p)
{
    memset(p, 0, sizeof *p);
    mpz_inits(p->sum, p->squares, (mpz_ptr)0);
    for (int i = 0; i < PLAIN_CASTS; i++)
        mpz_inits(p->cast[i].squared_error, p->cast[i].left_out, (mpz_ptr)0);
}

static void set_tensor(plain_summary *p, const double *x, size_t n, uint64_t times)
{
    static bins sum, squares;
    memset(&sum, 0, sizeof sum);
    memset(&squares, 0, sizeof squares);
    memset(p->bin, 0, sizeof p->bin);
    p->count = n * times;
    p->zero = p->nan = p->inf = 0;
    p->amax = p->amin = 0;
    for (size_t i = 0; i < n; i++) {
        const double a = fabs(x[i]);
        if (isnan(a)) {
            p->nan += times;
        } else if (isinf(a)) {
            p->inf += times;
        } else if (a == 0) {
            p->zero += times;
        } else {
            p->bin[ilogb(a) - MPSIM_HISTOGRAM_MIN] += times;
            p->amax = a > p->amax ? a : p->amax;
            p->amin = p->amin == 0 || a < p->amin ? a : p->amin;
            add(&sum, x[i], 0);
            add(&squares, x[i], 1);
        }
    }
    total(p->sum, &sum, 0, times);
    total(p->squares, &squares, 1, times);
}

static void set_cast(plain_cast *p, const mpsim_cast *c, const mpsim_rng *rng, const double *x, size_t n,
                     uint64_t times)
{
    static bins error, left_out;
    memset(&error, 0, sizeof error);
    memset(&left_out, 0, sizeof left_out);
    memset(&p->counts, 0, sizeof p->counts);
    p->compared = 0;
    p->max_rel_err = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned flags;
        const uint32_t word = rng ? mpsim_rng_word(rng->seed, rng->stream, rng->index + i) : 0;
        const double q = mpsim_decode(c->format, mpsim_encode_f64(c->format, &c->rounding, x[i], word, &flags));
        subject_count(&p->counts, flags);
        if (!isfinite(x[i]))
            continue;
        if (!isfinite(q)) {
            add(&left_out, x[i], 1);
            continue;
        }
        p->compared++;
        double d = fabs(x[i] - q / c->rounding.scale);
        if (d > DBL_MAX) /* the quotient is beyond binary64, the difference need not be */
            d = 2 * fabs(x[i] / 2 - q / 2 / c->rounding.scale);
        d = d > DBL_MAX ? DBL_MAX : d;
        add(&error, d, 1);
        if (x[i] != 0 && d / fabs(x[i]) > p->max_rel_err)
            p->max_rel_err = d / fabs(x[i]);
    }
    p->counts.inexact *= times, p->counts.underflow *= times, p->counts.subnormal *= times;
    p->counts.overflow *= times, p->counts.nan *= times;
    p->compared *= times;
    total(p->squared_error, &error, 1, times);
    total(p->left_out, &left_out, 1, times);
}

void plain_set(plain_summary *p, const mpsim_cast *casts, size_t n_casts, const mpsim_rng *rng, const double *x,
               size_t n, uint64_t times)
{
    ck_assert(n_casts <= PLAIN_CASTS);
    p->n = n_casts;
    set_tensor(p, x, n, times);
    for (size_t k = 0; k < n_casts; k++)
        set_cast(&p->cast[k], &casts[k], rng, x, n, times);
}

/* ---- comparison ---- */

static char text[300];

static int count_differs(const char *what, uint64_t want, uint64_t before, uint64_t after)
{
    if (after - before == want)
        return 0;
    snprintf(text, sizeof text, "%s: expected %" PRIu64 ", got %" PRIu64, what, want, after - before);
    return 1;
}

static int number_differs(const char *what, double want, double got)
{
    if (bits_of_f64(want) == bits_of_f64(got))
        return 0;
    snprintf(text, sizeof text, "%s: expected %a, got %a", what, want, got);
    return 1;
}

static int sum_differs(const char *what, const mpz_t want, const mpsim_sum *before, const mpsim_sum *after)
{
    mpz_t a, b;
    mpz_inits(a, b, (mpz_ptr)0);
    plain_sum(a, after);
    plain_sum(b, before);
    mpz_sub(a, a, b);
    const int wrong = mpz_cmp(a, want) != 0;
    if (wrong) {
        long ew, ea, ed;
        mpz_sub(b, a, want);
        const double w = mpz_get_d_2exp(&ew, want), g = mpz_get_d_2exp(&ea, a), d = mpz_get_d_2exp(&ed, b);
        snprintf(text, sizeof text, "%s: expected %.17g * 2^%ld, got %.17g * 2^%ld, difference %g * 2^%ld", what, w,
                 ew - 2176, g, ea - 2176, d, ed - 2176);
    }
    mpz_clears(a, b, (mpz_ptr)0);
    return wrong;
}

/* What is not wanted is left as it was; a sum may be carried. */
static int touched(const char *what, const mpsim_sum *before, const mpsim_sum *after)
{
    mpz_t none;
    mpz_init(none);
    const int wrong = sum_differs(what, none, before, after);
    mpz_clear(none);
    return wrong;
}

static int cast_differs(const plain_cast *p, unsigned want, const mpsim_cast_stats *b, const mpsim_cast_stats *a)
{
    if (count_differs("inexact", p->counts.inexact, b->counts.inexact, a->counts.inexact) ||
        count_differs("underflow", p->counts.underflow, b->counts.underflow, a->counts.underflow) ||
        count_differs("subnormal", p->counts.subnormal, b->counts.subnormal, a->counts.subnormal) ||
        count_differs("overflow", p->counts.overflow, b->counts.overflow, a->counts.overflow) ||
        count_differs("nan of a cast", p->counts.nan, b->counts.nan, a->counts.nan))
        return 1;
    if (!(want & MPSIM_SUMMARY_ERRORS))
        return count_differs("compared, not wanted", 0, b->compared, a->compared) ||
               number_differs("max_rel_err, not wanted", b->max_rel_err, a->max_rel_err) ||
               touched("errors, not wanted", &b->sum_squared_error, &a->sum_squared_error) ||
               touched("errors, not wanted", &b->sum_squares_left_out, &a->sum_squares_left_out);
    const double worst = p->max_rel_err > b->max_rel_err ? p->max_rel_err : b->max_rel_err;
    return count_differs("compared", p->compared, b->compared, a->compared) ||
           number_differs("max_rel_err", worst, a->max_rel_err) ||
           sum_differs("sum_squared_error", p->squared_error, &b->sum_squared_error, &a->sum_squared_error) ||
           sum_differs("sum_squares_left_out", p->left_out, &b->sum_squares_left_out, &a->sum_squares_left_out);
}

static int tensor_differs(const plain_summary *p, unsigned want, const mpsim_stats *b, const mpsim_stats *a)
{
    const double least = b->amin == 0 ? p->amin : p->amin == 0 || b->amin < p->amin ? b->amin : p->amin;
    if (count_differs("count", p->count, b->count, a->count) || count_differs("zero", p->zero, b->zero, a->zero) ||
        count_differs("nan", p->nan, b->nan, a->nan) || count_differs("inf", p->inf, b->inf, a->inf) ||
        number_differs("amax", p->amax > b->amax ? p->amax : b->amax, a->amax) ||
        number_differs("amin", least, a->amin))
        return 1;
    if (!(want & MPSIM_SUMMARY_SUMS))
        return touched("sums, not wanted", &b->sum, &a->sum) ||
               touched("sums, not wanted", &b->sum_squares, &a->sum_squares);
    return sum_differs("sum", p->sum, &b->sum, &a->sum) ||
           sum_differs("sum_squares", p->squares, &b->sum_squares, &a->sum_squares);
}

static int histogram_differs(const plain_summary *p, const mpsim_histogram *b, const mpsim_histogram *a)
{
    if (count_differs("histogram zero", p->zero, b->zero, a->zero) ||
        count_differs("histogram inf", p->inf, b->inf, a->inf) ||
        count_differs("histogram nan", p->nan, b->nan, a->nan))
        return 1;
    for (int i = 0; i < MPSIM_HISTOGRAM_BINS; i++) {
        char what[40];
        snprintf(what, sizeof what, "histogram 2^%d", i + MPSIM_HISTOGRAM_MIN);
        if (count_differs(what, p->bin[i], b->bin[i], a->bin[i]))
            return 1;
    }
    return 0;
}

const char *plain_differs(const plain_summary *p, unsigned want, const plain_read *before, const plain_read *after)
{
    if (tensor_differs(p, want, &before->stats, &after->stats))
        return text;
    if (want & MPSIM_SUMMARY_HISTOGRAM) {
        if (histogram_differs(p, &before->histogram, &after->histogram))
            return text;
    } else if (memcmp(&before->histogram, &after->histogram, sizeof before->histogram) != 0) {
        return "a histogram that is not wanted was touched";
    }
    for (size_t k = 0; k < p->n; k++)
        if (cast_differs(&p->cast[k], want, &before->casts[k], &after->casts[k])) {
            const size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, " (cast %zu)", k);
            return text;
        }
    return NULL;
}

void plain_before(plain_read *b, size_t n_casts, uint64_t *state)
{
    const uint64_t w = test_random(state);
    const double some[] = {0x1p-300, -1.5, 0, 0x1.8p-20, 1e10};
    mpsim_stats_init(&b->stats);
    mpsim_histogram_init(&b->histogram);
    if (w & 1) {
        mpsim_stats_add(&b->stats, some + w / 2 % 3, 3);
        mpsim_histogram_add(&b->histogram, some, 4);
    }
    for (size_t k = 0; k < n_casts; k++) {
        mpsim_cast_stats *c = &b->casts[k];
        mpsim_cast_stats_init(c);
        if (w >> 8 & 1) {
            c->counts = (mpsim_counts){1, 2, 3, 4, 5};
            c->compared = 6;
            c->max_rel_err = w >> 9 & 1 ? 0.3 : 0;
            mpsim_sum_add(&c->sum_squared_error, 0x1p-1000);
            mpsim_sum_add(&c->sum_squares_left_out, 0x1.5p90);
        }
    }
}
