/* group.h -- what is known of a group of elements: a tensor, a kind, a step or everything. */
#ifndef MPSIM_SIM_STAT_GROUP_H
#define MPSIM_SIM_STAT_GROUP_H

#include "../cli/target.h"

#include <mpsim/mpsim.h>

/* What a block recipe does to elements. */
typedef struct block_sums {
    uint64_t elements; /* of those of the group: a tensor of one dimension has no columns, and so none along them */
    mpsim_block_stats stats;
} block_sums;

/* It merges exactly. */
typedef struct group {
    uint64_t tensors;
    uint64_t scaled; /* of them: multiplied by the scale of the target; the others are cast as they are */
    mpsim_stats stats;
    mpsim_histogram *histogram; /* NULL if not asked for */
    mpsim_cast_stats *casts;    /* one for each target   */
    size_t n_casts;
    block_sums *blocks;         /* one for each recipe   */
    size_t n_blocks;
} group;

/* group_init -- 0, or -1 if out of memory. */
int group_init(group *g, const target_list *targets, int histogram);
void group_reset(group *g); /* back to empty */
void group_merge(group *to, const group *from);
void group_clear(group *g);

/* group_spread -- casts are those of the formats with the scale 1, in their order: now they stand for all
 * targets of their formats. */
void group_spread(group *g, const target_list *targets);

/* group_shows -- whether the cast to target i is one of its own in this group, and with which scale:
 * a group without scaled tensors has one for each format, with the scale 1. */
int group_shows(const group *g, const target_list *targets, size_t i, double *scale);

/* target_is_first -- whether target i is the first of its format: those of a format differ in their scales. */
int target_is_first(const target_list *l, size_t i);

#endif
