/* plain.h -- a file under a format: its selected tensors cast, the others as they are. */
#pragma once

#include "../input/input.h"
#include "../operand/target.h"
#include "contents.h"

typedef struct plain_options {
    const target *to;
    const mpsim_format *out; /* of the elements that are written: the target's, or a wider one */
    int npy, only;           /* only: what is not selected is not copied                       */
    int summary;
    unread_list *lacks; /* as in contents.h */
} plain_options;

/* cast_plain_file -- the tensors of t that cast_contents_of takes with this `file`, into `path`; notes, and the summary if it is
 * wanted. 0, or an exit code after a message. */
int cast_plain_file(const plain_options *o, uint64_t seed, const input *in, trace *t, const char *file,
                    const char *path);
