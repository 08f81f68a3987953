/* t-engine.c -- every operation of the CPU engine against a loop that says the same in the
 * words of lib/include/train/engine.h, one element after the other. */
#include "support/support.h"

#include <train/engine.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])
enum { MOST = 36000 };

static train_engine engine;
static const train_ops *ops;
static uint64_t seed;

static void setup(void)
{
    ck_assert(train_engine_cpu(&engine, NULL) == 0);
    ops = engine.ops;
    ck_assert_str_eq(ops->name, "cpu");
    seed = test_seed();
}

static void teardown(void)
{
    train_engine_close(&engine);
}

#define OK(call) ck_assert_msg((call) == 0, "line %d: %s", __LINE__, engine.error)
/* -1, and a line about it. */
#define FAILS(call, words)                                                                         \
    do {                                                                                           \
        engine.error[0] = '\0';                                                                    \
        ck_assert_msg((call) == -1, "line %d: no error", __LINE__);                                \
        ck_assert_msg(strncmp(engine.error, "cpu: ", 5) == 0 && strstr(engine.error, words) &&     \
                          !strchr(engine.error, '\n'),                                             \
                      "line %d: '%s'", __LINE__, engine.error);                                    \
    } while (0)

/* ---- numbers ---- */

static const mpsim_format *format(const char *name)
{
    const mpsim_format *f = mpsim_format_find(name);
    ck_assert(f);
    return f;
}

/* RN, and what it does. */
static float rounded(const mpsim_format *f, float x, train_counts *c)
{
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const float y = (float)mpsim_decode(f, mpsim_encode_f32(f, &r, x, 0, &flags));
    if (c) {
        c->nonzero += isfinite(x) && x != 0;
        c->lost += isfinite(x) && x != 0 && y == 0;
        c->overflow += isfinite(x) && (flags & MPSIM_FLAG_OVERFLOW) != 0;
        c->nonfinite += isfinite(y) ? 0 : 1;
    }
    return y;
}

/* A number around 2^(exponent - spread) to 2^exponent; with specials, some are odd. */
static float draw(const mpsim_format *f, int exponent, int spread, int specials)
{
    const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, 0x1.fffffep127f,
                         (float)mpsim_format_min_positive(f), (float)mpsim_format_max(f)};
    const uint64_t u = test_random(&seed);
    if (specials && u % 16 == 0)
        return rounded(f, odd[(u >> 8) % COUNT(odd)], NULL);
    const int down = (int)((u >> 8) % (uint64_t)(spread + 1));
    const float x = ldexpf(1 + (float)(u >> 40) * 0x1p-24f, exponent - 1 - down);
    return rounded(f, u >> 7 & 1 ? -x : x, NULL);
}

static void fill(const mpsim_format *f, float *x, size_t n, int exponent, int spread, int specials)
{
    for (size_t i = 0; i < n; i++)
        x[i] = draw(f, exponent, spread, specials);
}

/* Equal bits; NaNs are one class. */
static void same(const char *what, const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(bits_of_f32(got[i]) == bits_of_f32(want[i]) ||
                          (isnan(got[i]) && isnan(want[i])),
                      "%s: element %zu is %a, expected %a", what, i, (double)got[i],
                      (double)want[i]);
}

static void same_counts(const char *what, const train_counts *a, const train_counts *b)
{
    ck_assert_msg(memcmp(a, b, sizeof *a) == 0,
                  "%s: counts %llu %llu %llu %llu, expected %llu %llu %llu %llu", what,
                  (unsigned long long)a->nonzero, (unsigned long long)a->lost,
                  (unsigned long long)a->overflow, (unsigned long long)a->nonfinite,
                  (unsigned long long)b->nonzero, (unsigned long long)b->lost,
                  (unsigned long long)b->overflow, (unsigned long long)b->nonfinite);
}

/* ---- tensors ---- */

static train_tensor make(const mpsim_format *f, size_t rows, size_t cols, const float *values)
{
    train_tensor x = {.format = f, .rows = rows, .cols = cols};
    ck_assert(rows * cols <= MOST);
    OK(ops->alloc(&engine, &x));
    if (values)
        OK(ops->put(&engine, &x, values));
    return x;
}

static train_tensor any(const char *name, size_t rows, size_t cols, int specials)
{
    static float values[MOST];
    fill(format(name), values, rows * cols, 2, 6, specials);
    return make(format(name), rows, cols, values);
}

static const float *get(const train_tensor *x)
{
    static float kept[32][MOST]; /* of the last 32 calls */
    static unsigned next;
    float *values = kept[next++ % COUNT(kept)];
    OK(ops->get(&engine, x, values));
    return values;
}

static void drop(train_tensor *x)
{
    ops->release(&engine, x);
    ck_assert_ptr_null(x->data);
}

static const char *const names[] = {"binary32", "fp16", "bf16",     "e4m3", "e5m2",
                                    "tf32",     "e2m1", "e4m3fnuz", "e3m2"};

START_TEST(test_tensors)
{
    const mpsim_format *f = format(names[_i]);
    float values[96], want[96] = {0};
    train_tensor x = make(f, 8, 12, NULL);
    ck_assert(x.inverse == 1);
    same("zeros", get(&x), want, 96);
    fill(f, values, 96, 1, 4, 1);
    x.inverse = 3;
    OK(ops->put(&engine, &x, values));
    ck_assert(x.inverse == 1);
    same(f->name, get(&x), values, 96);
    /* codes by the scalar function, digested as they are */
    unsigned char codes[96 * 4];
    mpsim_rounding r;
    uint64_t digest = 0, again = 0;
    const size_t bytes = mpsim_format_code_bytes(f);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < 96; i++)
        code_store(codes + i * bytes, bytes, mpsim_encode_f32(f, &r, values[i], 0, NULL));
    OK(ops->digest(&engine, &x, &digest));
    ck_assert_uint_eq(digest, mpsim_digest(f, codes, 96, 0));
    values[95] = values[95] == 1 ? 2 : 1;
    OK(ops->put(&engine, &x, values));
    OK(ops->digest(&engine, &x, &again));
    ck_assert_uint_ne(digest, again);
    /* a view has the same elements */
    train_tensor view = x;
    view.rows = 1;
    view.cols = 96;
    OK(ops->digest(&engine, &view, &digest));
    ck_assert_uint_eq(digest, again);
    /* 1.4142... is a number of binary32 only, 2^127 too large for most */
    values[7] = 0x1.6a09e6p0f;
    if (f->mbits < 23)
        FAILS(ops->put(&engine, &x, values), "element 7");
    values[7] = NAN;
    if (f->nan == MPSIM_NAN_NONE)
        FAILS(ops->put(&engine, &x, values), "element 7");
    OK(ops->finish(&engine));
    drop(&x);
    drop(&x);
}
END_TEST

START_TEST(test_nans_are_one)
{
    const float a[] = {1, NAN, 2}, b[] = {1, f32_of_bits(0xffc12345u), 2};
    train_tensor x = make(format("binary32"), 1, 3, a), y = make(format("binary32"), 1, 3, b);
    uint64_t one = 1, other = 2;
    OK(ops->digest(&engine, &x, &one));
    OK(ops->digest(&engine, &y, &other));
    ck_assert_uint_eq(one, other);
    drop(&x);
    drop(&y);
}
END_TEST

START_TEST(test_cast)
{
    const mpsim_format *f = format(names[_i]), *fp32 = format("binary32");
    enum { N = 64 * 60 };
    static float values[N], want[N];
    train_counts got = {1, 2, 3, 4}, expected = {1, 2, 3, 4};
    fill(fp32, values, N, 20, 40, 1);
    train_tensor x = make(fp32, 64, 60, values), y = make(f, 64, 60, NULL);
    for (size_t i = 0; i < N; i++)
        want[i] = rounded(f, values[i], &expected);
    y.inverse = 2;
    OK(ops->cast(&engine, &y, &x, MPSIM_ROUND_NEAREST_EVEN, &got));
    ck_assert(y.inverse == 1);
    same(f->name, get(&y), want, N);
    same_counts(f->name, &got, &expected);
    OK(ops->cast(&engine, &y, &y, MPSIM_ROUND_NEAREST_EVEN, NULL));
    same("onto itself", get(&y), want, N);
    mpsim_rounding away;
    mpsim_rounding_init(&away, MPSIM_ROUND_NEAREST_AWAY);
    for (size_t i = 0; i < N; i++) {
        values[i] = rounded(f, values[i], NULL) * (1 + (float)mpsim_format_epsilon(f) / 2);
        want[i] = (float)mpsim_decode(f, mpsim_encode_f32(f, &away, values[i], 0, NULL));
    }
    OK(ops->put(&engine, &x, values));
    OK(ops->cast(&engine, &y, &x, MPSIM_ROUND_NEAREST_AWAY, NULL));
    same("away", get(&y), want, N);
    FAILS(ops->cast(&engine, &y, &x, MPSIM_ROUND_UP, NULL), "nearest");
    drop(&x);
    drop(&y);
}
END_TEST

/* A split master's model is the upper half, rounded away. */
START_TEST(test_split)
{
    float values[256], want[256];
    fill(format("binary32"), values, 256, 3, 6, 0);
    for (size_t i = 0; i < 256; i++) {
        uint16_t model;
        int16_t rest;
        values[i] = i % 2 ? values[i] : f32_of_bits((bits_of_f32(values[i]) & ~0xffffu) | 0x8000u);
        mpsim_master_split(&model, &rest, values[i]);
        want[i] = f32_of_bits((uint32_t)model << 16);
    }
    train_tensor x = make(format("binary32"), 16, 16, values);
    train_tensor y = make(format("bf16"), 16, 16, NULL);
    OK(ops->cast(&engine, &y, &x, MPSIM_ROUND_NEAREST_AWAY, NULL));
    same("split", get(&y), want, 256);
    drop(&x);
    drop(&y);
}
END_TEST

/* ---- products ---- */

static float at(const train_tensor *x, const float *v, int transposed, size_t i, size_t j)
{
    return transposed ? v[j * x->cols + i] : v[i * x->cols + j];
}

/* One element's sum: fmaf where the model is that, else the library's dot product of its codes. */
static float chain(const train_gemm *g, const float *a, const float *b, size_t i, size_t j,
                   size_t depth)
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
    if (g->model->step == MPSIM_STEP_FMA)
        return s;
    ck_assert(mpsim_dot(g->model, fa, ca, fb, cb, depth, 0, NULL, &d) == MPSIM_OK);
    return f32_of_bits((uint32_t)d);
}

static void check_gemm(const train_gemm *g, const mpsim_format *out, size_t rows, size_t columns,
                       size_t depth)
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
    same(g->model->name, get(&d), want, rows * columns);
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
        const train_gemm g = {.model = &m, .a = &a, .b = &b, .a_transposed = at_,
                              .b_transposed = bt, .bias = form & 4 ? &bias : NULL,
                              .depth_limit = form % 3 == 0 ? 0 : form};
        check_gemm(&g, out, rows, columns, depth);
        drop(&a);
        drop(&b);
        drop(&bias);
    }
}
END_TEST

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
    ck_assert(mpsim_model_for(&m, "hopper", format("fp16"), format("fp16"),
                              format("binary32")) == MPSIM_OK);
    const train_gemm g = {.model = &m, .a = &a, .b = &b, .b_transposed = 1};
    OK(ops->gemm(&engine, &d, &g, NULL));
    const float *alone = get(&d);
    tasks = 0;
    engine.pool = &pool;
    OK(ops->gemm(&engine, &d, &g, NULL));
    ck_assert_uint_gt(tasks, 1);
    same("threads", get(&d), alone, 3600);
    drop(&a);
    drop(&b);
    drop(&d);
}
END_TEST

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
    same(recipe.name, get(&y), want, 600);
    same_counts(recipe.name, &got, &expected);
    ck_assert(seen == amax);
    ck_assert(y.inverse == 1 / scale);
    ck_assert(!given || got.overflow > 0);
    OK(ops->quantize(&engine, &y, &x, &q, NULL, NULL));
    ck_assert(expected.lost > 0);
    drop(&x);
    drop(&y);
}
END_TEST

static const char *const block_names[] = {"mxfp8", "te-block-1x128", "te-block-128x128",
                                          "nvfp4", "nvfp4-sr",       "torchao-rowwise"};

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
    ck_assert(mpsim_block_quantize(recipe, turn, turned ? cols : rows, turned ? rows : cols, -1, 0,
                                   &rng, &out, NULL) == MPSIM_OK);
    for (size_t i = 0; i < n; i++)
        want[i] = rounded(format("bf16"), plain[i], NULL);
    train_tensor x = make(format("bf16"), rows, cols, values);
    train_tensor y = make(format("bf16"), turned ? cols : rows, turned ? rows : cols, NULL);
    const train_quantize q = {.recipe = recipe, .transposed = turned, .rng = rng};
    OK(ops->quantize(&engine, &y, &x, &q, NULL, &got));
    same(recipe->name, get(&y), want, n);
    ck_assert(y.inverse == 1);
    ck_assert_uint_eq(got.nonzero, n);
    uint64_t lost = 0;
    for (size_t i = 0; i < n; i++)
        lost += plain[i] == 0;
    ck_assert_uint_eq(got.lost, lost);
    drop(&x);
    drop(&y);
}
END_TEST

/* ---- gathering, activations, pooling ---- */

START_TEST(test_gather)
{
    train_tensor x = any("fp16", 9, 7, 1), y = make(format("fp16"), 13, 11, NULL);
    int32_t index[143];
    float want[143];
    void *handle = NULL;
    const float *v = get(&x);
    for (size_t i = 0; i < 143; i++) {
        index[i] = (int32_t)(test_random(&seed) % 64) - 1;
        want[i] = index[i] < 0 ? 0.0f : v[index[i]];
    }
    index[3] = 62;
    want[3] = v[62];
    OK(ops->index_new(&engine, index, 143, &handle));
    memset(index, 0, sizeof index); /* the engine has its own */
    x.inverse = 0.25f;
    OK(ops->gather(&engine, &y, &x, handle));
    same("gather", get(&y), want, 143);
    ck_assert(y.inverse == 0.25f);
    x.rows = 8; /* 62 is beyond */
    FAILS(ops->gather(&engine, &y, &x, handle), "beyond");
    x.rows = 9;
    y.rows = 12;
    FAILS(ops->gather(&engine, &y, &x, handle), "143");
    y.rows = 13;
    FAILS(ops->gather(&engine, &y, &x, NULL), "missing");
    FAILS(ops->gather(&engine, &y, &y, handle), "");
    ops->index_free(&engine, handle);
    index[5] = -2;
    FAILS(ops->index_new(&engine, index, 143, &handle), "number 5");
    ck_assert_ptr_null(handle);
    ops->index_free(&engine, handle);
    drop(&x);
    drop(&y);
}
END_TEST

START_TEST(test_relu)
{
    float in[] = {1, -1, 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f};
    const float out[] = {1, 0, 0, 0, INFINITY, 0, NAN, 0x1p-149f, 0};
    const float up[] = {2, 3, 4, 5, -6, NAN, 7, -0.0f, 8};
    const float down[] = {2, 0, 0, 0, -6, 0, 0, -0.0f, 0};
    const mpsim_format *f = format("binary32");
    train_tensor x = make(f, 3, 3, in), y = make(f, 3, 3, NULL), dy = make(f, 3, 3, up);
    OK(ops->relu(&engine, &y, &x));
    same("relu", get(&y), out, 9);
    train_tensor dx = make(f, 3, 3, NULL);
    OK(ops->relu_backward(&engine, &dx, &dy, &y));
    same("relu backward", get(&dx), down, 9);
    OK(ops->relu_backward(&engine, &dy, &dy, &y));
    same("onto itself", get(&dy), down, 9);
    OK(ops->relu(&engine, &x, &x));
    same("onto itself", get(&x), out, 9);
    drop(&x);
    drop(&y);
    drop(&dy);
    drop(&dx);
}
END_TEST

static void pool_by_hand(const train_pool *p, const float *x, float *y, const float *dy, float *dx)
{
    const size_t h = p->height / p->size, w = p->width / p->size, c = p->channels;
    for (size_t i = 0; i < p->images * p->height * p->width * c; i++)
        dx[i] = 0;
    for (size_t n = 0; n < p->images; n++)
        for (size_t i = 0; i < h; i++)
            for (size_t j = 0; j < w; j++)
                for (size_t k = 0; k < c; k++) {
                    const size_t to = ((n * h + i) * w + j) * c + k;
                    size_t best = SIZE_MAX;
                    for (size_t u = i * p->size; u < (i + 1) * p->size; u++)
                        for (size_t v = j * p->size; v < (j + 1) * p->size; v++) {
                            const size_t from = ((n * p->height + u) * p->width + v) * c + k;
                            if (best == SIZE_MAX || (!isnan(x[best]) && isnan(x[from])) ||
                                x[from] > x[best])
                                best = from;
                        }
                    y[to] = x[best];
                    dx[best] = dy[to];
                }
}

/* A NaN wherever it stands in a window, the first of two, beside numbers on either side. */
START_TEST(test_maxpool_nan)
{
    enum { WINDOWS = 8 };
    const float i = INFINITY, n = NAN;
    float in[4 * WINDOWS] = {n, 1,  2, 3, 1, n, 2, 3, 1,  2,  3,  n, 4, 3,     n, i,
                             n, -1, 2, n, 5, n, 5, n, -1, -2, -i, n, i, -0.0f, n, -i};
    const size_t at[WINDOWS] = {0, 1, 3, 2, 0, 1, 3, 2};
    const train_pool p = {WINDOWS, 2, 2, 1, 2};
    float up[WINDOWS], all[WINDOWS], down[4 * WINDOWS] = {0};
    for (size_t k = 0; k < WINDOWS; k++) {
        up[k] = (float)(k + 1);
        all[k] = NAN;
        down[4 * k + at[k]] = up[k];
    }
    train_tensor x = make(format("bf16"), 4 * WINDOWS, 1, in);
    train_tensor y = make(format("bf16"), WINDOWS, 1, NULL);
    train_tensor dy = make(format("binary32"), WINDOWS, 1, up);
    train_tensor dx = make(format("binary32"), 4 * WINDOWS, 1, NULL);
    OK(ops->maxpool(&engine, &y, &x, &p));
    same("maxpool", get(&y), all, WINDOWS);
    OK(ops->maxpool_backward(&engine, &dx, &dy, &x, &p));
    same("maxpool backward", get(&dx), down, 4 * WINDOWS);
    drop(&x);
    drop(&y);
    drop(&dy);
    drop(&dx);
}
END_TEST

START_TEST(test_maxpool)
{
    const train_pool pools[] = {{2, 4, 6, 3, 2}, {1, 5, 7, 2, 2}, {3, 3, 6, 1, 3}, {1, 2, 2, 4, 1}};
    const train_pool p = pools[_i % 4];
    const size_t in = p.images * p.height * p.width;
    const size_t out = p.images * (p.height / p.size) * (p.width / p.size);
    static float values[MOST], y_[MOST], dx_[MOST];
    fill(format("e2m1"), values, in * p.channels, 1, 2, 0); /* few numbers: many are equal */
    for (size_t i = 0; _i >= 4 && i < in * p.channels; i++)
        values[i] = test_random(&seed) % 4 == 0   ? NAN
                    : test_random(&seed) % 4 == 0 ? -INFINITY
                    : test_random(&seed) % 4 == 0 ? -0.0f
                    : test_random(&seed) % 4 == 0 ? 0.0f : values[i];
    train_tensor x = make(format("bf16"), in, p.channels, values);
    train_tensor y = make(format("bf16"), out, p.channels, NULL);
    train_tensor dy = any("fp16", out, p.channels, 1);
    train_tensor dx = any("fp16", in, p.channels, 0);
    pool_by_hand(&p, values, y_, get(&dy), dx_);
    OK(ops->maxpool(&engine, &y, &x, &p));
    same("maxpool", get(&y), y_, out * p.channels);
    OK(ops->maxpool_backward(&engine, &dx, &dy, &x, &p));
    same("maxpool backward", get(&dx), dx_, in * p.channels);
    drop(&x);
    drop(&y);
    drop(&dy);
    drop(&dx);
}
END_TEST

/* ---- sums, the loss, normalisation ---- */

/* mpsim_sum_lanes, said again; every addition rounded to m. */
static float tree(const mpsim_format *m, const float *x, size_t n, size_t stride, size_t lanes)
{
    float s[256] = {0};
    for (size_t i = 0; i < n; i++)
        s[i % lanes] = rounded(m, s[i % lanes] + x[i * stride], NULL);
    for (size_t h = lanes / 2; h > 0; h /= 2)
        for (size_t t = 0; t < h; t++)
            s[t] = rounded(m, s[t] + s[t + h], NULL);
    return s[0];
}

START_TEST(test_column_sums)
{
    const mpsim_format *out = format(names[_i]), *fp32 = format("binary32");
    const size_t rows = 300, cols = 9;
    train_counts got = {0, 0, 0, 0}, expected = {0, 0, 0, 0};
    float want[9];
    for (int specials = 0; specials < 2; specials++) {
        train_tensor x = any("binary32", rows, cols, specials), d = make(out, 1, cols, NULL);
        const float *v = get(&x);
        for (size_t j = 0; j < cols; j++)
            want[j] = rounded(out, tree(fp32, v + j, rows, cols, MPSIM_LANES_ALL), &expected);
        OK(ops->column_sums(&engine, &d, &x, &got));
        same("column sums", get(&d), want, cols);
        same_counts("column sums", &got, &expected);
        drop(&x);
        drop(&d);
    }
}
END_TEST

#define M(x) rounded(m, x, NULL)

START_TEST(test_softmax_xent)
{
    const char *const maths[] = {"binary32", "fp16", "bf16"};
    const mpsim_format *m = format(maths[_i % 3]), *out = format(_i % 2 ? "fp16" : "binary32");
    const size_t rows = 301, classes = 10; /* 301 is no number of bf16 */
    static float want[3010], losses[301];
    uint32_t labels[301];
    train_counts got = {0, 0, 0, 0}, expected = {0, 0, 0, 0};
    train_tensor x = any("bf16", rows, classes, 0), dx = make(out, rows, classes, NULL);
    static float v[3010];
    memcpy(v, get(&x), sizeof v);
    if (_i >= 6) {
        v[11] = NAN;
        v[23] = INFINITY;
    }
    v[30] = 7;
    v[35] = 7; /* the first of equals */
    OK(ops->put(&engine, &x, v));
    const float c = M(0x1p20f / (float)rows);
    uint64_t right = 0, correct = 99;
    for (size_t i = 0; i < rows; i++) {
        const float *row = v + i * classes;
        float e[10], top = M(row[0]);
        size_t best = 0;
        int nan = 0;
        labels[i] = i == 3 ? 0 : (uint32_t)(test_random(&seed) % classes);
        for (size_t j = 0; j < classes; j++) {
            nan |= isnan(row[j]);
            if (M(row[j]) > top) {
                top = M(row[j]);
                best = j;
            }
        }
        top = nan ? NAN : top;
        right += !nan && best == labels[i];
        for (size_t j = 0; j < classes; j++)
            e[j] = M(mpsim_exp(M(M(row[j]) - top)));
        const float s = tree(m, e, classes, 1, MPSIM_LANES_ROW);
        losses[i] = M(M(mpsim_log(s)) - M(M(row[labels[i]]) - top));
        for (size_t j = 0; j < classes; j++) {
            float g = M(M(e[j] / s) * c);
            g = j == labels[i] ? M(g - c) : g;
            want[i * classes + j] = rounded(out, g, &expected);
        }
    }
    const float mean = M(tree(m, losses, rows, 1, MPSIM_LANES_ALL) / M((float)rows));
    float loss = 0;
    OK(ops->softmax_xent(&engine, &dx, &x, labels, 0x1p20f / (float)rows, m, &loss, &correct,
                         &got));
    same("softmax_xent", get(&dx), want, rows * classes);
    same_counts("softmax_xent", &got, &expected);
    same("loss", &loss, &mean, 1);
    ck_assert_uint_eq(correct, right);
    /* without gradient; by the NULL that stands for binary32 */
    float again = 0;
    if (_i % 3 == 0) {
        OK(ops->softmax_xent(&engine, NULL, &x, labels, 1, NULL, &again, NULL, NULL));
        same("loss", &again, &mean, 1);
    }
    ck_assert(_i >= 6 ? isnan(loss) : isfinite(loss) && loss > 0);
    labels[0] = 10;
    FAILS(ops->softmax_xent(&engine, NULL, &x, labels, 1, m, &again, NULL, NULL), "softmax");
    drop(&x);
    drop(&dx);
}
END_TEST

/* One channel's statistics, as mpsim/layer.h has them, in binary32. */
typedef struct channel {
    float mean, inverse, var, unbiased;
} channel;

static channel statistics(const float *x, size_t rows, size_t cols, float eps)
{
    static float squares[MOST];
    const mpsim_format *m = format("binary32");
    channel c;
    c.mean = tree(m, x, rows, cols, MPSIM_LANES_ALL) / (float)rows;
    for (size_t i = 0; i < rows; i++)
        squares[i] = (x[i * cols] - c.mean) * (x[i * cols] - c.mean);
    const float sum = tree(m, squares, rows, 1, MPSIM_LANES_ALL);
    c.var = sum / (float)rows;
    c.unbiased = sum / (float)(rows - 1);
    c.inverse = 1 / sqrtf(c.var + eps);
    return c;
}

START_TEST(test_batchnorm)
{
    const mpsim_format *fp32 = format("binary32"), *out = format(_i ? "fp16" : "binary32");
    const mpsim_batchnorm b = {.rows = 1, .channels = 1, .eps = 1e-5f, .momentum = 0.1f,
                               .f = format("e4m3")}; /* rows, channels and f: ignored */
    const size_t rows = 270, cols = 5;
    static float y_[MOST], dx_[MOST], h[MOST], terms[MOST];
    float mean_[5], inverse_[5], rm[5], rv[5], dw[5], db[5];
    train_counts got = {0, 0, 0, 0}, expected = {0, 0, 0, 0};
    train_tensor x = any("fp16", rows, cols, 0), w = any("binary32", 1, cols, 0);
    train_tensor bias = any("binary32", 1, cols, 0), mean = make(fp32, 1, cols, NULL);
    train_tensor inverse = make(fp32, 1, cols, NULL), y = make(out, rows, cols, NULL);
    train_tensor run_mean = any("binary32", 1, cols, 0), run_var = make(fp32, 1, cols, mean_);
    const float ones[] = {1, 1, 1, 1, 1};
    OK(ops->put(&engine, &run_var, ones));
    const float *v = get(&x), *wv = get(&w), *bv = get(&bias), *old = get(&run_mean);
    for (size_t j = 0; j < cols; j++) {
        const channel c = statistics(v + j, rows, cols, b.eps);
        mean_[j] = c.mean;
        inverse_[j] = c.inverse;
        rm[j] = (1 - b.momentum) * old[j] + b.momentum * c.mean;
        rv[j] = (1 - b.momentum) * 1 + b.momentum * c.unbiased;
        for (size_t i = 0; i < rows; i++)
            y_[i * cols + j] =
                rounded(out, (v[i * cols + j] - c.mean) * c.inverse * wv[j] + bv[j], &expected);
    }
    OK(ops->batchnorm(&engine, &b, &y, &mean, &inverse, &run_mean, &run_var, &x, &w, &bias, &got));
    same("y", get(&y), y_, rows * cols);
    same("mean", get(&mean), mean_, cols);
    same("inverse", get(&inverse), inverse_, cols);
    same("running mean", get(&run_mean), rm, cols);
    same("running var", get(&run_var), rv, cols);
    same_counts("batchnorm", &got, &expected);
    train_tensor dy = any("fp16", rows, cols, 0), dx = make(out, rows, cols, NULL);
    train_tensor dweight = make(out, 1, cols, NULL), dbias = make(out, 1, cols, NULL);
    const float *d = get(&dy);
    for (size_t j = 0; j < cols; j++) {
        for (size_t i = 0; i < rows; i++) {
            h[i] = (v[i * cols + j] - mean_[j]) * inverse_[j];
            terms[i] = d[i * cols + j] * h[i];
        }
        const float sum = tree(fp32, d + j, rows, cols, MPSIM_LANES_ALL);
        const float dot = tree(fp32, terms, rows, 1, MPSIM_LANES_ALL);
        const float a = sum / (float)rows, c = dot / (float)rows;
        db[j] = rounded(out, sum, NULL);
        dw[j] = rounded(out, dot, NULL);
        for (size_t i = 0; i < rows; i++)
            dx_[i * cols + j] = rounded(
                out, wv[j] * inverse_[j] * (d[i * cols + j] - a - h[i] * c), &expected);
    }
    OK(ops->batchnorm_backward(&engine, &b, &dx, &dweight, &dbias, &dy, &x, &mean, &inverse, &w,
                               &got));
    same("dx", get(&dx), dx_, rows * cols);
    same("dweight", get(&dweight), dw, cols);
    same("dbias", get(&dbias), db, cols);
    same_counts("batchnorm backward", &got, &expected);
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            y_[i * cols + j] = rounded(
                out, (v[i * cols + j] - rm[j]) * (1 / sqrtf(rv[j] + b.eps)) * wv[j] + bv[j], NULL);
    OK(ops->batchnorm_inference(&engine, &b, &y, &x, &run_mean, &run_var, &w, &bias));
    same("inference", get(&y), y_, rows * cols);
    FAILS(ops->batchnorm(&engine, &b, &y, &mean, &inverse, &run_mean, NULL, &x, &w, &bias, NULL),
          "together");
    FAILS(ops->batchnorm(&engine, &b, &y, &mean, &inverse, &x, &x, &x, &w, &bias, NULL), "needed");
    OK(ops->batchnorm(&engine, &b, &y, &mean, &inverse, NULL, NULL, &x, &w, &bias, NULL));
    train_tensor *const all[] = {&x, &w, &bias, &mean, &inverse, &y, &run_mean, &run_var,
                                 &dy, &dx, &dweight, &dbias};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
}
END_TEST

/* ---- gradients and the optimizer ---- */

START_TEST(test_gradients)
{
    const mpsim_format *f = format(_i % 2 ? "fp16" : "binary32");
    const mpsim_unscale_rule rules[] = {MPSIM_UNSCALE_RECIPROCAL, MPSIM_UNSCALE_DIVIDE,
                                        MPSIM_UNSCALE_ROUNDED};
    const double scales[] = {1, 3, 0x1p16, 0x1p-100};
    static float want[400];
    for (size_t k = 0; k < 12; k++) {
        const mpsim_unscale_rule rule = rules[k % 3];
        const double scale = scales[k / 3];
        const float inverse = rule == MPSIM_UNSCALE_ROUNDED ? rounded(f, (float)(1 / scale), NULL)
                                                            : (float)(1 / scale);
        static float v[400];
        fill(format("binary32"), v, 400, k % 2 ? 2 : 18, 6, _i >= 2); /* 2^18: beyond fp16 */
        train_tensor x = make(format("binary32"), 20, 20, v), y = make(f, 20, 20, NULL);
        unsigned found = 8, expected = 8;
        for (size_t i = 0; i < 400; i++) {
            want[i] = rounded(f, rule == MPSIM_UNSCALE_DIVIDE ? v[i] / (float)scale
                                                              : v[i] * inverse, NULL);
            expected |= isfinite(v[i]) ? 0 : MPSIM_FOUND_INPUT;
            expected |= isfinite(want[i]) ? 0 : MPSIM_FOUND_OUTPUT;
        }
        OK(ops->unscale(&engine, &y, &x, rule, scale, &found));
        same("unscale", get(&y), want, 400);
        ck_assert_uint_eq(found, expected);
        float norm = 0;
        OK(ops->norm(&engine, &y, f, &norm));
        const float norm_ = mpsim_norm(f, want, 400);
        same("norm", &norm, &norm_, 1);
        for (size_t i = 0; i < 400; i++)
            want[i] = rounded(f, want[i] * 0.3f, NULL);
        OK(ops->scale(&engine, &y, 0.3f));
        same("scale", get(&y), want, 400);
        drop(&x);
        drop(&y);
    }
}
END_TEST

/* Plain SGD in bf16: p - lr g, by hand; an update is lost where that rounds to p. */
START_TEST(test_optim_sgd)
{
    const mpsim_format *f = format("bf16");
    const size_t n = 400;
    static float p[400], g[400], want[400];
    mpsim_optim o;
    uint64_t updates = 5, lost = 7, expected_updates = 5, expected_lost = 7;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("ieee"));
    o.grad_scale = _i ? 1024 : 1;
    o.lr = 0x1p-8 * o.grad_scale;
    o.param = o.state = *f;
    fill(f, p, n, 3, 6, 0);
    fill(f, g, n, 3, 6, 0);
    g[7] = g[9] = 0;
    g[11] = NAN;
    for (size_t i = 0; i < n; i++) {
        const float step = (float)o.lr * (g[i] / (float)o.grad_scale);
        want[i] = rounded(f, p[i] - step, NULL);
        expected_updates += i != 7 && i != 9;
        expected_lost += i != 7 && i != 9 && want[i] == p[i];
    }
    train_tensor param = make(f, 20, 20, p), grad = make(f, 20, 20, g);
    const train_update u = {.param = &param, .grad = &grad};
    OK(ops->optim(&engine, &o, 1, &u, NULL, &updates, &lost));
    same("sgd", get(&param), want, n);
    ck_assert_uint_eq(updates, expected_updates);
    ck_assert_uint_eq(lost, expected_lost);
    ck_assert(lost > 7 + 50 && lost < n);
    drop(&param);
    drop(&grad);
}
END_TEST

static const struct optim_case {
    const char *variant, *param, *state;
    mpsim_optim_algorithm algorithm;
    mpsim_store store;
    int amsgrad;
} optim_cases[] = {
    {"torch", "binary32", "binary32", MPSIM_OPTIM_SGD, MPSIM_STORE_NEAREST, 0},
    {"torch-foreach", "bf16", "bf16", MPSIM_OPTIM_ADAM, MPSIM_STORE_NEAREST, 1},
    {"apex", "fp16", "binary32", MPSIM_OPTIM_ADAMW, MPSIM_STORE_NEAREST, 0},
    {"torchao", "bf16", "bf16", MPSIM_OPTIM_ADAMW, MPSIM_STORE_STOCHASTIC, 0},
    {"optimi", "bf16", "bf16", MPSIM_OPTIM_ADAM, MPSIM_STORE_KAHAN, 0},
    {"torch-fused-a", "binary32", "binary32", MPSIM_OPTIM_ADAM, MPSIM_STORE_NEAREST, 0},
};

/* Several steps: the engine's tensors and arrays that the library steps. */
START_TEST(test_optim)
{
    const struct optim_case *c = &optim_cases[_i];
    const mpsim_format *fp = format(c->param), *fs = format(c->state);
    enum { N = 260 };
    static float p[N], g[N], m[N], v[N], x[N], k[N], before[N], kept[N];
    static double p64[N], g64[N], m64[N], v64[N], x64[N];
    const mpsim_rng rng = {.seed = 1, .stream = 2, .index = 3};
    const int adam = c->algorithm != MPSIM_OPTIM_SGD, kahan = c->store == MPSIM_STORE_KAHAN;
    mpsim_optim o;
    mpsim_optim_init(&o, c->algorithm, mpsim_optim_variant_find(c->variant));
    o.momentum = adam ? 0 : 0.9;
    o.lr = 0x1p-7;
    o.store = (uint8_t)c->store;
    o.amsgrad = (uint8_t)c->amsgrad;
    o.param = *fp;
    o.state = *fs;
    o.grad_scale = strncmp(c->variant, "torch-fused", 11) == 0 ? 65536 : 1;
    fill(fp, p, N, 2, 8, 0);
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    memset(x, 0, sizeof x);
    memset(k, 0, sizeof k);
    train_tensor tp = make(fp, 13, 20, p), tg = make(fp, 13, 20, NULL), tm = make(fs, 13, 20, NULL);
    train_tensor tv = make(fs, 13, 20, NULL), tx = make(fs, 13, 20, NULL);
    train_tensor tk = make(fp, 13, 20, NULL);
    const train_update u = {.param = &tp, .grad = &tg, .m = &tm, .v = adam ? &tv : NULL,
                            .vmax = c->amsgrad ? &tx : NULL, .kahan = kahan ? &tk : NULL};
    uint64_t updates = 0, lost = 0, expected_updates = 0, expected_lost = 0;
    for (uint64_t t = 1; t <= 4; t++) {
        fill(fp, g, N, 0, 20, 0);
        OK(ops->put(&engine, &tg, g));
        for (size_t i = 0; i < N; i++) {
            p64[i] = (double)p[i];
            g64[i] = (double)g[i];
            m64[i] = (double)m[i];
            v64[i] = (double)v[i];
            x64[i] = (double)x[i];
        }
        memcpy(before, p, sizeof p);
        memcpy(kept, k, sizeof k);
        ck_assert(mpsim_optim_reference(&o, t, p64, g64, m64, v64, x64, N) == MPSIM_OK);
        const mpsim_optim_tensor at_ = {.param = p, .grad = g, .m = m, .v = adam ? v : NULL,
                                        .vmax = c->amsgrad ? x : NULL, .kahan = kahan ? k : NULL,
                                        .n = N};
        ck_assert(mpsim_optim_step(&o, t, &at_, &rng) == MPSIM_OK);
        for (size_t i = 0; i < N; i++) {
            const int moves = p64[i] != (double)before[i];
            expected_updates += (uint64_t)moves;
            expected_lost += moves && p[i] == before[i] && k[i] == kept[i] ? 1 : 0;
        }
        OK(ops->optim(&engine, &o, t, &u, &rng, t % 2 ? &updates : NULL, t % 2 ? &lost : NULL));
        if (t % 2 == 0) {
            updates = expected_updates;
            lost = expected_lost;
        }
        same(c->variant, get(&tp), p, N);
        same("m", get(&tm), m, N);
        same("v", get(&tv), v, N);
        same("vmax", get(&tx), x, N);
        same("kahan", get(&tk), k, N);
        ck_assert_uint_eq(updates, expected_updates);
        ck_assert_uint_eq(lost, expected_lost);
    }
    train_tensor *const all[] = {&tp, &tg, &tm, &tv, &tx, &tk};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
}
END_TEST

/* ---- errors ---- */

START_TEST(test_errors)
{
    train_tensor a = any("fp16", 4, 6, 0), b = any("bf16", 6, 3, 0), none = a;
    train_tensor d = make(format("fp16"), 4, 3, NULL), one = make(format("fp16"), 1, 2, NULL);
    const train_tensor untouched = d;
    const mpsim_format *fp16 = format("fp16");
    uint64_t digest;
    float values[24], norm;
    uint32_t labels[4] = {0, 0, 0, 0};
    mpsim_model m;
    mpsim_optim o;
    none.data = NULL;
    FAILS(ops->alloc(&engine, NULL), "missing");
    train_tensor odd = {.format = format("binary64"), .rows = 1, .cols = 1};
    FAILS(ops->alloc(&engine, &odd), "binary64");
    odd.format = format("e8m0");
    FAILS(ops->alloc(&engine, &odd), "no zero");
    odd.format = NULL;
    FAILS(ops->alloc(&engine, &odd), "missing");
    odd.format = fp16;
    odd.rows = odd.cols = SIZE_MAX / 2;
    FAILS(ops->alloc(&engine, &odd), "too many");
    FAILS(ops->put(&engine, &none, values), "missing");
    FAILS(ops->put(&engine, &a, NULL), "missing");
    FAILS(ops->get(&engine, &none, values), "missing");
    FAILS(ops->get(&engine, &a, NULL), "missing");
    FAILS(ops->digest(&engine, &none, &digest), "missing");
    FAILS(ops->digest(&engine, &a, NULL), "nowhere");
    FAILS(ops->cast(&engine, &d, &a, MPSIM_ROUND_NEAREST_EVEN, NULL), "4 x 3 where 4 x 6");
    FAILS(ops->cast(&engine, NULL, &a, MPSIM_ROUND_NEAREST_EVEN, NULL), "missing");
    ck_assert(mpsim_model_parse(&m, "fma") == MPSIM_OK);
    train_gemm g = {.model = &m, .a = &a, .b = &b};
    OK(ops->gemm(&engine, &d, &g, NULL));
    g.b_transposed = 1;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "depth of a is 6, of b 3");
    g.b_transposed = 0;
    FAILS(ops->gemm(&engine, &one, &g, NULL), "4 x 3 is needed");
    g.bias = &one;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "bias");
    g.bias = NULL;
    g.model = NULL;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "model");
    ck_assert(mpsim_model_parse(&m, "fma:fp16") == MPSIM_OK);
    g.model = &m;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "binary32");
    ck_assert(mpsim_model_parse(&m, "fma") == MPSIM_OK);
    g.a = &none;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "missing");
    train_tensor view = d;
    view.cols = 6;
    g.a = &view;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "4 x 6 elements are asked of a tensor of 12");
    train_quantize q = {.recipe = mpsim_block_find("te-current")};
    FAILS(ops->quantize(&engine, &a, &a, &q, NULL, NULL), "fp16 and e4m3");
    q.recipe = mpsim_block_find("mxfp8");
    FAILS(ops->quantize(&engine, &a, &a, &q, NULL, NULL), "fp16 and bf16");
    q.recipe = NULL;
    FAILS(ops->quantize(&engine, &a, &a, &q, NULL, NULL), "recipe");
    mpsim_block_recipe given = *mpsim_block_find("te-current");
    train_tensor y = make(format("e4m3"), 4, 6, NULL);
    given.rule = MPSIM_SCALE_GIVEN;
    q.recipe = &given;
    q.given = NAN;
    FAILS(ops->quantize(&engine, &y, &a, &q, NULL, NULL), "nan");
    FAILS(ops->quantize(&engine, &y, &y, &q, NULL, NULL), "the result is the operand");
    FAILS(ops->quantize(&engine, &d, &a, &q, NULL, NULL), "4 x 3 where");
    FAILS(ops->relu(&engine, &d, &a), "4 x 3 where");
    FAILS(ops->relu(&engine, &y, &a), "must be one");
    FAILS(ops->relu_backward(&engine, &y, &a, &a), "must be one");
    FAILS(ops->relu_backward(&engine, &a, &d, &a), "4 x 3 where");
    const train_pool p = {.images = 1, .height = 2, .width = 2, .channels = 6, .size = 2};
    train_tensor small = make(format("e4m3"), 1, 6, NULL);
    FAILS(ops->maxpool(&engine, &small, &a, &p), "must be one");
    FAILS(ops->maxpool(&engine, &one, &a, &p), "1 x 6 is needed");
    FAILS(ops->maxpool_backward(&engine, &a, &one, &a, &p), "1 x 6 is needed");
    FAILS(ops->maxpool(&engine, &small, &a, NULL), "windows");
    FAILS(ops->column_sums(&engine, &d, &a, NULL), "1 x 6 is needed");
    FAILS(ops->softmax_xent(&engine, &d, &a, labels, 1, NULL, &norm, NULL, NULL), "4 x 6");
    FAILS(ops->softmax_xent(&engine, NULL, &a, NULL, 1, NULL, &norm, NULL, NULL), "softmax");
    FAILS(ops->unscale(&engine, &d, &a, MPSIM_UNSCALE_DIVIDE, 1, NULL), "4 x 3 where");
    FAILS(ops->norm(&engine, &a, NULL, NULL), "nowhere");
    FAILS(ops->norm(&engine, &none, NULL, &norm), "missing");
    FAILS(ops->scale(&engine, &none, 1), "missing");
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("ieee"));
    train_update u = {.param = &a, .grad = &a};
    FAILS(ops->optim(&engine, &o, 1, &u, NULL, NULL, NULL), "fp16 and binary32");
    o.param = *fp16;
    FAILS(ops->optim(&engine, &o, 1, &u, NULL, NULL, NULL), "step 1 of ieee");
    u.m = u.v = &a;
    FAILS(ops->optim(&engine, &o, 1, &u, NULL, NULL, NULL), "fp16 and binary32");
    u.m = u.v = &d;
    FAILS(ops->optim(&engine, &o, 1, &u, NULL, NULL, NULL), "4 x 3 where");
    o.lr = -1;
    FAILS(ops->optim(&engine, &o, 1, &u, NULL, NULL, NULL), "ieee of adam");
    FAILS(ops->optim(&engine, NULL, 1, &u, NULL, NULL, NULL), "missing");
    ck_assert(memcmp(&untouched, &d, sizeof d) == 0);
    train_tensor *const all[] = {&a, &b, &d, &one, &y, &small};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
}
END_TEST

int main(void)
{
    test_seed(); /* printed by this process, not by each test's */
    TCase *t = test_case("operations", 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, test_tensors, 0, (int)COUNT(names));
    tcase_add_test(t, test_nans_are_one);
    tcase_add_loop_test(t, test_cast, 0, (int)COUNT(names));
    tcase_add_test(t, test_split);
    tcase_add_loop_test(t, test_gemm, 0, (int)COUNT(products));
    tcase_add_test(t, test_pool);
    tcase_add_loop_test(t, test_quantize_tensor, 0, 16);
    tcase_add_loop_test(t, test_quantize_blocks, 0, 2 * (int)COUNT(block_names));
    tcase_add_test(t, test_gather);
    tcase_add_test(t, test_relu);
    tcase_add_loop_test(t, test_maxpool, 0, 8);
    tcase_add_test(t, test_maxpool_nan);
    tcase_add_loop_test(t, test_column_sums, 0, (int)COUNT(names));
    tcase_add_loop_test(t, test_softmax_xent, 0, 12);
    tcase_add_loop_test(t, test_batchnorm, 0, 2);
    tcase_add_loop_test(t, test_gradients, 0, 4);
    tcase_add_loop_test(t, test_optim_sgd, 0, 2);
    tcase_add_loop_test(t, test_optim, 0, (int)COUNT(optim_cases));
    tcase_add_test(t, test_errors);
    TCase *const cases[] = {t, NULL};
    return test_main("train-engine", cases);
}
