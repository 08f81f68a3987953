/* t-block.c -- block quantisation of matrices against an oracle of its own (blockoracle.h).
 *
 * Error sums of the oracle are MPFR's at 1024 bits. Of the library it takes the random words of the
 * stochastic rule. Rules by hand: t-block-rules.c. */
#include "blockoracle.h"

#include <gmp.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
enum { EXACT_BITS = 1024, NMAX = 40000 };

/* ---- a matrix ---- */

static float block_amax(const row *r, const float *x, size_t cols, const size_t box[4])
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

typedef struct report {
    unsigned long long codes, values, blocks, stats, ties, wrong;
    char first[400];
} report;

static void complain(report *p, const char *what, const row *r, size_t at, double got, double want,
                     double x)
{
    if (p->wrong++ == 0)
        snprintf(p->first, sizeof p->first, "%s: %s %zu: library %a, oracle %a; x or amax %a",
                 r->name, what, at, got, want, x);
}

/* What quantising the current matrix gave. */
static struct {
    uint8_t codes[NMAX], scale_codes[NMAX];
    float values[NMAX], scales[NMAX], inverses[NMAX], amax[NMAX];
    mpsim_cast_stats casts;
    float tensor_scale;
} out;

static const mpsim_blocks outputs = {out.codes,    out.values, out.scale_codes, out.scales,
                                     out.inverses, out.amax,   &out.casts};

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

static void compare_block(report *p, tally *t, const row *r, const grid *g, const tensor *whole,
                          const float *x, size_t cols, const size_t box[4], size_t block,
                          float given, const mpsim_rng *rng)
{
    const scale s = oracle_scale(r, g, whole, block_amax(r, x, cols, box), given);
    const double a = (double)s.amax;
    if (out.scale_codes[block] != s.code)
        complain(p, "scale code", r, block, out.scale_codes[block], s.code, a);
    if (!same(out.scales[block], s.factor))
        complain(p, "scale", r, block, (double)out.scales[block], (double)s.factor, a);
    if (!same(out.inverses[block], s.inverse))
        complain(p, "inverse", r, block, (double)out.inverses[block], (double)s.inverse, a);
    if (!same(out.amax[block], s.amax))
        complain(p, "amax", r, block, (double)out.amax[block], a, a);
    p->blocks += 4;
    for (size_t i = box[0]; i < box[1]; i++)
        for (size_t j = box[2]; j < box[3]; j++) {
            const size_t k = i * cols + j;
            const unsigned random = r->mode != STOCHASTIC ? 0
                                    : mpsim_rng_word(rng->seed, rng->stream, rng->index + k) >> 24;
            element e = oracle_cast(g, r->mode, f32_mul(x[k], s.factor), random);
            e.inexact = (double)x[k] * (double)s.factor != e.value; /* the exact product */
            const float value = oracle_value(r, &s, whole, e.value);
            if (!same_code(r, g, out.codes[k], &e))
                complain(p, "code", r, k, out.codes[k], e.code, (double)x[k]);
            if (!same(out.values[k], value))
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

/* Quantises x and compares everything. */
static void compare(report *p, const row *r, const float *x, size_t rows, size_t cols, float amax,
                    float given)
{
    const mpsim_block_recipe b = oracle_recipe(r);
    const grid *g = grid_of(r->element);
    const mpsim_rng rng = {test_seed(), 77, rows * 1000 + cols};
    mpsim_cast_stats_init(&out.casts);
    memset(out.scale_codes, 0xa5, sizeof out.scale_codes);
    const mpsim_status status = mpsim_block_quantize(&b, x, rows, cols, amax, given, &rng,
                                                     &outputs, &out.tensor_scale);
    ck_assert_msg(status == MPSIM_OK, "%s: %s", r->name, mpsim_status_string(status));
    const size_t all[4] = {0, rows, 0, cols};
    const tensor whole = oracle_tensor(r, amax < 0 ? block_amax(r, x, cols, all) : amax);
    if (!same(out.tensor_scale, whole.decode))
        complain(p, "tensor scale", r, 0, (double)out.tensor_scale, (double)whole.decode,
                 (double)amax);
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

static void finish(const char *what, const report *p)
{
    printf("# %s: %llu codes, %llu values, %llu of blocks, %llu statistics, %llu ties, "
           "%llu wrong\n", what, p->codes, p->values, p->blocks, p->stats, p->ties, p->wrong);
    ck_assert_msg(p->wrong == 0, "%llu differ: %s", p->wrong, p->first);
}

/* ---- inputs ---- */

/* What the sources do not say of a rule is left out: NVFP4 of torchao where the tensor's scale or
 * its reciprocal is 0, infinite or NaN. */
static int specified(const row *r, float amax)
{
    return r->rule != MPSIM_SCALE_NVFP4_TORCHAO || (isfinite(amax) && amax > 0x1p-116f);
}

/* Numbers of the size of a tensor's, with an exponent range of `spread`. */
static float ordinary(uint64_t *state, int centre, int spread)
{
    const uint64_t w = test_random(state);
    const int e = centre - (int)((w >> 32) % (uint64_t)spread);
    const float m = 1 + (float)(w & 0x7fffff) * 0x1p-23f;
    return ldexpf(w >> 63 ? -m : m, e);
}

enum { ORDINARY, FEW_BITS, WIDE, ANY, SMALL, HUGE_ONES, SPECIALS, ZEROS, FILLS };

static float input(int fill, size_t i, uint64_t *state)
{
    static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x80000000,
                                       0x00000000, 0x7f7fffff, 0xff7fffff, 0x00000001, 0x807fffff};
    const uint64_t w = test_random(state);
    switch (fill) {
    case ORDINARY:
        return ordinary(state, 4, 14);
    case FEW_BITS:
        return (float)((int)(w % 129) - 64) / 8;
    case WIDE:
        return ordinary(state, 100, 200);
    case ANY:
        return (w >> 23 & 255) == 255 ? 1.5f : f32_of_bits((uint32_t)w);
    case SMALL:
        return f32_of_bits((uint32_t)w & 0x83ffffff);
    case HUGE_ONES:
        return ldexpf(ordinary(state, 0, 5), 127);
    case SPECIALS:
        return w % 37 == 0 ? f32_of_bits(special[(w >> 8) % COUNT(special)])
                           : ordinary(state, 0, 12);
    default:
        return i % 3 ? 0.0f : -0.0f;
    }
}

static const struct {
    size_t rows, cols;
} shapes[] = {{1, 1},   {1, 7},    {5, 1},    {1, 32},   {1, 33},    {3, 16},  {17, 31},
              {16, 16}, {33, 48},  {2, 129},  {40, 3},   {131, 130}, {1, 300}, {0, 8}};

START_TEST(matrices)
{
    static float x[NMAX];
    uint64_t state = test_seed() + 5;
    report p = {0};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int fill = 0; fill < FILLS; fill++) {
            const size_t n = shapes[s].rows * shapes[s].cols;
            if (n > 4000 && fill != ORDINARY && !test_expensive())
                continue;
            for (size_t i = 0; i < n; i++)
                x[i] = input(fill, i, &state);
            for (size_t i = 0; i < ORACLE_ROWS; i++) {
                const size_t all[4] = {0, shapes[s].rows, 0, shapes[s].cols};
                const row *r = &oracle_table[i];
                if (specified(r, block_amax(r, x, shapes[s].cols, all)))
                    compare(&p, r, x, shapes[s].rows, shapes[s].cols, -1, 4);
            }
        }
    finish("matrices", &p);
}
END_TEST

/* ---- constructed largest magnitudes ---- */

static size_t amax_list(float *a, size_t n)
{
    static const float fixed[] = {
        0,        448,  464,    480,     57344, 61440, 65504,  6,       7,       7.5f,
        8,        28,   30,     2688,    5,     1e-12f, 9e-13f, 1.1e-12f, BIG,   0x1.fep127f,
        0x1p-149f, 0x1p-148f, 0x1p-128f, 0x1p-127f, 0x1.8p-127f, 0x1.fffffcp-127f, 0x1p-126f,
        0x1.cp-119f, 0x1.cp-118f, 0x1.ep-118f, 0x1.cp-112f, 0x1p-120f,
    };
    size_t k = 0;
    for (size_t i = 0; i < COUNT(fixed); i++) {
        a[k++] = fixed[i];
        a[k++] = nextafterf(fixed[i], INFINITY);
        if (fixed[i] > 0)
            a[k++] = nextafterf(fixed[i], 0);
    }
    for (int e = -149; e <= 127; e += e < -120 || e > 110 || abs(e) < 12 ? 1 : 13) {
        static const float m[] = {1,          1.75f,      1.5f,     1.875f, 1.9375f,
                                  0x1.efffep0f, 0x1.dfffep0f, 1.96875f};
        a[k++] = ldexpf(1, e);
        a[k++] = nextafterf(ldexpf(1, e), 0);
        a[k++] = nextafterf(ldexpf(1, e), INFINITY);
        for (size_t i = 1; i < COUNT(m); i += 1)
            a[k++] = ldexpf(m[i], e);
    }
    a[k++] = INFINITY;
    a[k++] = NAN;
    ck_assert(k <= n);
    return k;
}

/* A block around its amax: the number itself, fractions of it, zeros, the smallest numbers. */
static void around(float *x, size_t n, float amax, uint64_t *state)
{
    x[0] = amax;
    for (size_t i = 1; i < n; i++) {
        const float f = (float)(test_random(state) >> 40) * 0x1p-24f;
        x[i] = i % 3 == 0 ? ldexpf(amax, -(int)(i % 19)) : i % 3 == 1 ? amax * f : -amax * f * f;
        if (isnan(amax) || isinf(amax))
            x[i] = ldexpf(1 + f, (int)i * 8 - 60);
    }
    x[n - 1] = 0;
    x[n - 2] = -0.0f;
    x[n - 3] = -0x1p-149f;
    if (amax < 0x1p-149f)
        x[n - 3] = 0;
    x[n - 4] = -amax;
}

START_TEST(constructed_amaxes)
{
    static float list[1200];
    const size_t n = amax_list(list, COUNT(list));
    uint64_t state = test_seed() + 6;
    report p = {0};
    float x[16];
    for (size_t i = 0; i < n; i++) {
        around(x, COUNT(x), list[i], &state);
        for (size_t k = 0; k < ORACLE_ROWS; k++)
            if (specified(&oracle_table[k], list[i]))
                compare(&p, &oracle_table[k], x, 1, COUNT(x), -1, 8);
    }
    finish("amaxes", &p);
}
END_TEST

/* ---- ties of every element format ---- */

/* The largest number, then midpoints and their neighbours times a power of two. */
START_TEST(ties_of_elements)
{
    report p = {0};
    for (size_t k = 0; k < ORACLE_ROWS; k++) {
        const row *r = &oracle_table[k];
        const grid *g = grid_of(r->element);
        const unsigned long long before = p.ties;
        for (int shift = -1; shift <= 1; shift++)
            for (unsigned c = 0; c < g->top; c += 4) {
                float x[16];
                x[0] = ldexpf((float)grid_max(g), shift);
                for (unsigned i = 0; i < 15; i++) {
                    const unsigned at = c + i / 3 < g->top ? c + i / 3 : g->top - 1;
                    const float middle = ldexpf((float)(g->v[at] + g->v[at + 1]) / 2, shift);
                    x[i + 1] = i % 3 == 0 ? middle : nextafterf(middle, i % 3 == 1 ? 0 : 1e6f);
                    if (i & 1)
                        x[i + 1] = -x[i + 1];
                }
                compare(&p, r, x, 1, 16, 2688, 1);
            }
        ck_assert_msg(r->mode == STOCHASTIC || p.ties - before >= g->top, "%s: %llu ties", r->name,
                      p.ties - before);
    }
    finish("ties", &p);
}
END_TEST

/* ---- NVFP4 ---- */

START_TEST(amax_from_elsewhere)
{
    static const float globals[] = {0,     1,       2688,      3,     1e4f, 1e-3f, 0x1p-149f, BIG,
                                    1e38f, 1e-36f, INFINITY, 0x1p-120f, 0x1p-140f, 7.7f};
    static const int fills[] = {ORDINARY, FEW_BITS, WIDE, SMALL, ANY, HUGE_ONES, ZEROS};
    static float x[3 * 40];
    uint64_t state = test_seed() + 9;
    report p = {0};
    for (size_t k = 0; k < ORACLE_ROWS; k++) {
        const row *r = &oracle_table[k];
        for (size_t g = 0; g < COUNT(globals); g++)
            for (size_t f = 0; f < COUNT(fills); f++) {
                if (r->rule != MPSIM_SCALE_NVFP4_TE
                    && (r->rule != MPSIM_SCALE_NVFP4_TORCHAO || g < 1 || g > 5))
                    continue;
                for (size_t i = 0; i < COUNT(x); i++)
                    x[i] = input(fills[f], i, &state);
                if (f < 2) /* a tiny block, whose scale is 0 */
                    for (size_t i = 0; i < 16; i++)
                        x[i] *= 0x1p-20f;
                compare(&p, r, x, 3, 40, globals[g], 1);
            }
    }
    finish("NVFP4", &p);
}
END_TEST

/* Block scales about the ties of E4M3: that S_enc is multiplied by a rounded 1/6 decides there. */
START_TEST(ties_of_block_scales)
{
    static const float globals[] = {2688, 3, 1000, 0.7f, 448, 0x1.234568p9f};
    const grid *g = grid_of("e4m3");
    report p = {0};
    for (size_t k = 0; k < ORACLE_ROWS; k++) {
        const row *r = &oracle_table[k];
        if (r->rule != MPSIM_SCALE_NVFP4_TE && r->rule != MPSIM_SCALE_NVFP4_TORCHAO)
            continue;
        for (size_t i = 0; i < COUNT(globals); i++)
            for (unsigned c = 0; c < g->top; c++) {
                const double tie = (g->v[c] + g->v[c + 1]) / 2;
                const float x = (float)(tie * 6 * (double)globals[i] / 2688);
                float a[16 * 5];
                for (size_t n = 0; n < COUNT(a); n++)
                    a[n] = n % 16 ? x * (float)(n % 16) / 16 : f32_of_bits(bits_of_f32(x)
                                                                       + (uint32_t)(n / 16) - 2);
                compare(&p, r, a, 1, COUNT(a), globals[i], 1);
            }
    }
    finish("block scales", &p);
}
END_TEST

/* ---- scales that are given ---- */

START_TEST(given_scales)
{
    static const float given[] = {1, 448, 0.3f, 0x1p-126f, 0x1p100f, BIG, 0x1p-60f, 149.333f};
    static float x[700];
    uint64_t state = test_seed() + 10;
    report p = {0};
    for (size_t g = 0; g < COUNT(given); g++)
        for (int fill = 0; fill < FILLS; fill++)
            for (size_t f = 0; f < ORACLE_ELEMENTS; f++) {
                row r = oracle_given;
                r.element = oracle_elements[f];
                for (size_t i = 0; i < COUNT(x); i++)
                    x[i] = input(fill, i, &state);
                compare(&p, &r, x, 7, 20, -1, given[g]);
            }
    finish("given scales", &p);
}
END_TEST

/* ---- all fp16 inputs, by exact rationals ---- */

/* |h| as a rational; -1 for NaN, 1 for infinity, else 0. */
static int half_value(mpq_t q, unsigned h)
{
    const int e = (int)(h >> 10 & 31), t = (int)(h & 1023);
    if (e == 31)
        return t ? -1 : 1;
    mpq_set_si(q, e ? 1024 + t : t, 1);
    mpq_mul_2exp(q, q, (mp_bitcnt_t)(e ? e : 1));
    mpq_div_2exp(q, q, 25);
    return 0;
}

/* The code whose value is nearest to q, the even one of two. */
static unsigned nearest_rational(const mpq_t *values, unsigned top, const mpq_t q)
{
    static mpq_t middle;
    static int ready;
    if (!ready)
        mpq_init(middle);
    ready = 1;
    unsigned low = 0, high = top + 1; /* 480 or 65536 would be the next one */
    while (high - low > 1) {
        const unsigned m = (low + high) / 2;
        *(mpq_cmp(values[m], q) <= 0 ? &low : &high) = m;
    }
    mpq_add(middle, values[low], values[high]);
    mpq_div_2exp(middle, middle, 1);
    const int order = mpq_cmp(q, middle);
    const unsigned i = order > 0 || (order == 0 && (low & 1)) ? high : low;
    return i > top ? top : i;
}

static void every_half(const char *name, unsigned top, int bias, int mbits)
{
    static float x[65536], values[65536];
    static uint8_t codes[65536];
    mpq_t v[130], q;
    mpq_init(q);
    for (unsigned c = 0; c <= top + 1; c++) {
        const unsigned m = 1u << mbits, e = c / m, t = c % m;
        mpq_init(v[c]);
        mpq_set_ui(v[c], e ? m + t : t, 1);
        mpq_mul_2exp(v[c], v[c], e ? e : 1);
        mpq_div_2exp(v[c], v[c], (mp_bitcnt_t)(bias + mbits));
    }
    for (unsigned h = 0; h < 65536; h++) {
        const int kind = half_value(q, h & 0x7fff);
        x[h] = kind < 0 ? (float)NAN : kind > 0 ? (float)INFINITY : (float)mpq_get_d(q);
        x[h] = h & 0x8000 ? -x[h] : x[h];
    }
    row r = oracle_given;
    r.element = name;
    const mpsim_block_recipe b = oracle_recipe(&r);
    const mpsim_blocks o = {.codes = codes, .values = values};
    ck_assert(mpsim_block_quantize(&b, x, 256, 256, -1, 1, NULL, &o, NULL) == MPSIM_OK);
    unsigned wrong = 0, first = 0;
    for (unsigned h = 0; h < 65536; h++) {
        const int kind = half_value(q, h & 0x7fff);
        unsigned want = kind ? top : nearest_rational(v, top, q);
        want = kind < 0 ? 0x7f : want | (h & 0x8000 ? 0x80 : 0);
        const double value = kind < 0 ? (double)NAN : mpq_get_d(v[want & 0x7f]);
        if (codes[h] != want || (kind >= 0 && fabs((double)values[h]) != value)
            || (kind < 0 && !isnan(values[h])))
            first = wrong++ == 0 ? h : first;
    }
    for (unsigned c = 0; c <= top + 1; c++)
        mpq_clear(v[c]);
    mpq_clear(q);
    printf("# every fp16 to %s: 65536 codes, %u wrong\n", name, wrong);
    ck_assert_msg(wrong == 0, "%u halfs to %s differ, first %04x: %02x", wrong, name, first,
                  codes[first]);
}

START_TEST(every_half_to_fp8)
{
    every_half("e4m3", 0x7e, 7, 3);
    every_half("e5m2", 0x7b, 15, 2);
}
END_TEST

/* ---- statuses, outputs ---- */

/* Nothing is touched when a recipe or an argument is refused. */
static void refused(const char *what, const mpsim_block_recipe *b, const float *x,
                    const mpsim_rng *rng)
{
    mpsim_cast_stats before;
    float whole = 55;
    memset(&out, 0x3c, sizeof out);
    mpsim_cast_stats_init(&out.casts);
    before = out.casts;
    ck_assert_msg(mpsim_block_quantize(b, x, 2, 8, -1, 1, rng, &outputs, &whole) == MPSIM_EINVAL,
                  "%s", what);
    int touched = whole != 55 || memcmp(&before, &out.casts, sizeof before) != 0;
    for (size_t i = 0; i < 16; i++)
        touched |= out.codes[i] != 0x3c || out.scale_codes[i] != 0x3c
                   || bits_of_f32(out.values[i]) != 0x3c3c3c3c
                   || bits_of_f32(out.scales[i]) != 0x3c3c3c3c
                   || bits_of_f32(out.inverses[i]) != 0x3c3c3c3c
                   || bits_of_f32(out.amax[i]) != 0x3c3c3c3c;
    ck_assert_msg(!touched, "%s", what);
}

START_TEST(refusals)
{
    float x[16] = {1};
    const mpsim_rng rng = {1, 2, 3};
    const mpsim_block_recipe good = *mpsim_block_find("mxfp8");
    mpsim_block_recipe b = good;
    ck_assert(mpsim_block_check(&b) == MPSIM_OK);
    b.rule = 200;
    ck_assert(mpsim_block_check(&b) != MPSIM_OK);
    refused("rule", &b, x, &rng);
    b = good;
    snprintf(b.element, sizeof b.element, "e9m9x");
    ck_assert(mpsim_block_check(&b) != MPSIM_OK);
    refused("element", &b, x, &rng);
    b = good;
    b.element_mode = MPSIM_ROUND_MODES;
    ck_assert(mpsim_block_check(&b) != MPSIM_OK);
    refused("mode", &b, x, &rng);
    b = *mpsim_block_find("nvfp4-sr");
    b.sr_bits = 0;
    ck_assert(mpsim_block_check(&b) != MPSIM_OK);
    refused("no random bits", &b, x, &rng);
    b = *mpsim_block_find("nvfp4");
    snprintf(b.element, sizeof b.element, "e4m3");
    ck_assert(mpsim_block_check(&b) == MPSIM_EINVAL);
    refused("NVFP4 of e4m3", &b, x, &rng);
    static const char *const others[] = {"fp16", "binary32", "e8m0", "binary8p1se"};
    for (size_t i = 0; i < COUNT(others); i++) {
        b = good;
        snprintf(b.element, sizeof b.element, "%s", others[i]);
        ck_assert_msg(mpsim_block_check(&b) != MPSIM_OK, "%s", others[i]);
        refused(others[i], &b, x, &rng);
    }
    b = *mpsim_block_find("ms-amp");
    static const double margins[] = {0.5, 127, -127, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < COUNT(margins); i++) {
        b.margin = margins[i];
        ck_assert_msg(mpsim_block_check(&b) == MPSIM_EINVAL, "margin %zu", i);
        refused("margin", &b, x, &rng);
    }
    refused("no generator", mpsim_block_find("nvfp4-sr"), x, NULL);
    refused("no matrix", &good, NULL, &rng);
    refused("no recipe", NULL, x, &rng);
    ck_assert(mpsim_block_check(NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_block_quantize(&good, x, 2, 8, -1, 1, NULL, NULL, NULL) != MPSIM_ENOMEM);
}
END_TEST

/* Any output may be missing; the others do not change. Statistics are added to. */
START_TEST(missing_outputs)
{
    static float x[5 * 70];
    static uint8_t codes[5 * 70], scale_codes[100];
    static float values[5 * 70], scales[100], inverses[100], amax[100];
    uint64_t state = test_seed() + 14;
    for (size_t i = 0; i < COUNT(x); i++)
        x[i] = input(SPECIALS, i, &state);
    const mpsim_rng rng = {1, 2, 3};
    for (size_t k = 0; k < mpsim_block_count(); k++) {
        const mpsim_block_recipe *b = mpsim_block_at(k);
        mpsim_cast_stats_init(&out.casts);
        ck_assert(mpsim_block_quantize(b, x, 5, 70, 9, 1, &rng, &outputs, NULL) == MPSIM_OK);
        size_t r, c;
        mpsim_block_grid(b, 5, 70, &r, &c);
        ck_assert(r * c <= 100);
        for (int keep = 0; keep < 7; keep++) {
            mpsim_cast_stats twice = out.casts;
            const mpsim_blocks o = {
                .codes = keep == 0 ? codes : NULL,
                .values = keep == 1 ? values : NULL,
                .scale_codes = keep == 2 ? scale_codes : NULL,
                .scales = keep == 3 ? scales : NULL,
                .inverses = keep == 4 ? inverses : NULL,
                .amax = keep == 5 ? amax : NULL,
                .casts = keep == 6 ? &twice : NULL,
            };
            ck_assert(mpsim_block_quantize(b, x, 5, 70, 9, 1, &rng, &o, NULL) == MPSIM_OK);
            const void *const got[] = {codes, values, scale_codes, scales, inverses, amax};
            const void *const want[] = {out.codes,  out.values,   out.scale_codes,
                                        out.scales, out.inverses, out.amax};
            const size_t bytes[] = {sizeof codes, sizeof values, r * c, 4 * r * c, 4 * r * c,
                                    4 * r * c};
            ck_assert_msg(keep == 6 || memcmp(got[keep], want[keep], bytes[keep]) == 0, "%s %d",
                          b->name, keep);
            ck_assert(keep != 6 || (twice.compared == 2 * out.casts.compared
                                    && twice.counts.nan == 2 * out.casts.counts.nan
                                    && twice.counts.overflow == 2 * out.casts.counts.overflow
                                    && twice.max_rel_err == out.casts.max_rel_err
                                    && mpsim_sum_value(&twice.sum_squared_error)
                                       == 2 * mpsim_sum_value(&out.casts.sum_squared_error)));
        }
    }
}
END_TEST

int main(void)
{
    TCase *t = test_case("quantisation", 20);
    tcase_add_test(t, matrices);
    tcase_add_test(t, constructed_amaxes);
    tcase_add_test(t, ties_of_elements);
    tcase_add_test(t, amax_from_elsewhere);
    tcase_add_test(t, ties_of_block_scales);
    tcase_add_test(t, given_scales);
    tcase_add_test(t, every_half_to_fp8);
    tcase_add_test(t, missing_outputs);
    tcase_add_test(t, refusals);
    TCase *const cases[] = {t, NULL};
    return test_main("block", cases);
}
