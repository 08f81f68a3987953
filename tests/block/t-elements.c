/* t-elements.c -- how the elements of a block are rounded: all fp16 inputs, ties of E2M1,
 * every mode, the noise of normal numbers. */
#include "oracle/block.h"
#include "support/blockinput.h"
#include "support/support.h"

#include <gmp.h>
#include <math.h>
#include <stdio.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- all fp16 inputs, by exact rationals ---- */

/* |h| as a rational; -1 for NaN, 1 for infinity, else 0. */
static int half_value(mpq_t q, unsigned h)
{
    const int e = (int)(h >> 10 & 31), t = (int)(h & 1023);
    if (e == 31)
        return t ? -1 : 1;
    mpq_set_si(q, e ? 1024 + t : t, 1);
    mpq_mul_2exp(q, q, (mp_bitcnt_t)(e ? e : 1));
    mpq_div_2exp(q, q, 25);
    return 0;
}

/* The code whose value is nearest to q, the even one of two. */
static unsigned nearest_rational(const mpq_t *values, unsigned top, const mpq_t q)
{
    static mpq_t middle;
    static int ready;
    if (!ready)
        mpq_init(middle);
    ready = 1;
    unsigned low = 0, high = top + 1; /* 480 or 65536 would be the next one */
    while (high - low > 1) {
        const unsigned m = (low + high) / 2;
        *(mpq_cmp(values[m], q) <= 0 ? &low : &high) = m;
    }
    mpq_add(middle, values[low], values[high]);
    mpq_div_2exp(middle, middle, 1);
    const int order = mpq_cmp(q, middle);
    const unsigned i = order > 0 || (order == 0 && (low & 1)) ? high : low;
    return i > top ? top : i;
}

static void every_half(const char *name, unsigned top, int bias, int mbits)
{
    static float x[65536], values[65536];
    static uint8_t codes[65536];
    mpq_t v[130], q;
    mpq_init(q);
    for (unsigned c = 0; c <= top + 1; c++) {
        const unsigned m = 1u << mbits, e = c / m, t = c % m;
        mpq_init(v[c]);
        mpq_set_ui(v[c], e ? m + t : t, 1);
        mpq_mul_2exp(v[c], v[c], e ? e : 1);
        mpq_div_2exp(v[c], v[c], (mp_bitcnt_t)(bias + mbits));
    }
    for (unsigned h = 0; h < 65536; h++) {
        const int kind = half_value(q, h & 0x7fff);
        x[h] = kind < 0 ? (float)NAN : kind > 0 ? (float)INFINITY : (float)mpq_get_d(q);
        x[h] = h & 0x8000 ? -x[h] : x[h];
    }
    row r = oracle_given;
    r.element = name;
    const mpsim_block_recipe b = oracle_recipe(&r);
    const mpsim_blocks o = {.codes = codes, .values = values};
    ck_assert(mpsim_block_quantize(&b, x, 256, 256, -1, 1, NULL, &o, NULL) == MPSIM_OK);
    unsigned wrong = 0, first = 0;
    for (unsigned h = 0; h < 65536; h++) {
        const int kind = half_value(q, h & 0x7fff);
        unsigned want = kind ? top : nearest_rational(v, top, q);
        want = kind < 0 ? 0x7f : want | (h & 0x8000 ? 0x80 : 0);
        const double value = kind < 0 ? (double)NAN : mpq_get_d(v[want & 0x7f]);
        if (codes[h] != want || (kind >= 0 && fabs((double)values[h]) != value) || (kind < 0 && !isnan(values[h])))
            first = wrong++ == 0 ? h : first;
    }
    for (unsigned c = 0; c <= top + 1; c++)
        mpq_clear(v[c]);
    mpq_clear(q);
    printf("# every fp16 to %s: 65536 codes, %u wrong\n", name, wrong);
    ck_assert_msg(wrong == 0, "%u halfs to %s differ, first %04x: %02x", wrong, name, first, codes[first]);
}

CASE("elements", 20);

TEST(every_half_to_fp8)
{
    every_half("e4m3", 0x7e, 7, 3);
    every_half("e5m2", 0x7b, 15, 2);
}

/* ---- ties of E2M1 ---- */

TEST(table_of_e2m1_ties)
{
    static const float x[] = {6, .25f, .75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, -.25f, -5};
    static const struct {
        const char *name;
        uint8_t codes[10];
    } rows[] = {
        {"mxfp4", {7, 0, 2, 2, 4, 4, 6, 6, 8, 14}},
        {"nvfp4", {7, 0, 2, 2, 4, 4, 6, 6, 8, 14}},
        {"nvfp4-2d", {7, 0, 2, 2, 4, 4, 6, 6, 8, 14}},
        {"microx-e2m1", {7, 1, 2, 3, 4, 5, 6, 7, 9, 15}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint8_t codes[10];
        const mpsim_blocks b = {.codes = codes};
        ck_assert(mpsim_block_quantize(mpsim_block_find(rows[i].name), x, 1, 10, 2688, 1, NULL, &b, NULL) == MPSIM_OK);
        for (size_t k = 0; k < 10; k++)
            ck_assert_msg(codes[k] == rows[i].codes[k], "%s: %a: %d", rows[i].name, (double)x[k], codes[k]);
    }
}

/* ---- modes of elements ---- */

/* Every mode of the elements is that of mpsim/round.h, also under E8M0, and saturates. */
static int rounds_away(int mode, double nu, int odd, int minus, uint32_t word)
{
    const double random = (double)(word >> 27), draws = 32;
    switch (mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        return nu > 0.5 || (nu == 0.5 && odd);
    case MPSIM_ROUND_NEAREST_AWAY:
        return nu >= 0.5;
    case MPSIM_ROUND_UP:
        return nu > 0 && !minus;
    case MPSIM_ROUND_DOWN:
        return nu > 0 && minus;
    case MPSIM_ROUND_TO_ODD:
        return nu > 0 && !odd;
    case MPSIM_ROUND_STOCHASTIC_A:
        return floor(nu * draws) + random >= draws;
    case MPSIM_ROUND_STOCHASTIC_B:
        return floor(nu * 2 * draws) + 2 * random + 1 >= 2 * draws;
    case MPSIM_ROUND_STOCHASTIC_C:
        return nearbyint(nu * draws) + random >= draws;
    default:
        return 0;
    }
}

TEST(modes_of_elements)
{
    enum { N = 32 * 32 };
    static float x[N];
    static uint8_t codes[N];
    static const char *const rows[] = {"te-current", "mxfp8", "mxfp6-e3m2", "mxfp4", "mxfp8-e5m2"};
    const mpsim_rng rng = {test_seed(), 5, 1234};
    uint64_t state = test_seed() + 15;
    for (size_t k = 0; k < COUNT(rows); k++)
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
            mpsim_block_recipe b = *mpsim_block_find(rows[k]);
            const grid *g = grid_of(b.element);
            b.element_mode = (uint8_t)mode;
            b.sr_bits = 5;
            for (size_t i = 0; i < N; i++) {
                x[i] = i % 2 ? ordinary(&state, 4, 14) : (float)((int)(test_random(&state) % 129) - 64) / 8;
                while (fabs((double)x[i]) >= grid_max(g))
                    x[i] /= 2;
                if (i % 32 == 0) /* makes the scale 1 */
                    x[i] = (float)grid_max(g);
            }
            const mpsim_blocks o = {.codes = codes};
            ck_assert(mpsim_block_quantize(&b, x, 32, 32, -1, 1, &rng, &o, NULL) == MPSIM_OK);
            for (size_t i = 0; i < N; i++) {
                const double a = fabs((double)x[i]);
                unsigned low = 0;
                while (low < g->top && g->v[low + 1] <= a)
                    low++;
                const double nu = (a - g->v[low]) / (g->v[low + 1] - g->v[low]);
                const int minus = signbit(x[i]) != 0;
                const uint32_t word = mpsim_rng_word(rng.seed, rng.stream, rng.index + i);
                unsigned want = low + (rounds_away(mode, nu, low & 1, minus, word) ? 1 : 0);
                want = (want > g->top ? g->top : want) | (minus ? 1u << (g->bits - 1) : 0);
                ck_assert_msg(codes[i] == want, "%s mode %d: %a: %d, expected %u", rows[k], mode, (double)x[i],
                              codes[i], want);
            }
        }
}

/* ---- published figures ---- */

/* Signal to noise of normal numbers in decibels: 31.52 and 25.54. */
TEST(noise_of_normal_numbers)
{
    enum { N = 1 << 18 };
    static float x[N];
    static double d[N];
    uint64_t state = test_seed() + 11;
    for (size_t i = 0; i < N; i += 2) {
        const double u = ((double)(test_random(&state) >> 11) + 1) * 0x1p-53;
        const double a = (double)(test_random(&state) >> 11) * 0x1p-53 * 6.283185307179586;
        x[i] = (float)(sqrt(-2 * log(u)) * cos(a));
        x[i + 1] = (float)(sqrt(-2 * log(u)) * sin(a));
    }
    for (size_t i = 0; i < N; i++)
        d[i] = (double)x[i];
    mpsim_stats s;
    mpsim_stats_init(&s);
    mpsim_stats_add(&s, d, N);
    static const struct {
        const char *element;
        double db;
    } rows[] = {{"e4m3", 31.52}, {"e5m2", 25.54}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        row r = oracle_given;
        r.element = rows[i].element;
        const mpsim_block_recipe b = oracle_recipe(&r);
        mpsim_cast_stats casts;
        mpsim_cast_stats_init(&casts);
        const mpsim_blocks o = {.casts = &casts};
        ck_assert(mpsim_block_quantize(&b, x, 512, N / 512, -1, 1, NULL, &o, NULL) == MPSIM_OK);
        const double db = mpsim_cast_stats_sqnr_db(&casts, &s);
        printf("# %s: %.3f dB\n", rows[i].element, db);
        ck_assert_msg(fabs(db - rows[i].db) < 0.06, "%s: %f dB", rows[i].element, db);
    }
}

TEST_MAIN("block-elements");
