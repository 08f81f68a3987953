/* tiles.h -- one tensor under a block recipe, on all threads: a tile at a time is read, quantised and laid into the
 * parts of a file, so that memory does not grow with the tensor. */
#pragma once

#include "lay.h"
#include "recipe.h"

typedef struct quantising {
    const cast_recipe *how;
    int columns;   /* blocks along the columns of the matrix                                 */
    uint64_t seed; /* of random bits and signs                                               */
    uint64_t stream;
    const quant_geometry *g; /* NULL: values are written, as binary32 numbers                 */
    const elements *from;    /* the tensor, row-major */
    uint64_t rows, cols;
    trace_writer *to;
    uint64_t at[QUANT_PARTS]; /* of the parts in the data; values: the first */
    int counted;
    mpsim_counts counts; /* what the recipe did, if counted                */
    float amax, tensor;  /* NVFP4: of the tensor, and its decode scale     */
} quantising;

/* cast_tiles_run -- all of it but the tensor scale. 0, or -1 with *error filled. */
int cast_tiles_run(quantising *q, trace_error *error);
