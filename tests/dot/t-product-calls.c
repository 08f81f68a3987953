/* t-product-calls.c -- calls of mpsim_product_run: operands that serve several products, batches on threads, arguments. */
#include "support/products.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/isa.h>
#include <mpsim/layer.h>
#include <mpsim/product.h>
#include <mpsim/recipe.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

static const mpsim_pool threads = {product_on_threads, NULL, NULL};

static mpsim_stack rows_of(float *x, size_t rows, size_t cols)
{
    return (mpsim_stack){.format = mpsim_format_find("binary32"),
                         .codes = x,
                         .rank = 2,
                         .shape = {rows, cols},
                         .strides = {(int64_t)cols, 1}};
}

static void fill(float *x, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        double two[2];
        test_normal_pair(seed, two);
        x[i] = (float)two[0];
    }
}

enum { ROWS = 19, COLS = 23, DEPTH = 48 };

CASE("product-calls", 60);

/* One operand in three products: as a, as b and turned; against operands that entered for each. */
TEST(operands_serve_several_products)
{
    uint64_t seed = test_seed() + 45;
    float x[ROWS * DEPTH], turned[DEPTH * ROWS], y[COLS * DEPTH], z[COLS * ROWS], d[DEPTH * COLS], e[DEPTH * COLS];
    mpsim_model m;
    fill(x, ROWS * DEPTH, &seed);
    fill(y, COLS * DEPTH, &seed);
    fill(z, COLS * ROWS, &seed);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < DEPTH; k++)
            turned[k * ROWS + i] = x[i * DEPTH + k];
    const mpsim_stack sx = rows_of(x, ROWS, DEPTH), st = rows_of(turned, DEPTH, ROWS), sz = rows_of(z, COLS, ROWS),
                      sd = rows_of(d, DEPTH, COLS), se = rows_of(e, DEPTH, COLS);
    const mpsim_entering one_scale = {.format = mpsim_format_find("bf16"), .recipe = mpsim_block_find("te-current")};
    const mpsim_entering plain = {.format = mpsim_format_find("e4m3")};
    float amax = 0;
    const mpsim_entry_stats stats = {.amax = &amax};
    mpsim_operand ox, ot, turn;
    mpsim_product p;
    ck_assert(mpsim_operand_enter(&ox, &sx, &one_scale, &stats, NULL) == MPSIM_OK);
    ck_assert(amax == (float)mpsim_decode(one_scale.format,
                                          product_code_of(one_scale.format, (double)mpsim_amax(x, ROWS * DEPTH))));
    ck_assert(mpsim_operand_turn(&turn, &ox) == MPSIM_OK);
    ck_assert(mpsim_operand_enter(&ot, &st, &one_scale, NULL, NULL) == MPSIM_OK);
    ck_assert(ot.inverse == ox.inverse);
    mpsim_operand oz;
    mpsim_operand_init(&oz, &sz, plain.format, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert(mpsim_model_parse(&m, "hopper-wgmma-fp8-fp32") == MPSIM_OK);
    mpsim_product_init(&p);
    p.model = &m;
    p.a = &turn;
    p.b = &oz;
    p.d = &sd;
    ck_assert(mpsim_product_run(&p, NULL) == MPSIM_OK);
    p.a = &ot;
    p.d = &se;
    ck_assert(mpsim_product_run(&p, &threads) == MPSIM_OK);
    ck_assert(memcmp(d, e, sizeof d) == 0);
    mpsim_operand_free(&ox);
    mpsim_operand_free(&ot);
    mpsim_operand_free(NULL);
}

/* The chains begin with a number; the words of stochastic models are mpsim_gemm's. */
TEST(equal_to_gemm)
{
    uint64_t seed = test_seed() + 46;
    static const char *const models[] = {"hopper-bf16-fp32", "fma", "sequential:acc=bf16:round=stochastic-c:8"};
    float x[ROWS * DEPTH], y[COLS * DEPTH], c[ROWS * COLS], d[2 * ROWS * COLS], e[ROWS * COLS];
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    fill(x, ROWS * DEPTH, &seed);
    fill(y, COLS * DEPTH, &seed);
    for (size_t i = 0; i < COUNT(models); i++) {
        mpsim_model m;
        mpsim_product p;
        mpsim_operand a, b;
        uint16_t cx[ROWS * DEPTH], cy[COLS * DEPTH];
        const mpsim_rng rng = {5, 6, 7};
        ck_assert(mpsim_model_parse(&m, models[i]) == MPSIM_OK);
        fill(c, ROWS * COLS, &seed);
        if (m.result.format.bits != 32)
            ck_assert(mpsim_round_array_f32(&m.result.format, &r, NULL, c, c, ROWS * COLS, NULL) == MPSIM_OK);
        ck_assert(mpsim_encode_array_f32(bf16, &r, NULL, cx, x, ROWS * DEPTH, NULL) == MPSIM_OK);
        ck_assert(mpsim_encode_array_f32(bf16, &r, NULL, cy, y, COLS * DEPTH, NULL) == MPSIM_OK);
        const mpsim_stack sx = rows_of(x, ROWS, DEPTH), sy = rows_of(y, COLS, DEPTH);
        mpsim_stack sc = rows_of(c, ROWS, COLS), sd = rows_of(d, ROWS, COLS);
        const mpsim_matrix ma = {bf16, cx, DEPTH, 0}, mb = {bf16, cy, DEPTH, 1}, mc = {&m.result.format, c, COLS, 0};
        if (m.result.format.bits != 32)
            continue;
        ck_assert(mpsim_gemm(&m, ROWS, COLS, DEPTH, &ma, &mb, &mc, e, COLS, &rng, NULL) == MPSIM_OK);
        mpsim_operand_init(&a, &sx, bf16, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_operand_init(&b, &sy, bf16, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_product_init(&p);
        p.model = &m;
        p.a = &a;
        p.b = &b;
        p.d = &sd;
        p.start = &sc;
        p.rng = &rng;
        ck_assert(mpsim_product_run(&p, &threads) == MPSIM_OK);
        ck_assert_msg(memcmp(d, e, sizeof e) == 0, "%s", models[i]);
        p.start = p.d = &sc; /* in place */
        ck_assert(mpsim_product_run(&p, &threads) == MPSIM_OK);
        ck_assert_msg(memcmp(c, e, sizeof e) == 0, "%s, in place", models[i]);
        for (size_t k = 0; k < ROWS * COLS; k++) /* turned, in columns */
            d[k] = NAN;
        sd.strides[0] = 1;
        sd.strides[1] = ROWS;
        p.start = NULL;
        p.d = &sd;
        ck_assert(mpsim_gemm(&m, ROWS, COLS, DEPTH, &ma, &mb, NULL, e, COLS, &rng, NULL) == MPSIM_OK);
        ck_assert(mpsim_product_run(&p, NULL) == MPSIM_OK);
        for (size_t k = 0; k < ROWS * COLS; k++)
            ck_assert(d[k % COLS * ROWS + k / COLS] == e[k]);
    }
}

/* ---- operands of several batches: however they lie, on any number of threads ---- */

enum { TALL = 310, BROAD = 217 };

typedef struct whole {
    uint8_t codes[TALL * BROAD];
    float values[TALL * BROAD], inverses[TALL * BROAD];
} whole;

static int same_floats(const float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bits_of_f32(x[i]) != bits_of_f32(y[i]) && !(isnan(x[i]) && isnan(y[i])))
            return 0;
    return 1;
}

static void check_entered(const mpsim_stack *x, const mpsim_entering *how, const whole *want, const mpsim_pool *pool,
                          const char *what)
{
    mpsim_entering other = *how;
    mpsim_operand o;
    other.use = MPSIM_BLOCKS_AS_NUMBERS;
    ck_assert_msg(mpsim_operand_enter(&o, x, &other, NULL, pool) == MPSIM_OK, "%s", what);
    ck_assert_msg(same_floats(o.stack.codes, want->values, TALL * BROAD), "%s: values", what);
    ck_assert(o.inverse == 1 && !o.factors && strcmp(o.format->name, "binary32") == 0);
    mpsim_operand_free(&o);
    if (how->recipe->block_rows || how->recipe->block_cols)
        return;
    ck_assert_msg(mpsim_operand_enter(&o, x, how, NULL, pool) == MPSIM_OK, "%s", what);
    ck_assert_msg(memcmp(o.stack.codes, want->codes, TALL * BROAD) == 0, "%s: codes", what);
    ck_assert_msg(same_floats(&o.inverse, want->inverses, 1), "%s: scale", what);
    mpsim_operand_free(&o);
}

/* What the recipe makes of the whole in one call. */
static void quantise_whole(const mpsim_block_recipe *b, const mpsim_entering *how, const float *x, whole *to)
{
    const mpsim_blocks out = {.codes = to->codes, .values = to->values, .inverses = to->inverses};
    ck_assert(mpsim_block_quantize(b, x, TALL, BROAD, -1, how->given, &how->rng, &out, NULL) == MPSIM_OK);
}

TEST(batches_and_tiles)
{
    static const char *const recipes[] = {
        "te-current", "te-current-pow2", "torchao-tensorwise", "ms-amp",           "mxfp8",
        "nvfp4",      "nvfp4-sr",        "nvfp4-torchao",      "te-block-128x128", "torchao-rowwise"};
    static whole want;
    static float x[TALL * BROAD], turned[TALL * BROAD], gaps[2 * TALL * BROAD];
    uint64_t seed = test_seed() + 47;
    for (size_t i = 0; i < COUNT(recipes) * 2; i++) {
        const int odd = (int)(i % 2); /* a NaN and an infinity */
        mpsim_entering how = {.recipe = mpsim_block_find(recipes[i / 2]), .given = 4, .rng = {3, 1, 5}};
        fill(x, TALL * BROAD, &seed);
        x[40 * BROAD + 7] = odd ? NAN : 300;
        x[250 * BROAD + 9] = odd ? INFINITY : -70;
        for (size_t k = 0; k < TALL * BROAD; k++) {
            turned[k % BROAD * TALL + k / BROAD] = x[k];
            gaps[2 * k] = x[k];
        }
        quantise_whole(how.recipe, &how, x, &want);
        mpsim_stack dense = rows_of(x, TALL, BROAD), across = rows_of(turned, TALL, BROAD),
                    apart = rows_of(gaps, TALL, BROAD);
        across.strides[0] = 1;
        across.strides[1] = TALL;
        apart.strides[0] = 2 * BROAD;
        apart.strides[1] = 2;
        for (int t = 0; t < 2; t++) {
            check_entered(&dense, &how, &want, t ? &threads : NULL, recipes[i / 2]);
            check_entered(&across, &how, &want, t ? &threads : NULL, recipes[i / 2]);
            check_entered(&apart, &how, &want, t ? &threads : NULL, recipes[i / 2]);
        }
    }
}

TEST(wrong_arguments)
{
    float x[64] = {0}, d[16] = {0};
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    mpsim_stack sx = rows_of(x, 4, 8), sd = rows_of(d, 4, 4), bad;
    mpsim_operand a, b, o;
    mpsim_product p;
    mpsim_model m, scaled;
    ck_assert(mpsim_model_parse(&m, "fma") == MPSIM_OK);
    ck_assert(mpsim_model_parse(&scaled, "blackwell-tcgen05-mxf8f6f4") == MPSIM_OK);
    mpsim_operand_init(&a, &sx, bf16, MPSIM_ROUND_NEAREST_EVEN);
    b = a;
    mpsim_product_init(&p);
    ck_assert(mpsim_product_run(NULL, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_product_run(&p, NULL) == MPSIM_EINVAL);
    p = (mpsim_product){.model = &m, .a = &a, .b = &b, .d = &sd, .factor = 1, .add_factor = 1};
    ck_assert(mpsim_product_run(&p, NULL) == MPSIM_OK);
#define REFUSED(status, change, back)                                      \
    change;                                                                \
    ck_assert_msg(mpsim_product_run(&p, NULL) == (status), "%s", #change); \
    back
    const mpsim_pool no_run = {NULL, NULL, NULL};
    ck_assert(mpsim_product_run(&p, &no_run) == MPSIM_EINVAL);
    REFUSED(MPSIM_EINVAL, p.model = NULL, p.model = &m);
    REFUSED(MPSIM_EINVAL, a.stack.rank = 1, a.stack.rank = 2);
    REFUSED(MPSIM_EINVAL, a.stack.rank = 9, a.stack.rank = 2);
    REFUSED(MPSIM_EINVAL, a.stack.shape[0] = 5, a.stack.shape[0] = 4);
    REFUSED(MPSIM_EINVAL, b.stack.shape[1] = 7, b.stack.shape[1] = 8);
    REFUSED(MPSIM_EINVAL, a.stack.codes = NULL, a.stack.codes = x);
    REFUSED(MPSIM_EINVAL, a.mode = MPSIM_ROUND_STOCHASTIC_A, a.mode = 0);
    REFUSED(MPSIM_EINVAL, sd.strides[0] = 0, sd.strides[0] = 4);
    REFUSED(MPSIM_EINVAL, sd.shape[1] = 3, sd.shape[1] = 4);
    REFUSED(MPSIM_EINVAL, a.factors = x, a.factors = NULL);
    bad = rows_of(d, 3, 4);
    REFUSED(MPSIM_EINVAL, p.bias = &bad, p.bias = NULL);
    REFUSED(MPSIM_EINVAL, p.add = &bad, p.add = NULL);
    bad.format = bf16;
    REFUSED(MPSIM_EINVAL, p.start = &bad, p.start = NULL);
    REFUSED(MPSIM_ERANGE, (sd.format = bf16, p.numbers = mpsim_format_find("fp16")),
            (sd.format = sx.format, p.numbers = NULL));
    for (size_t i = 0; i < 16; i++)
        ck_assert(d[i] == 0);
    mpsim_entering how = {.format = bf16};
    ck_assert(mpsim_operand_enter(NULL, &sx, &how, NULL, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_operand_enter(&o, NULL, &how, NULL, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_operand_enter(&o, &sx, NULL, NULL, NULL) == MPSIM_EINVAL);
    how.hadamard = 24;
    ck_assert(mpsim_operand_enter(&o, &sx, &how, NULL, NULL) == MPSIM_EINVAL);
    how.hadamard = 0;
    how.recipe = mpsim_block_find("te-block-1x128");
    how.use = MPSIM_BLOCKS_SCALED; /* scales that are binary32 */
    ck_assert(mpsim_operand_enter(&o, &sx, &how, NULL, NULL) == MPSIM_EINVAL);
    how.use = MPSIM_BLOCKS_AS_CODES;
    how.format = mpsim_format_find("binary64");
    ck_assert(mpsim_operand_enter(&o, &sx, &how, NULL, NULL) == MPSIM_ERANGE);
    how.format = bf16;
    ck_assert(mpsim_operand_enter(&o, &sx, &how, NULL, NULL) == MPSIM_OK);
    ck_assert(mpsim_operand_turn(&b, &o) == MPSIM_EINVAL);
    p.a = &o;
    ck_assert(mpsim_product_run(&p, NULL) == MPSIM_EINVAL); /* one with blocks, one without */
    p.b = &o;
    ck_assert(mpsim_product_run(&p, NULL) == MPSIM_OK);
    p.model = &scaled;
    ck_assert(mpsim_product_run(&p, NULL) == MPSIM_EINVAL); /* a model with scales, codes without */
    mpsim_operand_free(&o);
    sx.shape[0] = 0;
    sx.codes = NULL;
    ck_assert(mpsim_operand_enter(&o, &sx, &how, NULL, NULL) == MPSIM_OK);
    mpsim_operand_free(&o);
    ck_assert(mpsim_product_of(NULL, &sx, &how, &sx, &how, NULL) == MPSIM_EINVAL);
}

/* Matrices without columns have rows that are 0 elements apart. */
TEST(bug_20261127_results_without_elements)
{
    float x[32] = {0};
    mpsim_stack sx = rows_of(x, 4, 8), empty = rows_of(x, 0, 8), d = rows_of(x, 4, 0);
    mpsim_operand a, b;
    mpsim_product p;
    mpsim_model m;
    ck_assert(mpsim_model_parse(&m, "fma") == MPSIM_OK);
    mpsim_operand_init(&a, &sx, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&b, &empty, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_product_init(&p);
    p.model = &m;
    p.a = &a;
    p.b = &b;
    p.d = &d;
    ck_assert(d.strides[0] == 0 && mpsim_product_run(&p, NULL) == MPSIM_OK);
}

TEST_MAIN("product-calls");
