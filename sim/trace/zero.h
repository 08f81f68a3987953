/* zero.h -- what the files of the ZeRO layout share: zero.c reads what the files of a checkpoint say, zerotensor.c
 * makes tensors of it. */
#pragma once

#include "parts.h"

enum { ZERO_KINDS = 3 };
extern const char *const trace_zero_kinds[ZERO_KINDS]; /* master, opt.m, opt.v */

typedef struct zero_parameter {
    const char *name;
    uint64_t *shape, count, padding; /* padding: behind it, stages 1 and 2 */
    size_t rank;
    uint32_t group;
} zero_parameter;

/* A vector of one rank and group: the tensor of each kind in the rank's file, and how much of it is used. */
typedef struct zero_vector {
    uint32_t entry[ZERO_KINDS]; /* PARTS_ONLY: there is none */
    uint64_t count;
} zero_vector;

typedef struct zero_checkpoint {
    trace *t;
    trace_error *error;
    int stage;          /* 2: 1 or 2 */
    const char **files; /* by rank */
    uint32_t *sources;
    size_t ranks, ranks_room, groups;
    const char *model;
    zero_parameter *parameters;
    const char **names; /* of them, sorted */
    size_t n;
    zero_vector *vectors; /* [rank][group] */
} zero_checkpoint;

/* trace_zero_tensors -- the tensors of all parameters and kinds. */
int trace_zero_tensors(zero_checkpoint *c);
