/* count.h -- the bytes of a training: a model under a policy, of one rank; of the module: parameters.c and
 * activations.c. */
#pragma once

#include "optimizer.h"

typedef enum count_recompute {
    COUNT_RECOMPUTE_NONE,
    COUNT_RECOMPUTE_SELECTIVE, /* the core of attention: what has a s^2 b elements */
    COUNT_RECOMPUTE_FULL       /* but for the inputs of layers                     */
} count_recompute;

/* How it is trained. */
typedef struct count_setting {
    uint64_t ranks;       /* of the data-parallel group                                          */
    unsigned zero;        /* stage: from 1 masters and optimizer state are cut, from 2 gradients,
                             from 3 weights                                                     */
    int master_gradients; /* a binary32 copy of gradients of less bytes beside the masters      */
    int no_transposes;    /* quantised weights are kept along one dimension only                */
    uint64_t tensor_parallel;
    int sequence_parallel, no_dropout, flash;
    count_recompute recompute;
} count_setting;

/* memory_count_parameters -- all components but activations. A part is ceil(n / ranks) elements of each
 * parameter. */
void memory_count_parameters(ledger *l, const shape *s, const plan *p, const optimizer_row *o,
                             const count_setting *how);

/* memory_count_activations -- what the forward pass of a transformer keeps for the backward pass, a micro-batch. */
void memory_count_activations(ledger *l, const shape_transformer *t, const plan *p, const count_setting *how);
