/* t-kernels.c -- functions of arrays and rows under every instruction set (lib/layer/kernel) beside the loops over one
 * number: the same bits, of NaNs, too. Operands: every code of fp16 and of bf16 and numbers of binary32. */
#include "support/support.h"

#include <mpsim/isa.h>
#include <mpsim/transformer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODES = 1 << 16, N = CODES + 35, RESULTS = 4 };

/* What an operation computes with: arrays of N numbers; results, as many of each as it counts. */
typedef struct problem {
    const mpsim_format *math, *f;
    float *x, *v, *dy;
    float *y[RESULTS];
    size_t n[RESULTS];
    unsigned kind, variant;
} problem;

/* Operands: any, some with few NaNs, and stretches of special numbers. */
static struct {
    float x[N], v[N], dy[N + CODES];
} operands[3];
static float got[RESULTS][2 * N], want[RESULTS][2 * N];
static uint8_t mask[N];

/* ---- operations ---- */

static void activate(problem *p)
{
    const mpsim_activation kind = (mpsim_activation)p->kind;
    const size_t rows = kind == MPSIM_SWIGLU ? 101 : 1, cols = kind == MPSIM_SWIGLU ? 324 : N;
    p->n[0] = rows * cols;
    ck_assert_int_eq(mpsim_activate(kind, p->math, p->f, p->y[0], p->x, rows, cols), MPSIM_OK);
}

static void activate_back(problem *p)
{
    const mpsim_activation kind = (mpsim_activation)p->kind;
    const size_t rows = kind == MPSIM_SWIGLU ? 101 : 1, cols = kind == MPSIM_SWIGLU ? 324 : N;
    p->n[0] = kind == MPSIM_SWIGLU ? 2 * rows * cols : N;
    ck_assert_int_eq(mpsim_activate_backward(kind, p->math, p->f, p->y[0], p->dy, p->x, rows, cols), MPSIM_OK);
}

/* Columns of rows: those of one vector, of several, with a rest and without. */
static size_t columns(const problem *p)
{
    static const size_t cols[] = {67, 1024, 33, 5};
    return cols[p->variant / 3];
}

static void softmax(problem *p)
{
    const size_t cols = columns(p), length = p->kind & 8 ? cols : 0;
    const mpsim_softmax c = {N / cols, cols, length, 0, p->variant / 3 == 2 ? -1.5f : 0.125f, p->math, p->f};
    const uint8_t *const seen = p->kind & 4 ? mask : NULL;
    static mpsim_status (*const functions[])(const mpsim_softmax *, float *, const float *, const float *,
                                             const uint8_t *) = {NULL, NULL, mpsim_softmax_backward,
                                                                 mpsim_log_softmax_backward};
    p->n[0] = N / cols * cols;
    if (p->kind % 4 == 0)
        ck_assert_int_eq(mpsim_softmax_rows(&c, p->y[0], p->x, seen), MPSIM_OK);
    else if (p->kind % 4 == 1)
        ck_assert_int_eq(mpsim_log_softmax(&c, p->y[0], p->x, seen), MPSIM_OK);
    else
        ck_assert_int_eq(functions[p->kind % 4](&c, p->y[0], p->dy, p->x, seen), MPSIM_OK);
}

/* Losses, gradients, how many are right; in place; losses alone. */
static void cross_entropy(problem *p)
{
    const size_t cols = columns(p), rows = N / cols;
    static uint32_t labels[N / 5];
    uint64_t correct;
    for (size_t i = 0; i < rows; i++) {
        labels[i] = (uint32_t)(i * 7 % cols);
        for (size_t c = 0; c < cols && i % 3; c++) /* the largest number's, now and then not the first */
            labels[i] = p->x[i * cols + c] > p->x[i * cols + labels[i]] ? (uint32_t)c : labels[i];
    }
    p->n[0] = p->kind < 2 ? rows * cols : 0;
    p->n[1] = rows;
    p->n[2] = 1;
    memcpy(p->y[0], p->x, rows * cols * sizeof(float));
    ck_assert_int_eq(mpsim_softmax_xent(p->math, p->f, rows, cols, p->kind == 1 ? p->y[0] : p->x, labels, 0.37f,
                                        p->y[1], p->kind < 2 ? p->y[0] : NULL, &correct),
                     MPSIM_OK);
    p->y[2][0] = (float)correct;
}

static mpsim_rownorm norm_of(const problem *p)
{
    const size_t cols = columns(p);
    return (mpsim_rownorm){N / cols, cols, (uint8_t)(p->kind % 2), 1e-5f, p->math, p->f};
}

static void norm(problem *p)
{
    const mpsim_rownorm r = norm_of(p);
    p->n[0] = r.rows * r.cols;
    p->n[1] = p->n[2] = r.rows;
    ck_assert_int_eq(mpsim_rownorm_forward(&r, p->y[0], p->y[1], p->y[2], p->x, p->v, p->kind & 2 ? p->dy : NULL),
                     MPSIM_OK);
}

static void norm_back(problem *p)
{
    const mpsim_rownorm r = norm_of(p);
    p->n[0] = r.rows * r.cols;
    p->n[1] = p->n[2] = r.cols;
    ck_assert_int_eq(
        mpsim_rownorm_backward(&r, p->y[0], p->y[1], p->kind & 2 ? p->y[2] : NULL, p->dy, p->x, p->v, p->dy + 77, p->v),
        MPSIM_OK);
    if (!(p->kind & 2))
        p->n[2] = 0;
}

static void elements(problem *p)
{
    const mpsim_rng rng = {5, 6, 7};
    p->n[0] = N;
    if (p->kind == 0)
        ck_assert_int_eq(mpsim_add_array(p->math, p->f, p->y[0], p->x, p->dy, N), MPSIM_OK);
    else if (p->kind == 1)
        ck_assert_int_eq(mpsim_multiply_array(p->math, p->f, p->y[0], p->x, p->dy, N), MPSIM_OK);
    else
        ck_assert_int_eq(mpsim_dropout(p->math, p->f, p->kind == 2 ? 0.1 : 1.0, &rng, p->y[0], p->x, N), MPSIM_OK);
}

static void sums(problem *p)
{
    const size_t cols = columns(p);
    p->n[0] = cols;
    p->n[1] = 7 * cols;
    ck_assert_int_eq(mpsim_column_sums(p->math, p->f, p->y[0], p->x, N / cols, cols, cols), MPSIM_OK);
    ck_assert_int_eq(mpsim_period_sums(p->math, p->f, p->y[1], p->x, N / cols, cols, cols, 7, 0), MPSIM_OK);
}

static void batchnorm(problem *p)
{
    const size_t cols = columns(p);
    const mpsim_batchnorm b = {N / cols, cols, 1e-5f, 0.1f, p->math, p->f};
    p->n[0] = N / cols * cols;
    p->n[1] = p->n[2] = cols;
    if (p->kind == 0)
        ck_assert_int_eq(mpsim_batchnorm_forward(&b, p->y[0], p->y[1], p->y[2], NULL, NULL, p->x, p->v, p->dy),
                         MPSIM_OK);
    else if (p->kind == 1)
        ck_assert_int_eq(
            mpsim_batchnorm_backward(&b, p->y[0], p->y[1], p->y[2], p->dy, p->x, p->v, p->dy + 77, p->v + 99),
            MPSIM_OK);
    else
        ck_assert_int_eq(mpsim_batchnorm_inference(&b, p->y[0], p->x, p->v, p->dy, p->v + 99, p->dy + 77), MPSIM_OK);
    p->n[1] = p->n[2] = p->kind == 2 ? 0 : cols;
}

static const struct {
    const char *name;
    void (*run)(problem *p);
    unsigned kinds;
} operations[] = {
    {"activate", activate, MPSIM_EXP + 1},
    {"activate_backward", activate_back, MPSIM_EXP + 1},
    {"softmax", softmax, 16},
    {"softmax_xent", cross_entropy, 3},
    {"rownorm", norm, 4},
    {"rownorm_backward", norm_back, 4},
    {"elements", elements, 4},
    {"sums", sums, 1},
    {"batchnorm", batchnorm, 3},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* ---- operands ---- */

/* Formats of operations; operands are their codes, NULL: any bits of binary32. */
static const char *const maths[] = {"fp16", "bf16", NULL, "e5m2", "tf32", "e4m3"};
enum { MATHS = sizeof maths / sizeof *maths };
static const char *const outs[] = {NULL, "bf16", "fp16", "e4m3", "tf32"};
enum { OUTS = sizeof outs / sizeof *outs };

static const mpsim_format *format(const char *name)
{
    return name ? mpsim_format_find(name) : NULL;
}

/* A number by its code; of binary32 a special one now and then. */
static float number(const char *math, uint64_t code)
{
    static const uint32_t specials[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                        0xffc12345, 0x7fffffff, 0xffffffff, 0x7f800001, 0xff812345,
                                        1,          0x807fffff, 0x7f7fffff, 0x3f800000};
    const uint32_t u = (uint32_t)code;
    if (math && strcmp(math, "bf16") == 0)
        return f32_of_bits(u << 16);
    if (math && strcmp(math, "fp16") == 0)
        return (u & 0x7c00) == 0x7c00 && u & 0x3ff ? f32_of_bits((u & 0x8000) << 16 | 0x7f800000 | (u & 0x3ff) << 13)
                                                   : (float)mpsim_decode(mpsim_format_find("fp16"), u & 0xffff);
    if (u % 37 == 0)
        return f32_of_bits(specials[u / 37 % (sizeof specials / sizeof *specials)]);
    return u % 2 ? f32_of_bits((uint32_t)(code >> 32))
                 : (float)ldexp((double)(int32_t)(code >> 32), -26 - (int)(u % 8));
}

/* Few NaNs: rows without one are what is compared then. */
static void draw(float *to, size_t n, const char *math, int all, int tame, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = number(math, all ? i : test_random(seed));
        if (tame && !(fabsf(to[i]) < 60) && test_random(seed) % 2048)
            to[i] = (float)(i % 7) - 3;
    }
}

/* Stretches of one NaN, of several, of infinities, of subnormal numbers, of numbers whose products are subnormal, alone
 * or among others. */
static void draw_special(float *to, size_t n, uint64_t *seed)
{
    static const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7ff00000, 0xff812345, 0x7f800001, 0xffffffff};
    enum { STRETCH = 1500 };
    for (size_t i = 0; i < n; i++) {
        const uint64_t w = test_random(seed);
        const uint32_t sign = (uint32_t)(w & 0x80000000u), m = (uint32_t)(w >> 40) & 0x7fffff;
        const size_t kind = i / STRETCH % 7, same = i / STRETCH % 6;
        const uint32_t special = kind == 0   ? nans[same]
                                 : kind == 1 ? nans[w >> 33 & 3]
                                 : kind == 2 ? sign | 0x7f800000
                                 : kind == 3 ? sign | m
                                 : kind == 4 ? sign | m >> (w & 15)
                                 : kind == 5 ? sign | ((uint32_t)(w >> 34 & 31) + 48) << 23 | m
                                             : sign | ((uint32_t)(w >> 34 & 31) + 223) << 23 | m;
        const int among = i / STRETCH % 4 == 3 && w >> 60;
        to[i] = among ? (float)(i % 7) - 3 : f32_of_bits(special);
    }
}

/* ---- comparisons ---- */

static void run(problem *p, size_t operation, float (*to)[2 * N])
{
    for (size_t k = 0; k < RESULTS; k++) {
        p->y[k] = to[k];
        p->n[k] = 0;
    }
    operations[operation].run(p);
}

static void compare(const problem *p, const char *what, const char *math, const char *out)
{
    for (size_t k = 0; k < RESULTS; k++)
        for (size_t i = 0; memcmp(got[k], want[k], p->n[k] * sizeof(float)) != 0 && i < p->n[k]; i++)
            ck_assert_msg(bits_of_f32(got[k][i]) == bits_of_f32(want[k][i]),
                          "%s, %s of kind %u, math %s, out %s: %zu of result %zu is %08x, not %08x", mpsim_isa_active(),
                          what, p->kind, math ? math : "NULL", out ? out : "NULL", i, k, bits_of_f32(got[k][i]),
                          bits_of_f32(want[k][i]));
}

/* One operation under every instruction set. How many numbers were looked at. */
static size_t check(size_t operation, unsigned kind, const char *math, uint64_t *seed)
{
    const char *const out = outs[test_random(seed) % OUTS];
    const unsigned variant = (unsigned)test_random(seed) % 12;
    problem p = {.math = format(math), .f = format(out), .kind = kind, .variant = variant};
    size_t looked = 0;
    p.x = operands[variant % 3].x;
    p.v = operands[variant % 3].v;
    p.dy = operands[variant % 3].dy;
    ck_assert_int_eq(mpsim_isa_use("scalar"), MPSIM_OK);
    run(&p, operation, want);
    for (int i = 0; i < test_isa_count(); i++)
        if (strcmp(mpsim_isa_at((size_t)i), "scalar") != 0 && test_isa_use((size_t)i)) {
            run(&p, operation, got);
            compare(&p, operations[operation].name, math, out);
            looked += p.n[0];
        }
    return looked;
}

CASE("kernels", 60);

/* Every operation with one format. */
TESTS(test_kernels, MATHS)
{
    const char *const math = maths[_i];
    uint64_t seed = test_seed() + (uint64_t)_i;
    for (size_t i = 0; i < N; i++)
        mask[i] = test_random(&seed) % 4 != 0;
    for (int tame = 0; tame < 2; tame++) {
        draw(operands[tame].x, N, math, 1, tame, &seed);
        draw(operands[tame].v, N, math, 0, tame, &seed);
        draw(operands[tame].dy, N + CODES, tame ? math : NULL, 0, tame, &seed);
    }
    draw_special(operands[2].x, N, &seed);
    draw_special(operands[2].v, N, &seed);
    draw_special(operands[2].dy, N + CODES, &seed);
    size_t looked = 0;
    for (size_t o = 0; o < OPERATIONS; o++)
        for (unsigned kind = 0; kind < operations[o].kinds; kind++)
            for (size_t k = 0; k < test_scaled(5) && (_i < 3 || test_in_whole_part(o + kind + (uint64_t)_i, 5)); k++)
                looked += check(o, kind, math, &seed);
    mpsim_isa_use(mpsim_isa_at(0));
    printf("# %s: %zu numbers\n", math ? math : "binary32", looked);
}

TEST_MAIN("layer-kernels");
