/* t-elements.c -- tables, sums of columns and over periods, sums and products of elements, dropout, losses with rows that
 * are ignored: every bit as mpsim/layer.h and mpsim/transformer.h have it. */
#include "oracle/layer.h"
#include "support/layerinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 600, COLS = 40, ENTRIES = 9, MOST = ROWS * COLS };

static float x[MOST], other[MOST], got[MOST], want[MOST];
static uint32_t at[ROWS];

typedef struct setting {
    const char *math, *out;
    const oracle_format *m, *f;
    size_t rows, cols;
} setting;

static setting some(uint64_t *state, size_t round)
{
    setting s = {layer_formats[round % LAYER_MATHS],
                 layer_formats[test_random(state) % LAYER_OUTS],
                 NULL,
                 NULL,
                 test_random(state) % 4 ? test_random(state) % 20 : test_random(state) % ROWS,
                 test_random(state) % COLS};
    s.m = oracle_format_find(s.math);
    s.f = oracle_format_find(s.out);
    layer_fill(x, MOST, (int)(test_random(state) % LAYER_KINDS), state);
    layer_fill(other, MOST, (int)(test_random(state) % LAYER_KINDS), state);
    for (size_t i = 0; i < ROWS; i++)
        at[i] = (uint32_t)(test_random(state) % ENTRIES);
    return s;
}

static float to(const setting *s, float v)
{
    return oracle_to(s->m, (double)v);
}

static float out(const setting *s, float v)
{
    return oracle_to(s->f, (double)v);
}

/* ---- sums ---- */

static size_t columns(const setting *s)
{
    const size_t stride = s->cols + 3 < COLS ? s->cols + 3 : s->cols;
    for (size_t c = 0; c < s->cols; c++)
        want[c] = out(s, oracle_sum(s->m, x + c, s->rows, stride ? stride : 1, MPSIM_LANES_ALL));
    ck_assert_int_eq(mpsim_column_sums(layer_format(s->math), layer_format(s->out), got, x, s->rows, s->cols, stride),
                     MPSIM_OK);
    return layer_equal("sums of columns", s->math, s->out, got, want, s->cols);
}

static size_t periods(const setting *s, size_t period, int added)
{
    for (size_t i = 0; i < period * s->cols; i++) {
        want[i] = added ? to(s, other[i]) : 0;
        for (size_t r = i / s->cols; r < s->rows; r += period)
            want[i] = oracle_add(s->m, want[i], to(s, x[r * s->cols + i % s->cols]));
        want[i] = out(s, want[i]);
    }
    memcpy(got, other, sizeof got);
    ck_assert_int_eq(mpsim_period_sums(layer_format(s->math), layer_format(s->out), got, x, s->rows, s->cols, s->cols,
                                       period, added),
                     MPSIM_OK);
    return layer_equal("sums over periods", s->math, s->out, got, want, period * s->cols);
}

CASE("numbers", 60);

TEST(sums)
{
    uint64_t state = test_seed();
    size_t looked = 0;
    for (size_t round = 0; round < test_scaled(200); round++) {
        const setting s = some(&state, round);
        looked += columns(&s) + periods(&s, 1 + test_random(&state) % 7, (int)(round % 2));
    }
    printf("# %zu numbers\n", looked);
}

/* ---- tables ---- */

static size_t tables(const setting *s, size_t first, size_t n, int added)
{
    for (size_t i = 0; i < s->rows * s->cols; i++)
        want[i] = out(s, other[at[i / s->cols] * s->cols + i % s->cols]);
    ck_assert_int_eq(mpsim_embed(layer_format(s->out), got, other, at, s->rows, s->cols, ENTRIES), MPSIM_OK);
    size_t looked = layer_equal("rows of a table", s->math, s->out, got, want, s->rows * s->cols);
    for (size_t i = 0; i < n * s->cols; i++)
        want[i] = added ? to(s, other[i]) : 0;
    for (size_t r = 0; r < s->rows; r++)
        for (size_t c = 0; c < s->cols; c++)
            if (at[r] >= first && at[r] < first + n) {
                float *const v = &want[(at[r] - first) * s->cols + c];
                *v = oracle_add(s->m, *v, to(s, x[r * s->cols + c]));
            }
    memcpy(got, other, sizeof got);
    ck_assert_int_eq(mpsim_embed_backward(layer_format(s->math), got, x, at, s->rows, s->cols, first, n, added),
                     MPSIM_OK);
    return looked + layer_equal("gradients of a table", s->math, s->math, got, want, n * s->cols);
}

TEST(rows_of_tables)
{
    uint64_t state = test_seed() + 1;
    size_t looked = 0;
    for (size_t round = 0; round < test_scaled(200); round++) {
        const setting s = some(&state, round);
        const size_t first = test_random(&state) % ENTRIES;
        looked += tables(&s, first, test_random(&state) % (ENTRIES - first + 1), (int)(round % 2));
    }
    at[0] = ENTRIES;
    ck_assert_int_eq(mpsim_embed(NULL, got, other, at, 1, 2, ENTRIES), MPSIM_EINVAL);
    printf("# %zu numbers\n", looked);
}

/* ---- elements ---- */

TEST(sums_and_products)
{
    uint64_t state = test_seed() + 2;
    size_t looked = 0;
    for (size_t round = 0; round < test_scaled(200); round++) {
        const setting s = some(&state, round);
        const mpsim_format *m = layer_format(s.math), *f = layer_format(s.out);
        const size_t n = s.rows * s.cols;
        for (size_t i = 0; i < n; i++)
            want[i] = out(&s, oracle_add(s.m, to(&s, x[i]), to(&s, other[i])));
        ck_assert_int_eq(mpsim_add_array(m, f, got, x, other, n), MPSIM_OK);
        looked += layer_equal("a + b", s.math, s.out, got, want, n);
        for (size_t i = 0; i < n; i++)
            want[i] = out(&s, oracle_mul(s.m, to(&s, x[i]), to(&s, other[i])));
        memcpy(got, x, sizeof got);
        ck_assert_int_eq(mpsim_multiply_array(m, f, got, got, other, n), MPSIM_OK);
        looked += layer_equal("a * b", s.math, s.out, got, want, n);
    }
    printf("# %zu numbers\n", looked);
}

TEST(dropout)
{
    static const double ps[] = {0, 0.1, 0.5, 0x1p-32, 0.999, 1};
    uint64_t state = test_seed() + 3;
    size_t looked = 0;
    for (size_t round = 0; round < test_scaled(60); round++) {
        const setting s = some(&state, round);
        const double p = ps[test_random(&state) % 6];
        const mpsim_rng rng = {test_random(&state), test_random(&state),
                               round % 2 ? UINT64_MAX - 5 : test_random(&state)};
        const size_t n = s.rows * s.cols;
        const float k = p < 1 ? to(&s, (float)(1 / (1 - p))) : 0;
        for (size_t i = 0; i < n; i++) {
            const int stays = (double)mpsim_rng_word(rng.seed, rng.stream, rng.index + i) >= floor(p * 0x1p+32);
            want[i] = stays ? out(&s, oracle_mul(s.m, to(&s, x[i]), k)) : 0;
        }
        ck_assert_int_eq(mpsim_dropout(layer_format(s.math), layer_format(s.out), p, &rng, got, x, n), MPSIM_OK);
        looked += layer_equal("dropout", s.math, s.out, got, want, n);
    }
    const mpsim_rng rng = {1, 2, 3};
    ck_assert_int_eq(mpsim_dropout(NULL, NULL, 1.5, &rng, got, x, 4), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_dropout(NULL, NULL, (double)NAN, &rng, got, x, 4), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_dropout(NULL, NULL, 0.5, NULL, got, x, 4), MPSIM_EINVAL);
    printf("# %zu numbers\n", looked);
}

/* ---- losses ---- */

/* Rows that are ignored are +0; the others are those of mpsim_softmax_xent, which t-xent judges. */
TEST(labels_that_are_ignored)
{
    uint64_t state = test_seed() + 4;
    for (size_t round = 0; round < test_scaled(100); round++) {
        const setting s = some(&state, round);
        const size_t rows = s.rows % 20, classes = ENTRIES;
        const mpsim_format *m = layer_format(s.math), *f = layer_format(s.out);
        float loss[20], own[20], dx[20 * ENTRIES], own_dx[20 * ENTRIES];
        uint64_t correct = 7, counted = 7, hits = 0, others = 0;
        for (size_t i = 0; i < rows; i++)
            at[i] = test_random(&state) % 3 ? at[i] : UINT32_MAX - 1;
        ck_assert_int_eq(
            mpsim_cross_entropy(m, f, rows, classes, x, at, UINT32_MAX - 1, 0.25f, loss, dx, &correct, &counted),
            MPSIM_OK);
        for (size_t i = 0; i < rows; i++) {
            uint64_t hit = 0;
            own[i] = 0;
            memset(own_dx + i * classes, 0, classes * sizeof *own_dx);
            others += at[i] < classes;
            if (at[i] < classes)
                ck_assert_int_eq(mpsim_softmax_xent(m, f, 1, classes, x + i * classes, at + i, 0.25f, own + i,
                                                    own_dx + i * classes, &hit),
                                 MPSIM_OK);
            hits += hit;
        }
        (void)layer_equal("loss", s.math, s.math, loss, own, rows);
        (void)layer_equal("dx", s.math, s.out, dx, own_dx, rows * classes);
        ck_assert(correct == hits && counted == others);
        const float n = to(&s, (float)(others + 1));
        const float mean = oracle_div(s.m, oracle_sum(s.m, loss, rows, 1, 256), n),
                    given = mpsim_mean(m, loss, rows, others + 1);
        ck_assert(oracle_same(mean, given));
        at[0] = ENTRIES;
        ck_assert(rows == 0 || mpsim_cross_entropy(m, f, rows, classes, x, at, UINT32_MAX - 1, 1, loss, dx, NULL,
                                                   NULL) == MPSIM_EINVAL);
    }
}

/* ---- rotary positions ---- */

TEST(rotary)
{
    static float c[300 * 8], s[300 * 8];
    ck_assert_int_eq(mpsim_rotary(c, s, 300, 8, 500), MPSIM_OK);
    for (size_t i = 0; i < 300 * 8; i++) {
        const double a = (double)(i / 8) * pow(500, -(double)(i % 8) / 8);
        ck_assert(fabs((double)c[i] - cos(a)) < 1e-6 && fabs((double)s[i] - sin(a)) < 1e-6);
    }
    ck_assert(c[0] == 1 && s[0] == 0);
    ck_assert_int_eq(mpsim_rotary(NULL, s, 3, 2, 500), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_rotary(c, s, 3, 2, 0), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_rotary(c, s, 3, 2, (double)INFINITY), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_rotary(NULL, NULL, 0, 2, 500), MPSIM_OK);
}

CASE("contract", 10);

TEST(errors_touch_nothing)
{
    const mpsim_format *wide = mpsim_format_find("binary64");
    float o[4] = {9, 9, 9, 9};
    ck_assert_int_eq(mpsim_column_sums(wide, NULL, o, x, 2, 2, 2), MPSIM_ERANGE);
    ck_assert_int_eq(mpsim_column_sums(NULL, NULL, NULL, x, 2, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_column_sums(NULL, NULL, o, NULL, 2, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_period_sums(NULL, NULL, o, x, 2, 2, 2, 0, 0), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_period_sums(NULL, wide, o, x, 2, 2, 2, 1, 0), MPSIM_ERANGE);
    ck_assert_int_eq(mpsim_embed(NULL, o, NULL, at, 1, 2, 9), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_embed_backward(NULL, o, x, NULL, 1, 2, 0, 1, 0), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_add_array(NULL, NULL, o, x, NULL, 1), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_multiply_array(NULL, wide, o, x, x, 1), MPSIM_ERANGE);
    for (size_t i = 0; i < 4; i++)
        ck_assert(o[i] == 9);
    ck_assert(isnan(mpsim_mean(wide, x, 2, 2)));
}

TEST_MAIN("layer-elements");
