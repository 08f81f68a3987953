/* t-summary-proof.c -- <mpsim/summary.h> against a brute force that casts every element by itself
 * (support/plainsummary.h), written by someone who had not seen how a summary is made: any formats, roundings and
 * wishes, many casts together, sources of every kind, around every code and midpoint, any split over calls and
 * summaries, on every instruction set. */
#include "support/plainsummary.h"
#include "support/points.h"
#include "support/subjects.h"
#include "support/support.h"
#include "support/walls.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <mpsim/isa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An array of binary32, of binary64, or of codes of a format. */
typedef struct array {
    const mpsim_format *codes; /* NULL: numbers of `size` bytes */
    size_t size, n, room;
    unsigned char *raw;
    double *x; /* widened */
} array;

typedef struct trial {
    array a;
    mpsim_cast casts[PLAIN_CASTS];
    size_t n_casts;
    unsigned want;
    mpsim_rng rng;
    const char *data; /* for messages */
    uint64_t times;   /* the array is added so many times */
} trial;

static walls source;
static plain_summary expected;
enum { PARTS = 4 };
static mpsim_summary *parts[PARTS];

static void setup(size_t bytes)
{
    source = walls_make(bytes);
    plain_init(&expected);
    for (int i = 0; i < PARTS; i++) {
        parts[i] = mpsim_summary_new();
        ck_assert(parts[i] != NULL);
    }
}

static void teardown(void)
{
    for (int i = 0; i < PARTS; i++)
        mpsim_summary_free(parts[i]);
}

/* ---- arrays ---- */

static void array_room(array *a, size_t n)
{
    if (n <= a->room)
        return;
    a->room = n;
    a->raw = realloc(a->raw, n * 8);
    a->x = realloc(a->x, n * sizeof *a->x);
    ck_assert(a->raw && a->x);
}

static void array_of_points(array *a, const points *p)
{
    a->codes = NULL;
    a->size = (size_t)p->width / 8;
    a->n = p->n;
    array_room(a, p->n);
    points_store(p, a->raw, p->n);
    for (size_t i = 0; i < p->n; i++)
        a->x[i] = points_value(p, i);
}

/* Every code of a format of at most 16 bits, or n at random; what lies above the bits of a code says nothing. */
static void array_of_codes(array *a, const mpsim_format *f, size_t n, int all, uint64_t *state)
{
    a->codes = f;
    a->size = mpsim_format_code_bytes(f);
    a->n = all ? (size_t)1 << f->bits : n;
    array_room(a, a->n);
    for (size_t i = 0; i < a->n; i++) {
        const uint64_t w = test_random(state), u = all ? i : test_random(state);
        code_store(a->raw + i * a->size, a->size, f->bits < 64 && w & 1 ? u | w >> 8 << f->bits : u);
        a->x[i] = mpsim_decode(f, code_load(a->raw + i * a->size, a->size));
    }
}

/* ---- one trial ---- */

static void add_piece(const trial *t, mpsim_summary *s, size_t from, size_t n, uint64_t *state)
{
    const uint64_t w = test_random(state);
    unsigned char *x = walls_place(&source, n * t->a.size, w & 1, w & 2 ? (w >> 8) % 67 : 0);
    memcpy(x, t->a.raw + from * t->a.size, n * t->a.size);
    mpsim_rng rng = t->rng;
    rng.index += from;
    int random = 0;
    for (size_t k = 0; k < t->n_casts; k++)
        random |= subject_random(t->casts[k].rounding.mode);
    const mpsim_rng *g = random || w & 4 ? &rng : NULL;
    const mpsim_status status = t->a.codes       ? mpsim_summary_add_codes(s, t->a.codes, g, x, n)
                                : t->a.size == 4 ? mpsim_summary_add_f32(s, g, (const float *)(const void *)x, n)
                                                 : mpsim_summary_add_f64(s, g, (const double *)(const void *)x, n);
    ck_assert_int_eq(status, MPSIM_OK);
}

/* The elements from..from+n-1 over `used` summaries, merged in any order; what differs, or NULL. `read`: a read in
 * between, which must not be seen later. */
static const char *summarise(const trial *t, size_t from, size_t n, int used, int whole, uint64_t *state)
{
    static plain_read before, between, after;
    int order[PARTS];
    for (int i = 0; i < used; i++) {
        order[i] = i;
        ck_assert_int_eq(mpsim_summary_begin(parts[i], t->casts, t->n_casts, t->want), MPSIM_OK);
    }
    for (uint64_t round = 0; round < t->times; round++)
        for (size_t i = 0, m; i < n; i += m) {
            m = whole ? n : subject_piece(n - i, state);
            const size_t part = test_random(state) % (uint64_t)used;
            add_piece(t, parts[part], from + i, m, state);
            if (test_random(state) % 64 == 0) {
                plain_before(&between, t->n_casts, state);
                ck_assert_int_eq(mpsim_summary_read(parts[part], &between.stats, &between.histogram, between.casts),
                                 MPSIM_OK);
            }
        }
    for (int i = used; i > 1; i--) { /* merge two at random until one is left */
        const int k = (int)(test_random(state) % (uint64_t)i), other = order[k];
        order[k] = order[i - 1];
        ck_assert_int_eq(mpsim_summary_merge(parts[order[test_random(state) % (uint64_t)(i - 1)]], parts[other]),
                         MPSIM_OK);
    }
    plain_before(&before, t->n_casts, state);
    after = before;
    const int histogram = t->want & MPSIM_SUMMARY_HISTOGRAM || test_random(state) % 2;
    ck_assert_int_eq(
        mpsim_summary_read(parts[order[0]], &after.stats, histogram ? &after.histogram : NULL, after.casts), MPSIM_OK);
    return plain_differs(&expected, t->want, &before, &after);
}

static void failed(const trial *t, const char *what, uint64_t *state)
{
    char first[320];
    snprintf(first, sizeof first, "%s", what);
    const char *cast = strstr(first, "(cast ");
    const size_t k = cast ? strtoul(cast + 6, NULL, 10) : 0;
    trial one = *t;
    if (cast) {
        one.casts[0] = t->casts[k];
        one.n_casts = 1;
    }
    one.times = 1;
    for (size_t i = 0; i < t->a.n; i++) {
        mpsim_rng rng = t->rng;
        rng.index += i;
        plain_set(&expected, one.casts, one.n_casts, &rng, t->a.x + i, 1, 1);
        const char *alone = summarise(&one, i, 1, 1, 1, state);
        if (alone)
            ck_abort_msg("%s, %s, %s %zu bytes, want %u, %zu elements, %zu casts: %s; %s; alone, element %zu 0x%" PRIx64
                         " (%a) random 0x%x: %s",
                         mpsim_isa_active(), t->data, t->a.codes ? t->a.codes->name : "numbers of", t->a.size, t->want,
                         t->a.n, t->n_casts, first, cast ? subject_text(t->casts[k].format, &t->casts[k].rounding) : "",
                         i, code_load(t->a.raw + i * t->a.size, t->a.size), t->a.x[i],
                         (unsigned)mpsim_rng_word(rng.seed, rng.stream, rng.index), alone);
    }
    size_t n = t->a.n;
    for (size_t m = n; m > 0; m /= 2) { /* fewer elements from the beginning, one cast */
        plain_set(&expected, one.casts, one.n_casts, &t->rng, t->a.x, m, 1);
        if (!summarise(&one, 0, m, 1, 1, state))
            break;
        n = m;
    }
    ck_abort_msg("%s, %s, %s %zu bytes, want %u, %zu elements, %zu casts, %" PRIu64
                 " times: %s; %s; no element is wrong "
                 "alone; with that cast alone the first %zu may be",
                 mpsim_isa_active(), t->data, t->a.codes ? t->a.codes->name : "numbers of", t->a.size, t->want, t->a.n,
                 t->n_casts, t->times, first, cast ? subject_text(t->casts[k].format, &t->casts[k].rounding) : "", n);
}

/* On every instruction set: in one piece, and split. */
static size_t prove(const trial *t, uint64_t *state)
{
    plain_set(&expected, t->casts, t->n_casts, &t->rng, t->a.x, t->a.n, t->times);
    for (size_t k = 0; subject_isa(k) >= 0; k++) {
        if (!subject_isa(k))
            continue;
        const char *what = summarise(t, 0, t->a.n, 1, 1, state);
        if (!what)
            what = summarise(t, 0, t->a.n, 1 + (int)(test_random(state) % PARTS), 0, state);
        if (what)
            failed(t, what, state);
    }
    return t->a.n * t->n_casts;
}

/* ---- every format and rounding ---- */

/* Casts to one format: any modes and turns, or what most users take: to nearest and toward zero, powers of two. */
static void any_casts(trial *t, const mpsim_format *f, size_t n, int width, uint64_t *state)
{
    const int usual = (int)(test_random(state) % 2);
    t->n_casts = n;
    for (size_t k = 0; k < n; k++) {
        const uint64_t w = test_random(state), turn = (w >> 8) % (usual ? 3 : 4);
        const int mode = (int)(w % (usual ? MPSIM_ROUND_UP : MPSIM_ROUND_MODES));
        t->casts[k] = (mpsim_cast){f, subject_rounding(f, mode, turn, width, state)};
    }
}

static void points_for(points *p, const trial *t, size_t most, uint64_t *state)
{
    points_specials(p);
    for (size_t k = 0; k < t->n_casts; k += 1 + test_random(state) % 4) {
        const mpsim_rounding *r = &t->casts[k].rounding;
        points_codes(p, t->casts[k].format, r->scale, most, state);
        if (r->flush_input)
            points_near(p, r->flush_below != 0 ? r->flush_below : 0x1p-1022, 2);
    }
    points_stride(p, most * 4, 0x9e3779b1u + 2 * t->casts[0].format->max_finite, state);
    points_ordinary(p, most * 4, -(int)(test_random(state) % 40), state);
    points_shuffle(p, state);
}

/* More of all kinds, for what is done with large arrays only; some of one binade, some of one sign. */
static void enlarge(points *p, size_t n, uint64_t *state)
{
    const uint64_t w = test_random(state), sign = (uint64_t)1 << (p->width - 1);
    const int centre = -(int)(w % 40);
    while (p->n < n) {
        const size_t from = p->n;
        const uint64_t v = test_random(state);
        switch (w >> 8 & 3) {
        case 0:
            points_ordinary(p, 500, centre, state);
            break;
        case 1:
            points_stride(p, 500, v | 1, state);
            break;
        case 2: /* one binade */
            for (int i = 0; i < 500; i++)
                points_push(p, p->width == 32 ? 0x3f000000u | (test_random(state) & 0x7fffffu)
                                              : 0x3fe0000000000000u | test_random(state) >> 12);
            break;
        default: /* the same again */
            for (size_t i = 0; i < from && p->n < n; i++)
                points_push(p, p->u[i]);
            break;
        }
        for (size_t i = from; i < p->n && w >> 10 & 1; i++)
            p->u[i] &= ~sign;
    }
    points_shuffle(p, state);
}

static void every_format(int width)
{
    static mpsim_format list[SUBJECTS_MOST];
    static trial t = {.times = 1};
    uint64_t state = test_seed() + (uint64_t)width;
    size_t pairs = 0;
    const int turns = test_expensive() ? 12 : 1;
    const size_t n = subjects(list, test_scaled(12), &state);
    setup(1 << 24);
    for (int turn = 0; turn < turns; turn++)
        for (size_t i = 0; i < n; i++) {
            points p;
            points_init(&p, width);
            if (!test_in_part(i + (width == 64), 4))
                continue;
            any_casts(&t, &list[i], 1 + test_random(&state) % 16, width, &state);
            points_for(&p, &t, test_expensive() ? 150 : 12, &state);
            if (turn == 0 && p.n > 2500)
                p.n = 2500;
            if (test_random(&state) % 5 == 0) {
                enlarge(&p, 5000 + test_random(&state) % 40000, &state);
                t.n_casts = t.n_casts < 3 ? t.n_casts : 3;
            }
            array_of_points(&t.a, &p);
            t.want = (unsigned)(i + (size_t)turn) % 8;
            t.rng = subject_rng(&state);
            t.data = "every format";
            pairs += prove(&t, &state);
            points_clear(&p);
        }
    printf("# binary%d: %zu formats, %zu casts of elements\n", width, n, pairs);
    teardown();
}

CASE("summaries", 120);

TEST(every_format_from_binary32)
{
    every_format(32);
}

TEST(every_format_from_binary64)
{
    every_format(64);
}

/* Codes of every format: all of them up to 8 bits, 16 of a few. */
TEST(every_format_from_codes)
{
    static mpsim_format list[SUBJECTS_MOST];
    static trial t = {.times = 1, .data = "codes"};
    uint64_t state = test_seed() + 3;
    size_t pairs = 0;
    const size_t n = subjects(list, test_scaled(12), &state);
    setup(1 << 24);
    for (size_t i = 0; i < n; i++) {
        if (!test_in_part(i, 4))
            continue;
        const int known = strcmp(list[i].name, "fp16") == 0 || strcmp(list[i].name, "bf16") == 0;
        const int all = list[i].bits <= (known || test_expensive() ? 16 : 10);
        any_casts(&t, &list[test_random(&state) % n], 1 + test_random(&state) % 5, 32, &state);
        for (size_t k = 1; k < t.n_casts; k++)
            t.casts[k].format = &list[test_random(&state) % 20];
        array_of_codes(&t.a, &list[i], test_random(&state) % 6 ? 1200 : 40000, all, &state);
        t.want = (unsigned)(test_random(&state) % 8);
        t.rng = subject_rng(&state);
        pairs += prove(&t, &state);
    }
    printf("# codes: %zu formats, %zu casts of elements\n", n, pairs);
    teardown();
}

/* ---- many casts ---- */

static const char *const training[] = {"fp16", "bf16", "e4m3", "e5m2"};

/* Sweeps of 25 scales of four formats, all modes to nearest and toward zero and the others, every wish. */
TEST(a_hundred_casts)
{
    static trial t = {.times = 1, .data = "a hundred casts"};
    uint64_t state = test_seed() + 4;
    setup(1 << 24);
    for (int turn = 0; turn < (test_expensive() ? 80 : 16); turn++) {
        const int preset = turn % (int)mpsim_preset_count();
        if (!test_in_part((uint64_t)turn, 8))
            continue;
        t.n_casts = 0;
        for (size_t f = 0; f < 4; f++)
            for (int s = 0; s < 25; s++) {
                mpsim_cast *c = &t.casts[t.n_casts++];
                c->format = mpsim_format_find(training[f]);
                mpsim_rounding_preset(&c->rounding, mpsim_preset_at((size_t)preset), c->format);
                if (turn % 3 == 0)
                    mpsim_rounding_init(&c->rounding, MPSIM_ROUND_NEAREST_EVEN);
                c->rounding.mode = (uint8_t)(turn < 8 ? 0 : test_random(&state) % MPSIM_ROUND_MODES);
                c->rounding.scale = ldexp(turn % 7 == 6 ? 0.9 : 1, turn % 5 == 4 ? 11 * s - 137 : s);
                c->rounding.flush_output = turn % 4 == 3;
            }
        points p;
        points_init(&p, turn % 4 == 1 ? 64 : 32);
        points_ordinary(&p, 1500, -(turn * 5 % 45), &state);
        points_specials(&p);
        points_for(&p, &t, 8, &state);
        p.n = p.n < 2500 ? p.n : 2500;
        if (turn % 4 == 0)
            enlarge(&p, 20000, &state);
        array_of_points(&t.a, &p);
        if (turn % 4 == 2)
            array_of_codes(&t.a, mpsim_format_find(training[turn / 4 % 4]), 2500, 0, &state);
        t.want = (unsigned)(turn % 8) ^ 7;
        t.rng = subject_rng(&state);
        prove(&t, &state);
        points_clear(&p);
    }
    teardown();
}

/* ---- arrays of one kind ---- */

static void few_casts(trial *t, uint64_t *state)
{
    t->n_casts = 0;
    for (size_t f = 0; f < 4; f++)
        for (int k = 0; k < 3; k++) {
            const mpsim_format *g = mpsim_format_find(training[f]);
            t->casts[t->n_casts++] =
                (mpsim_cast){g, subject_rounding(g, (int)(k == 0 ? 0 : test_random(state) % MPSIM_ROUND_STOCHASTIC_A),
                                                 (size_t)k, 32, state)};
        }
}

/* Equal elements, so many that a sum of squares in 64 bits, or a counter of 16, would overflow: 2^22 of them (with the
 * significand of only ones; the error as large as can be). */
TEST(equal_elements)
{
    static trial t = {.data = "equal elements"};
    static const uint64_t some32[] = {0x3fffffff, 0xbfffffff, 0x387fdfff, 0x3f800000, 0x00000001, 0x80000000,
                                      0x7f7fffff, 0x7fc00001, 0xff800000, 0x33000001, 0x477fefff, 0x43e80000};
    static const uint64_t some64[] = {0x3fffffffffffffff, 0xbff0000000000001, 0x0000000000000001,
                                      0x7fefffffffffffff, 0x7ff8000000000000, 0x3fe5555555555555};
    const size_t n = ((size_t)1 << (test_expensive() ? 24 : 21)) + 5;
    uint64_t state = test_seed() + 5;
    setup(n * 8);
    for (size_t k = 0; k < sizeof some32 / sizeof some32[0] + sizeof some64 / sizeof some64[0]; k++) {
        const int narrow = k < sizeof some32 / sizeof some32[0];
        if (!test_in_part(k, 6))
            continue;
        const uint64_t u = narrow ? some32[k] : some64[k - sizeof some32 / sizeof some32[0]];
        few_casts(&t, &state);
        t.n_casts = narrow ? 4 : 2;
        t.casts[1].rounding.mode = MPSIM_ROUND_TOWARD_ZERO;
        t.want = 7;
        t.times = 1;
        points p;
        points_init(&p, narrow ? 32 : 64);
        for (size_t i = 0; i < n; i++)
            points_push(&p, u);
        array_of_points(&t.a, &p);
        points_clear(&p);
        /* the expectation of one element, n times */
        plain_set(&expected, t.casts, t.n_casts, NULL, t.a.x, 1, n);
        for (size_t i = 0; subject_isa(i) >= 0; i++) {
            if (!subject_isa(i) || (i + k) % 2)
                continue;
            const char *what = summarise(&t, 0, n, 1, 1, &state);
            ck_assert_msg(!what, "%s, %zu elements 0x%" PRIx64 ": %s; casts %s", mpsim_isa_active(), n, u, what,
                          subject_text(t.casts[0].format, &t.casts[0].rounding));
        }
    }
    teardown();
}

/* Counters and sums of more than 2^40 elements, by merging two summaries in turn: Fibonacci numbers of arrays. */
TEST(merges_beyond_32_bits)
{
    static trial t = {.data = "merges", .want = 7, .times = 1};
    static plain_read before, after;
    uint64_t state = test_seed() + 6, to = 1, from = 1;
    setup(1 << 20);
    few_casts(&t, &state);
    points p;
    points_init(&p, 32);
    points_specials(&p);
    points_codes(&p, t.casts[0].format, 1, 20, &state);
    points_ordinary(&p, 20000, -3, &state);
    array_of_points(&t.a, &p);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(mpsim_summary_begin(parts[i], t.casts, t.n_casts, t.want), MPSIM_OK);
        add_piece(&t, parts[i], 0, t.a.n, &state);
    }
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(mpsim_summary_merge(parts[i % 2], parts[1 - i % 2]), MPSIM_OK);
        const uint64_t sum = to + from; /* `to` is the one merged into */
        to = from;
        from = sum;
    }
    plain_set(&expected, t.casts, t.n_casts, &t.rng, t.a.x, t.a.n, from);
    plain_before(&before, t.n_casts, &state);
    after = before;
    ck_assert_int_eq(mpsim_summary_read(parts[1], &after.stats, &after.histogram, after.casts), MPSIM_OK);
    const char *what = plain_differs(&expected, 7, &before, &after);
    ck_assert_msg(!what, "%zu elements %" PRIu64 " times: %s", t.a.n, from, what);
    points_clear(&p);
    teardown();
}

/* Nothing, one element, only zeros, only NaN, ..., and a few of each around the widths of vectors. */
TEST(short_arrays_and_specials)
{
    static trial t = {.data = "specials", .times = 1};
    uint64_t state = test_seed() + 7;
    setup(1 << 20);
    for (int width = 32; width <= 64; width += 32) {
        points all;
        points_init(&all, width);
        points_specials(&all);
        for (size_t i = 0; i < all.n; i++) {
            points p;
            points_init(&p, width);
            few_casts(&t, &state);
            t.want = (unsigned)(test_random(&state) % 8);
            for (size_t n = test_random(&state) % 70 + 1; n > 0; n--)
                points_push(&p, all.u[i]);
            array_of_points(&t.a, &p);
            prove(&t, &state);
            t.a.n = 1;
            prove(&t, &state);
            t.a.n = 0;
            prove(&t, &state);
            points_clear(&p);
        }
        for (size_t n = 1; n < 80; n++) {
            if (n > 9 && !test_in_part(n, 1))
                continue;
            points_shuffle(&all, &state);
            few_casts(&t, &state);
            t.want = (unsigned)(test_random(&state) % 8);
            array_of_points(&t.a, &all);
            t.a.n = n < all.n ? n : all.n;
            prove(&t, &state);
        }
        points_clear(&all);
    }
    t.n_casts = 0; /* no casts at all */
    points p;
    points_init(&p, 32);
    points_ordinary(&p, 1000, 0, &state);
    points_specials(&p);
    array_of_points(&t.a, &p);
    for (t.want = 0; t.want < 8; t.want++)
        prove(&t, &state);
    points_clear(&p);
    teardown();
}

/* Every split into three pieces, and every wish, of a short array; every place. */
TEST(every_split)
{
    enum { N = 48 };
    static trial t = {.data = "splits", .times = 1};
    static plain_read before, after;
    uint64_t state = test_seed() + 8;
    setup(1 << 16);
    points p;
    points_init(&p, 32);
    points_specials(&p);
    points_ordinary(&p, 30, -10, &state);
    points_shuffle(&p, &state);
    p.n = N;
    array_of_points(&t.a, &p);
    few_casts(&t, &state);
    t.casts[2].rounding.mode = MPSIM_ROUND_STOCHASTIC_B;
    t.rng = subject_rng(&state);
    plain_set(&expected, t.casts, t.n_casts, &t.rng, t.a.x, N, 1);
    for (size_t i = 0; i <= N; i++)
        for (size_t k = i; k <= N; k++) {
            if (i > 0 && k < N && !test_in_part(3 * i + k, 1))
                continue;
            t.want = (unsigned)((i * N + k) % 8);
            ck_assert_int_eq(mpsim_summary_begin(parts[0], t.casts, t.n_casts, t.want), MPSIM_OK);
            add_piece(&t, parts[0], k, N - k, &state);
            add_piece(&t, parts[0], 0, i, &state);
            add_piece(&t, parts[0], i, k - i, &state);
            plain_before(&before, t.n_casts, &state);
            after = before;
            ck_assert_int_eq(mpsim_summary_read(parts[0], &after.stats, &after.histogram, after.casts), MPSIM_OK);
            const char *what = plain_differs(&expected, t.want, &before, &after);
            ck_assert_msg(!what, "pieces end at %zu and %zu of %d: %s", i, k, N, what);
        }
    points_clear(&p);
    teardown();
}

/* Sources of several kinds in one summary; more elements after a read. */
TEST(sources_of_all_kinds_in_one)
{
    static trial t = {.times = 1};
    static plain_read before, after;
    static double x[60000];
    static const char *const sources[] = {"fp16", "bf16", "e4m3", "e2m1", "tf32", "e8m0", "binary16p5se", "e11m20"};
    static mpsim_format formats[8];
    uint64_t state = test_seed() + 9;
    setup(1 << 20);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(mpsim_format_parse(&formats[i], sources[i]), MPSIM_OK);
    for (size_t isa = 0; subject_isa(isa) >= 0; isa++)
        for (int turn = 0; turn < 10 && subject_isa(isa); turn++) {
            if (!test_in_part(isa + (size_t)turn, 1))
                continue;
            size_t n = 0;
            few_casts(&t, &state);
            t.rng = subject_rng(&state);
            t.want = (unsigned)(test_random(&state) % 8);
            ck_assert_int_eq(mpsim_summary_begin(parts[0], t.casts, t.n_casts, t.want), MPSIM_OK);
            for (int k = 0; k < 20; k++) {
                const uint64_t w = test_random(&state);
                points p;
                points_init(&p, w & 1 ? 64 : 32);
                points_ordinary(&p, (w >> 8) % 1000, -10, &state);
                points_stride(&p, (w >> 20) % 1000, w | 1, &state);
                array_of_points(&t.a, &p);
                if (w & 2)
                    array_of_codes(&t.a, &formats[(w >> 32) % 8], (w >> 40) % 2000, 0, &state);
                points_clear(&p);
                memcpy(x + n, t.a.x, t.a.n * sizeof *x);
                n += t.a.n;
                add_piece(&t, parts[0], 0, t.a.n, &state);
                if (k % 7 != 6)
                    continue;
                plain_set(&expected, t.casts, t.n_casts, NULL, x, n, 1); /* no cast is stochastic */
                plain_before(&before, t.n_casts, &state);
                after = before;
                ck_assert_int_eq(mpsim_summary_read(parts[0], &after.stats, &after.histogram, after.casts), MPSIM_OK);
                const char *what = plain_differs(&expected, t.want, &before, &after);
                ck_assert_msg(!what, "%s, %zu elements: %s", mpsim_isa_active(), n, what);
            }
        }
    teardown();
}

/* ---- the contract ---- */

TEST(arguments_are_checked)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    mpsim_format bad = *f;
    bad.bits = 1;
    mpsim_cast c[2] = {{f, {0}}, {f, {0}}};
    mpsim_rounding_init(&c[0].rounding, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_rounding_init(&c[1].rounding, MPSIM_ROUND_STOCHASTIC_B);
    const float x[2] = {1, 2.0001f};
    const double y[2] = {1, 2};
    const uint16_t codes[2] = {1, 2};
    const mpsim_rng rng = {1, 2, 3};
    static plain_read before, after;
    uint64_t state = 1;
    mpsim_summary *s = mpsim_summary_new(), *other = mpsim_summary_new();
    ck_assert(s && other);
    mpsim_summary_free(NULL);
    /* before it began */
    ck_assert_int_eq(mpsim_summary_add_f32(s, &rng, x, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_f64(s, &rng, y, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_codes(s, f, &rng, codes, 2), MPSIM_EINVAL);
    /* beginning */
    ck_assert_int_eq(mpsim_summary_begin(NULL, c, 2, 7), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_begin(s, NULL, 2, 7), MPSIM_EINVAL);
    mpsim_cast wrong[2] = {c[0], c[1]};
    wrong[1].format = &bad;
    ck_assert_int_eq(mpsim_summary_begin(s, wrong, 2, 7), MPSIM_EINVAL);
    wrong[1].format = NULL;
    ck_assert_int_eq(mpsim_summary_begin(s, wrong, 2, 7), MPSIM_EINVAL);
    wrong[1] = c[1];
    wrong[1].rounding.scale = 0;
    ck_assert_int_eq(mpsim_summary_begin(s, wrong, 2, 7), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_f32(s, &rng, x, 2), MPSIM_EINVAL); /* it must begin again */
    /* adding */
    ck_assert_int_eq(mpsim_summary_begin(s, c, 2, 7), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_add_f32(s, NULL, x, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_f64(s, NULL, y, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_codes(s, f, NULL, codes, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_f32(s, &rng, NULL, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_f64(s, &rng, NULL, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_codes(s, f, &rng, NULL, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_codes(s, NULL, &rng, codes, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_codes(s, &bad, &rng, codes, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_add_f32(s, &rng, NULL, 0), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_add_f64(s, &rng, NULL, 0), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_add_codes(s, f, &rng, NULL, 0), MPSIM_OK);
    /* nothing was added */
    plain_before(&before, 2, &state);
    after = before;
    ck_assert_int_eq(mpsim_summary_read(s, &after.stats, &after.histogram, after.casts), MPSIM_OK);
    ck_assert_uint_eq(after.stats.count, before.stats.count);
    ck_assert_mem_eq(&after.casts[1].counts, &before.casts[1].counts, sizeof after.casts[1].counts);
    /* merging */
    ck_assert_int_eq(mpsim_summary_merge(s, other), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_begin(other, c, 1, 7), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_merge(s, other), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_begin(other, c, 2, 6), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_merge(s, other), MPSIM_EINVAL);
    wrong[1] = c[1];
    wrong[1].rounding.scale = 2;
    ck_assert_int_eq(mpsim_summary_begin(other, wrong, 2, 7), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_merge(s, other), MPSIM_EINVAL);
    wrong[1] = c[1];
    wrong[1].format = mpsim_format_find("bf16");
    ck_assert_int_eq(mpsim_summary_begin(other, wrong, 2, 7), MPSIM_OK);
    ck_assert_int_eq(mpsim_summary_merge(s, other), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_merge(NULL, other), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_summary_merge(s, NULL), MPSIM_EINVAL);
    mpsim_summary_free(other);
    mpsim_summary_free(s);
}

TEST_MAIN("summary-proof");
