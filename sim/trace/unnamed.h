/* unnamed.h -- files without a name in TMPDIR, to be written and read. Any thread may call these. */
#pragma once

#include <stdint.h>

/* trace_unnamed_file -- a descriptor, or -1 and errno. The file is gone when it is closed. */
int trace_unnamed_file(void);
const char *trace_unnamed_place(void); /* the folder */
/* trace_unnamed_text -- the same for a text of moderate size, as a report: in memory where TMPDIR takes no file, if the system has such
 * files (Linux: memfd). */
int trace_unnamed_text(void);
/* trace_unnamed_room -- how many bytes such a file may grow by: what is free there, but for a sixteenth that is left to others. */
uint64_t trace_unnamed_room(int fd);

/* For temporary.c, which removes what has a name. trace_unnamed_in -- make them in this folder of TMPDIR from now on; NULL: in TMPDIR.
 * trace_unnamed_guard -- what is called before and after the moment in which such a file has a name. */
void trace_unnamed_in(const char *folder);
void trace_unnamed_guard(void (*enter)(void), void (*leave)(void));
