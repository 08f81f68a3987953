/* t-chain-corners.c -- chains, trees and exact sums as in t-chain.c, where they are difficult: ties, overflows on the way, zeros, NaNs, sums
 * wider than binary64, accumulators far above sums of chunks, other environments. */
#include "chain.h"

#include <fenv.h>
#include <math.h>

#if defined __SSE2__
#include <xmmintrin.h>
#endif

/* ---- corners of binary32 ------------------------------------------------------------------ */

/* A sum that is a tie of binary32 but for a part far below the 53 bits of binary64, normal and
 * subnormal, of all signs; and true ties. */
START_TEST(near_ties)
{
    const mpsim_format f = chain_format("binary32");
    uint64_t seed = test_seed() + 34;
    for (size_t n = 0; n < test_scaled(40); n++) {
        chain_new("fma", &f, &f, 9, 17, 1, &seed);
        chain.no_c = 0;
        const int low = n % 4 == 0;
        /* (1 - 2^-23) (1 + 2^-23) = 1 - 2^-46; (1 + 2^-23)^2 = 1 + 2^-22 + 2^-46 */
        for (size_t i = 0; i < chain.rows; i++)
            chain.a.codes[i] = chain_code(&f, ldexp(i % 3 == 0   ? 1
                                                    : i % 3 == 1 ? 1 - 0x1p-23
                                                                 : 1 + 0x1p-23,
                                                    low ? -100 : 10));
        for (size_t j = 0; j < chain.columns; j++)
            chain.b.codes[j] = chain_code(&f, ldexp(j % 2 ? 1 + 0x1p-23 : 1, low ? -50 : -34) * (j % 4 > 1 ? -1 : 1));
        /* c has its last bit at 2^-23 (at 2^-149), the product is about half of that */
        for (size_t i = 0; i < chain.rows * chain.columns; i++) {
            const double c = (double)(0x800000 + (test_random(&seed) & 0x7fffff)) * 0x1p-23;
            const double s = (double)(test_random(&seed) & 0x7fffff) * 0x1p-149;
            chain.c.codes[i] = chain_code(&f, (low ? s : c) * (test_random(&seed) & 1 ? -1 : 1));
        }
        chain_check();
    }
}

/* One element: a and b binary32 numbers, c too; wanted from the definition of IEEE 754. */
static void one_row(const char *model, size_t n, const double *a, const double *b, double c, double want)
{
    const mpsim_format f = chain_format("binary32");
    uint64_t seed = 1;
    chain_new(model, &f, &f, 1, 1, n, &seed);
    chain.no_c = 0;
    for (size_t k = 0; k < n; k++) {
        chain.a.codes[k] = chain_code(&f, a[k]);
        chain.b.codes[k] = chain_code(&f, b[k]);
    }
    chain.c.codes[0] = isinf(c) ? 0x7f800000u | (uint64_t)(c < 0) << 31 : chain_code(&f, c);
    chain_check();
    const double got = mpsim_decode(&f, chain.want[0]);
    ck_assert_msg(isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want), "%s: %a, expected %a",
                  model, got, want);
}

START_TEST(overflow_on_the_way)
{
    const double inf = (double)INFINITY, big = 0x1p127;
    /* the sum overflows, then comes back: it stays infinite; fma: no product overflows by itself */
    const double a[4] = {big, big, big, big}, up[4] = {1, 1, -1, -1}, half[4] = {1, 0.5, -1, 0};
    one_row("fma", 4, a, up, 0, inf);
    one_row("sequential", 4, a, up, 0, inf);
    one_row("pairwise", 4, a, up, 0, (double)NAN);
    one_row("exact", 4, a, up, 0, 0);
    one_row("fma", 4, a, half, 0, 0x1p126);
    /* products beyond binary32 that cancel: only fma keeps them apart from infinity */
    const double two[2] = {2, -2}, less[2] = {-1, 2};
    one_row("fma", 2, a, two, -big, -big);
    one_row("fma", 1, a, two, -big, big);
    one_row("sequential", 1, a, two, -big, inf);
    one_row("sequential", 2, a, two, 0, (double)NAN);
    one_row("exact", 2, a, two, 0, 0);
    one_row("fma", 2, a, less, 0, big);
    /* the largest number and half a unit: a tie that goes to infinity, and just below it */
    const double most[1] = {0x1.fffffep127}, tie[1] = {0x1p103};
    const double below[1] = {0x1.fffffep102}, one[1] = {1};
    one_row("fma", 1, tie, one, most[0], inf);
    one_row("fma", 1, below, one, most[0], most[0]);
    one_row("exact", 1, tie, one, most[0], inf);
    one_row("exact", 1, below, one, most[0], most[0]);
    one_row("fma", 1, one, one, inf, inf);
    one_row("sequential", 2, a, two, -inf, (double)NAN);
}

START_TEST(signed_zeros)
{
    static const char *const all[] = {"fma", "sequential", "pairwise", "exact"};
    static const double x[3] = {0, -0.0, 0x1p-100}, y[3] = {1, 1, 0x1p-100};
    for (size_t i = 0; i < COUNT(all); i++) {
        one_row(all[i], 1, x + 1, y, -0.0, -0.0);
        one_row(all[i], 2, x, y, -0.0, 0.0);
        one_row(all[i], 1, x, y, -0.0, 0.0);
        one_row(all[i], 1, x + 1, y, 0.0, 0.0);
        one_row(all[i], 0, x, y, -0.0, -0.0);
        one_row(all[i], 2, (const double[]){1, -1}, (const double[]){1, 1}, -0.0, 0.0);
        one_row(all[i], 1, x + 2, y + 2, 0.0, 0.0); /* 2^-200 rounds to zero */
        /* -2^-200: fma rounds it to -0, as the exact sum does; a product that is -0 meets +0 */
        const double down[1] = {-0x1p-100};
        const int rounded = i == 1 || i == 2;
        one_row(all[i], 1, down, y + 2, 0.0, rounded ? 0.0 : -0.0);
    }
    one_row("exact:result-round=down", 2, (const double[]){1, -1}, (const double[]){1, 1}, 0.0, -0.0);
    one_row("exact:result-round=down", 1, x + 1, y, 0.0, -0.0);
    one_row("exact:result-round=down", 1, x, y, 0.0, 0.0);
}

/* What a NaN becomes: every choice, NaNs that come in and NaNs that arise. */
START_TEST(choices)
{
    const mpsim_format f = chain_format("binary32");
    uint64_t seed = test_seed() + 35;
    for (int i = 0; i < 480; i++) {
        chain_new(i % 3 == 0 ? "fma" : i % 3 == 1 ? "sequential" : "exact", &f, &f, 3, 18, 6, &seed);
        const uint8_t nan = (uint8_t)(test_random(&seed) % (MPSIM_NANS_MINUS_ONES + 1));
        mpsim_rounded *const places[] = {&chain_model.accumulator, &chain_model.product, &chain_model.result};
        for (size_t k = 0; k < COUNT(places); k++) {
            mpsim_rounding *r = &places[k]->rounding;
            r->nan = nan;
            const uint64_t u = test_random(&seed);
            if (i / 4 % 2 && k == u / 64 % 3) { /* one place differs from the machine */
                r->overflow = u & 1 ? MPSIM_OVERFLOW_MAX : MPSIM_OVERFLOW_INF;
                r->infinity = u & 2 ? MPSIM_INFINITY_MAX : MPSIM_INFINITY_KEEP;
                r->flush_output = u >> 2 & 1;
            }
        }
        chain_fill(i % 4 == 0 ? CHAIN_SPECIAL : i % 4 == 1 ? CHAIN_HUGE : i % 4 == 2 ? CHAIN_TINY : CHAIN_BITS, &seed);
        chain_check();
    }
}

/* ---- exact sums --------------------------------------------------------------------------- */

/* Columns and rows of widely different ranges in one product: some fit binary64, some 128 bits,
 * some neither; with terms that cancel, and a last bit that decides a tie. */
START_TEST(exact_ranges)
{
    static const int ranges[] = {0, 4, 8, 12, 20, 28, 38, 39, 40, 50, 60, 100, 240};
    static const char *const operands[] = {"binary32", "fp16", "bf16", "e5m2", "tf32"};
    static const char *const to[] = {
        "exact",        "exact:bf16", "exact:result-round=down", "exact",
        "exact:e11m50", "exact",      "exact:binary64",          "exact:result-round=nearest-away"};
    uint64_t seed = test_seed() + 36;
    for (size_t n = 0; n < test_scaled(120); n++) {
        const mpsim_format fa = chain_format(operands[n % COUNT(operands)]);
        const mpsim_format fb = chain_format(operands[n / 5 % COUNT(operands)]);
        chain_new(to[n % COUNT(to)], &fa, &fb, 1 + n % 9, 1 + n % (n % 4 ? 19 : 71), 2 + test_random(&seed) % 140,
                  &seed);
        chain_fill(CHAIN_NORMAL, &seed);
        for (size_t i = 0; i < chain.rows; i++) {
            const int range = ranges[test_random(&seed) % COUNT(ranges)];
            for (size_t k = 0; k < chain.depth; k++)
                chain.a.codes[i * chain.depth + k] = chain_draw(&fa, i % 5 ? CHAIN_SPREAD : CHAIN_COARSE, range, &seed);
        }
        for (size_t j = 0; j < chain.columns; j++) {
            const int range = ranges[test_random(&seed) % COUNT(ranges)];
            for (size_t k = 0; k < chain.depth; k++)
                chain.b.codes[k * chain.columns + j] = chain_draw(&fb, j % 5 ? CHAIN_SPREAD : CHAIN_COARSE, range,
                                                                  &seed);
            if (j % 3 == 0) /* opposite products: a row of pairs against +-x */
                for (size_t k = 1; k < chain.depth; k += 2)
                    chain.b.codes[k * chain.columns + j] = chain.b.codes[(k - 1) * chain.columns + j] ^
                                                           (uint64_t)1 << (fb.bits - 1);
        }
        for (size_t i = 0; i < chain.rows; i += 2)
            for (size_t k = 1; k + 1 < chain.depth; k += 2)
                chain.a.codes[i * chain.depth + k] = chain.a.codes[i * chain.depth + k - 1];
        chain_check();
    }
    /* lines as wide as they may be, full of large products, and one unit: 54 to 56 bits in all,
     * which binary64 does not hold, 126 and more, which 128 bits hold only just */
    for (size_t n = 0; n < 60; n++) {
        const mpsim_format f = chain_format("binary32");
        const int range = n % 2 ? 37 + (int)(n / 2 % 3) : 0;
        chain_new("exact:binary64", &f, &f, 2, 17, 1 + test_random(&seed) % 270, &seed);
        for (size_t i = 0; i < chain.rows * chain.depth; i++)
            chain.a.codes[i] = chain_code(&f,
                                          ldexp(2 - fabs(chain_uniform(&seed)) / 64, i % chain.depth == 0 ? 0 : range));
        for (size_t i = 0; i < chain.depth * chain.columns; i++)
            chain.b.codes[i] = chain_code(
                &f, ldexp(2 - fabs(chain_uniform(&seed)) / 64, i / chain.columns == chain.depth - 1 ? 0 : range));
        chain.no_c = !(n % 3 == 0);
        for (size_t i = 0; !chain.no_c && i < chain.rows * chain.columns; i++)
            chain.c.codes[i] = chain_code(&chain_model.result.format, ldexp(chain_uniform(&seed), (int)n * 5 - 150));
        chain_check();
    }
    /* lines as wide as halves take, and wider, whose lower halves have one sign: large products and then their opposites,
     * but for the last, which show every bit that was lost */
    for (size_t n = 0; n < 36; n++) {
        const mpsim_format f = chain_format("binary32");
        const int range = 14 + (int)(n % 12);
        chain_new("exact:binary64", &f, &f, 2, 17, n % 3 ? 256 : 64, &seed);
        chain.no_c = 1;
        for (size_t i = 0; i < chain.rows * chain.depth; i++) {
            const size_t k = i % chain.depth, mirror = i - k + chain.depth - 1 - k;
            const uint64_t u = test_random(&seed), m = 0x800001 | (u & 0x7fffff);
            const int e = k % 2 ? (int)(u >> 32 & 3) : range;
            chain.a.codes[i] = k >= chain.depth / 2 ? chain.a.codes[mirror]
                                                    : chain_code(&f, ldexp(k ? (double)m : 0x800001, (k ? e : 0) - 23));
        }
        for (size_t i = 0; i < chain.depth * chain.columns; i++) {
            const size_t k = i / chain.columns, mirror = (chain.depth - 1 - k) * chain.columns + i % chain.columns;
            chain.b.codes[i] = k < chain.depth / 2
                                   ? chain_code(&f, ldexp(0xffffff - (double)(test_random(&seed) & 0xff), -23))
                                   : chain.b.codes[mirror] ^ 0x80000000 ^ (k == chain.depth - 1);
        }
        chain_check();
    }
    /* thousands of the largest products of slices, of lines of 42 to 63 bits, then their opposites
     * but for the last */
    for (size_t n = 0; n < 8; n++) {
        const mpsim_format f = chain_format("binary32");
        const int top = -2 + (int)(n % 4) * 7; /* 24 bits below 1 belong to the line */
        chain_new("exact:binary64", &f, &f, 1 + n / 4, 3, 5201 + n * 100, &seed);
        for (size_t i = 0; i < chain.rows * chain.depth; i++)
            chain.a.codes[i] = chain_code(&f, i % chain.depth ? ldexp(0x1fffff, n / 2 % 2 ? top : -2) : 1);
        for (size_t i = 0; i < chain.depth * chain.columns; i++) {
            const size_t k = i / chain.columns;
            const double x = ldexp(k % 7 ? 0x1fffff : 0x1ffffd, top);
            chain.b.codes[i] = chain_code(&f, k == 0 ? 1 : k <= chain.depth / 2 ? x : -x);
        }
        chain.no_c = 1;
        chain_check();
    }
    /* 2^24 + 1 is a tie; 2^-60 more decides it: 85 bits in one sum, 61 in one line */
    const double a[3] = {0x1p24, 1, 0x1p-60}, minus[3] = {0x1p24, 1, -0x1p-60}, b[3] = {1, 1, 1};
    one_row("exact", 2, a, b, 0, 0x1p24);
    one_row("exact", 3, a, b, 0, 0x1p24 + 2);
    one_row("exact", 3, minus, b, 0, 0x1p24);
    /* the same in halves of 26 bits, of which the lower decides, or is all that is left */
    one_row("exact", 3, (const double[]){0x1p24, 1, 0x1p-4}, b, 0, 0x1p24 + 2);
    one_row("exact", 3, (const double[]){0x1p24, 1, -0x1p-4}, b, 0, 0x1p24);
    one_row("exact", 3, (const double[]){0x1p24, 1, 0x1p-4}, b, -0x1p24, 0x1.1p0);
    one_row("exact", 3, (const double[]){0x1p24, -0x1p24, 0x1p-4}, b, 0, 0x1p-4);
    one_row("exact", 2, (const double[]){0x1p24, 0x1p-4}, (const double[]){0, 0}, -0.0, 0.0);
    one_row("exact", 2, minus + 1, b, 0x1p24, 0x1p24);
    one_row("exact", 2, a + 1, b, 0x1p24, 0x1p24 + 2);
    one_row("exact", 3, (const double[]){0x1p100, 1, -0x1p100}, b, 0, 1);
    one_row("exact", 3, (const double[]){0x1p50, 0x1p-50, -0x1p50}, (const double[]){0x1p50, 0x1p-50, 0x1p50}, 0x1p-120,
            0x1.00001p-100);
}

/* ---- sums of chunks of fused additions ---------------------------------------------------- */

/* An accumulator far above the sums of chunks, near them, opposite to them. */
START_TEST(chunks)
{
    static const char *const all[] = {"hopper-wgmma-fp8-promoted:chunk=8",
                                      "hopper-wgmma-fp8-promoted:chunk=8:outer-round=toward-zero",
                                      "hopper-wgmma-fp8-promoted:chunk=4:outer=e8m24",
                                      "hopper-wgmma-fp8-promoted:chunk=32:outer=bf16",
                                      "hopper-wgmma-fp8-promoted:chunk=8:outer-round=down",
                                      "hopper-mma-fp8-fp32:chunk=16"};
    const mpsim_format f = chain_format("e4m3"), g = chain_format("e5m2");
    uint64_t seed = test_seed() + 38;
    for (size_t i = 0; i < test_scaled(120); i++) {
        chain_new(all[i % COUNT(all)], i % 5 ? &f : &g, i % 7 ? &f : &g, 3, 18, 40, &seed);
        chain.no_c = !(i % 4 != 0);
        chain_fill(i % 3 ? (int)(i % CHAIN_KINDS) : CHAIN_COARSE, &seed);
        for (size_t j = 0; !chain.no_c && i % 2 && j < chain.rows * chain.columns; j++)
            chain.c.codes[j] = chain_code(&chain_model.result.format, ldexp(chain_uniform(&seed), (int)(i % 100) - 20));
        chain_check();
    }
}

/* ---- the environment ---------------------------------------------------------------------- */

/* Another rounding mode, flushing: no bit changes. */
START_TEST(environment)
{
    static const char *const all[] = {"fma",
                                      "sequential",
                                      "pairwise",
                                      "exact",
                                      "hopper-fp16-fp32",
                                      "hopper-wgmma-fp8-promoted:chunk=8",
                                      "chunked:chunk=8",
                                      "pairwise:bf16",
                                      "fma:fp16"};
    uint64_t seed = test_seed() + 37;
    enum { TIMES = CHAIN_KINDS + 1 };
    for (size_t i = 0; i < COUNT(all) * TIMES; i++) {
        const int fused = i / TIMES > 3, empty = i % TIMES == CHAIN_KINDS; /* c alone, zeros */
        const mpsim_format f = chain_format(i / TIMES == 4 ? "fp16" : fused ? "e4m3" : chain_formats[i % 5]);
        const char *before = mpsim_isa_active();
        chain_new(all[i / TIMES], &f, &f, 5, 18, empty ? 0 : 21, &seed);
        chain.no_c &= !empty;
        chain_fill(empty ? CHAIN_ZEROS : (int)(i % TIMES), &seed);
        chain_solve();
        for (size_t n = 0; mpsim_isa_at(n); n++) {
            if (mpsim_isa_use(mpsim_isa_at(n)) != MPSIM_OK)
                continue;
            for (size_t k = 0; test_direction(k) >= 0; k++) {
                ck_assert(fesetround(test_direction(k)) == 0);
                chain_check_once(", another rounding mode");
                fesetround(FE_TONEAREST);
            }
#if defined __SSE2__
            const unsigned control = _mm_getcsr();
            for (unsigned k = 0; k < 2; k++) {
                _mm_setcsr(control | (k ? 0x8000 : 0x0040)); /* flush to zero; denormals are zero */
                chain_check_once(", flushing");
                _mm_setcsr(control);
            }
#endif
        }
        ck_assert(mpsim_isa_use(before) == MPSIM_OK);
    }
}

int main(void)
{
    TCase *t = test_case("chain-corners", 120);
    tcase_add_checked_fixture(t, NULL, chain_end);
    tcase_add_test(t, near_ties);
    tcase_add_test(t, overflow_on_the_way);
    tcase_add_test(t, signed_zeros);
    tcase_add_test(t, choices);
    tcase_add_test(t, exact_ranges);
    tcase_add_test(t, chunks);
    tcase_add_test(t, environment);
    return test_main("chain-corners", (TCase *const[]){t, NULL});
}
