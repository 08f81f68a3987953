/* walk.c -- see walk.h. */
#include "walk.h"

#include "../array/need.h"
#include "../pass/pass.h"

#include <mpsim/mpsim.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { STRIDE = 16 * WALK_PIECE }; /* elements that a lane takes at once */

typedef struct walk_lane {
    unsigned char *codes[2];
    double *values[2];
} walk_lane;

/* What the lanes share on the way. */
typedef struct range {
    walk *w;
    uint64_t first, end;
    int64_t shift;
    int values;
    walk_look *look;
    void *context;
    atomic_int enough;
} range;

int diff_source_open(source *s, side *of, const side_tensor *t, trace_error *error)
{
    memset(s, 0, sizeof *s);
    s->tensor = t;
    trace *from = diff_side_trace(of, t->file, error);
    if (!from)
        return -1;
    const trace_tensor *x = trace_at(from, t->index);
    if (!x || !x->format || x->count != t->count || !mpsim_format_same(x->format, t->format))
        return trace_error_set(error, EXIT_DATA, t->file->path, UINT64_MAX, "has changed while it was read");
    return pass_elements_open(&s->from, from, t->index, ELEMENTS_ROWS, NULL, error);
}

void diff_walk_open(walk *w, int lanes)
{
    const uint64_t a = w->of[0].tensor->count, b = w->of[1].tensor->count, most = a > b ? a : b;
    w->piece = most < WALK_PIECE ? (size_t)most : WALK_PIECE;
    w->lanes = lanes;
    w->own = need_memory((uint64_t)w->lanes, sizeof *w->own);
    for (int i = 0; i < w->lanes; i++)
        for (int k = 0; k < 2; k++)
            w->own[i].codes[k] = need_memory(w->piece, w->of[k].from.width);
}

void diff_walk_close(walk *w)
{
    for (int i = 0; w->own && i < w->lanes; i++)
        for (int k = 0; k < 2; k++) {
            free(w->own[i].codes[k]);
            free(w->own[i].values[k]);
        }
    free(w->own);
    w->own = NULL;
    pass_elements_close(&w->of[0].from);
    pass_elements_close(&w->of[1].from);
}

static int read_piece(const range *r, walk_lane *l, walk_piece *p, trace_error *error)
{
    for (int k = 0; k < 2; k++) {
        const source *from = &r->w->of[k];
        if (r->values && !l->values[k])
            l->values[k] = need_memory(r->w->piece, sizeof(double));
        p->codes[k] = l->codes[k];
        p->values[k] = l->values[k];
        if (pass_elements_codes(&from->from, k ? p->first : p->first + (uint64_t)r->shift, l->codes[k], p->n, error))
            return -1;
        if (r->values)
            mpsim_decode_array(from->tensor->format, l->values[k], l->codes[k], p->n);
    }
    return 0;
}

static int run_stride(void *context, uint64_t k, int lane, trace_error *error)
{
    range *r = context;
    const uint64_t first = r->first + k * STRIDE, end = r->end - first < STRIDE ? r->end : first + STRIDE;
    walk_piece p = {.first = first};
    for (; p.first < end && !atomic_load(&r->enough); p.first += p.n) {
        p.n = end - p.first < r->w->piece ? (size_t)(end - p.first) : r->w->piece;
        if (read_piece(r, &r->w->own[lane], &p, error))
            return -1;
        if (r->look(r->context, lane, &p))
            atomic_store(&r->enough, 1);
    }
    return 0;
}

static int run_range(range *r, trace_error *error)
{
    const uint64_t n = r->first < r->end ? (r->end - r->first - 1) / STRIDE + 1 : 0;
    return pass_pieces(n, r->w->lanes, run_stride, r, NULL, error);
}

int diff_walk_range(walk *w, uint64_t first, uint64_t end, int64_t shift, int values, walk_look *look, void *context,
                    trace_error *error)
{
    range r = {.w = w, .first = first, .end = end, .shift = shift, .values = values, .look = look, .context = context};
    return run_range(&r, error);
}

static int look_equal(void *context, int lane, const walk_piece *p)
{
    const walk *w = context;
    (void)lane;
    return memcmp(p->codes[0], p->codes[1], p->n * w->of[1].from.width) != 0;
}

int diff_walk_equal(walk *w, int *equal, trace_error *error)
{
    range r = {.w = w, .end = w->of[1].tensor->count, .look = look_equal, .context = w};
    if (run_range(&r, error))
        return -1;
    *equal = !atomic_load(&r.enough);
    return 0;
}

int diff_walk_same(side *a, const side_tensor *x, side *b, const side_tensor *y, int lanes, int *same,
                   trace_error *error)
{
    walk w = {.lanes = 0};
    *same = 0;
    if (!x->format || !y->format || x->count != y->count || !mpsim_format_same(x->format, y->format))
        return 0;
    int bad = diff_source_open(&w.of[0], a, x, error) || diff_source_open(&w.of[1], b, y, error);
    if (!bad) {
        diff_walk_open(&w, lanes);
        bad = diff_walk_equal(&w, same, error);
    }
    diff_walk_close(&w);
    return bad;
}
