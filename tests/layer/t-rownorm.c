/* t-rownorm.c -- LayerNorm and RMSNorm: every bit as the formulas of mpsim/transformer.h have it. */
#include "oracle/layer.h"
#include "support/layerinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 6000, COLS = 300, ROWS = 600 };

typedef struct tensors {
    float x[MOST], dy[MOST], y[MOST], dx[MOST], mean[ROWS], inverse[ROWS];
    float weight[COLS], bias[COLS], dweight[COLS], dbias[COLS];
} tensors;

typedef struct problem {
    mpsim_rownorm ours;
    const char *math, *out;
    const oracle_format *m, *f;
    int bias;
} problem;

static void set(problem *p, size_t rows, size_t cols, int kind, float eps, const char *math, const char *out)
{
    p->math = math;
    p->out = out;
    p->m = oracle_format_find(math);
    p->f = oracle_format_find(out);
    p->bias = 1;
    p->ours = (mpsim_rownorm){rows, cols, (uint8_t)kind, eps, layer_format(math), layer_format(out)};
}

/* ---- the formulas, one number after the other ---- */

static float n_of(const problem *p)
{
    return oracle_to(p->m, (double)(float)p->ours.cols);
}

static float in_math(const problem *p, float x)
{
    return oracle_to(p->m, (double)x);
}

static void want_forward(const problem *p, tensors *t)
{
    const oracle_format *m = p->m;
    const size_t n = p->ours.cols;
    float d[COLS], square[COLS];
    for (size_t r = 0; r < p->ours.rows; r++) {
        const float *x = t->x + r * n;
        const int centred = p->ours.kind == MPSIM_NORM_LAYER;
        t->mean[r] = centred ? oracle_div(m, oracle_sum(m, x, n, 1, 32), n_of(p)) : 0;
        for (size_t c = 0; c < n; c++) {
            d[c] = centred ? oracle_sub(m, in_math(p, x[c]), t->mean[r]) : in_math(p, x[c]);
            square[c] = oracle_mul(m, d[c], d[c]);
        }
        const float var = oracle_div(m, oracle_sum(m, square, n, 1, 32), n_of(p));
        const float root = oracle_root(m, oracle_add(m, var, in_math(p, p->ours.eps)));
        t->inverse[r] = oracle_div(m, 1, root);
        for (size_t c = 0; c < n; c++) {
            float y = oracle_mul(m, oracle_mul(m, d[c], t->inverse[r]), in_math(p, t->weight[c]));
            if (p->bias)
                y = oracle_add(m, y, in_math(p, t->bias[c]));
            t->y[r * n + c] = oracle_to(p->f, (double)y);
        }
    }
}

static void want_backward(const problem *p, tensors *t)
{
    const oracle_format *m = p->m;
    const size_t n = p->ours.cols;
    const int centred = p->ours.kind == MPSIM_NORM_LAYER;
    static float h[MOST], terms[MOST], dy[MOST];
    float g[COLS], product[COLS];
    for (size_t i = 0; i < p->ours.rows * n; i++) {
        const float x = in_math(p, t->x[i]);
        const float d = centred ? oracle_sub(m, x, in_math(p, t->mean[i / n])) : x;
        h[i] = oracle_mul(m, d, in_math(p, t->inverse[i / n]));
        dy[i] = in_math(p, t->dy[i]);
        terms[i] = oracle_mul(m, dy[i], h[i]);
    }
    for (size_t c = 0; c < n; c++) {
        t->dweight[c] = oracle_sum(m, terms + c, p->ours.rows, n, 256);
        t->dbias[c] = oracle_sum(m, dy + c, p->ours.rows, n, 256);
    }
    for (size_t r = 0; r < p->ours.rows; r++) {
        for (size_t c = 0; c < n; c++) {
            g[c] = oracle_mul(m, dy[r * n + c], in_math(p, t->weight[c]));
            product[c] = oracle_mul(m, g[c], h[r * n + c]);
        }
        const float a = oracle_div(m, oracle_sum(m, g, n, 1, 32), n_of(p));
        const float b = oracle_div(m, oracle_sum(m, product, n, 1, 32), n_of(p));
        for (size_t c = 0; c < n; c++) {
            const float left = centred ? oracle_sub(m, g[c], a) : g[c];
            const float rest = oracle_sub(m, left, oracle_mul(m, h[r * n + c], b));
            const float dx = oracle_mul(m, in_math(p, t->inverse[r]), rest);
            t->dx[r * n + c] = oracle_to(p->f, (double)dx);
        }
    }
}

/* ---- comparisons ---- */

static size_t equal(const problem *p, const char *what, const float *got, const float *want, size_t n)
{
    return layer_equal(what, p->math, p->out, got, want, n);
}

static size_t compare(const problem *p, const tensors *in)
{
    static tensors t, want;
    const size_t cols = p->ours.cols, rows = p->ours.rows, n = rows * cols;
    const float *bias = p->bias ? t.bias : NULL;
    t = want = *in;
    want_forward(p, &want);
    ck_assert_int_eq(mpsim_rownorm_forward(&p->ours, t.y, t.mean, t.inverse, t.x, t.weight, bias), MPSIM_OK);
    size_t looked = equal(p, "y", t.y, want.y, n) + equal(p, "mean", t.mean, want.mean, rows) +
                    equal(p, "inverse", t.inverse, want.inverse, rows);
    want_backward(p, &want);
    ck_assert_int_eq(mpsim_rownorm_backward(&p->ours, t.dx, t.dweight, t.dbias, t.dy, t.x, t.mean, t.inverse, t.weight),
                     MPSIM_OK);
    looked += equal(p, "dx", t.dx, want.dx, n) + equal(p, "dweight", t.dweight, want.dweight, cols);
    looked += equal(p, "dbias", t.dbias, want.dbias, cols);
    /* Gradients of parameters alone; in place without them. */
    memset(t.dweight, 0, sizeof t.dweight);
    memset(t.dbias, 0, sizeof t.dbias);
    ck_assert_int_eq(mpsim_rownorm_backward(&p->ours, NULL, t.dweight, t.dbias, t.dy, t.x, t.mean, t.inverse, t.weight),
                     MPSIM_OK);
    looked += equal(p, "dweight alone", t.dweight, want.dweight, cols);
    looked += equal(p, "dbias alone", t.dbias, want.dbias, cols);
    ck_assert_int_eq(mpsim_rownorm_backward(&p->ours, t.dy, NULL, NULL, t.dy, t.x, t.mean, t.inverse, t.weight),
                     MPSIM_OK);
    looked += equal(p, "dx in dy", t.dy, want.dx, n);
    memcpy(t.y, t.x, sizeof t.y);
    ck_assert_int_eq(mpsim_rownorm_backward(&p->ours, t.x, NULL, t.dbias, in->dy, t.x, t.mean, t.inverse, t.weight),
                     MPSIM_OK);
    looked += equal(p, "dx in x", t.x, want.dx, n);
    ck_assert_int_eq(mpsim_rownorm_forward(&p->ours, t.y, t.mean, t.inverse, t.y, t.weight, bias), MPSIM_OK);
    return looked + equal(p, "y in place", t.y, want.y, n);
}

CASE("numbers", 60);

TEST(as_the_formulas)
{
    static const size_t rows[] = {0, 1, 2, 5, 17, 256, 257, ROWS};
    static const size_t cols[] = {1, 2, 10, 31, 32, 33, 64, 100, COLS};
    static tensors in;
    uint64_t state = test_seed();
    size_t looked = 0;
    for (size_t m = 0; m < LAYER_MATHS; m++)
        for (size_t round = 0; round < test_scaled(70); round++) {
            problem p;
            const size_t c = cols[test_random(&state) % 9];
            size_t r = rows[test_random(&state) % 8];
            r = r * c > MOST ? MOST / c : r;
            set(&p, r, c, (int)(test_random(&state) % 2), round % 5 ? 1e-5f : 0, layer_formats[m],
                layer_formats[test_random(&state) % LAYER_OUTS]);
            p.bias = test_random(&state) % 3 > 0;
            const int kind = (int)round % LAYER_KINDS;
            layer_fill(in.x, r * c, kind, &state);
            layer_fill(in.dy, r * c, (int)(test_random(&state) % LAYER_KINDS), &state);
            layer_fill(in.weight, c, round % 4 ? LAYER_PLAIN : kind, &state);
            layer_fill(in.bias, c, round % 4 ? LAYER_PLAIN : kind, &state);
            looked += compare(&p, &in);
        }
    printf("# %zu numbers\n", looked);
}

/* binary32 beside binary64. */
TEST(accuracy)
{
    static tensors t;
    uint64_t state = test_seed() + 1;
    double worst = 0;
    for (int kind = MPSIM_NORM_LAYER; kind <= MPSIM_NORM_RMS; kind++) {
        problem p;
        set(&p, 8, COLS, kind, 1e-5f, NULL, NULL);
        layer_fill(t.x, (size_t)8 * COLS, LAYER_PLAIN, &state);
        layer_fill(t.weight, COLS, LAYER_PLAIN, &state);
        ck_assert_int_eq(mpsim_rownorm_forward(&p.ours, t.y, t.mean, t.inverse, t.x, t.weight, NULL), MPSIM_OK);
        for (size_t r = 0; r < 8; r++) {
            double mean = 0, var = 0;
            const float *x = t.x + r * COLS;
            for (size_t c = 0; c < COLS && kind == MPSIM_NORM_LAYER; c++)
                mean += (double)x[c] / COLS;
            for (size_t c = 0; c < COLS; c++)
                var += ((double)x[c] - mean) * ((double)x[c] - mean) / COLS;
            for (size_t c = 0; c < COLS; c++) {
                const double y = ((double)x[c] - mean) / sqrt(var + (double)1e-5f) * (double)t.weight[c];
                worst = fmax(worst, fabs((double)t.y[r * COLS + c] - y));
            }
        }
    }
    printf("# largest difference from binary64: %g\n", worst);
    ck_assert(worst < 1e-5);
}

CASE("contract", 10);

/* x = 1, 3: mean 2, var 1, h = -1, 1; of RMS: (1 + 9) / 2 = 5. */
TEST(by_hand)
{
    const float x[2] = {1, 3}, w[2] = {2, 4}, b[2] = {1, 0}, dy[2] = {1, 2};
    float y[2], mean = 9, inverse, dx[2], dw[2], db[2];
    problem p;
    set(&p, 1, 2, MPSIM_NORM_LAYER, 0, NULL, NULL);
    ck_assert_int_eq(mpsim_rownorm_forward(&p.ours, y, &mean, &inverse, x, w, b), MPSIM_OK);
    ck_assert(y[0] == -1 && y[1] == 4 && mean == 2 && inverse == 1);
    /* g = 2, 8; a = 5; c = (-2 + 8) / 2 = 3 */
    ck_assert_int_eq(mpsim_rownorm_backward(&p.ours, dx, dw, db, dy, x, &mean, &inverse, w), MPSIM_OK);
    ck_assert(dx[0] == 0 && dx[1] == 0 && dw[0] == -1 && dw[1] == 2 && db[0] == 1 && db[1] == 2);
    set(&p, 1, 2, MPSIM_NORM_RMS, -1, NULL, NULL);
    ck_assert_int_eq(mpsim_rownorm_forward(&p.ours, y, &mean, &inverse, x, w, NULL), MPSIM_OK);
    ck_assert(y[0] == 1 && y[1] == 6 && bits_of_f32(mean) == 0 && inverse == 0.5f);
    /* h = 0.5, 1.5; g = 2, 8; c = (1 + 12) / 2 = 6.5 */
    ck_assert_int_eq(mpsim_rownorm_backward(&p.ours, dx, dw, db, dy, x, NULL, &inverse, w), MPSIM_OK);
    ck_assert(dx[0] == 0.5f * (2 - 3.25f) && dx[1] == 0.5f * (8 - 9.75f));
}

#define UNLESS(bit, p) (without >> (bit)&1 ? NULL : (p))

static mpsim_status forward(const mpsim_rownorm *r, unsigned without, float *out)
{
    static const float x[4] = {1, 2, 3, 4};
    return mpsim_rownorm_forward(r, UNLESS(0, out), UNLESS(1, out + 4), UNLESS(2, out + 6), UNLESS(3, x), UNLESS(4, x),
                                 NULL);
}

static mpsim_status backward(const mpsim_rownorm *r, unsigned without, float *out)
{
    static const float x[4] = {1, 2, 3, 4};
    return mpsim_rownorm_backward(r, UNLESS(0, out), out + 4, out + 6, UNLESS(1, x), UNLESS(2, x), UNLESS(3, x),
                                  UNLESS(4, x), UNLESS(5, x));
}

TEST(errors_touch_nothing)
{
    mpsim_format bad = *mpsim_format_find("fp16");
    bad.bits = 1;
    const mpsim_format *wide = mpsim_format_find("binary64");
    for (int i = 0; i < 2; i++) {
        mpsim_status (*run)(const mpsim_rownorm *, unsigned, float *) = i ? backward : forward;
        float out[8] = {9, 9, 9, 9, 9, 9, 9, 9};
        mpsim_rownorm r = {2, 2, MPSIM_NORM_LAYER, 1e-5f, NULL, NULL};
        for (unsigned k = i ? 1 : 0; k < (i ? 6 : 5); k++) /* dx need not be wanted */
            ck_assert_msg(run(&r, 1u << k, out) == MPSIM_EINVAL, "%d without %u", i, k);
        ck_assert_int_eq(run(NULL, 0, out), MPSIM_EINVAL);
        r.kind = 2;
        ck_assert_int_eq(run(&r, 0, out), MPSIM_EINVAL);
        r.kind = MPSIM_NORM_RMS;
        r.math = wide;
        ck_assert_int_eq(run(&r, 0, out), MPSIM_ERANGE);
        r.math = &bad;
        ck_assert_int_eq(run(&r, 0, out), MPSIM_EINVAL);
        r.math = NULL;
        r.f = wide;
        ck_assert_int_eq(run(&r, 0, out), MPSIM_ERANGE);
        r.f = NULL;
        r.cols = 0; /* nothing to do, nothing needed */
        ck_assert_int_eq(run(&r, 0, out), MPSIM_OK);
        ck_assert_int_eq(run(&r, 0x3f, out), MPSIM_OK);
        for (size_t k = 0; k < 8; k++)
            ck_assert(out[k] == 9);
        r.cols = 2;
        ck_assert_int_eq(run(&r, 0, out), MPSIM_OK);
    }
}

TEST_MAIN("layer-rownorm");
