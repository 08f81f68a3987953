/* t-engine-transformer.c -- operations of transformers of the CPU engine: against loops that say the
 * same in the words of lib/include/train/engine.h, and against the library's rows, rounded one by one. */
#include "support/trainengine.h"

#include <math.h>

/* What an operation is to leave, and the formats of its operand and result. */
static float want[MOST];
static train_counts got, expected;
static const char *const pairs[][2] = {{"binary32", "binary32"}, {"fp16", "bf16"}, {"bf16", "fp16"},
                                       {"binary32", "e4m3"},     {"e5m2", "fp16"}, {"e4m3", "e5m2"}};
enum { PAIRS = 6 };

static void start(void)
{
    got = expected = (train_counts){0, 0, 0, 0};
}

/* want, which is of binary32, rounded to y's format. */
static void check(const char *what, const train_tensor *y)
{
    const size_t n = y->rows * y->cols;
    for (size_t i = 0; i < n; i++)
        want[i] = rounded(y->format, want[i], &expected);
    ck_assert(y->inverse == 1);
    engine_same(what, get(y), want, n);
    same_counts(what, &got, &expected);
}

static void drop_all(train_tensor *const *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        drop(x[i]);
}

#define DROP(...) \
    drop_all((train_tensor *const[]){__VA_ARGS__}, sizeof(train_tensor *const[]){__VA_ARGS__} / sizeof(train_tensor *))

/* A pool that runs backwards, every other time. */
static void backwards(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    (void)self;
    while (n-- > 0)
        task(n, job);
}

static const mpsim_pool pool = {.run = backwards};

static void pool_of(int i)
{
    engine.pool = i & 1 ? &pool : NULL;
}

/* ---- sums and tables ---- */

START_TEST(test_add)
{
    const char *const *f = pairs[_i];
    pool_of(_i);
    start();
    train_tensor a = any(f[0], 300, 70, 1), b = any(f[1], 300, 70, 1);
    train_tensor y = make(format(f[1]), 300, 70, NULL);
    y.inverse = 7;
    const float *va = get(&a), *vb = get(&b);
    for (size_t i = 0; i < 21000; i++)
        want[i] = va[i] + vb[i];
    OK(ops->add(&engine, &y, &a, &b, &got));
    check("add", &y);
    OK(ops->add(&engine, &b, &a, &b, NULL)); /* in place */
    engine_same("add in place", get(&b), want, 21000);
    DROP(&a, &b, &y);
}

START_TEST(test_add_rows)
{
    const char *const *f = pairs[_i];
    const size_t period = _i & 1 ? 37 : 500; /* 500: rows of the table that nothing meets */
    pool_of(_i);
    start();
    train_tensor x = any(f[0], 280, 40, 1), table = any(f[1], period, 40, 1);
    train_tensor y = make(format(f[1]), 280, 40, NULL), dtable = any(f[1], period, 40, 0);
    const float *vx = get(&x), *vt = get(&table);
    for (size_t i = 0; i < 280 * 40; i++)
        want[i] = vx[i] + vt[i / 40 % period * 40 + i % 40];
    OK(ops->add_rows(&engine, &y, &x, &table, &got));
    check("add_rows", &y);
    start();
    memset(want, 0, sizeof want);
    for (size_t i = 0; i < 280 * 40; i++) {
        float *s = &want[i / 40 % period * 40 + i % 40];
        *s = *s + vx[i];
    }
    OK(ops->add_rows_backward(&engine, &dtable, &x, &got));
    check("add_rows_backward", &dtable);
    DROP(&x, &table, &y, &dtable);
}

START_TEST(test_embed)
{
    const char *const *f = pairs[_i % PAIRS];
    const int added = _i >= PAIRS;
    uint32_t index[300];
    pool_of(_i);
    start();
    for (size_t i = 0; i < 300; i++)
        index[i] = (uint32_t)(test_random(&seed) % 97);
    train_tensor table = any(f[0], 97, 60, 1), y = make(format(f[1]), 300, 60, NULL);
    const float *vt = get(&table);
    for (size_t i = 0; i < 18000; i++)
        want[i] = vt[index[i / 60] * 60 + i % 60];
    OK(ops->embed(&engine, &y, &table, index, &got));
    check("embed", &y);
    start();
    const float *vy = get(&y);
    memset(want, 0, sizeof want);
    for (size_t i = 0; added && i < 97 * 60; i++)
        want[i] = vt[i];
    for (size_t i = 0; i < 18000; i++) {
        float *s = &want[index[i / 60] * 60 + i % 60];
        *s = *s + vy[i];
    }
    OK(ops->embed_backward(&engine, &table, &y, index, added, &got));
    check("embed_backward", &table);
    DROP(&table, &y);
}

START_TEST(test_reduce)
{
    const char *const *f = pairs[_i % PAIRS];
    mpsim_reduce r = {.wire = *format("bf16"),
                      .accumulator = *format(_i & 1 ? "bf16" : "binary32"),
                      .result = *format(f[1]),
                      .order = (uint8_t)(_i % 3),
                      .average = MPSIM_AVERAGE_AFTER};
    train_tensor x[5];
    const train_tensor *ranks[5];
    const float *values[5];
    for (size_t i = 0; i < 5; i++) {
        x[i] = any(f[0], 30, 41, 0);
        ranks[i] = &x[i];
        values[i] = get(&x[i]);
    }
    train_tensor y = make(format(f[1]), 30, 41, NULL);
    ck_assert(mpsim_reduce_array(&r, want, values, 5, 1230) == MPSIM_OK);
    y.inverse = 3;
    const train_sum sum = {.y = &y, .x = ranks};
    OK(ops->reduce(&engine, &r, &sum, 1, 5));
    ck_assert(y.inverse == 1);
    engine_same("reduce", get(&y), want, 1230);
    for (size_t i = 0; i < 5; i++)
        drop(&x[i]);
    drop(&y);
}

/* ---- heads ---- */

enum { SEQUENCES = 3, LENGTH = 11, HEADS = 4, SIZE = 6, FIRST = 5, COLS = 40 };

/* Column c of head k, place p of sequence s. */
static size_t in_rows(size_t s, size_t k, size_t p, size_t c)
{
    return (s * LENGTH + p) * COLS + FIRST + k * SIZE + c;
}

static size_t in_heads(size_t s, size_t k, size_t p, size_t c)
{
    return ((s * HEADS + k) * LENGTH + p) * SIZE + c;
}

/* `to` from numbers of a head: column c of `from`, turned. */
static float turned(const float *x, const float *cos, const float *sin, size_t p, size_t c, int back)
{
    const size_t half = SIZE / 2, t = p * half + c % half;
    const float low = x[c % half], high = x[c % half + half], s = back ? -sin[t] : sin[t];
    const float a = c < half ? low * cos[t] : high * cos[t];
    const float b = c < half ? high * s : low * s;
    return c < half ? a - b : a + b;
}

static void check_heads(const char *const *f, int rotary)
{
    train_tensor x = any(f[0], SEQUENCES * LENGTH, COLS, 1), dx = any(f[1], x.rows, COLS, 0);
    train_tensor y = make(format(f[1]), SEQUENCES * HEADS * LENGTH, SIZE, NULL);
    train_tensor cos = any("binary32", LENGTH, SIZE / 2, 0), sin = any("binary32", LENGTH, SIZE / 2, 0);
    const float *vx = get(&x), *vc = get(&cos), *vs = get(&sin);
    const train_heads h = {.sequences = SEQUENCES,
                           .length = LENGTH,
                           .heads = HEADS,
                           .size = SIZE,
                           .first = FIRST,
                           .cos = rotary ? &cos : NULL,
                           .sin = rotary ? &sin : NULL};
    start();
    for (size_t i = 0; i < SEQUENCES * HEADS * LENGTH * SIZE; i++) {
        const size_t c = i % SIZE, p = i / SIZE % LENGTH, k = i / SIZE / LENGTH % HEADS;
        const float *from = vx + in_rows(i / SIZE / LENGTH / HEADS, k, p, 0);
        want[i] = rotary ? turned(from, vc, vs, p, c, 0) : from[c];
    }
    OK(ops->split(&engine, &(train_turn){.y = &y, .x = &x, .heads = &h, .counts = &got}, 1));
    check("split", &y);
    start();
    const float *vy = get(&y);
    memcpy(want, get(&dx), SEQUENCES * LENGTH * COLS * sizeof *want);
    for (size_t i = 0; i < SEQUENCES * HEADS * LENGTH * SIZE; i++) {
        const size_t c = i % SIZE, p = i / SIZE % LENGTH, k = i / SIZE / LENGTH % HEADS;
        const size_t s = i / SIZE / LENGTH / HEADS;
        const float *from = vy + in_heads(s, k, p, 0);
        want[in_rows(s, k, p, c)] = rounded(dx.format, rotary ? turned(from, vc, vs, p, c, 1) : from[c], &expected);
    }
    OK(ops->join(&engine, &(train_turn){.y = &dx, .x = &y, .heads = &h, .counts = &got}, 1));
    engine_same("join", get(&dx), want, SEQUENCES * LENGTH * COLS);
    same_counts("join", &got, &expected);
    DROP(&x, &dx, &y, &cos, &sin);
}

START_TEST(test_heads)
{
    pool_of(_i);
    check_heads(pairs[_i], 0);
    check_heads(pairs[_i], 1);
}

START_TEST(test_add_groups)
{
    const char *const *f = pairs[_i];
    const size_t length = 7, matrices = 6, group = 3, n = 6 * 7 * 50;
    pool_of(_i);
    start();
    train_tensor x = any(f[0], matrices * group * length, 50, 1);
    train_tensor y = make(format(f[1]), matrices * length, 50, NULL);
    const float *v = get(&x);
    for (size_t i = 0; i < n; i++) {
        const size_t m = i / (length * 50), at = i % (length * 50);
        want[i] = v[m * group * length * 50 + at];
        for (size_t k = 1; k < group; k++)
            want[i] = want[i] + v[(m * group + k) * length * 50 + at];
    }
    OK(ops->add_groups(&engine, &y, &x, length, group, &got));
    check("add_groups", &y);
    DROP(&x, &y);
}

/* ---- rows of the library ---- */

static const mpsim_format *math_of(int i)
{
    return i % 3 == 0 ? NULL : format(i % 3 == 1 ? "bf16" : "fp16");
}

START_TEST(test_rownorm)
{
    const char *const *f = pairs[_i % PAIRS];
    static float mean[260], inverse[260], dw[70], db[70];
    const int bias = _i % 4 != 3;
    mpsim_rownorm r = {.rows = 260,
                       .cols = 70,
                       .kind = _i / PAIRS ? MPSIM_NORM_RMS : MPSIM_NORM_LAYER,
                       .eps = 1e-5f,
                       .math = math_of(_i)};
    pool_of(_i);
    start();
    train_tensor x = any(f[0], 260, 70, 0), w = any(f[1], 1, 70, 0), b = any(f[0], 1, 70, 0);
    train_tensor y = make(format(f[1]), 260, 70, NULL), dy = any(f[1], 260, 70, 0);
    train_tensor m = make(format("binary32"), 260, 1, NULL), i = make(m.format, 260, 1, NULL);
    train_tensor dweight = make(format(f[1]), 1, 70, NULL), dbias = make(dweight.format, 1, 70, NULL);
    ck_assert(mpsim_rownorm_forward(&r, want, mean, inverse, get(&x), get(&w), bias ? get(&b) : NULL) == MPSIM_OK);
    r.rows = r.cols = 1; /* they are the tensors' */
    r.f = format("e2m1");
    OK(ops->rownorm(&engine, &r, &y, &m, &i, &x, &w, bias ? &b : NULL, &got));
    check("rownorm", &y);
    engine_same("mean", get(&m), mean, 260);
    engine_same("inverse", get(&i), inverse, 260);
    start();
    r.rows = 260;
    r.cols = 70;
    r.f = NULL;
    ck_assert(mpsim_rownorm_backward(&r, want, dw, bias ? db : NULL, get(&dy), get(&x), mean, inverse, get(&w)) ==
              MPSIM_OK);
    const train_normed alone = {&r, &dweight, bias ? &dbias : NULL, &dy, &x, &m, &i, &w};
    OK(_i % 2 ? ops->rownorm_gradients(&engine, &alone, 1) : 0); /* else with dx */
    OK(ops->rownorm_backward(&engine, &r, &dy, _i % 2 ? NULL : &dweight, bias ? &dbias : NULL, &dy, &x, &m, &i, &w,
                             &got));
    check("rownorm_backward", &dy);
    for (size_t c = 0; c < 70; c++) {
        dw[c] = rounded(dweight.format, dw[c], NULL);
        db[c] = rounded(dbias.format, db[c], NULL);
    }
    engine_same("dweight", get(&dweight), dw, 70);
    if (bias)
        engine_same("dbias", get(&dbias), db, 70);
    DROP(&x, &w, &b, &y, &dy, &m, &i, &dweight, &dbias);
}

START_TEST(test_activate)
{
    const char *const *f = pairs[_i % PAIRS];
    const mpsim_activation kind = (mpsim_activation)(_i / PAIRS);
    const size_t width = kind == MPSIM_SWIGLU ? 100 : 50;
    const mpsim_format *math = math_of(_i);
    pool_of(_i);
    start();
    train_tensor x = any(f[0], 300, width, 1), y = make(format(f[1]), 300, 50, NULL);
    train_tensor dy = any(f[1], 300, 50, 1), dx = make(format(f[1]), 300, width, NULL);
    ck_assert(mpsim_activate(kind, math, NULL, want, get(&x), 300, 50) == MPSIM_OK);
    OK(ops->activate(&engine, kind, math, &y, &x, &got));
    check("activate", &y);
    start();
    ck_assert(mpsim_activate_backward(kind, math, NULL, want, get(&dy), get(&x), 300, 50) == MPSIM_OK);
    OK(ops->activate_backward(&engine, kind, math, &dx, &dy, &x, &got));
    check("activate_backward", &dx);
    DROP(&x, &y, &dy, &dx);
}

START_TEST(test_causal)
{
    const char *const *f = pairs[_i % PAIRS];
    const mpsim_format *math = math_of(_i);
    mpsim_causal c = {.matrices = 20, .length = 33, .scale = 0.3f, .math = math};
    pool_of(_i);
    start();
    train_tensor s = any(f[0], 660, 33, 0), p = make(format(f[1]), 660, 33, NULL);
    train_tensor dp = any(f[1], 660, 33, 0);
    ck_assert(mpsim_causal_softmax(&c, want, get(&s)) == MPSIM_OK);
    OK(ops->causal(&engine, math, c.scale, &p, &s, &got));
    check("causal", &p);
    start();
    ck_assert(mpsim_causal_softmax_backward(&c, want, get(&dp), get(&p)) == MPSIM_OK);
    OK(ops->causal_backward(&engine, math, c.scale, &dp, &dp, &p, &got));
    check("causal_backward", &dp);
    DROP(&s, &p, &dp);
}

/* Columns 12 to 19 of 30 matrices of 24. */
static const mpsim_causal_tile tile = {
    .c = {.matrices = 30, .length = 24, .scale = 0.3f}, .first = 12, .cols = 8, .size = 10, .p_scale = 0x1p+4f};
static const train_tile same_tile = {
    .matrices = 30, .length = 24, .first = 12, .cols = 8, .size = 10, .scale = 0.3f, .p_scale = 0x1p+4f};

START_TEST(test_tile_forward)
{
    static float sum[720], max[720], o[7200], lse[720];
    const mpsim_format *f = format(pairs[_i][1]);
    const mpsim_format *b32 = format("binary32");
    pool_of(_i);
    start();
    train_tensor s = any("binary32", 360, 8, 0), p = make(f, 360, 8, NULL);
    train_tensor to = any("binary32", 720, 10, 0), tm = any("binary32", 720, 1, 0);
    train_tensor ts = any("binary32", 720, 1, 0), y = make(f, 720, 10, NULL);
    train_tensor tl = make(b32, 720, 1, NULL);
    memcpy(sum, get(&ts), sizeof sum);
    memcpy(max, get(&tm), sizeof max);
    memcpy(o, get(&to), sizeof o);
    ck_assert(mpsim_causal_tile_forward(&tile, want, o, max, sum, get(&s)) == MPSIM_OK);
    OK(ops->tile_forward(&engine, &same_tile, &p, &to, &tm, &ts, &s, &got));
    check("tile_forward", &p);
    engine_same("o", get(&to), o, 7200);
    engine_same("max", get(&tm), max, 720);
    engine_same("sum", get(&ts), sum, 720);
    start();
    ck_assert(mpsim_causal_tile_end(&tile, want, lse, o, max, sum) == MPSIM_OK);
    OK(ops->tile_end(&engine, &same_tile, &y, &tl, &to, &tm, &ts, &got));
    check("tile_end", &y);
    engine_same("lse", get(&tl), lse, 720);
    DROP(&s, &p, &to, &tm, &ts, &y, &tl);
}

START_TEST(test_tile_backward)
{
    static float dots[720];
    const mpsim_format *f = format(pairs[_i][1]);
    pool_of(_i);
    start();
    train_tensor s = any("binary32", 360, 8, 0), p = make(f, 360, 8, NULL);
    train_tensor dp = any("binary32", 360, 8, 0), ds = make(f, 360, 8, NULL);
    train_tensor dy = any(pairs[_i][0], 720, 10, 0), y = any(pairs[_i][1], 720, 10, 0);
    train_tensor lse = any("binary32", 720, 1, 0), d = make(s.format, 720, 1, NULL);
    ck_assert(mpsim_causal_tile_dots(&tile, dots, get(&dy), get(&y)) == MPSIM_OK);
    OK(ops->tile_dots(&engine, &same_tile, &d, &dy, &y));
    engine_same("tile_dots", get(&d), dots, 720);
    ck_assert(mpsim_causal_tile_again(&tile, want, get(&s), get(&lse)) == MPSIM_OK);
    const train_tiled of_p = {.tile = &same_tile, .y = &p, .s = &s, .lse = &lse, .counts = &got};
    const train_tiled of_ds = {.tile = &same_tile, .y = &ds, .s = &s, .lse = &lse, .dp = &dp, .d = &d, .counts = &got};
    OK(ops->tile_again(&engine, &of_p, 1));
    check("tile_again", &p);
    start();
    ck_assert(mpsim_causal_tile_backward(&tile, want, get(&dp), get(&s), get(&lse), dots) == MPSIM_OK);
    OK(ops->tile_backward(&engine, &of_ds, 1));
    check("tile_backward", &ds);
    DROP(&s, &p, &dp, &ds, &dy, &y, &lse, &d);
}

/* ---- what is refused ---- */

START_TEST(test_errors_of_tokens)
{
    train_tensor x = any("fp16", 6, 8, 0), y = make(format("bf16"), 6, 8, NULL);
    train_tensor small = any("fp16", 4, 8, 0), none = x, empty = make(format("fp16"), 0, 8, NULL);
    const uint32_t index[6] = {0, 1, 2, 3, 4, 3};
    none.data = NULL;
    FAILS(ops->add(&engine, &y, &x, &small, NULL), "must be 6 x 8");
    FAILS(ops->add(&engine, &y, &x, NULL, NULL), "NULL");
    FAILS(ops->add_rows(&engine, &small, &x, &small, NULL), "must be 6 x 8");
    FAILS(ops->add_rows(&engine, &y, &x, &empty, NULL), "no rows");
    FAILS(ops->add_rows_backward(&engine, &empty, &x, NULL), "no rows");
    FAILS(ops->add_rows_backward(&engine, &x, &x, NULL), "result and operand must be different tensors");
    FAILS(ops->embed(&engine, &y, &small, index, NULL), "embed: number 4 is 4, beyond 4 rows");
    FAILS(ops->embed(&engine, &y, &small, NULL, NULL), "index is NULL");
    FAILS(ops->embed(&engine, &y, &none, index, NULL), "a tensor is NULL");
    FAILS(ops->embed_backward(&engine, &small, &x, index, 0, NULL), "number 4 is 4, beyond 4 rows");
    const train_tensor *ranks[2] = {&x, &small};
    mpsim_reduce r = {
        .wire = *format("bf16"), .accumulator = *format("bf16"), .result = *format("bf16"), .order = MPSIM_REDUCE_RING};
    const train_sum sum = {.y = &y, .x = ranks}, wrong = {.y = &x, .x = ranks};
    FAILS(ops->reduce(&engine, &r, &sum, 1, 2), "must be 6 x 8");
    FAILS(ops->reduce(&engine, &r, &wrong, 1, 1), "must be equal");
    FAILS(ops->reduce(&engine, &r, &sum, 1, 0), "ranks are NULL");
    FAILS(ops->reduce(&engine, NULL, &sum, 1, 1), "settings");
    r.order = 9;
    FAILS(ops->reduce(&engine, &r, &sum, 1, 1), "reduce: ");
    DROP(&x, &y, &small, &empty);
}

START_TEST(test_errors_of_heads)
{
    train_tensor x = any("fp16", 6, 8, 0), y = make(format("bf16"), 12, 3, NULL);
    train_tensor table = any("binary32", 3, 1, 0), wrong = any("fp16", 3, 1, 0);
    train_heads h = {.sequences = 2, .length = 3, .heads = 2, .size = 3, .first = 2};
    const train_turn there = {.y = &y, .x = &x, .heads = &h}, back = {.y = &x, .x = &y, .heads = &h};
    const train_turn nothing = {.y = &y, .x = &x};
    OK(ops->split(&engine, &there, 1));
    x.format = format("binary64");
    FAILS(ops->join(&engine, &back, 1), "join: ");
    x.format = format("fp16");
    FAILS(ops->split(&engine, &nothing, 1), "heads are NULL");
    h.first = 3;
    FAILS(ops->join(&engine, &back, 1), "2 heads of 3 from column 3 of 8");
    h.first = SIZE_MAX;
    FAILS(ops->join(&engine, &back, 1), "of 8");
    h.first = 0;
    h.cos = &table;
    FAILS(ops->split(&engine, &there, 1), "rotations need tables");
    h.sin = &table;
    FAILS(ops->split(&engine, &there, 1), "heads of an even size");
    h.size = 2;
    FAILS(ops->split(&engine, &there, 1), "6 x 8 and 12 x 3 of 2 sequences of 3");
    train_tensor z = make(format("bf16"), 12, 2, NULL);
    const train_turn other = {.y = &z, .x = &x, .heads = &h};
    OK(ops->split(&engine, &other, 1));
    h.sin = &wrong;
    FAILS(ops->split(&engine, &other, 1), "in binary32, not in fp16");
    FAILS(ops->add_groups(&engine, &z, &y, 3, 2, NULL), "must be 12 x 2");
    FAILS(ops->add_groups(&engine, &z, &z, 3, 1, NULL), "result and operand must be different tensors");
    train_tensor one = make(format("fp16"), 6, 2, NULL);
    FAILS(ops->add_groups(&engine, &one, &z, 4, 2, NULL), "in groups of 2 matrices of 4 rows");
    FAILS(ops->add_groups(&engine, &one, &z, 3, 0, NULL), "in groups of 0");
    DROP(&x, &y, &z, &one, &table, &wrong);
}

START_TEST(test_errors_of_rows)
{
    train_tensor x = any("fp16", 6, 8, 0), y = make(format("bf16"), 6, 8, NULL);
    train_tensor w = any("fp16", 1, 8, 0), m = make(format("binary32"), 6, 1, NULL), i = any("binary32", 6, 1, 0);
    mpsim_rownorm r = {.eps = 1e-5f};
    FAILS(ops->rownorm(&engine, NULL, &y, &m, &i, &x, &w, NULL, NULL), "settings are NULL");
    FAILS(ops->rownorm(&engine, &r, &y, &w, &i, &x, &w, NULL, NULL), "must be 6 x 1");
    FAILS(ops->rownorm(&engine, &r, &y, &m, &i, &x, &m, NULL, NULL), "must be 1 x 8");
    r.kind = 7;
    FAILS(ops->rownorm(&engine, &r, &y, &m, &i, &x, &w, NULL, NULL), "rownorm: ");
    FAILS(ops->rownorm_backward(&engine, &r, &y, &w, &m, &x, &x, &m, &i, &w, NULL), "1 x 8");
    FAILS(ops->rownorm_backward(&engine, &r, &y, &w, NULL, &x, &x, &m, &i, &w, NULL), "rownorm_gradients: ");
    FAILS(ops->rownorm_backward(&engine, &r, &y, NULL, NULL, &x, &x, &m, &i, &w, NULL), "_backward: ");
    FAILS(ops->activate(&engine, (mpsim_activation)9, NULL, &y, &x, NULL), "unknown activation 9");
    FAILS(ops->activate(&engine, MPSIM_SWIGLU, NULL, &y, &x, NULL), "must be 6 x 4");
    FAILS(ops->activate(&engine, MPSIM_GELU, format("binary64"), &y, &x, NULL), "activate: ");
    FAILS(ops->activate_backward(&engine, MPSIM_GELU, NULL, &y, &w, &x, NULL), "must be 6 x 8");
    FAILS(ops->causal(&engine, NULL, 1, &y, &x, NULL), "6 x 8 is not a stack of square matrices");
    FAILS(ops->causal_backward(&engine, NULL, 1, &y, &x, &w, NULL), "is not a stack of square matrices");
    train_tile t = {.matrices = 2, .length = 3, .first = 1, .cols = 3, .size = 8};
    FAILS(ops->tile_forward(&engine, &t, &y, &y, &m, &i, &x, NULL),
          "columns 1 to 4 are beyond the columns of 2 matrices of size 3");
    FAILS(ops->tile_end(&engine, NULL, &y, &m, &x, &m, &m, NULL), "tile is NULL");
    t.cols = 2;
    const train_tiled of_y = {.tile = &t, .y = &y, .s = &x, .lse = &m, .dp = &x, .d = &i};
    FAILS(ops->tile_again(&engine, &of_y, 1), "must be 4 x 2");
    FAILS(ops->tile_dots(&engine, &t, &i, &x, &w), "must be 6 x 8");
    FAILS(ops->tile_end(&engine, &t, &y, &m, &x, &m, &i, NULL), "in binary32, not in fp16");
    FAILS(ops->tile_backward(&engine, &of_y, 1), "must be 4 x 2");
    DROP(&x, &y, &w, &m, &i);
}

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_add, 0, PAIRS);
    tcase_add_loop_test(t, test_add_rows, 0, PAIRS);
    tcase_add_loop_test(t, test_embed, 0, 2 * PAIRS);
    tcase_add_loop_test(t, test_reduce, 0, PAIRS);
    tcase_add_loop_test(t, test_heads, 0, PAIRS);
    tcase_add_loop_test(t, test_add_groups, 0, PAIRS);
    tcase_add_loop_test(t, test_rownorm, 0, 2 * PAIRS);
    tcase_add_loop_test(t, test_activate, 0, 3 * PAIRS);
    tcase_add_loop_test(t, test_causal, 0, PAIRS);
    tcase_add_loop_test(t, test_tile_forward, 0, PAIRS);
    tcase_add_loop_test(t, test_tile_backward, 0, PAIRS);
    tcase_add_test(t, test_errors_of_tokens);
    tcase_add_test(t, test_errors_of_heads);
    tcase_add_test(t, test_errors_of_rows);
}

int main(void)
{
    return engine_main("train-engine-transformer", add);
}
