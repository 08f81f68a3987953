/* t-softmax.c -- softmax of the columns that rows see, its logarithm, and their gradients: every bit as the formulas of
 * mpsim/transformer.h have it. */
#include "oracle/layer.h"
#include "support/layerinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 12, COLS = 70, MOST = ROWS * COLS };

static float s[MOST], dp[MOST], got[MOST], want[MOST];
static uint8_t mask[MOST];

typedef struct problem {
    mpsim_softmax c;
    const oracle_format *m, *f;
    int masked;
} problem;

/* Whether row r sees column j. */
static int sees(const problem *p, size_t r, size_t j)
{
    if (p->masked && !mask[r * p->c.cols + j])
        return 0;
    return p->c.length == 0 || j + p->c.length < (p->c.first + r) % p->c.length + 1 + p->c.cols;
}

/* The numbers of row r that it sees, +0 elsewhere, so that the lanes of a sum stay. */
static void take(const problem *p, float *to, const float *x, size_t r)
{
    for (size_t j = 0; j < p->c.cols; j++)
        to[j] = sees(p, r, j) ? oracle_to(p->m, (double)x[r * p->c.cols + j]) : 0;
}

static float sum(const problem *p, const float *x)
{
    return oracle_sum(p->m, x, p->c.cols, 1, 32);
}

/* x - m in x; the exponentials in e; their sum. */
static float exponentials(const problem *p, float *x, float *e, size_t r)
{
    const float scale = oracle_to(p->m, (double)p->c.scale);
    float max = -INFINITY;
    take(p, x, s, r);
    for (size_t j = 0; j < p->c.cols; j++) {
        x[j] = oracle_mul(p->m, scale, x[j]);
        if (sees(p, r, j))
            max = isnan(max) || isnan(x[j]) ? NAN : fmaxf(max, x[j]);
    }
    for (size_t j = 0; j < p->c.cols; j++) {
        x[j] = sees(p, r, j) ? oracle_sub(p->m, x[j], max) : 0;
        e[j] = sees(p, r, j) ? oracle_to(p->m, (double)mpsim_exp(x[j])) : 0;
    }
    return sum(p, e);
}

static void want_softmax(const problem *p, size_t r, int log)
{
    float x[COLS], e[COLS];
    const float z = exponentials(p, x, e, r), log_z = oracle_to(p->m, (double)mpsim_log(z));
    for (size_t j = 0; j < p->c.cols; j++) {
        float y = log ? -INFINITY : 0.0f;
        if (sees(p, r, j))
            y = log ? oracle_sub(p->m, x[j], log_z) : oracle_div(p->m, e[j], z);
        want[r * p->c.cols + j] = oracle_to(p->f, (double)y);
    }
}

/* Of s as P, or as logarithms. */
static void want_backward(const problem *p, size_t r, int log)
{
    const float scale = oracle_to(p->m, (double)p->c.scale);
    float a[COLS], b[COLS], term[COLS];
    take(p, a, s, r);
    take(p, b, dp, r);
    for (size_t j = 0; j < p->c.cols; j++)
        term[j] = !sees(p, r, j) ? 0 : log ? b[j] : oracle_mul(p->m, a[j], b[j]);
    const float d = sum(p, term);
    for (size_t j = 0; j < p->c.cols; j++) {
        const float e = oracle_to(p->m, (double)mpsim_exp(a[j]));
        const float y = log ? oracle_sub(p->m, b[j], oracle_mul(p->m, e, d))
                            : oracle_mul(p->m, a[j], oracle_sub(p->m, b[j], d));
        want[r * p->c.cols + j] = sees(p, r, j) ? oracle_to(p->f, (double)oracle_mul(p->m, y, scale)) : 0;
    }
}

static size_t compare(const problem *p, const char *math, const char *out, int log)
{
    const size_t n = p->c.rows * p->c.cols;
    const uint8_t *const bytes = p->masked ? mask : NULL;
    for (size_t r = 0; r < p->c.rows; r++)
        want_softmax(p, r, log);
    ck_assert_int_eq((log ? mpsim_log_softmax : mpsim_softmax_rows)(&p->c, got, s, bytes), MPSIM_OK);
    size_t looked = layer_equal(log ? "log P" : "P", math, out, got, want, n);
    memcpy(got, s, sizeof got);
    ck_assert_int_eq((log ? mpsim_log_softmax : mpsim_softmax_rows)(&p->c, got, got, bytes), MPSIM_OK);
    looked += layer_equal("P in place", math, out, got, want, n);
    for (size_t r = 0; r < p->c.rows; r++)
        want_backward(p, r, log);
    ck_assert_int_eq((log ? mpsim_log_softmax_backward : mpsim_softmax_backward)(&p->c, got, dp, s, bytes), MPSIM_OK);
    looked += layer_equal(log ? "dS of log P" : "dS", math, out, got, want, n);
    memcpy(got, dp, sizeof got);
    ck_assert_int_eq((log ? mpsim_log_softmax_backward : mpsim_softmax_backward)(&p->c, got, got, s, bytes), MPSIM_OK);
    return looked + layer_equal("dS in place", math, out, got, want, n);
}

CASE("numbers", 60);

TEST(as_the_formulas)
{
    static const size_t cols[] = {0, 1, 2, 31, 32, 33, COLS};
    uint64_t state = test_seed();
    size_t looked = 0;
    for (size_t m = 0; m < LAYER_MATHS; m++)
        for (size_t round = 0; round < test_scaled(60); round++) {
            const char *math = layer_formats[m], *out = layer_formats[test_random(&state) % LAYER_OUTS];
            problem p = {.c = {.rows = test_random(&state) % (ROWS + 1),
                               .cols = cols[test_random(&state) % 7],
                               .length = round % 2 ? test_random(&state) % 7 : 0,
                               .first = test_random(&state) % 9,
                               .scale = round % 3 ? 0.35355339f : 1,
                               .math = layer_format(math),
                               .f = layer_format(out)},
                         .m = oracle_format_find(math),
                         .f = oracle_format_find(out),
                         .masked = round % 5 > 2};
            layer_fill(s, MOST, (int)round % LAYER_KINDS, &state);
            layer_fill(dp, MOST, (int)(test_random(&state) % LAYER_KINDS), &state);
            for (size_t i = 0; i < MOST; i++)
                mask[i] = (uint8_t)(test_random(&state) % 3);
            looked += compare(&p, math, out, round % 4 > 1);
        }
    printf("# %zu numbers\n", looked);
}

CASE("contract", 10);

/* A row that sees nothing: +0, and -infinity as a logarithm; it sees nothing of scores that are NaN. */
TEST(rows_that_see_nothing)
{
    const float x[4] = {NAN, 1, NAN, INFINITY};
    const uint8_t none[4] = {0};
    const mpsim_softmax c = {.rows = 2, .cols = 2, .scale = 1},
                        before = {.rows = 2, .cols = 2, .length = 4, .scale = 1};
    float y[4];
    ck_assert_int_eq(mpsim_softmax_rows(&c, y, x, none), MPSIM_OK);
    for (size_t i = 0; i < 4; i++)
        ck_assert(bits_of_f32(y[i]) == 0);
    ck_assert_int_eq(mpsim_log_softmax(&c, y, x, none), MPSIM_OK);
    for (size_t i = 0; i < 4; i++)
        ck_assert(y[i] == -INFINITY);
    ck_assert_int_eq(mpsim_softmax_rows(&before, y, x, NULL), MPSIM_OK); /* the first two of four queries, two keys */
    for (size_t i = 0; i < 4; i++)
        ck_assert(bits_of_f32(y[i]) == 0);
}

TEST(errors_touch_nothing)
{
    const mpsim_format *wide = mpsim_format_find("binary64");
    const float x[2] = {1, 2};
    float o[2] = {9, 9};
    const mpsim_softmax c = {.rows = 1, .cols = 2, .scale = 1}, far = {.rows = 1, .cols = 2, .scale = 1, .math = wide};
    ck_assert_int_eq(mpsim_softmax_rows(NULL, o, x, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_softmax_rows(&c, NULL, x, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_softmax_rows(&far, o, x, NULL), MPSIM_ERANGE);
    ck_assert_int_eq(mpsim_softmax_backward(&c, o, x, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_log_softmax(&c, o, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_log_softmax_backward(&c, o, NULL, x, NULL), MPSIM_EINVAL);
    ck_assert(o[0] == 9 && o[1] == 9);
}

TEST_MAIN("layer-softmax");
