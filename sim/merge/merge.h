/* merge.h -- parts of a report put together: the report, to the byte that of one run over everything, or a larger
 * part. The order of the parts does not matter.
 *
 * Parts may be files or lie in memory (part_source). Of each the head is read, and all of it once to check digests;
 * then they are read again in the order of the shards, one at a time. So memory is that of a few tensors' numbers
 * and of the sums, whatever the parts are. One thread at a time, since messages and outputs are the program's. */
#pragma once

#include "../stat/form.h"
#include "../stat/part.h"

/* merge_report -- the report of `form`, and what its --fail-if says: the exit code that stat would have. Its messages
 * begin with `verb`. Errors of parts are EXIT_DATA after a message that names the part. */
int merge_report(const char *verb, const part_source *sources, size_t n, const stat_form *form);

/* merge_part -- one part that has all the shards of these, some of which may be missing still, to the output
 * `path`. 0, or an exit code after a message. */
int merge_part(const part_source *sources, size_t n, const char *path);

/* merge_list -- a line for each part to the output `path`: what it is. */
int merge_list(const part_source *sources, size_t n, const char *path);
