/* t-onednn.c -- products of bf16 and fp16 matrices as torch gave them on CPUs with AVX512-BF16, AVX512-FP16 and AMX
 * (data/vectors/onednn): those of two matrices as mpsim/torchmm.h computes them, those with a vector by the models that
 * the README of the vectors names. */
#include "sim/verify/kinds.h"
#include "support/support.h"

#include <mpsim/dot.h>
#include <mpsim/torchmm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, DONE = 200 };

typedef struct product {
    const mpsim_format *format;
    char call[20];
    size_t m, n, k;
    unsigned threads;
    uint64_t digest;
    uint16_t *a, *b; /* m x k and k x n codes */
} product;

/* From 2^-3 to 2^3, of both signs. */
static uint16_t code_of(const mpsim_format *f, uint64_t w)
{
    const unsigned fraction = (unsigned)f->mbits, low = fraction == 7 ? 124 : 12;
    return (uint16_t)((w & (0x8000 | ((1u << fraction) - 1))) | (low + (w >> 20) % 6) << fraction);
}

static size_t divisor(size_t a, size_t b)
{
    return b ? divisor(b, a % b) : a;
}

/* See record_onednn.py. */
static void make_operands(product *p)
{
    const size_t m = p->m, n = p->n, k = p->k, half = k / 2;
    uint64_t state = (uint64_t)m << 40 | (uint64_t)n << 20 | k;
    uint16_t *a = malloc(m * k * sizeof *a), *b = malloc(k * n * sizeof *b);
    size_t step = 7;
    ck_assert(a && b);
    for (size_t i = 0; i < m * k; i++)
        a[i] = code_of(p->format, verify_kinds_word(&state));
    for (size_t i = 0; i < k * n; i++)
        b[i] = code_of(p->format, verify_kinds_word(&state));
    for (size_t i = 0; i < half; i++) {
        for (size_t r = 0; r < m; r++)
            a[r * k + half + i] = a[r * k + i];
        for (size_t c = 0; c < n; c++)
            b[(half + i) * n + c] = b[i * n + c] ^ 0x8000;
    }
    while (divisor(step, k) != 1)
        step += 2;
    p->a = malloc(m * k * sizeof *a);
    p->b = malloc(k * n * sizeof *b);
    ck_assert(p->a && p->b);
    for (size_t i = 0; i < k; i++) {
        for (size_t r = 0; r < m; r++)
            p->a[r * k + i] = a[r * k + i * step % k];
        memcpy(p->b + i * n, b + i * step % k * n, n * sizeof *b);
    }
    free(a);
    free(b);
}

/* A product with a vector whose matrix lies by its rows of products: 16 sums, of pairs (bf16) or of single products
 * (fp16), over all of them, that are added by halves down to four and then to neighbours. With the operands in this order it is
 * order=lanes. */
static void put_in_lanes(product *p)
{
    static const size_t lane[LANES] = {0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15};
    const size_t group = p->format->mbits == 7 ? 2 : 1, step = group * LANES;
    const size_t k = p->k, whole = (k + step - 1) / step * step;
    uint16_t *a = calloc(p->m * whole, sizeof *a), *b = calloc(whole * p->n, sizeof *b);
    ck_assert(a && b);
    for (size_t i = 0; i < whole; i++) {
        const size_t second = i % step < LANES; /* of a pair, which comes first */
        const size_t from = i / step * step + group * lane[i % LANES] + (group == 2 ? second : 0);
        for (size_t r = 0; from < k && r < p->m; r++)
            a[r * whole + i] = p->a[r * k + from];
        if (from < k)
            memcpy(b + i * p->n, p->b + from * p->n, p->n * sizeof *b);
    }
    free(p->a);
    free(p->b);
    p->a = a;
    p->b = b;
    p->k = whole;
}

/* The model of a product with a vector. */
static void choose(char model[96], product *p)
{
    if (p->n == 1 || strcmp(p->call, "linear") == 0) {
        put_in_lanes(p);
        snprintf(model, 96, "%s:order=lanes:L=16:chunk=%zu:result=%s",
                 p->format->mbits == 7 ? "avx512-bf16-fp32" : "fma", p->k, p->format->name);
    } else {
        snprintf(model, 96, "fma:result=%s", p->format->name);
    }
}

static uint64_t digest_of(const uint16_t *codes, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        h = (h ^ codes[i]) * 0x100000001b3;
    return h;
}

static uint64_t product_digest(const product *p, const char *model, uint16_t *d)
{
    mpsim_model m;
    const mpsim_format *f = p->format;
    const mpsim_matrix a = {f, p->a, p->k, 0}, b = {f, p->b, p->n, 0};
    ck_assert_msg(mpsim_model_parse(&m, model) == MPSIM_OK, "%s", model);
    ck_assert(mpsim_gemm(&m, p->m, p->n, p->k, &a, &b, NULL, d, p->n, NULL, NULL) == MPSIM_OK);
    return digest_of(d, p->m * p->n);
}

static uint64_t matrices_digest(const product *p, const char *name, uint16_t *d)
{
    mpsim_torch_mm x;
    const mpsim_matrix a = {p->format, p->a, p->k, 0}, b = {p->format, p->b, p->n, 0};
    ck_assert_msg(mpsim_torch_mm_parse(&x, name) == MPSIM_OK, "%s", name);
    ck_assert_msg(mpsim_torch_mm_run(&x, p->m, p->n, p->k, &a, &b, d, NULL) == MPSIM_OK, "%s", name);
    return digest_of(d, p->m * p->n);
}

/* What mpsim_torch_mm_run is told: that many threads, and how the operands lie. */
static void name_product(char name[96], const product *p, int amx)
{
    const int left = strcmp(p->call, "left-transposed") == 0, both = strcmp(p->call, "both-transposed") == 0;
    snprintf(name, 96, "torch-mm:%s:threads=%u%s%s", amx ? "amx" : "avx512", p->threads,
             left || both ? ":left-transposed" : "", both || strcmp(p->call, "linear") == 0 ? ":right-transposed" : "");
}

/* Products that were computed: others of the same operands and name have the same digest. */
static struct done {
    const mpsim_format *format;
    size_t m, n, k;
    char name[96];
    uint64_t digest;
} done[DONE];
static size_t done_count;

static const struct done *find_done(const product *p, const char *name)
{
    for (size_t i = 0; i < done_count; i++)
        if (done[i].format == p->format && done[i].m == p->m && done[i].n == p->n && done[i].k == p->k &&
            strcmp(done[i].name, name) == 0)
            return &done[i];
    return NULL;
}

static size_t cut; /* products with AMX that are told from those of one chain */

static void check_product(product *p, int amx, const char *line)
{
    char name[96];
    const int vector = p->m == 1 || p->n == 1;
    name_product(name, p, amx);
    const struct done *before = vector ? NULL : find_done(p, name);
    if (before) {
        ck_assert_msg(before->digest == p->digest, "%s gives another digest than recorded: %s", name, line);
        return;
    }
    if (!vector && done_count < DONE) {
        done[done_count] = (struct done){.format = p->format, .m = p->m, .n = p->n, .k = p->k, .digest = p->digest};
        memcpy(done[done_count++].name, name, sizeof name);
    }
    uint16_t *d = malloc(p->m * p->n * sizeof *d);
    ck_assert(d != NULL);
    make_operands(p);
    if (vector)
        choose(name, p);
    const uint64_t digest = vector ? product_digest(p, name, d) : matrices_digest(p, name, d);
    ck_assert_msg(digest == p->digest, "%s gives %04x %04x ..., recorded %s", name, d[0], d[1], line);
    /* orders that are near it are told apart; but at K = 1024, whose results in bf16 are
     * also those of single products */
    if (!vector && !amx && p->k >= 600 && p->format->mbits == 7)
        ck_assert(product_digest(p, "avx512-bf16-fp32:result=bf16", d) != p->digest &&
                  product_digest(p, "avx512-bf16-fp32:chunk=256:result=bf16", d) != p->digest &&
                  (p->k == 1024 || product_digest(p, "fma:chunk=512:result=bf16", d) != p->digest));
    static const char *const others[] = {"torch-mm:avx512", "torch-mm:amx:chunk=64:tiles=32"};
    for (size_t i = 0; !vector && amx && p->k >= 600 && p->m * p->n > 500 && i < 2; i++)
        ck_assert_msg(matrices_digest(p, others[i], d) != p->digest, "%s gives the same as %s: %s", others[i], name,
                      line);
    if (!vector && amx && p->k > 254)
        cut += matrices_digest(p, "torch-mm:amx:chunk=0:tiles=32", d) != p->digest;
    free(d);
    free(p->a);
    free(p->b);
}

static const struct file {
    const char *path, *format;
    int amx;
    unsigned turns, least; /* of products that are cut */
} files[] = {
    {"data/vectors/onednn/amd-zen5.txt", "bf16", 0, 4, 0},
    {"data/vectors/onednn/intel-fp16.txt", "fp16", 0, 4, 0},
    {"data/vectors/onednn/intel-amx.txt", "bf16", 1, 4, 0},
    {"data/vectors/onednn/intel-amx-cut.txt", "bf16", 1, 12, 0},
    {"data/vectors/onednn/intel-amx-rule.txt", "bf16", 1, 1, 8},
};
enum { FILES = sizeof files / sizeof files[0] };

CASE("onednn", 20);

TESTS(as_recorded, FILES)
{
    const struct file *from = &files[_i];
    char line[200];
    size_t n = 0;
    FILE *file = fopen(test_source_path(from->path), "r");
    ck_assert(file && fgets(line, sizeof line, file) && strcmp(line, "mpsim-onednn/1\n") == 0);
    while (fgets(line, sizeof line, file)) {
        product p = {.format = mpsim_format_find(from->format)};
        unsigned long long digest;
        if (line[0] == '#')
            continue;
        ck_assert(sscanf(line, "%19s %u %zu %zu %zu %llx", p.call, &p.threads, &p.m, &p.n, &p.k, &digest) == 6);
        p.digest = digest;
        n++;
        if (p.k < 400 || test_in_part(n, from->turns))
            check_product(&p, from->amx, line);
    }
    fclose(file);
    ck_assert_uint_gt(n, 100);
    ck_assert_uint_ge(cut, from->least);
}

/* Lengths that are said, found by trying all (find_cuts.py), and a plan of strips of columns: what was recorded. */
TEST(said)
{
    static const struct {
        const char *call, *words;
        unsigned threads;
        size_t m, n, k;
    } cases[] = {
        {"mm", "amx:chunk=256:tiles=32", 1, 48, 64, 500},
        {"linear", "amx:chunk=384:tiles=equal", 2, 64, 65, 760},
        {"mm", "amx:chunk=0:tiles=equal", 1, 64, 65, 760},
        {"mm", "amx:part=640:chunk=320:tiles=equal", 2, 33, 64, 1270},
        {"linear", "amx:part=512:chunk=256:tiles=equal", 4, 48, 64, 2010},
        {"left-transposed", "amx:part=2976:chunk=1504:tiles=32", 1, 200, 8, 3000},
        {"mm", "amx:chunk=0:tiles=32", 1, 18, 178, 240},
        {"mm", "amx:threads=4", 4, 33, 64, 1270},
    };
    char line[200];
    FILE *file = fopen(test_source_path("data/vectors/onednn/intel-amx-cut.txt"), "r");
    size_t found = 0;
    ck_assert(file != NULL);
    while (fgets(line, sizeof line, file)) {
        product p = {.format = mpsim_format_find("bf16")};
        unsigned long long digest;
        if (sscanf(line, "%19s %u %zu %zu %zu %llx", p.call, &p.threads, &p.m, &p.n, &p.k, &digest) != 6)
            continue;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            if (strcmp(cases[i].call, p.call) != 0 || cases[i].threads != p.threads || cases[i].m != p.m ||
                cases[i].n != p.n || cases[i].k != p.k)
                continue;
            char name[96];
            uint16_t *d = malloc(p.m * p.n * sizeof *d);
            ck_assert(d != NULL);
            snprintf(name, sizeof name, "torch-mm:%s", cases[i].words);
            make_operands(&p);
            ck_assert_msg(matrices_digest(&p, name, d) == digest, "%s, %s: another digest than recorded", name, line);
            free(d);
            free(p.a);
            free(p.b);
            found++;
        }
    }
    fclose(file);
    ck_assert_uint_eq(found, sizeof cases / sizeof cases[0]);
}

/* 180 rows are blocks of 60, four tiles of 15, all of whose depth the second level holds: it is not cut. */
TEST(blocks_of_rows)
{
    static uint16_t d[180 * 2];
    product p = {.format = mpsim_format_find("bf16"), .m = 180, .n = 2, .k = 2176};
    make_operands(&p);
    const uint64_t whole = matrices_digest(&p, "torch-mm:amx:chunk=0:tiles=32", d);
    ck_assert(matrices_digest(&p, "torch-mm:amx:threads=1:left-transposed", d) == whole);
    ck_assert(matrices_digest(&p, "torch-mm:amx:chunk=1088:tiles=32", d) != whole);
    free(p.a);
    free(p.b);
}

/* A sum of no products is +0, however it is cut. */
TEST(no_depth)
{
    static const char *const names[] = {"torch-mm:avx512",
                                        "torch-mm:avx512:part=64",
                                        "torch-mm:avx512:threads=3:left-transposed",
                                        "torch-mm:amx",
                                        "torch-mm:amx:threads=1",
                                        "torch-mm:amx:threads=8:right-transposed",
                                        "torch-mm:amx:threads=8:left-transposed"};
    enum { ROWS = 5000 }; /* fewer are not oneDNN's */
    static uint16_t code[2], d[2 * ROWS];
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    const mpsim_matrix a = {bf16, code, 1, 0}, b = {bf16, code, 2, 0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        mpsim_torch_mm p;
        memset(d, 0xff, sizeof d);
        ck_assert(mpsim_torch_mm_parse(&p, names[i]) == MPSIM_OK);
        ck_assert_msg(mpsim_torch_mm_run(&p, ROWS, 2, 0, &a, &b, d, NULL) == MPSIM_OK, "%s", names[i]);
        for (size_t k = 0; k < 2 * ROWS; k++)
            ck_assert_msg(d[k] == 0, "%s: %04x", names[i], d[k]);
    }
}

TEST(words)
{
    static const char *const wrong[] = {"torch-mm",
                                        "torch-mm:",
                                        "torch-mm:avx512:amx",
                                        "torch-mm:amx:amx",
                                        "torch-mm:avx512:chunk=32",
                                        "torch-mm:avx512:tiles=32",
                                        "torch-mm:amx:left-transposed",
                                        "torch-mm:amx:chunk=33",
                                        "torch-mm:amx:part=0",
                                        "torch-mm:amx:chunk=",
                                        "torch-mm:amx:tiles=16",
                                        "torch-mm:amx:right-transposed",
                                        "torch-mm:avx512:right-transposed",
                                        "torch-mm:amx:threads=0",
                                        "torch-mm:amx:threads=257",
                                        "torch-mm:amx:threads=",
                                        "torch-mm:amx:threads=2:threads=2",
                                        "torch-mm:amx:threads=2:chunk=32",
                                        "torch-mm:amx:threads=2:tiles=32",
                                        "torch-mm:avx512:threads=2:part=32",
                                        "torch-mm:amx:chunk=32:chunk=32"};
    const mpsim_format *bf16 = mpsim_format_find("bf16"), *fp16 = mpsim_format_find("fp16");
    uint16_t code[4 * 300] = {0}, d[4];
    const mpsim_matrix a = {bf16, code, 300, 0}, b = {bf16, code, 2, 0};
    mpsim_torch_mm p, before;
    mpsim_model m;
    ck_assert(mpsim_torch_mm_parse(&p, "Torch-MM:AMX:part=1536:chunk=512:tiles=equal") == MPSIM_OK);
    ck_assert(p.by == MPSIM_TORCH_MM_AMX && p.part == 1536 && p.chunk == 512 && p.cut &&
              p.tiles == MPSIM_TORCH_MM_TILES_EQUAL);
    before = p;
    ck_assert(mpsim_torch_mm_parse(&p, "torch-mm:amx:threads=256:Left-Transposed:right-transposed") == MPSIM_OK);
    ck_assert(p.threads == 256 && p.left_transposed && p.right_transposed && !p.cut);
    p = before;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(mpsim_torch_mm_parse(&p, wrong[i]) == MPSIM_EINVAL && memcmp(&p, &before, sizeof p) == 0, "%s",
                      wrong[i]);
    ck_assert(mpsim_torch_mm_parse(&p, "torch-scaled-mm") == MPSIM_ENOTFOUND);
    ck_assert(mpsim_torch_mm_model(&m, &p, bf16) == MPSIM_OK && mpsim_torch_mm_model(&m, &p, fp16) == MPSIM_ERANGE);
    ck_assert(mpsim_torch_mm_parse(&p, "torch-mm:avx512") == MPSIM_OK &&
              mpsim_torch_mm_model(&m, &p, fp16) == MPSIM_OK &&
              mpsim_torch_mm_model(&m, &p, mpsim_format_find("e4m3")) == MPSIM_ERANGE);
    ck_assert(mpsim_torch_mm_chunk(512, 0) == 0 && mpsim_torch_mm_chunk(513, 0) == 512 &&
              mpsim_torch_mm_chunk(1025, 0) == 1024 && mpsim_torch_mm_chunk(1025, 1) == 512);
    ck_assert(mpsim_torch_mm_tile(60) == 30 && mpsim_torch_mm_tile(64) == 32 && mpsim_torch_mm_tile(65) == 32 &&
              mpsim_torch_mm_tile(44) == 22 && mpsim_torch_mm_tile(0) == 32 && mpsim_torch_mm_tile(7) == 32);
    /* shapes of which it is not known */
    ck_assert(mpsim_torch_mm_parse(&p, "torch-mm:amx") == MPSIM_OK);
    ck_assert(mpsim_torch_mm_run(&p, 1, 2, 300, &a, &b, d, NULL) == MPSIM_ERANGE);
    ck_assert(mpsim_torch_mm_run(&p, 2, 2, 300, &a, &b, d, NULL) == MPSIM_ERANGE);
    ck_assert(mpsim_torch_mm_run(&p, 2, 2, 300, &a, NULL, d, NULL) == MPSIM_EINVAL);
    const size_t deep = (size_t)((uint64_t)1 << 46); /* 0 on 32 bits: nothing to sum */
    const mpsim_matrix left = {a.format, a.codes, deep, 0}, right = {a.format, a.codes, deep, 1};
    ck_assert(mpsim_torch_mm_parse(&p, "torch-mm:amx:threads=4") == MPSIM_OK);
    ck_assert(deep == 0 || mpsim_torch_mm_run(&p, 2, 2, deep, &left, &right, d, NULL) == MPSIM_ERANGE);
    /* what is none: instructions, formats, strides, threads; numbers next to the largest */
    ck_assert(mpsim_torch_mm_model(NULL, &p, fp16) == MPSIM_EINVAL &&
              mpsim_torch_mm_model(&m, NULL, fp16) == MPSIM_EINVAL &&
              mpsim_torch_mm_model(&m, &p, NULL) == MPSIM_EINVAL);
    p.by = 2;
    ck_assert(mpsim_torch_mm_model(&m, &p, fp16) == MPSIM_EINVAL);
    ck_assert(mpsim_torch_mm_parse(&p, "torch-mm:avx512:part=32") == MPSIM_OK);
    const mpsim_matrix narrow = {a.format, a.codes, 32, 0}; /* as long as a part */
    const mpsim_pool no_threads = {NULL, NULL, NULL};
    ck_assert(mpsim_torch_mm_run(&p, 2, 4096, 33, &narrow, &b, d, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_torch_mm_run(&p, 2, 2, 300, &a, &b, d, &no_threads) != MPSIM_OK);
    for (size_t n = SIZE_MAX; n > SIZE_MAX - 100; n--)
        ck_assert(mpsim_torch_mm_tile(n) <= 32 && mpsim_torch_mm_chunk(n, 0) == 1024);
}

TEST_MAIN("onednn");
