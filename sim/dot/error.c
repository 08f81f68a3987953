/* error.c -- see error.h. */
#include "error.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "blocks.h"
#include "pieces.h"

#include <threads/parallel.h>

#include <stdlib.h>
#include <string.h>

static const unsigned char *from_product(const operand *o, size_t k)
{
    return (const unsigned char *)o->codes + k * mpsim_format_code_bytes(&o->format);
}

/* The sums of a model over products first to first + depth - 1, as binary64 values. */
static mpsim_status run(double *d, const mpsim_model *m, const operand *a, const operand *b, size_t first, size_t depth)
{
    const mpsim_format *f = &m->result.format;
    const mpsim_matrix ma = {&a->format, from_product(a, first), a->depth, 0};
    const mpsim_matrix mb = {&b->format, from_product(b, first), b->depth, 1};
    const mpsim_rng rng = {1, 0, 0};
    const size_t n = a->rows * b->rows;
    void *codes = need_memory(n, mpsim_format_code_bytes(f));
    mpsim_status s = a->block
                         ? dot_blocks_gemm(m, a, b, first, depth, codes, &parallel_pool)
                         : mpsim_gemm(m, a->rows, b->rows, depth, &ma, &mb, NULL, codes, b->rows, &rng, &parallel_pool);
    if (s == MPSIM_OK)
        s = mpsim_decode_array(f, d, codes, n);
    free(codes);
    return s;
}

static mpsim_status round_to(const mpsim_format *f, double *x, size_t n)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_round_array_f64(f, &r, NULL, x, x, n, NULL);
}

/* d = sum(d + part). Numbers of at most 25 bits: binary64 has twice as many and two more, so that its own rounding does
 * no harm; of binary64 it is the only one. */
static mpsim_status add_part(double *d, double *part, const dot_split *s, size_t n)
{
    const mpsim_status status = round_to(&s->workspace, part, n);
    for (size_t i = 0; i < n; i++)
        d[i] += part[i];
    return status == MPSIM_OK ? round_to(&s->sum, d, n) : status;
}

/* All results of a model, in parts: the first `first` products, then as many as `length` again and again. */
static mpsim_status run_parts(double *d, const mpsim_model *m, const dot_split *s, const operand *a, const operand *b,
                              size_t depth, size_t first, size_t length)
{
    const size_t n = a->rows * b->rows;
    double *part = need_memory(n, sizeof *part);
    mpsim_status status = MPSIM_OK;
    for (size_t i = 0; i < n; i++)
        d[i] = 0;
    for (size_t k = 0, end = first < depth ? first : depth; k < depth && status == MPSIM_OK;
         k = end, end = depth - end < length ? depth : end + length) {
        status = run(part, m, a, b, k, end - k);
        if (status == MPSIM_OK)
            status = add_part(d, part, s, n);
    }
    free(part);
    return status == MPSIM_OK ? round_to(&m->result.format, d, n) : status;
}

/* Rows first to first + n - 1 of an operand. */
static operand rows_of(const operand *o, size_t first, size_t n)
{
    operand part = *o;
    part.rows = n;
    part.codes += first * o->depth * mpsim_format_code_bytes(&o->format);
    return part;
}

static size_t least(size_t x, size_t y)
{
    return x < y ? x : y;
}

/* Tile number t of the results, cut where a worker's run of `each` steps ends. */
static mpsim_status run_tile(double *d, const mpsim_model *m, const dot_split *s, const operand *a, const operand *b,
                             size_t depth, size_t t, size_t each)
{
    const size_t across = (b->rows - 1) / s->tile[1] + 1, steps = (depth - 1) / s->tile[2] + 1;
    const size_t i = t / across * s->tile[0], j = t % across * s->tile[1];
    const operand x = rows_of(a, i, least(s->tile[0], a->rows - i)), y = rows_of(b, j, least(s->tile[1], b->rows - j));
    const size_t first = each - t * steps % each; /* steps to the end of the run that the tile begins in */
    double *own = need_memory(x.rows * y.rows, sizeof *own);
    const mpsim_status status = first >= steps
                                    ? run(own, m, &x, &y, 0, depth)
                                    : run_parts(own, m, s, &x, &y, depth, first * s->tile[2], each * s->tile[2]);
    for (size_t r = 0; r < x.rows; r++)
        memcpy(d + (i + r) * b->rows + j, own + r * y.rows, y.rows * sizeof *d);
    free(own);
    return status;
}

static mpsim_status run_tiles(double *d, const mpsim_model *m, const dot_split *s, const operand *a, const operand *b,
                              size_t depth)
{
    const size_t tiles = ((a->rows - 1) / s->tile[0] + 1) * ((b->rows - 1) / s->tile[1] + 1);
    const size_t steps = tiles * ((depth - 1) / s->tile[2] + 1), each = (steps - 1) / s->workers + 1;
    mpsim_status status = MPSIM_OK;
    for (size_t t = 0; t < tiles && status == MPSIM_OK; t++)
        status = run_tile(d, m, s, a, b, depth, t, each);
    return status;
}

int dot_split_place(mpsim_format *f, const char *name)
{
    return mpsim_format_parse(f, name) != MPSIM_OK ||
                   (f->mbits > 24 && !mpsim_format_same(f, mpsim_format_find("binary64")))
               ? -1
               : 0;
}

mpsim_status dot_results(double *d, const mpsim_model *m, const dot_split *split, const operand *a, const operand *b,
                         size_t depth)
{
    const size_t length = (depth - 1) / split->parts + 1;
    if (split->workers)
        return run_tiles(d, m, split, a, b, depth);
    return split->parts > 1 ? run_parts(d, m, split, a, b, depth, length, length) : run(d, m, a, b, 0, depth);
}

static int failed(const mpsim_model *m, const operand *a, const operand *b, mpsim_status s)
{
    if (s == MPSIM_EINVAL && a->block)
        return fail(EXIT_USAGE, "dot: model '%s': with --blocks, parts of K must begin with a block of %zu", m->name,
                    a->block);
    if (s == MPSIM_ERANGE)
        return fail(EXIT_USAGE,
                    "dot: model '%s' cannot take %s and %s: more than 60 explicit significand bits together", m->name,
                    a->format.name, b->format.name);
    return fail(EXIT_IO, "dot: model '%s': %s", m->name, mpsim_status_string(s));
}

int dot_exact(double *exact, const operand *a, const operand *b, size_t depth)
{
    mpsim_model truth;
    mpsim_status s = mpsim_model_parse(&truth, "exact:binary64");
    if (s == MPSIM_OK)
        s = run(exact, &truth, a, b, 0, depth);
    return s == MPSIM_OK ? 0 : failed(&truth, a, b, s);
}

/* An operand in pieces instead of rounded. */
static operand in_pieces(const operand *o, const pieces *p, void *codes)
{
    operand whole = *o;
    whole.format = p->format;
    whole.depth *= p->each;
    whole.codes = codes;
    whole.block = 0;
    return whole;
}

int dot_exact_given(double *exact, const operand *a, const operand *b, size_t depth)
{
    pieces p;
    dot_pieces_make(&p, a->x, a->rows * a->depth, b->x, b->rows * b->depth);
    const operand x = in_pieces(a, &p, p.a), y = in_pieces(b, &p, p.b);
    const int code = dot_exact(exact, &x, &y, depth * p.each);
    for (size_t i = 0; i < a->rows * b->rows; i++)
        exact[i] = exact[i] * a->scale * b->scale;
    dot_pieces_clear(&p);
    return code;
}

int dot_error_measure(dot_error *e, const mpsim_model *m, const dot_split *split, const operand *a, const operand *b,
                      size_t depth, const dot_truth *truth)
{
    const size_t n = a->rows * b->rows;
    double *d = need_memory(n, sizeof *d);
    memset(e, 0, sizeof *e);
    const mpsim_status s = dot_results(d, m, split, a, b, depth);
    if (s == MPSIM_OK) {
        dot_error_compare(e, d, truth, n, m->result.format.mbits + 1);
        e->first = n ? d[0] / (a->scale * b->scale) : 0;
    }
    free(d);
    return s == MPSIM_OK ? 0 : failed(m, a, b, s);
}
