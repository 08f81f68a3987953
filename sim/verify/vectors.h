/* vectors.h -- recorded outputs of tensor cores: an npz for each GPU.
 *
 * Arrays TYPE.a and TYPE.b [n, K], TYPE.c [n], TYPE.d_fp32 and TYPE.d_fp16 [n] hold operands and
 * results of n dot products, in any dtype whose numbers are the values. A set is one array of
 * results with its operands. */
#pragma once

#include "../trace/trace.h"

#include <mpsim/format.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vector_set {
    const char *file; /* name without folder; belongs to the vector_file */
    char name[80];    /* "e4m3.d_fp32"                                   */
    mpsim_format operand, result;
    size_t n, k;
    const unsigned char *a, *b; /* n rows of k codes of `operand`               */
    const uint64_t *c, *d;      /* codes of `result`; c rounded to nearest even    */
} vector_set;

typedef struct vector_file {
    char name[256];
    vector_set *sets;
    size_t count;
    void **blocks; /* what the sets point into */
    size_t n_blocks;
} vector_file;

/* verify_vectors_load -- all sets of a file. 0, or -1 with *error filled: no npz, no set, an array that is
 * missing or has an odd dtype or shape, a value that is no number of its type. */
int verify_vectors_load(vector_file *f, const char *path, trace_error *error);
void verify_vectors_clear(vector_file *f);

/* verify_vectors_find -- the npz files of a folder in natural order, or the one file that `path` is. 0, or
 * -1 with *error filled, also if there is none. */
int verify_vectors_find(trace_tree *files, const char *path, trace_error *error);
