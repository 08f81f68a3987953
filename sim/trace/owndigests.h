/* owndigests.h -- the digests that a checkpoint of mpsim carries of itself: one of every tensor, and one of all
 * else that it says. A single bit that changes in either is found when it is opened, whoever reads it.
 *
 * They are a text: a line "NAME DIGEST" for every tensor in the order of the file, and "all DIGEST",
 * which is that of the metadata, of these lines, and of names, formats and shapes, in their order. */
#pragma once

#include "trace.h"

#define OWN_DIGESTS_KEY "mpsim.train.digests"
#define OWN_DIGESTS_SCHEMA "mpsim-train-checkpoint/2" /* metadata "mpsim.schema" of a file that has them */

/* The digest of all but the tensors' elements; zeros at first. Metadata come first, then tensors, each with the digest of
 * its bytes. */
typedef struct own_sum {
    uint64_t digest, bytes;
} own_sum;
void trace_own_sum_pair(own_sum *s, const char *key, const char *value);
void trace_own_sum_tensor(own_sum *s, const char *name, const mpsim_format *f, const uint64_t *shape, size_t rank,
                          uint64_t digest);

/* trace_own_digests_check -- whether a file is what was written, if it says that it has digests: 0, or -1 with *error filled, which
 * names the tensor that is not. All of its bytes are read. */
int trace_own_digests_check(trace *t, trace_error *error);
