/* tensors.c -- see tensors.h.
 *
 * The tensors are cut into pieces; a thread reads a piece, casts it and writes it at its place. What must be read
 * or written in order (members of archives, pipes), or needs a tensor as a whole (a column-major array that is to
 * be row-major), is left to one thread. */
#include "tensors.h"

#include "../cli/stream.h"

#include <train/parallel.h>

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 17 }; /* elements: what is read and written stays in the cache of a core */

typedef struct piece {
    size_t tensor;  /* of the work */
    uint64_t first; /* element     */
    size_t n;
    uint64_t before; /* elements of the work */
} piece;

/* What a thread has of its own. */
typedef struct lane {
    unsigned char *in, *out;
    mpsim_counts counts;
    int failed_at; /* the piece of the error, or INT_MAX */
    trace_error error;
} lane;

typedef struct item {
    size_t index;
    uint64_t stream;
    const converter *how;
} item;

typedef struct work {
    caster *c;
    trace *t;
    trace_writer *w;
    item *items;
    converter *converters; /* one for each format of the tensors */
    size_t n;
    piece *pieces;
    size_t n_pieces;
    lane *lanes;
    int n_lanes;
    atomic_int failed; /* some piece */
    trace_error *error;
} work;

static int no_memory(const work *k)
{
    return trace_error_set(k->error, 4, trace_path(k->t), UINT64_MAX, "out of memory");
}

/* ---- what is to be done ---- */

static const converter *find_converter(work *k, const mpsim_format *source)
{
    for (const converter *c = k->converters; c; c = c->next)
        if (c->source == source)
            return c;
    converter *c = malloc(sizeof *c);
    if (!c || converter_init(c, k->c->to, source, k->c->out)) {
        free(c);
        return NULL;
    }
    c->next = k->converters;
    k->converters = c;
    return c;
}

static int plan(work *k, const size_t *chosen, size_t n)
{
    k->items = calloc(n + 1, sizeof *k->items);
    if (!k->items)
        return no_memory(k);
    for (size_t i = 0; i < n; i++) {
        const trace_tensor *x = trace_at(k->t, chosen[i]);
        k->items[i] = (item){chosen[i], tensor_stream(k->t, x), find_converter(k, x->format)};
        if (!k->items[i].how)
            return no_memory(k);
        k->n_pieces += (size_t)((x->count + PIECE - 1) / PIECE);
    }
    k->n = n;
    /* parallel_for starts no more threads than there are pieces */
    const size_t lanes = k->n_pieces < (size_t)parallel_threads() ? k->n_pieces : (size_t)parallel_threads();
    k->n_lanes = lanes ? (int)lanes : 1;
    k->lanes = calloc((size_t)k->n_lanes, sizeof *k->lanes);
    if (!k->lanes)
        return no_memory(k);
    for (int i = 0; i < k->n_lanes; i++) {
        k->lanes[i].failed_at = INT_MAX;
        k->lanes[i].in = malloc(PIECE * sizeof(uint64_t));
        k->lanes[i].out = malloc(PIECE * sizeof(uint64_t));
        if (!k->lanes[i].in || !k->lanes[i].out)
            return no_memory(k);
    }
    return 0;
}

static void clear(work *k)
{
    for (int i = 0; k->lanes && i < k->n_lanes; i++) {
        free(k->lanes[i].in);
        free(k->lanes[i].out);
    }
    for (converter *c = k->converters, *next; c; c = next) {
        next = c->next;
        converter_clear(c);
        free(c);
    }
    free(k->lanes);
    free(k->items);
    free(k->pieces);
}

/* What lane l has read, from element `first` of an item. */
static void convert(const work *k, const item *at, uint64_t first, lane *l, void *out, size_t n)
{
    const mpsim_rng rng = {k->c->seed, at->stream, first};
    converter_run(at->how, &rng, out, l->in, n, k->c->counted ? &l->counts : NULL);
}

/* ---- on all threads ---- */

static int cut(work *k)
{
    size_t p = 0;
    uint64_t before = 0;
    k->pieces = calloc(k->n_pieces + 1, sizeof *k->pieces);
    if (!k->pieces)
        return no_memory(k);
    for (size_t i = 0; i < k->n; i++) {
        const uint64_t count = trace_at(k->t, k->items[i].index)->count;
        for (uint64_t first = 0; first < count; first += k->pieces[p++].n) {
            const uint64_t n = count - first < PIECE ? count - first : PIECE;
            k->pieces[p] = (piece){i, first, (size_t)n, before};
            before += n;
        }
    }
    return 0;
}

static void run_piece(int i, void *context)
{
    work *k = context;
    const piece *p = &k->pieces[i];
    const item *at = &k->items[p->tensor];
    lane *l = &k->lanes[parallel_self()];
    const size_t bytes = mpsim_format_code_bytes(k->c->out);
    if (atomic_load(&k->failed) < i)
        return;
    if (trace_codes(k->t, at->index, p->first, l->in, p->n, &l->error) == 0) {
        convert(k, at, p->first, l, l->out, p->n);
        if (trace_writer_data_at(k->w, p->before * bytes, l->out, p->n * bytes, &l->error) == 0)
            return;
    }
    l->failed_at = i;
    int others = atomic_load(&k->failed);
    while (i < others && !atomic_compare_exchange_weak(&k->failed, &others, i))
        continue;
}

static int run_pieces(work *k)
{
    if (cut(k))
        return -1;
    if (k->n_pieces >= INT_MAX)
        return no_memory(k);
    parallel_for((int)k->n_pieces, run_piece, k);
    for (int i = 0; i < k->n_lanes; i++)
        if (k->lanes[i].failed_at < INT_MAX && k->lanes[i].failed_at == atomic_load(&k->failed)) {
            *k->error = k->lanes[i].error;
            return -1;
        }
    return 0;
}

/* ---- a tensor at a time ---- */

unsigned char *tensor_row_major(const unsigned char *codes, const trace_tensor *t, size_t bytes)
{
    unsigned char *out = malloc(t->count ? t->count * bytes : 1);
    uint64_t *index = calloc(t->rank + 1, sizeof *index);
    for (uint64_t i = 0; out && index && i < t->count; i++) {
        uint64_t at = 0;
        for (size_t d = 0; d < t->rank; d++)
            at = at * t->shape[d] + index[d];
        memcpy(out + at * bytes, codes + i * bytes, bytes);
        for (size_t d = 0; d < t->rank && ++index[d] == t->shape[d]; d++)
            index[d] = 0;
    }
    if (!index) {
        free(out);
        out = NULL;
    }
    free(index);
    return out;
}

static int is_reordered(const work *k, const trace_tensor *x)
{
    return x->fortran && k->c->row_major && x->rank > 1;
}

/* The elements of an item go to `whole`, or to the file if that is NULL. */
static int read_tensor(work *k, const item *at, unsigned char *whole)
{
    const size_t bytes = mpsim_format_code_bytes(k->c->out);
    lane *l = &k->lanes[0];
    size_t n = 1;
    if (trace_select(k->t, at->index, k->error))
        return -1;
    for (uint64_t first = 0;; first += n) {
        if (trace_read_codes(k->t, l->in, PIECE, &n, k->error))
            return -1;
        if (n == 0)
            return 0;
        convert(k, at, first, l, whole ? whole + first * bytes : l->out, n);
        if (!whole && trace_writer_data(k->w, l->out, n * bytes, k->error))
            return -1;
    }
}

static int run_tensor(work *k, const item *at)
{
    const trace_tensor *x = trace_at(k->t, at->index);
    const size_t bytes = mpsim_format_code_bytes(k->c->out);
    unsigned char *whole = NULL, *ordered = NULL;
    if (!is_reordered(k, x))
        return read_tensor(k, at, NULL);
    if (!(whole = malloc(x->count ? x->count * bytes : 1)))
        return no_memory(k);
    int result = read_tensor(k, at, whole);
    if (!result) {
        ordered = tensor_row_major(whole, x, bytes);
        result = ordered ? trace_writer_data(k->w, ordered, x->count * bytes, k->error) : no_memory(k);
    }
    free(whole);
    free(ordered);
    return result;
}

int caster_write(caster *c, trace *t, const size_t *chosen, size_t n, trace_writer *w,
                 trace_error *error)
{
    work k = {.c = c, .t = t, .w = w, .failed = INT_MAX, .error = error};
    int result = plan(&k, chosen, n), in_order = !trace_is_flat(t);
    for (size_t i = 0; i < n && !result; i++)
        in_order |= is_reordered(&k, trace_at(t, chosen[i]));
    if (!in_order && !result && trace_writer_has_places(w))
        result = run_pieces(&k);
    else
        for (size_t i = 0; i < n && !result; i++)
            result = run_tensor(&k, &k.items[i]);
    for (int i = 0; i < k.n_lanes && !result; i++) {
        const mpsim_counts *from = &k.lanes[i].counts;
        c->counts.inexact += from->inexact;
        c->counts.underflow += from->underflow;
        c->counts.subnormal += from->subnormal;
        c->counts.overflow += from->overflow;
        c->counts.nan += from->nan;
    }
    clear(&k);
    return result;
}
