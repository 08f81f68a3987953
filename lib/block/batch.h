/* batch.h -- the reference of scaled quantisation: elements are scaled into a batch, block after block,
 * and cast together. Statistics of casts are made here, too. */
#pragma once

#include "../round/scalar.h"
#include "scale.h"
#include "stats.h"

enum { MPSIM_BLOCK_BATCH = 1024 };

typedef struct mpsim_block_work {
    const mpsim_block_recipe *recipe;
    const mpsim_scale_rule_row *rule;
    const mpsim_format *f;
    mpsim_rounding rounding;
    const mpsim_rng *rng; /* NULL unless stochastic */
    const float *x;
    size_t rows, cols;
    const mpsim_blocks *out;
    mpsim_scale_env env;
    float decoded[256];         /* the value of every code                                    */
    uint32_t below_half;        /* the bits of the number below half of the smallest one     */
    int fp4_grid;               /* NVFP4's stochastic rounding                                */
    size_t start, n;            /* the batch: elements start to start + n - 1 of the matrix   */
    int irregular;              /* it may hold NaNs                                           */
    mpsim_block_seen *seen;     /* NULL, or of the block that all of the batch is of       */
    float y[MPSIM_BLOCK_BATCH]; /* scaled elements                                            */
    float factor[MPSIM_BLOCK_BATCH], inverse[MPSIM_BLOCK_BATCH];
} mpsim_block_work;

/* mpsim_block_batch_add -- scale n elements of one row of a block, from element `at` of the matrix on.
 * irregular: its amax or factor is not finite. */
void mpsim_block_batch_add(mpsim_block_work *w, size_t at, size_t n, float factor, float inverse, int irregular);

/* mpsim_block_batch_flush -- cast the batch and empty it. */
void mpsim_block_batch_flush(mpsim_block_work *w);
