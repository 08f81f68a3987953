/* arrays.h -- the arrays of an operation, from files of tensors: a tensor's name, or that of its file, is its role. */
#pragma once

#include "../input/input.h"
#include "judge.h"

enum { ARRAYS_MOST = 16 };

typedef struct judge_arrays {
    mpsim_judge_array of[ARRAYS_MOST];
    char *names[ARRAYS_MOST]; /* the roles, in memory of their own  */
    void *codes[ARRAYS_MOST];
    mpsim_format formats[ARRAYS_MOST];
    size_t n;
    size_t matrices[ARRAYS_MOST], batches[ARRAYS_MOST]; /* [batch, heads, rows, columns]: batch x heads, batch */
    mpsim_judge_kind kind;
    const option_list *as; /* ROLE=NAME */
    char found[200];       /* the names of the tensors in the files, for messages */
} judge_arrays;

/* judge_arrays_check -- whether each --role is ROLE=NAME with a role of the kind: 0, or an exit code after a message. */
int judge_arrays_check(const judge_arrays *a);
/* judge_arrays_read -- from all files. 0, or an exit code after a message; judge_arrays_clear in any case. */
int judge_arrays_read(judge_arrays *a, input *in);
/* judge_codes_read -- the codes of tensor i, one row after the other, or its bytes where it has no format: to be freed. NULL with *error. */
void *judge_codes_read(trace *t, size_t i, trace_error *error);
/* judge_arrays_missing -- a role that must be there and has no array; NULL: none. */
const char *judge_arrays_missing(const judge_arrays *a);
void judge_arrays_clear(judge_arrays *a);
