/* filekind.h -- what is not a regular file, in words: one table for all messages. */
#pragma once

#include <sys/types.h>

/* file_kind -- "is a directory", "is a FIFO", ...; "is not a regular file" of what has no name here. */
const char *file_kind(mode_t mode);
