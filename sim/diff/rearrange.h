/* rearrange.h -- the same elements in other places: axes, rows, shifts, parts that are missing. */
#pragma once

#include "walk.h"

enum { REARRANGE_RANK = 5 }; /* axes are looked at up to this rank */

/* diff_rearrange_axes -- whether B is A with its axes in another order (axes[k]: which of A's is B's axis k), or, with
 * `flip`, with some axes run through backwards (axes[k]: 1). *looked: how many elements were compared; all of them
 * where they are few. 1, 0, or -1 with *error. */
int diff_rearrange_axes(walk *w, int flip, int axes[REARRANGE_RANK], uint64_t *looked, trace_error *error);

/* What rows of one length have in common. */
typedef struct rearrange_rows {
    uint64_t length, rows;
    uint64_t moved;       /* rows that are not those of A at their place     */
    uint64_t first, last; /* of these                                        */
    int whole;            /* every row of B is one of A's                    */
    int within;           /* every row has the elements of A's row, in any order */
} rearrange_rows;

/* diff_rearrange_by_rows -- look at both as rows of `length` elements. 0, or -1 with *error. */
int diff_rearrange_by_rows(walk *w, uint64_t length, rearrange_rows *found, trace_error *error);

/* diff_rearrange_shift -- whether B's elements from `first` to end - 1 are A's that lie `*shift` behind them, but for a
 * tenth: *same of the *of that A has there. 1, 0, or -1 with *error. */
int diff_rearrange_shift(walk *w, uint64_t first, uint64_t end, int64_t *shift, uint64_t *same, uint64_t *of,
                         trace_error *error);

/* diff_rearrange_gap -- of different counts: whether the longer one (0: A) is the other one with elements put in between:
 * they begin at *at, at the beginning of a row of `length` where that can be. 1, 0, or -1 with *error. */
int diff_rearrange_gap(walk *w, uint64_t length, uint64_t *at, trace_error *error);
