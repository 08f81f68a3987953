/* reduce.h -- sums of recorded gradients over ranks, as an all-reduce adds them. */
#pragma once

#include "../record/record.h"

/* Each file is a rank: tensors of the first file whose names match `glob` (NULL: all) are added over all files, in each of the
 * wire formats of a list with commas, in each order, and in both accumulators. */
typedef struct reduce_options {
    char **files;
    size_t ranks;
    const char *glob, *wires;
    int absolute; /* distancereport.h */
    double above;
    report_style style;
    const char *path; /* NULL: standard output */
} reduce_options;

/* dot_reduce_report -- 0, or an exit code after a message. */
int dot_reduce_report(const reduce_options *o);

extern const report_kind dot_reduce_kind;
