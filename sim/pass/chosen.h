/* chosen.h -- the one tensor of a file that a command line names, and all of its numbers. */
#pragma once

#include "../trace/trace.h"

enum { CHOSEN_RANK = 64 };

typedef struct chosen {
    const char *verb; /* of messages                          */
    trace *t;         /* open while chosen_take may be called */
    size_t at;        /* of the tensor                        */
    double *x;        /* row-major                            */
    size_t n;         /* of them, at least one                */
    uint64_t shape[CHOSEN_RANK];
    size_t rank;
    char label[256]; /* its name, or the file's, for people */
} chosen;

/* chosen_find -- which tensor of t matches `glob`; NULL: the only one of floating-point numbers. 0, or an exit code after
 * a message that begins with `verb`, as with the others. */
int chosen_find(size_t *at, trace *t, const char *verb, const char *glob);

/* chosen_open -- which tensor it is, and what is known before it is read. chosen_take: its first n numbers. */
int chosen_open(chosen *c, trace *t, const char *verb, const char *glob);
int chosen_take(chosen *c, size_t n);

/* chosen_bad -- EXIT_DATA after a message that names the tensor, and why it is not taken. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int chosen_bad(const chosen *c, const char *text, ...);

/* chosen_read -- its numbers, which must all be finite and at least one. chosen_clear in any case. */
int chosen_read(chosen *c, const char *verb, const char *path, const trace_options *options, const char *glob);
/* chosen_read_from -- of a file that is open: standard input can be read once. */
int chosen_read_from(chosen *c, trace *t, const char *verb, const char *glob);
void chosen_clear(chosen *c);

/* chosen_codes -- what a copy of a tensor of any dtype has as integers of its width, at most 8 bytes; to be freed in any case. 0, or an
 * exit code after a message. */
int chosen_codes(uint64_t **codes, trace *t, const trace_copy *c);
