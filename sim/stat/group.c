/* group.c -- see group.h. */
#include "group.h"

#include <stdlib.h>
#include <string.h>

int group_init(group *g, const target_list *targets, int histogram)
{
    memset(g, 0, sizeof *g);
    g->n_casts = targets->count;
    g->n_blocks = targets->blocks.count;
    g->casts = calloc(g->n_casts + 1, sizeof *g->casts);
    g->blocks = calloc(g->n_blocks + 1, sizeof *g->blocks);
    g->histogram = histogram ? calloc(1, sizeof *g->histogram) : NULL;
    if (g->casts && g->blocks && (!histogram || g->histogram)) {
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
    for (size_t i = 0; i < g->n_blocks; i++) {
        g->blocks[i].elements = 0;
        mpsim_block_stats_init(&g->blocks[i].stats);
    }
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
    for (size_t i = 0; i < to->n_blocks; i++) {
        to->blocks[i].elements += from->blocks[i].elements;
        mpsim_block_stats_merge(&to->blocks[i].stats, &from->blocks[i].stats);
    }
}

void group_clear(group *g)
{
    free(g->casts);
    free(g->blocks);
    free(g->histogram);
    memset(g, 0, sizeof *g);
}

int target_is_first(const target_list *l, size_t i)
{
    return i == 0 || l->items[i - 1].label != l->items[i].label;
}

void group_spread(group *g, const target_list *targets)
{
    size_t formats = 0;
    for (size_t i = 0; i < g->n_casts; i++)
        formats += (size_t)target_is_first(targets, i);
    for (size_t i = g->n_casts; i-- > 0;) { /* from the end: none is overwritten before it is copied */
        g->casts[i] = g->casts[formats - 1];
        formats -= (size_t)target_is_first(targets, i);
    }
}

int group_shows(const group *g, const target_list *targets, size_t i, double *scale)
{
    const int plain = g->tensors > 0 && g->scaled == 0;
    *scale = plain ? 1 : targets->items[i].rounding.scale;
    return !plain || target_is_first(targets, i);
}
