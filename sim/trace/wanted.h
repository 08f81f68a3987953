/* wanted.h -- which tensors are wanted, and how their files are to be read, in the words of the command line. */
#pragma once

#include "../text/option.h"
#include "trace.h"

/* The words; all zero: every tensor, of files as they are. */
typedef struct wanted_words {
    option_list match, kinds, map;
    const char *dtype, *shape, *assume, *as, *stored;
    uint64_t offset, max_header, max_ratio;
    int big_endian;
} wanted_words;

void wanted_clear(wanted_words *w); /* the lists */

/* wanted_put -- an option by its name without dashes ("1": one without an argument); the value must outlive *w. 0, or -1 with
 * *error filled, whose exit code is 0 where there is no such option. */
int wanted_put(wanted_words *w, const char *name, const char *value, trace_error *error);

/* What they say of the files. It points into itself. */
typedef struct wanted_form {
    trace_options options; /* but for the map */
    mpsim_format dtype, v1, v2, as;
    uint64_t *shape;
} wanted_form;

/* wanted_resolve -- fill *f, which is all zero. 0, or -1 with *error filled: "--dtype: ...". */
int wanted_resolve(wanted_form *f, const wanted_words *w, trace_error *error);
void wanted_form_clear(wanted_form *f);

/* wanted_check_kinds -- whether each word of the list is a kind, or `other` (which may be NULL). 0, or -1 with *error
 * filled: "--OPTION: ...". */
int wanted_check_kinds(const char *option, const option_list *kinds, const char *other, trace_error *error);

/* wanted_matches -- whether --match lets a tensor through; wanted_selects -- that and --kind. */
int wanted_matches(const wanted_words *w, const trace_tensor *t);
int wanted_selects(const wanted_words *w, const trace_tensor *t);

/* wanted_clash -- who needs kinds is lost in a trace in which two tensors would be the same. 0, or -1 with *error filled. */
int wanted_clash(const trace *t, trace_error *error);
