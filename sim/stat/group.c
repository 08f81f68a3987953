/* group.c -- see group.h. */
#include "group.h"

#include "../array/array.h"
#include "../process/host.h"

#include <stdlib.h>
#include <string.h>

int stat_group_init(group *g, const target_list *targets, int histogram)
{
    *g = (group){.n_casts = targets->count, .n_unscaled = targets->formats, .n_blocks = targets->blocks.count};
    g->casts = array_zeros(g->n_casts, sizeof *g->casts);
    g->unscaled = array_zeros(g->n_unscaled, sizeof *g->unscaled);
    g->blocks = array_zeros(g->n_blocks, sizeof *g->blocks);
    g->histogram = histogram ? array_zeros(1, sizeof *g->histogram) : NULL;
    if (!g->casts || !g->unscaled || !g->blocks || (histogram && !g->histogram)) {
        stat_group_clear(g);
        return host_no_memory();
    }
    stat_group_reset(g);
    return 0;
}

void stat_group_reset(group *g)
{
    g->tensors = g->scaled = g->roundoff = 0;
    mpsim_stats_init(&g->stats);
    if (g->histogram)
        mpsim_histogram_init(g->histogram);
    for (size_t i = 0; i < g->n_casts; i++)
        mpsim_cast_stats_init(&g->casts[i]);
    for (size_t i = 0; i < g->n_unscaled; i++)
        mpsim_cast_stats_init(&g->unscaled[i]);
    for (size_t i = 0; i < g->n_blocks; i++) {
        g->blocks[i].elements = 0;
        mpsim_block_stats_init(&g->blocks[i].stats);
    }
}

void stat_group_merge(group *to, const group *from)
{
    to->tensors += from->tensors;
    to->scaled += from->scaled;
    to->roundoff += from->roundoff;
    mpsim_stats_merge(&to->stats, &from->stats);
    if (to->histogram)
        mpsim_histogram_merge(to->histogram, from->histogram);
    for (size_t i = 0; i < to->n_casts; i++)
        mpsim_cast_stats_merge(&to->casts[i], &from->casts[i]);
    for (size_t i = 0; i < to->n_unscaled; i++)
        mpsim_cast_stats_merge(&to->unscaled[i], &from->unscaled[i]);
    for (size_t i = 0; i < to->n_blocks; i++) {
        to->blocks[i].elements += from->blocks[i].elements;
        mpsim_block_stats_merge(&to->blocks[i].stats, &from->blocks[i].stats);
    }
}

void stat_group_clear(group *g)
{
    free(g->casts);
    free(g->unscaled);
    free(g->blocks);
    free(g->histogram);
    memset(g, 0, sizeof *g);
}

mpsim_cast_stats *stat_group_own(const group *g, size_t *n)
{
    *n = g->scaled ? g->n_casts : g->n_unscaled;
    return g->scaled ? g->casts : g->unscaled;
}

int stat_group_has_blocks(const group *g, const block_list *l, size_t i)
{
    return g->blocks[i].elements || !g->stats.count || l->items[i].axis == BLOCK_ROWS;
}

size_t stat_group_casts(const group *g)
{
    return g->tensors && !g->scaled ? g->n_unscaled : g->n_casts;
}

void stat_group_cast_at(const group *g, const target_list *targets, size_t i, group_cast *cast)
{
    const int unscaled = g->tensors && !g->scaled;
    cast->to = unscaled ? target_of_format(targets, i) : &targets->items[i];
    cast->scale = unscaled ? 1 : cast->to->rounding.scale;
    cast->stats = unscaled ? g->unscaled[i] : g->casts[i];
    if (!unscaled)
        mpsim_cast_stats_merge(&cast->stats, &g->unscaled[i / targets->scales]);
}
