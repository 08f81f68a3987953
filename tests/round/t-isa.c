/* t-isa.c -- every instruction set gives the bits of the scalar reference.
 *
 * Blocks of the kernels are 256 elements: lengths around that, any alignment, and the elements
 * that a kernel leaves to the reference at any place of a block. */
#include "support/support.h"

#include <mpsim/mpsim.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 2048 };

/* Inputs that reach every branch of every format: random bits, random values near the format's
 * own codes and midpoints, specials in random places. */
static void fill(double *x, float *y, const mpsim_format *f, uint64_t *seed)
{
    static const double specials[] = {0,         -0.0,       (double)INFINITY, -(double)INFINITY,
                                      0x1p-1074, -0x1p-1060, 0x1p-149,         0x1.8p-149,
                                      -0x1p-127, DBL_MAX,    -DBL_MAX,         (double)FLT_MAX};
    const uint64_t mask = f->bits == 64 ? UINT64_MAX : ((uint64_t)1 << f->bits) - 1;
    for (int i = 0; i < N; i++) {
        const uint64_t u = test_random(seed);
        const int kind = (int)(u & 15);
        const uint64_t v = test_random(seed);
        if (kind < 4) {
            x[i] = f64_of_bits(v);
        } else if (kind < 6) {
            x[i] = (double)f32_of_bits((uint32_t)v);
        } else if (kind < 7) {
            x[i] = specials[v % (sizeof specials / sizeof specials[0])];
        } else if (kind < 8) {
            x[i] = f64_of_bits(v | 0x7ff0000000000000u); /* NaN, rarely infinity */
        } else { /* between two neighbours of the format, or just beside a midpoint */
            const double a = mpsim_decode(f, v & mask);
            const double b = mpsim_decode(f, mpsim_next_up(f, v & mask));
            double m = a / 2 + b / 2;
            if (kind < 10)
                m = nextafter(m, kind == 8 ? (double)INFINITY : -(double)INFINITY);
            else if (kind < 12)
                m = a + (b - a) * (double)(u >> 40) * 0x1p-24;
            x[i] = m;
        }
        y[i] = (float)x[i];
    }
}

static int wrong(const char *isa, const mpsim_format *f, const mpsim_rounding *r, const char *src, size_t i, double x,
                 uint64_t got, uint64_t want, char *text)
{
    sprintf(text, "isa %s, %s, %s, %s source, index %zu, x = %a (%016llx): got %llx, expected %llx", isa, f->name,
            mpsim_round_mode_name((mpsim_round_mode)r->mode), src, i, x, (unsigned long long)bits_of_f64(x),
            (unsigned long long)got, (unsigned long long)want);
    return 1;
}

static uint64_t load(const unsigned char *p, size_t bytes)
{
    uint64_t u = 0;
    for (size_t i = bytes; i-- > 0;) /* little- or big-endian host alike: go through memcpy */
        u = u << 8 | p[i];
    const uint16_t probe = 1;
    if (*(const unsigned char *)&probe == 1)
        return u;
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

/* One format and rounding, a window of the inputs: 1 and a text at the first difference. */
static int compare(const char *isa, const mpsim_format *f, const mpsim_rounding *r, const double *x, const float *y,
                   size_t first, size_t n, char *text)
{
    static unsigned char codes[8 * N + 1];
    const size_t bytes = mpsim_format_code_bytes(f);
    const mpsim_rng rng = {99, 7, first};
    for (int f32 = 0; f32 < 2; f32++) {
        mpsim_counts counts = {0}, want = {0};
        unsigned char *out = codes + 1; /* odd on purpose */
        const mpsim_status s = f32 ? mpsim_encode_array_f32(f, r, &rng, out, y + first, n, &counts)
                                   : mpsim_encode_array_f64(f, r, &rng, out, x + first, n, &counts);
        if (s != MPSIM_OK)
            return wrong(isa, f, r, "status", 0, 0, (uint64_t)s, 0, text);
        for (size_t i = 0; i < n; i++) {
            unsigned flags;
            const uint32_t word = mpsim_rng_word(99, 7, first + i);
            const uint64_t expected = f32 ? mpsim_encode_f32(f, r, y[first + i], word, &flags)
                                          : mpsim_encode_f64(f, r, x[first + i], word, &flags);
            const uint64_t got = load(out + i * bytes, bytes);
            if (got != expected)
                return wrong(isa, f, r, f32 ? "f32" : "f64", first + i, f32 ? (double)y[first + i] : x[first + i], got,
                             expected, text);
            want.inexact += (flags & MPSIM_FLAG_INEXACT) != 0;
            want.underflow += (flags & MPSIM_FLAG_UNDERFLOW) != 0;
            want.subnormal += (flags & MPSIM_FLAG_SUBNORMAL) != 0;
            want.overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
            want.nan += (flags & MPSIM_FLAG_NAN) != 0;
        }
        if (memcmp(&counts, &want, sizeof want) != 0)
            return wrong(isa, f, r, "counts", n, 0, counts.inexact, want.inexact, text);
    }
    return 0;
}

static void compare_all(const char *isa)
{
    static double x[N];
    static float y[N];
    static const size_t lengths[] = {0, 1, 255, 256, 257, 700};
    static const uint8_t bits[] = {1, 7, 32};
    static const double scales[] = {1, 0x1p16, 0x1p-20, 3};
    char text[512] = "";
    uint64_t seed = test_seed(), cases = 0;
    int bad = 0;
    ck_assert_int_eq(mpsim_isa_use(isa), MPSIM_OK);
    for (size_t i = 0; i < mpsim_format_count() && !bad; i++) {
        const mpsim_format *f = mpsim_format_at(i);
        fill(x, y, f, &seed);
        for (int mode = 0; mode < MPSIM_ROUND_MODES && !bad; mode++)
            for (size_t p = 0; p < mpsim_preset_count() && !bad; p++) {
                const uint64_t pick = test_random(&seed);
                if (p > 0 && !test_in_part(i + (size_t)mode + p, 1))
                    continue;
                mpsim_rounding r;
                mpsim_rounding_preset(&r, mpsim_preset_at(p), f);
                r.mode = (uint8_t)mode;
                r.sr_bits = bits[pick % 3];
                r.scale = scales[(pick >> 8) % 4];
                r.flush_output = pick >> 16 & 1;
                r.flush_input = pick >> 17 & 1;
                r.flush_below = pick >> 18 & 1 ? 0x1.4p-14 : 0;
                const size_t n = p == 0 ? N : lengths[(pick >> 20) % 6];
                bad = compare(isa, f, &r, x, y, p == 0 ? 0 : (pick >> 30) % 1000, n, text);
                cases += n;
            }
    }
    ck_assert_msg(!bad, "%s", text);
    printf("# %s: %llu elements of each source compared\n", isa, (unsigned long long)cases);
}

CASE("isa", 60);

TEST(every_available_instruction_set_equals_the_reference)
{
    const char *before = mpsim_isa_active();
    int compared = 0;
    for (size_t i = 0; mpsim_isa_at(i); i++) {
        if (mpsim_isa_use(mpsim_isa_at(i)) == MPSIM_EUNAVAILABLE) {
            printf("# %s: not available on this machine, not compared\n", mpsim_isa_at(i));
            continue;
        }
        compare_all(mpsim_isa_at(i));
        compared++;
    }
    ck_assert_int_ge(compared, 1);
    ck_assert_int_eq(mpsim_isa_use(before), MPSIM_OK);
}

TEST(an_unknown_instruction_set_is_an_error)
{
    const char *before = mpsim_isa_active();
    ck_assert_int_eq(mpsim_isa_use("avx1024"), MPSIM_ENOTFOUND);
    ck_assert_int_eq(mpsim_isa_use(NULL), MPSIM_EINVAL);
    ck_assert_str_eq(mpsim_isa_active(), before);
}

TEST(random_sources_are_required_by_stochastic_modes_only)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    const double x[3] = {1, 2, 3};
    uint16_t codes[3] = {7, 7, 7};
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_STOCHASTIC_C);
    ck_assert_int_eq(mpsim_encode_array_f64(f, &r, NULL, codes, x, 3, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(codes[0], 7);
    r.mode = MPSIM_ROUND_UP;
    ck_assert_int_eq(mpsim_encode_array_f64(f, &r, NULL, codes, x, 3, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_encode_array_f64(f, &r, NULL, NULL, x, 3, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_encode_array_f64(f, &r, NULL, NULL, NULL, 0, NULL), MPSIM_OK);
}

TEST_MAIN("isa");
