/* whole.c -- whole results of stacks of products, for their digests; see stacks.h. */
#include "stacks.h"

#include "support/support.h"

#include <mpsim/digest.h>
#include <stdlib.h>
#include <string.h>

/* numbered: the order of the depth; drawn: the cut whose turns the operands are laid out for. */
struct whole_product {
    const stack *s;
    const mpsim_format *f, *sums;
    size_t group, rows, columns, depth;
    int numbered;
    cut drawn;
    unsigned char *a, *b, *c, *d;
    float *sum;
};

static void *room(size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes);
    device_need(p != NULL);
    return p;
}

/* Which product of the depth comes as the k-th: where chunks take turns, those of a part are side by side. */
static size_t *order_of(const cut *c, size_t depth)
{
    size_t *order = room(depth, sizeof *order), at = 0;
    const size_t parts = c->turn ? depth / c->part : 1, turn = c->turn ? c->turn : depth;
    for (size_t part = 0; part < parts; part++)
        for (size_t k = part * turn; k < depth; k += parts * turn)
            for (size_t i = 0; i < turn; i++)
                order[at++] = k + i;
    return order;
}

static void draw(whole_product *x, const cut *c)
{
    const size_t bytes = mpsim_format_code_bytes(x->f);
    size_t *order = order_of(c, x->depth);
    for (size_t k = 0; k < x->depth; k++) {
        for (size_t i = 0; i < x->rows; i++)
            code_store(x->a + (i * x->depth + k) * bytes, bytes,
                       device_encode(x->f, x->s->a(x->s, x->numbered, (spot){x->group, i, 0}, order[k])));
        for (size_t j = 0; j < x->columns; j++)
            code_store(x->b + (k * x->columns + j) * bytes, bytes,
                       device_encode(x->f, x->s->b(x->s, x->numbered, (spot){x->group, 0, j}, order[k])));
    }
    x->drawn = *c;
    free(order);
}

whole_product *whole_open(const stack *s, int order, size_t group)
{
    size_t sizes[3];
    whole_product *x = room(1, sizeof *x);
    s->sizes(s, order, group, sizes);
    *x = (whole_product){.s = s,
                         .f = s->operand,
                         .group = group,
                         .rows = sizes[0],
                         .columns = sizes[1],
                         .depth = sizes[2],
                         .numbered = order};
    const size_t n = x->rows * x->columns, bytes = mpsim_format_code_bytes(x->f);
    x->a = room(x->rows * x->depth, bytes);
    x->b = room(x->columns * x->depth, bytes);
    x->c = room(n, 8);
    x->d = room(n, 8);
    x->sum = room(n, sizeof *x->sum);
    draw(x, &(cut){0});
    return x;
}

void whole_close(whole_product *x)
{
    free(x->a);
    free(x->b);
    free(x->c);
    free(x->d);
    free(x->sum);
    free(x);
}

/* Products first to first + n - 1 are added to c, or to zero; they are in d then. */
static void multiply(const mpsim_model *m, whole_product *x, size_t first, size_t n, int onto)
{
    const size_t bytes = mpsim_format_code_bytes(x->f);
    const mpsim_matrix a = {x->f, x->a + first * bytes, x->depth, 0}, c = {x->sums, x->c, x->columns, 0};
    const mpsim_matrix b = {x->f, x->b + first * x->columns * bytes, x->columns, 0};
    device_need(mpsim_gemm(m, x->rows, x->columns, n, &a, &b, onto ? &c : NULL, x->d, x->columns, NULL, NULL) ==
                MPSIM_OK);
}

/* Likewise; where they are no multiple of a tile, the rest comes first. */
static void multiply_tiles(const way *w, whole_product *x, size_t first, size_t n, int onto)
{
    const size_t rest = w->cut.tile ? n % w->cut.tile : 0;
    if (rest == 0 || rest == n) {
        multiply(&w->m, x, first, n, onto);
        return;
    }
    multiply(&w->m, x, first, rest, onto);
    memcpy(x->c, x->d, x->rows * x->columns * mpsim_format_code_bytes(x->sums));
    multiply(&w->m, x, first + rest, n - rest, 1);
}

static spot spot_of(const whole_product *x, size_t i)
{
    return (spot){x->group, i / x->columns, i % x->columns};
}

/* c becomes what is added. */
static void begin(whole_product *x)
{
    const size_t wide = mpsim_format_code_bytes(x->sums);
    for (size_t i = 0; i < x->rows * x->columns; i++)
        code_store(x->c + i * wide, wide, device_encode(x->sums, x->s->added(x->s, spot_of(x, i))));
}

/* The parts are added one after the other in binary32, the first of them to a number where the ending says so. */
static void add_part(whole_product *x, const way *w, int onto, int first)
{
    const size_t wide = mpsim_format_code_bytes(x->sums);
    for (size_t i = 0; i < x->rows * x->columns; i++) {
        const float one = (float)mpsim_decode(x->sums, code_load(x->d + i * wide, wide));
        const float before = first && onto ? x->s->added(x->s, spot_of(x, i)) : x->sum[i];
        x->sum[i] = first && !onto ? one : before + one;
        if (w->partial)
            x->sum[i] = device_round(x->s->out, x->sum[i]);
    }
}

static void add_up(whole_product *x, const way *w, const ending *e)
{
    const size_t part = w->cut.part ? w->cut.part : x->depth;
    const int before = e->added == ADDED_BEFORE_PRODUCTS;
    x->sums = &w->m.result.format;
    if (x->drawn.turn != w->cut.turn || (w->cut.turn && x->drawn.part != part))
        draw(x, &w->cut);
    if (before)
        begin(x);
    for (size_t k = 0; k < x->depth; k += part) {
        multiply_tiles(w, x, k, k + part < x->depth ? part : x->depth - k, before && k == 0);
        add_part(x, w, e->added == ADDED_BEFORE_PARTS, k == 0);
    }
}

uint64_t whole_digest(whole_product *x, const way *w, const ending *e, int again)
{
    const size_t elements = (size_t)device_integer(x->s->c, "elements"), bytes = mpsim_format_code_bytes(x->s->out);
    uint64_t digest = 0;
    unsigned char code[8];
    if (!again)
        add_up(x, w, e);
    for (size_t i = 0; i < x->rows * x->columns; i++) {
        const size_t at = x->s->index(x->s, spot_of(x, i));
        if (at >= elements)
            continue;
        code_store(code, bytes,
                   device_encode(x->s->out, stacks_finish(x->s, e, spot_of(x, i), x->depth ? x->sum[i] : 0)));
        digest += mpsim_digest(x->s->out, code, 1, at);
    }
    return digest;
}
