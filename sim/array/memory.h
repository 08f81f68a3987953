/* memory.h -- texts that are written into memory. */
#pragma once

#include <stdio.h>

/* memory_open -- as open_memstream: the text, which is the caller's, is there when the stream is closed, its length after each fflush,
 * too. The stream has no places: ftell fails.
 * Where memory is lacking the stream has an error, fclose fails and the text is NULL: glibc's own may lose what one
 * fprintf gives and not say so. NULL if it cannot begin. */
FILE *memory_open(char **text, size_t *n);
