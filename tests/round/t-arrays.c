/* t-arrays.c -- proves the array functions of <mpsim/round.h> against the scalar ones: codes,
 * values, counters, random words, arguments. The scalar functions: t-round.c. */
#include "sim/verify/oracles/oracle.h"
#include "support/cases.h"
#include "support/rounding.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/loop.h>
#include <mpsim/round.h>
#include <string.h>

enum { MOST = 1021 };

/* The scalar results that an array call must reproduce. */
typedef struct expected {
    uint64_t code[MOST];
    unsigned flags[MOST];
} expected;

static void add_counts(mpsim_counts *n, unsigned flags)
{
    n->inexact += !!(flags & MPSIM_FLAG_INEXACT);
    n->underflow += !!(flags & MPSIM_FLAG_UNDERFLOW);
    n->subnormal += !!(flags & MPSIM_FLAG_SUBNORMAL);
    n->overflow += !!(flags & MPSIM_FLAG_OVERFLOW);
    n->nan += !!(flags & MPSIM_FLAG_NAN);
}

static int same_counts(const mpsim_counts *a, const mpsim_counts *b)
{
    return a->inexact == b->inexact && a->underflow == b->underflow && a->subnormal == b->subnormal &&
           a->overflow == b->overflow && a->nan == b->nan;
}

/* All numbers of the format are numbers of binary32. */
static int in_binary32(const oracle_format *of)
{
    return of->precision <= 24 && of->max <= 0x1.fffffep127 && of->emin - of->precision + 1 >= -149;
}

enum { ENCODE, ROUND, ROUND_IN_PLACE, WAYS };

/* Encode or round x[0..n) in pieces that end at n/3 and n/2, or in one. The worst status. */
static mpsim_status in_pieces(int what, const mpsim_format *f, const mpsim_rounding *r, int width, unsigned char *out,
                              const unsigned char *x, size_t n, int split, mpsim_counts *counts)
{
    const size_t size = (size_t)width / 8;
    const size_t step = what == ENCODE ? mpsim_format_code_bytes(f) : size;
    const size_t ends[] = {split ? n / 3 : 0, split ? n / 2 : 0, n};
    size_t from = 0;
    mpsim_status s = MPSIM_OK;
    for (size_t k = 0; k < 3; k++) {
        const size_t m = ends[k] - from;
        const mpsim_rng rng = {11, 22, 33 + from};
        const mpsim_rng *g = is_stochastic(r->mode) || n % 2 ? &rng : NULL;
        const void *in = what == ROUND_IN_PLACE ? out + from * size : x + from * size;
        void *to = out + from * step;
        mpsim_status one;
        if (width == 32)
            one = what == ENCODE ? mpsim_encode_array_f32(f, r, g, to, in, m, counts)
                                 : mpsim_round_array_f32(f, r, g, to, in, m, counts);
        else
            one = what == ENCODE ? mpsim_encode_array_f64(f, r, g, to, in, m, counts)
                                 : mpsim_round_array_f64(f, r, g, to, in, m, counts);
        s = one != MPSIM_OK ? one : s;
        from = ends[k];
    }
    return s;
}

/* Encode or round c[0..n) at an odd address, and compare codes, values, counters and the bytes
 * beyond the end. */
static void one_array(tally *t, const mpsim_format *f, const oracle_format *of, const mpsim_rounding *r, const cases *c,
                      const expected *e, size_t n, int split)
{
    static unsigned char source[MOST * 8 + 8], target[MOST * 8 + 32];
    const size_t size = (size_t)c->width / 8, bytes = mpsim_format_code_bytes(f);
    unsigned char *x = source + n % 4, *out = target + n % 8;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u32 = (uint32_t)c->u[i];
        if (c->width == 32)
            memcpy(x + i * size, &u32, size);
        else
            memcpy(x + i * size, &c->u[i], size);
    }
    mpsim_counts want = {1, 2, 3, 4, 5};
    for (size_t i = 0; i < n; i++)
        add_counts(&want, e->flags[i]);

    for (int what = 0; what < WAYS; what++) {
        const size_t step = what == ENCODE ? bytes : size;
        mpsim_counts got = {1, 2, 3, 4, 5};
        if (what == ROUND_IN_PLACE)
            memcpy(out, x, n * size);
        const size_t kept = what == ROUND_IN_PLACE ? n * size : 0;
        memset(out + kept, 0x5a, sizeof target - 8 - kept);
        const mpsim_status s = in_pieces(what, f, r, c->width, out, x, n, split, n % 5 == 4 ? NULL : &got);
        if (what != ENCODE && c->width == 32 && !in_binary32(of)) {
            if (s != MPSIM_ERANGE)
                ck_abort_msg("%s: mpsim_round_array_f32 gave status %d", of->name, (int)s);
            continue;
        }
        if (s != MPSIM_OK)
            ck_abort_msg("%s: array status %d", of->name, (int)s);
        for (size_t i = 0; i < n; i++) {
            uint64_t w = e->code[i];
            if (what != ENCODE) {
                const double y = mpsim_decode(f, w);
                w = c->width == 32 ? narrowed(y) : bits_of_f64(y);
            }
            const uint64_t v = code_load(out + i * step, step);
            t->compared++;
            if (v != w)
                ck_abort_msg("%s %s scale=%a flush=%d,%d choices %d%d%d%d%d%d%d, array "
                             "of %zu, %s, element %zu, binary%d 0x%" PRIx64 ": scalar 0x%" PRIx64 ", array 0x%" PRIx64,
                             of->name, mode_name(r->mode), r->scale, r->flush_input, r->flush_output, r->overflow,
                             r->infinity, r->no_inf, r->nan, r->no_nan, r->negative, r->no_zero, n,
                             what == ENCODE ? "encode" : "round", i, c->width, c->u[i], w, v);
        }
        if (n % 5 != 4 && !same_counts(&want, &got))
            ck_abort_msg("%s %s, array of %zu, %s, binary%d: counters differ: expected "
                         "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 ", got %" PRIu64 " %" PRIu64
                         " %" PRIu64 " %" PRIu64 " %" PRIu64,
                         of->name, mode_name(r->mode), n, what == ENCODE ? "encode" : "round", c->width, want.inexact,
                         want.underflow, want.subnormal, want.overflow, want.nan, got.inexact, got.underflow,
                         got.subnormal, got.overflow, got.nan);
        for (size_t i = n * step; i < n * step + 8; i++)
            if (out[i] != 0x5a)
                ck_abort_msg("%s: array of %zu wrote beyond the end", of->name, n);
    }
}

enum { RANDOM_CHOICES = 90 };

/* An array kernel may have its own way of applying the choices. */
static void random_choices(mpsim_rounding *r, uint64_t *state)
{
    static const double factors[] = {1, 1, 1, 8, 0x1p-20, 1.0 / 3, 0x1.8p100, 0x1p-1000};
    static const double kept[] = {0, 0, 0x1p-126, 0x1p-20, 1, 0x1p-1074};
    r->sr_bits = (uint8_t)(test_random(state) % 32 + 1);
    r->overflow = (uint8_t)(test_random(state) % 2);
    r->infinity = (uint8_t)(test_random(state) % 2);
    r->no_inf = (uint8_t)(test_random(state) % 2);
    r->nan = (uint8_t)(test_random(state) % 6);
    r->no_nan = (uint8_t)(test_random(state) % 3);
    r->negative = (uint8_t)(test_random(state) % 3);
    r->no_zero = (uint8_t)(test_random(state) % 3);
    r->flush_input = (uint8_t)(test_random(state) % 2);
    r->flush_output = (uint8_t)(test_random(state) % 2);
    r->scale = factors[test_random(state) % 8];
    r->flush_below = kept[test_random(state) % 6];
}

static void arrays(tally *t, const mpsim_format *f, const oracle_format *of)
{
    static expected e;
    for (int width = 32; width <= 64; width += 32) {
        cases c;
        cases_init(&c, width);
        cases_sweep(&c, of, 400, test_seed());
        cases_edges(&c, of, 1, 1);
        cases_numbers(&c, of, 1, 30);
        cases_sweep(&c, of, MOST, test_seed() + 1);
        ck_assert_uint_ge(c.n, MOST);
        uint64_t state = test_seed() + of->max_code;
        for (int k = 0; k < 3 * MPSIM_ROUND_MODES + RANDOM_CHOICES; k++) {
            mpsim_rounding r = rounding(k % MPSIM_ROUND_MODES);
            const int at_random = k >= 3 * MPSIM_ROUND_MODES;
            if (at_random) {
                random_choices(&r, &state);
                if (!test_in_part((uint64_t)k, 1))
                    continue;
            } else if (k >= 2 * MPSIM_ROUND_MODES) {
                r.scale = 1.0 / 3;
                r.flush_output = 1;
                r.sr_bits = 9;
            } else if (k >= MPSIM_ROUND_MODES) {
                r.overflow = MPSIM_OVERFLOW_MAX;
                r.infinity = MPSIM_INFINITY_MAX;
                r.nan = MPSIM_NANS_PAYLOAD;
                r.flush_input = 1;
                r.scale = 0x1p3;
                r.negative = MPSIM_NEGATIVE_ABS;
                r.sr_bits = 31;
            }
            for (size_t i = 0; i < MOST; i++)
                e.code[i] = encode_bits(f, &r, width, c.u[i], mpsim_rng_word(11, 22, 33 + i), &e.flags[i]);
            for (size_t n = 0; n <= MOST && !at_random; n += n < 40 ? 1 + (size_t)(k % 3) : 327)
                one_array(t, f, of, &r, &c, &e, n, (int)(n % 2));
            one_array(t, f, of, &r, &c, &e, MOST, !at_random);
        }
        cases_clear(&c);
    }
}

CASE("array", 60);

TEST(an_array_is_its_elements)
{
    for_all_formats(arrays, 32);
}

/* Beyond 2^32 the index of an element still counts, and no index is used twice. */
TEST(an_array_takes_the_words_of_its_indices)
{
    const mpsim_format *f = mpsim_format_find("e4m3");
    mpsim_rounding r = rounding(MPSIM_ROUND_STOCHASTIC_C);
    static const uint64_t starts[] = {0, 1, 2, 3, 5, 0xfffffffd, 0x100000001, 0x3fffffffe, 0xfffffffffffffff0};
    float x[16];
    uint8_t codes[16];
    for (size_t i = 0; i < 16; i++)
        x[i] = 1.0625f + (float)i / 256;
    for (size_t k = 0; k < sizeof starts / sizeof starts[0]; k++) {
        const mpsim_rng rng = {UINT64_C(0x123456789abcdef0), UINT64_C(0xfedcba9876543210), starts[k]};
        ck_assert_int_eq(mpsim_encode_array_f32(f, &r, &rng, codes, x, 15, NULL), MPSIM_OK);
        for (size_t i = 0; i < 15; i++) {
            const uint32_t word = mpsim_rng_word(rng.seed, rng.stream, rng.index + i);
            const uint64_t want = mpsim_encode_f32(f, &r, x[i], word, NULL);
            ck_assert_msg(codes[i] == want, "index 0x%" PRIx64 " + %zu: 0x%x, not 0x%x", starts[k], i,
                          (unsigned)codes[i], (unsigned)want);
        }
    }
}

TEST(arrays_check_their_arguments)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    mpsim_format broken = *f;
    broken.bits = 17;
    const mpsim_rounding good = rounding(MPSIM_ROUND_NEAREST_EVEN);
    const mpsim_rounding random = rounding(MPSIM_ROUND_STOCHASTIC_A);
    mpsim_rounding bad = good;
    bad.mode = MPSIM_ROUND_MODES;
    const mpsim_rng rng = {1, 2, 3};
    const float x[2] = {1, 2};
    const double xd[2] = {1, 2};
    float y[2] = {7, 8};
    double yd[2] = {7, 8};
    uint16_t codes[2] = {7, 8};
    mpsim_counts n = {0};

    ck_assert_int_eq(mpsim_encode_array_f32(f, &good, NULL, NULL, NULL, 0, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_encode_array_f64(f, &good, NULL, NULL, NULL, 0, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_round_array_f32(f, &good, NULL, NULL, NULL, 0, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_round_array_f64(f, &good, NULL, NULL, NULL, 0, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_encode_array_f32(f, &random, &rng, NULL, NULL, 0, &n), MPSIM_OK);

#define INVALID(format, how, words, to32, from32, to64, from64, code_to)                                    \
    do {                                                                                                    \
        ck_assert_int_eq(mpsim_encode_array_f32(format, how, words, code_to, from32, 2, &n), MPSIM_EINVAL); \
        ck_assert_int_eq(mpsim_encode_array_f64(format, how, words, code_to, from64, 2, &n), MPSIM_EINVAL); \
        ck_assert_int_eq(mpsim_round_array_f32(format, how, words, to32, from32, 2, &n), MPSIM_EINVAL);     \
        ck_assert_int_eq(mpsim_round_array_f64(format, how, words, to64, from64, 2, &n), MPSIM_EINVAL);     \
    } while (0)
    INVALID(NULL, &good, &rng, y, x, yd, xd, codes);
    INVALID(&broken, &good, &rng, y, x, yd, xd, codes);
    INVALID(f, NULL, &rng, y, x, yd, xd, codes);
    INVALID(f, &bad, &rng, y, x, yd, xd, codes);
    INVALID(f, &random, NULL, y, x, yd, xd, codes); /* no random words */
    INVALID(f, &good, &rng, NULL, x, NULL, xd, NULL);
    INVALID(f, &good, &rng, y, NULL, yd, NULL, codes);
#undef INVALID
    ck_assert(y[0] == 7 && y[1] == 8 && yd[0] == 7 && yd[1] == 8);
    ck_assert(codes[0] == 7 && codes[1] == 8);
    ck_assert(n.inexact == 0 && n.underflow == 0 && n.subnormal == 0 && n.overflow == 0 && n.nan == 0);

    /* A format that binary32 cannot hold. */
    const mpsim_format *wide = mpsim_format_find("binary64");
    ck_assert_int_eq(mpsim_round_array_f32(wide, &good, NULL, y, x, 2, &n), MPSIM_ERANGE);
    ck_assert(y[0] == 7 && y[1] == 8);
}

/* What a loop of a kind stands for. */
static void array_cast(int kind, const mpsim_format *f, const mpsim_rounding *r, void *y, const void *x, size_t n)
{
    const mpsim_status status = kind == MPSIM_LOOP_ROUND_F32    ? mpsim_round_array_f32(f, r, NULL, y, x, n, NULL)
                                : kind == MPSIM_LOOP_ROUND_F64  ? mpsim_round_array_f64(f, r, NULL, y, x, n, NULL)
                                : kind == MPSIM_LOOP_ENCODE_F32 ? mpsim_encode_array_f32(f, r, NULL, y, x, n, NULL)
                                : kind == MPSIM_LOOP_ENCODE_F64 ? mpsim_encode_array_f64(f, r, NULL, y, x, n, NULL)
                                : kind == MPSIM_LOOP_DECODE_F32 ? mpsim_decode_array_f32(f, y, x, n)
                                                                : mpsim_decode_array(f, y, x, n);
    ck_assert_int_eq(status, MPSIM_OK);
}

/* Loops over strides, zero and backwards among them, give what the array functions give of elements that lie together. */
TEST(loops_are_arrays_with_strides)
{
    enum { FEW = 2500, SPREAD = 24 };
    static unsigned char x[FEW * SPREAD], y[FEW * SPREAD], together[8 * FEW], want[8 * FEW];
    static const ptrdiff_t spreads[][2] = {{0, 0}, {1, 1}, {3, 1}, {1, 3}, {2, 3}, {-1, 1}, {1, -2}};
    uint64_t seed = test_seed() + 9;
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (unsigned char)(test_random(&seed) >> 40);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_UP);
    for (size_t k = 0; k < mpsim_format_count(); k++) {
        const mpsim_format *f = mpsim_format_at(k);
        const int narrow = in_binary32(oracle_find(f->name));
        for (int kind = 0; kind < MPSIM_LOOP_KINDS; kind++) {
            mpsim_loop loop;
            const int lost = !narrow && (kind == MPSIM_LOOP_ROUND_F32 || kind == MPSIM_LOOP_DECODE_F32);
            ck_assert_int_eq(mpsim_loop_init(&loop, (mpsim_loop_kind)kind, f, kind < MPSIM_LOOP_DECODE_F32 ? &r : NULL),
                             lost ? MPSIM_ERANGE : MPSIM_OK);
            for (size_t s = 0; s < sizeof spreads / sizeof *spreads && !lost; s++) {
                const ptrdiff_t steps[2] = {spreads[s][0] * loop.from, spreads[s][1] * loop.to};
                const ptrdiff_t n = s % 2 ? FEW : 1 + (ptrdiff_t)(k % 40);
                unsigned char *from = x + (steps[0] < 0 ? (n - 1) * -steps[0] : 0),
                              *to = y + (steps[1] < 0 ? (n - 1) * -steps[1] : 0);
                for (ptrdiff_t i = 0; i < n; i++)
                    memcpy(together + i * loop.from, from + i * steps[0], loop.from);
                memset(want, 0, sizeof want);
                array_cast(kind, f, &r, want, together, (size_t)n);
                mpsim_loop_run((char *[]){(char *)from, (char *)to}, &n, steps, &loop);
                for (ptrdiff_t i = steps[1] ? 0 : n - 1; i < n; i++)
                    ck_assert_msg(memcmp(to + i * steps[1], want + i * loop.to, loop.to) == 0,
                                  "%s, kind %d, strides %td %td, element %td", f->name, kind, steps[0], steps[1], i);
            }
        }
    }
}

TEST(loops_check_their_arguments)
{
    const mpsim_format *f = mpsim_format_find("e4m3");
    mpsim_format broken = *f;
    mpsim_rounding r, random;
    mpsim_loop loop = {.kind = 77};
    broken.ebits = 0;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_rounding_init(&random, MPSIM_ROUND_STOCHASTIC_C);
    ck_assert_int_eq(mpsim_loop_init(NULL, MPSIM_LOOP_ROUND_F32, f, &r), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_loop_init(&loop, MPSIM_LOOP_KINDS, f, &r), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_loop_init(&loop, MPSIM_LOOP_ROUND_F32, NULL, &r), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_loop_init(&loop, MPSIM_LOOP_DECODE_F64, &broken, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_loop_init(&loop, MPSIM_LOOP_ENCODE_F32, f, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_loop_init(&loop, MPSIM_LOOP_ENCODE_F32, f, &random), MPSIM_EINVAL);
    ck_assert(loop.kind == 77);
    ck_assert_int_eq(mpsim_decode_array_f32(f, NULL, "", 1), MPSIM_EINVAL);
}

TEST_MAIN("arrays");
