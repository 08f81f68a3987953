/* tensor.h -- the accumulators of one group of elements, and filling them from a tensor. */
#ifndef MPSIM_SIM_STAT_TENSOR_H
#define MPSIM_SIM_STAT_TENSOR_H

#include "../cli/target.h"
#include "../trace/trace.h"

#include <mpsim/mpsim.h>

/* What is known of a tensor, a kind, a step or everything: it merges exactly. */
typedef struct group {
    uint64_t tensors;
    uint64_t scaled; /* of them: multiplied by the scale of the target; the others are cast as they are */
    mpsim_stats stats;
    mpsim_histogram *histogram; /* NULL if not asked for */
    mpsim_cast_stats *casts;    /* one for each target   */
    size_t n_casts;
} group;

/* group_init -- 0, or -1 if out of memory. */
int group_init(group *g, size_t n_casts, int histogram);
void group_reset(group *g); /* back to empty */
void group_merge(group *to, const group *from);
void group_clear(group *g);

/* tensorstat -- reads tensors and accounts for them on all threads. */
typedef struct tensorstat tensorstat;

/* NULL if out of memory. `targets` must outlive it. */
tensorstat *tensorstat_new(const target_list *targets, uint64_t seed, int histogram);
void tensorstat_free(tensorstat *s);

/* tensorstat_run -- statistics of tensor i of t, in *g, which is reset first. Unless `scaled` it is
 * cast with the scale 1, once for each format, and that stands for all scales. 0, or -1 with
 * *error filled. */
int tensorstat_run(tensorstat *s, trace *t, size_t i, int scaled, group *g, trace_error *error);

/* group_shows -- whether the cast to target i is one of its own in this group, and with which scale:
 * a group without scaled tensors has one for each format, with the scale 1. */
int group_shows(const group *g, const target_list *targets, size_t i, double *scale);

#endif
