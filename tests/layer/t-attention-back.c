/* t-attention-back.c -- the gradients of attention: every bit as the formulas of mpsim/attention.h have it
 * (oracle/attention.h), as the tiles of the trainer, and near binary64. */
#include "oracle/attention.h"
#include "oracle/layer.h"
#include "support/layerinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <string.h>

enum { QUERIES = ORACLE_QUERIES, KEYS = ORACLE_KEYS, DIM = ORACLE_DIM, SIZE = ORACLE_SIZE, MOST = KEYS * DIM };

typedef struct numbers {
    const mpsim_format *format;
    float x[MOST];
    unsigned char codes[MOST * 8];
} numbers;

static void fill(numbers *n, const char *format, double deviation, uint64_t *state)
{
    mpsim_rounding r;
    n->format = mpsim_format_find(format);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < MOST; i += 2) {
        double pair[2];
        test_normal_pair(state, pair);
        n->x[i] = (float)(deviation * pair[0]);
        n->x[i + 1] = (float)(deviation * pair[1]);
    }
    mpsim_encode_array_f32(n->format, &r, NULL, n->codes, n->x, MOST, NULL);
    mpsim_decode_array_f32(n->format, n->x, n->codes, MOST);
}

static mpsim_matrix matrix(const numbers *n, size_t columns)
{
    return (mpsim_matrix){n->format, n->codes, columns, 0};
}

static void backwards(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    (void)self;
    while (n-- > 0)
        task(n, job);
}
static const mpsim_pool pool = {.run = backwards};

static numbers q, k, v, dy;
static float y[QUERIES * SIZE], lse[QUERIES], d[QUERIES];
static oracle_gradients got, want;
static mpsim_model model;
static mpsim_attention a;
static mpsim_attention_gradient g;

static void set(const char *name, const char *format, size_t dim)
{
    ck_assert_int_eq(mpsim_model_parse(&model, name), MPSIM_OK);
    mpsim_attention_init(&a, dim);
    a.scores = a.context = &model;
    a.p.format = *mpsim_format_find(format);
    mpsim_attention_gradient_init(&g, &a);
    g.dp = g.dvalue = g.dkey = g.dquery = &model;
    g.p.format = g.ds.format = *mpsim_format_find(format);
}

static mpsim_status forward(const mpsim_attention_shape *s)
{
    const mpsim_matrix mq = matrix(&q, s->dim), mk = matrix(&k, s->dim), mv = matrix(&v, s->size);
    return mpsim_attention_forward(&a, s, &mq, &mk, &mv, y, lse, NULL, NULL, NULL, NULL);
}

static mpsim_status backward(const mpsim_attention_shape *s, const float *dots, const mpsim_pool *threads)
{
    const mpsim_matrix mq = matrix(&q, s->dim), mk = matrix(&k, s->dim), mv = matrix(&v, s->size),
                       m = matrix(&dy, s->size);
    memset(&got, 0xff, sizeof got); /* what is there is not read */
    return mpsim_attention_backward(&g, s, &mq, &mk, &mv, &m, dots ? NULL : y, dots, lse, got.dq, got.dk, got.dv, NULL,
                                    threads);
}

static void dots(const mpsim_attention_shape *s)
{
    const oracle_format *f = oracle_format_find(NULL);
    for (size_t i = 0; i < s->queries; i++) {
        float term[SIZE];
        for (size_t c = 0; c < s->size; c++)
            term[c] = oracle_mul(f, dy.x[i * s->size + c], y[i * s->size + c]);
        d[i] = oracle_sum(f, term, s->size, 1, 32);
    }
}

static void equal(const char *name, const mpsim_attention_shape *s)
{
    layer_equal("dq", name, "", got.dq, want.dq, s->queries * s->dim);
    layer_equal("dk", name, "", got.dk, want.dk, s->keys * s->dim);
    layer_equal("dv", name, "", got.dv, want.dv, s->keys * s->size);
}

/* ---- the formulas, operation by operation ---- */

static const oracle_products settings[] = {
    {"fma", "bf16", NULL, "bf16"},
    {"hopper-bf16-fp32", "bf16", NULL, "bf16"},
    {"ampere-bf16-fp32:result=fp16", "bf16", "fp16", "bf16"},
    {"hopper-fp16-fp32", "fp16", NULL, "fp16"},
    {"hopper-wgmma-fp8-fp32", "e4m3", NULL, "e4m3"},
};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

CASE("gradients", 30);

TEST(as_the_formulas)
{
    static uint8_t mask[QUERIES * KEYS];
    uint64_t state = test_part_seed();
    for (size_t round = 0; round < SETTINGS * 2 + test_scaled(60); round++) {
        const oracle_products *by = &settings[round % SETTINGS];
        const uint64_t bits = test_random(&state);
        const mpsim_attention_shape s = {test_random(&state) % (QUERIES + 1), test_random(&state) % (KEYS + 1),
                                         1 + test_random(&state) % DIM, 1 + test_random(&state) % SIZE};
        set(by->model, by->p, s.dim);
        a.tile = bits & 1 ? test_random(&state) % (KEYS + 10) : 16;
        a.causal = bits >> 1 & 1;
        a.reverse = bits >> 2 & 1;
        a.exp2 = bits >> 3 & 1;
        g.scale_last = bits >> 4 & 1;
        g.f = bits >> 5 & 1 ? mpsim_format_find("bf16") : NULL;
        a.softmax = bits >> 6 & 3 ? NULL : mpsim_format_find(bits >> 8 & 1 ? "bf16" : "fp16");
        a.left = bits >> 9 & 1 ? SIZE_MAX : test_random(&state) % 30;
        a.right = bits >> 10 & 1 ? SIZE_MAX : test_random(&state) % 30;
        for (size_t j = 0; j < QUERIES * KEYS; j++)
            mask[j] = (test_random(&state) >> 60) < 11;
        a.mask = bits >> 11 & 3 ? NULL : mask;
        numbers *const all[] = {&q, &k, &v, &dy};
        for (size_t i = 0; i < 4; i++)
            fill(all[i], by->operand, 1, &state);
        ck_assert_int_eq(forward(&s), MPSIM_OK);
        dots(&s);
        const oracle_head h = {&a, s, by, q.x, k.x, v.x};
        oracle_attention_backward(&h, &g, dy.x, lse, d, &want);
        ck_assert_int_eq(backward(&s, bits >> 13 & 1 ? d : NULL, bits >> 14 & 1 ? &pool : NULL), MPSIM_OK);
        equal(by->model, &s);
    }
}

/* ---- the trainer's tiles: causal, square; products by mpsim_gemm, rows by mpsim_causal_tile_* ---- */

enum { LENGTH = QUERIES, TILE = 16 };

static void multiply(size_t rows, size_t cols, size_t depth, const void *x, const mpsim_format *fx, size_t x_stride,
                     int x_turned, const void *z, const mpsim_format *fz, size_t z_stride, int z_turned, float *to)
{
    const mpsim_matrix ma = {fx, x, x_stride, x_turned}, mb = {fz, z, z_stride, z_turned};
    ck_assert_int_eq(mpsim_gemm(&model, rows, cols, depth, &ma, &mb, NULL, to, cols, NULL, NULL), MPSIM_OK);
}

static void trainers_tile(size_t first, size_t n)
{
    static float s[LENGTH * TILE], p[LENGTH * TILE], dp[LENGTH * TILE], ds[LENGTH * TILE], part[LENGTH * DIM];
    static unsigned char pc[LENGTH * TILE * 2], dsc[LENGTH * TILE * 2];
    const mpsim_format *const f = q.format;
    const size_t rows = LENGTH - first;
    const mpsim_causal_tile t = {{1, LENGTH, a.scale, NULL, f}, first, n, SIZE, 1};
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const unsigned char *const qs = q.codes + first * DIM * 2, *const ks = k.codes + first * DIM * 2;
    const unsigned char *const vs = v.codes + first * SIZE * 2, *const gs = dy.codes + first * SIZE * 2;
    multiply(rows, n, DIM, qs, f, DIM, 0, ks, f, DIM, 1, s);
    multiply(rows, n, SIZE, gs, f, SIZE, 0, vs, f, SIZE, 1, dp);
    ck_assert_int_eq(mpsim_causal_tile_again(&t, p, s, lse), MPSIM_OK);
    ck_assert_int_eq(mpsim_causal_tile_backward(&t, ds, dp, s, lse, d), MPSIM_OK);
    mpsim_encode_array_f32(f, &r, NULL, pc, p, rows * n, NULL);
    mpsim_encode_array_f32(f, &r, NULL, dsc, ds, rows * n, NULL);
    multiply(n, SIZE, rows, pc, f, n, 1, gs, f, SIZE, 0, want.dv + first * SIZE);
    multiply(n, DIM, rows, dsc, f, n, 1, qs, f, DIM, 0, want.dk + first * DIM);
    multiply(rows, DIM, n, dsc, f, n, 0, ks, f, DIM, 0, part);
    for (size_t i = 0; i < rows * DIM; i++)
        want.dq[first * DIM + i] += part[i];
}

TEST(as_the_trainer)
{
    uint64_t state = test_seed();
    static const char *const models[] = {"fma", "hopper-bf16-fp32", "ampere-bf16-fp32", "avx512-bf16-fp32", "exact"};
    const mpsim_attention_shape s = {LENGTH, LENGTH, DIM, SIZE};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        set(models[m], "bf16", DIM);
        model.result.format = *mpsim_format_find("binary32");
        a.causal = 1;
        a.tile = TILE;
        numbers *const all[] = {&q, &k, &v, &dy};
        for (size_t i = 0; i < 4; i++)
            fill(all[i], "bf16", 1, &state);
        ck_assert_int_eq(forward(&s), MPSIM_OK);
        const mpsim_causal_tile t = {{1, LENGTH, a.scale, NULL, NULL}, 0, TILE, SIZE, 1};
        ck_assert_int_eq(mpsim_causal_tile_dots(&t, d, dy.x, y), MPSIM_OK);
        memset(&want, 0, sizeof want);
        for (size_t first = 0; first < LENGTH; first += TILE)
            trainers_tile(first, LENGTH - first < TILE ? LENGTH - first : TILE);
        ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_OK);
        equal(models[m], &s);
    }
}

/* ---- binary64 ---- */

static double p64[QUERIES][KEYS], ds64[QUERIES][KEYS];

static void in_binary64(const mpsim_attention_shape *s, size_t i)
{
    double z = 0, dot = 0, dp[KEYS];
    for (size_t j = 0; j < s->keys; j++) {
        double x = 0;
        dp[j] = 0;
        for (size_t c = 0; c < s->dim; c++)
            x += (double)q.x[i * s->dim + c] * (double)k.x[j * s->dim + c];
        for (size_t c = 0; c < s->size; c++)
            dp[j] += (double)dy.x[i * s->size + c] * (double)v.x[j * s->size + c];
        z += p64[i][j] = exp((double)a.scale * x);
    }
    for (size_t j = 0; j < s->keys; j++)
        dot += (p64[i][j] /= z) * dp[j];
    for (size_t j = 0; j < s->keys; j++)
        ds64[i][j] = p64[i][j] * (dp[j] - dot) * (double)a.scale;
}

TEST(binary64_is_near)
{
    uint64_t state = test_seed() + 1;
    const mpsim_attention_shape s = {QUERIES, KEYS, DIM, SIZE};
    set("fma", "binary32", DIM);
    numbers *const all[] = {&q, &k, &v, &dy};
    for (size_t i = 0; i < 4; i++)
        fill(all[i], "binary32", 1, &state);
    for (int how = 0; how < 4; how++) {
        a.exp2 = (uint8_t)(how & 1);
        g.scale_last = (uint8_t)(how >> 1);
        ck_assert_int_eq(forward(&s), MPSIM_OK);
        ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_OK);
        double worst = 0;
        for (size_t i = 0; i < QUERIES; i++)
            in_binary64(&s, i);
        for (size_t j = 0; j < KEYS; j++)
            for (size_t c = 0; c < DIM; c++) {
                double dk = 0, dv = 0, dq = 0;
                for (size_t i = 0; i < QUERIES; i++) {
                    dk += ds64[i][j] * (double)q.x[i * DIM + c];
                    dv += c < SIZE ? p64[i][j] * (double)dy.x[i * SIZE + c] : 0;
                }
                for (size_t n = 0; n < KEYS && j < QUERIES; n++)
                    dq += ds64[j][n] * (double)k.x[n * DIM + c];
                worst = fmax(worst, fabs(dk - (double)got.dk[j * DIM + c]));
                worst = fmax(worst, c < SIZE ? fabs(dv - (double)got.dv[j * SIZE + c]) : 0);
                worst = fmax(worst, j < QUERIES ? fabs(dq - (double)got.dq[j * DIM + c]) : 0);
            }
        ck_assert_msg(worst < 1e-5, "%g", worst);
    }
}

/* ---- random bits ---- */

/* One query and one key: P is 1, dS is dy v - d. */
TEST(each_product_has_a_stream)
{
    enum { DKEY = 3, DQUERY };
    const mpsim_attention_shape s = {1, 1, DIM, 1};
    const float ds = 255.0f / 256; /* with eight bits of q or k more than bf16 has */
    static uint16_t codes[DIM], one;
    static float dk[DIM], dq[DIM];
    uint64_t state = test_seed();
    mpsim_rounding r;
    mpsim_model random;
    ck_assert_int_eq(mpsim_model_parse(&random, "fma:bf16:round=sr"), MPSIM_OK);
    set("fma", "bf16", DIM);
    a.scale = 1;
    g.dkey = g.dquery = &random;
    numbers *const all[] = {&q, &k, &v, &dy};
    for (size_t i = 0; i < 4; i++)
        fill(all[i], "bf16", 1, &state);
    memcpy(v.codes, "\x80\x3f", 2), memcpy(dy.codes, v.codes, 2);
    d[0] = 1 - ds;
    ck_assert_int_eq(forward(&s), MPSIM_OK);
    const mpsim_matrix mq = matrix(&q, DIM), mk = matrix(&k, DIM), mv = matrix(&v, 1), m = matrix(&dy, 1);
    const mpsim_rng rng = {1, 2, 3}, of_key = {1, 2 + DKEY, 3}, of_query = {1, 2 + DQUERY, 3};
    ck_assert_int_eq(mpsim_attention_backward(&g, &s, &mq, &mk, &mv, &m, NULL, d, lse, dq, dk, NULL, &rng, NULL),
                     MPSIM_OK);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_encode_array_f32(q.format, &r, NULL, &one, &ds, 1, NULL);
    const mpsim_matrix by = {q.format, &one, 1, 0};
    ck_assert_int_eq(mpsim_gemm(&random, 1, DIM, 1, &by, &mq, NULL, codes, DIM, &of_key, NULL), MPSIM_OK);
    mpsim_decode_array_f32(q.format, want.dk, codes, DIM);
    ck_assert_int_eq(mpsim_gemm(&random, 1, DIM, 1, &by, &mk, NULL, codes, DIM, &of_query, NULL), MPSIM_OK);
    mpsim_decode_array_f32(q.format, want.dq, codes, DIM);
    layer_equal("dk", "sr", "", dk, want.dk, DIM);
    layer_equal("dq", "sr", "", dq, want.dq, DIM);
}

/* ---- what is refused; what is not wanted ---- */

TEST(refused)
{
    uint64_t state = test_seed();
    const mpsim_attention_shape s = {3, 4, 5, 6};
    const mpsim_matrix none = {mpsim_format_find("bf16"), NULL, 6, 0};
    mpsim_model wide, random;
    ck_assert_int_eq(mpsim_model_parse(&wide, "fma:binary64"), MPSIM_OK);
    ck_assert_int_eq(mpsim_model_parse(&random, "fma:bf16:round=sr"), MPSIM_OK);
    set("hopper-bf16-fp32", "bf16", 5);
    numbers *const all[] = {&q, &k, &v, &dy};
    for (size_t i = 0; i < 4; i++)
        fill(all[i], "bf16", 1, &state);
    ck_assert_int_eq(forward(&s), MPSIM_OK);
    ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_OK);
    const oracle_gradients all_three = got;
    const mpsim_matrix mq = matrix(&q, 5), mk = matrix(&k, 5), mv = matrix(&v, 6), m = matrix(&dy, 6);
    float dv[24];
    ck_assert_int_eq(mpsim_attention_backward(&g, &s, &mq, &mk, &mv, &m, y, NULL, lse, NULL, NULL, dv, NULL, NULL),
                     MPSIM_OK);
    ck_assert_mem_eq(dv, all_three.dv, sizeof dv);
    ck_assert_int_eq(mpsim_attention_backward(NULL, &s, &mq, &mk, &mv, &m, y, NULL, lse, NULL, NULL, dv, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_backward(&g, &s, &mq, &mk, &mv, &none, y, NULL, lse, NULL, NULL, dv, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_backward(&g, &s, &none, &mk, &mv, &m, y, NULL, lse, NULL, NULL, dv, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_backward(&g, &s, &mq, &none, &mv, &m, y, NULL, lse, NULL, NULL, dv, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_backward(&g, &s, &mq, &mk, &none, &m, y, NULL, lse, NULL, NULL, dv, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_mem_eq(dv, all_three.dv, sizeof dv); /* what is refused writes nothing */
    ck_assert_int_eq(mpsim_attention_backward(&g, &s, &mq, &mk, &mv, &m, NULL, NULL, lse, NULL, NULL, dv, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_backward(&g, &s, &mq, &mk, &mv, &m, y, NULL, NULL, NULL, NULL, dv, NULL, NULL),
                     MPSIM_EINVAL);
    const mpsim_attention_gradient good = g;
    g.dkey = NULL;
    ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_EINVAL);
    g.dkey = &wide;
    ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_ERANGE);
    g.dkey = &random;
    ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_EINVAL); /* no random words */
    g = good;
    g.ds.format = *mpsim_format_find("binary64");
    ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_ERANGE);
    g = good;
    g.p.format = *mpsim_format_find("fp16"); /* which the model does not multiply by bf16 */
    ck_assert(backward(&s, NULL, NULL) != MPSIM_ENOMEM);
    g = good;
    g.ds.rounding.mode = MPSIM_ROUND_STOCHASTIC_A;
    ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_EINVAL);
    g = good;
    g.f = mpsim_format_find("binary64");
    ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_ERANGE);
    g = good;
    a.scale = NAN;
    ck_assert_int_eq(backward(&s, NULL, NULL), MPSIM_EINVAL);
}

TEST_MAIN("layer/t-attention-back");
