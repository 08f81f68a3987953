/* t-engine-products.c -- products and quantisation of the CPU engine against loops that
 * say the same in the words of lib/include/train/engine.h, one element after the other. */
#include "support/trainengine.h"

#include <math.h>

/* ---- products ---- */

static float at(const train_tensor *x, const float *v, int transposed, size_t i, size_t j)
{
    return transposed ? v[j * x->cols + i] : v[i * x->cols + j];
}

/* One element's sum: fmaf where the model is that, else the library's dot product of its codes. */
static float chain(const train_gemm *g, const float *a, const float *b, size_t i, size_t j, size_t depth)
{
    unsigned char ca[4 * 64], cb[4 * 64];
    const mpsim_format *fa = g->a->format, *fb = g->b->format;
    const size_t na = mpsim_format_code_bytes(fa), nb = mpsim_format_code_bytes(fb);
    mpsim_rounding r;
    uint64_t d = 0;
    float s = 0;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t k = 0; k < depth; k++) {
        const float x = at(g->a, a, g->a_transposed, i, k), y = at(g->b, b, g->b_transposed, k, j);
        s = fmaf(x, y, s);
        code_store(ca + k * na, na, mpsim_encode_f32(fa, &r, x, 0, NULL));
        code_store(cb + k * nb, nb, mpsim_encode_f32(fb, &r, y, 0, NULL));
    }
    if (g->model->addition == MPSIM_ADDITION_FMA)
        return s;
    ck_assert(mpsim_dot(g->model, fa, ca, fb, cb, depth, 0, NULL, &d) == MPSIM_OK);
    return f32_of_bits((uint32_t)d);
}

static void check_gemm(const train_gemm *g, const mpsim_format *out, size_t rows, size_t columns, size_t depth)
{
    static float want[MOST];
    train_counts got = {0, 0, 0, 0}, expected = {0, 0, 0, 0};
    train_tensor d = make(out, rows, columns, NULL);
    const float *a = get(g->a), *b = get(g->b), *bias = g->bias ? get(g->bias) : NULL;
    const size_t deep = g->depth_limit && g->depth_limit < depth ? g->depth_limit : depth;
    const float factor = g->a->inverse * g->b->inverse;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            float s = chain(g, a, b, i, j, deep);
            if (g->a->inverse != 1 || g->b->inverse != 1)
                s = s * factor;
            if (bias)
                s = s + bias[j];
            want[i * columns + j] = rounded(out, s, &expected);
        }
    d.inverse = 5;
    OK(ops->gemm(&engine, &d, g, &got));
    ck_assert(d.inverse == 1);
    engine_same(g->model->name, get(&d), want, rows * columns);
    same_counts(g->model->name, &got, &expected);
    drop(&d);
}

static const struct product {
    const char *model, *a, *b, *out;
} products[] = {
    {"fma", "binary32", "binary32", "binary32"}, {"fma", "fp16", "bf16", "fp16"},
    {"sequential", "bf16", "bf16", "bf16"},      {"exact", "fp16", "fp16", "fp16"},
    {"hopper", "fp16", "fp16", "fp16"},          {"hopper", "bf16", "bf16", "binary32"},
    {"hopper", "e4m3", "e4m3", "bf16"},          {"hopper", "e5m2", "e4m3", "fp16"},
};

START_TEST(test_gemm)
{
    const struct product *p = &products[_i];
    const mpsim_format *fa = format(p->a), *fb = format(p->b), *out = format(p->out);
    mpsim_model m;
    if (strcmp(p->model, "hopper") == 0)
        ck_assert(mpsim_model_for(&m, p->model, fa, fb, format("binary32")) == MPSIM_OK);
    else
        ck_assert(mpsim_model_parse(&m, p->model) == MPSIM_OK);
    for (unsigned form = 0; form < 32; form++) {
        const size_t rows = 1 + form % 7, columns = 9 - form % 5, depth = form & 16 ? 40 : 33;
        const int at_ = form & 1, bt = form >> 1 & 1;
        train_tensor a = any(p->a, at_ ? depth : rows, at_ ? rows : depth, form >= 28);
        train_tensor b = any(p->b, bt ? columns : depth, bt ? depth : columns, form >= 28);
        train_tensor bias = any(p->out, 1, columns, 0);
        a.inverse = form & 8 ? 0x1.234p-3f : 1;
        b.inverse = form % 3 ? 0x1.8p14f : 1;
        const train_gemm g = {.model = &m,
                              .a = &a,
                              .b = &b,
                              .a_transposed = at_,
                              .b_transposed = bt,
                              .bias = form & 4 ? &bias : NULL,
                              .depth_limit = form % 3 == 0 ? 0 : form};
        check_gemm(&g, out, rows, columns, depth);
        drop(&a);
        drop(&b);
        drop(&bias);
    }
}

/* Each of a list as if it were alone. */
START_TEST(test_gemm_list)
{
    mpsim_model m;
    train_tensor a = any("fp16", 9, 33, 0), b = any("fp16", 9, 33, 0), d[2], alone[2];
    train_counts got = {0, 0, 0, 0}, expected = got;
    ck_assert(mpsim_model_for(&m, "hopper", format("fp16"), format("fp16"), format("binary32")) == MPSIM_OK);
    const train_gemm g[2] = {{.model = &m, .a = &a, .b = &b, .b_transposed = 1},
                             {.model = &m, .a = &a, .b = &b, .a_transposed = 1}};
    for (int i = 0; i < 2; i++) {
        d[i] = make(format("bf16"), i ? 33 : 9, i ? 33 : 9, NULL);
        alone[i] = make(format("bf16"), i ? 33 : 9, i ? 33 : 9, NULL);
        OK(ops->gemm(&engine, &alone[i], &g[i], &expected));
    }
    const train_multiply list[2] = {{&d[0], &g[0], &got}, {&d[1], &g[1], &got}};
    OK(ops->gemm_list(&engine, list, 2));
    same_counts("of both", &got, &expected);
    for (int i = 0; i < 2; i++) {
        static float want[1089];
        memcpy(want, get(&alone[i]), (i ? 1089 : 81) * sizeof *want);
        engine_same("of a list", get(&d[i]), want, i ? 1089 : 81);
        drop(&d[i]);
        drop(&alone[i]);
    }
    drop(&a);
    drop(&b);
}

static size_t tasks;

static void backwards(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    (void)self;
    tasks += n;
    while (n-- > 0)
        task(n, job);
}

/* Large products are done on the threads of the caller: 60 x 60 x 600 is one. */
START_TEST(test_pool)
{
    const mpsim_pool pool = {.run = backwards};
    train_tensor a = any("fp16", 60, 600, 0), b = any("fp16", 60, 600, 0);
    train_tensor d = make(format("binary32"), 60, 60, NULL);
    mpsim_model m;
    ck_assert(mpsim_model_for(&m, "hopper", format("fp16"), format("fp16"), format("binary32")) == MPSIM_OK);
    const train_gemm g = {.model = &m, .a = &a, .b = &b, .b_transposed = 1};
    OK(ops->gemm(&engine, &d, &g, NULL));
    const float *alone = get(&d);
    tasks = 0;
    engine.pool = &pool;
    OK(ops->gemm(&engine, &d, &g, NULL));
    ck_assert_uint_gt(tasks, 1);
    engine_same("threads", get(&d), alone, 3600);
    drop(&a);
    drop(&b);
    drop(&d);
}

/* ---- quantising ---- */

/* One scale for all: FP8 codes of x * scale, saturated; counts against x. */
START_TEST(test_quantize_tensor)
{
    const char *const recipe_names[] = {"te-current", "te-current-e5m2"};
    mpsim_block_recipe recipe = *mpsim_block_find(recipe_names[_i % 2]);
    const mpsim_format *f = format(recipe.element);
    const int given = _i & 2, turned = _i & 4;
    const size_t rows = 20, cols = 30;
    static float values[600], want[600];
    train_counts got = {0, 0, 0, 0}, expected = {0, 0, 0, 0};
    mpsim_rounding r;
    float amax = 0, seen = -1;
    fill(format("bf16"), values, 600, 3, 40, 0);
    values[100] = _i & 8 ? NAN : 0.0f; /* dropped by amax, stays in its element */
    for (size_t i = 0; i < 600; i++)
        amax = fabsf(values[i]) > amax ? fabsf(values[i]) : amax;
    if (given)
        recipe.rule = MPSIM_SCALE_GIVEN;
    const float scale = given ? (float)mpsim_format_max(f) : (float)mpsim_format_max(f) / amax;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    for (size_t i = 0; i < 600; i++) {
        const size_t to = turned ? i % cols * rows + i / cols : i;
        const float x = values[i] * scale;
        unsigned flags;
        want[to] = (float)mpsim_decode(f, mpsim_encode_f32(f, &r, x, 0, &flags));
        expected.nonzero += isfinite(values[i]) && values[i] != 0;
        expected.lost += isfinite(values[i]) && values[i] != 0 && want[to] == 0;
        expected.overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
        expected.nonfinite += isfinite(want[to]) ? 0 : 1;
    }
    train_tensor x = make(format("bf16"), rows, cols, values);
    train_tensor y = make(f, turned ? cols : rows, turned ? rows : cols, NULL);
    const train_quantize q = {.recipe = &recipe, .transposed = turned != 0, .given = scale};
    OK(ops->quantize(&engine, &y, &x, &q, &seen, &got));
    engine_same(recipe.name, get(&y), want, 600);
    same_counts(recipe.name, &got, &expected);
    ck_assert(seen == amax);
    ck_assert(y.inverse == 1 / scale);
    ck_assert(!given || got.overflow > 0);
    OK(ops->quantize(&engine, &y, &x, &q, NULL, NULL));
    ck_assert(expected.lost > 0);
    drop(&x);
    drop(&y);
}

static const char *const block_names[] = {"mxfp8", "te-block-1x128", "te-block-128x128",
                                          "nvfp4", "nvfp4-sr",       "torchao-rowwise"};

/* Blocks multiplied with their scales: mpsim_dot_scaled of what the recipe gives, times the scales of the tensors. */
static const struct scaled_product {
    const char *a, *b, *arch;
} scaled_products[] = {{"mxfp8", "mxfp8", "rtx-blackwell"},  {"mxfp8", "mxfp8-e5m2", "blackwell"},
                       {"mxfp6-e3m2", "mxfp8", "blackwell"}, {"mxfp4", "mxfp4", "rtx-blackwell"},
                       {"nvfp4", "nvfp4", "rtx-blackwell"},  {"nvfp4", "nvfp4-2d", "blackwell"}};

typedef struct codes {
    uint8_t code[MOST / 8], scales[MOST / 8];
    float tensor_scale;
    size_t each; /* scales of a row of blocks */
} codes;

static void make_scaled(train_tensor *y, train_tensor *blocks, codes *c, const mpsim_block_recipe *r, size_t rows,
                        size_t cols, const float *x)
{
    size_t grid_rows, grid_cols;
    mpsim_block_grid(r, rows, cols, &grid_rows, &grid_cols);
    *y = make(format(r->element), rows, cols, NULL);
    *blocks = make(format("binary32"), grid_rows, grid_cols, NULL);
    train_tensor from = make(format("binary32"), rows, cols, x);
    const train_quantize q = {.recipe = r, .given = 1, .blocks = blocks, .scale_codes = 1};
    OK(ops->quantize(&engine, y, &from, &q, NULL, NULL));
    const mpsim_blocks out = {.codes = c->code, .scale_codes = c->scales};
    ck_assert(mpsim_block_quantize(r, x, rows, cols, -1, 1, NULL, &out, &c->tensor_scale) == MPSIM_OK);
    c->each = grid_cols;
    drop(&from);
}

START_TEST(test_gemm_scaled)
{
    enum { ROWS = 19, COLUMNS = 37, DEPTH = 96 };
    static float x[ROWS * DEPTH], w[COLUMNS * DEPTH], want[ROWS * COLUMNS];
    static codes ca, cb;
    const struct scaled_product *p = &scaled_products[_i];
    const mpsim_block_recipe *ra = mpsim_block_find(p->a), *rb = mpsim_block_find(p->b);
    const mpsim_format *fa = format(ra->element), *fb = format(rb->element), *scales = mpsim_block_scale_format(ra);
    mpsim_model m;
    ck_assert(mpsim_model_for_blocks(&m, p->arch, fa, fb, ra->block_cols, scales) == MPSIM_OK);
    for (int kind = 0; kind < 3; kind++) {
        train_tensor a, b, sa, sb, d = make(format("binary32"), ROWS, COLUMNS, NULL);
        fill(format("bf16"), x, ROWS * DEPTH, kind * 3, 8 + 10 * kind, 0);
        fill(format("bf16"), w, COLUMNS * DEPTH, -kind, 4 + 12 * kind, 0);
        make_scaled(&a, &sa, &ca, ra, ROWS, DEPTH, x);
        make_scaled(&b, &sb, &cb, rb, COLUMNS, DEPTH, w);
        const size_t rows_a = ra->block_rows ? ra->block_rows : ROWS,
                     rows_b = rb->block_rows ? rb->block_rows : COLUMNS;
        train_gemm g = {.model = &m,
                        .a = &a,
                        .b = &b,
                        .b_transposed = 1,
                        .a_blocks = &sa,
                        .b_blocks = &sb,
                        .a_rows = rows_a,
                        .b_rows = rows_b,
                        .promote = ra->block_cols};
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < COLUMNS; j++) {
                const mpsim_scales ya = {scales, ca.scales + i / rows_a * ca.each, 0};
                const mpsim_scales yb = {scales, cb.scales + j / rows_b * cb.each, 0};
                uint64_t code;
                ck_assert(mpsim_dot_scaled(&m, fa, ca.code + i * DEPTH, &ya, fb, cb.code + j * DEPTH, &yb, DEPTH, 0,
                                           NULL, &code) == MPSIM_OK);
                const float s = f32_of_bits((uint32_t)code);
                want[i * COLUMNS + j] = ca.tensor_scale != 1 || cb.tensor_scale != 1
                                            ? s * (ca.tensor_scale * cb.tensor_scale)
                                            : s;
            }
        OK(ops->gemm(&engine, &d, &g, NULL));
        engine_same(m.name, get(&d), want, ROWS * COLUMNS);
        g.promote *= 2;
        FAILS(ops->gemm(&engine, &d, &g, NULL), "blocks");
        g.a_blocks = g.b_blocks = NULL;
        FAILS(ops->gemm(&engine, &d, &g, NULL), "needs the scales of its blocks");
        drop(&a);
        drop(&b);
        drop(&sa);
        drop(&sb);
        drop(&d);
    }
}

START_TEST(test_quantize_blocks)
{
    const mpsim_block_recipe *recipe = mpsim_block_find(block_names[_i / 2]);
    const int turned = _i % 2;
    const size_t rows = 20, cols = 64, n = rows * cols;
    static float values[1280], turn[1280], plain[1280], want[1280];
    const mpsim_rng rng = {.seed = 7, .stream = 8, .index = 9};
    train_counts got = {0, 0, 0, 0};
    fill(format("bf16"), values, n, 3, 12, 0);
    for (size_t i = 0; i < n; i++)
        turn[turned ? i % cols * rows + i / cols : i] = values[i];
    const mpsim_blocks out = {.values = plain};
    ck_assert(mpsim_block_quantize(recipe, turn, turned ? cols : rows, turned ? rows : cols, -1, 0, &rng, &out, NULL) ==
              MPSIM_OK);
    for (size_t i = 0; i < n; i++)
        want[i] = rounded(format("bf16"), plain[i], NULL);
    train_tensor x = make(format("bf16"), rows, cols, values);
    train_tensor y = make(format("bf16"), turned ? cols : rows, turned ? rows : cols, NULL);
    const train_quantize q = {.recipe = recipe, .transposed = turned, .rng = rng};
    OK(ops->quantize(&engine, &y, &x, &q, NULL, &got));
    engine_same(recipe->name, get(&y), want, n);
    ck_assert(y.inverse == 1);
    ck_assert_uint_eq(got.nonzero, n);
    uint64_t lost = 0;
    for (size_t i = 0; i < n; i++)
        lost += plain[i] == 0;
    ck_assert_uint_eq(got.lost, lost);
    drop(&x);
    drop(&y);
}

/* Each of a list as if it were alone. */
START_TEST(test_quantize_list)
{
    const mpsim_block_recipe *recipe = mpsim_block_find("mxfp8");
    train_quantize how[2] = {{.recipe = recipe}, {.recipe = recipe, .transposed = 1}};
    train_quantized list[2];
    train_tensor y[2], alone[2];
    train_counts got = {0, 0, 0, 0}, expected = got;
    float values[600], amax[2] = {0, 0}, most = 0;
    fill(format("bf16"), values, 600, 11, 12, 0);
    train_tensor x = make(format("bf16"), 20, 30, values);
    for (int i = 0; i < 2; i++) {
        y[i] = make(format("bf16"), i ? 30 : 20, i ? 20 : 30, NULL);
        alone[i] = make(format("bf16"), i ? 30 : 20, i ? 20 : 30, NULL);
        list[i] = (train_quantized){&y[i], &x, &how[i], &amax[i], &got};
        OK(ops->quantize(&engine, &alone[i], &x, &how[i], &most, &expected));
    }
    OK(ops->quantize_list(&engine, list, 2));
    same_counts("of both", &got, &expected);
    for (int i = 0; i < 2; i++) {
        float want[600];
        memcpy(want, get(&alone[i]), sizeof want);
        engine_same("of a list", get(&y[i]), want, 600);
        ck_assert(amax[i] == most);
        drop(&y[i]);
        drop(&alone[i]);
    }
    drop(&x);
    how[1].recipe = NULL;
    ck_assert_int_eq(ops->quantize_list(&engine, list, 2), -1);
}

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_gemm, 0, (int)COUNT(products));
    tcase_add_test(t, test_pool);
    tcase_add_test(t, test_gemm_list);
    tcase_add_loop_test(t, test_quantize_tensor, 0, 16);
    tcase_add_loop_test(t, test_gemm_scaled, 0, (int)COUNT(scaled_products));
    tcase_add_loop_test(t, test_quantize_blocks, 0, 2 * (int)COUNT(block_names));
    tcase_add_test(t, test_quantize_list);
}

int main(void)
{
    return engine_main("train-engine-products", add);
}
