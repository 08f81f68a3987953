/* t-scaled.c -- matrix products with scales of blocks: every element is what mpsim_dot_scaled gives, and scales of 1
 * change nothing. What the numbers are t-mmasim.c and t-dot.c say. */
#include "support/dotcases.h"
#include "support/support.h"

#include <mpsim/isa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 21, COLUMNS = 37, DEPTH = 200, BLOCKS = DEPTH / 16 + 1 };

typedef struct matrix {
    mpsim_format f, fs;
    uint64_t codes[COLUMNS * DEPTH], packed[COLUMNS * DEPTH], turned[COLUMNS * DEPTH];
    uint8_t scales[COLUMNS * (BLOCKS + 3)];
    size_t lines, stride, apart; /* apart: of infinities among the codes, by chance; 0: none are added */
} matrix;

/* Zeros are among them. */
static void put_infinities(const matrix *x, uint64_t *codes, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t u = test_random(seed);
        if (u % x->apart == 0)
            codes[i] = (u >> 62 ? x->f.max_finite + 1 : 0) | (u >> 40 & 1) << (x->f.bits - 1);
    }
}

static void set_up(matrix *x, const mpsim_model *m, size_t lines, size_t depth, int kind, int wide, uint64_t *seed)
{
    static uint64_t other[COLUMNS * DEPTH];
    x->lines = lines;
    x->stride = (depth ? (depth - 1) / m->block + 1 : 0) + test_random(seed) % 3;
    for (size_t i = 0; i < lines; i++)
        verify_kinds_fill(&x->f, x->codes + i * depth, &x->f, other, depth, &m->result.format, kind, seed);
    if (x->apart)
        put_infinities(x, x->codes, lines * depth, seed);
    dot_pack(&x->f, x->packed, 0, x->codes, lines * depth);
    for (size_t i = 0; i < lines; i++)
        for (size_t k = 0; k < depth; k++)
            dot_pack(&x->f, x->turned, k * lines + i, &x->codes[i * depth + k], 1);
    for (size_t i = 0; i < sizeof x->scales; i++) {
        const uint64_t u = test_random(seed);
        const unsigned one = x->fs.mbits ? 0x38 : 127;
        x->scales[i] = (uint8_t)(wide ? u : one - 6 + u % 13);
    }
}

static void check(const mpsim_model *m, matrix *a, matrix *b, size_t depth, const uint32_t *c, int turned)
{
    static uint32_t d[ROWS * COLUMNS];
    const mpsim_matrix ma = {&a->f, turned ? a->turned : a->packed, turned ? a->lines : depth, turned};
    const mpsim_matrix mb = {&b->f, turned ? b->turned : b->packed, turned ? b->lines : depth, !turned};
    const mpsim_matrix mc = {&m->result.format, c, b->lines, 0};
    const mpsim_scales sa = {&a->fs, a->scales, a->stride}, sb = {&b->fs, b->scales, b->stride};
    ck_assert_int_eq(
        mpsim_gemm_scaled(m, a->lines, b->lines, depth, &ma, &sa, &mb, &sb, c ? &mc : NULL, d, b->lines, NULL, NULL),
        MPSIM_OK);
    const size_t bytes_a = mpsim_format_code_bytes(&a->f), bytes_b = mpsim_format_code_bytes(&b->f);
    for (size_t i = 0; i < a->lines; i++)
        for (size_t j = 0; j < b->lines; j++) {
            const mpsim_scales ya = {&a->fs, a->scales + i * a->stride, 0};
            const mpsim_scales yb = {&b->fs, b->scales + j * b->stride, 0};
            uint64_t want = 0;
            ck_assert_int_eq(mpsim_dot_scaled(m, &a->f, (char *)a->packed + i * depth * bytes_a, &ya, &b->f,
                                              (char *)b->packed + j * depth * bytes_b, &yb, depth,
                                              c ? c[i * b->lines + j] : 0, NULL, &want),
                             MPSIM_OK);
            ck_assert_msg(d[i * b->lines + j] == want,
                          "%s of %s and %s, %zu x %zu x %zu, element %zu %zu: %x, expected %llx", m->name, a->f.name,
                          b->f.name, a->lines, b->lines, depth, i, j, d[i * b->lines + j], (unsigned long long)want);
        }
}

/* A model whose row has blocks; its scales in turn. */
static int next_model(mpsim_model *m, size_t *i, mpsim_format *scale, unsigned which)
{
    while (mpsim_model_at(m, (*i)++) == MPSIM_OK)
        if (m->block) {
            const char *second = strchr(m->scales, ' ');
            char name[16];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(m->scales, " "), m->scales);
            ck_assert(mpsim_format_parse(scale, which % 2 && second ? second + 1 : name) == MPSIM_OK);
            return 1;
        }
    return 0;
}

CASE("scaled", 30);

TEST(every_element)
{
    static matrix a, b;
    static uint32_t c[ROWS * COLUMNS];
    uint64_t seed = test_seed() + 71;
    mpsim_model m;
    for (size_t turn = 0; turn < 2 * test_scaled(12); turn++)
        for (size_t i = 0; next_model(&m, &i, &a.fs, (unsigned)turn);) {
            mpsim_format list[8];
            const size_t n = dot_formats(&m, list, 8);
            const uint64_t u = test_random(&seed);
            a.f = list[u % n];
            b.f = list[(u >> 8) % n];
            b.fs = a.fs;
            const size_t depth = (u >> 16) % DEPTH;
            const int kind = (int)(turn % KINDS);
            set_up(&a, &m, 1 + (u >> 24) % ROWS, depth, kind, turn % 3 == 2, &seed);
            set_up(&b, &m, 1 + (u >> 32) % COLUMNS, depth, kind, turn % 3 == 2, &seed);
            for (size_t k = 0; k < ROWS * COLUMNS; k++)
                c[k] = (uint32_t)verify_kinds_addend(&m.result.format, kind, &seed);
            check(&m, &a, &b, depth, u >> 40 & 1 ? c : NULL, u >> 41 & 1);
        }
}

TEST(infinities)
{
    static const size_t apart[] = {0, 2, 40, 300};
    static matrix a, b;
    uint64_t seed = test_seed() + 72;
    mpsim_model m;
    for (size_t turn = 0; turn < test_scaled(12); turn++)
        for (size_t i = 0; next_model(&m, &i, &a.fs, (unsigned)turn);) {
            const uint64_t u = test_random(&seed);
            a.f = b.f = *mpsim_format_find("e5m2");
            b.fs = a.fs;
            if (!mpsim_model_accepts(&m, &a.f, &b.f))
                continue;
            const size_t depth = 1 + (u >> 16) % (DEPTH - 1);
            a.apart = apart[u % 4];
            b.apart = apart[(u >> 2) % 4];
            set_up(&a, &m, 1 + (u >> 24) % ROWS, depth, (int)(turn % KINDS), turn % 3 == 2, &seed);
            set_up(&b, &m, 1 + (u >> 32) % COLUMNS, depth, (int)(turn % KINDS), turn % 3 == 2, &seed);
            check(&m, &a, &b, depth, NULL, u >> 41 & 1);
        }
}

/* Without scales a model computes as with scales of 1. */
TEST(scales_of_one)
{
    static matrix a, b;
    uint64_t seed = test_seed() + 72;
    mpsim_model m;
    for (unsigned which = 0; which < 2; which++)
        for (size_t i = 0; next_model(&m, &i, &a.fs, which);) {
            mpsim_format list[8];
            dot_formats(&m, list, 8);
            a.f = b.f = list[0];
            b.fs = a.fs;
            set_up(&a, &m, 5, 150, KIND_NORMAL, 0, &seed);
            set_up(&b, &m, 18, 150, KIND_NORMAL, 0, &seed);
            memset(a.scales, a.fs.mbits ? 0x38 : 127, sizeof a.scales);
            memset(b.scales, b.fs.mbits ? 0x38 : 127, sizeof b.scales);
            uint32_t plain[5 * 18], scaled[5 * 18];
            const mpsim_matrix ma = {&a.f, a.packed, 150, 0}, mb = {&b.f, b.packed, 150, 1};
            const mpsim_scales sa = {&a.fs, a.scales, a.stride}, sb = {&b.fs, b.scales, b.stride};
            ck_assert(mpsim_gemm(&m, 5, 18, 150, &ma, &mb, NULL, plain, 18, NULL, NULL) == MPSIM_OK);
            ck_assert(mpsim_gemm_scaled(&m, 5, 18, 150, &ma, &sa, &mb, &sb, NULL, scaled, 18, NULL, NULL) == MPSIM_OK);
            ck_assert_msg(memcmp(plain, scaled, sizeof plain) == 0, "%s", m.name);
        }
}

/* By hand: 1.5 2^3 * 2 2^-1, and in a second block a scale that is NaN. */
TEST(by_hand)
{
    mpsim_model m;
    const mpsim_format *e4m3 = mpsim_format_find("e4m3"), *e8m0 = mpsim_format_find("e8m0"),
                       *e2m1 = mpsim_format_find("e2m1");
    uint8_t x[64] = {0x3c}, y[64] = {0x40}, sx[2] = {130, 127}, sy[2] = {126, 127};
    const mpsim_scales a = {e8m0, sx, 0}, b = {e8m0, sy, 0};
    uint64_t d;
    ck_assert(mpsim_model_parse(&m, "rtx-blackwell-mxf8f6f4") == MPSIM_OK);
    ck_assert(mpsim_dot_scaled(&m, e4m3, x, &a, e4m3, y, &b, 64, 0, NULL, &d) == MPSIM_OK && d == 0x41400000);
    sy[1] = 255;
    ck_assert(mpsim_dot_scaled(&m, e4m3, x, &a, e4m3, y, &b, 64, 0, NULL, &d) == MPSIM_OK && d == 0x7fffffff);
    ck_assert(mpsim_dot_scaled(&m, e4m3, x, &a, e4m3, y, &b, 32, 0, NULL, &d) == MPSIM_OK && d == 0x41400000);
    /* fp4: 6 6 = 36 times 1.125 1.125 (0x39 in e4m3) = 45.5625; signs of scales do not count */
    uint8_t p[64] = {7}, q[64] = {7}, sp[4] = {0x39, 0x38, 0x38, 0x38}, sq[4] = {0xb9, 0x38, 0x38, 0x38};
    const mpsim_scales u = {e4m3, sp, 0}, v = {e4m3, sq, 0};
    ck_assert(mpsim_model_parse(&m, "rtx-blackwell-mxf4nvf4") == MPSIM_OK);
    ck_assert(mpsim_dot_scaled(&m, e2m1, p, &u, e2m1, q, &v, 64, 0, NULL, &d) == MPSIM_OK && d == 0x42364000);
}

/* Zeros are 0 beside 1 1 = 1, although their scales, 2^127 each, would carry a bit out of any integer. */
TEST(bug_20261126_zeros_with_large_scales)
{
    const mpsim_format *e2m1 = mpsim_format_find("e2m1"), *e8m0 = mpsim_format_find("e8m0");
    uint8_t x[64] = {0}, s[2] = {254, 127};
    const mpsim_scales scales = {e8m0, s, 0};
    mpsim_model m;
    uint64_t d;
    x[32] = 2;
    ck_assert(mpsim_model_parse(&m, "rtx-blackwell-mxf4") == MPSIM_OK);
    ck_assert(mpsim_dot_scaled(&m, e2m1, x, &scales, e2m1, x, &scales, 64, 0, NULL, &d) == MPSIM_OK);
    ck_assert_uint_eq(d, 0x3f800000);
}

/* The smallest exponent of operands is one of FUSED additions: GROUPED ones shifted subnormal numbers by it. */
TEST(bug_20261126_exponents_of_groups)
{
    mpsim_model m, other;
    const mpsim_format *f = mpsim_format_find("e2m1"), *e4m3 = mpsim_format_find("e4m3");
    const uint8_t x[16] = {1, 9, 2, 1, 1, 7, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1}, one = 0x38;
    const mpsim_scales s = {e4m3, &one, 1};
    ck_assert(mpsim_model_for_blocks(&m, "rtx-blackwell", f, f, 16, e4m3) == MPSIM_OK);
    other = m;
    other.operand_emin = -20;
    uint64_t d = 0, e = 1;
    ck_assert(mpsim_dot_scaled(&m, f, x, &s, f, x, &s, 16, 0, NULL, &d) == MPSIM_OK);
    ck_assert(mpsim_dot_scaled(&other, f, x, &s, f, x, &s, 16, 0, NULL, &e) == MPSIM_OK);
    ck_assert_uint_eq(d, e);
}

TEST(wrong_arguments)
{
    mpsim_model m, plain;
    const mpsim_format *f = mpsim_format_find("e4m3"), *e8m0 = mpsim_format_find("e8m0"),
                       *wide = mpsim_format_find("fp16");
    uint8_t x[128] = {0}, s[8] = {127, 127, 127, 127, 127, 127, 127, 127};
    uint16_t ws[8] = {0};
    uint32_t d[4] = {1, 2, 3, 4};
    uint64_t one = 0;
    ck_assert(mpsim_model_parse(&m, "rtx-blackwell-mxf8f6f4") == MPSIM_OK);
    ck_assert(mpsim_model_parse(&plain, "rtx-blackwell-fp8-fp32") == MPSIM_OK);
    const mpsim_matrix a = {f, x, 64, 0}, b = {f, x, 64, 1};
    const mpsim_scales good = {e8m0, s, 2}, none = {e8m0, NULL, 2}, few = {e8m0, s, 1}, e4m3 = {f, s, 2},
                       fp16 = {wide, ws, 2};
#define REFUSED(status, model, sa, sb) \
    ck_assert_int_eq(mpsim_gemm_scaled(model, 2, 2, 64, &a, sa, &b, sb, NULL, d, 2, NULL, NULL), status)
    REFUSED(MPSIM_EINVAL, &plain, &good, &good);
    REFUSED(MPSIM_EINVAL, &m, NULL, &good);
    REFUSED(MPSIM_EINVAL, &m, &good, NULL);
    REFUSED(MPSIM_EINVAL, &m, &none, &good);
    REFUSED(MPSIM_EINVAL, &m, &good, &few);
    REFUSED(MPSIM_ERANGE, &m, &good, &e4m3);
    REFUSED(MPSIM_ERANGE, &m, &fp16, &good);
    REFUSED(MPSIM_EINVAL, NULL, &good, &good);
#undef REFUSED
    ck_assert(d[0] == 1 && d[1] == 2 && d[2] == 3 && d[3] == 4);
    ck_assert(mpsim_dot_scaled(&plain, f, x, &good, f, x, &good, 64, 0, NULL, &one) == MPSIM_EINVAL);
    ck_assert(mpsim_dot_scaled(&m, f, x, &good, f, x, NULL, 64, 0, NULL, &one) == MPSIM_EINVAL);
    ck_assert(mpsim_dot_scaled(&m, f, x, &e4m3, f, x, &good, 64, 0, NULL, &one) == MPSIM_ERANGE);
}

TEST_MAIN("scaled");
