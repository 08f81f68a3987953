/* tensor.c -- see tensor.h.
 *
 * A tensor is read in blocks; a block is cut into slices, and slice k always goes to group k.
 * Since groups merge exactly, neither the cutting nor the threads can be seen in the result. */
#include "tensor.h"

#include "../cli/stream.h"

#include <train/parallel.h>

#include <stdlib.h>
#include <string.h>

enum { SLICES = 16, SLICE = 1 << 14, BLOCK = SLICES * SLICE };

int group_init(group *g, size_t n_casts, int histogram)
{
    memset(g, 0, sizeof *g);
    g->n_casts = n_casts;
    g->casts = calloc(n_casts ? n_casts : 1, sizeof *g->casts);
    g->histogram = histogram ? calloc(1, sizeof *g->histogram) : NULL;
    if (g->casts && (!histogram || g->histogram)) {
        group_reset(g);
        return 0;
    }
    group_clear(g);
    return -1;
}

void group_reset(group *g)
{
    g->tensors = g->scaled = 0;
    mpsim_stats_init(&g->stats);
    if (g->histogram)
        mpsim_histogram_init(g->histogram);
    for (size_t i = 0; i < g->n_casts; i++)
        mpsim_cast_stats_init(&g->casts[i]);
}

void group_merge(group *to, const group *from)
{
    to->tensors += from->tensors;
    to->scaled += from->scaled;
    mpsim_stats_merge(&to->stats, &from->stats);
    if (to->histogram)
        mpsim_histogram_merge(to->histogram, from->histogram);
    for (size_t i = 0; i < to->n_casts; i++)
        mpsim_cast_stats_merge(&to->casts[i], &from->casts[i]);
}

void group_clear(group *g)
{
    free(g->casts);
    free(g->histogram);
    memset(g, 0, sizeof *g);
}

/* The first target of the format of target i; those of a format differ in their scales. */
static size_t first_of_format(const target_list *l, size_t i)
{
    while (i > 0 && l->items[i - 1].label == l->items[i].label)
        i--;
    return i;
}

int group_shows(const group *g, const target_list *targets, size_t i, double *scale)
{
    const int plain = g->tensors > 0 && g->scaled == 0;
    *scale = plain ? 1 : targets->items[i].rounding.scale;
    return !plain || first_of_format(targets, i) == i;
}

struct tensorstat {
    const target_list *targets;
    uint64_t seed;
    int n_groups;
    group slices[SLICES];
    int used[SLICES];
    /* the block at hand */
    double *x;
    size_t n;
    uint64_t first, stream;
    const mpsim_format *source;
    int scaled;
};

tensorstat *tensorstat_new(const target_list *targets, uint64_t seed, int histogram)
{
    tensorstat *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->targets = targets;
    s->seed = seed;
    s->x = malloc(BLOCK * sizeof *s->x);
    while (s->x && s->n_groups < SLICES &&
           group_init(&s->slices[s->n_groups], targets->count, histogram) == 0)
        s->n_groups++;
    if (s->n_groups == SLICES)
        return s;
    tensorstat_free(s);
    return NULL;
}

void tensorstat_free(tensorstat *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_groups; i++)
        group_clear(&s->slices[i]);
    free(s->x);
    free(s);
}

static void run_slice(int k, void *context)
{
    tensorstat *s = context;
    group *g = &s->slices[k];
    const size_t at = (size_t)k * SLICE, n = s->n - at < SLICE ? s->n - at : SLICE;
    if (!s->used[k])
        group_reset(g);
    s->used[k] = 1;
    mpsim_stats_add(&g->stats, s->x + at, n);
    if (g->histogram)
        mpsim_histogram_add(g->histogram, s->x + at, n);
    const mpsim_rng rng = {s->seed, s->stream, s->first + at};
    for (size_t i = 0; i < s->targets->count; i++) {
        const target *t = &s->targets->items[i];
        mpsim_rounding r = target_rounding(t, s->source);
        if (!s->scaled && first_of_format(s->targets, i) != i)
            continue;
        r.scale = s->scaled ? r.scale : 1;
        /* formats and roundings were checked when the targets were made */
        (void)mpsim_cast_stats_add(&g->casts[i], &t->format, &r, &rng, s->x + at, n);
    }
}

int tensorstat_run(tensorstat *s, trace *t, size_t i, int scaled, group *g, trace_error *error)
{
    const trace_tensor *tensor = trace_at(t, i);
    memset(s->used, 0, sizeof s->used);
    group_reset(g);
    s->stream = tensor_stream(t, tensor);
    s->first = 0;
    s->source = tensor->format;
    s->scaled = scaled;
    if (trace_select(t, i, error))
        return -1;
    for (;;) {
        if (trace_read(t, s->x, BLOCK, &s->n, error))
            return -1;
        if (s->n == 0)
            break;
        parallel_for((int)((s->n + SLICE - 1) / SLICE), run_slice, s);
        s->first += s->n;
    }
    for (int k = 0; k < SLICES; k++)
        if (s->used[k])
            group_merge(g, &s->slices[k]);
    for (size_t k = 0; k < g->n_casts && !scaled; k++)
        g->casts[k] = g->casts[first_of_format(s->targets, k)];
    g->tensors = 1;
    g->scaled = scaled != 0;
    return 0;
}
