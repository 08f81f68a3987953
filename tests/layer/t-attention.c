/* t-attention.c -- attention in tiles: every bit as the formulas have it (oracle/attention.h); the untiled
 * definition; binary64 beside MPFR; what is counted. */
#include "oracle/attention.h"
#include "oracle/layer.h"
#include "support/layerinput.h"
#include "support/support.h"

#include <math.h>
#include <mpfr.h>
#include <mpsim/layer.h>
#include <stdio.h>
#include <string.h>

enum { QUERIES = ORACLE_QUERIES, KEYS = ORACLE_KEYS, DIM = ORACLE_DIM, SIZE = ORACLE_SIZE };

/* Numbers of a format: codes, and what they stand for. */
typedef struct numbers {
    const mpsim_format *format;
    float x[KEYS * DIM];
    unsigned char codes[KEYS * DIM * 8];
} numbers;

static void fill(numbers *n, const char *format, size_t count, double deviation, uint64_t *state)
{
    mpsim_rounding r;
    double y[KEYS * DIM];
    n->format = mpsim_format_find(format);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < count; i += 2) {
        double pair[2];
        test_normal_pair(state, pair);
        n->x[i] = (float)(deviation * pair[0]);
        n->x[i + 1] = (float)(deviation * pair[1]);
    }
    mpsim_encode_array_f32(n->format, &r, NULL, n->codes, n->x, count, NULL);
    mpsim_decode_array(n->format, y, n->codes, count);
    for (size_t i = 0; i < count; i++)
        n->x[i] = (float)y[i];
}

static mpsim_matrix matrix(const numbers *n, size_t columns)
{
    return (mpsim_matrix){n->format, n->codes, columns, 0};
}

/* ---- the formulas, operation by operation ---- */

static const oracle_products settings[] = {
    {"fma", "bf16", NULL, "bf16"},
    {"hopper-bf16-fp32", "bf16", NULL, "bf16"},
    {"hopper-bf16-fp32:result=bf16", "bf16", "bf16", "bf16"},
    {"ampere-bf16-fp32:result=fp16", "bf16", "fp16", "bf16"},
    {"hopper-fp16-fp32", "fp16", NULL, "fp16"},
    {"ampere-fp16-fp32:result=bf16", "fp16", "bf16", "fp16"},
    {"hopper-wgmma-fp8-fp32", "e4m3", NULL, "e4m3"},
};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

typedef struct head {
    const mpsim_attention *a;
    mpsim_attention_shape shape;
    const oracle_products *set;
    const numbers *q, *k, *v;
} head;

/* Threads that are none, in an order of their own. */
static void backwards(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    (void)self;
    while (n-- > 0)
        task(n, job);
}
static const mpsim_pool pool = {.run = backwards};

static mpsim_status forward(const head *h, oracle_outcome *to, const mpsim_pool *threads)
{
    const mpsim_matrix q = matrix(h->q, h->shape.dim), k = matrix(h->k, h->shape.dim), v = matrix(h->v, h->shape.size);
    memset(to, 0, sizeof *to);
    return mpsim_attention_forward(h->a, &h->shape, &q, &k, &v, to->y, to->lse, to->flags, &to->counts, NULL, threads);
}

static numbers q, k, v;
static oracle_outcome got, want;
static uint8_t mask[QUERIES * KEYS];

static void compare(const head *h)
{
    const oracle_head of = {h->a, h->shape, h->set, h->q->x, h->k->x, h->v->x};
    oracle_attention(&of, &want);
    layer_equal("y", h->set->model, h->set->p, got.y, want.y, h->shape.queries * h->shape.size);
    layer_equal("lse", h->set->model, h->set->p, got.lse, want.lse, h->shape.queries);
    ck_assert_mem_eq(got.flags, want.flags, h->shape.queries);
    ck_assert_mem_eq(&got.counts, &want.counts, sizeof got.counts);
}

/* Some keys twice, so that largest scores repeat. */
static void repeat_keys(numbers *n, size_t keys, size_t dim, uint64_t *state)
{
    const size_t bytes = mpsim_format_code_bytes(n->format);
    for (size_t times = 0; keys > 1 && times < 4; times++) {
        const size_t a = test_random(state) % keys, b = test_random(state) % keys;
        memcpy(n->x + a * dim, n->x + b * dim, dim * sizeof *n->x);
        memmove(n->codes + a * dim * bytes, n->codes + b * dim * bytes, dim * bytes);
    }
}

CASE("attention", 30);

TEST(as_the_formulas)
{
    uint64_t state = test_part_seed();
    mpsim_model scores, context;
    static const float scales[] = {1, 256, 0.75f, 64};
    for (size_t round = 0; round < SETTINGS * 5 + test_scaled(100); round++) {
        const oracle_products *set = &settings[round % SETTINGS];
        mpsim_attention a;
        const uint64_t bits = test_random(&state);
        head h = {&a,
                  {test_random(&state) % (QUERIES + 1), test_random(&state) % (KEYS + 1), 1 + test_random(&state) % DIM,
                   1 + test_random(&state) % SIZE},
                  set,
                  &q,
                  &k,
                  &v};
        mpsim_attention_init(&a, h.shape.dim);
        ck_assert_int_eq(mpsim_model_parse(&scores, set->model), MPSIM_OK);
        ck_assert_int_eq(mpsim_model_parse(&context, set->model), MPSIM_OK);
        a.scores = &scores;
        a.context = &context;
        a.p.format = *mpsim_format_find(set->p);
        a.p_scale = scales[test_random(&state) % 4];
        a.tile = bits & 1 ? test_random(&state) % (KEYS + 10) : 16;
        a.causal = bits >> 1 & 1;
        a.reverse = bits >> 2 & 1;
        a.separate = bits >> 3 & 1;
        a.sum_rounded = bits >> 4 & 1;
        a.reciprocal = bits >> 5 & 1;
        a.beta = bits >> 6 & 1 ? 2.0f : 0.0f;
        a.margin = bits >> 7 & 1 ? 0.25f : 0;
        a.f = bits >> 8 & 1 ? mpsim_format_find("bf16") : NULL;
        a.exp2 = bits >> 12 & 1;
        a.softmax = bits >> 13 & 3 ? NULL : mpsim_format_find(bits >> 15 & 1 ? "bf16" : "fp16");
        a.left = bits >> 16 & 1 ? SIZE_MAX : test_random(&state) % 30;
        a.right = bits >> 17 & 1 ? SIZE_MAX : test_random(&state) % 30;
        for (size_t j = 0; j < QUERIES * KEYS; j++)
            mask[j] = (test_random(&state) >> 60) < 11;
        a.mask = bits >> 18 & 3 ? NULL : mask;
        fill(&q, set->operand, QUERIES * DIM, bits >> 9 & 1 ? 1 : 4, &state);
        fill(&k, set->operand, KEYS * DIM, 1, &state);
        fill(&v, set->operand, KEYS * SIZE, 1, &state);
        if (bits >> 10 & 1)
            repeat_keys(&k, h.shape.keys, h.shape.dim, &state);
        ck_assert_int_eq(forward(&h, &got, bits >> 11 & 1 ? &pool : NULL), MPSIM_OK);
        compare(&h);
    }
}

/* ---- the untiled definition, of numbers whose sums binary64 holds ---- */

static void grid(numbers *n, size_t count, int range, double unit, uint64_t *state)
{
    mpsim_rounding r;
    n->format = mpsim_format_find("bf16");
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < count; i++)
        n->x[i] = (float)((int)(test_random(state) % (2 * (unsigned)range + 1)) - range) * (float)unit;
    mpsim_encode_array_f32(n->format, &r, NULL, n->codes, n->x, count, NULL);
}

static void untiled_row(const head *h, size_t i, float *y)
{
    const size_t dim = h->shape.dim, size = h->shape.size, keys = h->shape.keys;
    float x[KEYS], e[KEYS], m = -INFINITY;
    for (size_t j = 0; j < keys; j++) {
        double s = 0; /* exact */
        for (size_t c = 0; c < dim; c++)
            s += (double)h->q->x[i * dim + c] * (double)h->k->x[j * dim + c];
        x[j] = (float)s * h->a->scale;
        m = fmaxf(m, x[j]);
    }
    for (size_t j = 0; j < keys; j++)
        e[j] = mpsim_exp(x[j] - m);
    const float z = oracle_sum(oracle_format_find(NULL), e, keys, 1, 32);
    for (size_t c = 0; c < size; c++) {
        double o = 0; /* exact */
        for (size_t j = 0; j < keys; j++)
            o += (double)oracle_to(oracle_format_find("bf16"), (double)e[j]) * (double)h->v->x[j * size + c];
        y[c] = (float)o / z;
    }
}

TEST(one_tile_is_the_definition)
{
    uint64_t state = test_part_seed();
    mpsim_model exact;
    mpsim_attention a;
    head h = {&a, {QUERIES, KEYS, 16, SIZE}, NULL, &q, &k, &v};
    ck_assert_int_eq(mpsim_model_parse(&exact, "exact"), MPSIM_OK);
    mpsim_attention_init(&a, h.shape.dim);
    ck_assert(bits_of_f32(a.scale) == bits_of_f32(0.25f) && a.tile == 128);
    a.scores = a.context = &exact;
    a.p.format = *mpsim_format_find("bf16");
    grid(&q, QUERIES * DIM, 7, 0.25, &state); /* scores: multiples of 1/64 up to 196, of which 16 (softmax) 12.25 */
    grid(&k, KEYS * DIM, 7, 0.0625, &state);
    grid(&v, KEYS * SIZE, 100, 0.0625, &state);
    for (size_t tile = 0; tile < 4; tile++) {
        static const size_t tiles[] = {0, KEYS, KEYS + 7, 128};
        a.tile = tiles[tile];
        ck_assert_int_eq(forward(&h, &got, &pool), MPSIM_OK);
        for (size_t i = 0; i < QUERIES; i++)
            untiled_row(&h, i, want.y + i * SIZE);
        ck_assert(oracle_differs(got.y, want.y, QUERIES * SIZE) == QUERIES * SIZE);
    }
}

/* ---- binary64, and what all of it is near ---- */

static double mpfr_error(const head *h, size_t i, const double *y, double *bound)
{
    const size_t dim = h->shape.dim, size = h->shape.size;
    size_t n = 0, key[KEYS];
    mpfr_t e[KEYS], term, sum, o, size_of_terms;
    double worst = 0, most = 0;
    mpfr_inits2(300, term, sum, o, size_of_terms, (mpfr_ptr)NULL);
    mpfr_set_zero(sum, 1);
    for (size_t j = 0; j < h->shape.keys; j++)
        if (oracle_sees(h->a, &h->shape, i, j))
            key[n++] = j;
    for (size_t j = 0; j < n; j++) {
        mpfr_init2(e[j], 300);
        mpfr_set_zero(e[j], 1);
        for (size_t c = 0; c < dim; c++) {
            mpfr_set_d(term, (double)h->q->x[i * dim + c], MPFR_RNDN);
            mpfr_mul_d(term, term, (double)h->k->x[key[j] * dim + c], MPFR_RNDN);
            mpfr_add(e[j], e[j], term, MPFR_RNDN);
        }
        mpfr_mul_d(e[j], e[j], (double)h->a->scale, MPFR_RNDN);
        most = fmax(most, fabs(mpfr_get_d(e[j], MPFR_RNDN)));
        mpfr_exp(e[j], e[j], MPFR_RNDN);
        mpfr_add(sum, sum, e[j], MPFR_RNDN);
    }
    for (size_t c = 0; c < size; c++) {
        mpfr_set_zero(o, 1);
        mpfr_set_zero(size_of_terms, 1);
        for (size_t j = 0; j < n; j++) {
            mpfr_mul_d(term, e[j], (double)h->v->x[key[j] * size + c], MPFR_RNDN);
            mpfr_add(o, o, term, MPFR_RNDN);
            mpfr_abs(term, term, MPFR_RNDN);
            mpfr_add(size_of_terms, size_of_terms, term, MPFR_RNDN);
        }
        if (n) {
            mpfr_div(o, o, sum, MPFR_RNDN);
            mpfr_div(size_of_terms, size_of_terms, sum, MPFR_RNDN);
        }
        mpfr_sub_d(o, o, y[c], MPFR_RNDN);
        const double allowed = ((double)n + 8 + 2 * most) * 0x1p-53 * mpfr_get_d(size_of_terms, MPFR_RNDN);
        worst = fmax(worst,
                     allowed > 0 ? fabs(mpfr_get_d(o, MPFR_RNDN)) / allowed : fabs(mpfr_get_d(o, MPFR_RNDN)) > 0);
        *bound = fmax(*bound, mpfr_get_d(size_of_terms, MPFR_RNDN));
    }
    for (size_t j = 0; j < n; j++)
        mpfr_clear(e[j]);
    mpfr_clears(term, sum, o, size_of_terms, (mpfr_ptr)NULL);
    return worst;
}

TEST(binary64_is_near)
{
    static double y[QUERIES * SIZE];
    uint64_t state = test_part_seed();
    mpsim_model fma;
    double worst = 0, worst_tiled = 0, terms = 0;
    ck_assert_int_eq(mpsim_model_parse(&fma, "fma"), MPSIM_OK);
    for (size_t round = 0; round < 6; round++) {
        mpsim_attention a;
        head h = {&a, {QUERIES, round == 3 ? QUERIES / 2 : KEYS, DIM, SIZE}, NULL, &q, &k, &v};
        mpsim_attention_init(&a, DIM);
        a.scores = a.context = &fma;
        a.causal = round % 2;
        a.tile = 16;
        a.exp2 = round > 3;
        a.left = round == 4 ? 9 : SIZE_MAX;
        a.right = round == 4 ? 3 : SIZE_MAX;
        for (size_t j = 0; j < QUERIES * KEYS; j++)
            mask[j] = j % 3 < 2;
        a.mask = round == 5 ? mask : NULL;
        fill(&q, "binary32", QUERIES * DIM, round == 2 ? 30 : 1, &state);
        fill(&k, "binary32", KEYS * DIM, 1, &state);
        fill(&v, "binary32", KEYS * SIZE, 1, &state);
        const mpsim_matrix mq = matrix(&q, DIM), mk = matrix(&k, DIM), mv = matrix(&v, SIZE);
        ck_assert_int_eq(mpsim_attention_exact(&a, &h.shape, &mq, &mk, &mv, y, round ? &pool : NULL), MPSIM_OK);
        for (size_t i = 0; i < QUERIES; i++)
            worst = fmax(worst, mpfr_error(&h, i, y + i * SIZE, &terms));
        ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
        for (size_t i = 0; i < QUERIES * SIZE && round != 2; i++)
            worst_tiled = fmax(worst_tiled, fabs((double)got.y[i] - y[i]));
    }
    printf("# binary64: at most %.3f of what is promised; tiles of binary32: %.2e away\n", worst, worst_tiled);
    ck_assert(worst <= 1);
    ck_assert(worst_tiled > 0 && worst_tiled < KEYS * 0x1p-23 * terms);
}

/* ---- by hand ---- */

/* One query of one number, x = q k; keys and values as they are given. */
static void by_hand(mpsim_attention *a, mpsim_model *m, const char *model, const char *p)
{
    ck_assert_int_eq(mpsim_model_parse(m, model), MPSIM_OK);
    mpsim_attention_init(a, 1);
    a->scores = a->context = m;
    a->p.format = *mpsim_format_find(p);
}

static head of_numbers(const mpsim_attention *a, const float *keys, const float *values, size_t n)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    q.format = k.format = v.format = mpsim_format_find("binary32");
    q.x[0] = 1;
    mpsim_encode_array_f32(q.format, &r, NULL, q.codes, q.x, 1, NULL);
    mpsim_encode_array_f32(k.format, &r, NULL, k.codes, keys, n, NULL);
    mpsim_encode_array_f32(v.format, &r, NULL, v.codes, values, n, NULL);
    return (head){a, {1, n, 1, 1}, NULL, &q, &k, &v};
}

TEST(repeated_maxima)
{
    /* P is 1, 1 and 2^-28 or so; -2.015625 and -2 are bf16 numbers, their sum -4.015625 lies between -4 and -4.03125: a
     * tie, that goes to -4, which is even; with a little more below it goes away from zero */
    static const float keys[] = {20, 20, 0.59f}, alone[] = {-2.015625f, -2, 0}, more[] = {-2.015625f, -2, -1};
    mpsim_attention a;
    mpsim_model m;
    by_hand(&a, &m, "exact:result=bf16", "bf16");
    head h = of_numbers(&a, keys, alone, 3);
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.y[0] == -2 && got.flags[0] == 1 && got.counts.repeated == 1 && got.counts.p_one == 2);
    h = of_numbers(&a, keys, more, 3);
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.y[0] == -2.015625f);
    /* moved to 2 m: P is e^-20 and no longer 1; moved to 0 where it is below it */
    static const float negative[] = {-3, -3, -9}, zero[] = {0, 0, -9};
    a.beta = 2;
    h = of_numbers(&a, keys, more, 3);
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.moved == 1 && got.counts.p_one == 0 && got.counts.repeated == 1);
    ck_assert(fabsf(got.lse[0] - 20.693147f) < 1e-5f);
    h = of_numbers(&a, negative, more, 3);
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.moved == 1 && got.counts.p_one == 0 && fabsf(got.lse[0] - (-3 + 0.694386f)) < 1e-5f);
    h = of_numbers(&a, zero, more, 3);
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.moved == 0 && got.counts.p_one == 2);
    /* far enough, and all is gone: 2 * 104 lies more than 103.97 above */
    static const float far[] = {104, 104, 0};
    h = of_numbers(&a, far, more, 3);
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.vanished == 1 && got.y[0] == 0 && got.lse[0] == -INFINITY);
    /* nearly the same */
    static const float nearly[] = {20, 19.9f, 0};
    h = of_numbers(&a, nearly, more, 3);
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.moved == 0 && got.counts.repeated == 0);
    a.margin = 0.25f;
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.moved == 1 && got.counts.repeated == 0);
}

TEST(p_in_fp8)
{
    /* e^-7 is 9.1e-4, below half of e4m3's smallest, 2^-9: 0 as it is, and 0.233 times 256 */
    static const float keys[] = {0, -7}, values[] = {0, 1};
    mpsim_attention a;
    mpsim_model m;
    by_hand(&a, &m, "exact", "e4m3");
    head h = of_numbers(&a, keys, values, 2);
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.y[0] == 0 && got.counts.p_zero == 1 && got.counts.p_one == 1);
    a.p_scale = 256;
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.p_zero == 0 && got.counts.p_one == 1 && fabsf(got.y[0] - 9.1e-4f) < 4e-5f);
    /* the largest key last: in order P of the first is 1 and rescaled; in reverse it is nothing from the start */
    static const float rising[] = {-7, 0}, first[] = {1, 0};
    a.p_scale = 1;
    a.tile = 1;
    h = of_numbers(&a, rising, first, 2);
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.p_zero == 0 && got.counts.p_one == 2 && fabsf(got.y[0] - 9.11e-4f) < 1e-6f);
    a.reverse = 1;
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.p_zero == 1 && got.y[0] == 0);
}

TEST(masked_rows)
{
    static double y[QUERIES * SIZE];
    uint64_t state = test_seed();
    mpsim_attention a;
    mpsim_model m;
    by_hand(&a, &m, "hopper-bf16-fp32", "bf16");
    a.causal = 1;
    a.tile = 3;
    fill(&q, "bf16", QUERIES * DIM, 1, &state);
    fill(&k, "bf16", KEYS * DIM, 1, &state);
    fill(&v, "bf16", KEYS * SIZE, 1, &state);
    head h = {&a, {9, 4, DIM, SIZE}, NULL, &q, &k, &v};
    ck_assert_int_eq(forward(&h, &got, &pool), MPSIM_OK);
    ck_assert(got.counts.rows == 9 && got.counts.masked == 5 && got.counts.elements == 10);
    for (size_t i = 0; i < 5; i++)
        ck_assert(got.lse[i] == -INFINITY && bits_of_f32(got.y[i * SIZE]) == 0);
    for (size_t c = 0; c < SIZE; c++) /* one key: its value */
        ck_assert(got.y[5 * SIZE + c] == v.x[c]);
    const mpsim_matrix mq = matrix(&q, DIM), mk = matrix(&k, DIM), mv = matrix(&v, SIZE);
    ck_assert_int_eq(mpsim_attention_exact(&a, &h.shape, &mq, &mk, &mv, y, &pool), MPSIM_OK);
    ck_assert(bits_of_f64(y[0]) == 0 && y[5 * SIZE] == (double)v.x[0]);
    h.shape.keys = 0;
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.masked == 9 && got.lse[0] == -INFINITY);
    h.shape.queries = 0;
    ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_OK);
    ck_assert(got.counts.rows == 0);
}

/* ---- matrices as they lie, random words, refusals ---- */

TEST(any_strides)
{
    enum { N = 20, D = 8, WIDE = 13 };
    static float x[3][N * D];
    static uint16_t wide[3][N * WIDE], turned[3][D * (N + 3)];
    static float y[3][N * D];
    static double exact[3][N * D];
    uint64_t state = test_seed();
    mpsim_attention a;
    mpsim_model m;
    mpsim_rounding r;
    const mpsim_attention_shape shape = {N, N, D, D};
    const mpsim_format *f = mpsim_format_find("bf16");
    mpsim_matrix lie[3][3];
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    by_hand(&a, &m, "ampere-bf16-fp32", "bf16");
    a.tile = 6;
    a.causal = 1;
    for (size_t o = 0; o < 3; o++) {
        static uint16_t packed[3][N * D];
        layer_fill(x[o], N * D, LAYER_PLAIN, &state);
        mpsim_encode_array_f32(f, &r, NULL, packed[o], x[o], N * D, NULL);
        for (size_t i = 0; i < N * D; i++)
            wide[o][i / D * WIDE + i % D] = turned[o][i % D * (N + 3) + i / D] = packed[o][i];
        lie[0][o] = (mpsim_matrix){f, packed[o], D, 0};
        lie[1][o] = (mpsim_matrix){f, wide[o], WIDE, 0};
        lie[2][o] = (mpsim_matrix){f, turned[o], N + 3, 1};
    }
    for (size_t way = 0; way < 3; way++) {
        const mpsim_matrix *l = lie[way];
        ck_assert_int_eq(mpsim_attention_forward(&a, &shape, &l[0], &l[1], &l[2], y[way], NULL, NULL, NULL, NULL, NULL),
                         MPSIM_OK);
        ck_assert_int_eq(mpsim_attention_exact(&a, &shape, &l[0], &l[1], &l[2], exact[way], NULL), MPSIM_OK);
        ck_assert_mem_eq(y[way], y[0], sizeof y[0]);
        ck_assert_mem_eq(exact[way], exact[0], sizeof exact[0]);
    }
}

TEST(random_words)
{
    uint64_t state = test_seed();
    mpsim_attention a;
    mpsim_model m;
    oracle_outcome other;
    const mpsim_rng rng = {1, 2, 3};
    by_hand(&a, &m, "fma:bf16:round=sr", "bf16");
    a.tile = 16;
    fill(&q, "bf16", QUERIES * DIM, 1, &state);
    fill(&k, "bf16", KEYS * DIM, 1, &state);
    fill(&v, "bf16", KEYS * SIZE, 1, &state);
    const mpsim_matrix mq = matrix(&q, DIM), mk = matrix(&k, DIM), mv = matrix(&v, SIZE);
    const mpsim_attention_shape shape = {QUERIES, KEYS, DIM, SIZE};
    ck_assert_int_eq(mpsim_attention_forward(&a, &shape, &mq, &mk, &mv, got.y, NULL, NULL, NULL, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_forward(&a, &shape, &mq, &mk, &mv, got.y, NULL, NULL, NULL, &rng, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_attention_forward(&a, &shape, &mq, &mk, &mv, other.y, NULL, NULL, NULL, &rng, &pool),
                     MPSIM_OK);
    ck_assert_mem_eq(got.y, other.y, sizeof(float) * QUERIES * SIZE);
    const mpsim_rng next = {1, 3, 3};
    ck_assert_int_eq(mpsim_attention_forward(&a, &shape, &mq, &mk, &mv, other.y, NULL, NULL, NULL, &next, NULL),
                     MPSIM_OK);
    ck_assert(memcmp(got.y, other.y, sizeof(float) * QUERIES * SIZE) != 0);
}

/* The first stream is that of the scores, which lse tells. */
TEST(random_scores)
{
    enum { N = 24, D = 8 };
    uint64_t state = test_seed();
    mpsim_attention a;
    mpsim_model m;
    static uint16_t codes[N * N];
    static float s[N * N], lse[N];
    const mpsim_rng rng = {1, 2, 3};
    by_hand(&a, &m, "fma:bf16:round=sr", "bf16");
    fill(&q, "bf16", N * D, 1, &state);
    fill(&k, "bf16", N * D, 1, &state);
    fill(&v, "bf16", N * D, 1, &state);
    const mpsim_matrix mq = matrix(&q, D), mk = matrix(&k, D), mv = matrix(&v, D), turned = {mk.format, mk.codes, D, 1};
    const mpsim_attention_shape shape = {N, N, D, D};
    ck_assert_int_eq(mpsim_attention_forward(&a, &shape, &mq, &mk, &mv, got.y, lse, NULL, NULL, &rng, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_gemm(&m, N, N, D, &mq, &turned, NULL, codes, N, &rng, NULL), MPSIM_OK);
    mpsim_decode_array_f32(&m.result.format, s, codes, N * N);
    for (size_t i = 0; i < N; i++) {
        double sum = 0;
        for (size_t j = 0; j < N; j++)
            sum += exp((double)a.scale * (double)s[i * N + j]);
        ck_assert_msg(fabs(log(sum) - (double)lse[i]) < 1e-5, "row %zu: %g, not %g", i, (double)lse[i], log(sum));
    }
}

TEST(refused)
{
    uint64_t state = test_seed();
    mpsim_attention good, a;
    mpsim_model m, wide;
    by_hand(&good, &m, "fma", "bf16");
    ck_assert_int_eq(mpsim_model_parse(&wide, "fma:binary64"), MPSIM_OK);
    fill(&q, "bf16", DIM, 1, &state);
    head h = {&a, {1, 1, 4, 4}, NULL, &q, &q, &q};
#define REFUSED(status, ...)                                       \
    do {                                                           \
        a = good;                                                  \
        __VA_ARGS__;                                               \
        ck_assert_int_eq(forward(&h, &got, NULL), MPSIM_##status); \
        ck_assert(got.y[0] == 0 && got.counts.rows == 0);          \
    } while (0)
    REFUSED(EINVAL, a.scores = NULL);
    REFUSED(EINVAL, a.context = NULL);
    REFUSED(EINVAL, a.p_scale = 0);
    REFUSED(EINVAL, a.p_scale = INFINITY);
    REFUSED(EINVAL, a.p_scale = NAN);
    REFUSED(EINVAL, a.scale = NAN);
    REFUSED(EINVAL, a.beta = 1);
    REFUSED(EINVAL, a.beta = INFINITY);
    REFUSED(EINVAL, a.margin = -1);
    REFUSED(EINVAL, a.p.rounding.scale = 2);
    REFUSED(EINVAL, a.p.rounding.mode = MPSIM_ROUND_STOCHASTIC_A);
    REFUSED(ERANGE, a.scores = &wide);
    REFUSED(ERANGE, a.context = &wide);
    REFUSED(ERANGE, a.p.format = *mpsim_format_find("binary64"));
    REFUSED(ERANGE, a.p.format = *mpsim_format_find("e8m0"));
    REFUSED(ERANGE, a.f = mpsim_format_find("binary64"));
#undef REFUSED
    mpsim_matrix x = matrix(&q, 4), narrow = matrix(&q, 3);
    const mpsim_attention_shape one = {1, 2, 4, 4};
    double y[4] = {0};
    a = good;
    ck_assert_int_eq(mpsim_attention_forward(NULL, &one, &x, &x, &x, got.y, NULL, NULL, NULL, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_forward(&a, NULL, &x, &x, &x, got.y, NULL, NULL, NULL, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_forward(&a, &one, &x, &x, &x, NULL, NULL, NULL, NULL, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_forward(&a, &one, &x, &narrow, &x, got.y, NULL, NULL, NULL, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_forward(&a, &one, NULL, &x, &x, got.y, NULL, NULL, NULL, NULL, NULL),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_exact(&a, &one, &x, &narrow, &x, y, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_exact(&a, &one, &x, &x, &x, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_exact(NULL, &one, &x, &x, &x, y, NULL), MPSIM_EINVAL);
    const mpsim_pool no_threads = {NULL, NULL, NULL};
    ck_assert_int_eq(mpsim_attention_forward(&a, &one, &x, &x, &x, got.y, NULL, NULL, NULL, NULL, &no_threads),
                     MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_exact(&a, &one, &x, &x, &x, y, &no_threads), MPSIM_EINVAL);
    x.stride = SIZE_MAX;
    ck_assert_int_eq(mpsim_attention_forward(&a, &one, &x, &x, &x, got.y, NULL, NULL, NULL, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_attention_exact(&a, &one, &x, &x, &x, y, NULL), MPSIM_EINVAL);
}

/* Where there are no results there is nothing to do, however many keys there are. */
TEST(bug_20261126_no_results)
{
    mpsim_model m;
    mpsim_attention a;
    double y = 7;
    by_hand(&a, &m, "fma", "bf16");
    const mpsim_matrix none = {mpsim_format_find("bf16"), NULL, 0, 0};
    const mpsim_attention_shape no_queries = {0, SIZE_MAX, 0, 0}, no_size = {SIZE_MAX, SIZE_MAX, 0, 0};
    ck_assert_int_eq(mpsim_attention_forward(&a, &no_queries, &none, &none, &none, NULL, NULL, NULL, NULL, NULL, NULL),
                     MPSIM_OK);
    ck_assert_int_eq(mpsim_attention_exact(&a, &no_queries, &none, &none, &none, NULL, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_attention_exact(&a, &no_size, &none, &none, &none, &y, NULL), MPSIM_OK);
    ck_assert(y == 7);
}

/* Keys of no numbers take no memory, but time: as many as there may be were gone through. */
TEST(bug_20261126_keys_of_no_numbers)
{
    mpsim_model m;
    mpsim_attention a;
    float lse = 7;
    by_hand(&a, &m, "fma", "bf16");
    const mpsim_matrix none = {mpsim_format_find("bf16"), NULL, 0, 0};
    mpsim_attention_shape shape = {1, SIZE_MAX, 0, 0};
    ck_assert_int_eq(mpsim_attention_forward(&a, &shape, &none, &none, &none, NULL, &lse, NULL, NULL, NULL, NULL),
                     MPSIM_ERANGE);
    ck_assert(lse == 7);
    shape.keys = 1000;
    ck_assert_int_eq(mpsim_attention_forward(&a, &shape, &none, &none, &none, NULL, &lse, NULL, NULL, NULL, NULL),
                     MPSIM_OK);
    ck_assert(lse == mpsim_log(1000));
}

TEST_MAIN("layer/t-attention");
