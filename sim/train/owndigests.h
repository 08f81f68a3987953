/* owndigests.h -- the digests that a file of tensors carries of itself: one of every tensor, and one of all
 * else that it says. A single bit that changes in either is found.
 *
 * They are a text: a line "NAME DIGEST" for every tensor in the order of the file, and "all DIGEST",
 * which is that of the metadata, of these lines, and of names, formats and shapes, in their order. */
#ifndef MPSIM_SIM_TRAIN_OWNDIGESTS_H
#define MPSIM_SIM_TRAIN_OWNDIGESTS_H

#include "store.h"

/* own_digests_text -- of what stored_write is to write, in its order, to be freed; NULL: out of memory. */
char *own_digests_text(const stored_list *l, const char *const (*metadata)[2], size_t n_metadata);

/* own_digests_check -- whether a file is what was written, the text being its metadata `key`: 0, or -1 with
 * *error filled, which names the tensor that is not. */
int own_digests_check(trace *t, const char *key, trace_error *error);

#endif
