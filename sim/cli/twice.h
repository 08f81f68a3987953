/* twice.h -- the same step of a run in two forms, as step_10.safetensors and step_10.npz, or a trace and a checkpoint:
 * both are read, so that their tensors count twice. */
#ifndef MPSIM_SIM_CLI_TWICE_H
#define MPSIM_SIM_CLI_TWICE_H

#include "../trace/trace.h"

/* What was seen of files so far; all zero: nothing. */
typedef struct twice_forms {
    struct twice_file *files;
    size_t count, room;
    void *root; /* the tensors of files */
    size_t tensors;
    size_t found; /* pairs; of the first: */
    char first[1200];
} twice_forms;

/* twice_see -- another file. A file is the same step in another form if an earlier one has the same step and ranks, another
 * layout or other conventions of names, and a tensor of the same kind and fqn. */
void twice_see(twice_forms *w, const trace *t);
/* twice_tell -- a note on stderr if there were any, once. */
void twice_tell(twice_forms *w);
void twice_clear(twice_forms *w);

#endif
