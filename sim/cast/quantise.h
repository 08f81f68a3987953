/* quantise.h -- a file under a block recipe: its matrices quantised in a layout of checkpoints, or as the values that
 * they stand for; its other tensors as they are. */
#pragma once

#include "../input/input.h"
#include "../quant/quant.h"
#include "contents.h"
#include "pairs.h"
#include "recipe.h"

typedef struct quantise_options {
    const cast_recipe *how;
    const char *path, *layout;
    int swizzled, columns, widen, npy, counted;
    int only;         /* what is not selected is not copied      */
    int may_be_none;  /* nothing to quantise is not an error     */
    const char *file; /* of cast_contents_of                          */
    uint64_t seed;
    unread_list *lacks;
    const option_list *keep; /* names of tensors that stay as they are, beside those that are no matrices */
} quantise_options;

typedef struct quantise_result {
    size_t quantised, kept;
    uint64_t elements;
    contents all;        /* without items: how many were copied, or left out */
    mpsim_counts counts; /* if counted                                       */
} quantise_result;

/* cast_quantise_file -- the tensors of t, with notes of what is left out. 0, or an exit code after a message; then nothing is written. */
int cast_quantise_file(const quantise_options *o, const input *in, trace *t, quantise_result *r);

/* One tensor of the input, and what is written of it. */
typedef struct quantised {
    size_t index;
    const trace_tensor *x;
    const char *name;
    const trace_copy *copy; /* NULL: it is not copied */
    int kept;
    quant_geometry *g;    /* NULL: kept, or values */
    int has[QUANT_PARTS]; /* which parts there are; of what has no geometry the first */
    char *names[QUANT_PARTS];
    uint64_t at[QUANT_PARTS];
} quantised;

/* cast_quantise_metadata -- those of the input, how the output was made, and of every tensor what its layout says and
 * mpsim/sim/quant/describe.h; of torchao's layout its own instead of those of the input (about.c). */
void cast_quantise_metadata(pairs *p, const quantise_options *o, const trace *t, const quantised *q, size_t n);
