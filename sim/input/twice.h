/* twice.h -- the same step of a run in two forms, as step_10.safetensors and step_10.npz, or a trace and a checkpoint:
 * both are read, so that their tensors count twice. */
#pragma once

#include "../trace/trace.h"

/* What was seen of files so far; all zero: nothing. */
typedef struct twice_forms {
    struct twice_file *files;
    size_t count;
    void *root; /* the tensors of files */
    size_t tensors;
    size_t found; /* pairs; of the first: */
    char first[1200];
} twice_forms;

/* What of a file is compared. */
typedef struct twice_look {
    const char *path, *layout;
    int64_t step;
    uint64_t form;     /* of layout and convention */
    uint64_t *tensors; /* a hash of kind, fqn, step and ranks of each, or 0; to be freed */
    size_t count;
} twice_look;

/* twice_look_at -- 0; -1 where nothing is compared: a file of no step; EXIT_IO without memory (host.h). */
int twice_look_at(twice_look *l, const trace *t);

/* twice_see, twice_see_look -- another file. A file is the same step in another form if an earlier one has the same step and ranks, another
 * layout or other conventions of names, and a tensor of the same kind and fqn. */
void twice_see(twice_forms *w, const trace *t);
void twice_see_look(twice_forms *w, const twice_look *l);
/* twice_tell -- a note on stderr if there were any, once. */
void twice_tell(twice_forms *w);
void twice_clear(twice_forms *w);
