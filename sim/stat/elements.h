/* elements.h -- the elements of a tensor from any place, by any thread: of the file, or where that can be read from its
 * beginning only, of a copy. */
#ifndef MPSIM_SIM_STAT_ELEMENTS_H
#define MPSIM_SIM_STAT_ELEMENTS_H

#include "../trace/trace.h"

#include <mpsim/stats.h>
#include <signal.h>

typedef struct elements {
    trace *t;
    size_t i;
    const mpsim_format *format;
    size_t width;          /* bytes of a code */
    int copied, file;      /* file: of the copy; -1: it is in memory */
    unsigned char *memory;
} elements;

/* What binary32 does not hold of elements that were read: their room in `zero` is for all of them. */
typedef struct elements_beyond {
    uint64_t infinite; /* finite ones that became infinite: how many, and their squares */
    mpsim_sum squares;
    size_t zeros;      /* those that became 0 and are not */
    struct elements_zero {
        size_t at;
        double x;
    } *zero;
} elements_beyond;

/* elements_open -- of tensor i, which has numbers. Copies what is not flat: in memory if it is small, else to a
 * temporary file without a name, until *asked (NULL: never) is not 0. 0, or -1 with *error; elements_close in any
 * case. */
int elements_open(elements *e, trace *t, size_t i, const volatile sig_atomic_t *asked, trace_error *error);
void elements_close(elements *e);

/* elements_codes -- n of them from `first` on. 0, or -1 with *error. */
int elements_codes(const elements *e, uint64_t first, void *codes, size_t n, trace_error *error);

/* elements_floats -- codes as binary32 numbers, to[at] and on; those of a wider format are rounded to nearest, and the
 * finite ones that become infinite, or 0, are added to *beyond. */
void elements_floats(const elements *e, float *to, size_t at, const void *codes, size_t n, elements_beyond *beyond);

#endif
