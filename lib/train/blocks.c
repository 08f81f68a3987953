/* blocks.c -- of a lean training the memory of passes: tensors that are not there at the same time take one block; see
 * trainer.h.
 *
 * A training is lean if nobody looks into it: no --digests, no trace, no device. Each tensor of a pass has a block
 * from the operation that writes it to the last one that reads it; batches and evaluations share the blocks. A
 * parameter that has the format of a product is its operand, without a copy. Gradients that the optimizer reads
 * stay where the backward pass wrote them. t-digests compares lean trainings with the others. */
#include "trainer.h"

#include <stdint.h>
#include <stdlib.h>

/* ---- the order in which operations are done ---- */

size_t train_pass_first(const train_pass *p, train_do **all)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        train_do *cast = p->list[i];
        if (cast->when != WHEN_FIRST || cast->work != WORK_CAST)
            continue;
        all[n++] = cast;
        for (size_t k = 0; k < p->n; k++)
            if (p->list[k]->when == WHEN_FIRST && p->list[k]->work == WORK_QUANTIZE &&
                p->list[k]->x == cast->results[0].to)
                all[n++] = p->list[k];
    }
    return n;
}

static size_t add_those(const train_pass *p, train_when when, train_do **all, size_t n)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i]->when == when)
            all[n++] = p->list[i];
    return n;
}

/* All *n of them; NULL: out of memory. */
static train_do **in_order(const train_pass *p, size_t *n)
{
    train_do **all = malloc((p->n ? p->n : 1) * sizeof *all);
    if (!all)
        return NULL;
    *n = add_those(p, WHEN_IN_ORDER, all, train_pass_first(p, all));
    *n = add_those(p, WHEN_LAST, all, *n);
    return all;
}

/* ---- how long a tensor is needed ---- */

static int tiles_read(const train_tiles *t, const train_tensor *x)
{
    return t && (t->q == x || t->k == x || t->v == x || t->dy == x || t->lse == x || t->dots == x);
}

static int reads(const train_do *d, const train_tensor *x)
{
    const train_gemm *g = &d->gemm;
    const train_tensor *const all[] = {d->x, d->y, d->mean, d->inverse,  d->weight,  d->bias,
                                       g->a, g->b, g->bias, g->a_blocks, g->b_blocks};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] == x)
            return 1;
    return tiles_read(d->tiles, x);
}

static int writes(const train_do *d, const train_tensor *x)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->results[i].to == x)
            return 1;
    return 0;
}

/* The last place of the order, from `at` on, where x is read or written. What enters first and is read in order is
 * there for all micro-batches; parameters of norms get their gradients at the end. */
static size_t last_use(train_do *const *all, size_t n, size_t at, const train_tensor *x)
{
    size_t last = at;
    for (size_t i = at + 1; i < n; i++) {
        const int read = reads(all[i], x);
        if (read && all[at]->when == WHEN_FIRST && all[i]->when != WHEN_FIRST)
            return SIZE_MAX;
        if (read && all[i]->work == WORK_ROWNORM_BACK)
            return n;
        if (read || writes(all[i], x))
            last = i;
    }
    return last;
}

/* ---- blocks ---- */

/* The smallest that is free at a place and holds n numbers, but no more than twice as many; NULL: none. */
static train_block *free_block(const train *t, size_t n, size_t at)
{
    train_block *best = NULL;
    for (size_t i = 0; i < t->n_blocks; i++) {
        train_block *b = &t->blocks[i];
        const size_t has = b->tensor.rows;
        if (b->free <= at && has >= n && has / 2 <= n && (!best || has < best->tensor.rows))
            best = b;
    }
    return best;
}

static train_block *new_block(train *t, size_t n, char *error)
{
    train_block *all = realloc(t->blocks, (t->n_blocks + 1) * sizeof *all);
    if (!all) {
        train_fail(error, "out of memory");
        return NULL;
    }
    t->blocks = all;
    train_block *b = &all[t->n_blocks];
    *b = (train_block){.tensor = {.format = mpsim_format_find("binary32"), .rows = n, .cols = 1}};
    if (t->e->ops->alloc(t->e, &b->tensor)) {
        train_engine_failed(t, "memory of a pass", error);
        return NULL;
    }
    t->n_blocks++;
    return b;
}

/* until: SIZE_MAX: for ever. */
static int take_block(train *t, train_tensor *x, size_t at, size_t until, char *error)
{
    const size_t n = x->rows * x->cols;
    train_block *b = free_block(t, n, at);
    if (!b)
        b = new_block(t, n, error);
    if (!b)
        return -1;
    b->free = until == SIZE_MAX ? until : until + 1;
    x->data = b->tensor.data;
    x->inverse = 1;
    return 0;
}

/* Tensors of the operation at a place: those that stay, or the others. */
static int place_results(train *t, train_do *const *all, size_t n, size_t at, int staying, char *error)
{
    for (size_t k = 0; k < all[at]->n; k++) {
        train_result *r = &all[at]->results[k];
        if (r->to != &r->own)
            continue;
        const size_t until = last_use(all, n, at, r->to);
        if ((until == SIZE_MAX) == staying && take_block(t, r->to, staying ? 0 : at, until, error))
            return -1;
    }
    return 0;
}

int train_blocks_place(train *t, train_pass *p, char *error)
{
    int code = 0;
    size_t n = 0;
    train_do **all = in_order(p, &n);
    if (!all)
        return train_fail(error, "out of memory");
    for (size_t i = 0; i < t->n_blocks; i++)
        t->blocks[i].free = 0;
    for (int staying = 1; staying >= 0; staying--)
        for (size_t i = 0; i < n && !code; i++)
            code = place_results(t, all, n, i, staying, error);
    free(all);
    return code;
}

int train_blocks_try(train *t, const mpsim_format *f)
{
    train_tensor x = {.format = f, .rows = 1, .cols = 1};
    if (t->e->ops->alloc(t->e, &x))
        return -1;
    t->e->ops->release(t->e, &x);
    return 0;
}

void train_blocks_close(train *t)
{
    for (size_t i = 0; i < t->n_blocks; i++)
        t->e->ops->release(t->e, &t->blocks[i].tensor);
    free(t->blocks);
    t->blocks = NULL;
    t->n_blocks = 0;
}
