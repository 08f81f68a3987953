/* t-diff.c -- what mpsim diff takes a difference for: a seeded difference of each sort, in small tensors and in those
 * of many pieces, on 1, 2 and 7 threads; the order of execution; how tensors are matched; tolerances. */
#include "sim/diff/fit.h"
#include "sim/diff/order.h"
#include "sim/diff/sequence.h"
#include "support/support.h"

#include <train/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- two files of one tensor ---- */

enum { ROWS = 12, COLUMNS = 20, SMALL = ROWS * COLUMNS };

typedef struct sample {
    float *x;
    uint64_t shape[2];
    size_t n;
    const char *format; /* of the file; NULL: binary32 */
} sample;

static uint64_t state;

static double uniform(void)
{
    return (double)(test_random(&state) >> 11) * 0x1p-53;
}

/* Numbers of a few binades, both signs, none zero. */
static sample make(size_t rows)
{
    sample s = {.shape = {rows, COLUMNS}, .n = rows * COLUMNS};
    s.x = malloc(s.n * sizeof *s.x);
    for (size_t i = 0; i < s.n; i++)
        s.x[i] = (float)ldexp((uniform() + 0.25) * (test_random(&state) & 1 ? 1 : -1), (int)(test_random(&state) % 4));
    return s;
}

static sample copy(const sample *s)
{
    sample c = *s;
    c.x = malloc(s->n * sizeof *s->x);
    memcpy(c.x, s->x, s->n * sizeof *s->x);
    return c;
}

static const char *path_of(const char *name)
{
    static char paths[4][64];
    static int k;
    char *path = paths[k++ % 4];
    snprintf(path, sizeof paths[0], "t-diff-%ld-%s.tmp", (long)getpid(), name);
    return path;
}

static const char *save(const char *name, const sample *s)
{
    trace_error e;
    const mpsim_format *f = mpsim_format_find(s->format ? s->format : "binary32");
    const char *path = path_of(name);
    const trace_tensor t = {.name = "weight:fc.weight", .format = f, .shape = s->shape, .rank = 2, .count = s->n};
    mpsim_rounding r;
    unsigned char *codes = malloc(s->n * 8);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (s->format)
        ck_assert(mpsim_encode_array_f32(f, &r, NULL, codes, s->x, s->n, NULL) == MPSIM_OK);
    else
        memcpy(codes, s->x, s->n * sizeof *s->x); /* signalling NaN, too */
    trace_writer *w = trace_writer_safetensors(path, &t, 1, NULL, 0, &e);
    ck_assert_msg(w != NULL, "%s", e.text);
    trace_to_little_endian(codes, mpsim_format_code_bytes(f), s->n);
    ck_assert(trace_writer_data(w, codes, s->n * mpsim_format_code_bytes(f), &e) == 0 &&
              trace_writer_finish(w, &e) == 0);
    free(codes);
    return path;
}

typedef struct told {
    int n;
    finding found;
    measure all;
    match_how how;
    char names[64][40];
} told;

static int tell(void *context, const sequence_entry *e)
{
    told *t = context;
    const side_tensor *x = e->tensors[0] ? e->tensors[0] : e->tensors[1];
    if (x && t->n < 64)
        snprintf(t->names[t->n], sizeof t->names[0], "%s", x->name);
    t->n++;
    if (e->compared) {
        t->found = e->compared->found;
        t->all = e->compared->c.all;
        t->how = e->how;
    }
    return 0;
}

static told run(const char *a, const char *b, const char *within)
{
    told t = {.n = 0};
    side sides[2];
    tolerance tol;
    input_options o = {.keep_going = 0};
    char *paths[2] = {strdup(a), strdup(b)};
    ck_assert(tolerance_parse(&tol, within, "diff") == 0);
    for (int k = 0; k < 2; k++)
        ck_assert(side_open(&sides[k], "diff", &o, paths[k]) == 0);
    ck_assert(sequence_run(&sides[0], &sides[1], &tol, tell, &t) == 0);
    for (int k = 0; k < 2; k++) {
        side_close(&sides[k]);
        free(paths[k]);
    }
    return t;
}

static told compare(const sample *a, const sample *b, const char *within)
{
    const char *x = save("a", a), *y = save("b", b);
    const told t = run(x, y, within);
    unlink(x);
    unlink(y);
    return t;
}

/* ---- seeded differences ---- */

static float as(const char *format, mpsim_round_mode mode, float x, double scale)
{
    const mpsim_format *f = mpsim_format_find(format);
    mpsim_rounding r;
    mpsim_rounding_init(&r, mode);
    r.scale = scale;
    return (float)mpsim_decode(f, mpsim_encode_f32(f, &r, x, (uint32_t)test_random(&state), NULL));
}

static void flip(sample *s)
{
    s->x[s->n / 3] = f32_of_bits(bits_of_f32(s->x[s->n / 3]) ^ 1u << 21);
}
static void flip_sign(sample *s)
{
    s->x[s->n - 1] *= -1;
}
static void negate(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= -1;
}
static void scale(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 65536;
}
static void third(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] /= 3;
}
static void shrink(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 0.7312f;
}
static void to_bf16(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("bf16", MPSIM_ROUND_NEAREST_EVEN, s->x[i], 1);
}
static void chop(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("fp16", MPSIM_ROUND_TOWARD_ZERO, s->x[i], 1);
}
static void dither(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("bf16", MPSIM_ROUND_STOCHASTIC_C, s->x[i], 1);
}
static void half(sample *s)
{
    s->format = "fp16";
}
static void fp8(sample *s)
{
    float most = 0;
    for (size_t i = 0; i < s->n; i++)
        most = fmaxf(most, fabsf(s->x[i]));
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("e4m3", MPSIM_ROUND_NEAREST_EVEN, s->x[i], 448 / most) / (448 / most);
}
static void wipe(sample *s)
{
    memset(s->x, 0, s->n * sizeof *s->x);
}
static void cut(sample *s)
{
    memset(s->x + s->n / 2, 0, (s->n - s->n / 2) * sizeof *s->x);
}
static void flush(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = fabsf(s->x[i]) < 0.5f ? 0 : s->x[i];
}
static void clip(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = fmaxf(-2, fminf(2, s->x[i]));
}
static void poison(sample *s)
{
    s->x[s->n / 2] = NAN;
    s->x[s->n / 2 + 3] = HUGE_VALF;
}
static void swap_bytes(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = f32_of_bits(__builtin_bswap32(bits_of_f32(s->x[i])));
}
static void transpose(sample *s)
{
    sample c = copy(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i % COLUMNS * (s->n / COLUMNS) + i / COLUMNS] = c.x[i];
    free(c.x);
}
static void backwards(sample *s)
{
    sample c = copy(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = c.x[s->n - 1 - i];
    free(c.x);
}
static void roll(sample *s)
{
    sample c = copy(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[(i + 3 * COLUMNS) % s->n] = c.x[i];
    free(c.x);
}
static void lose_row(sample *s)
{
    memmove(s->x + 2 * COLUMNS, s->x + 3 * COLUMNS, (s->n - 3 * COLUMNS) * sizeof *s->x);
}
static void swap_rows(sample *s)
{
    float row[COLUMNS];
    memcpy(row, s->x, sizeof row);
    memcpy(s->x, s->x + 5 * COLUMNS, sizeof row);
    memcpy(s->x + 5 * COLUMNS, row, sizeof row);
}
static void shuffle(sample *s)
{
    for (size_t i = s->n - 1; i > 0; i--) {
        const size_t k = test_random(&state) % (i + 1);
        const float x = s->x[i];
        s->x[i] = s->x[k];
        s->x[k] = x;
    }
}
static void shorten(sample *s)
{
    memmove(s->x + 4 * COLUMNS, s->x + 6 * COLUMNS, (s->n - 6 * COLUMNS) * sizeof *s->x);
    s->shape[0] -= 2;
    s->n -= 2 * COLUMNS;
}
static void reshape(sample *s)
{
    s->shape[1] = s->shape[0];
    s->shape[0] = COLUMNS;
}
static void widen(sample *s)
{
    s->format = "binary64";
}
static void sum_otherwise(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = (float)((double)s->x[i] + (uniform() - uniform()) * 4e-7);
}
static void damage(sample *s)
{
    for (size_t i = 0; i < 9; i++)
        s->x[s->n / 4 + i] = (float)uniform();
}
static void forget(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = (float)(uniform() - 0.5);
}
static void nothing(sample *s)
{
    (void)s;
}
static void one_more(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] += 1;
}
static void magnitudes(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = fabsf(s->x[i]);
}
static void sevens(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = 7;
}
static void drop(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = uniform() < 0.25 ? 0 : s->x[i] / 0.75f;
}
static void rows(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 1 + (float)(i / COLUMNS % 7) / 8;
}
static void columns(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 1 + (float)(i % COLUMNS) / 8;
}
static void about_a_third(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= (float)((1 + 1e-5 * (uniform() - 0.5)) / 3);
}
static void line(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = s->x[i] * 1.7f - 0.3f;
}
static void through_bf16(sample *s)
{
    for (size_t i = 0; i < s->n; i++) /* an error of several units of bf16 */
        s->x[i] = as("bf16", MPSIM_ROUND_NEAREST_EVEN, s->x[i] * (float)(1 + 0.01 * (uniform() - 0.5)), 1);
}
static void move_rows(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (i / COLUMNS % 5 == 2)
            s->x[i] += (float)(0.01 * (uniform() - 0.5));
}

static const struct {
    const char *name;
    void (*change)(sample *s);
    verdict verdict;
    const char *words; /* in the evidence */
} cases[] = {
    {"equal", nothing, VERDICT_EQUAL, ""},
    {"bit", flip, VERDICT_FLIPPED_BIT, "bit 21, of the significand"},
    {"sign of one", flip_sign, VERDICT_FLIPPED_BIT, "bit 31, of the sign"},
    {"sign", negate, VERDICT_NEGATED, "B = -A"},
    {"loss scale", scale, VERDICT_SCALED, "2^16 exactly"},
    {"mean", third, VERDICT_SCALED, "a mean instead of a sum over 3"},
    {"ratio", shrink, VERDICT_SCALED, "B = A * 0.7312 exactly"},
    {"bf16", to_bf16, VERDICT_ROUNDED, "B = round(A, bf16, nearest-even) exactly"},
    {"chopped", chop, VERDICT_ROUNDED, "B = round(A, fp16, toward-zero) exactly"},
    {"stochastic", dither, VERDICT_ROUNDED, "as stochastic rounding does"},
    {"another dtype", half, VERDICT_ROUNDED, "B = round(A, fp16, nearest-even) exactly"},
    {"fp8", fp8, VERDICT_ROUNDED, "B = round(A * "},
    {"zeros", wipe, VERDICT_ZEROED, "never written"},
    {"tail", cut, VERDICT_ZEROED, "the tail"},
    {"flushed", flush, VERDICT_ZEROED, "all "},
    {"clipped", clip, VERDICT_CLIPPED, " 2 in magnitude"},
    {"NaN", poison, VERDICT_NON_FINITE, "2 elements are finite in A alone"},
    {"bytes", swap_bytes, VERDICT_BYTE_ORDER, "opposite order"},
    {"transposed", transpose, VERDICT_TRANSPOSED, "the axes (1, 0)"},
    {"backwards", backwards, VERDICT_REVERSED, "along axis 0, 1"},
    {"rolled", roll, VERDICT_SHIFTED, "3 rows of 20 before"},
    {"lost row", lose_row, VERDICT_SHIFTED, "1 row of 20 behind"},
    {"rows", swap_rows, VERDICT_PERMUTED, "rows 0 and 5"},
    {"shuffled", shuffle, VERDICT_PERMUTED, "the same codes, as often"},
    {"rows missing", shorten, VERDICT_RESIZED, "2 rows of 20 of A are missing, from row 4 on"},
    {"reshaped", reshape, VERDICT_RESHAPED, "all codes are equal"},
    {"wider", widen, VERDICT_DTYPE, "all values are equal, as binary32 in A and as binary64 in B"},
    {"sums", sum_otherwise, VERDICT_SUM_ORDER, "looks like it"},
    {"damaged", damage, VERDICT_CORRUPTED, "hold other numbers, the rest is equal"},
    {"unrelated", forget, VERDICT_UNRELATED, "correlation"},
    {"offset", one_more, VERDICT_OFFSET, "B = A + 1, within a rounding"},
    {"magnitudes", magnitudes, VERDICT_SIGNS, "B has no sign"},
    {"constant", sevens, VERDICT_CONSTANT, "B is 7 everywhere"},
    {"dropout", drop, VERDICT_DROPOUT, "dropout with p = 0.25?"},
    {"scales of rows", rows, VERDICT_SCALED, " rows of B is A's times a number of its own, 1 to 1.75"},
    {"scales of columns", columns, VERDICT_SCALED, "each of the 20 columns of B is A's times a number of its own"},
    {"about a third", about_a_third, VERDICT_SCALED, "a mean instead of a sum over 3?"},
    {"line", line, VERDICT_AFFINE, "B is 1.7"},
    {"computed in bf16", through_bf16, VERDICT_COMPUTED, "computed in bf16 and widened?"},
    {"rows moved", move_rows, VERDICT_PARTIAL, "rows, which differ as a whole"},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* Each, of a tensor of one piece and of one of many, on some threads. */
static void check_cases(size_t rows, unsigned threads)
{
    char wrong[512] = "";
    parallel_eager(1);
    parallel_init(threads);
    state = test_seed();
    for (int i = 0; i < CASES && !wrong[0]; i++) {
        sample a = make(rows), b = copy(&a);
        cases[i].change(&b);
        const told t = compare(&a, &b, NULL);
        if (t.found.verdict != cases[i].verdict || !strstr(t.found.evidence, cases[i].words))
            snprintf(wrong, sizeof wrong, "%s: %s, %.300s", cases[i].name, verdict_words[t.found.verdict].word,
                     t.found.evidence);
        free(a.x);
        free(b.x);
    }
    ck_assert_msg(!wrong[0], "%s", wrong);
}

START_TEST(verdicts_small)
{
    check_cases(ROWS, 1);
}
END_TEST
START_TEST(verdicts_large)
{
    check_cases(3000, 1);
}
END_TEST
START_TEST(verdicts_threads)
{
    if (!test_in_part((uint64_t)_i, 1))
        return;
    check_cases(3000, (unsigned)(5 * _i + 2));
}
END_TEST

/* ---- differences of which both sides have something ---- */

static void zero_and_nan(sample *s)
{
    s->x[5] = 0;
    s->x[7] = NAN;
}
static void other_zero_and_nan(sample *s)
{
    s->x[5] = -0.0f;
    s->x[7] = f32_of_bits(0x7fc00123);
}
static void to_fp16(sample *s)
{
    s->format = "fp16";
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("fp16", MPSIM_ROUND_NEAREST_EVEN, s->x[i], 1);
}
static void fp16_as_bf16(sample *s)
{
    const mpsim_format *from = mpsim_format_find("fp16"), *to = mpsim_format_find("bf16");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    s->format = "bf16";
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = (float)mpsim_decode(to, mpsim_encode_f32(from, &r, s->x[i], 0, NULL));
}
static void flip_some(sample *s)
{
    for (size_t i = 3; i < 60; i += 19)
        s->x[i] = f32_of_bits(bits_of_f32(s->x[i]) ^ 1u << 21);
}
static void swap_two(sample *s)
{
    const float x = s->x[3];
    s->x[3] = s->x[50];
    s->x[50] = x;
}
static void shuffle_rows(sample *s)
{
    for (size_t row = 0; row < s->n / COLUMNS; row++) {
        float *x = s->x + row * COLUMNS, first = x[row % 7];
        x[row % 7] = x[9 + row % 5];
        x[9 + row % 5] = first;
    }
}
/* The same numbers under any seed: whether three roundings fit one ratio, depends on them. */
static void few(sample *s)
{
    state = 3;
    s->shape[0] = 3;
    s->n = 3 * COLUMNS;
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = (float)(uniform() + 0.25);
}
static void shrink_by_steps(sample *s)
{
    few(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = s->x[i] * 0.9f * 0.85f * 1.03f;
}
static void fp8_by_24(sample *s)
{
    s->format = "e4m3";
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 24;
}
static void to_e4m3_limits(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 200;
}
static void clip_at_448(sample *s)
{
    to_e4m3_limits(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = fmaxf(-448, fminf(448, s->x[i]));
}

static const struct {
    const char *name;
    void (*change[2])(sample *s);
    verdict verdict;
    const char *words;
} both[] = {
    {"codes",
     {zero_and_nan, other_zero_and_nan},
     VERDICT_CODES,
     "the sign of zero differs in 1, the codes of NaN in 1"},
    {"read as another dtype", {to_fp16, fp16_as_bf16}, VERDICT_REINTERPRETED, "A's are read as fp16 and B's as bf16"},
    {"bits", {nothing, flip_some}, VERDICT_FLIPPED_BIT, "each in one bit, always bit 21, of the significand"},
    {"two elements", {nothing, swap_two}, VERDICT_PERMUTED, "elements 3 and 50 have changed places"},
    {"within rows", {nothing, shuffle_rows}, VERDICT_PERMUTED, "changed places within rows of 20, none between them"},
    {"zeros in A", {cut, nothing}, VERDICT_ZEROED, "A is zero from element "},
    {"clipped at a format's limit",
     {to_e4m3_limits, clip_at_448},
     VERDICT_CLIPPED,
     " 448 in magnitude, the largest number of e4m3"},
    {"ratio of three roundings", {few, shrink_by_steps}, VERDICT_SCALED, "within an ULP for "},
    {"cast with a scale", {nothing, fp8_by_24}, VERDICT_ROUNDED, "B = round(A * 24, e4m3"},
};

START_TEST(verdicts_both)
{
    char wrong[512] = "";
    state = test_seed();
    for (size_t i = 0; i < sizeof both / sizeof both[0] && !wrong[0]; i++) {
        sample a = make(ROWS), b = copy(&a);
        both[i].change[0](&a);
        both[i].change[1](&b);
        const told t = compare(&a, &b, NULL);
        if (t.found.verdict != both[i].verdict || !strstr(t.found.evidence, both[i].words))
            snprintf(wrong, sizeof wrong, "%s: %s, %.300s", both[i].name, verdict_words[t.found.verdict].word,
                     t.found.evidence);
        free(a.x);
        free(b.x);
    }
    ck_assert_msg(!wrong[0], "%s", wrong);
}
END_TEST

/* The other way round a rounding is seen, too. */
START_TEST(other_way)
{
    state = test_seed();
    sample a = make(ROWS), b = copy(&a);
    to_bf16(&a);
    const told t = compare(&a, &b, NULL);
    ck_assert_int_eq(t.found.verdict, VERDICT_ROUNDED);
    ck_assert_msg(strstr(t.found.evidence, "A = round(B, bf16, nearest-even)"), "%s", t.found.evidence);
    ck_assert_str_eq(t.found.format, "bf16");
    ck_assert_str_eq(t.found.mode, "nearest-even");
    free(a.x);
    free(b.x);
}
END_TEST

/* ---- the measure ---- */

START_TEST(measure_by_hand)
{
    sample a = {.shape = {1, 4}, .n = 4, .x = malloc(16)}, b = copy(&a);
    const float x[4] = {1, -2, 0.5f, 3}, y[4] = {1, -2 - 0x1p-22f, 0.5f + 0x1p-23f, 5};
    memcpy(a.x, x, sizeof x);
    memcpy(b.x, y, sizeof y);
    const measure m = compare(&a, &b, NULL).all;
    ck_assert(m.count == 4 && m.differ == 3 && m.first.at == 1 && m.last.at == 3 && m.worst.at == 3);
    ck_assert(m.first.codes[0] == 0xc0000000 && m.first.codes[1] == 0xc0000001);
    ck_assert(m.max_ulp == 0x40a00000 - 0x40400000 && m.ulps[1] == 1 && m.ulps[2] == 1 && m.ulps[23] == 1);
    ck_assert(m.bits[0] == 1 && m.bits[1] == 1 && m.one_bit == 2 && m.larger == 2 && m.smaller == 1);
    ck_assert(m.max_abs == 2 && m.max_rel == 0.4);
    free(a.x);
    free(b.x);
}
END_TEST

/* Any split of the elements over measures gives the same one. */
START_TEST(measure_merges)
{
    enum { N = 500 };
    const mpsim_format *f = mpsim_format_find("fp16");
    double x[N], y[N];
    uint16_t p[N], q[N];
    measurer r;
    measure whole, parts, part;
    state = test_seed();
    for (int i = 0; i < N; i++) {
        p[i] = (uint16_t)test_random(&state);
        q[i] = test_random(&state) % 3 ? p[i] : (uint16_t)test_random(&state);
    }
    mpsim_decode_array(f, x, p, N);
    mpsim_decode_array(f, y, q, N);
    measurer_init(&r, f, f);
    measure_init(&whole);
    measure_add(&whole, &r, 0, p, q, x, y, N);
    for (int k = 0; k < 50; k++) {
        const size_t cut1 = test_random(&state) % N, cut2 = cut1 + test_random(&state) % (N - cut1);
        const size_t from[4] = {0, cut1, cut2, N}, order[3] = {(size_t)k % 3, (size_t)(k + 1) % 3, (size_t)(k + 2) % 3};
        measure_init(&parts);
        for (int i = 0; i < 3; i++) {
            const size_t at = from[order[i]];
            measure_init(&part);
            measure_add(&part, &r, at, p + at, q + at, x + at, y + at, from[order[i] + 1] - at);
            measure_merge(&parts, &part);
        }
        ck_assert(parts.differ == whole.differ && parts.worst.at == whole.worst.at && parts.max_ulp == whole.max_ulp);
        ck_assert(memcmp(parts.ulps, whole.ulps, sizeof whole.ulps) == 0 &&
                  memcmp(parts.bits, whole.bits, sizeof whole.bits) == 0);
        ck_assert(measure_sqnr(&parts) == measure_sqnr(&whole) && parts.first.at == whole.first.at &&
                  parts.last.at == whole.last.at);
        ck_assert(memcmp(parts.multiset, whole.multiset, sizeof whole.multiset) == 0 &&
                  parts.scale_min[0] == whole.scale_min[0]);
    }
}
END_TEST

START_TEST(tolerances)
{
    static const struct {
        const char *within;
        verdict verdict;
    } rows[] = {{"4ulp", VERDICT_TOLERATED},   {"3ULP", VERDICT_FLIPPED_BIT}, {"1e-6", VERDICT_TOLERATED},
                {"1e-8", VERDICT_FLIPPED_BIT}, {"100dB", VERDICT_TOLERATED},  {"200dB", VERDICT_FLIPPED_BIT}};
    state = test_seed();
    sample a = make(ROWS), b = copy(&a);
    a.x[7] = 1;
    b.x[7] = 1 + 0x1p-21f;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_int_eq(compare(&a, &b, rows[i].within).found.verdict, rows[i].verdict);
    b.x[8] = NAN;
    ck_assert_int_eq(compare(&a, &b, "0dB").found.verdict, VERDICT_NON_FINITE);
    free(a.x);
    free(b.x);
}
END_TEST

/* ---- order and names ---- */

START_TEST(order_of_execution)
{
    static const char *const recorded[] = {
        "act:fc1",           "act:fc2",           "agrad:fc1",        "agrad:fc2",        "opt.m:fc1.weight",
        "weight:fc1.weight", "weight:fc2.weight", "wgrad:fc1.weight", "wgrad:fc2.weight", "out:fc2"};
    static const char *const wanted[] = {
        "opt.m:fc1.weight", "weight:fc2.weight", "weight:fc1.weight", "act:fc2",   "out:fc2",
        "act:fc1",          "agrad:fc1",         "wgrad:fc1.weight",  "agrad:fc2", "wgrad:fc2.weight"};
    enum { N = 10 };
    trace_tensor t[N];
    const uint64_t shape = 1;
    const float zero[N] = {0};
    static const char *const metadata[][2] = {{"mpsim.order", "fc2,fc1"}, {"mpsim.step", "3"}};
    trace_error e;
    for (int i = 0; i < N; i++)
        t[i] = (trace_tensor){
            .name = recorded[i], .format = mpsim_format_find("fp32"), .shape = &shape, .rank = 1, .count = 1};
    const char *path = path_of("order");
    trace_writer *w = trace_writer_safetensors(path, t, N, metadata, 2, &e);
    ck_assert(w && trace_writer_data(w, zero, sizeof zero, &e) == 0 && trace_writer_finish(w, &e) == 0);
    const told all = run(path, path, NULL);
    unlink(path);
    ck_assert_int_eq(all.n, N);
    for (int i = 0; i < N; i++)
        ck_assert_str_eq(all.names[i], wanted[i]);
}
END_TEST

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What safetensors' save_file writes: sorted by dtype, then by name. */
START_TEST(bug_20261123_sorted_names_tell_no_order)
{
    static const struct {
        const char *name, *format;
    } rows[] = {{"lm_head.weight", "fp32"},
                {"model.layers.10.mlp.weight", "fp32"},
                {"model.layers.2.input_norm.weight", "fp32"},
                {"model.norm.weight", "fp32"},
                {"model.embed_tokens.weight", "bf16"},
                {"model.layers.10.attn.weight", "bf16"},
                {"model.layers.2.mlp.weight", "bf16"}};
    static const char *const wanted[] = {"model.embed_tokens.weight",
                                         "model.layers.2.input_norm.weight",
                                         "model.layers.2.mlp.weight",
                                         "model.layers.10.attn.weight",
                                         "model.layers.10.mlp.weight",
                                         "model.norm.weight",
                                         "lm_head.weight"};
    enum { N = 7 };
    trace_tensor t[N];
    const uint64_t shape = 1;
    const unsigned char zero[4 * 4 + 3 * 2] = {0};
    trace_error e;
    for (int i = 0; i < N; i++)
        t[i] = (trace_tensor){
            .name = rows[i].name, .format = mpsim_format_find(rows[i].format), .shape = &shape, .rank = 1, .count = 1};
    const char *path = path_of("sorted");
    trace_writer *w = trace_writer_safetensors(path, t, N, NULL, 0, &e);
    ck_assert(w && trace_writer_data(w, zero, sizeof zero, &e) == 0 && trace_writer_finish(w, &e) == 0);
    const told all = run(path, path, NULL);
    unlink(path);
    ck_assert_int_eq(all.n, N);
    for (int i = 0; i < N; i++)
        ck_assert_str_eq(all.names[i], wanted[i]);
}
END_TEST

/* The modules of layers as they are called, from names in alphabetical order; what comes first there. */
START_TEST(parts_of_a_layer)
{
    /* clang-format off */
    static const char *const wanted[] = {
        "h.0.ln_1.weight", "h.0.attn.c_attn.weight", "h.0.attn.c_proj.weight", "h.0.ln_2.weight", "h.0.mlp.c_fc.weight",
        "h.0.mlp.c_proj.weight", "h.1.input_layernorm.weight", "h.1.self_attn.q_proj.weight",
        "h.1.self_attn.k_proj.weight", "h.1.self_attn.v_proj.weight", "h.1.self_attn.o_proj.weight",
        "h.1.post_attention_layernorm.weight", "h.1.mlp.gate.weight", "h.1.mlp.gate_proj.weight",
        "h.1.mlp.up_proj.weight", "h.1.mlp.down_proj.weight", "h.2.attention.self.query.weight",
        "h.2.attention.output.dense.weight", "h.2.intermediate.dense.weight", "h.2.output.dense.weight"};
    enum { N = sizeof wanted / sizeof wanted[0] };
    const char *sorted[N];
    trace_tensor t[N];
    const uint64_t shape = 1;
    const float zeros[N] = {0};
    trace_error e;
    memcpy(sorted, wanted, sizeof sorted);
    qsort(sorted, N, sizeof *sorted, by_text);
    for (int i = 0; i < N; i++)
        t[i] = (trace_tensor){.name = sorted[i], .format = mpsim_format_find("fp32"), .shape = &shape, .rank = 1,
                              .count = 1};
    const char *path = path_of("parts");
    trace_writer *w = trace_writer_safetensors(path, t, N, NULL, 0, &e);
    ck_assert(w && trace_writer_data(w, zeros, sizeof zeros, &e) == 0 && trace_writer_finish(w, &e) == 0);
    const told all = run(path, path, NULL);
    unlink(path);
    ck_assert_int_eq(all.n, N);
    for (int i = 0; i < N; i++)
        ck_assert_str_eq(all.names[i], wanted[i]);
}
END_TEST

/* ---- many tensors ---- */

enum { MANY = 3000, EACH_HAS = 8 };

static const char *save_many(const char *file, const char *prefix)
{
    static trace_tensor t[MANY];
    static char names[MANY][40];
    static float x[MANY * EACH_HAS];
    static const uint64_t shape = EACH_HAS;
    trace_error e;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "%s%d.part%d", prefix, i / 10, i);
        t[i] = (trace_tensor){.name = names[i], .format = mpsim_format_find("binary32"), .shape = &shape, .rank = 1,
                              .count = EACH_HAS};
    }
    /* clang-format on */
    for (int i = 0; i < MANY * EACH_HAS; i++)
        x[i] = (float)(uniform() - 0.5);
    const char *path = path_of(file);
    trace_writer *w = trace_writer_safetensors(path, t, MANY, NULL, 0, &e);
    ck_assert(w && trace_writer_data(w, x, sizeof x, &e) == 0 && trace_writer_finish(w, &e) == 0);
    return path;
}

static double seconds_of(const char *a, const char *b)
{
    const clock_t begin = clock();
    ck_assert_int_eq(run(a, b, NULL).n, MANY);
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* Other names and other numbers take a few times as long as equal ones; with all formats asked in all widths it was 17
 * times. */
START_TEST(bug_20261123_many_tensors_of_other_names)
{
    parallel_init(1);
    state = test_seed();
    const char *a = save_many("many-a", "a.block"), *b = save_many("many-b", "other/b");
    const double equal = fmin(seconds_of(a, a), seconds_of(a, a)), other = fmin(seconds_of(a, b), seconds_of(a, b));
    unlink(a);
    unlink(b);
    ck_assert_msg(other < 9 * equal, "%g s, %g s of equal ones", other, equal);
}
END_TEST

/* Fits by hand: e4m3 has steps of 1/8 from 1 on. */
START_TEST(fits)
{
    const double x[4] = {1.05, 1.07, 1.25, 500}, nearest[4] = {1, 1.125, 1.25, NAN}, zero[4] = {1, 1, 1.25, 448},
                 neither[4] = {1.25, 1, 1.25, 448}, mixed[4] = {1.125, 1, 1.25, NAN};
    const fit_question q = {.format = *mpsim_format_find("e4m3"), .scale = 1};
    fit f = {0};
    fit_add(&f, &q, x, nearest, 4);
    ck_assert_str_eq(fit_mode(&f), "nearest-even");
    ck_assert(f.inexact == 2 && f.exact == 1 && f.nan == 1);
    ck_assert_str_eq(fit_overflow(&f), "nan");
    f = (fit){0};
    fit_add(&f, &q, x, zero, 4);
    ck_assert_str_eq(fit_mode(&f), "toward-zero");
    ck_assert_str_eq(fit_overflow(&f), "saturated");
    f = (fit){0};
    fit_add(&f, &q, x, mixed, 4);
    ck_assert_str_eq(fit_mode(&f), "stochastic");
    f = (fit){0};
    fit_add(&f, &q, x, neither, 4);
    ck_assert(fit_mode(&f) == NULL && f.missed == 1);
}
END_TEST

int main(void)
{
    TCase *verdicts = test_case("verdicts", 60), *rest = test_case("measures and names", 20);
    tcase_add_test(verdicts, verdicts_small);
    tcase_add_test(verdicts, verdicts_large);
    tcase_add_test(verdicts, verdicts_both);
    tcase_add_loop_test(verdicts, verdicts_threads, 0, 2);
    tcase_add_test(verdicts, other_way);
    tcase_add_test(rest, measure_by_hand);
    tcase_add_test(rest, measure_merges);
    tcase_add_test(rest, tolerances);
    tcase_add_test(rest, order_of_execution);
    tcase_add_test(rest, bug_20261123_sorted_names_tell_no_order);
    tcase_add_test(rest, parts_of_a_layer);
    tcase_add_test(rest, bug_20261123_many_tensors_of_other_names);
    tcase_add_test(rest, fits);
    return test_main("diff", (TCase *const[]){verdicts, rest, NULL});
}
