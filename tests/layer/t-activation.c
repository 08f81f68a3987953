/* t-activation.c -- GELU, SwiGLU and others: every bit as the formulas of mpsim/transformer.h have it. */
#include "oracle/layer.h"
#include "support/layerinput.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 700 };

/* One number of each: x is a gate or the argument, v a value; the rest are results. */
typedef struct element {
    float x, v, dy, y, dx, dv;
} element;

static const oracle_format *m; /* of the formulas below */

static float add(float a, float b)
{
    return oracle_add(m, a, b);
}

static float sub(float a, float b)
{
    return oracle_sub(m, a, b);
}

static float mul(float a, float b)
{
    return oracle_mul(m, a, b);
}

static float to(float x)
{
    return oracle_to(m, (double)x);
}

static void gelu_tanh(element *e)
{
    const float k = to(0x1.988454p-1f), c = to(0x1.6e4e26p-5f), c3 = to(0x1.12ba9ep-3f), x = e->x;
    const float t = to(mpsim_tanh(mul(k, add(x, mul(c, mul(mul(x, x), x))))));
    e->y = mul(mul(0.5f, x), add(1, t));
    const float s = sub(1, mul(t, t)), w = mul(k, add(1, mul(c3, mul(x, x))));
    e->dx = mul(e->dy, add(mul(0.5f, add(1, t)), mul(mul(mul(0.5f, x), s), w)));
}

static void gelu(element *e)
{
    const float r = to(0x1.6a09e6p-1f), q = to(0x1.988454p-2f), x = e->x;
    const float t = to(mpsim_erf(mul(x, r)));
    e->y = mul(mul(0.5f, x), add(1, t));
    const float p = mul(q, to(mpsim_exp(mul(-0.5f, mul(x, x)))));
    e->dx = mul(e->dy, add(mul(0.5f, add(1, t)), mul(x, p)));
}

static void swiglu(element *e)
{
    const float g = e->x, s = to(mpsim_sigmoid(g));
    e->y = mul(mul(g, s), e->v);
    e->dv = mul(e->dy, mul(g, s));
    e->dx = mul(mul(e->dy, e->v), mul(s, add(1, mul(g, sub(1, s)))));
}

static void silu(element *e)
{
    const float x = e->x, s = to(mpsim_sigmoid(x));
    e->y = mul(x, s);
    e->dx = mul(e->dy, mul(s, add(1, mul(x, sub(1, s)))));
}

/* Of those below dx is taken from what is given as y. */
static void relu(element *e)
{
    e->y = e->x > 0 || isnan(e->x) ? e->x : 0;
    e->dx = e->x > 0 ? e->dy : 0;
}

static void sigmoid(element *e)
{
    e->y = to(mpsim_sigmoid(e->x));
    e->dx = mul(e->dy, mul(e->x, sub(1, e->x)));
}

static void hyperbolic(element *e)
{
    e->y = to(mpsim_tanh(e->x));
    e->dx = mul(e->dy, sub(1, mul(e->x, e->x)));
}

static void exponential(element *e)
{
    e->y = to(mpsim_exp(e->x));
    e->dx = mul(e->dy, e->x);
}

static void (*const formulas[])(element *e) = {gelu_tanh, gelu, swiglu, relu, silu, sigmoid, hyperbolic, exponential};

static size_t compare(int kind, const char *math, const char *out, size_t rows, size_t cols, const float *x,
                      const float *dy)
{
    static float y[MOST], dx[2 * MOST], want_y[MOST], want_dx[2 * MOST];
    const mpsim_format *fm = layer_format(math), *ff = layer_format(out);
    const oracle_format *f = oracle_format_find(out);
    const size_t wide = kind == MPSIM_SWIGLU ? 2 * cols : cols, n = rows * cols;
    m = oracle_format_find(math);
    for (size_t i = 0; i < n; i++) {
        const size_t at = i / cols * wide + i % cols;
        element e = {.x = to(x[at]), .dy = to(dy[i])};
        e.v = kind == MPSIM_SWIGLU ? to(x[at + cols]) : 0;
        formulas[kind](&e);
        want_y[i] = oracle_to(f, (double)e.y);
        want_dx[at] = oracle_to(f, (double)e.dx);
        if (kind == MPSIM_SWIGLU)
            want_dx[at + cols] = oracle_to(f, (double)e.dv);
    }
    const mpsim_activation a = (mpsim_activation)kind;
    ck_assert_int_eq(mpsim_activate(a, fm, ff, y, x, rows, cols), MPSIM_OK);
    ck_assert_int_eq(mpsim_activate_backward(a, fm, ff, dx, dy, x, rows, cols), MPSIM_OK);
    size_t looked = layer_equal("y", math, out, y, want_y, n) + layer_equal("dx", math, out, dx, want_dx, rows * wide);
    memcpy(dx, x, rows * wide * sizeof *dx);
    ck_assert_int_eq(mpsim_activate_backward(a, fm, ff, dx, dy, dx, rows, cols), MPSIM_OK);
    looked += layer_equal("dx in x", math, out, dx, want_dx, rows * wide);
    if (kind == MPSIM_SWIGLU)
        return looked;
    memcpy(y, x, n * sizeof *y);
    memcpy(dx, dy, n * sizeof *dx);
    ck_assert_int_eq(mpsim_activate(a, fm, ff, y, y, rows, cols), MPSIM_OK);
    ck_assert_int_eq(mpsim_activate_backward(a, fm, ff, dx, dx, x, rows, cols), MPSIM_OK);
    return looked + layer_equal("y in place", math, out, y, want_y, n) +
           layer_equal("dx in dy", math, out, dx, want_dx, n);
}

CASE("numbers", 60);

TEST(as_the_formulas)
{
    static const size_t sizes[][2] = {{1, 1}, {1, 2}, {3, 31}, {2, 33}, {7, 100}, {0, 5}, {5, 0}};
    static float x[2 * MOST], dy[MOST];
    uint64_t state = test_seed();
    size_t looked = 0;
    for (int kind = MPSIM_GELU_TANH; kind <= MPSIM_EXP; kind++)
        for (size_t f = 0; f < LAYER_MATHS; f++)
            for (size_t round = 0; round < test_scaled(49); round++) {
                const size_t *size = sizes[test_random(&state) % 7];
                layer_fill(x, 2 * MOST, (int)round % LAYER_KINDS, &state);
                layer_fill(dy, MOST, (int)(test_random(&state) % LAYER_KINDS), &state);
                looked += compare(kind, layer_formats[f], layer_formats[test_random(&state) % LAYER_OUTS], size[0],
                                  size[1], x, dy);
            }
    printf("# %zu numbers\n", looked);
}

/* ---- binary32 beside binary64 ---- */

static double in_binary64(int kind, double x, double v)
{
    if (kind == MPSIM_GELU_TANH)
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    if (kind == MPSIM_GELU)
        return 0.5 * x * (1 + erf(x * sqrt(0.5)));
    return x / (1 + exp(-x)) * v;
}

/* Values, and slopes beside differences of values. */
TEST(accuracy)
{
    const double h = 1e-5;
    for (int kind = MPSIM_GELU_TANH; kind <= MPSIM_SWIGLU; kind++) {
        double worst = 0, worst_slope = 0;
        for (int i = -800; i <= 800; i++) {
            const float x[2] = {(float)i / 100, 0.75f}, one = 1;
            const double a = (double)x[0], v = (double)x[1];
            float y, dx[2];
            ck_assert_int_eq(mpsim_activate((mpsim_activation)kind, NULL, NULL, &y, x, 1, 1), MPSIM_OK);
            ck_assert_int_eq(mpsim_activate_backward((mpsim_activation)kind, NULL, NULL, dx, &one, x, 1, 1), MPSIM_OK);
            const double slope = (in_binary64(kind, a + h, v) - in_binary64(kind, a - h, v)) / (2 * h);
            worst = fmax(worst, fabs((double)y - in_binary64(kind, a, v)));
            worst_slope = fmax(worst_slope, fabs((double)dx[0] - slope));
            if (kind == MPSIM_SWIGLU)
                ck_assert(fabs((double)dx[1] - in_binary64(kind, a, 1)) < 1e-6);
        }
        printf("# kind %d: largest difference from binary64 %g, of slopes %g\n", kind, worst, worst_slope);
        ck_assert(worst < 2e-6 && worst_slope < 2e-6);
    }
}

CASE("contract", 10);

/* As the operations say: 0 times infinity and infinity minus itself are NaN. */
TEST(special_values)
{
    const float x[4] = {0, -0.0f, INFINITY, NAN};
    for (int kind = MPSIM_GELU_TANH; kind <= MPSIM_GELU; kind++) {
        float y[4];
        ck_assert_int_eq(mpsim_activate((mpsim_activation)kind, NULL, NULL, y, x, 1, 4), MPSIM_OK);
        ck_assert(bits_of_f32(y[0]) == 0 && bits_of_f32(y[1]) == UINT32_C(1) << 31);
        ck_assert(y[2] == INFINITY && isnan(y[3]));
        const float low[2] = {-FLT_MAX, -20};
        ck_assert_int_eq(mpsim_activate((mpsim_activation)kind, NULL, NULL, y, low, 1, 2), MPSIM_OK);
        ck_assert(y[0] == 0 && y[1] == 0);
    }
}

TEST(errors_touch_nothing)
{
    mpsim_format bad = *mpsim_format_find("fp16");
    bad.bits = 1;
    const mpsim_format *wide = mpsim_format_find("binary64");
    const float x[4] = {1, 2, 3, 4};
    float o[4] = {9, 9, 9, 9};
    for (int k = MPSIM_GELU_TANH; k <= MPSIM_EXP; k++) {
        const mpsim_activation a = (mpsim_activation)k;
        ck_assert_int_eq(mpsim_activate(a, wide, NULL, o, x, 1, 2), MPSIM_ERANGE);
        ck_assert_int_eq(mpsim_activate(a, NULL, wide, o, x, 1, 2), MPSIM_ERANGE);
        ck_assert_int_eq(mpsim_activate(a, &bad, NULL, o, x, 1, 2), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_activate(a, NULL, &bad, o, x, 1, 2), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_activate(a, NULL, NULL, NULL, x, 1, 2), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_activate(a, NULL, NULL, o, NULL, 1, 2), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_activate(a, NULL, NULL, NULL, NULL, 0, 2), MPSIM_OK);
        ck_assert_int_eq(mpsim_activate_backward(a, wide, NULL, o, x, x, 1, 2), MPSIM_ERANGE);
        ck_assert_int_eq(mpsim_activate_backward(a, NULL, &bad, o, x, x, 1, 2), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_activate_backward(a, NULL, NULL, NULL, x, x, 1, 2), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_activate_backward(a, NULL, NULL, o, NULL, x, 1, 2), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_activate_backward(a, NULL, NULL, o, x, NULL, 1, 2), MPSIM_EINVAL);
    }
    ck_assert_int_eq(mpsim_activate((mpsim_activation)(MPSIM_EXP + 1), NULL, NULL, o, x, 1, 2), MPSIM_EINVAL);
    for (size_t i = 0; i < 4; i++)
        ck_assert(o[i] == 9);
}

TEST_MAIN("layer-activation");
