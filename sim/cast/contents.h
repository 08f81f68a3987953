/* contents.h -- what a file of cast holds: tensors that are cast, and tensors that are copied as they are stored. */
#pragma once

#include "../input/input.h"

typedef struct content {
    size_t index; /* of the tensor in the trace                          */
    int copied;   /* `copy` is written: the tensor itself, or one of its parts */
    trace_copy copy;
} content;

typedef struct contents {
    content *items; /* in the order of the trace */
    size_t n;
    size_t copies; /* tensors that are copied, and their elements           */
    uint64_t copied_elements;
    uint64_t unselected, unselected_elements; /* with `only`: what --match or --kind leaves out        */
    uint64_t no_numbers;                      /* with `only`: selected, without floating-point numbers */
    uint64_t unwritten[2];                    /* no dtype of safetensors holds them; the file has no data of them */
    const trace_tensor *first_unwritten[2];   /* of the trace                                          */
    unread_list *lacks;                       /* of all files: what is not written, and may hold numbers; or NULL */
} contents;

/* cast_contents_of -- of a file, or with `file` (not NULL) of what a trace of several files has in that one (trace_file_of).
 * Without `only` what is not selected, or holds no floating-point numbers, is copied. */
void cast_contents_of(contents *c, unread_list *lacks, const input *in, const trace *t, const char *file, int only);
void cast_contents_clear(contents *c);

/* cast_contents_note -- what was left out. */
void cast_contents_note(const contents *c);
/* cast_contents_print -- the same in a summary: "; 3 tensors of 21 elements copied". */
void cast_contents_print(const contents *c);
