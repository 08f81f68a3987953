/* t-hadamard.c -- the Hadamard transform: its bits, its matrix in exact numbers, its
 * arguments. */
#include "oracle/block.h"
#include "support/blockinput.h"
#include "support/support.h"

#include <gmp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const int signs[16] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

/* Butterflies of neighbours: distances 1, 2, 4, 8. */
static void butterflies(float y[16])
{
    for (int i = 0; i < 16; i++)
        y[i] = signs[i] < 0 ? -y[i] : y[i];
    for (int h = 1; h < 16; h *= 2)
        for (int i = 0; i < 16; i++)
            if (!(i & h)) {
                const float a = y[i], b = y[i + h];
                y[i] = f32_add(a, b);
                y[i + h] = f32_add(a, -b);
            }
    for (int i = 0; i < 16; i++)
        y[i] = f32_mul(y[i], 0.25f);
}

CASE("hadamard", 10);

TEST(hadamard_bits)
{
    uint64_t state = test_seed() + 12;
    unsigned long long wrong = 0, compared = 0;
    double got = 0, want = 0;
    for (size_t run = 0; run < test_scaled(1500); run++) {
        float x[48], y[48];
        for (size_t i = 0; i < 48; i++) {
            x[i] = ordinary(&state, run % 3 == 1 ? -110 : run % 3 == 2 ? 126 : 4, run % 2 ? 2 : 30);
            y[i] = x[i];
        }
        for (int k = 0; k < 48; k += 16)
            butterflies(y + k);
        ck_assert(mpsim_hadamard(x, 48) == MPSIM_OK);
        for (size_t i = 0; i < 48; i++, compared++)
            if (!block_same(x[i], y[i]) && wrong++ == 0) {
                got = (double)x[i];
                want = (double)y[i];
            }
    }
    printf("# Hadamard: %llu numbers, %llu wrong\n", compared, wrong);
    ck_assert_msg(wrong == 0, "%llu of %llu: %a, oracle %a", wrong, compared, got, want);
}

/* ---- groups of any size ---- */

static const unsigned sizes[] = {16, 32, 64, 128};

static int sign_of(unsigned size, uint64_t seed, unsigned i)
{
    return size == 16 ? signs[i] : mpsim_rng_word(seed, 0, i) & 1 ? -1 : 1;
}

/* One group, by the oracle's operations. */
static void group(float *y, unsigned size, uint64_t seed)
{
    const float norm = (float)(1 / sqrt((double)size)); /* no half is near */
    for (unsigned i = 0; i < size; i++)
        y[i] = sign_of(size, seed, i) < 0 ? -y[i] : y[i];
    for (unsigned h = 1; h < size; h *= 2)
        for (unsigned i = 0; i < size; i++)
            if (!(i & h)) {
                const float a = y[i], b = y[i + h];
                y[i] = f32_add(a, b);
                y[i + h] = f32_add(a, -b);
            }
    for (unsigned i = 0; i < size; i++)
        y[i] = f32_mul(y[i], norm);
}

TEST(groups_bits)
{
    enum { MOST = 700 };
    uint64_t state = test_seed() + 14;
    for (size_t run = 0; run < test_scaled(400); run++) {
        static float x[MOST], y[MOST];
        const unsigned size = sizes[run % 4];
        const uint64_t seed = test_random(&state);
        const size_t n = test_random(&state) % MOST;
        for (size_t i = 0; i < MOST; i++)
            x[i] = y[i] = run % 11 == 10 && test_random(&state) % 50 == 0 ? (run % 2 ? (float)INFINITY : (float)NAN)
                                                                          : ordinary(&state,
                                                                                     run % 3 == 1   ? -110
                                                                                     : run % 3 == 2 ? 126
                                                                                                    : 4,
                                                                                     14);
        for (size_t i = 0; i + size <= n; i += size)
            group(y + i, size, seed);
        ck_assert(mpsim_hadamard_groups(x, n, size, seed) == MPSIM_OK);
        for (size_t i = 0; i < MOST; i++)
            ck_assert_msg(block_same(x[i], y[i]), "size %u, %zu of %zu: %a, oracle %a", size, i, n, (double)x[i],
                          (double)y[i]);
        if (size == 16 && n % 16 == 0) { /* the other function */
            memcpy(y, x, sizeof y);
            ck_assert(mpsim_hadamard(x, n) == MPSIM_OK && mpsim_hadamard_groups(y, n, 16, seed) == MPSIM_OK);
            for (size_t i = 0; i < n; i++)
                ck_assert(block_same(x[i], y[i]));
        }
    }
}

/* Back is the transform between signs, by the oracle's: S F S y. */
TEST(groups_back_bits)
{
    enum { MOST = 700 };
    uint64_t state = test_seed() + 15;
    for (size_t run = 0; run < test_scaled(400); run++) {
        static float x[MOST], y[MOST];
        const unsigned size = sizes[run % 4];
        const uint64_t seed = test_random(&state);
        const size_t n = test_random(&state) % MOST;
        for (size_t i = 0; i < MOST; i++)
            x[i] = y[i] = run % 11 == 10 && test_random(&state) % 50 == 0 ? (run % 2 ? (float)INFINITY : (float)NAN)
                                                                          : ordinary(&state,
                                                                                     run % 3 == 1   ? -110
                                                                                     : run % 3 == 2 ? 126
                                                                                                    : 4,
                                                                                     14);
        for (size_t i = 0; i + size <= n; i += size) {
            for (unsigned k = 0; k < size; k++)
                y[i + k] = sign_of(size, seed, k) < 0 ? -y[i + k] : y[i + k];
            group(y + i, size, seed);
            for (unsigned k = 0; k < size; k++)
                y[i + k] = sign_of(size, seed, k) < 0 ? -y[i + k] : y[i + k];
        }
        ck_assert(mpsim_hadamard_groups_back(x, n, size, seed) == MPSIM_OK);
        for (size_t i = 0; i < MOST; i++)
            ck_assert_msg(block_same(x[i], y[i]), "size %u, %zu of %zu: %a, oracle %a", size, i, n, (double)x[i],
                          (double)y[i]);
    }
}

/* Whole numbers whose sums are exact come back as they were: of 16 and 64 the norm is a power of two. */
TEST(groups_there_and_back)
{
    uint64_t state = test_seed() + 16;
    for (int s = 0; s < 4; s++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            float x[300], y[300];
            for (size_t i = 0; i < 300; i++)
                x[i] = y[i] = (float)(test_random(&state) % 2001) - 1000;
            ck_assert(mpsim_hadamard_groups(y, 300, sizes[s], seed) == MPSIM_OK);
            ck_assert(mpsim_hadamard_groups_back(y, 300, sizes[s], seed) == MPSIM_OK);
            for (size_t i = 0; i < 300; i++)
                ck_assert_msg(sizes[s] == 16 || sizes[s] == 64 ? y[i] == x[i] : fabsf(y[i] - x[i]) < 0.01f,
                              "size %u, %zu: %a, not %a", sizes[s], i, (double)y[i], (double)x[i]);
        }
}

/* Sylvester's matrix with the signs; the signs of seeds are no constant. */
TEST(groups_of_unit_vectors)
{
    for (int s = 0; s < 4; s++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            const unsigned n = sizes[s];
            int minus = 0;
            for (unsigned i = 0; i < n; i++) {
                float v[128] = {0};
                v[i] = 1;
                minus += sign_of(n, seed, i) < 0;
                ck_assert(mpsim_hadamard_groups(v, n, n, seed) == MPSIM_OK);
                for (unsigned j = 0; j < n; j++) {
                    const int odd = __builtin_popcount(i & j) & 1;
                    const double want = (odd ? -1 : 1) * sign_of(n, seed, i) / sqrt((double)n);
                    ck_assert(v[j] == (float)want);
                }
            }
            ck_assert_msg(minus > (int)n / 8 && minus < (int)(n - n / 8), "size %u seed %d: %d", n, (int)seed, minus);
        }
    float x[16] = {0};
    for (unsigned size = 0; size < 300; size++)
        if (size != 16 && size != 32 && size != 64 && size != 128)
            ck_assert(mpsim_hadamard_groups(x, 16, size, 1) == MPSIM_EINVAL &&
                      mpsim_hadamard_groups_back(x, 16, size, 1) == MPSIM_EINVAL);
    ck_assert(mpsim_hadamard_groups(NULL, 1, 16, 1) == MPSIM_EINVAL);
    ck_assert(mpsim_hadamard_groups_back(NULL, 1, 16, 1) == MPSIM_EINVAL);
}

/* The matrix that unit vectors show: Sylvester's with the signs, and orthogonal. */
TEST(hadamard_is_orthogonal)
{
    float m[16][16];
    for (int i = 0; i < 16; i++) {
        memset(m[i], 0, sizeof m[i]);
        m[i][i] = 1;
        ck_assert(mpsim_hadamard(m[i], 16) == MPSIM_OK);
        for (int j = 0; j < 16; j++) {
            const int odd = __builtin_popcount((unsigned)(i & j)) & 1;
            ck_assert((double)m[i][j] == (odd ? -0.25 : 0.25) * signs[i]);
        }
    }
    mpq_t sum, a, b;
    mpq_inits(sum, a, b, (mpq_ptr)0);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++) {
            mpq_set_ui(sum, 0, 1);
            for (int j = 0; j < 16; j++) {
                mpq_set_d(a, (double)m[i][j]);
                mpq_set_d(b, (double)m[k][j]);
                mpq_mul(a, a, b);
                mpq_add(sum, sum, a);
            }
            ck_assert(mpq_cmp_si(sum, i == k, 1) == 0);
        }
    /* Lengths, up to the roundings: four additions and a product of each number. */
    uint64_t state = test_seed() + 13;
    for (int run = 0; run < 300; run++) {
        float x[16];
        double before = 0, after = 0;
        for (size_t i = 0; i < 16; i++) {
            x[i] = ordinary(&state, 4, 14);
            before += (double)x[i] * (double)x[i];
        }
        ck_assert(mpsim_hadamard(x, 16) == MPSIM_OK);
        for (size_t i = 0; i < 16; i++)
            after += (double)x[i] * (double)x[i];
        ck_assert(fabs(after - before) < before * 0x1p-20);
    }
    mpq_clears(sum, a, b, (mpq_ptr)0);
}

TEST(hadamard_arguments)
{
    float x[33];
    for (size_t n = 0; n <= 33; n++) {
        for (size_t i = 0; i < 33; i++)
            x[i] = 1;
        ck_assert(mpsim_hadamard(x, n) == (n % 16 ? MPSIM_EINVAL : MPSIM_OK));
        if (n % 16)
            for (size_t i = 0; i < 33; i++)
                ck_assert(x[i] == 1);
    }
    ck_assert(mpsim_hadamard_groups(NULL, 0, 16, 0) == MPSIM_OK);
    ck_assert(mpsim_hadamard(NULL, 0) == MPSIM_OK);
    ck_assert(mpsim_hadamard(NULL, 16) == MPSIM_EINVAL);
}

TEST_MAIN("block-hadamard");
