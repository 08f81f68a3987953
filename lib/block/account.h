/* account.h -- a quantisation on its way, and the statistics of its blocks: which of them a kernel accounts for
 * (kernel/errors.h), which are left to the careful cast. */
#pragma once

#include "kernel/kernel.h"

/* Blocks are scaled in groups of about a batch in width, then cast, row by row. */
typedef struct mpsim_block_pass {
    mpsim_block_work reference;
    const mpsim_block_functions *functions; /* NULL: the reference does everything    */
    mpsim_block_kernel kernel;
    mpsim_block_cast_function *cast;      /* NULL: the batches do all casts         */
    mpsim_block_errors_function *account; /* NULL: the batches make all statistics  */
    mpsim_block_errors errors;            /* that it adds to `found`                */
    mpsim_cast_stats found;
    int lowest, highest; /* exponents of the smallest number, and above the largest  */
    int step;            /* most errors are below 2^step scales                      */
} mpsim_block_pass;

/* Scales of a group of blocks. */
typedef struct mpsim_block_group {
    uint32_t amax[MPSIM_BLOCK_BATCH]; /* its bits */
    float factor[MPSIM_BLOCK_BATCH], inverse[MPSIM_BLOCK_BATCH];
    uint8_t code[MPSIM_BLOCK_BATCH];
    uint8_t irregular[MPSIM_BLOCK_BATCH];     /* amax or factor is not finite */
    mpsim_block_seen seen[MPSIM_BLOCK_BATCH]; /* for statistics of blocks */
    uint8_t careful[MPSIM_BLOCK_BATCH];
    int any_careful;
    uint8_t plain[MPSIM_BLOCK_BATCH], left[MPSIM_BLOCK_BATCH]; /* for `account`: to it, to the careful cast */
    int16_t top[MPSIM_BLOCK_BATCH];
    int any_plain, any_left;
} mpsim_block_group;

/* Blocks of one row of blocks, `h` rows of the matrix from row `top` on: `n` from column `left` on that
 * are `width` wide, or one narrower one at the edge. Their results are at `index`. */
typedef struct mpsim_block_span {
    size_t top, h, left, width, n, index;
} mpsim_block_span;

/* mpsim_block_sort -- set plain, left, top and seen of a group whose scales are made; `left` says already which
 * blocks hold a NaN that was dropped. Zeros need nothing else. */
void mpsim_block_sort(mpsim_block_pass *w, mpsim_block_group *g, const mpsim_block_span *s);

/* mpsim_block_account -- one row of the plain blocks, from element `at` of the matrix on. */
void mpsim_block_account(mpsim_block_pass *w, mpsim_block_group *g, const mpsim_block_span *s, size_t at);

/* mpsim_block_account_left -- the same of the blocks that are left: by the careful cast, their errors one by one. */
void mpsim_block_account_left(mpsim_block_pass *w, mpsim_block_group *g, const mpsim_block_span *s, size_t at);
