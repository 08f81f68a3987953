/* chosen.h -- the one tensor of a file that a command line names, and all of its numbers. */
#pragma once

#include "../trace/trace.h"

enum { CHOSEN_RANK = 64 };

typedef struct chosen {
    const char *verb; /* of messages                          */
    trace *t;         /* open while pass_chosen_take may be called */
    size_t at;        /* of the tensor                        */
    double *x;        /* row-major                            */
    size_t n;         /* of them, at least one                */
    uint64_t shape[CHOSEN_RANK];
    size_t rank;
    char label[256]; /* its name, or the file's, for people */
} chosen;

/* pass_chosen_find -- which tensor of t matches `glob`; NULL: the only one of floating-point numbers. 0, or an exit code after
 * a message that begins with `verb`, as with the others. */
int pass_chosen_find(size_t *at, trace *t, const char *verb, const char *glob);

/* pass_chosen_open -- which tensor it is, and what is known before it is read. pass_chosen_take: its first n numbers. */
int pass_chosen_open(chosen *c, trace *t, const char *verb, const char *glob);
int pass_chosen_take(chosen *c, size_t n);

/* pass_chosen_bad -- EXIT_DATA after a message that names the tensor, and why it is not taken. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int pass_chosen_bad(const chosen *c, const char *text, ...);

/* pass_chosen_read -- its numbers, which must all be finite and at least one. pass_chosen_clear in any case. */
int pass_chosen_read(chosen *c, const char *verb, const char *path, const trace_options *options, const char *glob);
/* pass_chosen_read_from -- of a file that is open: standard input can be read once. */
int pass_chosen_read_from(chosen *c, trace *t, const char *verb, const char *glob);
void pass_chosen_clear(chosen *c);

/* pass_chosen_codes -- what a copy of a tensor of any dtype has as integers of its width, at most 8 bytes; to be freed in any case. 0, or an
 * exit code after a message. */
int pass_chosen_codes(uint64_t **codes, trace *t, const trace_copy *c);
