/* t-steps.c -- the steps of a dot product: by hand, and added up again for every model. */
#include "support/support.h"

#include <math.h>
#include <mpsim/dot.h>
#include <string.h>

enum { PRODUCTS = 70, STEPS = 400 };

typedef struct record {
    size_t n;
    mpsim_dot_step step[STEPS];
    size_t places[STEPS][128];
    int64_t terms[STEPS][128];
} record;

static void keep(void *context, const mpsim_dot_step *s)
{
    record *r = context;
    ck_assert_uint_lt(r->n, STEPS);
    r->step[r->n] = *s;
    for (size_t i = 0; s->places && i < s->n; i++) {
        r->places[r->n][i] = s->places[i];
        r->terms[r->n][i] = s->terms[i];
    }
    r->n++;
}

static mpsim_model parsed(const char *name)
{
    mpsim_model m;
    ck_assert_msg(mpsim_model_parse(&m, name) == MPSIM_OK, "%s", name);
    return m;
}

/* What a model makes of codes of a format, c = 0 or as given. */
static void run(record *r, const char *model, const char *format, const void *a, const void *b, size_t n, uint64_t c,
                uint64_t *d)
{
    const mpsim_model m = parsed(model);
    const mpsim_format *f = mpsim_format_find(format);
    memset(r, 0, sizeof *r);
    ck_assert(mpsim_dot_steps(&m, f, a, f, b, n, c, NULL, d, keep, r) == MPSIM_OK);
}

CASE("steps", 20);

TEST(by_hand)
{
    static record r;
    static const uint8_t a8[] = {0x38, 0xb8, 0x01}, b8[] = {0x38, 0x38, 0x10};
    static const uint16_t a16[] = {0x3c00}, b16[] = {0x3c00}, bf16[] = {0x3f80, 0x4000, 0x4040};
    uint64_t d;
    /* 1 - 1 + 2^-9 2^-5 in units of 2^-13: the last one is cut */
    run(&r, "hopper-wgmma-fp8-fp32", "e4m3", a8, b8, 3, 0, &d);
    ck_assert_uint_eq(r.n, 2);
    ck_assert(r.step[0].event == MPSIM_DOT_ADDITION && r.step[0].aligned && r.step[0].n == 3);
    ck_assert_int_eq(r.step[0].unit, -13);
    ck_assert(r.terms[0][0] == 8192 && r.terms[0][1] == -8192 && r.terms[0][2] == 0);
    ck_assert(r.step[0].sum == 0 && r.step[0].accumulator == 0 && r.step[0].code == 0 && d == 0);
    /* 1 + 2^-25 in units of 2^-25, and rounded toward zero to 24 bits */
    run(&r, "hopper-fp16-fp32", "fp16", a16, b16, 1, 0x33000000, &d);
    ck_assert(r.step[0].unit == -25 && r.step[0].accumulator == 1 && r.terms[0][0] == 33554432);
    ck_assert(r.step[0].sum == 33554433 && r.step[0].x == 0x1p-25 && r.step[0].code == 0x3f800000);
    ck_assert_uint_eq(d, 0x3f800000);
    /* in units of 2^-24 */
    run(&r, "ampere-fp16-fp32", "fp16", a16, b16, 1, 0x33000000, &d);
    ck_assert(r.step[0].unit == -24 && r.step[0].accumulator == 0 && r.terms[0][0] == 16777216);
    /* a product, an addition, the result: fp16 has no 1 + 2^-24 */
    run(&r, "sequential:fp16", "fp16", a16, b16, 1, 1, &d);
    ck_assert(r.n == 3 && r.step[0].event == MPSIM_DOT_PRODUCT && r.step[0].value == 1);
    ck_assert(r.step[1].event == MPSIM_DOT_ADDITION && r.step[1].x == 0x1p-24 && r.step[1].y == 1);
    ck_assert(r.step[1].code == 0x3c00 && r.step[2].event == MPSIM_DOT_RESULT && r.step[2].code == 0x3c00);
    /* the second product of a pair first: the fourth of three is none */
    run(&r, "avx512-bf16-fp32", "bf16", bf16, bf16, 3, 0, &d);
    ck_assert(r.n == 5 && r.step[0].first == 1 && r.step[1].first == 0 && r.step[3].first == 2);
    ck_assert(r.step[2].event == MPSIM_DOT_ADDITION && r.step[2].first == 3 && r.step[2].n == 0 && r.step[3].n == 1);
    ck_assert_uint_eq(d, 0x41600000);
    /* nothing but c */
    run(&r, "fma", "fp16", NULL, NULL, 0, 0x40400000, &d);
    ck_assert(r.n == 1 && r.step[0].event == MPSIM_DOT_RESULT && r.step[0].x == 3 && d == 0x40400000);
}

/* Every step of a fused addition: the terms and their sum, which rounds to the value; the next one begins
 * with it. */
static const char *check_fused(const mpsim_model *m, const record *r, size_t i)
{
    const mpsim_dot_step *s = &r->step[i];
    int64_t sum = s->accumulator;
    for (size_t k = 0; k < s->n; k++)
        sum += r->terms[i][k];
    if (!s->aligned || sum != s->sum)
        return "the sum of the terms";
    if (ldexp((double)s->accumulator, s->unit) != s->x &&
        fabs(s->x - ldexp((double)s->accumulator, s->unit)) >= ldexp(1, s->unit))
        return "the accumulator's term";
    const double value = ldexp((double)sum, s->unit);
    if (mpsim_encode_f64(&m->accumulator.format, &m->accumulator.rounding, value, 0, NULL) != s->code)
        return "the rounded sum";
    if (mpsim_decode(&m->accumulator.format, s->code) != s->value)
        return "the value";
    return NULL;
}

static const char *check_model(const mpsim_model *m, const char *format, uint64_t *state)
{
    static record r;
    static uint32_t a[PRODUCTS], b[PRODUCTS];
    const mpsim_format *f = mpsim_format_find(format);
    const size_t bytes = mpsim_format_code_bytes(f);
    mpsim_rounding nearest;
    uint64_t d, again = 0;
    size_t products = 0;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    memset(&r, 0, sizeof r);
    for (int k = 0; k < 2 * PRODUCTS; k++) { /* numbers from -2 to 2 */
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        const double x = ldexp((double)(int64_t)*state, -62);
        const uint64_t code = mpsim_encode_f64(f, &nearest, x, 0, NULL);
        code_store((char *)(k < PRODUCTS ? a : b) + (size_t)(k % PRODUCTS) * bytes, bytes, code);
    }
    if (mpsim_dot_steps(m, f, a, f, b, PRODUCTS, 0, NULL, &d, keep, &r) != MPSIM_OK ||
        mpsim_dot(m, f, a, f, b, PRODUCTS, 0, NULL, &again) != MPSIM_OK || d != again)
        return "the result";
    if (r.step[r.n - 1].event != MPSIM_DOT_RESULT || r.step[r.n - 1].code != d)
        return "the last step";
    for (size_t i = 0; i < r.n; i++) {
        const char *wrong = m->addition == MPSIM_ADDITION_FUSED && r.step[i].places ? check_fused(m, &r, i) : NULL;
        if (wrong)
            return wrong;
        if (m->chunk == 0 && m->order != MPSIM_ORDER_PAIRWISE && i > 0 && r.step[i].event == MPSIM_DOT_ADDITION &&
            r.step[i].x != r.step[i - (r.step[i - 1].event == MPSIM_DOT_PRODUCT && i > 1 ? 2 : 1)].value && i > 1)
            return "the accumulator before";
        if (r.step[i].event == MPSIM_DOT_ADDITION || (r.step[i].event == MPSIM_DOT_RESULT && r.step[i].n))
            products += r.step[i].n;
        else if (r.step[i].event == MPSIM_DOT_PRODUCT && m->order == MPSIM_ORDER_PAIRWISE)
            products++;
    }
    return products == PRODUCTS ? NULL : "every product once";
}

TEST(every_model)
{
    static const char *const formats[] = {"fp16", "bf16", "tf32", "e4m3"};
    uint64_t state = test_seed();
    mpsim_model m;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
            const mpsim_format *f = mpsim_format_find(formats[k]);
            if (!mpsim_model_accepts(&m, f, f))
                continue;
            const char *wrong = check_model(&m, formats[k], &state);
            ck_assert_msg(!wrong, "%s of %s: %s", m.name, formats[k], wrong);
        }
}

TEST(refused)
{
    static record r;
    const mpsim_model m = parsed("fma"), core = parsed("hopper-fp16-fp32"), random = parsed("fma:round=sr");
    const mpsim_format *f = mpsim_format_find("fp16"), *wide = mpsim_format_find("binary64");
    const uint16_t one = 0x3c00;
    const double two = 2;
    uint64_t d = 7;
    ck_assert(mpsim_dot_steps(&m, f, &one, f, &one, 1, 0, NULL, NULL, keep, &r) == MPSIM_EINVAL);
    ck_assert(mpsim_dot_steps(&m, f, NULL, f, &one, 1, 0, NULL, &d, keep, &r) == MPSIM_EINVAL);
    ck_assert(mpsim_dot_steps(&random, f, &one, f, &one, 1, 0, NULL, &d, keep, &r) == MPSIM_EINVAL);
    ck_assert(mpsim_dot_steps(&core, wide, &two, wide, &two, 1, 0, NULL, &d, keep, &r) == MPSIM_ERANGE);
    ck_assert(d == 7 && r.n == 0);
    ck_assert(mpsim_dot_steps(&m, f, &one, f, &one, 1, 0, NULL, &d, NULL, NULL) == MPSIM_OK);
    ck_assert_uint_eq(d, 0x3f800000);
}

TEST_MAIN("steps");
