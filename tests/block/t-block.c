/* t-block.c -- block quantisation of matrices against an oracle of its own (oracle/block.h). Rules
 * by hand: t-rules.c. */
#include "oracle/block.h"
#include "support/blockcompare.h"
#include "support/blockinput.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* What the sources do not say of a rule is left out: NVFP4 of torchao where the tensor's scale or
 * its reciprocal is 0, infinite or NaN. */
static int specified(const row *r, float amax)
{
    return r->rule != MPSIM_SCALE_NVFP4_TORCHAO || (isfinite(amax) && amax > 0x1p-116f);
}

static const struct {
    size_t rows, cols;
} shapes[] = {{1, 1},   {1, 7},   {5, 1},   {1, 32}, {1, 33},    {3, 16},  {17, 31},
              {16, 16}, {33, 48}, {2, 129}, {40, 3}, {131, 130}, {1, 300}, {0, 8}};

CASE("quantisation", 20);

TEST(matrices)
{
    static float x[NMAX];
    uint64_t state = test_seed() + 5;
    report p = {0};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int fill = 0; fill < FILLS; fill++) {
            const size_t n = shapes[s].rows * shapes[s].cols;
            if (n > 4000 && fill != ORDINARY && !test_expensive())
                continue;
            for (size_t i = 0; i < n; i++)
                x[i] = block_input(fill, i, &state);
            for (size_t i = 0; i < ORACLE_ROWS; i++) {
                const size_t all[4] = {0, shapes[s].rows, 0, shapes[s].cols};
                const row *r = &oracle_table[i];
                if ((fill != ORDINARY || n > 1000) && !test_in_part(s + (size_t)fill + i, 1))
                    continue;
                if (specified(r, block_amax(r, x, shapes[s].cols, all)))
                    block_compare(&p, r, x, shapes[s].rows, shapes[s].cols, -1, 4);
            }
        }
    block_finish("matrices", &p);
}

/* ---- constructed largest magnitudes ---- */

static size_t amax_list(float *a, size_t n)
{
    /* clang-format off */
    static const float fixed[] = {
        0,        448,  464,    480,     57344, 61440, 65504,  6,       7,       7.5f,
        8,        28,   30,     2688,    5,     1e-12f, 9e-13f, 1.1e-12f, BIG,   0x1.fep127f,
        0x1p-149f, 0x1p-148f, 0x1p-128f, 0x1p-127f, 0x1.8p-127f, 0x1.fffffcp-127f, 0x1p-126f,
        0x1.cp-119f, 0x1.cp-118f, 0x1.ep-118f, 0x1.cp-112f, 0x1p-120f,
    };
    /* clang-format on */
    size_t k = 0;
    for (size_t i = 0; i < COUNT(fixed); i++) {
        a[k++] = fixed[i];
        a[k++] = nextafterf(fixed[i], INFINITY);
        if (fixed[i] > 0)
            a[k++] = nextafterf(fixed[i], 0);
    }
    for (int e = -149; e <= 127; e += e < -120 || e > 110 || abs(e) < 12 ? 1 : 13) {
        static const float m[] = {1, 1.75f, 1.5f, 1.875f, 1.9375f, 0x1.efffep0f, 0x1.dfffep0f, 1.96875f};
        a[k++] = ldexpf(1, e);
        a[k++] = nextafterf(ldexpf(1, e), 0);
        a[k++] = nextafterf(ldexpf(1, e), INFINITY);
        for (size_t i = 1; i < COUNT(m); i += 1)
            a[k++] = ldexpf(m[i], e);
    }
    a[k++] = INFINITY;
    a[k++] = NAN;
    ck_assert(k <= n);
    return k;
}

/* A block around its amax: the number itself, fractions of it, zeros, the smallest numbers. */
static void around(float *x, size_t n, float amax, uint64_t *state)
{
    x[0] = amax;
    for (size_t i = 1; i < n; i++) {
        const float f = (float)(test_random(state) >> 40) * 0x1p-24f;
        x[i] = i % 3 == 0 ? ldexpf(amax, -(int)(i % 19)) : i % 3 == 1 ? amax * f : -amax * f * f;
        if (isnan(amax) || isinf(amax))
            x[i] = ldexpf(1 + f, (int)i * 8 - 60);
    }
    x[n - 1] = 0;
    x[n - 2] = -0.0f;
    x[n - 3] = -0x1p-149f;
    if (amax < 0x1p-149f)
        x[n - 3] = 0;
    x[n - 4] = -amax;
}

TEST(constructed_amaxes)
{
    static float list[1200];
    const size_t n = amax_list(list, COUNT(list));
    uint64_t state = test_seed() + 6;
    report p = {0};
    float x[16];
    for (size_t i = 0; i < n; i++) {
        around(x, COUNT(x), list[i], &state);
        for (size_t k = 0; k < ORACLE_ROWS; k++)
            if (specified(&oracle_table[k], list[i]))
                block_compare(&p, &oracle_table[k], x, 1, COUNT(x), -1, 8);
    }
    block_finish("amaxes", &p);
}

/* ---- ties of every element format ---- */

/* The largest number, then midpoints and their neighbours times a power of two. */
TEST(ties_of_elements)
{
    report p = {0};
    for (size_t k = 0; k < ORACLE_ROWS; k++) {
        const row *r = &oracle_table[k];
        const grid *g = grid_of(r->element);
        const unsigned long long before = p.ties;
        for (int shift = -1; shift <= 1; shift++)
            for (unsigned c = 0; c < g->top; c += 4) {
                float x[16];
                x[0] = ldexpf((float)grid_max(g), shift);
                for (unsigned i = 0; i < 15; i++) {
                    const unsigned at = c + i / 3 < g->top ? c + i / 3 : g->top - 1;
                    const float middle = ldexpf((float)(g->v[at] + g->v[at + 1]) / 2, shift);
                    x[i + 1] = i % 3 == 0 ? middle : nextafterf(middle, i % 3 == 1 ? 0 : 1e6f);
                    if (i & 1)
                        x[i + 1] = -x[i + 1];
                }
                block_compare(&p, r, x, 1, 16, 2688, 1);
            }
        ck_assert_msg(r->mode == STOCHASTIC || p.ties - before >= g->top, "%s: %llu ties", r->name, p.ties - before);
    }
    block_finish("ties", &p);
}

/* ---- NVFP4 ---- */

TEST(amax_from_elsewhere)
{
    static const float globals[] = {0,   1,     2688,   3,        1e4f,      1e-3f,     0x1p-149f,
                                    BIG, 1e38f, 1e-36f, INFINITY, 0x1p-120f, 0x1p-140f, 7.7f};
    static const int fills[] = {ORDINARY, FEW_BITS, WIDE, SMALL, ANY, HUGE_ONES, ZEROS};
    static float x[3 * 40];
    uint64_t state = test_seed() + 9;
    report p = {0};
    for (size_t k = 0; k < ORACLE_ROWS; k++) {
        const row *r = &oracle_table[k];
        for (size_t g = 0; g < COUNT(globals); g++)
            for (size_t f = 0; f < COUNT(fills); f++) {
                if (r->rule != MPSIM_SCALE_NVFP4_TE && (r->rule != MPSIM_SCALE_NVFP4_TORCHAO || g < 1 || g > 5))
                    continue;
                for (size_t i = 0; i < COUNT(x); i++)
                    x[i] = block_input(fills[f], i, &state);
                if (f < 2) /* a tiny block, whose scale is 0 */
                    for (size_t i = 0; i < 16; i++)
                        x[i] *= 0x1p-20f;
                block_compare(&p, r, x, 3, 40, globals[g], 1);
            }
    }
    block_finish("NVFP4", &p);
}

/* Block scales about the ties of E4M3: that S_enc is multiplied by a rounded 1/6 decides there. */
TEST(ties_of_block_scales)
{
    static const float globals[] = {2688, 3, 1000, 0.7f, 448, 0x1.234568p9f};
    const grid *g = grid_of("e4m3");
    report p = {0};
    for (size_t k = 0; k < ORACLE_ROWS; k++) {
        const row *r = &oracle_table[k];
        if (r->rule != MPSIM_SCALE_NVFP4_TE && r->rule != MPSIM_SCALE_NVFP4_TORCHAO)
            continue;
        for (size_t i = 0; i < COUNT(globals); i++)
            for (unsigned c = 0; c < g->top; c++) {
                const double tie = (g->v[c] + g->v[c + 1]) / 2;
                const float x = (float)(tie * 6 * (double)globals[i] / 2688);
                float a[16 * 5];
                for (size_t n = 0; n < COUNT(a); n++)
                    a[n] = n % 16 ? x * (float)(n % 16) / 16 : f32_of_bits(bits_of_f32(x) + (uint32_t)(n / 16) - 2);
                block_compare(&p, r, a, 1, COUNT(a), globals[i], 1);
            }
    }
    block_finish("block scales", &p);
}

/* ---- scales that are given ---- */

TEST(given_scales)
{
    static const float given[] = {1, 448, 0.3f, 0x1p-126f, 0x1p100f, BIG, 0x1p-60f, 149.333f};
    static float x[700];
    uint64_t state = test_seed() + 10;
    report p = {0};
    for (size_t g = 0; g < COUNT(given); g++)
        for (int fill = 0; fill < FILLS; fill++)
            for (size_t f = 0; f < ORACLE_ELEMENTS; f++) {
                row r = oracle_given;
                r.element = oracle_elements[f];
                for (size_t i = 0; i < COUNT(x); i++)
                    x[i] = block_input(fill, i, &state);
                block_compare(&p, &r, x, 7, 20, -1, given[g]);
            }
    block_finish("given scales", &p);
}

TEST_MAIN("block");
