/* walk.h -- two tensors side by side, in pieces, on as many threads as are lent. */
#pragma once

#include "../pass/elements.h"
#include "side.h"

/* A tensor of a side, its elements by rows, read from anywhere. */
typedef struct source {
    const side_tensor *tensor;
    elements from;
} source;

/* diff_source_open -- 0, or -1 with *error; pass_elements_close in any case, also of what was never opened and is all zeros. */
int diff_source_open(source *s, side *of, const side_tensor *t, trace_error *error);

enum { WALK_PIECE = 8192 }; /* elements that are looked at together */

/* Elements first to first + n - 1 of B, and the elements of A beside them. */
typedef struct walk_piece {
    uint64_t first;
    size_t n;
    const void *codes[2];
    const double *values[2];
} walk_piece;

/* Called for every piece, at once for those of several lanes; a lane is one at a time. What the lanes gather has
 * to merge exactly: which lane has which piece is open. 0; or 1: enough was seen, later pieces may be left out. */
typedef int walk_look(void *context, int lane, const walk_piece *p);

typedef struct walk {
    source of[2];
    int lanes;    /* 1: this thread alone            */
    size_t piece; /* elements that fit in what a lane has */
    struct walk_lane *own;
} walk;

/* diff_walk_open -- to be closed by diff_walk_close, which closes the sources, too. */
void diff_walk_open(walk *w, int lanes);
void diff_walk_close(walk *w);

/* diff_walk_range -- look at elements first to end - 1 of B beside those of A `shift` behind them. With
 * `values` they are decoded. 0, or -1 with *error. */
int diff_walk_range(walk *w, uint64_t first, uint64_t end, int64_t shift, int values, walk_look *look, void *context,
                    trace_error *error);

/* diff_walk_equal -- whether A's elements are B's (as many, of one format), in their codes: *equal. 0, or -1 with *error. */
int diff_walk_equal(walk *w, int *equal, trace_error *error);

/* diff_walk_same -- whether two tensors are the same numbers in the same codes, whatever their shape: *same. 0, or -1
 * with *error. */
int diff_walk_same(side *a, const side_tensor *x, side *b, const side_tensor *y, int lanes, int *same,
                   trace_error *error);
