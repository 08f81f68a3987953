/* group.h -- what is known of a group of elements: a tensor, a kind, a step or everything. */
#pragma once

#include "../operand/target.h"

#include <mpsim/mpsim.h>

/* What a block recipe does to elements. */
typedef struct block_sums {
    uint64_t elements; /* of those of the group: a tensor of one dimension has no columns, and so none along them */
    mpsim_block_stats stats;
} block_sums;

/* It merges exactly. Tensors that the scale multiplies are cast to each target; those of the other kinds to each format,
 * with the scale 1. */
typedef struct group {
    uint64_t tensors;
    uint64_t scaled; /* of them: multiplied by the scale of the target */
    uint64_t
        roundoff; /* elements that were left out, as nothing but rounding (trace/roundoff.h); 0 unless that is asked for */
    mpsim_stats stats;
    mpsim_histogram *histogram; /* NULL if not asked for              */
    mpsim_cast_stats *casts;    /* of those that are scaled, one for each target      */
    mpsim_cast_stats *unscaled; /* of those that are not, one for each format         */
    size_t n_casts, n_unscaled;
    block_sums *blocks; /* one for each recipe */
    size_t n_blocks;
} group;

/* stat_group_init -- an empty group; stat_group_clear in any case. 0, or EXIT_IO without memory (host.h). */
int stat_group_init(group *g, const target_list *targets, int histogram);
void stat_group_reset(group *g); /* back to empty */
void stat_group_merge(group *to, const group *from);
void stat_group_clear(group *g);

/* stat_group_own -- the casts of a group of one tensor, which is scaled or not: *n of them. */
mpsim_cast_stats *stat_group_own(const group *g, size_t *n);

/* stat_group_has_blocks -- whether it has elements for recipe i: tensors of one dimension alone have no columns. */
int stat_group_has_blocks(const group *g, const block_list *l, size_t i);

/* A cast that a report shows: to a target, of all tensors, where some are scaled; else to a format, with the scale 1. */
typedef struct group_cast {
    const target *to;
    double scale;
    mpsim_cast_stats stats;
} group_cast;

/* stat_group_casts -- how many there are. stat_group_cast_at -- number i of them, of a group of these targets. */
size_t stat_group_casts(const group *g);
void stat_group_cast_at(const group *g, const target_list *targets, size_t i, group_cast *cast);
