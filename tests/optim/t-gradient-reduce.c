/* t-gradient-reduce.c -- sums of gradients over ranks, in every order, against MPFR (rounded.h). */
#include "oracle/rounded.h"
#include "support/gradientinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/gradient.h>
#include <string.h>

typedef struct lane {
    int wire, accumulator, result;
} lane;

static double pair_sum(const lane *l, double a, double b)
{
    return to(l->accumulator, add(B32, a, b));
}

/* Element i of n. */
static double reduced(const mpsim_reduce *r, const lane *l, float *const *x, size_t ranks, size_t i, size_t n)
{
    double v[16];
    for (size_t k = 0; k < ranks; k++) {
        v[k] = to(l->wire, (double)x[k][i]);
        if (r->average == MPSIM_AVERAGE_BEFORE)
            v[k] = to(l->wire, mul(B32, v[k], quo(B32, 1, (double)ranks)));
    }
    double sum;
    if (r->order == MPSIM_REDUCE_TREE) {
        for (size_t m = ranks; m > 1; m = (m + 1) / 2)
            for (size_t k = 0; k < (m + 1) / 2; k++)
                v[k] = 2 * k + 1 < m ? pair_sum(l, v[2 * k], v[2 * k + 1]) : v[2 * k];
        sum = v[0];
    } else {
        const size_t chunk = (n + ranks - 1) / ranks;
        const size_t first = r->order == MPSIM_REDUCE_RING ? i / chunk : 0;
        sum = v[first];
        for (size_t k = 1; k < ranks; k++)
            sum = pair_sum(l, sum, v[(first + k) % ranks]);
    }
    if (r->average == MPSIM_AVERAGE_AFTER)
        sum = quo(B32, sum, (double)ranks);
    return to(l->result, sum);
}

static mpsim_reduce reduction(const lane *l, int order, int average)
{
    const mpsim_reduce r = {*gradient_format(l->wire), *gradient_format(l->accumulator), *gradient_format(l->result),
                            (uint8_t)order, (uint8_t)average};
    return r;
}

static const lane lanes[] = {{B32, B32, B32},   {BF16, BF16, BF16}, {BF16, B32, BF16}, {BF16, B32, B32},
                             {BF16, BF16, B32}, {FP16, FP16, FP16}, {FP16, B32, FP16}, {FP16, FP16, B32}};
enum { LANES = sizeof lanes / sizeof lanes[0], RANKS = 9, ELEMENTS = 23 };

CASE("reduce", 30);

TEST(sums_over_ranks)
{
    uint64_t random = test_seed() + 8;
    static float data[RANKS][ELEMENTS];
    float *x[RANKS];
    for (size_t k = 0; k < RANKS; k++)
        x[k] = data[k];
    for (size_t c = 0; c < LANES * 9 * RANKS * 2; c++) {
        const lane *l = &lanes[c % LANES];
        const mpsim_reduce r = reduction(l, (int)(c / LANES % 3), (int)(c / LANES / 3 % 3));
        const size_t ranks = 1 + c / LANES / 9 % RANKS, n = test_random(&random) % (ELEMENTS + 1);
        for (size_t k = 0; k < ranks; k++)
            gradient_fill(x[k], ELEMENTS, test_random(&random) % 4 ? l->wire : B32, k == 2, &random);
        float y[ELEMENTS];
        memset(y, 0x55, sizeof y);
        ck_assert_int_eq(mpsim_reduce_array(&r, y, (const float *const *)x, ranks, n), MPSIM_OK);
        for (size_t i = 0; i < n; i++) {
            const double want = reduced(&r, l, x, ranks, i, n);
            ck_assert_msg(same(want, y[i]), "%s %s %s order %d average %d ranks %d element %d of %d: %a, expected %a",
                          shapes[l->wire].name, shapes[l->accumulator].name, shapes[l->result].name, r.order, r.average,
                          (int)ranks, (int)i, (int)n, (double)y[i], want);
        }
        for (size_t i = n; i < ELEMENTS; i++)
            ck_assert_uint_eq(bits_of_f32(y[i]), 0x55555555u);
        float *const target = x[test_random(&random) % ranks]; /* y may be one of them */
        ck_assert_int_eq(mpsim_reduce_array(&r, target, (const float *const *)x, ranks, n), MPSIM_OK);
        for (size_t i = 0; i < n; i++)
            ck_assert_msg(same((double)y[i], target[i]), "in place, order %d: %a, expected %a", r.order,
                          (double)target[i], (double)y[i]);
    }
}

/* By hand. bf16 of 1 + 2^-8 three times: lost each time; in binary32 the sum is 1 + 3 2^-8. */
TEST(orders_and_accumulators_by_hand)
{
    const float one = 1, h = 0x1p-8f;
    const float *const x[] = {&one, &h, &h, &h};
    const lane narrow_sums = {BF16, BF16, BF16}, wide_sums = {BF16, B32, B32}, back = {BF16, B32, BF16};
    float y = 0;
    mpsim_reduce r = reduction(&narrow_sums, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, x, 4, 1), MPSIM_OK);
    ck_assert(y == 1);
    r = reduction(&narrow_sums, MPSIM_REDUCE_TREE, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, x, 4, 1), MPSIM_OK);
    ck_assert(y == 1 + 0x1p-7f); /* (1 + h) + (h + h) = 1 + 2^-7 */
    r = reduction(&wide_sums, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, x, 4, 1), MPSIM_OK);
    ck_assert(y == 1 + 0x1.8p-7f);
    r = reduction(&back, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, x, 4, 1), MPSIM_OK);
    ck_assert(y == 1 + 0x1p-6f); /* the tie of 1 + 3 2^-8 goes to even */
    /* A ring of 3 ranks and 4 elements: chunks of 2, 2 and none; 2^24 + 1 + 1 by starting rank. */
    const float a[] = {0x1p24f, 0x1p24f, 0x1p24f, 0x1p24f}, b[] = {1, 1, 1, 1};
    const float *const ring[] = {a, b, b};
    float z[4];
    const lane f32 = {B32, B32, B32};
    r = reduction(&f32, MPSIM_REDUCE_RING, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, z, ring, 3, 4), MPSIM_OK);
    ck_assert(z[0] == 0x1p24f && z[1] == 0x1p24f);  /* (2^24 + 1) + 1 */
    ck_assert(z[2] == 0x1p24f + 2 && z[3] == z[2]); /* (1 + 1) + 2^24 */
    /* Averages: before, 3 times bf16(1/3) is 1.002 rounded; after, it is exact. */
    const float *const ones[] = {&one, &one, &one};
    r = reduction(&wide_sums, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_BEFORE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, ones, 3, 1), MPSIM_OK);
    ck_assert(y == 3 * 0x1.56p-2f);
    r = reduction(&wide_sums, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_AFTER);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, ones, 3, 1), MPSIM_OK);
    ck_assert(y == 1);
    /* fp16 overflows in the sum, not if it is averaged before. */
    const float big = 40000;
    const float *const bigs[] = {&big, &big};
    const lane half = {FP16, FP16, FP16};
    r = reduction(&half, MPSIM_REDUCE_RING, MPSIM_AVERAGE_AFTER);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, bigs, 2, 1), MPSIM_OK);
    ck_assert(isinf(y) && y > 0);
    r = reduction(&half, MPSIM_REDUCE_RING, MPSIM_AVERAGE_BEFORE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, bigs, 2, 1), MPSIM_OK);
    ck_assert(y == 40000);
}

TEST(refused_reductions)
{
    const float a[2] = {1, 2};
    const float *const x[2] = {a, a}, *const hole[2] = {a, NULL};
    float y[2] = {7, 8};
    const lane f32 = {B32, B32, B32};
    const mpsim_reduce good = reduction(&f32, MPSIM_REDUCE_RING, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(NULL, y, x, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_reduce_array(&good, NULL, x, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_reduce_array(&good, y, NULL, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_reduce_array(&good, y, hole, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_reduce_array(&good, y, x, 0, 2), MPSIM_EINVAL);
    mpsim_reduce r = good;
    r.order = 3;
    ck_assert_int_eq(mpsim_reduce_array(&r, y, x, 2, 2), MPSIM_EINVAL);
    r = good;
    r.average = 3;
    ck_assert_int_eq(mpsim_reduce_array(&r, y, x, 2, 2), MPSIM_EINVAL);
    for (int k = 0; k < 3; k++) {
        r = good;
        mpsim_format *const f = k == 0 ? &r.wire : k == 1 ? &r.accumulator : &r.result;
        *f = *gradient_format(B64);
        ck_assert_int_eq(mpsim_reduce_array(&r, y, x, 2, 2), MPSIM_ERANGE);
        *f = good.wire;
        f->ebits = 0;
        ck_assert_int_eq(mpsim_reduce_array(&r, y, x, 2, 2), MPSIM_EINVAL);
    }
    ck_assert(y[0] == 7 && y[1] == 8);
    ck_assert_int_eq(mpsim_reduce_array(&good, y, x, 2, 0), MPSIM_OK);
    ck_assert(y[0] == 7 && y[1] == 8);
}

TEST_MAIN("gradient-reduce");
