/* textfile.h -- a whole text file in memory, however large or endless what its name leads to. */
#pragma once

#include "trace.h"

#include <stddef.h>
#include <sys/types.h>

/* trace_text_file_whole -- all bytes of a regular file, a pipe or "-" (standard input, whatever it is) and a
 * zero byte behind them, to be freed; *n: how many. n NULL: a text with a zero byte in it is refused.
 * More than `most` bytes are, too: no more is read of what has no end. Folders, devices and sockets
 * are refused unread; so is a pipe that nobody has begun to write to within two seconds. What is read
 * is an input, which no output replaces.
 *
 * NULL with *error filled ("PATH: what"; exit code 3, or 4 where it cannot be opened or read). */
char *trace_text_file_whole(const char *path, size_t most, size_t *n, trace_error *error);

/* trace_text_file_open -- what of it is a file's: a descriptor of what may be read, an input now; -1 with *error.
 * trace_text_file_next -- up to `room` more bytes, 0 at the end, -1 with *error; `first`: none was read yet, so
 * that the writer of a pipe is waited for. `path` is for messages. */
int trace_text_file_open(const char *path, trace_error *error);
ssize_t trace_text_file_next(int fd, const char *path, char *to, size_t room, int first, trace_error *error);
