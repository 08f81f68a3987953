/* join.h -- the sections of parts, in the order of the shards, told to a tally as one run tells it. */
#pragma once

#include "parts.h"

/* merge_join_parts -- 0, or an exit code after a message; *first is the path of the first file, to be freed. */
int merge_join_parts(const parts *p, const target_list *targets, int histogram, tally *to, char **first);
