/* kinds.h -- what the files that find kinds share: kinds.c, fqn.c and parameters.c. */
#pragma once

#include "convention.h"
#include "impl.h"

/* How the kind of a tensor was found: by a row of the table, or by rules of the user. */
typedef struct kinds_source {
    const convention *row;          /* NULL: by none */
    unsigned char mapped, numbered; /* numbered: its fqn came from elsewhere than its name */
} kinds_source;

/* fqn.c */

/* trace_kinds_fqn -- the fqn of a match in `name`; it lives as long as t. NULL: no memory. */
const char *trace_kinds_fqn(trace *t, const char *name, const convention_match *m);
/* trace_kinds_bare_fqn -- a whole name as a fqn; NULL if it is too long. */
const char *trace_kinds_bare_fqn(const char *name, char *to, size_t size);

/* trace_kinds_is_number -- whether a fqn is digits alone. */
int trace_kinds_is_number(const char *fqn);

/* parameters.c; `from` has an element for each tensor of t */

/* trace_kinds_number_parameters -- numbers of parameters, as torch's optimizers have them, become names where the file
 * says which they are. 0, or -1: no memory. */
int trace_kinds_number_parameters(trace *t, kinds_source *from);
/* trace_kinds_find_partners -- tensors without a kind that have the name of a parameter whose gradient or state is
 * in the file are its weights. 0, or -1: no memory. */
int trace_kinds_find_partners(trace *t, const kinds_source *from);
