/* t-roundoff.c -- gradients of biases that are nothing but rounding (sim/trace/roundoff.h): layers whose sums cancel, as keys of
 * attention and biases before BatchNorm have them, in binary32 arithmetic; and gradients that are small and true: dead units,
 * few samples, a small loss, chance. */
#include "sim/trace/roundoff.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/mpsim.h>
#include <mpsim/report.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 24, BATCH = 512, INPUTS = 16 };

/* A layer of N outputs: terms, gradients of bias and weight. */
typedef struct layer {
    float a[BATCH * N], b[N], w[N * INPUTS], x[BATCH * INPUTS];
} layer;

static layer l;

/* Gradients of the outputs of the size of `by`; of elements from `first` to `end` - 1 the sum over the batch cancels. */
static void make_terms(uint64_t *state, double by, size_t first, size_t end)
{
    double two[2];
    for (size_t i = 0; i < BATCH * INPUTS; i++) {
        test_normal_pair(state, two);
        l.x[i] = (float)two[0];
    }
    for (size_t j = 0; j < N; j++) {
        double sum = 0;
        for (size_t i = 0; i < BATCH; i++) {
            test_normal_pair(state, two);
            l.a[i * N + j] = (float)(by * two[0]);
            sum += (double)l.a[i * N + j];
        }
        for (size_t i = 0; i < BATCH && j >= first && j < end; i++)
            l.a[i * N + j] = (float)((double)l.a[i * N + j] - sum / BATCH);
    }
}

/* As frameworks add them: in binary32, halves. x NULL: ones. */
static float add_half(const float *a, const float *x, size_t n)
{
    if (n == 1)
        return x ? *a * *x : *a;
    return add_half(a, x, n / 2) + add_half(a + n / 2 * N, x ? x + n / 2 * INPUTS : NULL, n - n / 2);
}

static void add_up(void)
{
    for (size_t j = 0; j < N; j++) {
        l.b[j] = add_half(l.a + j, NULL, BATCH);
        if (l.b[j] == 0) /* zeros do not count */
            l.b[j] = 0x1p-24f * l.a[j];
        for (size_t k = 0; k < INPUTS; k++)
            l.w[j * INPUTS + k] = add_half(l.a + j, l.x + k, BATCH);
    }
}

/* Which of the three a file has. */
enum { BIAS = 1, WEIGHT = 2, TERMS = 4 };

/* How many elements of the bias are found, all of them in a row from `first` on (N: anywhere); elements of others: none. */
static uint64_t found(unsigned has, size_t first, double *values, int *evidence)
{
    static const uint64_t shapes[3][2] = {{N}, {N, INPUTS}, {BATCH, N}};
    const mpsim_format *f = mpsim_format_find("binary32");
    const mpsim_array all[3] = {
        {.name = "wgrad:fc.bias", .format = f, .data = l.b, .shape = shapes[0], .dimensions = 1},
        {.name = "wgrad:fc.weight", .format = f, .data = l.w, .shape = shapes[1], .dimensions = 2},
        {.name = "agrad:fc", .format = f, .data = l.a, .shape = shapes[2], .dimensions = 2}};
    mpsim_array arrays[3];
    size_t n = 0, got = 0;
    uint64_t bytes, others = 0;
    trace_error error = {0};
    for (unsigned k = 0; k < 3; k++)
        if (has >> k & 1)
            arrays[n++] = all[k];
    trace *t = trace_of_arrays("-", arrays, n, NULL, &error);
    ck_assert_msg(t != NULL, "%s", error.text);
    ck_assert_msg(trace_find_roundoff(t, &bytes, &error) == 0, "%s", error.text);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const trace_tensor *x = trace_at(t, i);
        others += x->rank > 1 && x->roundoff ? x->roundoff->count : 0;
        if (x->rank > 1)
            continue;
        sum = x->roundoff ? x->roundoff->count : 0;
        *evidence = x->roundoff ? x->roundoff->evidence : 0;
        ck_assert_uint_eq(trace_roundoff(t, i, 0, N), sum);
        ck_assert(first == N || trace_roundoff(t, i, first, sum) == sum);
        ck_assert(trace_select(t, i, &error) == 0 && trace_read(t, values, N, &got, &error) == 0 && got == N);
    }
    ck_assert_uint_eq(others, 0);
    trace_close(t);
    return sum;
}

static uint64_t count(unsigned has)
{
    double values[N];
    int evidence;
    return found(has, N, values, &evidence);
}

CASE("roundoff", 60);

TEST(bug_20261127_sums_that_cancel)
{
    uint64_t state = test_seed();
    double values[N];
    int evidence = 0;
    static const unsigned files[] = {BIAS | WEIGHT | TERMS, BIAS | TERMS, BIAS | WEIGHT, BIAS};
    for (int scale = -60; scale <= 20; scale += 20)
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            make_terms(&state, ldexp(1, scale), 8, 16); /* as the keys of queries, keys and values */
            add_up();
            for (size_t j = 0; j < N; j++) /* none of the others near 0 by chance */
                l.b[j] += j < 8 || j >= 16 ? copysignf(0x1p4f * fabsf(l.a[j]), l.b[j]) : 0;
            ck_assert_uint_eq(found(files[k], 8, values, &evidence), 8);
            ck_assert_int_eq(strncmp(trace_roundoff_evidence(evidence), "a guess", 7) == 0, k >= 2);
            for (size_t j = 0; j < N; j++)
                ck_assert(values[j] == (j >= 8 && j < 16 ? 0 : (double)l.b[j]));
            make_terms(&state, ldexp(1, scale), 0, N); /* before BatchNorm: alone it looks like any other */
            add_up();
            ck_assert(count(files[k]) == (k == 3 ? 0 : N));
        }
}

/* Small, and true. */
TEST(bug_20261127_small_gradients_are_none)
{
    static const unsigned files[] = {BIAS | WEIGHT | TERMS, BIAS | TERMS, BIAS | WEIGHT};
    uint64_t state = test_seed();
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        make_terms(&state, 1, 0, 0);
        for (size_t i = 0; i < BATCH; i++) /* eight units that one sample reaches, by 2^-40; four that none does */
            for (size_t j = 0; j < 12; j++)
                l.a[i * N + j] = i == 7 && j < 8 ? 0x1p-40f * l.a[i * N + j] : 0;
        add_up();
        ck_assert_uint_eq(count(files[k]), 0);
        make_terms(&state, 1, 0, 0);
        for (size_t i = 0; i < BATCH * N; i++) /* parts of which the loss is that small */
            l.a[i] *= i % N < 12 ? 0x1p-40f : 1;
        add_up();
        ck_assert_uint_eq(count(files[k]), 0);
        make_terms(&state, 1, 5, 8); /* three of them: chance */
        add_up();
        ck_assert_uint_eq(count(files[k]), 0);
        make_terms(&state, 1, 0, N); /* terms that are not those of the sum, as of another batch */
        add_up();
        for (size_t j = 0; j < N; j++)
            l.b[j] = 1;
        ck_assert_uint_eq(count(files[k]), 0);
        make_terms(&state, 1, 0, N);
        add_up();
        l.a[3] = (float)INFINITY; /* says nothing of the fourth */
        l.w[INPUTS * N - 1] = 0;
        ck_assert_uint_eq(count(files[k]), k == 2 ? N : N - 4); /* the three before it are too few */
    }
}

/* Of a tensor alone: a gap, or none. */
TEST(a_bias_alone)
{
    for (size_t j = 0; j < N; j++)
        l.b[j] = (float)(j + 1);
    for (size_t j = 4; j < 9; j++)
        l.b[j] *= 0x1p-30f;
    ck_assert_uint_eq(count(BIAS), 5);
    l.b[20] = 0x1p-16f * l.b[23];
    ck_assert_uint_eq(count(BIAS), 0);
}

TEST_MAIN("trace-roundoff");
