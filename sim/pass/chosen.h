/* chosen.h -- the one tensor of a file that a command line names, and all of its numbers. */
#pragma once

#include "../trace/trace.h"

enum { CHOSEN_RANK = 8 };

typedef struct chosen {
    double *x; /* row-major                  */
    size_t n;  /* of them, at least one      */
    uint64_t shape[CHOSEN_RANK];
    size_t rank;
    char label[256]; /* its name, or the file's, for people */
} chosen;

/* chosen_find -- which tensor of t matches `glob`; NULL: the only one of floating-point numbers. 0, or an exit code after
 * a message that begins with `verb`, as with the others. */
int chosen_find(size_t *at, trace *t, const char *verb, const char *glob);

/* chosen_read -- its numbers, which must all be finite and at least one. chosen_clear in any case. */
int chosen_read(chosen *c, const char *verb, const char *path, const trace_options *options, const char *glob);
/* chosen_read_from -- of a file that is open: standard input can be read once. */
int chosen_read_from(chosen *c, trace *t, const char *verb, const char *glob);
void chosen_clear(chosen *c);

/* chosen_shape -- "[2, 3]". */
const char *chosen_shape(char *out, size_t size, const chosen *c);
