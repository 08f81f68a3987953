/* t-batchnorm.c -- batch normalisation: every bit as the oracle has it. */
#include "oracle/layer.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <mpsim/layer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1000, CHANNELS = 33, MOST = 6000 };

static const char *const names[] = {NULL, "binary32", "fp16", "bf16", "e5m2", "tf32", "e4m3"};
enum { MATHS = 6, OUTS = 7 };

/* What goes in and comes out; running statistics are both. */
typedef struct tensors {
    float x[MOST], dy[MOST], y[MOST], dx[MOST];
    float weight[CHANNELS], bias[CHANNELS], mean[CHANNELS], inverse[CHANNELS];
    float running_mean[CHANNELS], running_var[CHANNELS], dweight[CHANNELS], dbias[CHANNELS];
} tensors;

typedef struct problem {
    oracle_batchnorm oracle;
    mpsim_batchnorm ours;
    const char *math, *out;
} problem;

static double uniform(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

enum { PLAIN, OFFSET, LARGE, TINY, BITS, SPECIAL, CONSTANT, KINDS };

static float input(int kind, uint64_t *state)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN, -0.0f, FLT_MAX, -FLT_MAX, 65504, 300};
    const float u = (float)(2 * uniform(state) - 1);
    switch (kind) {
    case PLAIN:
        return 3 * u;
    case OFFSET:
        return 1000 + u;
    case LARGE:
        return u * 0x1p70f;
    case TINY:
        return u * 0x1p-126f;
    case BITS:
        return f32_of_bits((uint32_t)test_random(state));
    case SPECIAL:
        return test_random(state) % 16 ? u : specials[test_random(state) % 8];
    default:
        return 0.75f;
    }
}

static void fill(float *x, size_t n, int kind, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        x[i] = input(kind, state);
}

static void fill_all(const problem *p, tensors *t, int kind, uint64_t *state)
{
    const size_t n = p->ours.rows * p->ours.channels, c = p->ours.channels;
    fill(t->x, n, kind, state);
    fill(t->dy, n, (int)(test_random(state) % KINDS), state);
    fill(t->weight, c, test_random(state) % 4 ? PLAIN : kind, state);
    fill(t->bias, c, test_random(state) % 4 ? PLAIN : kind, state);
    fill(t->running_mean, c, kind, state);
    for (size_t i = 0; i < c; i++)
        t->running_var[i] = fabsf(input(kind, state));
}

static void set(problem *p, size_t rows, size_t channels, float eps, float momentum, const char *math, const char *out)
{
    p->math = math;
    p->out = out;
    p->oracle = (oracle_batchnorm){rows, channels, eps, momentum, oracle_format_find(math), oracle_format_find(out)};
    p->ours = (mpsim_batchnorm){
        rows, channels, eps, momentum, math ? mpsim_format_find(math) : NULL, out ? mpsim_format_find(out) : NULL};
}

static size_t equal(const problem *p, const char *what, const float *got, const float *want, size_t n)
{
    const size_t i = oracle_differs(got, want, n);
    ck_assert_msg(i == n, "%s, math %s, out %s, %zu x %zu: number %zu is %a, not %a", what, p->math ? p->math : "NULL",
                  p->out ? p->out : "NULL", p->ours.rows, p->ours.channels, i, (double)got[i], (double)want[i]);
    return n;
}

static size_t compare_forward(const problem *p, const tensors *in, tensors *t, tensors *want)
{
    const size_t n = p->ours.rows * p->ours.channels, c = p->ours.channels;
    *t = *want = *in;
    oracle_forward(&p->oracle, want->y, want->mean, want->inverse, want->running_mean, want->running_var, in->x,
                   in->weight, in->bias);
    ck_assert_int_eq(mpsim_batchnorm_forward(&p->ours, t->y, t->mean, t->inverse, t->running_mean, t->running_var, t->x,
                                             t->weight, t->bias),
                     MPSIM_OK);
    size_t looked = equal(p, "y", t->y, want->y, n) + equal(p, "mean", t->mean, want->mean, c) +
                    equal(p, "inverse", t->inverse, want->inverse, c);
    looked += equal(p, "running mean", t->running_mean, want->running_mean, c);
    looked += equal(p, "running variance", t->running_var, want->running_var, c);
    /* In place and without running statistics. */
    ck_assert_int_eq(mpsim_batchnorm_forward(&p->ours, t->x, t->mean, t->inverse, NULL, NULL, t->x, t->weight, t->bias),
                     MPSIM_OK);
    return looked + equal(p, "y in place", t->x, want->y, n);
}

static size_t compare_backward(const problem *p, const tensors *in, tensors *t, tensors *want)
{
    const size_t n = p->ours.rows * p->ours.channels, c = p->ours.channels;
    /* Mean and inverse are those of the forward pass before. */
    oracle_backward(&p->oracle, want->dx, want->dweight, want->dbias, in->dy, in->x, want->mean, want->inverse,
                    in->weight);
    ck_assert_int_eq(mpsim_batchnorm_backward(&p->ours, t->dx, t->dweight, t->dbias, in->dy, in->x, want->mean,
                                              want->inverse, in->weight),
                     MPSIM_OK);
    const size_t looked = equal(p, "dweight", t->dweight, want->dweight, c) +
                          equal(p, "dbias", t->dbias, want->dbias, c) + equal(p, "dx", t->dx, want->dx, n);
    ck_assert_int_eq(mpsim_batchnorm_backward(&p->ours, t->dy, t->dweight, t->dbias, t->dy, in->x, want->mean,
                                              want->inverse, in->weight),
                     MPSIM_OK);
    return looked + equal(p, "dx in place", t->dy, want->dx, n);
}

static size_t compare_inference(const problem *p, const tensors *in, tensors *t, tensors *want)
{
    const size_t n = p->ours.rows * p->ours.channels;
    oracle_inference(&p->oracle, want->y, in->x, in->running_mean, in->running_var, in->weight, in->bias);
    ck_assert_int_eq(
        mpsim_batchnorm_inference(&p->ours, t->y, in->x, in->running_mean, in->running_var, in->weight, in->bias),
        MPSIM_OK);
    return equal(p, "inference", t->y, want->y, n);
}

static size_t compare(const problem *p, int kind, uint64_t *state)
{
    static tensors in, t, want;
    fill_all(p, &in, kind, state);
    return compare_forward(p, &in, &t, &want) + compare_backward(p, &in, &t, &want) +
           compare_inference(p, &in, &t, &want);
}

CASE("numbers", 60);

TEST(as_the_oracle)
{
    static const size_t rows[] = {1, 2, 16, 255, 256, 257, ROWS};
    static const size_t channels[] = {1, 2, 3, 10, CHANNELS};
    uint64_t state = test_seed();
    size_t looked = 0;
    for (size_t m = 0; m < MATHS; m++)
        for (size_t round = 0; round < test_scaled(70); round++) {
            problem p;
            const size_t r = rows[test_random(&state) % 7];
            size_t c = channels[test_random(&state) % 5];
            if (r * c > MOST)
                c = MOST / r;
            const int odd = test_random(&state) % 4 == 0;
            const float eps = odd ? (float)uniform(&state) : 1e-5f;
            const float momentum = odd ? (float)uniform(&state) : 0.1f;
            set(&p, r, c, eps, momentum, names[m], names[test_random(&state) % OUTS]);
            looked += compare(&p, (int)round % KINDS, &state);
        }
    printf("# %zu numbers\n", looked);
}

/* More rows than fp16 and bf16 count: n is rounded to math, to infinity beyond 65519 in fp16. */
TEST(many_rows)
{
    const size_t rows = 65536 + 300;
    float *x = malloc(rows * sizeof *x), *y = malloc(2 * rows * sizeof *y);
    ck_assert(x && y);
    uint64_t state = test_seed() + 1;
    for (size_t i = 0; i < rows; i++)
        x[i] = (float)(int)(test_random(&state) % 3) - 1;
    for (size_t m = 0; m < MATHS; m++) {
        problem p;
        set(&p, rows, 1, 1e-5f, 0.1f, names[m], NULL);
        float w = 1.25f, b = 0.5f, mean[2], inverse[2], rm[2] = {0, 0}, rv[2] = {1, 1};
        oracle_forward(&p.oracle, y + rows, mean + 1, inverse + 1, rm + 1, rv + 1, x, &w, &b);
        ck_assert_int_eq(mpsim_batchnorm_forward(&p.ours, y, mean, inverse, rm, rv, x, &w, &b), MPSIM_OK);
        equal(&p, "y", y, y + rows, rows);
        equal(&p, "mean", mean, mean + 1, 1);
        equal(&p, "inverse", inverse, inverse + 1, 1);
        equal(&p, "running mean", rm, rm + 1, 1);
        equal(&p, "running variance", rv, rv + 1, 1);
    }
    free(x);
    free(y);
}

CASE("contract", 10);

/* x = 1, 3; mean 2, d = -1, 1, var = 1, eps 0: inverse 1; unbiased variance 2. */
TEST(by_hand)
{
    const float x[2] = {1, 3}, w = 2, b = 1, dy[2] = {1, 2};
    float y[2], mean, inverse, rm = 4, rv = 8, dx[2], dw, db;
    problem p;
    set(&p, 2, 1, 0, 0.5f, NULL, "fp16");
    ck_assert_int_eq(mpsim_batchnorm_forward(&p.ours, y, &mean, &inverse, &rm, &rv, x, &w, &b), MPSIM_OK);
    ck_assert(y[0] == -1 && y[1] == 3 && mean == 2 && inverse == 1 && rm == 3 && rv == 5);
    /* h = -1, 1; dbias = 3, dweight = 1; dx = 2 ((dy - 1.5) - h / 2) */
    ck_assert_int_eq(mpsim_batchnorm_backward(&p.ours, dx, &dw, &db, dy, x, &mean, &inverse, &w), MPSIM_OK);
    ck_assert(dw == 1 && db == 3 && dx[0] == 0 && dx[1] == 0);
}

/* One row has no unbiased variance. */
TEST(one_row)
{
    const float x[2] = {1, -3}, w[2] = {2, 2}, b[2] = {1, 0.5f};
    float y[2], mean[2], inverse[2], rm[2] = {0, 0}, rv[2] = {1, 1};
    problem p;
    set(&p, 1, 2, 1e-5f, 0.1f, NULL, NULL);
    ck_assert_int_eq(mpsim_batchnorm_forward(&p.ours, y, mean, inverse, rm, rv, x, w, b), MPSIM_OK);
    ck_assert(y[0] == 1 && y[1] == 0.5f && mean[0] == 1 && mean[1] == -3);
    ck_assert(isnan(rv[0]) && isnan(rv[1]) && isfinite(rm[0]));
}

static mpsim_status forward(const mpsim_batchnorm *b, unsigned without, float *out)
{
    const float x[4] = {1, 2, 3, 4}, w[2] = {1, 1};
#define UNLESS(bit, p) (without >> (bit)&1 ? NULL : (p))
    return mpsim_batchnorm_forward(b, UNLESS(0, out), UNLESS(1, out + 4), UNLESS(2, out + 6), NULL, NULL, UNLESS(3, x),
                                   UNLESS(4, w), UNLESS(5, w));
}

static mpsim_status backward(const mpsim_batchnorm *b, unsigned without, float *out)
{
    const float x[4] = {1, 2, 3, 4}, w[2] = {1, 1};
    return mpsim_batchnorm_backward(b, UNLESS(0, out), UNLESS(1, out + 4), UNLESS(2, out + 6), UNLESS(3, x),
                                    UNLESS(4, x), UNLESS(5, w), UNLESS(6, w), UNLESS(7, w));
}

static mpsim_status inference(const mpsim_batchnorm *b, unsigned without, float *out)
{
    const float x[4] = {1, 2, 3, 4}, w[2] = {1, 1};
    return mpsim_batchnorm_inference(b, UNLESS(0, out), UNLESS(1, x), UNLESS(2, w), UNLESS(3, w), UNLESS(4, w),
                                     UNLESS(5, w));
}

TEST(errors_touch_nothing)
{
    static const struct {
        mpsim_status (*run)(const mpsim_batchnorm *b, unsigned without, float *out);
        unsigned pointers;
    } calls[] = {{forward, 6}, {backward, 8}, {inference, 6}};
    mpsim_format bad = *mpsim_format_find("fp16");
    bad.bits = 1;
    const mpsim_format *wide = mpsim_format_find("binary64");
    for (size_t i = 0; i < 3; i++) {
        float out[8] = {9, 9, 9, 9, 9, 9, 9, 9};
        mpsim_batchnorm b = {2, 2, 1e-5f, 0.1f, NULL, NULL};
        for (unsigned k = 0; k < calls[i].pointers; k++)
            ck_assert_msg(calls[i].run(&b, 1u << k, out) == MPSIM_EINVAL, "%zu without %u", i, k);
        ck_assert_int_eq(calls[i].run(NULL, 0, out), MPSIM_EINVAL);
        b.math = wide;
        ck_assert_int_eq(calls[i].run(&b, 0, out), MPSIM_ERANGE);
        b.math = &bad;
        ck_assert_int_eq(calls[i].run(&b, 0, out), MPSIM_EINVAL);
        b.math = NULL;
        b.f = wide;
        ck_assert_int_eq(calls[i].run(&b, 0, out), MPSIM_ERANGE);
        b.f = &bad;
        ck_assert_int_eq(calls[i].run(&b, 0, out), MPSIM_EINVAL);
        for (size_t k = 0; k < 8; k++)
            ck_assert(out[k] == 9);
        b.f = NULL;
        ck_assert_int_eq(calls[i].run(&b, 0, out), MPSIM_OK);
    }
    const mpsim_batchnorm no_rows = {0, SIZE_MAX, 1e-5f, 0.1f, NULL, NULL}; /* nothing is read, either */
    float one[1] = {9};
    ck_assert_int_eq(mpsim_batchnorm_inference(&no_rows, one, one, one, one, one, one), MPSIM_OK);
}

TEST_MAIN("layer-batchnorm");
