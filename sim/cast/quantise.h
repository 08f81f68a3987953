/* quantise.h -- a file under a block recipe: its matrices quantised in a layout of checkpoints, or as the values that
 * they stand for; its other tensors as they are. */
#ifndef MPSIM_SIM_CAST_QUANTISE_H
#define MPSIM_SIM_CAST_QUANTISE_H

#include "../cli/input.h"
#include "../quant/quant.h"
#include "pairs.h"
#include "recipe.h"

typedef struct quantise_options {
    const cast_recipe *how;
    const char *path, *layout;
    int swizzled, columns, widen, npy, counted;
    uint64_t seed;
    const option_list *keep; /* names of tensors that stay as they are, beside those that are no matrices */
} quantise_options;

typedef struct quantise_result {
    size_t quantised, kept;
    uint64_t elements, left_out; /* left out: tensors without floating-point numbers */
    uint64_t unselected, unselected_elements; /* that --match or --kind leaves out */
    mpsim_counts counts;         /* if counted                                        */
} quantise_result;

/* quantise_file -- the selected tensors of t. 0, or an exit code after a message; then nothing is written. */
int quantise_file(const quantise_options *o, const input *in, trace *t, quantise_result *r);

/* One tensor of the input, and what is written of it. */
typedef struct quantised {
    size_t index;
    const trace_tensor *x;
    const char *name;
    int kept;
    quant_geometry *g;     /* NULL: kept, or values */
    int has[QUANT_PARTS];  /* which parts there are; of what has no geometry the first */
    char *names[QUANT_PARTS];
    uint64_t at[QUANT_PARTS];
} quantised;

/* quantise_metadata -- those of the input, how the output was made, and of every tensor what its layout says and
 * mpsim/sim/quant/describe.h; of torchao's layout its own instead of those of the input (about.c). */
void quantise_metadata(pairs *p, const quantise_options *o, const trace *t, const quantised *q, size_t n);

#endif
