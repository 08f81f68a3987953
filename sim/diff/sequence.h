/* sequence.h -- two runs side by side: step by step, tensor by tensor in the order of execution. */
#pragma once

#include "compare.h"
#include "match.h"

/* What was compared. Of a step that one side has not, no tensor and no comparison. */
typedef struct sequence_entry {
    int64_t steps[2];              /* -1: files without a step */
    const side_tensor *tensors[2]; /* NULL: that side has it not */
    match_how how;
    const comparison *compared; /* NULL: the step is missing on the side `missing` */
    int missing;
    int sorted;  /* the order is that of layers and names, not of execution */
    int several; /* ranks: say which */
} sequence_entry;

/* Called for every tensor in order, and for every missing step. 0, or an exit code to stop with. */
typedef int sequence_told(void *context, const sequence_entry *e);

/* diff_sequence_run -- compare A and B. 0, or an exit code after a message. */
int diff_sequence_run(side *a, side *b, const tolerance *within, sequence_told *told, void *context);
