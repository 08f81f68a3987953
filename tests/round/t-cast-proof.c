/* t-cast-proof.c -- the array functions of <mpsim/round.h> and mpsim_decode_array equal the one-element functions,
 * written by someone who had not seen a kernel: any format and rounding, around every code and midpoint, any length,
 * place and split, on every instruction set, with nothing read or written beyond the ends. */
#include "support/points.h"
#include "support/subjects.h"
#include "support/support.h"
#include "support/walls.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the one-element functions give for the inputs p. */
typedef struct trial {
    const mpsim_format *f;
    mpsim_rounding r;
    mpsim_rng rng;
    points p;
    int narrow;      /* mpsim_round_array_f32 takes the format */
    uint64_t *code;  /* of each input                          */
    uint64_t *value; /* bits of the source type                */
    unsigned *flags;
} trial;

enum { ENCODE, ROUND, ROUND_IN_PLACE, WAYS };
static const char *const way_name[] = {"encode", "round", "round in place"};

typedef struct place {
    int way, counted, split, upper, environment;
    size_t from, n, off_in, off_out;
    uint64_t lengths; /* where the pieces end */
} place;

static walls source, target;

/* The value of a code in the source type. A NaN is cut off as it is decoded. */
static uint64_t value_bits(const trial *t, uint64_t code)
{
    const double y = mpsim_decode(t->f, code);
    const uint64_t u = bits_of_f64(y);
    if (t->p.width == 64)
        return u;
    return isnan(y) ? (u >> 63) << 31 | 0x7f800000u | ((u >> 29) & 0x7fffffu) : bits_of_f32((float)y);
}

/* Are all numbers of the format numbers of binary32? */
static int in_binary32(const mpsim_format *f)
{
    return f->mbits <= 23 && mpsim_format_max(f) <= 0x1.fffffep127 &&
           ilogb(mpsim_format_min_normal(f)) - (f->zero == MPSIM_ZERO_NONE ? 0 : f->mbits) >= -149;
}

static void trial_expect(trial *t)
{
    t->code = realloc(t->code, t->p.n * sizeof *t->code);
    t->value = realloc(t->value, t->p.n * sizeof *t->value);
    t->flags = realloc(t->flags, t->p.n * sizeof *t->flags);
    ck_assert(t->code && t->value && t->flags);
    t->narrow = t->p.width == 64 || in_binary32(t->f);
    for (size_t i = 0; i < t->p.n; i++) {
        const uint32_t word = mpsim_rng_word(t->rng.seed, t->rng.stream, t->rng.index + i);
        t->code[i] = points_encode(&t->p, i, t->f, &t->r, word, &t->flags[i]);
        t->value[i] = value_bits(t, t->code[i]);
    }
}

/* ---- the array functions ---- */

static mpsim_status call(const trial *t, int way, const mpsim_rng *rng, void *out, const void *x, size_t n,
                         mpsim_counts *counts)
{
    if (t->p.width == 32)
        return way == ENCODE ? mpsim_encode_array_f32(t->f, &t->r, rng, out, x, n, counts)
                             : mpsim_round_array_f32(t->f, &t->r, rng, out, x, n, counts);
    return way == ENCODE ? mpsim_encode_array_f64(t->f, &t->r, rng, out, x, n, counts)
                         : mpsim_round_array_f64(t->f, &t->r, rng, out, x, n, counts);
}

/* The first element that is wrong, or n; counts are compared by the caller. */
static size_t run(const trial *t, const place *l, mpsim_counts *got)
{
    const size_t size = (size_t)t->p.width / 8, step = l->way == ENCODE ? mpsim_format_code_bytes(t->f) : size;
    points part = t->p;
    part.u += l->from;
    unsigned char *out = walls_place(&target, l->n * step, l->upper, l->off_out), *x = out;
    if (l->way != ROUND_IN_PLACE)
        x = walls_place(&source, l->n * size, l->upper, l->off_in);
    points_store(&part, x, l->n);
    uint64_t lengths = l->lengths;
    for (size_t i = 0, m; i < l->n || (l->n == 0 && i == 0); i += m) {
        m = l->split ? subject_piece(l->n - i, &lengths) : l->n;
        mpsim_rng rng = t->rng;
        rng.index += l->from + i;
        subject_enter(l->environment);
        const mpsim_status s = call(t, l->way, subject_random(t->r.mode) || l->split ? &rng : NULL, out + i * step,
                                    x + i * size, m, l->counted ? got : NULL);
        const int kept = subject_leave();
        if (s != MPSIM_OK || !kept)
            ck_abort_msg("status %d, environment %d kept: %d", (int)s, l->environment, kept);
        if (l->n == 0)
            break;
    }
    ck_assert_msg(walls_kept(&target, out, l->n * step), "%s: wrote beyond the ends", subject_text(t->f, &t->r));
    const uint64_t *want = (l->way == ENCODE ? t->code : t->value) + l->from;
    for (size_t i = 0; i < l->n; i++)
        if (code_load(out + i * step, step) != want[i])
            return i;
    return l->n;
}

static mpsim_counts expected_counts(const trial *t, size_t from, size_t n)
{
    mpsim_counts c = {0, 0, 0, 0, 0};
    for (size_t i = from; i < from + n; i++)
        subject_count(&c, t->flags[i]);
    return c;
}

/* A difference: does the element alone have it, too? */
static void differs(const trial *t, const place *l, size_t i)
{
    const size_t size = l->way == ENCODE ? mpsim_format_code_bytes(t->f) : (size_t)t->p.width / 8;
    const size_t at = l->from + i;
    place one = *l;
    const uint64_t u = t->p.u[at];
    one.from = at;
    one.n = 1;
    one.split = 0;
    mpsim_counts c = {0, 0, 0, 0, 0};
    const int alone = run(t, &one, &c) == 0;
    (void)run(t, l, &c);
    const unsigned char *out = walls_place(&target, l->n * size, l->upper, l->off_out);
    ck_abort_msg("%s, environment %d, %s, %s: element %zu of %zu%s, binary%d 0x%" PRIx64 " (%a): expected 0x%" PRIx64
                 ", got 0x%" PRIx64 "; alone it is %s",
                 mpsim_isa_active(), l->environment, way_name[l->way], subject_text(t->f, &t->r), i, l->n,
                 l->split ? " in pieces" : "", t->p.width, u, points_value(&t->p, at),
                 l->way == ENCODE ? t->code[at] : t->value[at], code_load(out + i * size, size),
                 alone ? "wrong, too" : "right");
}

static void counts_differ(const trial *t, const place *l, const mpsim_counts *want, const mpsim_counts *got)
{
    char found[300] = "no element alone is counted wrongly";
    for (size_t i = l->from; i < l->from + l->n; i++) {
        place one = *l;
        one.from = i;
        one.n = 1;
        one.split = 0;
        mpsim_counts c = {0, 0, 0, 0, 0};
        (void)run(t, &one, &c);
        const mpsim_counts w = expected_counts(t, i, 1);
        if (memcmp(&w, &c, sizeof c) != 0) {
            snprintf(found, sizeof found, "alone 0x%" PRIx64 " (%a): flags 0x%x, counted %s", t->p.u[i],
                     points_value(&t->p, i), t->flags[i], subject_counts(&c));
            break;
        }
    }
    ck_abort_msg("%s, %s, %s, binary%d, %zu elements%s: expected %s, got %s; %s", mpsim_isa_active(), way_name[l->way],
                 subject_text(t->f, &t->r), t->p.width, l->n, l->split ? " in pieces" : "", subject_counts(want),
                 subject_counts(got), found);
}

static void check(const trial *t, const place *l)
{
    mpsim_counts got = {7, 8, 9, 10, 11}, want = expected_counts(t, l->from, l->n);
    const size_t i = run(t, l, &got);
    if (i < l->n)
        differs(t, l, i);
    if (!l->counted)
        return;
    want.inexact += 7, want.underflow += 8, want.subnormal += 9, want.overflow += 10, want.nan += 11;
    if (memcmp(&want, &got, sizeof got) != 0)
        counts_differ(t, l, &want, &got);
}

/* All inputs in each way, and a few windows of them, on every instruction set. */
static void check_everywhere(const trial *t, uint64_t *state)
{
    for (size_t k = 0; subject_isa(k) >= 0; k++) {
        if (!subject_isa(k))
            continue;
        for (int way = 0; way < (t->narrow ? WAYS : ROUND); way++) {
            const uint64_t w = test_random(state);
            place l = {.way = way,
                       .counted = (int)(w & 1),
                       .split = (int)(w >> 1 & 1),
                       .upper = (int)(w >> 2 & 1),
                       .n = t->p.n,
                       .off_in = (w >> 8) % 70,
                       .off_out = (w >> 16) % 70,
                       .lengths = w,
                       .environment = w >> 60 ? 0 : (int)((w >> 50) % SUBJECT_ENVIRONMENTS)};
            check(t, &l);
            l.counted = !l.counted;
            l.n = (w >> 24) % (w >> 62 ? 40 : 600);
            l.n = l.n < t->p.n ? l.n : t->p.n;
            l.from = (w >> 34) % (t->p.n - l.n + 1);
            l.off_in = l.off_out = 0;
            check(t, &l);
        }
    }
    ck_assert_int_eq(mpsim_isa_use(mpsim_isa_at(0)) == MPSIM_OK || mpsim_isa_use("generic") == MPSIM_OK, 1);
}

/* How much. */
typedef struct extent {
    size_t turns, most, sweep; /* of subject_rounding, points_codes, points_stride          */
    uint64_t thin;             /* of the turns behind the first one a mode in so many is tried */
} extent;

/* One format, every mode. */
static size_t prove(const mpsim_format *f, int width, const extent *e, uint64_t *state)
{
    size_t compared = 0;
    trial t = {.f = f};
    for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++)
        for (size_t turn = 0; turn < e->turns; turn++) {
            if (turn && test_random(state) % e->thin)
                continue;
            t.r = subject_rounding(f, mode, turn, width, state);
            t.rng = subject_rng(state);
            points_init(&t.p, width);
            points_specials(&t.p);
            points_codes(&t.p, f, t.r.scale, e->most, state);
            if (t.r.flush_input)
                points_near(&t.p, t.r.flush_below != 0 ? t.r.flush_below : width == 32 ? 0x1p-126 : 0x1p-1022, 3);
            points_stride(&t.p, e->sweep, 0x9e3779b1u + 2 * f->max_finite + (uint64_t)mode * 64, state);
            points_ordinary(&t.p, 100, -(int)(test_random(state) % 30), state);
            points_shuffle(&t.p, state);
            trial_expect(&t);
            check_everywhere(&t, state);
            compared += t.p.n;
            points_clear(&t.p);
        }
    free(t.code);
    free(t.value);
    free(t.flags);
    return compared;
}

/* ---- tests ---- */

enum { ROOM = 1 << 21 };

static void prove_all(int width)
{
    static mpsim_format list[SUBJECTS_MOST];
    uint64_t state = test_seed() + (uint64_t)width;
    source = walls_make(ROOM * 8);
    target = walls_make(ROOM * 8);
    size_t compared = 0;
    const size_t n = subjects(list, test_scaled(12), &state);
    const extent e = test_expensive() ? (extent){test_scaled(8), 1000, test_scaled(4000), 1}
                                      : (extent){4, 70, test_scaled(200), 4};
    for (size_t i = 0; i < n; i++)
        if (test_in_part(i + (size_t)width / 32, 1))
            compared += prove(&list[i], width, &e, &state);
    printf("# binary%d: %zu formats, %zu inputs in each way on every instruction set\n", width, n, compared);
}

CASE("casts", 120);

TEST(arrays_of_binary32_are_their_elements)
{
    prove_all(32);
}

TEST(arrays_of_binary64_are_their_elements)
{
    prove_all(64);
}

/* Products x * scale that miss a number of the format, or a midpoint, by less than binary64 can tell: the scale is made of
 * the two, x has all its bits. */
TEST(scales_made_for_one_input)
{
    static mpsim_format list[SUBJECTS_MOST];
    uint64_t state = test_seed() + 6;
    source = walls_make(1 << 16);
    target = walls_make(1 << 16);
    const size_t formats = subjects(list, test_scaled(12), &state);
    size_t compared = 0;
    trial t = {0};
    for (size_t turn = 0; turn < test_scaled(test_expensive() ? 100000 : 4000); turn++) {
        const uint64_t w = test_random(&state);
        t.f = &list[turn % 2 ? turn / 2 % formats : w % 16];
        const int width = w >> 8 & 1 ? 64 : 32;
        const uint64_t m = (w >> 16) % t.f->max_finite + 1;
        const double v = mpsim_decode(t.f, m) + (w >> 9 & 3 ? mpsim_ulp(t.f, m) / 2 : 0);
        const double x = width == 32 ? (double)f32_of_bits((uint32_t)(test_random(&state) >> 41) |
                                                           (uint32_t)((w >> 10 & 127) + 64) << 23)
                                     : f64_of_bits(test_random(&state) >> 12 | ((w >> 10 & 127) + 959) << 52);
        double scale = v / x;
        for (uint64_t k = w >> 60; k % 4; k--)
            scale = nextafter(scale, w >> 63 ? 0 : (double)INFINITY);
        if (!(scale >= 0x1p-1070 && scale < 0x1p1020))
            continue;
        t.r = subject_rounding(t.f, (w >> 32) % 3 ? 0 : (int)((w >> 40) % MPSIM_ROUND_MODES), 0, width, &state);
        t.r.scale = scale;
        t.rng = subject_rng(&state);
        points_init(&t.p, width);
        for (int k = -6; k <= 6; k++)
            points_near(&t.p, ldexp(x, k), k == 0 ? 2 : 0);
        trial_expect(&t);
        check_everywhere(&t, &state);
        compared += t.p.n;
        points_clear(&t.p);
    }
    printf("# %zu inputs in each way on every instruction set\n", compared);
    free(t.code);
    free(t.value);
    free(t.flags);
}

/* Fractions made for the random word of their element: on the threshold, and just beside it. */
TEST(fractions_made_for_their_words)
{
    static mpsim_format list[SUBJECTS_MOST];
    uint64_t state = test_seed() + 7;
    source = walls_make(1 << 16);
    target = walls_make(1 << 16);
    const size_t formats = subjects(list, test_scaled(12), &state);
    size_t compared = 0;
    trial t = {0};
    for (size_t turn = 0; turn < test_scaled(test_expensive() ? 20000 : 1000); turn++) {
        const uint64_t w = test_random(&state);
        t.f = &list[turn % 2 ? turn / 2 % formats : w % 16];
        const int width = w >> 8 & 1 ? 64 : 32;
        t.r = subject_rounding(t.f, MPSIM_ROUND_STOCHASTIC_A + (int)((w >> 16) % 3), turn % 3, width, &state);
        t.rng = subject_rng(&state);
        points_init(&t.p, width);
        for (uint64_t i = 0; i < 200; i++) {
            const uint64_t v = test_random(&state), m = v % (t.f->max_finite + 1);
            const double step = ldexp(1, -t.r.sr_bits);
            const uint32_t word = mpsim_rng_word(t.rng.seed, t.rng.stream, t.rng.index + i);
            double nu = 1 - (double)(word >> (32 - t.r.sr_bits)) * step;
            nu += step * (double)((int)(v >> 60) % 3 - 1) / (v >> 62 & 1 ? 2 : 1);
            nu += step * (double)((int)(v >> 56 & 15) % 3 - 1) * 0x1p-6;
            const double x = (mpsim_decode(t.f, m) + mpsim_ulp(t.f, m) * nu) / t.r.scale;
            const double a = fabs(x) <= 0x1.fffffep127 || width == 64 ? x : 1;
            points_push(&t.p,
                        width == 32 ? bits_of_f32((float)(v >> 48 & 1 ? -a : a)) : bits_of_f64(v >> 48 & 1 ? -a : a));
        }
        trial_expect(&t);
        check_everywhere(&t, &state);
        compared += t.p.n;
        points_clear(&t.p);
    }
    printf("# %zu inputs in each way on every instruction set\n", compared);
    free(t.code);
    free(t.value);
    free(t.flags);
}

/* Every length around the widths of vectors and blocks, with windows that begin at every element of the first
 * ones: an exceptional element at every place. */
TEST(every_length_at_every_place)
{
    static const char *const names[] = {"fp16", "bf16", "e4m3", "e5m2", "e2m1", "e8m0", "tf32", "binary32"};
    uint64_t state = test_seed() + 3;
    source = walls_make(8 * 4096);
    target = walls_make(8 * 4096);
    trial t = {0};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        for (int turn = 0; turn < 4; turn++) {
            t.f = mpsim_format_find(names[k]);
            t.r = subject_rounding(t.f, (int)(test_random(&state) % MPSIM_ROUND_MODES), (size_t)turn, 32, &state);
            t.rng = subject_rng(&state);
            points_init(&t.p, turn % 2 ? 64 : 32);
            points_specials(&t.p);
            points_codes(&t.p, t.f, t.r.scale, 20, &state);
            points_ordinary(&t.p, 1500, 0, &state);
            points_shuffle(&t.p, &state);
            trial_expect(&t);
            for (size_t i = 0; subject_isa(i) >= 0; i++)
                for (size_t n = 0; subject_isa(i) && n <= 1100; n += n < 140 ? 1 : 31) {
                    const uint64_t w = test_random(&state);
                    const place l = {.way = (int)(w % (t.narrow ? WAYS : ROUND)),
                                     .counted = (int)(w >> 8 & 1),
                                     .upper = (int)(w >> 9 & 1),
                                     .from = (w >> 16) % 200,
                                     .n = n,
                                     .off_in = (w >> 32) % 65,
                                     .off_out = (w >> 40) % 65};
                    check(&t, &l);
                }
            points_clear(&t.p);
        }
    free(t.code);
    free(t.value);
    free(t.flags);
}

/* Arrays larger than caches: other stores may be used there. The inputs come round again after a prime number of
 * them, so that the outputs do, too. */
TEST(large_arrays_are_their_elements)
{
    enum { PERIOD = 4099 };
    static const char *const names[] = {"fp16", "e4m3", "bf16", "tf32"};
    const size_t n = (size_t)(test_expensive() ? 1 << 26 : 1 << 22) + 13;
    uint64_t state = test_seed() + 4;
    source = walls_make(n * 4 + 64);
    target = walls_make(n * 4 + 64);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        trial t = {.f = mpsim_format_find(names[k])};
        t.r = subject_rounding(t.f, (int)(test_random(&state) % MPSIM_ROUND_STOCHASTIC_A), 2, 32, &state);
        points_init(&t.p, 32);
        points_specials(&t.p);
        points_codes(&t.p, t.f, t.r.scale, 60, &state);
        while (t.p.n < PERIOD)
            points_ordinary(&t.p, 1, 0, &state);
        t.p.n = PERIOD;
        points_shuffle(&t.p, &state);
        trial_expect(&t);
        const mpsim_counts whole = expected_counts(&t, 0, PERIOD), rest = expected_counts(&t, 0, n % PERIOD);
        for (int way = 0; way < WAYS; way++) {
            const size_t step = way == ENCODE ? mpsim_format_code_bytes(t.f) : 4;
            const uint64_t *want = way == ENCODE ? t.code : t.value;
            unsigned char *out = walls_place(&target, n * step, 1, (size_t)k), *x = out;
            if (way != ROUND_IN_PLACE)
                x = walls_place(&source, n * 4, 1, 3 * (size_t)k);
            for (size_t i = 0; i < n; i += PERIOD)
                points_store(&t.p, x + 4 * i, n - i < PERIOD ? n - i : PERIOD);
            mpsim_counts c = {0, 0, 0, 0, 0};
            ck_assert_int_eq(call(&t, way, NULL, out, x, n, k % 2 ? &c : NULL), MPSIM_OK);
            for (size_t i = 0; i < n; i++)
                if (code_load(out + i * step, step) != want[i % PERIOD])
                    ck_abort_msg("%s, %s, %s: element %zu of %zu, 0x%" PRIx64 ": expected 0x%" PRIx64
                                 ", got 0x%" PRIx64,
                                 mpsim_isa_active(), way_name[way], subject_text(t.f, &t.r), i, n, t.p.u[i % PERIOD],
                                 want[i % PERIOD], code_load(out + i * step, step));
            ck_assert(walls_kept(&target, out, n * step));
            const uint64_t m = n / PERIOD;
            if (k % 2)
                ck_assert(c.inexact == whole.inexact * m + rest.inexact &&
                          c.overflow == whole.overflow * m + rest.overflow &&
                          c.underflow == whole.underflow * m + rest.underflow && c.nan == whole.nan * m + rest.nan &&
                          c.subnormal == whole.subnormal * m + rest.subnormal);
        }
        points_clear(&t.p);
        free(t.code);
        free(t.value);
        free(t.flags);
    }
}

/* Codes of every format, with anything above their bits; all of them up to 16 bits. */
TEST(decoded_arrays_are_their_elements)
{
    static mpsim_format list[SUBJECTS_MOST];
    uint64_t state = test_seed() + 5;
    const size_t formats = subjects(list, test_scaled(12), &state);
    source = walls_make(8 << 16);
    target = walls_make(8 << 16);
    for (size_t k = 0; k < formats; k++) {
        const mpsim_format *f = &list[k];
        const size_t bytes = mpsim_format_code_bytes(f);
        const size_t n = f->bits <= 16 && (bytes == 1 || k % 4 == 0) ? (size_t)1 << f->bits : 3000;
        for (size_t i = 0; subject_isa(i) >= 0; i++) {
            if (!subject_isa(i))
                continue;
            for (int turn = 0; turn < 3; turn++) {
                const uint64_t w = test_random(&state);
                const size_t m = turn ? (w >> 8) % 300 % (n + 1) : n, skip = (w >> 24) % (n - m + 1);
                unsigned char *x = walls_place(&source, m * bytes, w & 1, (w >> 32) % 33);
                unsigned char *y = walls_place(&target, m * 8, w & 1, (w >> 40) % 33);
                for (size_t j = 0; j < m; j++) {
                    const uint64_t u = f->bits < 64 && n == (size_t)1 << f->bits ? skip + j : test_random(&state);
                    code_store(x + j * bytes, bytes, f->bits < 64 && w & 2 ? u | test_random(&state) << f->bits : u);
                }
                ck_assert_int_eq(mpsim_decode_array(f, (double *)(void *)y, x, m), MPSIM_OK);
                ck_assert(walls_kept(&target, y, m * 8));
                for (size_t j = 0; j < m; j++) {
                    const uint64_t c = code_load(x + j * bytes, bytes), want = bits_of_f64(mpsim_decode(f, c));
                    if (code_load(y + j * 8, 8) != want)
                        ck_abort_msg("%s, %s, code 0x%" PRIx64 ", element %zu of %zu: expected 0x%" PRIx64
                                     ", got 0x%" PRIx64,
                                     mpsim_isa_active(), f->name, c, j, m, want, code_load(y + j * 8, 8));
                }
            }
        }
    }
}

TEST_MAIN("cast-proof");
