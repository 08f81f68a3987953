/* blockcompare.c -- see blockcompare.h.
 *
 * Error sums of the oracle are MPFR's at 1024 bits. Of the library it takes the random words of the
 * stochastic rule. */
#include "blockcompare.h"

#include "support.h"

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
enum { EXACT_BITS = 1024 };

block_outputs out;

const mpsim_blocks outputs = {
    out.codes, out.values, out.scale_codes, out.scales, out.inverses, out.amax, &out.casts, NULL, NULL, NULL, NULL};

float block_amax(const row *r, const float *x, size_t cols, const size_t box[4])
{
    float m = 0;
    for (size_t i = box[0]; i < box[1]; i++)
        for (size_t j = box[2]; j < box[3]; j++) {
            const float a = f32_of_bits(bits_of_f32(x[i * cols + j]) & 0x7fffffff);
            if (isnan(a) ? propagates_nan(r->rule) : a > m)
                m = a;
        }
    return m;
}

static void complain(report *p, const char *what, const row *r, size_t at, double got, double want, double x)
{
    if (p->wrong++ == 0)
        snprintf(p->first, sizeof p->first, "%s: %s %zu: library %a, oracle %a; x or amax %a", r->name, what, at, got,
                 want, x);
}

typedef struct tally {
    uint64_t inexact, underflow, overflow, subnormal, nan, compared;
    double relative;
    mpfr_t errors, left_out;
} tally;

static void account(tally *t, float x, const element *e, float value)
{
    static mpfr_t d, q, square;
    static int ready;
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    if (!ready) {
        mpfr_inits2(53, d, q, (mpfr_ptr)0);
        mpfr_init2(square, EXACT_BITS);
    }
    ready = 1;
    t->nan += isnan(x) != 0;
    if (!isfinite(x))
        return;
    t->underflow += x != 0 && e->underflow;
    t->overflow += e->overflow || !isfinite(value); /* also what it stands for */
    t->subnormal += e->subnormal ? 1 : 0;
    t->inexact += e->inexact ? 1 : 0;
    mpfr_set_flt(d, x, MPFR_RNDN);
    if (!isfinite(value)) {
        mpfr_sqr(square, d, MPFR_RNDN);
        mpfr_add(t->left_out, t->left_out, square, MPFR_RNDN);
        return;
    }
    t->compared++;
    mpfr_set_flt(q, value, MPFR_RNDN);
    mpfr_sub(d, d, q, MPFR_RNDN);
    mpfr_sqr(square, d, MPFR_RNDN);
    mpfr_add(t->errors, t->errors, square, MPFR_RNDN);
    if (x != 0) {
        mpfr_set_flt(q, x, MPFR_RNDN);
        mpfr_div(d, d, q, MPFR_RNDN);
        const double relative = fabs(mpfr_get_d(d, MPFR_RNDN));
        t->relative = relative > t->relative ? relative : t->relative;
    }
}

/* Both sums agree to 53 bits, and what is left after those 53 agrees, too. */
static int same_sum(const mpsim_sum *s, const mpfr_t exact)
{
    mpsim_sum rest = *s;
    mpfr_t e;
    mpfr_init2(e, EXACT_BITS);
    mpfr_set(e, exact, MPFR_RNDN);
    int equal = 1;
    for (int i = 0; i < 3; i++) {
        const double want = mpfr_get_d(e, MPFR_RNDN), got = mpsim_sum_value(&rest);
        equal &= got == want;
        mpfr_sub_d(e, e, want, MPFR_RNDN);
        mpsim_sum_add(&rest, -want);
    }
    mpfr_clear(e);
    return equal;
}

static void compare_stats(report *p, const row *r, const tally *t)
{
    const struct {
        const char *what;
        uint64_t got, want;
    } counts[] = {
        {"inexact", out.casts.counts.inexact, t->inexact},
        {"underflow", out.casts.counts.underflow, t->underflow},
        {"overflow", out.casts.counts.overflow, t->overflow},
        {"subnormal", out.casts.counts.subnormal, t->subnormal},
        {"nan", out.casts.counts.nan, t->nan},
        {"compared", out.casts.compared, t->compared},
    };
    for (size_t i = 0; i < COUNT(counts); i++)
        if (counts[i].got != counts[i].want)
            complain(p, counts[i].what, r, 0, (double)counts[i].got, (double)counts[i].want, 0);
    if (out.casts.max_rel_err != t->relative)
        complain(p, "max_rel_err", r, 0, out.casts.max_rel_err, t->relative, 0);
    if (!same_sum(&out.casts.sum_squared_error, t->errors))
        complain(p, "sum of squared errors", r, 0, mpsim_sum_value(&out.casts.sum_squared_error),
                 mpfr_get_d(t->errors, MPFR_RNDN), 0);
    if (!same_sum(&out.casts.sum_squares_left_out, t->left_out))
        complain(p, "squares left out", r, 0, mpsim_sum_value(&out.casts.sum_squares_left_out),
                 mpfr_get_d(t->left_out, MPFR_RNDN), 0);
    p->stats += COUNT(counts) + 3;
}

/* torch casts a NaN with its sign, TransformerEngine without. What torch makes of a NaN in a format
 * without one no source says: any code will do; its value is NaN by the scale. */
static int same_code(const row *r, const grid *g, unsigned got, const element *e)
{
    if (got == e->code || !e->not_a_number || !propagates_nan(r->rule))
        return got == e->code;
    return g->nan ? (got & 0x7fu) > g->top + (unsigned)(g->top == 0x7b) : got < 1u << g->bits;
}

static void compare_block(report *p, tally *t, const row *r, const grid *g, const tensor *whole, const float *x,
                          size_t cols, const size_t box[4], size_t block, float given, const mpsim_rng *rng)
{
    const scale s = oracle_scale(r, g, whole, block_amax(r, x, cols, box), given);
    const double a = (double)s.amax;
    if (out.scale_codes[block] != s.code)
        complain(p, "scale code", r, block, out.scale_codes[block], s.code, a);
    if (!block_same(out.scales[block], s.factor))
        complain(p, "scale", r, block, (double)out.scales[block], (double)s.factor, a);
    if (!block_same(out.inverses[block], s.inverse))
        complain(p, "inverse", r, block, (double)out.inverses[block], (double)s.inverse, a);
    if (!block_same(out.amax[block], s.amax))
        complain(p, "amax", r, block, (double)out.amax[block], a, a);
    p->blocks += 4;
    for (size_t i = box[0]; i < box[1]; i++)
        for (size_t j = box[2]; j < box[3]; j++) {
            const size_t k = i * cols + j;
            const unsigned random = r->mode != STOCHASTIC
                                        ? 0
                                        : mpsim_rng_word(rng->seed, rng->stream, rng->index + k) >> 24;
            element e = oracle_cast(g, r->mode, oracle_scaled(r, &s, x[k]), random);
            const float value = oracle_value(r, &s, e.value);
            e.inexact = !oracle_is_exact(r, &s, x[k], e.value) || !isfinite(value);
            if (!same_code(r, g, out.codes[k], &e))
                complain(p, "code", r, k, out.codes[k], e.code, (double)x[k]);
            if (!block_same(out.values[k], value))
                complain(p, "value", r, k, (double)out.values[k], (double)value, (double)x[k]);
            account(t, x[k], &e, value);
            p->ties += e.tie ? 1 : 0;
            p->codes++;
            p->values++;
        }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void block_compare(report *p, const row *r, const float *x, size_t rows, size_t cols, float amax, float given)
{
    const mpsim_block_recipe b = oracle_recipe(r);
    const grid *g = grid_of(r->element);
    const mpsim_rng rng = {test_seed(), 77, rows * 1000 + cols};
    mpsim_cast_stats_init(&out.casts);
    memset(out.scale_codes, 0xa5, sizeof out.scale_codes);
    const mpsim_status status = mpsim_block_quantize(&b, x, rows, cols, amax, given, &rng, &outputs, &out.tensor_scale);
    ck_assert_msg(status == MPSIM_OK, "%s: %s", r->name, mpsim_status_string(status));
    const size_t all[4] = {0, rows, 0, cols};
    const tensor whole = oracle_tensor(r, amax < 0 ? block_amax(r, x, cols, all) : amax);
    if (!block_same(out.tensor_scale, whole.decode))
        complain(p, "tensor scale", r, 0, (double)out.tensor_scale, (double)whole.decode, (double)amax);
    const size_t high = r->rows ? r->rows : rows, wide = r->cols ? r->cols : cols;
    tally t = {.relative = 0};
    mpfr_inits2(EXACT_BITS, t.errors, t.left_out, (mpfr_ptr)0);
    mpfr_set_ui(t.errors, 0, MPFR_RNDN);
    mpfr_set_ui(t.left_out, 0, MPFR_RNDN);
    size_t block = 0;
    for (size_t i = 0; i < rows; i += high)
        for (size_t j = 0; j < cols; j += wide) {
            const size_t box[4] = {i, least(i + high, rows), j, least(j + wide, cols)};
            compare_block(p, &t, r, g, &whole, x, cols, box, block++, given, &rng);
        }
    size_t gr = 99, gc = 99;
    mpsim_block_grid(&b, rows, cols, &gr, &gc);
    if (gr * gc != block)
        complain(p, "number of blocks", r, 0, (double)(gr * gc), (double)block, 0);
    if (out.scale_codes[block] != 0xa5)
        complain(p, "a scale code too many", r, block, 0, 0, 0);
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    compare_stats(p, r, &t);
    mpfr_clears(t.errors, t.left_out, (mpfr_ptr)0);
}

void block_finish(const char *what, const report *p)
{
    printf("# %s: %llu codes, %llu values, %llu of blocks, %llu statistics, %llu ties, "
           "%llu wrong\n",
           what, p->codes, p->values, p->blocks, p->stats, p->ties, p->wrong);
    ck_assert_msg(p->wrong == 0, "%llu differ: %s", p->wrong, p->first);
}
