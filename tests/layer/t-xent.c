/* t-xent.c -- sums in lanes, softmax with cross-entropy: every bit as the oracle has it. */
#include "oracle/layer.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <mpsim/layer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1000, CLASSES = 100 };

/* Names for library and oracle; NULL: a NULL pointer for the library. */
static const char *const math_names[] = {NULL, "binary32", "fp16", "bf16", "e5m2", "tf32"};
static const char *const out_names[] = {"binary32", "fp16", "bf16", "e5m2", "e4m3"};
enum { MATHS = sizeof math_names / sizeof *math_names, OUTS = sizeof out_names / sizeof *out_names };

static const mpsim_format *library(const char *name)
{
    return name ? mpsim_format_find(name) : NULL;
}

static double uniform(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

/* What inputs look like. */
enum { NARROW, WIDE, HUGE_ONES, TINY, TIES, BITS, SPECIAL, CONSTANT, KINDS };

static float input(int kind, uint64_t *state)
{
    static const float specials[] = {INFINITY,     -INFINITY, NAN,        0.0f,  -0.0f, FLT_MAX, -FLT_MAX,
                                     FLT_TRUE_MIN, 65504,     65519.996f, 65520, 88.8f, -104};
    const float u = (float)(2 * uniform(state) - 1);
    switch (kind) {
    case NARROW:
        return 4 * u;
    case WIDE:
        return 60 * u;
    case HUGE_ONES:
        return u * FLT_MAX;
    case TINY:
        return u * 0x1p-127f;
    case TIES:
        return floorf(3 * u) / 2;
    case BITS:
        return f32_of_bits((uint32_t)test_random(state));
    case SPECIAL:
        return test_random(state) % 8 ? 4 * u : specials[test_random(state) % 13];
    default:
        return 1.5f;
    }
}

static void fill(float *x, size_t n, int kind, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        x[i] = input(kind, state);
}

static const char *shown(const char *name)
{
    return name ? name : "NULL";
}

/* ---- sums ---- */

static size_t sums_of(const char *name, size_t n, size_t stride, const float *x)
{
    size_t looked = 0;
    for (size_t lanes = 1; lanes <= 1024; lanes *= 2, looked++) {
        const float got = mpsim_sum_lanes(library(name), x, n, stride, lanes);
        const float want = oracle_sum(oracle_format_find(name), x, n, stride, lanes);
        ck_assert_msg(oracle_same(got, want), "%s, %zu numbers, stride %zu, %zu lanes: %a, not %a", shown(name), n,
                      stride, lanes, (double)got, (double)want);
    }
    return looked;
}

CASE("sums", 30);

TEST(sums_in_lanes)
{
    static const size_t lengths[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 1024, 1025, 2500};
    static float x[3 * 2500];
    uint64_t state = test_seed();
    size_t looked = 0;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t m = 0; m < MATHS; m++)
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                fill(x, sizeof x / sizeof *x, kind, &state);
                const size_t stride = 1 + test_random(&state) % 3;
                looked += sums_of(math_names[m], lengths[l], stride, x);
            }
    printf("# %zu sums\n", looked);
}

TEST(lanes_are_powers_of_two)
{
    static const size_t wrong[] = {0, 3, 6, 33, 255, 1023, 1025, 2048, SIZE_MAX};
    const float x[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert(isnan(mpsim_sum_lanes(NULL, x, 4, 1, wrong[i])));
    ck_assert(mpsim_sum_lanes(NULL, x, 4, 1, 1) == 10);
    ck_assert(bits_of_f32(mpsim_sum_lanes(NULL, NULL, 0, 1, 32)) == 0);
}

/* 1 + 2^-24 is a tie and stays 1; two lanes have 1 and 2^-23. */
TEST(a_sum_by_hand)
{
    const float x[4] = {1, 0x1p-24f, 0x1p-24f, 0x1p-24f}, z[1] = {-0.0f};
    ck_assert(mpsim_sum_lanes(NULL, x, 4, 1, 1) == 1);
    ck_assert(mpsim_sum_lanes(NULL, x, 4, 1, 2) == 1 + 0x1p-23f);
    ck_assert(mpsim_sum_lanes(NULL, x, 4, 1, 4) == 1 + 0x1p-23f);
    ck_assert(bits_of_f32(mpsim_sum_lanes(NULL, z, 1, 1, 32)) == 0);
}

/* ---- softmax and cross-entropy ---- */

typedef struct problem {
    size_t rows, classes;
    const char *math, *out;
    float coefficient;
    float x[ROWS * CLASSES];
    uint32_t labels[ROWS];
} problem;

static float loss[ROWS], want_loss[ROWS], dx[ROWS * CLASSES], want_dx[ROWS * CLASSES];

static mpsim_status run(const problem *p, const float *x, float *l, float *d, uint64_t *correct)
{
    return mpsim_softmax_xent(library(p->math), library(p->out), p->rows, p->classes, x, p->labels, p->coefficient, l,
                              d, correct);
}

static void equal(const problem *p, const char *what, const float *got, const float *want, size_t n)
{
    const size_t i = oracle_differs(got, want, n);
    ck_assert_msg(i == n, "%s, math %s, out %s, %zu x %zu: number %zu is %a, not %a", what, shown(p->math), p->out,
                  p->rows, p->classes, i, (double)got[i], (double)want[i]);
}

static size_t compare(const problem *p)
{
    const size_t n = p->rows * p->classes;
    uint64_t correct = 7, want = 0;
    oracle_xent(oracle_format_find(p->math), oracle_format_find(p->out), p->rows, p->classes, p->x, p->labels,
                p->coefficient, want_loss, want_dx, &want);
    ck_assert_int_eq(run(p, p->x, loss, dx, &correct), MPSIM_OK);
    equal(p, "loss", loss, want_loss, p->rows);
    equal(p, "dx", dx, want_dx, n);
    ck_assert_uint_eq(correct, want);
    /* Without one output or another; in place. */
    memset(loss, 0, sizeof loss);
    ck_assert_int_eq(run(p, p->x, loss, NULL, NULL), MPSIM_OK);
    equal(p, "loss alone", loss, want_loss, p->rows);
    memcpy(dx, p->x, n * sizeof *dx);
    correct = 7;
    ck_assert_int_eq(run(p, dx, NULL, dx, &correct), MPSIM_OK);
    equal(p, "dx in place", dx, want_dx, n);
    ck_assert_uint_eq(correct, want);
    return 2 * (p->rows + n);
}

CASE("softmax", 60);

TEST(softmax_as_the_oracle)
{
    static const size_t rows[] = {1, 2, 255, 256, 257, ROWS};
    static const size_t classes[] = {1, 2, 10, 33, CLASSES};
    static problem p;
    uint64_t state = test_seed() + 1;
    size_t looked = 0;
    for (size_t m = 0; m < MATHS; m++)
        for (size_t round = 0; round < test_scaled(48); round++) {
            p.math = math_names[m];
            p.out = out_names[test_random(&state) % OUTS];
            p.rows = rows[round % 16 < 11 ? round % 2 : test_random(&state) % 6];
            p.classes = classes[test_random(&state) % 5];
            p.coefficient = ldexpf(1 + (float)uniform(&state), (int)(test_random(&state) % 30) - 9);
            if (test_random(&state) % 8 == 0)
                p.coefficient = input(SPECIAL, &state);
            fill(p.x, p.rows * p.classes, (int)round % KINDS, &state);
            for (size_t r = 0; r < p.rows; r++)
                p.labels[r] = (uint32_t)(test_random(&state) % p.classes);
            looked += compare(&p);
        }
    printf("# softmax: %zu numbers\n", looked);
}

/* Equal logits: the first of them counts. */
TEST(the_first_largest_counts)
{
    const float x[8] = {1, 3, 3, 2, NAN, 5, 5, 5};
    const uint32_t first[2] = {1, 1}, second[2] = {2, 0};
    uint64_t n;
    ck_assert_int_eq(mpsim_softmax_xent(NULL, mpsim_format_find("fp16"), 2, 4, x, first, 1, NULL, NULL, &n), MPSIM_OK);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(mpsim_softmax_xent(NULL, mpsim_format_find("fp16"), 2, 4, x, second, 1, NULL, NULL, &n), MPSIM_OK);
    ck_assert_uint_eq(n, 0);
}

/* Two equal logits: e = 1, 1; s = 2; loss = log(2); g = c / 2 and c / 2 - c. */
TEST(a_row_by_hand)
{
    const float x[2] = {7, 7};
    const uint32_t label = 1;
    float l, d[2];
    ck_assert_int_eq(mpsim_softmax_xent(NULL, mpsim_format_find("fp16"), 1, 2, x, &label, 1024, &l, d, NULL), MPSIM_OK);
    ck_assert(l == mpsim_log(2) && d[0] == 512 && d[1] == -512);
    ck_assert_int_eq(mpsim_softmax_xent(NULL, mpsim_format_find("fp16"), 1, 2, x, &label, 0x1p18f, NULL, d, NULL),
                     MPSIM_OK);
    ck_assert(d[0] == INFINITY && d[1] == -INFINITY);
}

typedef struct wrong {
    const char *math, *out;
    int no_x, no_labels;
    uint32_t label;
    mpsim_status status;
} wrong;

TEST(errors_touch_nothing)
{
    static const wrong cases[] = {
        {NULL, "fp16", 1, 0, 0, MPSIM_EINVAL},       {NULL, "fp16", 0, 1, 0, MPSIM_EINVAL},
        {NULL, "fp16", 0, 0, 3, MPSIM_EINVAL},       {NULL, "fp16", 0, 0, UINT32_MAX, MPSIM_EINVAL},
        {"binary64", "fp16", 0, 0, 0, MPSIM_ERANGE}, {"fp16", "binary64", 0, 0, 0, MPSIM_ERANGE},
        {"invalid", "fp16", 0, 0, 0, MPSIM_EINVAL},  {"fp16", "invalid", 0, 0, 0, MPSIM_EINVAL},
    };
    mpsim_format bad = *mpsim_format_find("fp16");
    bad.bits = 1;
    const float x[6] = {1, 2, 3, 4, 5, 6};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const wrong *w = &cases[i];
        const uint32_t labels[2] = {0, w->label};
        float l[2] = {9, 9}, d[6] = {9, 9, 9, 9, 9, 9};
        uint64_t n = 9;
        const mpsim_format *math = w->math && *w->math == 'i' ? &bad : library(w->math);
        const mpsim_format *out = *w->out == 'i' ? &bad : library(w->out);
        ck_assert_msg(mpsim_softmax_xent(math, out, 2, 3, w->no_x ? NULL : x, w->no_labels ? NULL : labels, 1, l, d,
                                         &n) == w->status,
                      "case %zu", i);
        ck_assert(l[0] == 9 && l[1] == 9 && n == 9);
        for (size_t k = 0; k < 6; k++)
            ck_assert(d[k] == 9);
    }
}

TEST_MAIN("layer-xent");
