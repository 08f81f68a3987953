/* torchmm.c -- see mpsim/torchmm.h. */
#include "../base/environment.h"
#include "../base/matrix.h"
#include "../base/words.h"
#include "onednn.h"

#include <mpsim/torchmm.h>

#include <stdlib.h>
#include <string.h>

enum { TILE = 32, UNCUT = 254, SMALL = 4096, THREADS = 256 };

static const uint64_t most = (uint64_t)1 << 47; /* products, so that the numbers of the rule fit 63 bits */

/* ---- by name ---- */

static int parse_count(uint32_t *count, const char *text, size_t n, uint32_t unit)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || v > 1 << 24)
            return 0;
        v = 10 * v + (uint32_t)(text[i] - '0');
    }
    *count = v;
    return n > 0 && v % unit == 0;
}

/* What the words have said. */
typedef struct said {
    int by, left_transposed, right_transposed, threads, part, chunk, tiles;
} said;

static int take_word(mpsim_torch_mm *p, said *s, const char *text, size_t n)
{
    if (mpsim_same_word(text, n, "avx512"))
        return !s->by++;
    if (mpsim_same_word(text, n, "amx")) {
        p->by = MPSIM_TORCH_MM_AMX;
        return !s->by++;
    }
    if (mpsim_same_word(text, n, "left-transposed"))
        return !s->left_transposed++;
    if (mpsim_same_word(text, n, "right-transposed"))
        return !s->right_transposed++;
    if (n > 8 && mpsim_same_word(text, 8, "threads="))
        return !s->threads++ && parse_count(&p->threads, text + 8, n - 8, 1) && p->threads - 1 < THREADS;
    if (mpsim_same_word(text, n, "tiles=32") || mpsim_same_word(text, n, "tiles=equal")) {
        p->tiles = mpsim_same_word(text, n, "tiles=32") ? MPSIM_TORCH_MM_TILES_32 : MPSIM_TORCH_MM_TILES_EQUAL;
        return !s->tiles++;
    }
    if (n > 5 && mpsim_same_word(text, 5, "part="))
        return !s->part++ && parse_count(&p->part, text + 5, n - 5, TILE) && p->part > 0;
    if (n > 6 && mpsim_same_word(text, 6, "chunk="))
        return !s->chunk++ && parse_count(&p->chunk, text + 6, n - 6, TILE);
    return 0;
}

/* How the operands lie matters to the rule, which `threads` asks for instead of saying what it gives. */
static int words_fit(const mpsim_torch_mm *p, const said *s)
{
    const int amx = p->by == MPSIM_TORCH_MM_AMX;
    if (s->threads)
        return !p->cut && !s->tiles;
    return !s->right_transposed && (amx ? !s->left_transposed : !s->chunk && !s->tiles);
}

mpsim_status mpsim_torch_mm_parse(mpsim_torch_mm *p, const char *name)
{
    mpsim_torch_mm x;
    said s = {0};
    if (!p || !name)
        return MPSIM_EINVAL;
    const size_t n = strcspn(name, ":");
    if (!mpsim_same_word(name, n, "torch-mm"))
        return MPSIM_ENOTFOUND;
    if (strlen(name) >= sizeof x.name)
        return MPSIM_EINVAL;
    memset(&x, 0, sizeof x);
    for (const char *at = name + n; *at;) {
        const size_t word = strcspn(at + 1, ":");
        if (!take_word(&x, &s, at + 1, word))
            return MPSIM_EINVAL;
        at += 1 + word;
    }
    x.left_transposed = (uint8_t)s.left_transposed;
    x.right_transposed = (uint8_t)s.right_transposed;
    x.cut = s.part || s.chunk;
    if (!s.by || !words_fit(&x, &s))
        return MPSIM_EINVAL;
    memcpy(x.name, name, strlen(name) + 1);
    *p = x;
    return MPSIM_OK;
}

/* ---- the sums ---- */

size_t mpsim_torch_mm_chunk(size_t depth, int left_transposed)
{
    enum { MORE = 1025 }; /* than makes a difference */
    return (size_t)mpsim_onednn_chunk(depth < MORE ? (int64_t)depth : MORE, left_transposed);
}

mpsim_status mpsim_torch_mm_model(mpsim_model *m, const mpsim_torch_mm *p, const mpsim_format *operands)
{
    static const char *const models[][2] = {{"avx512-bf16-fp32", "fma"}, {"amx-bf16-fp32", NULL}};
    if (!m || !p || p->by > MPSIM_TORCH_MM_AMX || mpsim_format_check(operands))
        return MPSIM_EINVAL;
    const int fp16 = mpsim_format_same(operands, mpsim_format_find("fp16"));
    if (!fp16 && !mpsim_format_same(operands, mpsim_format_find("bf16")))
        return MPSIM_ERANGE;
    return models[p->by][fp16] ? mpsim_model_parse(m, models[p->by][fp16]) : MPSIM_ERANGE;
}

typedef struct product {
    mpsim_onednn_cuts cuts;
    mpsim_torch_mm_tiles tiles; /* of a chain of AMX */
    int amx;
    mpsim_model chain;
    size_t rows, columns;
    const mpsim_matrix *a, *b;
    const mpsim_pool *pool;
} product;

static size_t least(size_t x, size_t y)
{
    return x < y ? x : y;
}

/* x += y, in the default environment. */
static void add(float *x, const float *y, size_t n)
{
    const mpsim_environment before = mpsim_environment_default();
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
    mpsim_environment_restore(before);
}

size_t mpsim_torch_mm_tile(size_t n)
{
    const size_t tiles = n / TILE + (n % TILE != 0);
    return n && n < SIZE_MAX / 2 && mpsim_fills_equal_tiles((int64_t)n) ? n / tiles : TILE;
}

/* The sum of the products first to end - 1, one chunk. */
static mpsim_status sum_chunk(const product *g, size_t first, size_t end, float *sum)
{
    mpsim_matrix a = *g->a, b = *g->b;
    mpsim_model chain = g->chain;
    const size_t equal = mpsim_torch_mm_tile(end - first);
    if (g->amx && equal != TILE) {
        if (!g->tiles)
            return MPSIM_ERANGE;
        chain.chunk = (uint32_t)(g->tiles == MPSIM_TORCH_MM_TILES_EQUAL ? equal : TILE);
    }
    const size_t bytes = mpsim_format_code_bytes(a.format);
    a.codes = (const char *)a.codes + bytes * first * (a.transposed ? a.stride : 1);
    b.codes = (const char *)b.codes + bytes * first * (b.transposed ? 1 : b.stride);
    return mpsim_gemm(&chain, g->rows, g->columns, end - first, &a, &b, NULL, sum, g->columns, NULL, g->pool);
}

/* The sum of the products first to end - 1 in chunks; `other` is for as many numbers as sum. */
static mpsim_status sum_part(const product *g, size_t first, size_t end, size_t depth, float *sum, float *other)
{
    const size_t n = g->rows * g->columns, rest = g->cuts.apart && end == depth ? depth % TILE : 0;
    mpsim_status s = MPSIM_OK;
    for (size_t at = first, next = 0; s == MPSIM_OK && at < end; at = next) {
        next = least(at + (size_t)g->cuts.chunk, at < end - rest ? end - rest : end);
        s = sum_chunk(g, at, next, at == first ? sum : other);
        if (s == MPSIM_OK && at != first)
            add(sum, other, n);
    }
    return s;
}

/* All of it; memory for three times as many numbers, of which the first are the sum. */
static mpsim_status sum_all(const product *g, size_t depth, float *memory)
{
    const size_t n = g->rows * g->columns, piece = (size_t)g->cuts.piece, parts = (size_t)g->cuts.parts;
    const size_t pieces = (depth + piece - 1) / piece;
    float *sum = memory, *own = memory + n, *other = memory + 2 * n;
    mpsim_status s = MPSIM_OK;
    for (size_t i = 0, at = 0, end = 0; s == MPSIM_OK && at < depth; i++, at = end) {
        end = least(at + (pieces / parts + (i < pieces % parts)) * piece, depth);
        s = sum_part(g, at, end, depth, i ? own : sum, other);
        if (s == MPSIM_OK && i)
            add(sum, own, n);
    }
    return s;
}

/* The cuts as they were said. */
static mpsim_onednn_cuts cuts_said(const mpsim_torch_mm *p, size_t depth)
{
    const size_t piece = p->part ? p->part : depth ? depth : 1;
    const size_t asked = p->by == MPSIM_TORCH_MM_AVX512 ? mpsim_torch_mm_chunk(depth, p->left_transposed) : p->chunk;
    return (mpsim_onednn_cuts){.parts = (int64_t)((depth + piece - 1) / piece),
                               .piece = (int64_t)piece,
                               .chunk = (int64_t)(asked ? asked : piece)};
}

/* How the depth is cut, and which instruction sums it. */
static void set_cuts(product *g, const mpsim_torch_mm *p, size_t depth, const mpsim_format *operands)
{
    const mpsim_onednn_shape shape = {.rows = (int64_t)g->rows,
                                      .columns = (int64_t)g->columns,
                                      .depth = (int64_t)depth,
                                      .threads = p->threads,
                                      .left_transposed = p->left_transposed,
                                      .right_transposed = p->right_transposed,
                                      .bf16 = mpsim_format_same(operands, mpsim_format_find("bf16"))};
    g->amx = p->by == MPSIM_TORCH_MM_AMX;
    g->tiles = (mpsim_torch_mm_tiles)p->tiles;
    if (!p->threads || !depth) {
        g->cuts = cuts_said(p, depth);
    } else if (!g->amx) {
        mpsim_onednn_avx512(&g->cuts, &shape);
    } else {
        mpsim_onednn_amx(&g->cuts, &shape);
        g->tiles = g->cuts.equal ? MPSIM_TORCH_MM_TILES_EQUAL : MPSIM_TORCH_MM_TILES_32;
        g->amx = !g->cuts.avx512;
    }
}

mpsim_status mpsim_torch_mm_run(const mpsim_torch_mm *p, size_t rows, size_t columns, size_t depth,
                                const mpsim_matrix *a, const mpsim_matrix *b, void *d, const mpsim_pool *pool)
{
    static const mpsim_torch_mm avx512 = {.by = MPSIM_TORCH_MM_AVX512};
    product g = {.rows = rows, .columns = columns, .a = a, .b = b, .pool = pool};
    if (!p || p->by > MPSIM_TORCH_MM_AMX || p->tiles > MPSIM_TORCH_MM_TILES_EQUAL || p->part % TILE ||
        p->chunk % TILE || p->threads > THREADS || !mpsim_is_operand(a, rows, depth) ||
        !mpsim_is_operand(b, depth, columns) || !d || !mpsim_is_pool(pool))
        return MPSIM_EINVAL;
    if (!mpsim_format_same(a->format, b->format) || rows < 2 || columns < 2 ||
        (rows <= SMALL && columns <= SMALL && depth <= SMALL && (uint64_t)rows * columns * depth <= SMALL) ||
        (p->threads && depth && rows > most / columns / depth) ||
        (p->by == MPSIM_TORCH_MM_AMX && !p->cut && !p->threads && depth > UNCUT))
        return MPSIM_ERANGE;
    mpsim_status s = mpsim_torch_mm_model(&g.chain, p, a->format);
    if (s != MPSIM_OK)
        return s;
    set_cuts(&g, p, depth, a->format);
    if (g.cuts.avx512 && (s = mpsim_torch_mm_model(&g.chain, &avx512, a->format)) != MPSIM_OK)
        return s;
    if (columns > SIZE_MAX / 16 / rows)
        return MPSIM_ENOMEM;
    float *memory = (float *)calloc(3 * rows * columns, sizeof *memory); /* a sum of no products is +0 */
    if (!memory)
        return MPSIM_ENOMEM;
    s = sum_all(&g, depth, memory);
    if (s == MPSIM_OK) {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        s = mpsim_encode_array_f32(a->format, &r, NULL, d, memory, rows * columns, NULL);
    }
    free(memory);
    return s;
}
