/* elements.h -- the elements of a tensor from any place, by any thread: of the file, or of a copy, where the file can be
 * read from its beginning only or has another order.
 *
 * Code that needs random access, or the rows of a column-major tensor, gets a copy if the file cannot provide them:
 * in memory, or in a temporary file without a name. */
#pragma once

#include "../trace/trace.h"

#include <mpsim/stats.h>
#include <stdatomic.h>

typedef struct elements {
    trace *t;
    size_t i;
    const mpsim_format *format;
    size_t width;     /* bytes of a code */
    int copied, file; /* file: of the copy; -1: it is in memory */
    unsigned char *memory;
} elements;

/* What binary32 does not hold of elements that were read: their room in `zero` is for all of them. */
typedef struct elements_beyond {
    uint64_t infinite; /* finite ones that became infinite: how many, and their squares */
    mpsim_sum squares;
    size_t zeros; /* those that became 0 and are not */
    struct elements_zero {
        size_t at;
        double x;
    } * zero;
} elements_beyond;

void pass_elements_begin(elements_beyond *b); /* of nothing yet */

/* pass_elements_in_rows -- the codes of all elements of a tensor that is stored by columns, `width` bytes each, row-major. */
void pass_elements_in_rows(void *to, const void *codes, const trace_tensor *x, size_t width);

/* As the file has them, or row-major. */
typedef enum elements_order { ELEMENTS_STORED, ELEMENTS_ROWS } elements_order;

/* pass_elements_by_columns -- whether the order of the file is another one than that of rows. */
int pass_elements_by_columns(const trace_tensor *x);

/* pass_elements_open -- of tensor i, which has numbers. Copies what is not flat or in another order: in memory if it is small,
 * else to a temporary file without a name, until *asked (NULL: never) is not 0. 0, or -1 with *error; pass_elements_close in
 * any case. */
int pass_elements_open(elements *e, trace *t, size_t i, elements_order order, const atomic_int *asked,
                       trace_error *error);
void pass_elements_close(elements *e);

/* pass_elements_load -- keep all in memory if they are few enough: then single ones cost less. 1, or 0 if they are too many,
 * or -1 with *error. */
int pass_elements_load(elements *e, trace_error *error);

/* pass_elements_codes -- n of them from `first` on. 0, or -1 with *error. */
int pass_elements_codes(const elements *e, uint64_t first, void *codes, size_t n, trace_error *error);
/* pass_elements_values -- the same as numbers. pass_elements_read: the first n of tensor i by rows, opened and closed. */
int pass_elements_values(const elements *e, uint64_t first, double *to, size_t n, trace_error *error);
int pass_elements_read(double *to, trace *t, size_t i, size_t n, trace_error *error);

/* pass_elements_floats -- codes as binary32 numbers, to[at] and on; those of a wider format are rounded to nearest, and the
 * finite ones that become infinite, or 0, are added to *beyond (NULL: nothing). */
void pass_elements_floats(const elements *e, float *to, size_t at, const void *codes, size_t n,
                          elements_beyond *beyond);
