/* pieces.h -- numbers of two operands in a form whose sums of products the library adds exactly and fast. */
#pragma once

#include <mpsim/mpsim.h>

/* Each number x of A and y of B becomes `each` numbers of `format`, x' and y', so that x y = x'[0] y'[0] + x'[1] y'[1] + ... */
typedef struct pieces {
    mpsim_format format;
    size_t each;
    void *a, *b; /* each times as many numbers, to be freed */
} pieces;

/* dot_pieces_make -- of n numbers x and m numbers y, all finite: in binary32, if each is the sum of at most two of its numbers, else
 * in binary64 as they are. */
void dot_pieces_make(pieces *p, const double *x, size_t n, const double *y, size_t m);
void dot_pieces_clear(pieces *p);
