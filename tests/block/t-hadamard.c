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

START_TEST(hadamard_bits)
{
    uint64_t state = test_seed() + 12;
    unsigned long long wrong = 0, compared = 0;
    double got = 0, want = 0;
    for (size_t run = 0; run < test_scaled(1500); run++) {
        float x[48], y[48];
        for (size_t i = 0; i < 48; i++) {
            x[i] = ordinary(&state, run % 3 == 1 ? -110 : run % 3 == 2 ? 126 : 4,
                            run % 2 ? 2 : 30);
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
END_TEST

/* The matrix that unit vectors show: Sylvester's with the signs, and orthogonal. */
START_TEST(hadamard_is_orthogonal)
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
END_TEST

START_TEST(hadamard_arguments)
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
    ck_assert(mpsim_hadamard(NULL, 0) == MPSIM_OK);
    ck_assert(mpsim_hadamard(NULL, 16) == MPSIM_EINVAL);
}
END_TEST

int main(void)
{
    TCase *const f = test_case("hadamard", 10);
    tcase_add_test(f, hadamard_bits);
    tcase_add_test(f, hadamard_is_orthogonal);
    tcase_add_test(f, hadamard_arguments);
    TCase *const cases[] = {f, NULL};
    return test_main("block-hadamard", cases);
}
