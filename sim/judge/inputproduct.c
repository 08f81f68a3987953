/* inputproduct.c -- operands that tell models of products apart: lines of several characters, each of which meets each. */
#include "inputs.h"
#include "productrow.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 53, CHUNK_MOST = 4096 };

/* The first format of a model's operands; binary32 if it takes any. */
static const mpsim_format *operand_of(const mpsim_model *m)
{
    char name[64];
    if (!m->operands)
        return mpsim_format_find("binary32");
    const size_t n = strcspn(m->operands, " ");
    memcpy(name, m->operands, n < sizeof name ? n : 0);
    name[n < sizeof name ? n : 0] = '\0';
    return mpsim_format_find(name);
}

static mpsim_status formats(judge_inputs *w, const mpsim_format *from)
{
    product_row row;
    mpsim_judge_set *set = w->set;
    if (!w->row) {
        set->format[0] = set->format[1] = from ? *from : *mpsim_format_find("binary32");
        set->format[2] = *mpsim_format_find("binary32");
        return MPSIM_OK;
    }
    if (judge_product_row_parse(&row, w->row) != MPSIM_OK)
        return MPSIM_ENOTFOUND;
    const int rounds = *row.operands.name != '\0';
    set->format[0] = set->format[1] = from ? *from : rounds ? *mpsim_format_find("binary32") : *operand_of(&row.model);
    set->format[2] = row.model.result.format;
    const mpsim_format *f = rounds ? &row.operands : &set->format[0];
    if (row.model.block || !mpsim_model_accepts(&row.model, f, f))
        return judge_inputs_fail(
            w, MPSIM_ERANGE,
            row.model.block ? "'%s' multiplies blocks with scales" : "'%s' does not take these operands", w->row);
    return MPSIM_OK;
}

/* ---- lines ---- */

typedef struct line {
    const mpsim_format *f;
    unsigned char *codes;
    size_t first, step, depth; /* where element k is: first + k step */
    uint64_t state;
    int low, high; /* exponents that numbers of the format have */
} line;

static void put(const line *l, size_t k, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    element_put_code(l->codes, mpsim_format_code_bytes(l->f), l->first + k * l->step,
                     mpsim_encode_f64(l->f, &r, x, 0, NULL));
}

/* A number of any significand and sign. */
static double any(line *l, int low, int high)
{
    const uint64_t r = judge_inputs_random(&l->state);
    const int e = low + (int)(r % (uint64_t)(high - low + 1));
    return ldexp(1 + (double)(r >> 13 & 0xffffffffff) * 0x1p-40, e) * (r >> 60 & 1 ? -1 : 1);
}

static int within(const line *l, int e)
{
    return e < l->low ? l->low : e > l->high ? l->high : e;
}

static void ordinary(line *l, int which)
{
    for (size_t k = 0; k < l->depth; k++)
        put(l, k, any(l, within(l, -2 - which), within(l, 0)));
}

static void wide(line *l, int which)
{
    const int half = (4 + 4 * which);
    for (size_t k = 0; k < l->depth; k++)
        put(l, k, any(l, within(l, -half), within(l, half)));
}

/* Large numbers that cancel with the next, or with the one far behind, and small ones between them. */
static void cancelling(line *l, int which)
{
    const size_t distance = (size_t)1 << (which * 2);
    double kept[64] = {0};
    for (size_t k = 0; k < l->depth; k++) {
        const size_t place = k % (4 * distance);
        if (place < distance)
            kept[place % 64] = any(l, within(l, 5), within(l, 8));
        put(l, k,
            place < distance       ? kept[place % 64]
            : place < 2 * distance ? -kept[place % 64]
                                   : any(l, within(l, -7), within(l, -3)));
    }
}

/* A one at some place, and what is about half an ulp of it, of several accumulators. */
static void halfway(line *l, int which)
{
    const size_t at = which == 0 ? 0 : which == 1 ? l->depth - 1 : (size_t)(which * 37) % l->depth;
    for (size_t k = 0; k < l->depth; k++) {
        const uint64_t r = judge_inputs_random(&l->state);
        put(l, k, k == at ? 1 : ldexp(1 + (double)(r & 1) / 2, within(l, -5 - 2 * which - (int)(r >> 8 & 3))));
    }
}

static void positive(line *l, int which)
{
    for (size_t k = 0; k < l->depth; k++)
        put(l, k, fabs(any(l, within(l, 0), within(l, which))));
}

static void tiny(line *l, int which)
{
    for (size_t k = 0; k < l->depth; k++)
        put(l, k, any(l, l->low, within(l, l->low + 2 + 8 * which)));
}

static void huge(line *l, int which)
{
    for (size_t k = 0; k < l->depth; k++)
        put(l, k, any(l, within(l, l->high - 1 - 4 * which), l->high - 1));
}

/* Zeros of either sign, infinities, NaN, and few numbers that are not zero. */
static void special(line *l, int which)
{
    for (size_t k = 0; k < l->depth; k++)
        put(l, k,
            which == 0   ? -0.0
            : which == 3 ? (k % 61 == 5 ? any(l, within(l, -3), within(l, 3)) : 0)
                         : any(l, within(l, -2), within(l, 0)));
    if (which == 1)
        put(l, 7, INFINITY);
    if (which == 2)
        put(l, 11, l->f->nan ? NAN : 0);
}

/* One number for all, and a few others: what cancels in the other operand cancels in the sum. */
static void constant(line *l, int which)
{
    const double x = ldexp(1 + (double)which / 4, within(l, -which));
    for (size_t k = 0; k < l->depth; k++)
        put(l, k, which < 2 || k % 31 ? x : any(l, within(l, -9), within(l, -3)));
}

/* A large number early, and its opposite far behind: what is added between is rounded beside it, and shows in the end. */
static void apart(line *l, int which)
{
    const size_t first = (size_t)(judge_inputs_random(&l->state) % (l->depth / 2));
    const size_t last = first + 1 + (size_t)(judge_inputs_random(&l->state) % (l->depth - first - 1));
    const double large = any(l, within(l, 3 * which), within(l, 3 * which));
    for (size_t k = 0; k < l->depth; k++)
        put(l, k, k == first ? large : k == last ? -large : any(l, within(l, -10), within(l, -6)));
}

/* Pairs of large numbers among tiny ones: of one sign, or of both. Where lines of either kind meet, the large products cancel. */
static void paired(line *l, int which)
{
    const size_t distance = which < 2 ? 1 : 12;
    double large = 1;
    for (size_t k = 0; k < l->depth; k++) {
        const size_t place = k % (which < 2 ? 8 : 24);
        large = place == 0 ? fabs(any(l, within(l, 7), within(l, 7))) : large;
        put(l, k,
            place == 0          ? large
            : place == distance ? (which % 2 ? large : -large)
                                : any(l, within(l, -9), within(l, -5)));
    }
}

static void (*const characters[])(line *l, int which) = {
    ordinary, constant, apart, wide, constant, apart, paired, positive, cancelling, wide, halfway, tiny, huge, special};
enum { CHARACTERS = sizeof characters / sizeof characters[0] };

static void fill(void *codes, const mpsim_format *f, size_t depth, int along_rows, uint64_t seed)
{
    for (size_t i = 0; i < LINES; i++) {
        line l = {.f = f,
                  .codes = codes,
                  .first = along_rows ? i * depth : i,
                  .step = along_rows ? 1 : LINES,
                  .depth = depth,
                  .state = seed + i,
                  .low = ilogb(mpsim_format_min_positive(f)),
                  .high = ilogb(mpsim_format_max(f))};
        characters[i % CHARACTERS](&l, (int)(i / CHARACTERS % 4));
    }
}

/* No multiple of the lengths of chunks and of most additions, yet one that libraries take: of 8 numbers of 16 bits, 16 of 8 bits. */
static size_t depth_of(const mpsim_format *f)
{
    return f->bits <= 8 ? 400 : f->bits <= 16 ? 392 : 389;
}

/* A row of long chunks: two more of them, so that they show. */
static size_t more_of(const judge_inputs *w, size_t depth)
{
    product_row row;
    if (!w->row || judge_product_row_parse(&row, w->row) != MPSIM_OK)
        return 0;
    const size_t chunk = row.mkl ? PRODUCT_MKL_BLOCK : row.chunk ? row.chunk : row.model.chunk;
    return (row.mkl || chunk >= depth) && chunk <= CHUNK_MOST ? 2 * chunk : 0;
}

static mpsim_status make(judge_inputs *w)
{
    mpsim_judge_set *set = w->set;
    const size_t least = depth_of(&set->format[0]), depth = least + more_of(w, least);
    void *a = judge_inputs_array(set, 0, "a", LINES, depth);
    void *b = a ? judge_inputs_array(set, 1, "b", depth, LINES) : NULL;
    if (!a || !b)
        return MPSIM_ENOMEM;
    fill(a, &set->format[0], depth, 1, 1);
    fill(b, &set->format[1], depth, 0, 1000);
    return MPSIM_OK;
}

/* ---- rows ---- */

static mpsim_status rows(judge_inputs *w)
{
    mpsim_judge_set *set = w->set;
    product_row *list = want_memory(PRODUCT_ROWS, sizeof *list);
    const product_rows_source from = {
        .a = &set->format[0], .b = &set->format[1], .d = &set->format[2], .depth = set->array[0].columns};
    int bad = !list;
    const size_t n = list ? judge_product_rows(list, PRODUCT_ROWS, &from) : 0;
    for (size_t i = 0; i < n && !bad; i++)
        bad = judge_inputs_name(set, list[i].name);
    if (w->row && !bad)
        bad = judge_inputs_name(set, w->row);
    free(list);
    return bad ? MPSIM_ENOMEM : MPSIM_OK;
}

/* ---- results ---- */

static mpsim_status sign(const mpsim_judge_set *set, const char *name, uint64_t *hash)
{
    const mpsim_judge_array *a = &set->array[0], *b = &set->array[1];
    const mpsim_format *f = &set->format[2];
    const product_operands o = {.a = a, .b = b};
    product_row row;
    void *codes = want_memory(a->rows * b->columns + 1, mpsim_format_code_bytes(f));
    mpsim_status s = codes ? judge_product_row_parse(&row, name) : MPSIM_ENOMEM;
    if (s == MPSIM_OK)
        s = judge_product_compute(codes, &o, &row, f, a->rows, b->columns, a->columns);
    if (s == MPSIM_OK)
        *hash = judge_inputs_mix_codes(*hash, f, codes, a->rows * b->columns, 1);
    free(codes);
    return s;
}

const judge_inputs_kind judge_inputs_product = {formats, make, rows, sign};
