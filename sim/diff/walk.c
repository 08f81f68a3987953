/* walk.c -- see walk.h. */
#include "walk.h"

#include <mpsim/mpsim.h>
#include <train/parallel.h>

#include <stdlib.h>
#include <string.h>

enum { PIECES = 16 }; /* that a lane takes at once */

typedef struct walk_lane {
    unsigned char *codes[2];
    double *values[2];
    uint64_t first, end; /* of what it has at hand */
    int failed, enough;
    trace_error error;
} walk_lane;

/* What the lanes share on the way. */
typedef struct stride {
    walk *w;
    int64_t shift;
    int values;
    walk_look *look;
    void *context;
} stride;

int walk_open(walk *w, int lanes)
{
    const uint64_t a = w->of[0].tensor->count, b = w->of[1].tensor->count, most = a > b ? a : b;
    w->piece = most < WALK_PIECE ? (size_t)most : WALK_PIECE;
    w->lanes = lanes > 1 && source_is_flat(&w->of[0]) && source_is_flat(&w->of[1]) ? lanes : 1;
    w->own = calloc((size_t)w->lanes, sizeof *w->own);
    for (int i = 0; w->own && i < w->lanes; i++)
        for (int k = 0; k < 2; k++)
            if (!(w->own[i].codes[k] = malloc(w->piece * w->of[k].width + 1)))
                return -1;
    return w->own ? 0 : -1;
}

void walk_close(walk *w)
{
    for (int i = 0; w->own && i < w->lanes; i++)
        for (int k = 0; k < 2; k++) {
            free(w->own[i].codes[k]);
            free(w->own[i].values[k]);
        }
    free(w->own);
    w->own = NULL;
    source_free(&w->of[0]);
    source_free(&w->of[1]);
}

static int read_piece(const stride *s, walk_lane *l, walk_piece *p)
{
    for (int k = 0; k < 2; k++) {
        if (s->values && !l->values[k] && !(l->values[k] = malloc(s->w->piece * sizeof(double))))
            return trace_error_set(&l->error, EXIT_IO, trace_path(s->w->of[k].t), UINT64_MAX, "out of memory");
        p->values[k] = l->values[k];
        source *from = &s->w->of[k];
        if (source_read(from, k ? p->first : p->first + (uint64_t)s->shift, l->codes[k], p->n, &l->error))
            return -1;
        if (s->values)
            mpsim_decode_array(from->tensor->format, l->values[k], l->codes[k], p->n);
    }
    return 0;
}

static void run_lane(int i, void *context)
{
    const stride *s = context;
    walk_lane *l = &s->w->own[i];
    walk_piece p = {.codes = {l->codes[0], l->codes[1]}};
    for (p.first = l->first; p.first < l->end && !l->failed && !l->enough; p.first += p.n) {
        p.n = l->end - p.first < s->w->piece ? (size_t)(l->end - p.first) : s->w->piece;
        l->failed = read_piece(s, l, &p);
        if (!l->failed)
            l->enough = s->look(s->context, i, &p);
    }
}

/* Give the lanes what is next; how many have something to do. */
static int hand_out(walk *w, uint64_t *first, uint64_t end)
{
    const uint64_t most = (uint64_t)WALK_PIECE * PIECES;
    int n = 0;
    for (; n < w->lanes && *first < end; n++) {
        walk_lane *l = &w->own[n];
        l->first = *first;
        l->end = end - *first < most ? end : *first + most;
        *first = l->end;
    }
    return n;
}

int walk_range(walk *w, uint64_t first, uint64_t end, int64_t shift, int values, walk_look *look, void *context,
               trace_error *error)
{
    stride s = {.w = w, .shift = shift, .values = values, .look = look, .context = context};
    for (int i = 0; i < w->lanes; i++)
        w->own[i].failed = w->own[i].enough = 0;
    while (first < end) {
        const int n = hand_out(w, &first, end);
        int enough = 0;
        if (n > 1)
            parallel_for(n, run_lane, &s);
        else
            run_lane(0, &s);
        for (int i = 0; i < n; i++) {
            if (w->own[i].failed) {
                *error = w->own[i].error;
                return -1;
            }
            enough |= w->own[i].enough;
        }
        if (enough)
            return 0;
    }
    return 0;
}

static int look_equal(void *context, int lane, const walk_piece *p)
{
    const walk *w = context;
    (void)lane;
    return memcmp(p->codes[0], p->codes[1], p->n * w->of[1].width) != 0;
}

int walk_equal(walk *w, uint64_t first, uint64_t end, int64_t shift, int *equal, trace_error *error)
{
    if (walk_range(w, first, end, shift, 0, look_equal, w, error))
        return -1;
    *equal = 1;
    for (int i = 0; first < end && i < w->lanes; i++)
        *equal &= !w->own[i].enough;
    return 0;
}

int walk_same(side *a, const side_tensor *x, side *b, const side_tensor *y, int lanes, int *same,
              trace_error *error)
{
    walk w = {.lanes = 0};
    *same = 0;
    if (!x->format || !y->format || x->count != y->count || !mpsim_format_same(x->format, y->format))
        return 0;
    if (source_open(&w.of[0], a, x, error) || source_open(&w.of[1], b, y, error))
        return -1;
    int bad = walk_open(&w, lanes) ? trace_error_set(error, EXIT_IO, x->file->path, UINT64_MAX, "out of memory")
                                   : walk_equal(&w, 0, y->count, 0, same, error);
    walk_close(&w);
    return bad;
}
