/* lines.h -- a report of stat as JSON lines (stat --ndjson, mpsim.watch of Python), put together as the report that
 * stat --json writes, which figures read. */
#pragma once

#include <stddef.h>

/* plot_lines_are -- whether a text begins with the first of such lines. */
int plot_lines_are(const char *text, size_t n);

/* plot_lines_joined -- the report, to be freed; the text is, in any case. Records of levels that stat does not write are passed over; so is, with a
 * note, a last line that is cut off, as a training leaves it that was killed. NULL with `error`: "line 3: ..." */
char *plot_lines_joined(char *text, size_t n, const char *path, char error[160]);
