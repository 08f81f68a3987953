/* whole.h -- all requested bytes of an open file, however many calls that takes. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* trace_whole_write -- at the position of the file; trace_whole_write_at -- at a place. 0, or -1 and errno. */
int trace_whole_write(int fd, const void *p, size_t n);
int trace_whole_write_at(int fd, const void *p, size_t n, uint64_t at);

/* trace_whole_read_at -- how many bytes were read, fewer than n only where the file ends; or -1 and errno. */
ssize_t trace_whole_read_at(int fd, void *p, size_t n, uint64_t at);

/* trace_whole_stream -- stdio over a descriptor, mode "r", "w" or "r+": it asks again where stdio gives up, and *error, unless it is 0
 * already or `error` NULL, becomes the errno of the first call that fails. fclose leaves fd open. NULL: out of memory. */
FILE *trace_whole_stream(int fd, const char *mode, int *error);
