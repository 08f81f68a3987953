/* t-rules.c -- the table of block recipes; their rules by hand.
 *
 * Expected numbers are typed, or follow from a closed form in exact numbers. */
#include "oracle/block.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <mpsim/block.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- the table ---- */

static int mode_of(const mpsim_block_recipe *b)
{
    switch (b->element_mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        return EVEN;
    case MPSIM_ROUND_NEAREST_AWAY:
        return AWAY;
    case MPSIM_ROUND_STOCHASTIC_A:
    case MPSIM_ROUND_STOCHASTIC_B:
    case MPSIM_ROUND_STOCHASTIC_C:
        return STOCHASTIC;
    default:
        return -1;
    }
}

CASE("table", 5);

TEST(rows_of_the_table)
{
    ck_assert_uint_eq(mpsim_block_count(), ORACLE_ROWS);
    for (size_t i = 0; i < ORACLE_ROWS; i++) {
        const row *r = &oracle_table[i];
        const mpsim_block_recipe *b = mpsim_block_find(r->name);
        ck_assert_msg(b != NULL, "%s", r->name);
        ck_assert_str_eq(b->name, r->name);
        ck_assert_str_eq(b->element, r->element);
        ck_assert_msg(b->rule == r->rule, "%s: rule %d", r->name, b->rule);
        ck_assert_msg(b->power_of_two == r->power, "%s: power %d", r->name, b->power_of_two);
        ck_assert_msg(mode_of(b) == r->mode, "%s: mode %d", r->name, b->element_mode);
        ck_assert_msg(r->mode != STOCHASTIC || b->sr_bits == 8, "%s: bits", r->name);
        ck_assert_msg(b->block_rows == r->rows && b->block_cols == r->cols, "%s: %u x %u", r->name, b->block_rows,
                      b->block_cols);
        ck_assert_msg(r->rule != MPSIM_SCALE_AMAX_TE || b->scale_for_inf == r->inf, "%s: %a", r->name,
                      b->scale_for_inf);
        ck_assert_msg(b->amax_epsilon == r->epsilon, "%s: %a", r->name, b->amax_epsilon);
        ck_assert_msg(b->margin == 0, "%s", r->name);
        ck_assert_msg(b->source && strlen(b->source) > 4, "%s", r->name);
        ck_assert_msg(mpsim_block_check(b) == MPSIM_OK, "%s", r->name);
    }
}

TEST(rows_by_name)
{
    for (size_t i = 0; i < mpsim_block_count(); i++) {
        const mpsim_block_recipe *b = mpsim_block_at(i);
        ck_assert(b != NULL && mpsim_block_find(b->name) == b);
        char other[32];
        for (size_t k = 0; k < sizeof other; k++) {
            const char c = b->name[k];
            other[k] = c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        }
        ck_assert(mpsim_block_find(other) == b);
    }
    ck_assert(mpsim_block_at(mpsim_block_count()) == NULL);
    ck_assert(mpsim_block_at((size_t)-1) == NULL);
    static const char *const none[] = {"", "mxfp", "mxfp88", "nvfp4-", "-nvfp4", "te current", "mxfp8--floor"};
    for (size_t i = 0; i < COUNT(none); i++)
        ck_assert_msg(mpsim_block_find(none[i]) == NULL, "%s", none[i]);
    ck_assert(mpsim_block_find(NULL) == NULL);
}

/* The grids, once by hand. */
TEST(grids_of_the_oracle)
{
    static const double e2m1[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    for (size_t i = 0; i < COUNT(e2m1); i++)
        ck_assert(grid_of("e2m1")->v[i] == e2m1[i]);
    static const struct {
        const char *name;
        double max, normal, least;
        int emax;
    } rows[] = {{"e4m3", 448, 0x1p-6, 0x1p-9, 8},
                {"e5m2", 57344, 0x1p-14, 0x1p-16, 15},
                {"e3m2", 28, 0.25, 0x1p-4, 4},
                {"e2m3", 7.5, 1, 0x1p-3, 2},
                {"e2m1", 6, 1, 0.5, 2}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const grid *g = grid_of(rows[i].name);
        ck_assert(grid_max(g) == rows[i].max && g->v[1] == rows[i].least);
        ck_assert(g->v[1 << g->mbits] == rows[i].normal && grid_emax(g) == rows[i].emax);
    }
}

/* ---- sizes, statuses ---- */

TEST(grids_and_bytes)
{
    static const struct {
        const char *name;
        size_t rows, cols, grid_rows, grid_cols, bytes;
    } rows[] = {
        {"te-current", 10, 100, 1, 1, 1000 + 4},
        {"te-current", 1, 1, 1, 1, 1 + 4},
        {"torchao-rowwise", 10, 100, 10, 1, 1000 + 40},
        {"ms-amp", 10, 100, 1, 1, 1000 + 4},
        {"te-block-1x128", 10, 300, 10, 3, 3000 + 120},
        {"te-block-128x128", 129, 256, 2, 2, 33024 + 16},
        {"mxfp8", 4, 64, 4, 2, 256 + 8},
        {"mxfp8-floor", 4, 65, 4, 3, 260 + 12},
        {"mxfp6-e3m2", 4, 64, 4, 2, 192 + 8},
        {"mxfp6-e2m3", 4, 64, 4, 2, 192 + 8},
        {"mxfp4", 4, 64, 4, 2, 128 + 8},
        {"nvfp4", 4, 64, 4, 4, 128 + 16 + 4},
        {"nvfp4-2d", 17, 64, 2, 4, 544 + 8 + 4},
        {"nvfp4-torchao", 1, 16, 1, 1, 8 + 1 + 4},
        {"microx-e2m1", 2, 32, 2, 1, 32 + 2},
        {"nvfp4", 1, 1, 1, 1, 1 + 1 + 4},
        {"mxfp4", 3, 4, 3, 1, 6 + 3},
        {"mxfp4", 3, 3, 3, 1, 6 + 3},        /* each row of a block begins at a byte */
        {"mxfp6-e3m2", 2, 33, 2, 2, 50 + 4}, /* 24 and 1 bytes                       */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const mpsim_block_recipe *b = mpsim_block_find(rows[i].name);
        size_t r = 0, c = 0;
        mpsim_block_grid(b, rows[i].rows, rows[i].cols, &r, &c);
        ck_assert_msg(r == rows[i].grid_rows && c == rows[i].grid_cols, "%s: %zu x %zu", rows[i].name, r, c);
        const uint64_t bytes = mpsim_block_bytes(b, rows[i].rows, rows[i].cols);
        ck_assert_msg(bytes == rows[i].bytes, "%s %zu x %zu: %d bytes", rows[i].name, rows[i].rows, rows[i].cols,
                      (int)bytes);
        ck_assert_int_eq(mpsim_block_divides(b), 0);
    }
    const mpsim_block_recipe *b = mpsim_block_find("mxfp8");
    const uint64_t most = SIZE_MAX; /* of 32 bits or 64: bytes have 64 */
    ck_assert(mpsim_block_bytes(b, SIZE_MAX, SIZE_MAX) == UINT64_MAX);
    ck_assert(mpsim_block_bytes(b, 1, SIZE_MAX) == (most < UINT64_MAX ? most + most / 32 + 1 : UINT64_MAX));
    ck_assert(mpsim_block_bytes(b, 1, SIZE_MAX / 2) == SIZE_MAX / 2 + SIZE_MAX / 64 + 1);
    ck_assert_int_eq(mpsim_block_divides(mpsim_block_find("deepseek-1x128")), 1);
    ck_assert_int_eq(mpsim_block_divides(mpsim_block_find("deepseek-128x128")), 1);
    ck_assert_int_eq(mpsim_block_divides(mpsim_block_find("deepgemm-1x128")), 0);
}

/* ---- E8M0 ---- */

/* The scale code of a block with this amax. */
static unsigned e8m0_code(const char *name, float amax, uint64_t *overflow)
{
    const float x[] = {amax, 0};
    uint8_t code = 0;
    mpsim_cast_stats casts;
    mpsim_cast_stats_init(&casts);
    const mpsim_blocks b = {.scale_codes = &code, .casts = &casts};
    ck_assert(mpsim_block_quantize(mpsim_block_find(name), x, 1, 2, -1, 1, NULL, &b, NULL) == MPSIM_OK);
    if (overflow)
        *overflow = casts.counts.overflow;
    return code;
}

CASE("rules", 10);

TEST(exponents_by_hand)
{
    static const struct {
        float amax;
        unsigned floor, even, ceil, rceil, te, microx; /* minus 127, of e4m3: emax is 8 */
    } rows[] = {
        {448, 127, 127, 128, 127, 127, 127},
        {0x1.c00002p8f, 127, 127, 128, 128, 128, 127}, /* 448 + ulp      */
        {464, 127, 127, 128, 128, 128, 127},
        {480, 127, 127, 128, 128, 128, 127},
        {495, 127, 127, 128, 128, 128, 127},
        {496, 127, 128, 128, 128, 128, 127},           /* 1.9375 2^8: half a unit below 512 */
        {0x1.fffffep8f, 127, 128, 128, 128, 128, 128}, /* its log2 is 9 in binary32 */
        {0x1.fffff6p8f, 127, 128, 128, 128, 128, 128}, /* 5 units below 2^9, and 6 */
        {0x1.fffff4p8f, 127, 128, 128, 128, 128, 127},
        {512, 128, 128, 128, 128, 128, 128},
        {513, 128, 128, 129, 128, 128, 128},
        {1, 119, 119, 119, 119, 119, 119},
        {0x1.fffffep127f, 246, 255, 247, 247, 247, 247}, /* EVEN: rounded, it is infinite */
        {0x1.ep127f, 246, 246, 247, 247, 247, 246},
        {0x1p-118f, 1, 1, 1, 1, 1, 1},
        {0x1p-119f, 0, 0, 0, 0, 0, 0},
        {0x1.cp-119f, 0, 0, 1, 0, 0, 0},
        {0x1.c00002p-119f, 0, 0, 1, 0, 0, 0}, /* its quotient rounds to 2^-127 */
        {0x1.c2p-119f, 0, 0, 1, 1, 1, 0},
        {0x1p-149f, 0, 0, 0, 0, 0, 0},
        {0, 0, 0, 0, 0, 0, 0},
        {INFINITY, 255, 255, 255, 255, 254, 255},
        {NAN, 255, 255, 255, 255, 0, 255},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const float a = rows[i].amax;
        const unsigned got[] = {e8m0_code("mxfp8-floor", a, NULL), e8m0_code("mxfp8-even", a, NULL),
                                e8m0_code("mxfp8-ceil", a, NULL),  e8m0_code("mxfp8-rceil", a, NULL),
                                e8m0_code("mxfp8", a, NULL),       e8m0_code("microx-e4m3", a, NULL)};
        const unsigned want[] = {rows[i].floor, rows[i].even, rows[i].ceil, rows[i].rceil, rows[i].te, rows[i].microx};
        for (size_t k = 0; k < COUNT(got); k++)
            ck_assert_msg(got[k] == want[k], "amax %a, rule %zu: %u, expected %u", (double)a, k, got[k], want[k]);
    }
}

/* 2^ceil(log2(amax / max)): max 2^e >= amax > max 2^(e-1), in exact numbers. */
TEST(te_in_closed_form)
{
    static const struct {
        const char *name;
        double max;
    } rows[] = {{"mxfp8", 448}, {"mxfp8-e5m2", 57344}};
    uint64_t state = test_seed() + 7, overflow = 0;
    for (size_t r = 0; r < COUNT(rows); r++)
        for (size_t i = 0; i < test_scaled(20000); i++) {
            float a = f32_of_bits((uint32_t)(test_random(&state) >> 33));
            if (i % 4 == 0) /* near the edge */
                a = f32_of_bits(bits_of_f32(ldexpf((float)rows[r].max, (int)(i % 220) - 100)) + (uint32_t)(i / 4 % 9) -
                                4);
            if (!isfinite(a) || (double)a < rows[r].max * 0x1p-125)
                continue;
            const int e = (int)e8m0_code(rows[r].name, a, &overflow) - 127;
            ck_assert_msg(ldexp(rows[r].max, e) >= (double)a && ldexp(rows[r].max, e - 1) < (double)a &&
                              (overflow == 0 || a > 0x1.8p127f), /* 2^128 is no binary32 number */
                          "%s: amax %a gives 2^%d, %d saturate", rows[r].name, (double)a, e, (int)overflow);
        }
}

/* Between 448 and 512 the rules differ: FLOOR clamps (what would round to 480 and beyond is
 * counted), TE and RCEIL do not. */
TEST(floor_saturates_and_te_does_not)
{
    uint64_t state = test_seed() + 8;
    for (size_t i = 0; i < 2000; i++) {
        const int e = (int)(test_random(&state) % 220) - 110;
        const float m = 448 + 64 * (float)(1 + (test_random(&state) >> 44)) * 0x1p-20f;
        const float a = ldexpf(m < 512 ? m : 511, e);
        uint64_t floored, te, up, ceiling;
        const unsigned f = e8m0_code("mxfp8-floor", a, &floored), t = e8m0_code("mxfp8", a, &te);
        ck_assert(f == (unsigned)(127 + e) && t == f + 1);
        ck_assert(e8m0_code("mxfp8-rceil", a, &up) == t);
        ck_assert(e8m0_code("mxfp8-ceil", a, &ceiling) == t);
        ck_assert(te == 0 && up == 0 && ceiling == 0);
        ck_assert_msg(floored == (m > 464), "%a", (double)a);
        float value = 0;
        const mpsim_blocks b = {.values = &value};
        ck_assert(mpsim_block_quantize(mpsim_block_find("mxfp8-floor"), &a, 1, 1, -1, 1, NULL, &b, NULL) == MPSIM_OK);
        ck_assert(value == ldexpf(448, e));
    }
}

/* ---- NVFP4 ---- */

TEST(nvfp4_by_hand)
{
    /* The tensor's amax 2688 makes both tensor scales 1. A block amax of 6 has the scale 1; one of
       2^-8 has 2^-8 / 6 < 2^-10: s8 = 0, the factor is FLT_MAX, and everything saturates to 6 but
       stands for 0. */
    float x[32] = {6, 3, -2.4f, 0.2f}, inverse[2], factor[2], values[32], whole;
    uint8_t s8[2], codes[32];
    x[16] = 0x1p-8f;
    x[17] = -0x1p-30f;
    const mpsim_blocks b = {.codes = codes, .values = values, .scale_codes = s8, .scales = factor, .inverses = inverse};
    const mpsim_block_recipe *nvfp4 = mpsim_block_find("nvfp4");
    ck_assert(mpsim_block_quantize(nvfp4, x, 1, 32, 2688, 1, NULL, &b, &whole) == MPSIM_OK);
    ck_assert(whole == 1 && s8[0] == 0x38 && s8[1] == 0 && factor[0] == 1 && factor[1] == FLT_MAX);
    ck_assert(codes[0] == 7 && codes[1] == 5 && codes[2] == 0xc && codes[3] == 0);
    ck_assert(codes[16] == 7 && codes[17] == 0xf && codes[18] == 0);
    ck_assert(values[0] == 6 && values[2] == -2 && values[16] == 0 && values[17] == 0);
    /* amax 0 and infinity: the tensor scale is 1. */
    ck_assert(mpsim_block_quantize(nvfp4, x, 1, 32, 0, 1, NULL, &b, &whole) == MPSIM_OK);
    ck_assert(whole == 1 && s8[0] == 0x38);
    ck_assert(mpsim_block_quantize(nvfp4, x, 1, 32, INFINITY, 1, NULL, &b, &whole) == MPSIM_OK);
    ck_assert(whole == 1 && s8[0] == 0x38);
    /* Of x itself: 6. S_enc = 448; the first block has the scale 448, the second
       E4M3(2^-8 448 / 6). */
    ck_assert(mpsim_block_quantize(nvfp4, x, 1, 32, -1, 1, NULL, &b, &whole) == MPSIM_OK);
    ck_assert(s8[0] == 0x7e && codes[0] == 7 && whole == 1.0f / 448);
    ck_assert(s8[1] == 0x2a || s8[1] == 0x29);
    /* NaN is +6 and is dropped from amax. */
    x[1] = NAN;
    x[2] = -NAN;
    x[3] = -INFINITY;
    ck_assert(mpsim_block_quantize(nvfp4, x, 1, 16, 2688, 1, NULL, &b, &whole) == MPSIM_OK);
    ck_assert(codes[1] == 7 && codes[2] == 7 && codes[3] == 0xf && s8[0] == 0x7e);
    x[3] = 0;
    ck_assert(mpsim_block_quantize(nvfp4, x, 1, 16, 2688, 1, NULL, &b, &whole) == MPSIM_OK);
    ck_assert(codes[1] == 7 && codes[2] == 7 && s8[0] == 0x38);
    /* All zeros. */
    memset(x, 0, sizeof x);
    ck_assert(mpsim_block_quantize(nvfp4, x, 1, 32, -1, 1, NULL, &b, &whole) == MPSIM_OK);
    ck_assert(whole == 1 && s8[0] == 0 && codes[0] == 0 && factor[0] == FLT_MAX && values[0] == 0);
}

/* The stochastic rule: every number of the interval with every byte, as the emulation has it; the
 * mean is the number where 256 steps divide the interval. */
TEST(stochastic_rule_is_unbiased)
{
    const grid *g = grid_of("e2m1");
    for (int k = 0; k < 6 * 512; k++) {
        const double a = k / 512.0, step = a < 2 ? 0.5 : a < 4 ? 1 : 2;
        double sum = 0;
        for (unsigned random = 0; random < 256; random++)
            sum += oracle_cast(g, STOCHASTIC, (float)a, random).value;
        const double gap = a - sum / 256;
        ck_assert_msg(gap >= 0 && gap < step / 256, "%a: %a", a, sum / 256);
        ck_assert(fmod(a, step / 256) != 0 || gap == 0);
    }
}

TEST(stochastic_mean)
{
    enum { N = 16 * 2048 };
    static float x[N], values[N];
    static const float at[] = {0.1f, 0.6f, 1.125f, 2.3f, 3.99f, 5, -4.4f, -0.25f};
    const mpsim_block_recipe *b = mpsim_block_find("nvfp4-sr");
    const mpsim_blocks o = {.values = values};
    for (size_t k = 0; k < COUNT(at); k++) {
        for (size_t i = 0; i < N; i++)
            x[i] = i % 16 ? at[k] : 6;
        const mpsim_rng rng = {test_seed(), k, 0};
        ck_assert(mpsim_block_quantize(b, x, 16, N / 16, 2688, 1, &rng, &o, NULL) == MPSIM_OK);
        double sum = 0, exact = 0, variance = 0;
        for (unsigned random = 0; random < 256; random++) {
            const double v = oracle_cast(grid_of("e2m1"), STOCHASTIC, at[k], random).value;
            exact += v / 256;
            variance += v * v / 256;
        }
        variance -= exact * exact;
        const double n = N / 16 * 15;
        for (size_t i = 0; i < N; i++)
            sum += i % 16 ? (double)values[i] : 0;
        ck_assert_msg(fabs(sum / n - exact) <= 5 * sqrt(variance / n), "%a: mean %a", (double)at[k], sum / n);
        ck_assert(fabs(exact - (double)at[k]) < 2.0 / 256);
    }
}

/* ---- scales in binary32 ---- */

TEST(scales_by_hand)
{
    static const struct {
        const char *name;
        float x, given;
        uint32_t want;
    } rows[] = {
        {"torchao-tensorwise", 0, 1, 0x57cbba10},      /* 448e12                             */
        {"torchao-tensorwise-e5m2", 0, 1, 0x5b4bba10}, /* 57344e12                           */
        {"torchao-tensorwise", 1e-13f, 1, 0x57cbba10},
        {"torchao-tensorwise", 3, 1, 0x43155555},
        {"torchao-rowwise", 3, 1, 0x43000000},
        {"torchao-rowwise", 448, 1, 0x3f800000},
        {"te-current", 0, 1, 0x3f800000},
        {"te-current", INFINITY, 1, 0x3f800000},
        {"te-current", NAN, 1, 0x3f800000},
        {"te-current", 3, 1, 0x43155555},
        {"te-current", 0x1p-149f, 1, 0x7f7fffff},
        {"te-current-pow2", 3, 1, 0x43000000},
        {"te-current-pow2", 0x1p-149f, 1, 0x7f000000},
        {"te-current-e5m2", 3, 1, 0x46955555}, /* 57344/3 = 19114.666...             */
        {"te-block-1x128", 449, 1, 0x3f000000},
        {"ms-amp", 3, 1, 0x43000000},
        {"ms-amp", 448, 8, 0x3f800000},
        {"ms-amp", 449, 8, 0x3f000000},
        {"ms-amp", 1e6f, 8, 0x39800000}, /* 448e-6 has the exponent -12         */
        {"ms-amp", 0, 8, 0x41000000},
        {"ms-amp", INFINITY, 8, 0x3e000000}, /* 1/8: the quirk                      */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        float s = 0, inverse = 0;
        const mpsim_blocks b = {.scales = &s, .inverses = &inverse};
        ck_assert(mpsim_block_quantize(mpsim_block_find(rows[i].name), &rows[i].x, 1, 1, -1, rows[i].given, NULL, &b,
                                       NULL) == MPSIM_OK);
        ck_assert_msg(bits_of_f32(s) == rows[i].want, "%s of %a: %a, expected %a", rows[i].name, (double)rows[i].x,
                      (double)s, (double)f32_of_bits(rows[i].want));
        ck_assert(block_same(inverse, f32_div(1, s)));
    }
}

TEST(infinite_scales_of_other_inputs)
{
    static const double of[] = {BIG, 0x1.fep127, 65504};
    const float x = 0x1p-140f;
    for (size_t i = 0; i < COUNT(of); i++)
        for (int power2 = 0; power2 < 2; power2++) {
            mpsim_block_recipe b = *mpsim_block_find("te-block-1x128");
            b.scale_for_inf = of[i];
            b.power_of_two = (uint8_t)power2;
            float s = 0;
            const mpsim_blocks o = {.scales = &s};
            ck_assert(mpsim_block_quantize(&b, &x, 1, 1, -1, 1, NULL, &o, NULL) == MPSIM_OK);
            ck_assert((double)s == (power2 ? ldexp(1, floor_log2(of[i])) : of[i]));
        }
}

TEST(margin_of_ms_amp)
{
    for (int margin = -3; margin <= 12; margin++) {
        mpsim_block_recipe b = *mpsim_block_find("ms-amp");
        b.margin = margin;
        const float x[] = {3, -1};
        float s = 0;
        const mpsim_blocks o = {.scales = &s};
        ck_assert(mpsim_block_quantize(&b, x, 1, 2, -1, 1, NULL, &o, NULL) == MPSIM_OK);
        ck_assert_msg((double)s == ldexp(1, 7 - margin), "margin %d: %a", margin, (double)s);
    }
}

TEST_MAIN("block-rules");
