/* t-chain.c -- matrix products under software models: the fast paths of chains, trees and exact
 * sums give what mpsim_dot, the scalar reference, gives, with every instruction set. */
#include "support/support.h"

#include <mpsim/mpsim.h>

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __SSE2__
#include <xmmintrin.h>
#endif

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

/* ---- operands ----------------------------------------------------------------------------- */

enum {
    BITS,    /* random bit patterns                                      */
    NORMAL,  /* around 1                                                 */
    ZEROS,   /* around 1, three in four are zeros of either sign         */
    SPREAD,  /* exponents over a range that a problem draws              */
    COARSE,  /* few bits: sums that are ties                             */
    TINY,    /* products near the smallest number of binary32            */
    HUGE_,   /* products near the largest number of binary32             */
    SPECIAL, /* around 1, a few infinities and NaNs                      */
    KINDS
};

static uint64_t encode(const mpsim_format *f, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    r.negative = MPSIM_NEGATIVE_ABS;
    return mpsim_encode_f64(f, &r, x, 0, NULL);
}

static double uniform(uint64_t *seed) /* in (-1, 1) */
{
    return (double)(int64_t)test_random(seed) * 0x1p-63;
}

static uint64_t mask_of(const mpsim_format *f)
{
    return f->bits == 64 ? UINT64_MAX : ((uint64_t)1 << f->bits) - 1;
}

static uint64_t draw(const mpsim_format *f, int kind, int range, uint64_t *seed)
{
    const uint64_t u = test_random(seed);
    switch (kind) {
    case BITS:
        return u & mask_of(f);
    case ZEROS:
        return encode(f, u % 4 ? (u & 16 ? -0.0 : 0.0) : uniform(seed));
    case SPREAD:
        return encode(f, ldexp(uniform(seed), (int)((u >> 8) % (unsigned)(range + 1)) - range / 2));
    case COARSE:
        return encode(f, ldexp((double)((int)(u % 31) - 15), (int)((u >> 8) % 14) - 7));
    case TINY:
        return encode(f, ldexp(uniform(seed), -60 - (int)(u % 24)));
    case HUGE_:
        return encode(f, ldexp(uniform(seed), 60 + (int)(u % 6)));
    case SPECIAL:
        if (u % 64 == 0)
            return (f->max_finite + 1 + u / 64 % 3) & mask_of(f);
        /* fallthrough */
    default:
        return encode(f, 2 * uniform(seed));
    }
}

/* ---- problems ----------------------------------------------------------------------------- */

enum { ROOM = 64 * 1024 };

typedef struct problem {
    mpsim_model m;
    mpsim_format fa, fb;
    size_t rows, columns, depth;
    int transposed[3], gap[3], has_c;
    uint64_t a[ROOM], b[ROOM], c[ROOM], want[ROOM]; /* row-major */
} problem;

static problem p; /* too large for the stack */

/* What has been compared, and what of it is worth a comparison. */
static struct {
    size_t elements, nan, infinite, subnormal, minus_zero;
} seen;

static void see(const mpsim_format *f, uint64_t code)
{
    const mpsim_class c = mpsim_classify(f, code);
    seen.elements++;
    seen.nan += c == MPSIM_CLASS_NAN;
    seen.infinite += c == MPSIM_CLASS_INF;
    seen.subnormal += c == MPSIM_CLASS_SUBNORMAL;
    seen.minus_zero += c == MPSIM_CLASS_ZERO && code != 0;
}

static void shape(const char *model, const mpsim_format *fa, const mpsim_format *fb, size_t rows, size_t columns,
                  size_t depth, uint64_t *seed)
{
    const uint64_t u = test_random(seed);
    ck_assert_msg(mpsim_model_parse(&p.m, model) == MPSIM_OK, "%s", model);
    p.fa = *fa;
    p.fb = *fb;
    p.rows = rows;
    p.columns = columns;
    p.depth = depth;
    for (int i = 0; i < 3; i++) {
        p.transposed[i] = u >> i & 1;
        p.gap[i] = u >> (8 + i) & 1 ? (int)(u >> (16 + 2 * i) & 3) : 0;
    }
    /* mpsim_dot takes a code for c: in a format without zero it cannot say what no c is */
    p.has_c = (u >> 32) % 3 != 0 || p.m.result.format.zero == MPSIM_ZERO_NONE;
    memset(p.c, 0, rows * columns * sizeof p.c[0]);
}

static void fill(int kind, uint64_t *seed)
{
    const int range = (int)(test_random(seed) % 140);
    for (size_t i = 0; i < p.rows * p.depth; i++)
        p.a[i] = draw(&p.fa, kind, range, seed);
    for (size_t i = 0; i < p.depth * p.columns; i++)
        p.b[i] = draw(&p.fb, kind, range, seed);
    for (size_t i = 0; p.has_c && i < p.rows * p.columns; i++)
        p.c[i] = draw(&p.m.result.format, test_random(seed) % 4 ? kind : ZEROS, range, seed);
}

static void solve(void)
{
    const size_t wa = mpsim_format_code_bytes(&p.fa), wb = mpsim_format_code_bytes(&p.fb);
    unsigned char *row = malloc(8 * p.depth + 1), *column = malloc(8 * p.depth + 1);
    ck_assert(row && column);
    for (size_t i = 0; i < p.rows; i++)
        for (size_t j = 0; j < p.columns; j++) {
            uint64_t *d = &p.want[i * p.columns + j];
            for (size_t k = 0; k < p.depth; k++) {
                code_store(row + k * wa, wa, p.a[i * p.depth + k]);
                code_store(column + k * wb, wb, p.b[k * p.columns + j]);
            }
            ck_assert(mpsim_dot(&p.m, &p.fa, row, &p.fb, column, p.depth, p.c[i * p.columns + j], NULL, d) == MPSIM_OK);
            see(&p.m.result.format, *d);
        }
    free(row);
    free(column);
}

/* A matrix in memory, at an odd address, laid out as place `which` of the problem says. */
static mpsim_matrix lay_out(int which, const mpsim_format *f, const uint64_t *codes, size_t rows, size_t columns,
                            unsigned char **memory)
{
    const int t = p.transposed[which];
    const size_t stride = (t ? rows : columns) + (size_t)p.gap[which], lines = t ? columns : rows;
    const size_t width = mpsim_format_code_bytes(f), bytes = lines * stride * width + 1;
    *memory = malloc(bytes);
    ck_assert(*memory != NULL);
    memset(*memory, 0xff, bytes); /* NaNs in the gaps */
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            code_store(*memory + 1 + (t ? j * stride + i : i * stride + j) * width, width, codes[i * columns + j]);
    return (mpsim_matrix){f, *memory + 1, stride, t};
}

static void check_once(const char *with)
{
    static const char text[] = "%s, %s%s x %s%s, %zu x %zu x %zu, %s, %s%s: element %zu, %zu is "
                               "%llx, the dot product %llx";
    const mpsim_format *f = &p.m.result.format;
    const size_t width = mpsim_format_code_bytes(f), stride = p.columns + (size_t)p.gap[0];
    unsigned char *a, *b, *c, *d = malloc(p.rows * stride * width + 1);
    ck_assert(d != NULL);
    memset(d, 0xa5, p.rows * stride * width + 1);
    const mpsim_matrix ma = lay_out(0, &p.fa, p.a, p.rows, p.depth, &a);
    const mpsim_matrix mb = lay_out(1, &p.fb, p.b, p.depth, p.columns, &b);
    const mpsim_matrix mc = lay_out(2, f, p.c, p.rows, p.columns, &c);
    ck_assert(mpsim_gemm(&p.m, p.rows, p.columns, p.depth, &ma, &mb, p.has_c ? &mc : NULL, d + 1, stride, NULL, NULL) ==
              MPSIM_OK);
    for (size_t i = 0; i < p.rows; i++)
        for (size_t j = 0; j < stride; j++) {
            const unsigned char *at = d + 1 + (i * stride + j) * width;
            if (j >= p.columns) {
                ck_assert(*at == 0xa5);
                continue;
            }
            const uint64_t got = code_load(at, width), want = p.want[i * p.columns + j];
            ck_assert_msg(got == want, text, p.m.name, p.fa.name, p.transposed[0] ? "^T" : "", p.fb.name,
                          p.transposed[1] ? "^T" : "", p.rows, p.columns, p.depth, p.has_c ? "c" : "no c",
                          mpsim_isa_active(), with, i, j, (unsigned long long)got, (unsigned long long)want);
        }
    free(a);
    free(b);
    free(c);
    free(d);
}

static void check(void)
{
    const char *before = mpsim_isa_active();
    solve();
    for (size_t i = 0; mpsim_isa_at(i); i++)
        if (mpsim_isa_use(mpsim_isa_at(i)) == MPSIM_OK)
            check_once("");
    ck_assert(mpsim_isa_use(before) == MPSIM_OK);
}

static mpsim_format format(const char *name)
{
    mpsim_format f;
    ck_assert_msg(mpsim_format_parse(&f, name) == MPSIM_OK, "%s", name);
    return f;
}

/* ---- random problems ---------------------------------------------------------------------- */

/* clang-format off */
static const char *const formats[] = {
    "binary32", "fp16", "bf16", "tf32", "e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "e3m2", "e2m1",
    "e8m0", "binary8p3se", "binary8p3ue", "e8m13", "e4m4:unsigned", "e5m9:ieee:bias=127",
    "e7m5:ieee:bias=140", "e8m23:ieee:bias=100", "e8m7:fn", "binary64"};
/* clang-format on */

static const char *const models[] = {
    "fma", "sequential", "pairwise", "exact", "fma:chunk=16", "sequential:chunk=7", "pairwise:chunk=9", "exact:fp16",
    "exact:bf16", "exact:e4m3", "exact:binary64", "exact:e8m0", "exact:chunk=5", "exact:result-round=down",
    "exact:result-round=up", "exact:result-round=toward-zero", "exact:e8m23:finite",
    /* every place in lanes: one kind of numbers, several */
    "chunked", "chunked:chunk=5", "sequential:fp16", "sequential:bf16", "sequential:e4m3", "sequential:e5m2",
    "sequential:e4m3fnuz", "sequential:tf32", "sequential:e3m2", "pairwise:fp16", "pairwise:bf16", "pairwise:e4m3",
    "pairwise:tf32:chunk=7", "fma:fp16", "fma:bf16", "fma:e4m3", "fma:tf32:chunk=4", "fma:e5m24", "sequential:e8m24",
    "sequential:product=bf16", "sequential:acc=bf16", "pairwise:acc=fp16", "fma:acc=fp16",
    "sequential:fp16:chunk=6:outer=binary32", "pairwise:bf16:chunk=6:outer=e6m9", "fma:bf16:chunk=9:outer=fp16",
    "sequential:fp16:result=binary32", "sequential:e5m40",
    /* which no fast path may take */
    "fma:round=down", "fma:round=toward-zero", "sequential:product=bf16", "sequential:product-round=up",
    "pairwise:round=nearest-away", "fma:chunk=4:outer-round=down", "fma:result=fp16", "fma:e8m23:fn",
    "sequential:binary64"};

START_TEST(every_model_and_format)
{
    uint64_t seed = test_seed() + 31;
    for (size_t i = 0; i < test_scaled(COUNT(models) * COUNT(formats) * KINDS / 2); i++) {
        const uint64_t u = test_random(&seed);
        const mpsim_format fa = format(formats[i / 2 % COUNT(formats)]);
        const mpsim_format fb = u & 1 ? fa : format(formats[(u >> 8) % COUNT(formats)]);
        const char *model = models[(u >> 16) % COUNT(models)];
        shape(model, &fa, &fb, 1 + (u >> 32) % 11, 1 + (u >> 40) % 20, (u >> 48) % 50, &seed);
        fill((int)((u >> 24) % KINDS), &seed);
        check();
    }
}
END_TEST

/* The models that training uses, in every kind of numbers. */
START_TEST(every_kind)
{
    static const char *const main_models[] = {"fma", "sequential", "pairwise", "exact"};
    uint64_t seed = test_seed() + 32;
    for (size_t i = 0; i < COUNT(main_models); i++)
        for (size_t k = 0; k < 11; k++)
            for (int kind = 0; kind < KINDS; kind++) {
                const mpsim_format f = format(formats[k]);
                shape(main_models[i], &f, &f, 1 + test_random(&seed) % 10, 1 + test_random(&seed) % 18,
                      1 + test_random(&seed) % 70, &seed);
                fill(kind, &seed);
                check();
            }
}
END_TEST

/* Products of numbers with the exponents of binary32 that are subnormal there: 16384 pairs of significands each. */
START_TEST(products_below_binary32)
{
    enum { SIGNIFICANDS = 128, BIAS = 127 };
    static const char *const of[] = {"bf16", "tf32"};
    uint64_t seed = test_seed() + 40;
    for (size_t t = 0; t < COUNT(of); t++)
        for (uint64_t e = 58; e <= 68; e += 2) {
            const mpsim_format f = format(of[t]);
            char model[64];
            snprintf(model, sizeof model, "sequential:%s", of[t]);
            shape(model, &f, &f, SIGNIFICANDS, SIGNIFICANDS, 1, &seed);
            p.has_c = 0;
            for (uint64_t i = 0; i < SIGNIFICANDS; i++) {
                p.a[i] = (uint64_t)(BIAS - 70) << f.mbits | i << (f.mbits - 7);
                p.b[i] = (uint64_t)(BIAS - e) << f.mbits | i << (f.mbits - 7) | t;
            }
            check();
        }
}
END_TEST

/* All products of two numbers and all sums of two in small formats, and, with products of fused
 * multiply-adds, sums of three. */
START_TEST(all_pairs)
{
    static const char *const small[] = {"e4m3", "e5m2", "e4m3fnuz", "e3m2", "e2m1"};
    static const char *const kinds[] = {"sequential", "fma"};
    uint64_t seed = test_seed() + 39;
    for (size_t i = 0; i < COUNT(small) * COUNT(kinds); i++) {
        const mpsim_format f = format(small[i % COUNT(small)]);
        const size_t n = (size_t)1 << f.bits;
        char model[64];
        snprintf(model, sizeof model, "%s:%s", kinds[i / COUNT(small)], f.name);
        for (int sums = 0; sums < 2; sums++) {
            shape(model, &f, &f, n, n, 1, &seed);
            p.has_c = sums || i / COUNT(small) == 1;
            for (size_t j = 0; j < n; j++) {
                p.a[j] = j;
                p.b[j] = sums ? encode(&f, 1) : j;
            }
            for (size_t j = 0; p.has_c && j < n * n; j++)
                p.c[j] = sums ? j % n : test_random(&seed) % n;
            check();
        }
    }
}
END_TEST

/* Random sums of numbers that are far apart, ties among them, in every format that has lanes. */
START_TEST(near_ties_of_formats)
{
    static const char *const to[] = {"fp16", "bf16", "e6m9", "tf32", "e5m10:bias=20", "e8m14", "e8m24", "e8m23:fn"};
    static const char *const kinds[] = {"fma", "sequential", "pairwise"};
    uint64_t seed = test_seed() + 40;
    for (size_t i = 0; i < COUNT(to) * COUNT(kinds) * test_scaled(4); i++) {
        char model[64];
        mpsim_format r;
        snprintf(model, sizeof model, "%s:%s", kinds[i % COUNT(kinds)], to[i / COUNT(kinds) % COUNT(to)]);
        const mpsim_format f = format(i % 5 ? "binary32" : "bf16");
        shape(model, &f, &f, 9, 17, 1 + i % 3, &seed);
        p.has_c = 1;
        r = p.m.result.format;
        const int far = (int)(test_random(&seed) % 40);
        /* c: a number, the products near half a unit of its last bit, or far below */
        for (size_t k = 0; k < p.rows * p.depth; k++)
            p.a[k] = encode(&f, ldexp(1, (int)(test_random(&seed) % 3) - 1) +
                                    ldexp(uniform(&seed), -(int)(test_random(&seed) % 26)));
        for (size_t k = 0; k < p.depth * p.columns; k++)
            p.b[k] = encode(
                &f, ldexp(test_random(&seed) & 1 ? 1 : -1, -(int)r.mbits - 1 - (test_random(&seed) & 1 ? far : 0)));
        for (size_t j = 0; j < p.rows * p.columns; j++)
            p.c[j] = encode(&r, uniform(&seed) + (double)(i & 1));
        check();
    }
}
END_TEST

/* Every number of columns around a panel, of rows around what is done at once, and of products. */
START_TEST(tails)
{
    static const char *const some[] = {"fma",         "sequential",      "pairwise", "exact",
                                       "fma:chunk=3", "chunked:chunk=3", "fma:bf16", "pairwise:fp16"};
    const mpsim_format f = format("binary32"), h = format("fp16");
    uint64_t seed = test_seed() + 33;
    for (size_t columns = 1; columns <= 18; columns++)
        for (size_t rows = 1; rows <= 10; rows += 1 + columns % 2) {
            if (!test_in_part(rows + columns, 1))
                continue;
            shape(some[(rows + columns) % COUNT(some)], rows % 2 ? &f : &h, columns % 3 ? &f : &h, rows, columns,
                  (rows * columns) % 19, &seed);
            fill(NORMAL, &seed);
            check();
        }
    for (size_t i = 0; i < COUNT(some); i++) {
        for (size_t depth = 0; depth <= 40; depth++) {
            if (depth > 9 && !test_in_part(depth + i, 1))
                continue;
            shape(some[i], &f, &f, 3, 5, depth, &seed);
            fill(COARSE, &seed);
            check();
        }
        if (!test_in_part(i, 1))
            continue;
        shape(some[i], &f, &h, 71, 37, 300, &seed); /* more than a task in every direction */
        fill(NORMAL, &seed);
        check();
    }
}
END_TEST

/* Panels beside each other and those that are left over, rows that are done at once and those that are not, chunks with a
 * rest, in every kind of numbers; instructions, too. */
START_TEST(panels)
{
    static const char *const all[][2] = {{"fma", "binary32"},
                                         {"sequential", "binary32"},
                                         {"sequential", "fp16"},
                                         {"sequential", "bf16"},
                                         {"pairwise", "binary32"},
                                         {"fma:chunk=7", "bf16"},
                                         {"sequential:chunk=32", "binary32"},
                                         {"pairwise:chunk=9", "fp16"},
                                         {"avx512-bf16-fp32", "bf16"},
                                         {"amx-bf16-fp32", "bf16"},
                                         {"amx-fp16-fp32", "fp16"},
                                         {"cdna3-fp64", "binary64"}};
    static const size_t rows[] = {1, 4, 8, 9, 19}, columns[] = {16, 17, 32, 47, 49}, depths[] = {1, 2, 31, 33, 66};
    uint64_t seed = test_seed() + 41;
    for (size_t i = 0; i < COUNT(all) * KINDS; i++) {
        const mpsim_format f = format(all[i / KINDS][1]);
        const uint64_t u = test_random(&seed);
        shape(all[i / KINDS][0], &f, &f, rows[u % COUNT(rows)], columns[(u >> 8) % COUNT(columns)],
              depths[(u >> 16) % COUNT(depths)], &seed);
        fill((int)(i % KINDS), &seed);
        check();
    }
}
END_TEST

/* ---- corners of binary32 ------------------------------------------------------------------ */

/* A sum that is a tie of binary32 but for a part far below the 53 bits of binary64, normal and
 * subnormal, of all signs; and true ties. */
START_TEST(near_ties)
{
    const mpsim_format f = format("binary32");
    uint64_t seed = test_seed() + 34;
    for (size_t n = 0; n < test_scaled(40); n++) {
        shape("fma", &f, &f, 9, 17, 1, &seed);
        p.has_c = 1;
        const int low = n % 4 == 0;
        /* (1 - 2^-23) (1 + 2^-23) = 1 - 2^-46; (1 + 2^-23)^2 = 1 + 2^-22 + 2^-46 */
        for (size_t i = 0; i < p.rows; i++)
            p.a[i] = encode(&f, ldexp(i % 3 == 0 ? 1 : i % 3 == 1 ? 1 - 0x1p-23 : 1 + 0x1p-23, low ? -100 : 10));
        for (size_t j = 0; j < p.columns; j++)
            p.b[j] = encode(&f, ldexp(j % 2 ? 1 + 0x1p-23 : 1, low ? -50 : -34) * (j % 4 > 1 ? -1 : 1));
        /* c has its last bit at 2^-23 (at 2^-149), the product is about half of that */
        for (size_t i = 0; i < p.rows * p.columns; i++) {
            const double c = (double)(0x800000 + (test_random(&seed) & 0x7fffff)) * 0x1p-23;
            const double s = (double)(test_random(&seed) & 0x7fffff) * 0x1p-149;
            p.c[i] = encode(&f, (low ? s : c) * (test_random(&seed) & 1 ? -1 : 1));
        }
        check();
    }
}
END_TEST

/* One element: a and b binary32 numbers, c too; wanted from the definition of IEEE 754. */
static void one_row(const char *model, size_t n, const double *a, const double *b, double c, double want)
{
    const mpsim_format f = format("binary32");
    uint64_t seed = 1;
    shape(model, &f, &f, 1, 1, n, &seed);
    p.has_c = 1;
    for (size_t k = 0; k < n; k++) {
        p.a[k] = encode(&f, a[k]);
        p.b[k] = encode(&f, b[k]);
    }
    p.c[0] = isinf(c) ? 0x7f800000u | (uint64_t)(c < 0) << 31 : encode(&f, c);
    check();
    const double got = mpsim_decode(&f, p.want[0]);
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
END_TEST

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
        const int product = i == 1 || i == 2;
        one_row(all[i], 1, down, y + 2, 0.0, product ? 0.0 : -0.0);
    }
    one_row("exact:result-round=down", 2, (const double[]){1, -1}, (const double[]){1, 1}, 0.0, -0.0);
    one_row("exact:result-round=down", 1, x + 1, y, 0.0, -0.0);
    one_row("exact:result-round=down", 1, x, y, 0.0, 0.0);
}
END_TEST

/* What a NaN becomes: every choice, NaNs that come in and NaNs that arise. */
START_TEST(choices)
{
    const mpsim_format f = format("binary32");
    uint64_t seed = test_seed() + 35;
    for (int i = 0; i < 480; i++) {
        shape(i % 3 == 0 ? "fma" : i % 3 == 1 ? "sequential" : "exact", &f, &f, 3, 18, 6, &seed);
        const uint8_t nan = (uint8_t)(test_random(&seed) % (MPSIM_NANS_MINUS_ONES + 1));
        mpsim_rounded *const places[] = {&p.m.accumulator, &p.m.product, &p.m.result};
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
        fill(i % 4 == 0 ? SPECIAL : i % 4 == 1 ? HUGE_ : i % 4 == 2 ? TINY : BITS, &seed);
        check();
    }
}
END_TEST

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
        const mpsim_format fa = format(operands[n % COUNT(operands)]);
        const mpsim_format fb = format(operands[n / 5 % COUNT(operands)]);
        shape(to[n % COUNT(to)], &fa, &fb, 1 + n % 9, 1 + n % (n % 4 ? 19 : 71), 2 + test_random(&seed) % 140, &seed);
        fill(NORMAL, &seed);
        for (size_t i = 0; i < p.rows; i++) {
            const int range = ranges[test_random(&seed) % COUNT(ranges)];
            for (size_t k = 0; k < p.depth; k++)
                p.a[i * p.depth + k] = draw(&fa, i % 5 ? SPREAD : COARSE, range, &seed);
        }
        for (size_t j = 0; j < p.columns; j++) {
            const int range = ranges[test_random(&seed) % COUNT(ranges)];
            for (size_t k = 0; k < p.depth; k++)
                p.b[k * p.columns + j] = draw(&fb, j % 5 ? SPREAD : COARSE, range, &seed);
            if (j % 3 == 0) /* opposite products: a row of pairs against +-x */
                for (size_t k = 1; k < p.depth; k += 2)
                    p.b[k * p.columns + j] = p.b[(k - 1) * p.columns + j] ^ (uint64_t)1 << (fb.bits - 1);
        }
        for (size_t i = 0; i < p.rows; i += 2)
            for (size_t k = 1; k + 1 < p.depth; k += 2)
                p.a[i * p.depth + k] = p.a[i * p.depth + k - 1];
        check();
    }
    /* lines as wide as they may be, full of large products, and one unit: 54 to 56 bits in all,
     * which binary64 does not hold, 126 and more, which 128 bits hold only just */
    for (size_t n = 0; n < 60; n++) {
        const mpsim_format f = format("binary32");
        const int range = n % 2 ? 37 + (int)(n / 2 % 3) : 0;
        shape("exact:binary64", &f, &f, 2, 17, 1 + test_random(&seed) % 270, &seed);
        for (size_t i = 0; i < p.rows * p.depth; i++)
            p.a[i] = encode(&f, ldexp(2 - fabs(uniform(&seed)) / 64, i % p.depth == 0 ? 0 : range));
        for (size_t i = 0; i < p.depth * p.columns; i++)
            p.b[i] = encode(&f, ldexp(2 - fabs(uniform(&seed)) / 64, i / p.columns == p.depth - 1 ? 0 : range));
        p.has_c = n % 3 == 0;
        for (size_t i = 0; p.has_c && i < p.rows * p.columns; i++)
            p.c[i] = encode(&p.m.result.format, ldexp(uniform(&seed), (int)n * 5 - 150));
        check();
    }
    /* lines as wide as halves take, and wider, whose lower halves have one sign: large products and then their opposites,
     * but for the last, which show every bit that was lost */
    for (size_t n = 0; n < 36; n++) {
        const mpsim_format f = format("binary32");
        const int range = 14 + (int)(n % 12);
        shape("exact:binary64", &f, &f, 2, 17, n % 3 ? 256 : 64, &seed);
        p.has_c = 0;
        for (size_t i = 0; i < p.rows * p.depth; i++) {
            const size_t k = i % p.depth, mirror = i - k + p.depth - 1 - k;
            const uint64_t u = test_random(&seed), m = 0x800001 | (u & 0x7fffff);
            const int e = k % 2 ? (int)(u >> 32 & 3) : range;
            p.a[i] = k >= p.depth / 2 ? p.a[mirror] : encode(&f, ldexp(k ? (double)m : 0x800001, (k ? e : 0) - 23));
        }
        for (size_t i = 0; i < p.depth * p.columns; i++) {
            const size_t k = i / p.columns, mirror = (p.depth - 1 - k) * p.columns + i % p.columns;
            p.b[i] = k < p.depth / 2 ? encode(&f, ldexp(0xffffff - (double)(test_random(&seed) & 0xff), -23))
                                     : p.b[mirror] ^ 0x80000000 ^ (k == p.depth - 1);
        }
        check();
    }
    /* thousands of the largest products of slices, of lines of 42 to 63 bits, then their opposites
     * but for the last */
    for (size_t n = 0; n < 8; n++) {
        const mpsim_format f = format("binary32");
        const int top = -2 + (int)(n % 4) * 7; /* 24 bits below 1 belong to the line */
        shape("exact:binary64", &f, &f, 1 + n / 4, 3, 5201 + n * 100, &seed);
        for (size_t i = 0; i < p.rows * p.depth; i++)
            p.a[i] = encode(&f, i % p.depth ? ldexp(0x1fffff, n / 2 % 2 ? top : -2) : 1);
        for (size_t i = 0; i < p.depth * p.columns; i++) {
            const size_t k = i / p.columns;
            const double x = ldexp(k % 7 ? 0x1fffff : 0x1ffffd, top);
            p.b[i] = encode(&f, k == 0 ? 1 : k <= p.depth / 2 ? x : -x);
        }
        p.has_c = 0;
        check();
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
END_TEST

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
    const mpsim_format f = format("e4m3"), g = format("e5m2");
    uint64_t seed = test_seed() + 38;
    for (size_t i = 0; i < test_scaled(120); i++) {
        shape(all[i % COUNT(all)], i % 5 ? &f : &g, i % 7 ? &f : &g, 3, 18, 40, &seed);
        p.has_c = i % 4 != 0;
        fill(i % 3 ? (int)(i % KINDS) : COARSE, &seed);
        for (size_t j = 0; p.has_c && i % 2 && j < p.rows * p.columns; j++)
            p.c[j] = encode(&p.m.result.format, ldexp(uniform(&seed), (int)(i % 100) - 20));
        check();
    }
}
END_TEST

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
    static const int modes[] = {
        FE_TONEAREST,
#ifdef FE_DOWNWARD
        FE_DOWNWARD,
#endif
#ifdef FE_UPWARD
        FE_UPWARD,
#endif
#ifdef FE_TOWARDZERO
        FE_TOWARDZERO,
#endif
    };
    uint64_t seed = test_seed() + 37;
    enum { TIMES = KINDS + 1 };
    for (size_t i = 0; i < COUNT(all) * TIMES; i++) {
        const int fused = i / TIMES > 3, empty = i % TIMES == KINDS; /* c alone, zeros */
        const mpsim_format f = format(i / TIMES == 4 ? "fp16" : fused ? "e4m3" : formats[i % 5]);
        const char *before = mpsim_isa_active();
        shape(all[i / TIMES], &f, &f, 5, 18, empty ? 0 : 21, &seed);
        p.has_c |= empty;
        fill(empty ? ZEROS : (int)(i % TIMES), &seed);
        solve();
        for (size_t n = 0; mpsim_isa_at(n); n++) {
            if (mpsim_isa_use(mpsim_isa_at(n)) != MPSIM_OK)
                continue;
            for (size_t k = 0; k < COUNT(modes); k++) {
                ck_assert(fesetround(modes[k]) == 0);
                check_once(", another rounding mode");
                fesetround(FE_TONEAREST);
            }
#if defined __SSE2__
            const unsigned control = _mm_getcsr();
            for (unsigned k = 0; k < 2; k++) {
                _mm_setcsr(control | (k ? 0x8000 : 0x0040)); /* flush to zero; denormals are zero */
                check_once(", flushing");
                _mm_setcsr(control);
            }
#endif
        }
        ck_assert(mpsim_isa_use(before) == MPSIM_OK);
    }
}
END_TEST

/* After each test. */
static void report(void)
{
    printf("# %zu dot products: %zu NaN, %zu infinite, %zu subnormal, %zu -0\n", seen.elements, seen.nan, seen.infinite,
           seen.subnormal, seen.minus_zero);
    fflush(stdout);
}

int main(void)
{
    TCase *t = test_case("chain", 120);
    tcase_add_checked_fixture(t, NULL, report);
    tcase_add_test(t, every_model_and_format);
    tcase_add_test(t, every_kind);
    tcase_add_test(t, all_pairs);
    tcase_add_test(t, products_below_binary32);
    tcase_add_test(t, near_ties_of_formats);
    tcase_add_test(t, tails);
    tcase_add_test(t, panels);
    tcase_add_test(t, near_ties);
    tcase_add_test(t, overflow_on_the_way);
    tcase_add_test(t, signed_zeros);
    tcase_add_test(t, choices);
    tcase_add_test(t, exact_ranges);
    tcase_add_test(t, chunks);
    tcase_add_test(t, environment);
    TCase *const cases[] = {t, NULL};
    return test_main("chain", cases);
}
