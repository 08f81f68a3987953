/* reduce.h -- sums of recorded gradients over ranks, as an all-reduce adds them. */
#pragma once

#include "../report/report.h"

/* reduce_report -- each file is a rank: tensors of the first file whose names match `glob` (NULL: all) are added over
 * all files, in each of the wire formats of a list with commas, in each order, and in both accumulators; written to
 * `path` (NULL: standard output). 0, or an exit code after a message. */
int reduce_report(char **files, size_t n, const char *glob, const char *wires, report_style style, const char *path);
