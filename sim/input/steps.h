/* steps.h -- the files of a run in the order of its steps. */
#pragma once

#include "input.h"

/* What a file says of itself. */
typedef struct input_step {
    int64_t step;  /* trace_step; -1: the file does not say              */
    int64_t rank;  /* metadata "mpsim.rank", up to 2^31 - 1; -1: neither */
    int64_t named; /* the step that its path says, which may be another; or -1 */
} input_step;

/* input_order_steps -- open every file once and sort in->tree.paths by step, rank, and the place
 * they had, which input_open made the natural order of paths: rank_0/step_1, rank_1/step_1,
 * rank_0/step_2. Files without a step come first. What can be read only once is not opened and
 * counts as without a step. With --keep-going a file that does not open is told, counted in
 * in->failed and leaves the tree.
 *
 * *steps gets in->tree.count elements, for the paths in their new order; the caller frees them. 0,
 * or an exit code after a message: then *steps is NULL, and the tree as it was. */
int input_order_steps(input *in, input_step **steps);
