/* t-run.c -- operations on arrays in memory: those of dense rows of binary32, which other tests judge, whatever the
 * format, the strides and the threads; and nothing is touched beside the results. */
#include "support/layerinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/between.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 4, MOST = 16384, ROOM = 4 * MOST, ENTRIES = 5 };

/* How an array takes part, as the header's table has it: whole shape, columns, scalars, table, mask; a result, too; may
 * be missing. */
enum { WHOLE, COLUMN, SCALAR, TABLE, MASK, USES = 7, RESULT = 8, MISSING = 16, BOTH = 32 };

static const struct {
    const char *name;
    int n, arrays[8];
} kinds[] = {
    [MPSIM_BETWEEN_ROWNORM] = {"rownorm",
                               6,
                               {WHOLE, COLUMN | MISSING, COLUMN | MISSING, WHOLE | RESULT, SCALAR | RESULT | MISSING,
                                SCALAR | RESULT | MISSING}},
    [MPSIM_BETWEEN_ROWNORM_BACKWARD] = {"rownorm back",
                                        6,
                                        {WHOLE, WHOLE, SCALAR, SCALAR, COLUMN | MISSING, WHOLE | RESULT}},
    [MPSIM_BETWEEN_ROWNORM_GRADIENTS] =
        {"rownorm gradients", 6, {WHOLE, WHOLE, SCALAR, SCALAR, COLUMN | RESULT | MISSING, COLUMN | RESULT | MISSING}},
    [MPSIM_BETWEEN_ACTIVATE] = {"activate", 3, {WHOLE, WHOLE, WHOLE | RESULT}},
    [MPSIM_BETWEEN_ACTIVATE_BACKWARD] = {"activate back", 5, {WHOLE, WHOLE, WHOLE, WHOLE | RESULT, WHOLE | RESULT}},
    [MPSIM_BETWEEN_SOFTMAX] = {"softmax", 3, {WHOLE, MASK | MISSING, WHOLE | RESULT}},
    [MPSIM_BETWEEN_SOFTMAX_BACKWARD] = {"softmax back", 4, {WHOLE, WHOLE, MASK | MISSING, WHOLE | RESULT}},
    [MPSIM_BETWEEN_LOG_SOFTMAX] = {"log softmax", 3, {WHOLE, MASK | MISSING, WHOLE | RESULT}},
    [MPSIM_BETWEEN_LOG_SOFTMAX_BACKWARD] = {"log softmax back", 4, {WHOLE, WHOLE, MASK | MISSING, WHOLE | RESULT}},
    [MPSIM_BETWEEN_CROSS_ENTROPY] = {"cross-entropy", 3, {WHOLE, SCALAR | RESULT | MISSING, WHOLE | RESULT | MISSING}},
    [MPSIM_BETWEEN_EMBED] = {"embed", 2, {TABLE, WHOLE | RESULT}},
    [MPSIM_BETWEEN_EMBED_BACKWARD] = {"embed back", 2, {WHOLE, TABLE | RESULT | BOTH}},
    [MPSIM_BETWEEN_ADD] = {"add", 3, {WHOLE, WHOLE, WHOLE | RESULT}},
    [MPSIM_BETWEEN_MULTIPLY] = {"multiply", 3, {WHOLE, WHOLE, WHOLE | RESULT}},
    [MPSIM_BETWEEN_DROPOUT] = {"dropout", 2, {WHOLE, WHOLE | RESULT}},
    [MPSIM_BETWEEN_COLUMN_SUMS] = {"column sums", 2, {WHOLE, COLUMN | RESULT}},
    [MPSIM_BETWEEN_PERIOD_SUMS] = {"period sums", 2, {WHOLE, TABLE | RESULT | BOTH}},
    [MPSIM_BETWEEN_BATCHNORM] = {"batchnorm",
                                 8,
                                 {WHOLE, COLUMN | MISSING, COLUMN | MISSING, WHOLE | RESULT, COLUMN | RESULT | MISSING,
                                  COLUMN | RESULT | MISSING, COLUMN | RESULT | BOTH, COLUMN | RESULT | BOTH}},
    [MPSIM_BETWEEN_BATCHNORM_BACKWARD] = {"batchnorm back",
                                          8,
                                          {WHOLE, WHOLE, COLUMN, COLUMN, COLUMN | MISSING, WHOLE | RESULT | MISSING,
                                           COLUMN | RESULT | MISSING, COLUMN | RESULT | MISSING}},
    [MPSIM_BETWEEN_BATCHNORM_INFERENCE] = {"batchnorm inference",
                                           6,
                                           {WHOLE, COLUMN, COLUMN, COLUMN | MISSING, COLUMN | MISSING, WHOLE | RESULT}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* An array: its memory before and as it should be, and its numbers, dense. */
typedef struct array {
    int use;
    mpsim_strided a;
    unsigned char memory[ROOM], want[ROOM];
    size_t bytes, offset; /* of an element; of the first, in elements */
    float dense[MOST];
    uint8_t mask[MOST];
} array;

static array arrays[8];
static mpsim_between o;
static size_t rows, cols;

static size_t count(const array *x)
{
    const size_t n[] = {rows * cols, cols, rows, o.entries * cols, rows * cols};
    return n[x->use & USES];
}

/* Where element i is, counted in elements from the beginning of its memory. */
static size_t place(const array *x, size_t i)
{
    const ptrdiff_t *const s = x->a.stride;
    ptrdiff_t at = (ptrdiff_t)x->offset;
    const int use = x->use & USES;
    if (use == TABLE)
        return (size_t)(at + (ptrdiff_t)(i / cols) * s[0] + (ptrdiff_t)(i % cols) * s[o.dims - 1]);
    if (use != SCALAR) {
        at += (ptrdiff_t)(i % cols) * s[o.dims - 1];
        i /= cols;
    }
    for (size_t d = o.dims - 1u; use != COLUMN && d-- > 0; i /= o.shape[d])
        at += (ptrdiff_t)(i % o.shape[d]) * s[d];
    return (size_t)at;
}

/* Strides of a random order of the dimensions that the array has, with gaps, some of them backwards. */
static void lay(array *x, uint64_t *state)
{
    size_t order[DIMS], step = 1, n = 0, plain = test_random(state) % 3 == 0;
    const int use = x->use & USES;
    memset(x->a.stride, 0, sizeof x->a.stride);
    x->offset = 0;
    for (size_t d = o.dims; d-- > 0;)
        if (use == WHOLE || use == MASK ||
            (use == SCALAR ? d + 1 < o.dims : d + 1 == o.dims || (use == TABLE && d == 0)))
            order[n++] = d;
    for (size_t i = 0; i < n; i++) {
        const size_t k = plain ? i : i + test_random(state) % (n - i), d = order[k],
                     size = use == TABLE && d == 0 && o.dims > 1 ? o.entries : o.shape[d];
        order[k] = order[i];
        x->a.stride[d] = (ptrdiff_t)step;
        if (!plain && test_random(state) % 4 == 0) {
            x->a.stride[d] = -(ptrdiff_t)step;
            x->offset += size ? (size - 1) * step : 0;
        }
        if (!plain && !(x->use & RESULT) && test_random(state) % 8 == 0)
            x->a.stride[d] = 0; /* repeated */
        step *= size;
        step += plain ? 0 : test_random(state) % 3;
    }
}

static uint64_t code_at(const array *x, const unsigned char *memory, size_t i)
{
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    memcpy(&u8, memory + i * x->bytes, 1);
    if (x->bytes == 1)
        return u8;
    memcpy(&u16, memory + i * x->bytes, 2);
    if (x->bytes == 2)
        return u16;
    memcpy(&u32, memory + i * x->bytes, 4);
    return u32;
}

static void put(array *x, unsigned char *memory, size_t i, float v)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const uint64_t code = mpsim_encode_f32(x->a.format ? x->a.format : mpsim_format_find("binary32"), &r, v, 0, NULL);
    const uint8_t u8 = (uint8_t)code;
    const uint16_t u16 = (uint16_t)code;
    const uint32_t u32 = (uint32_t)code;
    memcpy(memory + i * x->bytes,
           x->bytes == 1   ? (const void *)&u8
           : x->bytes == 2 ? (const void *)&u16
                           : (const void *)&u32,
           x->bytes);
}

static float number_at(const array *x, const unsigned char *memory, size_t i)
{
    return (float)mpsim_decode(x->a.format ? x->a.format : mpsim_format_find("binary32"), code_at(x, memory, i));
}

static void make(array *x, int use, uint64_t *state)
{
    static const char *const formats[] = {NULL, "binary32", "bf16", "fp16", "e4m3"};
    static float v[ROOM];
    const char *name = formats[test_random(state) % 5];
    x->use = use;
    x->a.format = layer_format(name);
    x->bytes = (use & USES) == MASK ? 1 : x->a.format ? mpsim_format_code_bytes(x->a.format) : sizeof(float);
    lay(x, state);
    layer_fill(v, MOST, (int)(test_random(state) % 8 ? LAYER_PLAIN : test_random(state) % LAYER_KINDS), state);
    for (size_t i = 0; i < MOST; i++)
        put(x, x->memory, i, v[i]);
    for (size_t i = 0; i < MOST && (use & USES) == MASK; i++)
        x->memory[i] = (uint8_t)(test_random(state) % 3);
    memcpy(x->want, x->memory, sizeof x->want);
    x->a.data = x->memory + x->offset * x->bytes;
    for (size_t i = 0; i < count(x); i++) {
        if ((use & USES) == MASK)
            x->mask[i] = x->memory[place(x, i)];
        else
            x->dense[i] = number_at(x, x->memory, place(x, i));
    }
}

/* What is missing is 1 everywhere, or not wanted. */
static void leave_out(array *x, int ones)
{
    x->a.data = NULL;
    for (size_t i = 0; i < cols; i++)
        x->dense[i] = ones ? 1 : 0;
}

static float *dense(size_t k, int optional)
{
    return arrays[k].a.data || !optional ? arrays[k].dense : NULL;
}

static void gates(float *to, const float *gate, const float *value)
{
    for (size_t r = 0; r < rows; r++) {
        memcpy(to + 2 * r * cols, gate + r * cols, cols * sizeof *to);
        memcpy(to + (2 * r + 1) * cols, value + r * cols, cols * sizeof *to);
    }
}

static mpsim_status activate(int back)
{
    static float x[2 * MOST], dx[2 * MOST];
    const mpsim_activation kind = (mpsim_activation)o.activation;
    float *const a = arrays[0].dense, *const b = arrays[1].dense, *const c = arrays[2].dense;
    if (kind != MPSIM_SWIGLU)
        return back ? mpsim_activate_backward(kind, o.math, o.f, arrays[3].dense, a, b, rows, cols)
                    : mpsim_activate(kind, o.math, o.f, c, a, rows, cols);
    if (!back) {
        gates(x, a, b);
        return mpsim_activate(kind, o.math, o.f, c, x, rows, cols);
    }
    gates(x, b, c);
    const mpsim_status s = mpsim_activate_backward(kind, o.math, o.f, dx, a, x, rows, cols);
    for (size_t i = 0; i < rows * cols; i++) {
        arrays[3].dense[i] = dx[i / cols * 2 * cols + i % cols];
        arrays[4].dense[i] = dx[(i / cols * 2 + 1) * cols + i % cols];
    }
    return s;
}

static uint32_t index32[MOST];
static uint64_t want_found[2];

static mpsim_status plain(void)
{
    const mpsim_rownorm r = {rows, cols, o.norm, o.eps, o.math, o.f};
    const mpsim_batchnorm b = {rows, cols, o.eps, o.momentum, o.math, o.f};
    const mpsim_softmax c = {rows, cols, o.length, 0, o.scale, o.math, o.f};
    float *x[8];
    const uint8_t *mask[8];
    for (size_t k = 0; k < 8; k++) {
        x[k] = arrays[k].dense;
        mask[k] = arrays[k].a.data ? arrays[k].mask : NULL;
    }
    switch ((mpsim_between_kind)o.kind) {
    case MPSIM_BETWEEN_ROWNORM:
        return mpsim_rownorm_forward(&r, x[3], x[4], x[5], x[0], x[1], dense(2, 1));
    case MPSIM_BETWEEN_ROWNORM_BACKWARD:
        return mpsim_rownorm_backward(&r, x[5], NULL, NULL, x[0], x[1], x[2], x[3], x[4]);
    case MPSIM_BETWEEN_ROWNORM_GRADIENTS:
        return mpsim_rownorm_backward(&r, NULL, x[4], x[5], x[0], x[1], x[2], x[3], x[0]);
    case MPSIM_BETWEEN_ACTIVATE:
        return activate(0);
    case MPSIM_BETWEEN_ACTIVATE_BACKWARD:
        return activate(1);
    case MPSIM_BETWEEN_SOFTMAX:
        return mpsim_softmax_rows(&c, x[2], x[0], mask[1]);
    case MPSIM_BETWEEN_SOFTMAX_BACKWARD:
        return mpsim_softmax_backward(&c, x[3], x[0], x[1], mask[2]);
    case MPSIM_BETWEEN_LOG_SOFTMAX:
        return mpsim_log_softmax(&c, x[2], x[0], mask[1]);
    case MPSIM_BETWEEN_LOG_SOFTMAX_BACKWARD:
        return mpsim_log_softmax_backward(&c, x[3], x[0], x[1], mask[2]);
    case MPSIM_BETWEEN_CROSS_ENTROPY:
        return mpsim_cross_entropy(o.math, o.f, rows, cols, x[0], index32, 1u << 31, o.scale, x[1], x[2],
                                   &want_found[0], &want_found[1]);
    case MPSIM_BETWEEN_EMBED:
        return mpsim_embed(o.f, x[1], x[0], index32, rows, cols, o.entries);
    case MPSIM_BETWEEN_EMBED_BACKWARD:
        return mpsim_embed_backward(o.math, x[1], x[0], index32, rows, cols, 0, o.entries, o.added);
    case MPSIM_BETWEEN_ADD:
        return mpsim_add_array(o.math, o.f, x[2], x[0], x[1], rows * cols);
    case MPSIM_BETWEEN_MULTIPLY:
        return mpsim_multiply_array(o.math, o.f, x[2], x[0], x[1], rows * cols);
    case MPSIM_BETWEEN_DROPOUT:
        return mpsim_dropout(o.math, o.f, o.p, &o.rng, x[1], x[0], rows * cols);
    case MPSIM_BETWEEN_COLUMN_SUMS:
        return mpsim_column_sums(o.math, o.f, x[1], x[0], rows, cols, cols);
    case MPSIM_BETWEEN_PERIOD_SUMS:
        return mpsim_period_sums(o.math, o.f, x[1], x[0], rows, cols, cols, o.entries, o.added);
    case MPSIM_BETWEEN_BATCHNORM:
        return mpsim_batchnorm_forward(&b, x[3], x[4], x[5], dense(6, 1), dense(7, 1), x[0], x[1], x[2]);
    case MPSIM_BETWEEN_BATCHNORM_BACKWARD:
        return mpsim_batchnorm_backward(&b, x[5], x[6], x[7], x[0], x[1], x[2], x[3], x[4]);
    default:
        return mpsim_batchnorm_inference(&b, x[5], x[0], x[1], x[2], x[3], x[4]);
    }
}

static void choose(unsigned kind, uint64_t *state)
{
    static int64_t index[MOST];
    static const size_t wide[] = {0, 1, 2, 3, 17, 40, 300};
    memset(&o, 0, sizeof o);
    o.kind = (uint8_t)kind;
    o.dims = (uint8_t)(1 + test_random(state) % DIMS);
    rows = 1;
    for (size_t d = 0; d < o.dims; d++)
        o.shape[d] = d + 1u == o.dims ? wide[test_random(state) % 7] : 1 + test_random(state) % 3;
    if (test_random(state) % 6 == 0 && o.dims > 1)
        o.shape[0] = test_random(state) % 40;
    for (size_t d = 0; d + 1u < o.dims; d++)
        rows *= o.shape[d];
    cols = o.shape[o.dims - 1];
    if (rows * cols > MOST / 32)
        cols = o.shape[o.dims - 1] = 3;
    const int activates = kind == MPSIM_BETWEEN_ACTIVATE || kind == MPSIM_BETWEEN_ACTIVATE_BACKWARD;
    const int loss = kind == MPSIM_BETWEEN_CROSS_ENTROPY;
    o.norm = (uint8_t)(test_random(state) % 2);
    o.activation = activates ? (uint8_t)(test_random(state) % (MPSIM_EXP + 1)) : 0;
    o.added = test_random(state) % 2;
    o.length = test_random(state) % 2 ? test_random(state) % 7 : 0;
    o.entries = o.dims == 1 ? 1 : ENTRIES;
    o.eps = 1e-5f;
    o.momentum = 0.125f;
    o.scale = 0.3f;
    o.p = 0.25;
    o.rng = (mpsim_rng){1, 2, test_random(state)};
    o.math = layer_format(layer_formats[test_random(state) % LAYER_MATHS]);
    o.f = layer_format(test_random(state) % 2 ? "fp16" : NULL);
    o.ignores = kind != MPSIM_BETWEEN_EMBED && test_random(state) % 2;
    o.ignored = -100;
    o.index = index;
    for (size_t i = 0; i < rows; i++) {
        const uint64_t entries = loss ? (cols ? cols : 1) : o.entries;
        index32[i] = (uint32_t)(test_random(state) % entries);
        if (o.ignores && test_random(state) % 4 == 0)
            index32[i] = 1u << 31;
        index[i] = index32[i] == 1u << 31 ? -100 : (int64_t)index32[i];
    }
}

static void backwards(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    (void)self;
    while (n-- > 0)
        task(n, job);
}

static const mpsim_pool pool = {.run = backwards};

static void compare(const char *name)
{
    for (int k = 0; k < kinds[o.kind].n; k++) {
        const array *x = &arrays[k];
        for (size_t i = 0; i < ROOM / x->bytes; i++) {
            if (code_at(x, x->memory, i) == code_at(x, x->want, i) || (x->use & USES) == MASK)
                continue;
            const float a = number_at(x, x->memory, i), b = number_at(x, x->want, i);
            ck_assert_msg(isnan(a) && isnan(b), "%s, %zu x %zu, array %d, element %zu of its memory: %a, not %a", name,
                          rows, cols, k, i, (double)a, (double)b);
        }
    }
}

static void one(unsigned kind, uint64_t *state)
{
    choose(kind, state);
    for (int k = 0; k < kinds[kind].n; k++)
        make(&arrays[k], kinds[kind].arrays[k], state);
    for (int k = 0; k < kinds[kind].n; k++)
        if (kinds[kind].arrays[k] & MISSING && test_random(state) % 3 == 0)
            leave_out(&arrays[k], kind == MPSIM_BETWEEN_BATCHNORM || kind == MPSIM_BETWEEN_BATCHNORM_INFERENCE
                                      ? k == (kind == MPSIM_BETWEEN_BATCHNORM ? 1 : 3)
                                      : 1);
    if (kind == MPSIM_BETWEEN_ACTIVATE && o.activation != MPSIM_SWIGLU)
        arrays[1].a.data = NULL;
    if (kind == MPSIM_BETWEEN_ACTIVATE_BACKWARD && o.activation != MPSIM_SWIGLU)
        arrays[2].a.data = arrays[4].a.data = NULL;
    if (kind == MPSIM_BETWEEN_BATCHNORM && test_random(state) % 2)
        arrays[6].a.data = arrays[7].a.data = NULL;
    mpsim_strided given[8];
    for (size_t k = 0; k < 8; k++)
        given[k] = arrays[k].a;
    uint64_t found[2] = {7, 7};
    want_found[0] = want_found[1] = 0;
    /* Columns of no rows: what a plain call would refuse or leave alone is left alone here, too. */
    const mpsim_status want = plain(),
                       s = mpsim_between_run(&o, given, 8, found, test_random(state) % 2 ? &pool : NULL);
    ck_assert_msg(s == want || cols == 0 || rows == 0, "%s, %zu x %zu: %s, not %s", kinds[kind].name, rows, cols,
                  mpsim_status_string(s), mpsim_status_string(want));
    for (int k = 0; s == MPSIM_OK && k < kinds[kind].n; k++)
        for (size_t i = 0; kinds[kind].arrays[k] & RESULT && arrays[k].a.data && i < count(&arrays[k]); i++)
            if (rows > 0 || (arrays[k].use & USES) != SCALAR)
                if (cols > 0)
                    put(&arrays[k], arrays[k].want, place(&arrays[k], i), arrays[k].dense[i]);
    compare(kinds[kind].name);
    if (kind == MPSIM_BETWEEN_CROSS_ENTROPY && s == MPSIM_OK && cols > 0)
        ck_assert(found[0] == want_found[0] && found[1] == want_found[1]);
}

CASE("numbers", 60);

TEST(as_dense_rows)
{
    uint64_t state = test_part_seed(); /* other cases every day */
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (size_t round = 0; round < test_scaled(75); round++)
            one(kind, &state);
}

/* Long rows and many of them: pieces of threads, parts of columns. */
TEST(many_parts)
{
    static float x[1 << 18], y[1 << 18], w[1 << 18], a[600], b[600];
    uint64_t state = test_seed() + 1;
    static const size_t shapes[][2] = {{1 << 14, 16}, {500, 500}, {3, 70000}};
    layer_fill(x, 1 << 18, LAYER_PLAIN, &state);
    for (size_t k = 0; k < 3; k++) {
        const size_t n = shapes[k][0], c = shapes[k][1];
        mpsim_between m = {.kind = MPSIM_BETWEEN_SOFTMAX, .dims = 2, .shape = {n, c}, .scale = 1};
        const ptrdiff_t s = (ptrdiff_t)c;
        mpsim_strided all[3] = {{NULL, x, {s, 1}}, {NULL, NULL, {0}}, {NULL, y, {s, 1}}};
        const mpsim_softmax plain_rows = {.rows = n, .cols = c, .scale = 1};
        ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, &pool), MPSIM_OK);
        ck_assert_int_eq(mpsim_softmax_rows(&plain_rows, w, x, NULL), MPSIM_OK);
        ck_assert(memcmp(y, w, n * c * sizeof *y) == 0);
        m.kind = MPSIM_BETWEEN_COLUMN_SUMS;
        all[1] = (mpsim_strided){NULL, a, {0, 1}};
        if (c <= 600) {
            ck_assert_int_eq(mpsim_between_run(&m, all, 2, NULL, &pool), MPSIM_OK);
            ck_assert_int_eq(mpsim_column_sums(NULL, NULL, b, x, n, c, c), MPSIM_OK);
            ck_assert(memcmp(a, b, c * sizeof *a) == 0);
        }
    }
}

/* ---- how arrays lie ---- */

/* An array of 2 x n x c elements: strides, and where the first one is. */
typedef struct lying {
    ptrdiff_t stride[3];
    size_t first;
} lying;

enum { LYING = 7, HELD = 1 << 16, UNTOUCHED = 0xa5 };

static lying lies(int which, size_t rows_of, size_t cols_of)
{
    const ptrdiff_t n = (ptrdiff_t)rows_of, c = (ptrdiff_t)cols_of, apart = 2 * n + 3;
    const lying all[LYING] = {{{n * c, c, 1}, 0},
                              {{n, 1, apart}, 0}, /* columns side by side, with gaps */
                              {{n, 1, -apart}, (size_t)((c - 1) * apart)},
                              {{c * (n + 2), 1, n + 2}, 0}, /* of each matrix */
                              {{n * (c + 5), c + 5, 1}, 0}, /* rows with gaps */
                              {{n * (c + 5), -(c + 5), 1}, (size_t)((n - 1) * (c + 5))},
                              {{2 * n, 2, 4 * n + 1}, 0}};
    return all[which];
}

static size_t place_of(const lying *l, const size_t *shape, size_t i)
{
    const ptrdiff_t col = (ptrdiff_t)(i % shape[2]), row = (ptrdiff_t)(i / shape[2] % shape[1]),
                    matrix = (ptrdiff_t)(i / shape[2] / shape[1]);
    return (size_t)((ptrdiff_t)l->first + matrix * l->stride[0] + row * l->stride[1] + col * l->stride[2]);
}

static mpsim_strided strided_of(const lying *l, const mpsim_format *f, unsigned char *memory, size_t bytes)
{
    return (mpsim_strided){
        .format = f, .data = memory + l->first * bytes, .stride = {l->stride[0], l->stride[1], l->stride[2]}};
}

static const struct {
    mpsim_between_kind kind;
    size_t result;
    int masks;
} some_kinds[] = {{MPSIM_BETWEEN_ACTIVATE, 2, 0},
                  {MPSIM_BETWEEN_SOFTMAX, 2, 1},
                  {MPSIM_BETWEEN_ROWNORM, 3, 0},
                  {MPSIM_BETWEEN_BATCHNORM, 3, 0}};

/* One of these kinds on an operand and a result that lie as numbers x and y of the list say; the result's codes, row-major. */
static void run_lying(size_t k, const mpsim_format *f, const size_t *shape, const unsigned char *codes, int x, int y,
                      unsigned char *to)
{
    static unsigned char from[4 * HELD], result[4 * HELD], mask[HELD];
    const size_t n = 2 * shape[1] * shape[2], bytes = f ? mpsim_format_code_bytes(f) : 4;
    const lying a = lies(x, shape[1], shape[2]), b = lies(y, shape[1], shape[2]);
    mpsim_between m = {.kind = (uint8_t)some_kinds[k].kind,
                       .dims = 3,
                       .shape = {2, shape[1], shape[2]},
                       .activation = MPSIM_GELU_TANH,
                       .eps = 1e-5f,
                       .scale = 0.5f};
    mpsim_strided all[8] = {[0] = strided_of(&a, f, from, bytes)};
    if (some_kinds[k].masks)
        all[1] = strided_of(&a, NULL, mask, 1);
    all[some_kinds[k].result] = strided_of(&b, f, result, bytes);
    memset(result, UNTOUCHED, sizeof result);
    for (size_t i = 0; i < n; i++) {
        memcpy(from + place_of(&a, shape, i) * bytes, codes + i * bytes, bytes);
        mask[place_of(&a, shape, i)] = i % 7 == 0;
    }
    ck_assert_int_eq(mpsim_between_run(&m, all, 8, NULL, x % 2 ? &pool : NULL), MPSIM_OK);
    for (size_t i = 0; i < n; i++) {
        memcpy(to + i * bytes, result + place_of(&b, shape, i) * bytes, bytes);
        memset(result + place_of(&b, shape, i) * bytes, UNTOUCHED, bytes);
    }
    size_t beside = 0;
    while (beside < sizeof result && result[beside] == UNTOUCHED)
        beside++;
    ck_assert_msg(beside == sizeof result, "kind %zu, arrays %d and %d: byte %zu beside the result", k, x, y, beside);
}

/* Columns that lie side by side are turned, short rows are brought together: the codes are those of dense rows. */
TEST(however_they_lie)
{
    static const size_t shapes[][3] = {{2, 50, 37}, {2, 17, 300}, {2, 3, 5}, {2, 64, 64}, {2, 1, 20}};
    static const char *const formats[] = {NULL, "bf16", "e4m3", "binary32"};
    static float values[HELD];
    static unsigned char codes[4 * HELD], want[4 * HELD], got[4 * HELD];
    uint64_t state = test_seed() + 2;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    layer_fill(values, HELD, LAYER_PLAIN, &state);
    for (size_t k = 0; k < sizeof some_kinds / sizeof *some_kinds; k++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const mpsim_format *f = layer_format(formats[(k + s) % 4]);
            const size_t n = 2 * shapes[s][1] * shapes[s][2];
            ck_assert_int_eq(
                mpsim_encode_array_f32(f ? f : mpsim_format_find("binary32"), &r, NULL, codes, values, n, NULL),
                MPSIM_OK);
            run_lying(k, f, shapes[s], codes, 0, 0, want);
            for (int x = 0; x < LYING; x++) {
                run_lying(k, f, shapes[s], codes, x, (x + (int)s) % LYING, got);
                ck_assert_msg(memcmp(got, want, n * (f ? mpsim_format_code_bytes(f) : 4)) == 0,
                              "kind %zu, %zu x %zu, arrays %d and %d", k, shapes[s][1], shapes[s][2], x,
                              (x + (int)s) % LYING);
            }
        }
}

CASE("contract", 10);

TEST(errors_touch_nothing)
{
    float x[4] = {1, 2, 3, 4}, y[4] = {9, 9, 9, 9};
    const int64_t at[2] = {0, 2};
    mpsim_format bad = *mpsim_format_find("fp16");
    bad.bits = 1;
    mpsim_strided all[3] = {{NULL, x, {2, 1}}, {NULL, x, {2, 1}}, {NULL, y, {2, 1}}};
    const mpsim_between add = {.kind = MPSIM_BETWEEN_ADD, .dims = 2, .shape = {2, 2}};
    mpsim_between m = add;
    const mpsim_pool none = {NULL, NULL, NULL};
    ck_assert_int_eq(mpsim_between_run(NULL, all, 3, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_between_run(&m, NULL, 3, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_between_run(&m, all, 2, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, &none), MPSIM_EINVAL);
    m.kind = KINDS;
    ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, NULL), MPSIM_EINVAL);
    m = add;
    m.dims = 0;
    ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, NULL), MPSIM_EINVAL);
    m.dims = MPSIM_BETWEEN_DIMS + 1;
    ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, NULL), MPSIM_EINVAL);
    m = add;
    m.math = mpsim_format_find("binary64");
    ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, NULL), MPSIM_ERANGE);
    all[0].format = &bad;
    ck_assert_int_eq(mpsim_between_run(&add, all, 3, NULL, NULL), MPSIM_EINVAL);
    all[0].format = mpsim_format_find("binary64");
    ck_assert_int_eq(mpsim_between_run(&add, all, 3, NULL, NULL), MPSIM_ERANGE);
    all[0] = (mpsim_strided){NULL, NULL, {2, 1}};
    ck_assert_int_eq(mpsim_between_run(&add, all, 3, NULL, NULL), MPSIM_EINVAL);
    all[0].data = x;
    m = (mpsim_between){.kind = MPSIM_BETWEEN_CROSS_ENTROPY, .dims = 2, .shape = {2, 2}, .scale = 1, .index = at};
    ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, NULL), MPSIM_EINVAL);
    m.index = NULL;
    ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, NULL), MPSIM_EINVAL);
    m = (mpsim_between){.kind = MPSIM_BETWEEN_ACTIVATE, .activation = MPSIM_SWIGLU, .dims = 2, .shape = {2, 2}};
    all[1].data = NULL;
    ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, NULL), MPSIM_EINVAL);
    m.activation = MPSIM_EXP + 1;
    ck_assert_int_eq(mpsim_between_run(&m, all, 3, NULL, NULL), MPSIM_EINVAL);
    for (size_t i = 0; i < 4; i++)
        ck_assert(y[i] == 9);
}

TEST_MAIN("layer-run");
