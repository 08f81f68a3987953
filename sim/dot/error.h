/* error.h -- how far the results of a model are from the exact ones. */
#pragma once

#include "distance.h"
#include "operand.h"

/* dot_exact -- exact[i * b->rows + j] = the exact dot product of row i of a and row j of b, of the
 * first `depth` products, rounded once to binary64; dot_exact_given: of the numbers before they were rounded, times both scales. The
 * functions use all threads and return 0, or an exit code after a message. */
int dot_exact(double *exact, const operand *a, const operand *b, size_t depth);
int dot_exact_given(double *exact, const operand *a, const operand *b, size_t depth);

/* K in parts, one after the other, as split-K kernels cut it: part p of S is the products from p ceil(K / S) on. Each
 * is summed by the model from +0 and rounded to the workspace; in their order they are added, each sum rounded to
 * `sum`, and at last to the model's result. All to nearest even. */
typedef struct dot_split {
    size_t parts; /* 1: not cut */
    mpsim_format workspace, sum;
    /* stream-K (arXiv 2301.03598): results in tiles, row by row, and of each tile the steps of tile[2] products one
     * after the other are dealt to `workers` in equal runs, the last may be shorter. So a tile is cut where a worker's
     * run ends; its parts are added as above, in order of K. 0: not so. tile: rows, columns, products. */
    size_t workers, tile[3];
} dot_split;

/* dot_split_place -- a format of parts, or of their sum: one of up to 25 significand bits, or binary64, for which binary64
 * adds exactly enough. 0, or -1. */
int dot_split_place(mpsim_format *f, const char *name);

/* dot_results -- d[i * b->rows + j] = the dot product of row i of a and row j of b by the model, in parts. */
mpsim_status dot_results(double *d, const mpsim_model *m, const dot_split *split, const operand *a, const operand *b,
                         size_t depth);

/* dot_error_measure -- the errors of a model over the same pairs. */
int dot_error_measure(dot_error *e, const mpsim_model *m, const dot_split *split, const operand *a, const operand *b,
                      size_t depth, const dot_truth *truth);
