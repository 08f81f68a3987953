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

static float x[N], v[N], dy[N], got[RESULTS][2 * N], want[RESULTS][2 * N];

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

static const struct {
    const char *name;
    void (*run)(problem *p);
    unsigned kinds, variants;
} operations[] = {
    {"activate", activate, MPSIM_EXP + 1, 1},
    {"activate_backward", activate_back, MPSIM_EXP + 1, 1},
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
static void draw(float *to, const char *math, int all, int tame, uint64_t *seed)
{
    for (size_t i = 0; i < N; i++) {
        to[i] = number(math, all ? i : test_random(seed));
        if (tame && !(fabsf(to[i]) < 60) && test_random(seed) % 2048)
            to[i] = (float)(i % 7) - 3;
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

/* Every operation with one format, under every instruction set. */
START_TEST(test_kernels)
{
    const char *const math = maths[_i];
    uint64_t seed = test_seed() + (uint64_t)_i;
    size_t looked = 0;
    for (size_t o = 0; o < OPERATIONS; o++)
        for (unsigned kind = 0; kind < operations[o].kinds; kind++)
            for (unsigned k = 0; k < operations[o].variants; k++) {
                const char *const out = outs[test_random(&seed) % OUTS];
                problem p = {
                    .math = format(math), .f = format(out), .x = x, .v = v, .dy = dy, .kind = kind, .variant = k};
                draw(x, math, 1, (int)k, &seed);
                draw(v, math, 0, (int)k, &seed);
                draw(dy, test_random(&seed) % 2 ? math : NULL, 0, (int)k, &seed);
                ck_assert_int_eq(mpsim_isa_use("scalar"), MPSIM_OK);
                run(&p, o, want);
                for (size_t i = 0; i < test_isa_count(); i++)
                    if (test_isa_use(i)) {
                        run(&p, o, got);
                        compare(&p, operations[o].name, math, out);
                        looked += p.n[0];
                    }
            }
    mpsim_isa_use(mpsim_isa_at(0));
    printf("# %s: %zu numbers\n", math ? math : "binary32", looked);
}
END_TEST

int main(void)
{
    test_seed();
    TCase *t = test_case("kernels", 60);
    tcase_add_loop_test(t, test_kernels, 0, MATHS);
    TCase *const cases[] = {t, NULL};
    return test_main("layer-kernels", cases);
}
