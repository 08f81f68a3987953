/* digests.c -- whole results of a way, and their digests; see ways.h. A result is worked out in blocks of rows and
 * columns. What was worked out is kept: the cases of a file ask for the same product in several layouts. */
#include "ways.h"

#include "support/support.h"

#include <mpsim/digest.h>
#include <mpsim/round.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 1024, KEPT = 4096, NAME = 240 };

/* Of all elements; of those of the sample, the i-th as if it were element i. */
typedef struct digests {
    uint64_t all, sample;
} digests;

static struct kept {
    char name[NAME];
    digests of;
} * kept;
static size_t kept_count;

static const digests *find(const char *name)
{
    for (size_t i = 0; i < kept_count; i++)
        if (strcmp(kept[i].name, name) == 0)
            return &kept[i].of;
    return NULL;
}

static void keep(const char *name, const digests *of)
{
    kept = kept ? kept : malloc(KEPT * sizeof *kept);
    device_need(kept != NULL);
    if (kept_count == KEPT)
        kept_count = 0;
    snprintf(kept[kept_count].name, NAME, "%s", name);
    kept[kept_count++].of = *of;
}

static void name_result(const product_case *x, const way *w, char *name)
{
    const size_t used = (size_t)snprintf(name, NAME, "%s ", x->inputs);
    x->name(x->of, w, name + used, NAME - used);
}

/* ---- a block ---- */

static void encode(const mpsim_format *f, void *codes, const float *x, size_t n)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    device_need(mpsim_encode_array_f32(f, &r, NULL, codes, x, n, NULL) == MPSIM_OK);
}

static void draw(const product_case *x, int right, size_t first, size_t lines, unsigned char *codes)
{
    static float line[WAYS_DEPTH];
    const mpsim_format *f = right ? x->fb : x->fa;
    for (size_t i = 0; i < lines; i++) {
        x->draw(x->of, right, first + i, line);
        encode(f, codes + i * x->k * mpsim_format_code_bytes(f), line, x->k);
    }
}

/* The part of the sample that lies in the block. */
static uint64_t digest_sample(const product_case *x, const operands *o, size_t row, size_t column,
                              const unsigned char *codes)
{
    const size_t bytes = mpsim_format_code_bytes(x->out);
    uint64_t digest = 0;
    for (size_t i = 0; i < device_codes(device_text(x->c, "d")); i++) {
        const size_t at = device_place(x->c, i), r = at / x->n - row, c = at % x->n - column; /* wrap where before */
        if (r < o->m && c < o->n)
            digest += mpsim_digest(x->out, codes + (r * o->n + c) * bytes, 1, i);
    }
    return digest;
}

static void digest_block(const product_case *x, const way *w, const operands *o, size_t row, size_t column, digests *to)
{
    static float sums[LINES * LINES];
    static unsigned char codes[LINES * LINES * 4];
    const size_t bytes = mpsim_format_code_bytes(x->out);
    x->multiply(x->of, w, o, row, column, sums);
    encode(x->out, codes, sums, o->m * o->n);
    for (size_t i = 0; i < o->m; i++)
        to->all += mpsim_digest(x->out, codes + i * o->n * bytes, o->n, (row + i) * x->n + column);
    to->sample += digest_sample(x, o, row, column, codes);
}

/* ---- all of them ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What the n ways give; those of which `known` is set, which may be NULL, are left out. */
static void digest_ways(const product_case *x, const way *w, const int *known, digests *to, size_t n)
{
    operands o = {.fa = x->fa, .fb = x->fb, .out = x->out, .k = x->k};
    o.a = malloc(least(x->m, LINES) * x->k * mpsim_format_code_bytes(x->fa));
    o.b = malloc(least(x->n, LINES) * x->k * mpsim_format_code_bytes(x->fb));
    device_need(o.a && o.b);
    for (size_t row = 0; row < x->m; row += LINES) {
        o.m = least(LINES, x->m - row);
        draw(x, 0, row, o.m, o.a);
        for (size_t column = 0; column < x->n; column += LINES) {
            o.n = least(LINES, x->n - column);
            draw(x, 1, column, o.n, o.b);
            for (size_t j = 0; j < n; j++)
                if (!known || !known[j])
                    digest_block(x, &w[j], &o, row, column, &to[j]);
        }
    }
    free(o.a);
    free(o.b);
}

/* What was recorded. */
static digests of_case(const product_case *x)
{
    const size_t bytes = mpsim_format_code_bytes(x->out);
    const char *words = device_text(x->c, "d");
    digests d = {strtoull(device_text(x->c, "digest"), NULL, 16), 0};
    for (size_t i = 0; i < device_codes(words); i++) {
        unsigned char code[8];
        if (device_place(x->c, i) >= x->m * x->n)
            continue; /* m: the rows that the digest has */
        code_store(code, bytes, device_code(words, i));
        d.sample += mpsim_digest(x->out, code, 1, i);
    }
    return d;
}

int ways_reads_digest(const product_case *x, size_t ways)
{
    return (double)ways * (double)x->m * (double)x->n * (double)x->k <= device_most_products;
}

void ways_judge_digest(candidates *all, const product_case *x)
{
    static digests of[WAYS_MOST];
    static int known[WAYS_MOST];
    char name[NAME];
    size_t missing = 0;
    const digests recorded = of_case(x);
    for (size_t j = 0; j < all->n; j++) {
        name_result(x, &all->w[j], name);
        const digests *before = all->out[j] ? NULL : find(name);
        of[j] = before ? *before : (digests){0, 0};
        known[j] = before || all->out[j];
        missing += !known[j];
    }
    if (missing)
        digest_ways(x, all->w, known, of, all->n);
    for (size_t j = 0; j < all->n; j++) {
        name_result(x, &all->w[j], name);
        if (!known[j])
            keep(name, &of[j]);
        all->out[j] |= of[j].all != recorded.all || of[j].sample != recorded.sample;
    }
}

uint64_t ways_digest(const way *w, const product_case *x)
{
    digests d = {0, 0};
    digest_ways(x, w, NULL, &d, 1);
    return d.all;
}
