/* source.h -- a tensor of a side, its elements by rows, read from anywhere. */
#ifndef MPSIM_SIM_DIFF_SOURCE_H
#define MPSIM_SIM_DIFF_SOURCE_H

#include "../pass/elements.h"
#include "side.h"

typedef struct source {
    const side_tensor *tensor;
    elements from;
} source;

/* source_open -- 0, or -1 with *error; source_close in any case, also of what was never opened and is all zeros. */
int source_open(source *s, side *of, const side_tensor *t, trace_error *error);
void source_close(source *s);

/* source_read -- the codes of n elements from `first` on, which are to be there. 0, or -1 with *error. */
int source_read(const source *s, uint64_t first, void *codes, size_t n, trace_error *error);

/* source_load -- keep all elements in memory if they are few enough: then single ones cost less. 1, or 0 if they are too
 * many, or -1 with *error. */
int source_load(source *s, trace_error *error);

#endif
