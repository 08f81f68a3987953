/* t-judge-tolerance.c -- mpsim_judge_tolerance_of: no result of a row errs by more, and some result by more than half of it. */
#include "support/support.h"

#include <mpsim/arith.h>
#include <mpsim/block.h>
#include <mpsim/judge.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

static mpsim_judge_tolerance tolerance_of(const char *row, size_t depth)
{
    mpsim_judge_tolerance t;
    char why[256] = "";
    ck_assert_msg(mpsim_judge_tolerance_of(&t, row, NULL, NULL, depth, why, sizeof why) == MPSIM_OK, "%s: %s", row,
                  why);
    ck_assert(t.reason[0] && t.of[0] && strlen(t.reason) < sizeof t.reason - 1);
    return t;
}

static mpsim_judge_set set_of(const char *row)
{
    mpsim_judge_set set;
    ck_assert(mpsim_judge_inputs(&set, row, NULL, NULL, NULL, 0) == MPSIM_OK);
    return set;
}

CASE("tolerances", 20);

static const struct {
    const char *row, *format;
    mpsim_round_mode mode;
    int flush;
} casts[] = {
    {"e4m3", "e4m3", MPSIM_ROUND_NEAREST_EVEN, 0}, {"e5m2:toward-zero", "e5m2", MPSIM_ROUND_TOWARD_ZERO, 0},
    {"bf16", "bf16", MPSIM_ROUND_NEAREST_EVEN, 0}, {"fp16:up", "fp16", MPSIM_ROUND_UP, 0},
    {"e2m1", "e2m1", MPSIM_ROUND_NEAREST_EVEN, 0}, {"e4m3:flush-subnormals", "e4m3", MPSIM_ROUND_NEAREST_EVEN, 1},
    {"fp16:to-odd", "fp16", MPSIM_ROUND_TO_ODD, 0}};

TESTS(numbers_are_within, sizeof casts / sizeof casts[0])
{
    const mpsim_judge_tolerance t = tolerance_of(casts[_i].row, 0);
    const mpsim_format *f = mpsim_format_find(casts[_i].format);
    mpsim_judge_set set = set_of(casts[_i].row);
    mpsim_rounding r;
    double worst = 0;
    mpsim_rounding_init(&r, casts[_i].mode);
    r.flush_output = (uint8_t)casts[_i].flush;
    for (size_t i = 0; i < set.array[0].columns; i++) {
        const double x = mpsim_decode(set.array[0].format, code_load((const char *)set.array[0].codes + 4 * i, 4));
        const double y = mpsim_decode(f, mpsim_encode_f64(f, &r, x, 0, NULL));
        if (!(fabs(x) <= mpsim_format_max(f)))
            continue;
        const double share = fabs(y - x) / (t.relative * fabs(x) + t.absolute);
        ck_assert_msg(share <= 1, "%s: %a becomes %a", casts[_i].row, x, y);
        worst = share > worst ? share : worst;
    }
    ck_assert_msg(worst >= 0.5, "%s: %g", casts[_i].row, worst);
    mpsim_judge_set_clear(&set);
}

static const char *const recipes[] = {"mxfp8-floor",    "mxfp8-rceil",    "mxfp8-even", "mxfp8-ceil",
                                      "mxfp4",          "mxfp6-e3m2",     "nvfp4",      "te-current",
                                      "te-block-1x128", "deepseek-1x128", "microx-e4m3"};

TESTS(blocks_are_within, sizeof recipes / sizeof recipes[0])
{
    const mpsim_judge_tolerance t = tolerance_of(recipes[_i], 0);
    const mpsim_block_recipe *b = mpsim_block_find(recipes[_i]);
    mpsim_judge_set set = set_of(recipes[_i]);
    const size_t rows = set.array[0].rows, columns = set.array[0].columns, n = rows * columns;
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y), *factors = malloc(n * sizeof *factors),
          *amax = malloc(n * sizeof *amax), tensor;
    uint8_t *scales = malloc(n);
    size_t down, across;
    double worst = 0, worst_scaled = 0;
    memcpy(x, set.array[0].codes, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = isfinite(x[i]) ? x[i] : 0; /* a block with a NaN has no bound */
    const mpsim_blocks out = {.values = y, .inverses = factors, .amax = amax, .scale_codes = scales};
    ck_assert(mpsim_block_quantize(b, x, rows, columns, -1, 1, NULL, &out, &tensor) == MPSIM_OK);
    mpsim_block_grid(b, rows, columns, &down, &across);
    for (size_t i = 0; i < n; i++) {
        const size_t block = i / columns / ((rows + down - 1) / down) * across +
                             i % columns / ((columns + across - 1) / across);
        if (!(amax[block] > 0x1p-60f && amax[block] < 0x1p60f) || (tensor != 1 && scales[block] < 8))
            continue;
        const double error = fabs((double)y[i] - (double)x[i]), largest = (double)amax[block],
                     factor = (double)factors[block];
        const double share = error / (t.relative * largest), scaled = error / (t.scales * factor);
        ck_assert_msg(share <= 1 && scaled <= 1, "%s: %a becomes %a, amax %a, scale %a", recipes[_i], (double)x[i],
                      (double)y[i], largest, factor);
        worst = share > worst ? share : worst;
        worst_scaled = scaled > worst_scaled ? scaled : worst_scaled;
    }
    ck_assert_msg(worst >= 0.5 && worst_scaled >= 0.5, "%s: %g, %g in units of the scale", recipes[_i], worst,
                  worst_scaled);
    free(x);
    free(y);
    free(factors);
    free(amax);
    free(scales);
    mpsim_judge_set_clear(&set);
}

/* ---- products: one large product, and small ones that just do not reach it; and random ones ---- */

enum { DEPTH = 1000 };

static const struct {
    const char *row, *operands;
    double large, a, b; /* factors of the large product, and of the others: b is the number below it */
    size_t small;
} products[] = {
    {"fma", "binary32", 1, 0x1p-12, 0x1p-12, DEPTH - 1},
    {"sequential", "bf16", 1, 0x1p-12, 0x1p-12, DEPTH - 1},
    {"fma:bf16", "bf16", 1, 0x1p-4, 0x1p-4, 60},
    {"exact", "bf16", 1, 0x1p-12, 0x1p-12, 1},
    {"ampere-bf16-fp32", "bf16", 1, 0x1p-12, 0x1p-12, DEPTH - 1},
    {"hopper-bf16-fp32", "bf16", 1, 0x1p-12, 0x1p-13, DEPTH - 1},
    {"volta-fp16-fp32", "fp16", 1, 0x1p-11, 0x1p-12, DEPTH - 1},
    {"hopper-wgmma-fp8-fp32", "e4m3", 16, 0x1p-2, 0x1p-3, 200},
    {"fma:chunk=64", "binary32", 1, 0x1p-12, 0x1p-12, 63},
};

static double error_of(const mpsim_model *m, const mpsim_format *f, const uint64_t *a, const uint64_t *b, size_t n,
                       double *magnitudes)
{
    unsigned char x[DEPTH * 8], y[DEPTH * 8];
    uint64_t d = 0;
    double sum = 0;
    *magnitudes = 0;
    for (size_t k = 0; k < n; k++) {
        const double product = mpsim_decode(f, a[k]) * mpsim_decode(f, b[k]);
        code_store(x + k * mpsim_format_code_bytes(f), mpsim_format_code_bytes(f), a[k]);
        code_store(y + k * mpsim_format_code_bytes(f), mpsim_format_code_bytes(f), b[k]);
        sum += product;
        *magnitudes += fabs(product);
    }
    ck_assert(mpsim_dot(m, f, x, f, y, n, 0, NULL, &d) == MPSIM_OK);
    return fabs(mpsim_decode(&m->result.format, d) - sum);
}

TESTS(sums_are_within, sizeof products / sizeof products[0])
{
    static uint64_t a[DEPTH], b[DEPTH];
    const mpsim_format *f = mpsim_format_find(products[_i].operands);
    const size_t n = products[_i].small + 1;
    const mpsim_judge_tolerance t = tolerance_of(products[_i].row, n);
    mpsim_rounding r;
    mpsim_model m;
    double magnitudes;
    uint64_t state = 3;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert(mpsim_model_parse(&m, products[_i].row) == MPSIM_OK);
    for (size_t k = 0; k < n; k++) {
        a[k] = mpsim_encode_f64(f, &r, k ? products[_i].a : products[_i].large, 0, NULL);
        b[k] = k ? mpsim_encode_f64(f, &r, products[_i].b, 0, NULL) - 1 : a[0];
    }
    const double worst = error_of(&m, f, a, b, n, &magnitudes), most = t.relative * magnitudes + t.absolute;
    ck_assert_msg(worst <= most && worst >= most / 2, "%s: %g of %g", products[_i].row, worst, most);
    for (int i = 0; i < 100; i++) {
        for (size_t k = 0; k < n; k++) {
            double x[2];
            test_normal_pair(&state, x);
            a[k] = mpsim_encode_f64(f, &r, ldexp(x[0], (int)(k * (size_t)i % 5)), 0, NULL);
            b[k] = mpsim_encode_f64(f, &r, x[1], 0, NULL);
        }
        const double error = error_of(&m, f, a, b, n, &magnitudes);
        ck_assert_msg(error <= t.relative * magnitudes + t.absolute, "%s: %g of %g", products[_i].row, error,
                      t.relative * magnitudes);
    }
}

/* ---- arithmetic: results are those of this machine, or cut here ---- */

static float cut(double exact)
{
    const float y = (float)exact;
    return fabs((double)y) > fabs(exact) ? nextafterf(y, 0) : y;
}

static float add(float a, float b, float c)
{
    return c == c || 1 ? a + b : 0;
}
static float cut_product(float a, float b, float c)
{
    return c == c || 1 ? cut((double)a * (double)b) : 0;
}
static float flushed_product(float a, float b, float c)
{
    const float y = a * b;
    return (c == c || 1) && fabsf(y) >= 0x1p-126f ? y : copysignf(0, y);
}
static float by_reciprocal(float a, float b, float c)
{
    const volatile float r = 1 / b;
    return c == c || 1 ? a * r : 0;
}
static float root(float a, float b, float c)
{
    return (b == b && c == c) || 1 ? sqrtf(a) : 0;
}
static float separate(float a, float b, float c)
{
    const volatile float p = a * b;
    return p + c;
}

static double exact_of(mpsim_op op, double a, double b, double c)
{
    return op == MPSIM_OP_ADD   ? a + b
           : op == MPSIM_OP_MUL ? a * b
           : op == MPSIM_OP_DIV ? a / b
           : op == MPSIM_OP_FMA ? fma(a, b, c)
                                : sqrt(a);
}

static const struct {
    const char *row;
    float (*of)(float a, float b, float c);
    mpsim_op op;
} operations[] = {{"add", add, MPSIM_OP_ADD},
                  {"mul:toward-zero", cut_product, MPSIM_OP_MUL},
                  {"mul:flush-results", flushed_product, MPSIM_OP_MUL},
                  {"div:reciprocal", by_reciprocal, MPSIM_OP_DIV},
                  {"sqrt", root, MPSIM_OP_SQRT},
                  {"fma:separate", separate, MPSIM_OP_FMA},
                  {"arith:fma", fmaf, MPSIM_OP_FMA}};

static int takes(float x)
{
    return x == 0 || isnormal(x);
}

TESTS(arithmetic_is_within, sizeof operations / sizeof operations[0])
{
    if (!test_in_whole_part((uint64_t)_i, 7))
        return; /* the sets are compared with all rows: one a day */
    const mpsim_judge_tolerance t = tolerance_of(operations[_i].row, 0);
    mpsim_judge_set set = set_of(operations[_i].row);
    const float *a = set.array[0].codes, *b = set.arrays > 1 ? set.array[1].codes : a,
                *c = set.arrays > 2 ? set.array[2].codes : a;
    double worst = 0;
    for (size_t i = 0; i < set.array[0].columns; i++) {
        const double exact = exact_of(operations[_i].op, (double)a[i], (double)b[i], (double)c[i]);
        const float y = operations[_i].of(a[i], b[i], c[i]);
        const double size = operations[_i].of == separate ? fabs((double)a[i] * (double)b[i]) + fabs((double)c[i])
                                                          : fabs(exact);
        if (!takes(a[i]) || !takes(b[i]) || !takes(c[i]) || !isfinite(y) || !(fabs(exact) <= (double)FLT_MAX) ||
            (operations[_i].of == by_reciprocal && !(fabsf(b[i]) < 0x1p100f && fabsf(b[i]) > 0x1p-100f)))
            continue;
        const double share = fabs((double)y - exact) / (t.relative * size + t.absolute);
        ck_assert_msg(!(share > 1 + 0x1p-20), "%s: %a %a %a gives %a", operations[_i].row, (double)a[i], (double)b[i],
                      (double)c[i], (double)y);
        worst = share > worst ? share : worst;
    }
    ck_assert_msg(worst >= 0.5, "%s: %g", operations[_i].row, worst);
    mpsim_judge_set_clear(&set);
}

TEST(no_bound_and_bad_rows)
{
    mpsim_judge_tolerance t;
    char why[256];
    ck_assert(mpsim_judge_tolerance_of(&t, "cdna3-bf16-fp32", NULL, NULL, 64, why, sizeof why) == MPSIM_ERANGE &&
              strstr(why, "no bound"));
    ck_assert(mpsim_judge_tolerance_of(&t, "flash:tile=64", NULL, NULL, 64, why, sizeof why) == MPSIM_ERANGE &&
              strstr(why, "no bound"));
    ck_assert(mpsim_judge_tolerance_of(&t, "ms-amp", NULL, NULL, 0, why, sizeof why) == MPSIM_ERANGE);
    ck_assert(mpsim_judge_tolerance_of(&t, "nothing", NULL, NULL, 0, why, sizeof why) == MPSIM_ENOTFOUND);
    ck_assert(mpsim_judge_tolerance_of(&t, "cast", NULL, NULL, 0, why, sizeof why) == MPSIM_ENOTFOUND);
    ck_assert(mpsim_judge_tolerance_of(&t, "fma", NULL, NULL, 0, why, sizeof why) == MPSIM_EINVAL);
}

TEST_MAIN("judge-tolerance");
