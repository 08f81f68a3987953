/* t-vectors.c -- the vector functions of every instruction set (lib/layer/kernel) against the functions of
 * one number: exp, tanh, erf, sigmoid of arguments from all binades, in arrays of any length; normal numbers of all words. */
#include "lib/layer/kernel/kernel.h"
#include "support/support.h"

#include <mpsim/isa.h>
#include <mpsim/transformer.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a tile: the last of them have all columns. */
enum { COLS = 67, ROWS = 200, LENGTH = COLS + ROWS, N = ROWS * COLS };

static float x[2 * LENGTH * COLS], y[2 * LENGTH * COLS];

/* Any codes, or numbers up to 128 and their neighbours. */
static void draw(float *to, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t u = test_random(seed);
        to[i] = f32_of_bits((uint32_t)(u >> 32));
        if (u % 2)
            to[i] = (float)ldexp((double)(int32_t)(u >> 32), -24 - (int)(u >> 8 & 15));
    }
}

static void same(const char *what, float from, float got, float want)
{
    ck_assert_msg(bits_of_f32(got) == bits_of_f32(want) || (isnan(got) && isnan(want)), "%s, %s of %a: %a, expected %a",
                  mpsim_isa_active(), what, (double)from, (double)got, (double)want);
}

static void check_exp(void)
{
    const mpsim_causal_tile t = {.c = {.matrices = 1, .length = LENGTH, .scale = 1}, .cols = COLS};
    static const float zeros[LENGTH];
    ck_assert(mpsim_causal_tile_again(&t, y, x, zeros) == MPSIM_OK);
    for (size_t i = LENGTH * COLS - N; i < LENGTH * COLS; i++)
        same("exp", x[i], y[i], mpsim_exp(x[i]));
}

static float gelu(mpsim_activation kind, float v)
{
    if (kind == MPSIM_GELU)
        return 0.5f * v * (1 + mpsim_erf(v * 0x1.6a09e6p-1f));
    const float inner = v + 0x1.6e4e26p-5f * (v * v * v);
    return 0.5f * v * (1 + mpsim_tanh(0x1.988454p-1f * inner));
}

static void check_gelu(const char *what, mpsim_activation kind, size_t cols)
{
    ck_assert(mpsim_activate(kind, NULL, NULL, y, x, N / cols, cols) == MPSIM_OK);
    for (size_t i = 0; i < N / cols * cols; i++)
        same(what, x[i], y[i], gelu(kind, x[i]));
}

static void check_sigmoid(void)
{
    ck_assert(mpsim_activate(MPSIM_SWIGLU, NULL, NULL, y, x, ROWS, COLS) == MPSIM_OK);
    for (size_t i = 0; i < N; i++) {
        const float gate = x[i / COLS * 2 * COLS + i % COLS];
        const float value = x[(i / COLS * 2 + 1) * COLS + i % COLS];
        same("sigmoid", gate, y[i], gate * mpsim_sigmoid(gate) * value);
    }
}

/* Normal numbers one at a time, from any index on. */
static void check_normal(void)
{
    const mpsim_rng rng = {7, 11, 5};
    mpsim_normal_array(&rng, 0.02f, y, 1001);
    for (size_t i = 0; i < 1001; i++) {
        const uint64_t at = 2 * (rng.index + i);
        const uint32_t v = mpsim_rng_word(7, 11, at), w = mpsim_rng_word(7, 11, at + 1);
        const float u = (float)((v >> 8) + 1) * 0x1p-24f, turn = (float)(w >> 8) * 0x1p-24f;
        const float radius = sqrtf(-2.0f * mpsim_log(u));
        same("normal", u, y[i], 0.02f * (radius * mpsim_cos(turn * 0x1.921fb6p+2f)));
    }
}

static void check_counts(void)
{
    for (size_t n = 0; n < 70; n++) {
        uint64_t nonzero = 0, finite = 0;
        for (size_t i = 0; i < n; i++) {
            y[i] = i % 5 == 1 ? 0.0f : i % 7 == 3 ? -INFINITY : i % 11 == 4 ? NAN : x[i];
            finite += isfinite(y[i]) != 0;
            nonzero += isfinite(y[i]) && y[i] != 0;
        }
        const mpsim_number_counts c = mpsim_count_numbers(y, n);
        ck_assert_uint_eq(c.nonzero, nonzero);
        ck_assert_uint_eq(c.finite, finite);
    }
}

CASE("vectors", 60);

TESTS(test_vectors, test_isa_count())
{
    uint64_t seed = test_seed();
    if (!test_isa_use((size_t)_i))
        return;
    for (size_t k = 0; k < test_scaled(4); k++) {
        draw(x, sizeof x / sizeof *x, &seed);
        x[7] = 0.0f;
        x[8] = -0.0f;
        check_exp();
        check_gelu("tanh", MPSIM_GELU_TANH, 1 + k);
        check_gelu("erf", MPSIM_GELU, 300);
        check_gelu("erf", MPSIM_GELU, COLS);
        check_sigmoid();
        check_counts();
        check_normal();
    }
    mpsim_isa_use(mpsim_isa_at(0));
}

/* Every number that a word gives the radius, and the turn. */
TESTS(test_normal_words, test_isa_count())
{
    enum { SOME = 1 << 14, ALL = 1 << 24 };
    static uint32_t words[2 * SOME];
    static float want[SOME], got[SOME];
    if (!test_isa_use((size_t)_i))
        return;
    for (uint32_t first = 0; first < ALL; first += SOME) {
        if (first && first != ALL - SOME && !test_in_part(first / SOME, 4))
            continue;
        for (uint32_t i = 0; i < SOME; i++) {
            words[2 * i] = (first + i) << 8 | (i & 255);
            words[2 * i + 1] = (first + i) * 0x9e3779b1u << 8;
        }
        mpsim_normal_plain(0.02f, want, words, SOME);
        mpsim_layer_kernels_active()->normal(0.02f, got, words, SOME);
        for (size_t i = 0; memcmp(got, want, sizeof got) != 0 && i < SOME; i++)
            same("normal", (float)(first + i), got[i], want[i]);
    }
    mpsim_isa_use(mpsim_isa_at(0));
}

TEST_MAIN("layer-vectors");
