/* t-cast.c -- the array functions of every instruction set against the scalar functions: codes and
 * values, with counts and without, of both sources, whatever the length, the alignment and the split.
 *
 * Inputs: of binary32 all high halves with the low halves that matter, and a stride through all 2^32;
 * of both sources the neighbourhood of the format's own boundaries, and special numbers. */
#include "support/support.h"

#include <mpsim/mpsim.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIGH = 1 << 16, N = 1 << 12, SPARE = 64 };

/* A cast and what must come out. */
typedef struct expectation {
    const mpsim_format *f;
    mpsim_rounding r;
    mpsim_rng rng;
    const void *x;
    size_t n;
    int source; /* bytes of an element */
    uint64_t *codes;
    uint8_t *flags;
} expectation;

/* clang-format off */
static const char *const odd_formats[] = {
    "binary8p3se",   "binary8p4sf",    "binary8p1ue",     "binary8p5uf",    "binary6p2se",
    "binary16p9se",  "binary8p8uf",    "e5m10:fn",        "e4m3:fnuz:bias=4", "e5m2:finite",
    "e8m7:bias=140", "e8m3:bias=125",  "e9m6",            "e11m4",          "e11m20",
    "e6m0:fn",       "e5m0:fnuz",      "e4m0:finite:unsigned", "e8m23",      "e8m22",
    "e8m24",         "e2m20",          "e7m23:bias=100",  "e3m17",          "e8m7:bias=127:unsigned",
    "e4m10:bias=200", "e5m10:bias=-100", "e8m14:bias=300", "e10m40",         "e11m51",
    "e1m7:finite", "e9m23:unsigned", "e8m23:finite:unsigned",          "e3m0:finite"};
/* clang-format on */
enum { ODD = sizeof odd_formats / sizeof odd_formats[0] };

static size_t format_count(void)
{
    return mpsim_format_count() + ODD;
}

static mpsim_format format_at(size_t i)
{
    mpsim_format f;
    if (i < mpsim_format_count())
        return *mpsim_format_at(i);
    ck_assert_msg(mpsim_format_parse(&f, odd_formats[i - mpsim_format_count()]) == MPSIM_OK, "%s",
                  odd_formats[i - mpsim_format_count()]);
    return f;
}

/* Any mode and choices that a rounding can have. */
static mpsim_rounding any_rounding(uint64_t *seed, const mpsim_format *f, int mode)
{
    /* clang-format off */
    static const double scales[] = {1, 1, 1, 0x1p10, 0x1p-17, 0x1p60, 0x1p-60, 0x1p120, 0x1p-130,
                                    0x1p300, 0x1p-900, 3, 0.1, 1000, 0x1.fffffep-3, 0x1.fffffffffffffp9,
                                    0x1.8p-140, 0x1.00000001p0, 0x1.23456789abcdep200};
    /* clang-format on */
    static const double belows[] = {0, 0x1p-14, 0x1.8p-10, 0x1p-149, 0x1.4p-160, 0x1p200, 0x1.000001p-20};
    static const uint8_t bits[] = {1, 2, 7, 8, 16, 23, 24, 30, 31, 32, 32};
    const uint64_t u = test_random(seed), v = test_random(seed);
    mpsim_rounding r;
    if (u & 1)
        mpsim_rounding_preset(&r, mpsim_preset_at(v % mpsim_preset_count()), f);
    else
        mpsim_rounding_init(&r, MPSIM_ROUND_UP);
    r.mode = (uint8_t)mode;
    r.sr_bits = bits[(u >> 8) % (sizeof bits)];
    r.scale = scales[(u >> 16) % (sizeof scales / sizeof *scales)];
    if (u & 2) {
        r.overflow = v >> 16 & 1;
        r.infinity = v >> 17 & 1;
        r.no_inf = v >> 18 & 1;
        r.nan = (uint8_t)((v >> 20) % MPSIM_NAN_RULES);
        r.no_nan = (uint8_t)((v >> 24) % 3);
        r.negative = (uint8_t)((v >> 28) % 3);
        r.no_zero = (uint8_t)((v >> 32) % 3);
        r.flush_input = (v >> 36) % 4 == 0;
        r.flush_output = (v >> 40) % 4 == 0;
        r.flush_below = belows[(v >> 44) % (sizeof belows / sizeof *belows)];
    }
    return r;
}

static void expect(expectation *e)
{
    for (size_t i = 0; i < e->n; i++) {
        unsigned flags;
        const uint32_t word = mpsim_rng_word(e->rng.seed, e->rng.stream, e->rng.index + i);
        e->codes[i] = e->source == 4 ? mpsim_encode_f32(e->f, &e->r, ((const float *)e->x)[i], word, &flags)
                                     : mpsim_encode_f64(e->f, &e->r, ((const double *)e->x)[i], word, &flags);
        e->flags[i] = (uint8_t)flags;
    }
}

static mpsim_counts counts_of(const expectation *e, size_t first, size_t n)
{
    mpsim_counts c = {0};
    for (size_t i = first; i < first + n; i++) {
        c.inexact += (e->flags[i] & MPSIM_FLAG_INEXACT) != 0;
        c.underflow += (e->flags[i] & MPSIM_FLAG_UNDERFLOW) != 0;
        c.subnormal += (e->flags[i] & MPSIM_FLAG_SUBNORMAL) != 0;
        c.overflow += (e->flags[i] & MPSIM_FLAG_OVERFLOW) != 0;
        c.nan += (e->flags[i] & MPSIM_FLAG_NAN) != 0;
    }
    return c;
}

static void differs(const expectation *e, const char *what, size_t i, uint64_t got, uint64_t want)
{
    const double x = e->source == 4 ? (double)((const float *)e->x)[i] : ((const double *)e->x)[i];
    ck_abort_msg("isa %s, %s, %s:%d, scale %a, flush %d %d %a, nan %d, %d-byte source, %s: element %zu,"
                 " x = %a: got %llx, expected %llx",
                 mpsim_isa_active(), e->f->name, mpsim_round_mode_name((mpsim_round_mode)e->r.mode), e->r.sr_bits,
                 e->r.scale, e->r.flush_input, e->r.flush_output, e->r.flush_below, e->r.nan, e->source, what, i, x,
                 (unsigned long long)got, (unsigned long long)want);
}

/* The value of a code as it is stored. */
static uint64_t value_bits(const expectation *e, uint64_t code)
{
    const double v = mpsim_decode(e->f, code);
    if (e->source == 8)
        return bits_of_f64(v);
    const uint64_t u = bits_of_f64(v);
    if (isnan(v)) /* a NaN by its bits: a conversion might change them */
        return u >> 63 << 31 | 0x7fc00000u | (u >> 29 & 0x7fffff);
    return bits_of_f32((float)v);
}

/* Elements first to first + n - 1, by an array function: codes or values, counted or not, to a result
 * of its own or, for values, in place. */
static void compare(const expectation *e, size_t first, size_t n, int values, int counted, int in_place)
{
    static unsigned char out[8 * HIGH + SPARE];
    const size_t bytes = values ? (size_t)e->source : mpsim_format_code_bytes(e->f);
    const mpsim_rng rng = {e->rng.seed, e->rng.stream, e->rng.index + first};
    unsigned char *to = out + (first + n) % 17; /* any alignment */
    const unsigned char *from = (const unsigned char *)e->x + first * (size_t)e->source;
    mpsim_counts counts = {1, 2, 3, 4, 5}, want = counts_of(e, first, n);
    mpsim_counts *c = counted ? &counts : NULL;
    mpsim_status s;
    if (in_place) {
        memcpy(to, from, n * (size_t)e->source);
        from = to;
    }
    to[n * bytes] = 0x5a;
    if (values)
        s = e->source == 4 ? mpsim_round_array_f32(e->f, &e->r, &rng, (void *)to, (const void *)from, n, c)
                           : mpsim_round_array_f64(e->f, &e->r, &rng, (void *)to, (const void *)from, n, c);
    else
        s = e->source == 4 ? mpsim_encode_array_f32(e->f, &e->r, &rng, to, (const void *)from, n, c)
                           : mpsim_encode_array_f64(e->f, &e->r, &rng, to, (const void *)from, n, c);
    if (values && s == MPSIM_ERANGE)
        return;
    ck_assert_int_eq(s, MPSIM_OK);
    ck_assert_int_eq(to[n * bytes], 0x5a);
    for (size_t i = 0; i < n; i++) {
        const uint64_t got = code_load(to + i * bytes, bytes), code = e->codes[first + i];
        const uint64_t right = values ? value_bits(e, code) : code;
        if (got != right)
            differs(e, values ? "value" : "code", first + i, got, right);
    }
    if (counted &&
        (counts.inexact != want.inexact + 1 || counts.underflow != want.underflow + 2 ||
         counts.subnormal != want.subnormal + 3 || counts.overflow != want.overflow + 4 || counts.nan != want.nan + 5))
        differs(e, "counts", first, counts.inexact - 1, want.inexact);
}

/* Every instruction set, in pieces of every kind. */
static void compare_all(const expectation *e, uint64_t *seed)
{
    for (size_t k = 0; mpsim_isa_at(k); k++) {
        if (mpsim_isa_use(mpsim_isa_at(k)) != MPSIM_OK || strcmp(mpsim_isa_active(), "scalar") == 0)
            continue;
        const uint64_t u = test_random(seed);
        compare(e, 0, e->n, 0, 0, 0);
        compare(e, 0, e->n, 1, 0, u & 1);
        compare(e, u % 100, e->n - 150, 0, 1, 0);
        compare(e, u % 70, e->n - 99, 1, 1, u >> 1 & 1);
        for (int j = 0; j < 4; j++)
            compare(e, (u >> 8) % (e->n / 2) + (size_t)j, (u >> (24 + 5 * j)) % 40, j & 1, j >> 1 & 1, 0);
    }
}

static expectation storage(const void *x, size_t n, int source)
{
    static uint64_t codes[HIGH];
    static uint8_t flags[HIGH];
    expectation e = {0};
    e.x = x;
    e.n = n;
    e.source = source;
    e.codes = codes;
    e.flags = flags;
    return e;
}

CASE("cast", 120);

TEST(all_high_halves_and_a_stride)
{
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1000, 0x0fff, 0x4000};
    static float x[HIGH];
    const char *before = mpsim_isa_active();
    uint64_t seed = test_seed(), elements = 0;
    for (size_t i = 0; i < format_count(); i++) {
        const mpsim_format f = format_at(i);
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
            const uint64_t u = test_random(&seed);
            if (!test_in_part(i + (size_t)mode, 1))
                continue;
            /* a seventh of the high halves for most, all for one mode of each format */
            const uint32_t step = mode == (int)(i % MPSIM_ROUND_MODES) ? 1 : 7;
            expectation e = storage(x, 0, 4);
            for (uint32_t h = (uint32_t)(u % step); h < HIGH; h += step) {
                const uint32_t bits = u >> 20 & 1 ? h << 16 | low[(h + (u >> 32)) % 9]
                                                  : (uint32_t)(u >> 32) + h * 65537u;
                x[e.n++] = f32_of_bits(bits);
            }
            e.f = &f;
            e.r = any_rounding(&seed, &f, mode);
            e.rng = (mpsim_rng){u, 5, u >> 40};
            expect(&e);
            compare_all(&e, &seed);
            elements += e.n;
        }
    }
    mpsim_isa_use(before);
    printf("# %llu elements of binary32\n", (unsigned long long)elements);
}

/* Numbers around those of f / scale, and others. */
static void near_boundaries(double *x, const mpsim_format *f, double scale, uint64_t *seed)
{
    static const double specials[] = {
        0,          -0.0,     (double)INFINITY, -(double)INFINITY, 0x1p-1074,
        -0x1p-1060, 0x1p-149, 0x1.8p-149,       -0x1p-127,         0x1.fffffffffffffp1023};
    const uint64_t mask = f->bits == 64 ? UINT64_MAX : ((uint64_t)1 << f->bits) - 1;
    for (size_t i = 0; i < N; i++) {
        const uint64_t u = test_random(seed), v = test_random(seed);
        const int kind = (int)(u & 15);
        if (kind == 0) {
            x[i] = f64_of_bits(v);
        } else if (kind == 1) {
            x[i] = specials[v % (sizeof specials / sizeof *specials)];
        } else if (kind == 2) {
            x[i] = f64_of_bits(v | 0x7ff0000000000000u);
        } else {
            const uint64_t code = kind < 5 ? v % (4 + ((uint64_t)2 << f->mbits)) : v & mask;
            const double a = mpsim_decode(f, code), b = mpsim_decode(f, mpsim_next_up(f, code));
            double m = kind & 1 ? a / 2 + b / 2 : a;
            if (u & 16)
                m = nextafter(m, u & 32 ? (double)INFINITY : -(double)INFINITY);
            if (u & 64)
                m = m * 0x1p-9; /* far below the smallest number */
            x[i] = m / scale;
        }
    }
}

TEST(around_boundaries)
{
    static double x[N];
    static float y[N];
    const char *before = mpsim_isa_active();
    uint64_t seed = test_seed() + 1, elements = 0;
    for (size_t i = 0; i < format_count(); i++) {
        const mpsim_format f = format_at(i);
        for (int mode = 0; mode < 2 * MPSIM_ROUND_MODES; mode++) {
            const mpsim_rounding r = any_rounding(&seed, &f, mode % MPSIM_ROUND_MODES);
            if (!test_in_part(i + (size_t)mode / MPSIM_ROUND_MODES, 2))
                continue;
            near_boundaries(x, &f, r.scale, &seed);
            for (size_t k = 0; k < N; k++)
                y[k] = (float)x[k];
            for (int source = 4; source <= 8; source += 4) {
                expectation e = storage(source == 4 ? (const void *)y : x, N, source);
                e.f = &f;
                e.r = r;
                e.rng = (mpsim_rng){7, seed, mode & 1 ? seed >> 9 : -(seed & (N - 1))}; /* past 2^64, too */
                expect(&e);
                compare_all(&e, &seed);
                elements += N;
            }
        }
    }
    mpsim_isa_use(before);
    printf("# %llu elements of either source\n", (unsigned long long)elements);
}

/* Results of many MiB go past the caches; that they are the same is seen piece by piece. */
TEST(large_arrays_equal_their_pieces)
{
    enum { LARGE = (17 << 20) + 77, PIECE = 9999 };
    static const struct {
        const char *format;
        int values, odd;
    } kinds[] = {{"e4m3", 0, 0}, {"fp16", 0, 2}, {"bf16", 1, 4}, {"e5m2", 0, 3}, {"fp16", 0, 1}};
    float *x = malloc(LARGE * sizeof *x);
    unsigned char *whole = malloc(LARGE * 4 + SPARE), *part = malloc(PIECE * 4);
    uint64_t seed = test_seed() + 2;
    ck_assert(x && whole && part);
    for (size_t i = 0; i < LARGE; i++)
        x[i] = f32_of_bits((uint32_t)(test_random(&seed) >> 32));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const mpsim_format *f = mpsim_format_find(kinds[k].format);
        const size_t bytes = kinds[k].values ? 4 : mpsim_format_code_bytes(f);
        unsigned char *out = whole + kinds[k].odd;
        mpsim_rounding r;
        mpsim_rounding_init(&r, k & 1 ? MPSIM_ROUND_STOCHASTIC_C : MPSIM_ROUND_NEAREST_EVEN);
        mpsim_rng rng = {1, 2, 3};
        if (kinds[k].values)
            mpsim_round_array_f32(f, &r, &rng, (void *)out, x, LARGE, NULL);
        else
            mpsim_encode_array_f32(f, &r, &rng, out, x, LARGE, NULL);
        for (size_t i = 0; i < LARGE; i += PIECE) {
            const size_t n = LARGE - i < PIECE ? LARGE - i : PIECE;
            rng.index = 3 + i;
            if (kinds[k].values)
                mpsim_round_array_f32(f, &r, &rng, (void *)part, x + i, n, NULL);
            else
                mpsim_encode_array_f32(f, &r, &rng, part, x + i, n, NULL);
            ck_assert_mem_eq(out + i * bytes, part, n * bytes);
        }
    }
    free(x);
    free(whole);
    free(part);
}

TEST(decoding)
{
    static unsigned char codes[8 * N + 1], narrow[4 * N + 1];
    static double y[N];
    const char *before = mpsim_isa_active();
    uint64_t seed = test_seed() + 3;
    for (size_t k = 0; mpsim_isa_at(k); k++) {
        if (mpsim_isa_use(mpsim_isa_at(k)) != MPSIM_OK)
            continue;
        for (size_t i = 0; i < format_count(); i++) {
            const mpsim_format f = format_at(i);
            const size_t bytes = mpsim_format_code_bytes(&f);
            for (size_t j = 0; j < N; j++) /* any, then finite ones: bits above are ignored */
                code_store(codes + 1 + j * bytes, bytes,
                           j < N / 4   ? test_random(&seed)
                           : j < N / 2 ? test_random(&seed) % (f.max_finite + 1)
                           : j % 2     ? j - N / 2
                                       : f.max_finite - (j - N / 2) % (f.max_finite + 1));
            ck_assert_int_eq(mpsim_decode_array(&f, y, codes + 1, N - i), MPSIM_OK);
            for (size_t j = 0; j < N - i; j++) {
                const uint64_t code = code_load(codes + 1 + j * bytes, bytes);
                const uint64_t want = bits_of_f64(mpsim_decode(&f, code));
                ck_assert_msg(bits_of_f64(y[j]) == want, "isa %s, %s, code %llx", mpsim_isa_active(), f.name,
                              (unsigned long long)code);
            }
            /* into binary32, at an odd address; t-arrays.c asks which formats that takes */
            const mpsim_status status = mpsim_decode_array_f32(&f, (float *)(void *)(narrow + 1), codes + 1, N - i);
            for (size_t j = 0; j < N - i && status == MPSIM_OK; j++) {
                const uint64_t code = code_load(codes + 1 + j * bytes, bytes);
                const uint32_t want = narrowed(mpsim_decode(&f, code)),
                               got = (uint32_t)code_load(narrow + 1 + 4 * j, 4);
                ck_assert_msg(got == want, "isa %s, %s, code %llx as binary32: %x, not %x", mpsim_isa_active(), f.name,
                              (unsigned long long)code, got, want);
            }
        }
    }
    mpsim_isa_use(before);
}

TEST_MAIN("cast");
