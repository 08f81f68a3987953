/* t-causal.c -- softmax of causal attention, whole and in tiles: every bit as the formulas of
 * mpsim/transformer.h have it. */
#include "oracle/layer.h"
#include "support/layerinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <string.h>

enum { MATRICES = 2, LENGTH = 70, SIZE = 40, MOST = MATRICES * LENGTH * LENGTH };

/* ---- whole matrices ---- */

static float p[MOST], dp[MOST], ds[MOST], want_p[MOST], want_ds[MOST];

static float larger(float max, float x)
{
    return isnan(max) || isnan(x) ? NAN : fmaxf(max, x);
}

static void want_row(const mpsim_causal *c, const oracle_format *m, const oracle_format *f, size_t at, size_t n,
                     const float *s)
{
    const float scale = oracle_to(m, (double)c->scale);
    float x[LENGTH], e[LENGTH], max = -INFINITY;
    for (size_t j = 0; j < n; j++) {
        x[j] = oracle_mul(m, scale, oracle_to(m, (double)s[at + j]));
        max = larger(max, x[j]);
    }
    for (size_t j = 0; j < n; j++)
        e[j] = oracle_to(m, (double)mpsim_exp(oracle_sub(m, x[j], max)));
    const float z = oracle_sum(m, e, n, 1, 32);
    for (size_t j = 0; j < c->length; j++)
        want_p[at + j] = j < n ? oracle_to(f, (double)oracle_div(m, e[j], z)) : 0;
}

static void want_backward_row(const mpsim_causal *c, const oracle_format *m, const oracle_format *f, size_t at,
                              size_t n, const float *given)
{
    const float scale = oracle_to(m, (double)c->scale);
    float a[LENGTH], b[LENGTH], term[LENGTH];
    for (size_t j = 0; j < n; j++) {
        a[j] = oracle_to(m, (double)given[at + j]);
        b[j] = oracle_to(m, (double)dp[at + j]);
        term[j] = oracle_mul(m, a[j], b[j]);
    }
    const float d = oracle_sum(m, term, n, 1, 32);
    for (size_t j = 0; j < n; j++)
        a[j] = oracle_mul(m, oracle_mul(m, a[j], oracle_sub(m, b[j], d)), scale);
    for (size_t j = 0; j < c->length; j++)
        want_ds[at + j] = j < n ? oracle_to(f, (double)a[j]) : 0;
}

static size_t compare(const mpsim_causal *c, const char *math, const char *out, const float *s)
{
    const oracle_format *m = oracle_format_find(math), *f = oracle_format_find(out);
    const size_t n = c->matrices * c->length * c->length;
    ck_assert_int_eq(mpsim_causal_softmax(c, p, s), MPSIM_OK);
    for (size_t r = 0; r < c->matrices * c->length; r++)
        want_row(c, m, f, r * c->length, r % c->length + 1, s);
    size_t looked = layer_equal("P", math, out, p, want_p, n);
    ck_assert_int_eq(mpsim_causal_softmax_backward(c, ds, dp, p), MPSIM_OK);
    for (size_t r = 0; r < c->matrices * c->length; r++)
        want_backward_row(c, m, f, r * c->length, r % c->length + 1, p);
    looked += layer_equal("dS", math, out, ds, want_ds, n);
    /* In place; backward also of what is no softmax. */
    ck_assert_int_eq(mpsim_causal_softmax_backward(c, p, dp, p), MPSIM_OK);
    looked += layer_equal("dS in P", math, out, p, want_ds, n);
    memcpy(p, s, n * sizeof *p);
    ck_assert_int_eq(mpsim_causal_softmax(c, p, p), MPSIM_OK);
    looked += layer_equal("P in place", math, out, p, want_p, n);
    for (size_t r = 0; r < c->matrices * c->length; r++)
        want_backward_row(c, m, f, r * c->length, r % c->length + 1, s);
    memcpy(ds, dp, n * sizeof *ds);
    ck_assert_int_eq(mpsim_causal_softmax_backward(c, ds, ds, s), MPSIM_OK);
    return looked + layer_equal("dS in dP", math, out, ds, want_ds, n);
}

CASE("numbers", 60);

TEST(as_the_formulas)
{
    static const size_t lengths[] = {0, 1, 2, 9, 31, 32, 33, LENGTH};
    static float s[MOST];
    uint64_t state = test_seed();
    size_t looked = 0;
    for (size_t m = 0; m < LAYER_MATHS; m++)
        for (size_t round = 0; round < test_scaled(35); round++) {
            const char *math = layer_formats[m];
            const char *out = layer_formats[test_random(&state) % LAYER_OUTS];
            const mpsim_causal c = {test_random(&state) % (MATRICES + 1), lengths[test_random(&state) % 8],
                                    round % 3 ? 0.35355339f : 1, layer_format(math), layer_format(out)};
            layer_fill(s, MOST, (int)round % LAYER_KINDS, &state);
            layer_fill(dp, MOST, (int)(test_random(&state) % LAYER_KINDS), &state);
            looked += compare(&c, math, out, s);
        }
    printf("# %zu numbers\n", looked);
}

/* ---- tiles ---- */

typedef struct state {
    float max[MATRICES * LENGTH], sum[MATRICES * LENGTH], lse[MATRICES * LENGTH];
    float d[MATRICES * LENGTH], o[MATRICES * LENGTH * SIZE], y[MATRICES * LENGTH * SIZE];
} state;

static const oracle_format *binary32(void)
{
    return oracle_format_find(NULL);
}

static float f32_mul(float a, float b)
{
    return oracle_mul(binary32(), a, b);
}

static void want_tile_row(const mpsim_causal_tile *t, const oracle_format *f, size_t b, size_t i, float *out, state *w,
                          const float *s)
{
    const size_t row = b * t->c.length + i;
    float e[LENGTH], max = w->max[row];
    size_t n = 0;
    for (; n < t->cols && t->first + n <= i; n++)
        max = larger(max, f32_mul(t->c.scale, s[n]));
    const float r = max == -INFINITY ? 0 : max;
    const float a = mpsim_exp(oracle_sub(binary32(), w->max[row], r));
    for (size_t j = 0; j < n; j++)
        e[j] = mpsim_exp(oracle_sub(binary32(), f32_mul(t->c.scale, s[j]), r));
    const float z = oracle_sum(binary32(), e, n, 1, 32);
    w->sum[row] = oracle_add(binary32(), f32_mul(w->sum[row], a), z);
    w->max[row] = max;
    for (size_t c = 0; c < t->size; c++)
        w->o[row * t->size + c] = f32_mul(w->o[row * t->size + c], a);
    for (size_t j = 0; j < t->cols; j++)
        out[j] = j < n ? oracle_to(f, (double)f32_mul(e[j], t->p_scale)) : 0;
}

/* max may be either zero. */
static void drop_sign_of_zero(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += 0.0f;
}

static size_t forward_tile(const mpsim_causal_tile *t, const char *out, state *got, state *want, const float *s)
{
    const oracle_format *f = oracle_format_find(out);
    const size_t rows = t->c.length - t->first, all = t->c.matrices * t->c.length;
    const size_t n = t->c.matrices * rows * t->cols;
    memcpy(p, s, n * sizeof *p);
    ck_assert_int_eq(mpsim_causal_tile_forward(t, p, got->o, got->max, got->sum, p), MPSIM_OK);
    for (size_t b = 0; b < t->c.matrices; b++)
        for (size_t i = t->first; i < t->c.length; i++) {
            const size_t at = (b * rows + i - t->first) * t->cols;
            want_tile_row(t, f, b, i, want_p + at, want, s + at);
        }
    drop_sign_of_zero(got->max, all);
    drop_sign_of_zero(want->max, all);
    return layer_equal("P of a tile", NULL, out, p, want_p, n) +
           layer_equal("max", NULL, out, got->max, want->max, all) +
           layer_equal("sum", NULL, out, got->sum, want->sum, all) +
           layer_equal("o", NULL, out, got->o, want->o, all * t->size);
}

static size_t end_rows(const mpsim_causal_tile *t, const char *out, state *got, const float *dy)
{
    static state want;
    const oracle_format *f = oracle_format_find(out);
    const size_t all = t->c.matrices * t->c.length, n = all * t->size;
    for (size_t i = 0; i < n; i++) {
        const float o = f32_mul(got->o[i], oracle_div(binary32(), 1, t->p_scale));
        want.y[i] = oracle_to(f, (double)oracle_div(binary32(), o, got->sum[i / t->size]));
    }
    for (size_t i = 0; i < all; i++)
        want.lse[i] = oracle_add(binary32(), got->max[i], mpsim_log(got->sum[i]));
    ck_assert_int_eq(mpsim_causal_tile_end(t, got->y, got->lse, got->o, got->max, got->sum), MPSIM_OK);
    ck_assert_int_eq(mpsim_causal_tile_end(t, got->o, got->sum, got->o, got->max, got->sum), MPSIM_OK);
    size_t looked = layer_equal("y", NULL, out, got->y, want.y, n) +
                    layer_equal("y in o", NULL, out, got->o, want.y, n) +
                    layer_equal("lse in sum", NULL, out, got->sum, want.lse, all) +
                    layer_equal("lse", NULL, out, got->lse, want.lse, all);
    for (size_t i = 0; i < all; i++) {
        float term[SIZE];
        for (size_t c = 0; c < t->size; c++)
            term[c] = f32_mul(dy[i * t->size + c], got->y[i * t->size + c]);
        want.d[i] = oracle_sum(binary32(), term, t->size, 1, 32);
    }
    ck_assert_int_eq(mpsim_causal_tile_dots(t, got->d, dy, got->y), MPSIM_OK);
    return looked + layer_equal("d", NULL, out, got->d, want.d, all);
}

static size_t backward_tile(const mpsim_causal_tile *t, const char *out, const state *w, const float *s)
{
    const oracle_format *f = oracle_format_find(out);
    const size_t rows = t->c.length - t->first, n = t->c.matrices * rows * t->cols;
    for (size_t k = 0; k < n; k++) {
        const size_t i = t->first + k / t->cols % rows, j = t->first + k % t->cols;
        const size_t row = k / t->cols / rows * t->c.length + i;
        const float e = mpsim_exp(oracle_sub(binary32(), f32_mul(t->c.scale, s[k]), w->lse[row]));
        const float x = f32_mul(f32_mul(e, oracle_sub(binary32(), dp[k], w->d[row])), t->c.scale);
        want_p[k] = j <= i ? oracle_to(f, (double)e) : 0;
        want_ds[k] = j <= i ? oracle_to(f, (double)x) : 0;
    }
    ck_assert_int_eq(mpsim_causal_tile_again(t, p, s, w->lse), MPSIM_OK);
    ck_assert_int_eq(mpsim_causal_tile_backward(t, ds, dp, s, w->lse, w->d), MPSIM_OK);
    size_t looked = layer_equal("P again", NULL, out, p, want_p, n) +
                    layer_equal("dS of a tile", NULL, out, ds, want_ds, n);
    memcpy(p, s, n * sizeof *p);
    memcpy(ds, s, n * sizeof *ds);
    ck_assert_int_eq(mpsim_causal_tile_again(t, p, p, w->lse), MPSIM_OK);
    ck_assert_int_eq(mpsim_causal_tile_backward(t, ds, dp, ds, w->lse, w->d), MPSIM_OK);
    return looked + layer_equal("P again in place", NULL, out, p, want_p, n) +
           layer_equal("dS in S", NULL, out, ds, want_ds, n);
}

TEST(tiles_as_the_formulas)
{
    static const size_t widths[] = {1, 7, 32, 33, LENGTH, 2 * LENGTH};
    static float s[2 * MOST], dy[MATRICES * LENGTH * SIZE];
    uint64_t seed = test_seed() + 1;
    size_t looked = 0;
    for (size_t round = 0; round < test_scaled(84); round++) {
        static state got, want;
        const char *out = layer_formats[test_random(&seed) % LAYER_OUTS];
        const size_t length = round % 5 ? 1 + test_random(&seed) % LENGTH : 9;
        const size_t width = widths[test_random(&seed) % 6];
        mpsim_causal_tile t = {.c = {1 + round % MATRICES, length, 0.35355339f, NULL, layer_format(out)},
                               .size = test_random(&seed) % (SIZE + 1),
                               .p_scale = round % 4 ? 1 : 256};
        memset(&got, 0, sizeof got);
        for (size_t i = 0; i < MATRICES * LENGTH; i++)
            got.max[i] = -INFINITY;
        want = got;
        layer_fill(dy, MATRICES * LENGTH * SIZE, (int)round % LAYER_KINDS, &seed);
        for (t.first = 0; t.first < length; t.first += width) {
            t.cols = length - t.first < width && round % 2 ? length - t.first : width;
            t.cols = t.cols > LENGTH ? LENGTH : t.cols;
            layer_fill(s, MOST, (int)round % LAYER_KINDS, &seed);
            looked += forward_tile(&t, out, &got, &want, s);
            for (size_t i = 0; i < MATRICES * LENGTH * SIZE; i++) /* as if P V were added */
                want.o[i] = got.o[i] += 0.25f;
        }
        looked += end_rows(&t, out, &got, dy);
        layer_fill(dp, MOST, (int)(test_random(&seed) % LAYER_KINDS), &seed);
        for (t.first = 0, t.cols = width > LENGTH ? LENGTH : width; t.first < length; t.first += t.cols)
            looked += backward_tile(&t, out, &got, s);
    }
    printf("# tiles: %zu numbers\n", looked);
}

/* ---- both beside binary64 ---- */

TEST(accuracy)
{
    static float s[LENGTH * LENGTH];
    uint64_t seed = test_seed() + 2;
    const mpsim_causal c = {1, LENGTH, 0.125f, NULL, NULL};
    double worst = 0, worst_tiled = 0;
    static state w;
    layer_fill(s, LENGTH * LENGTH, LAYER_WIDE, &seed);
    ck_assert_int_eq(mpsim_causal_softmax(&c, p, s), MPSIM_OK);
    const mpsim_causal_tile t = {.c = c, .cols = LENGTH, .size = 1, .p_scale = 1};
    for (size_t i = 0; i < LENGTH; i++)
        w.max[i] = -INFINITY;
    ck_assert_int_eq(mpsim_causal_tile_forward(&t, ds, w.o, w.max, w.sum, s), MPSIM_OK);
    ck_assert_int_eq(mpsim_causal_tile_end(&t, w.y, w.lse, w.o, w.max, w.sum), MPSIM_OK);
    ck_assert_int_eq(mpsim_causal_tile_again(&t, ds, s, w.lse), MPSIM_OK);
    for (size_t i = 0; i < LENGTH; i++) {
        double z = 0;
        for (size_t j = 0; j <= i; j++)
            z += exp((double)s[i * LENGTH + j] / 8);
        for (size_t j = 0; j <= i; j++) {
            const double e = exp((double)s[i * LENGTH + j] / 8) / z;
            worst = fmax(worst, fabs((double)p[i * LENGTH + j] / e - 1));
            worst_tiled = fmax(worst_tiled, fabs((double)ds[i * LENGTH + j] / e - 1));
        }
    }
    printf("# largest relative difference from binary64: %g, in tiles, again %g\n", worst, worst_tiled);
    ck_assert(worst < 2e-6 && worst_tiled < 4e-6);
}

CASE("contract", 10);

/* Rows whose scores are all -inf: whole as operations say, in tiles sum 0, so NaN in the end; a
 * row that has other scores later forgets them. */
TEST(nothing_but_minus_infinity)
{
    const float s[4] = {-INFINITY, 0, -INFINITY, -INFINITY};
    float o[2] = {0, 0}, max[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, y[2], lse[2];
    mpsim_causal_tile t = {.c = {1, 2, 1, NULL, NULL}, .cols = 1, .size = 1, .p_scale = 1};
    ck_assert_int_eq(mpsim_causal_softmax(&t.c, p, s), MPSIM_OK);
    ck_assert(isnan(p[0]) && bits_of_f32(p[1]) == 0 && isnan(p[2]) && isnan(p[3]));
    ck_assert_int_eq(mpsim_causal_tile_forward(&t, p, o, max, sum, s + 2), MPSIM_OK);
    ck_assert(p[0] == 0 && p[1] == 0 && max[0] == -INFINITY && sum[0] == 0 && o[0] == 0);
    t.first = 1;
    const float later = 3;
    ck_assert_int_eq(mpsim_causal_tile_forward(&t, p, o, max, sum, &later), MPSIM_OK);
    ck_assert(p[0] == 1 && max[1] == 3 && sum[1] == 1);
    o[1] = 5;
    ck_assert_int_eq(mpsim_causal_tile_end(&t, y, lse, o, max, sum), MPSIM_OK);
    ck_assert(isnan(y[0]) && lse[0] == -INFINITY && y[1] == 5 && lse[1] == 3);
}

#define UNLESS(bit, p) (without >> (bit)&1 ? NULL : (p))

static mpsim_status run(int which, const mpsim_causal_tile *t, unsigned without, float *o)
{
    static const float x[16] = {1, 2, 3, 4};
    const mpsim_causal *c = t ? &t->c : NULL;
    switch (which) {
    case 0:
        return mpsim_causal_softmax(c, UNLESS(0, o), UNLESS(1, x));
    case 1:
        return mpsim_causal_softmax_backward(c, UNLESS(0, o), UNLESS(1, x), UNLESS(2, x));
    case 2:
        return mpsim_causal_tile_forward(t, UNLESS(0, o), UNLESS(1, o), UNLESS(2, o), UNLESS(3, o), UNLESS(4, x));
    case 3:
        return mpsim_causal_tile_end(t, UNLESS(0, o), UNLESS(1, o), UNLESS(2, x), UNLESS(3, x), UNLESS(4, x));
    case 4:
        return mpsim_causal_tile_dots(t, UNLESS(0, o), UNLESS(1, x), UNLESS(2, x));
    case 5:
        return mpsim_causal_tile_again(t, UNLESS(0, o), UNLESS(1, x), UNLESS(2, x));
    default:
        return mpsim_causal_tile_backward(t, UNLESS(0, o), UNLESS(1, x), UNLESS(2, x), UNLESS(3, x), UNLESS(4, x));
    }
}

TEST(errors_touch_nothing)
{
    static const unsigned pointers[] = {2, 3, 5, 5, 3, 3, 5};
    mpsim_format bad = *mpsim_format_find("fp16");
    bad.bits = 1;
    const mpsim_format *wide = mpsim_format_find("binary64");
    float o[16];
    for (size_t i = 0; i < 16; i++)
        o[i] = 9;
    for (int k = 0; k < 7; k++) {
        mpsim_causal_tile t = {.c = {1, 2, 1, NULL, NULL}, .cols = 2, .size = 2, .p_scale = 1};
        for (unsigned i = 0; i < pointers[k]; i++)
            ck_assert_msg(run(k, &t, 1u << i, o) == MPSIM_EINVAL, "%d without %u", k, i);
        ck_assert_int_eq(run(k, NULL, 0, o), MPSIM_EINVAL);
        t.c.f = wide;
        ck_assert_int_eq(run(k, &t, 0, o), MPSIM_ERANGE);
        t.c.f = &bad;
        ck_assert_int_eq(run(k, &t, 0, o), MPSIM_EINVAL);
        t.c.f = NULL;
        for (int wide_rows = 0; k == 2 && wide_rows < 2; wide_rows++) { /* rows that memory cannot hold */
            mpsim_causal_tile huge = t;
            *(wide_rows ? &huge.size : &huge.cols) = SIZE_MAX / 4;
            ck_assert_int_eq(run(k, &huge, 0, o), MPSIM_EINVAL);
        }
        if (k < 2) { /* tiles do not look at it */
            t.c.math = wide;
            ck_assert_int_eq(run(k, &t, 0, o), MPSIM_ERANGE);
            t.c.math = NULL;
        }
        t.c.matrices = 0;
        ck_assert_int_eq(run(k, &t, 0x1f, o), MPSIM_OK);
        t.c = (mpsim_causal){.matrices = SIZE_MAX}; /* none of which is done */
        ck_assert_int_eq(run(k, &t, 0x1f, o), MPSIM_OK);
    }
    for (size_t i = 0; i < 16; i++)
        ck_assert(o[i] == 9);
}

TEST_MAIN("layer-causal");
