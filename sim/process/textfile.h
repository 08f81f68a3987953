/* textfile.h -- texts that all processes of a command have to read alike. */
#pragma once

#include "../trace/textfile.h"

/* text_file_read -- trace_text_file_whole; what was read is compared where the processes meet. */
char *text_file_read(const char *path, size_t most, size_t *n, trace_error *error);
