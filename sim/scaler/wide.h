/* wide.h -- which gradients a run with a loss scaler had in binary32: sums over micro-batches, norms under autocast. */
#pragma once

#include "../input/input.h"
#include "../input/names.h"

#include <mpsim/mpsim.h>

typedef struct wide_gradient {
    char *name; /* of the tensor */
    int shown;  /* by a number that the narrow format cannot hold; else by the record's accumulation alone */
} wide_gradient;

typedef struct wide_gradients {
    wide_gradient *items;
    size_t count;
    nameindex names;
} wide_gradients;

/* scaler_wide_find -- the selected tensors of the files of `in` that are binary32 sums by the record, or that hold, scaled as
 * they were, a number that f has not. Files that say no loss scale but 1, and what can
 * be read once only, say nothing of that. 0, or an exit code. */
int scaler_wide_find(wide_gradients *w, input *in, const mpsim_format *f);
int scaler_wide_has(const wide_gradients *w, const char *name);
size_t scaler_wide_shown(const wide_gradients *w); /* how many a number shows */
void scaler_wide_clear(wide_gradients *w);
