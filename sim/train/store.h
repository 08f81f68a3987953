/* store.h -- tensors of a trainer on their way to a safetensors file. */
#pragma once

#include "../trace/trace.h"

#include <train/train.h>

typedef struct stored_tensor {
    char name[2 * TRAIN_NAME];
    const mpsim_format *format; /* of the file */
    uint64_t shape[4], count;
    size_t rank;
    unsigned char *codes; /* little-endian */
} stored_tensor;

typedef struct stored_list {
    stored_tensor *items;
    size_t count;
} stored_list;

/* train_stored_format -- the format in which a file keeps numbers of f: f where safetensors has a dtype
 * for it, else binary32. */
const mpsim_format *train_stored_format(const mpsim_format *f);
/* train_stored_add -- a copy of an item as it is now; every NaN becomes one. 0, or -1 with a line in
 * `error` (TRAIN_ERROR bytes). train_stored_write: all of them as a file, complete or not at all. */
int train_stored_add(stored_list *l, train_engine *e, const train_item *x, char *error);
int train_stored_write(const stored_list *l, const char *path, const char *const (*metadata)[2], size_t n_metadata,
                       trace_error *error);
/* train_stored_digests -- the digests (owndigests.h) of what train_stored_write is to write, in its order, to be freed. */
char *train_stored_digests(const stored_list *l, const char *const (*metadata)[2], size_t n_metadata);
/* train_stored_join -- move all of b to the end of a. */
void train_stored_join(stored_list *a, stored_list *b);
void train_stored_clear(stored_list *l);

/* train_error_exit -- the exit code of an error line of the trainer. */
int train_error_exit(const char *line);
