/* stats.h -- what becomes of blocks, one at a time. */
#pragma once

#include "scale.h"

/* What the elements of a block were so far; each 0 or 1. */
typedef struct mpsim_block_seen {
    uint8_t nonzero, nonfinite; /* an element is                      */
    uint8_t saturated;          /* a finite one saturates             */
    uint8_t kept;               /* a value is not zero                */
} mpsim_block_seen;

/* mpsim_block_see -- n elements of a block and their values, of which `overflow` count as such. */
void mpsim_block_see(mpsim_block_stats *s, mpsim_block_seen *seen, const float *x, const float *values, size_t n,
                     uint64_t overflow);

/* mpsim_block_tell -- account for n blocks whose elements all were seen, their scales' codes and inverses. */
void mpsim_block_tell(mpsim_block_stats *s, const mpsim_scale_rule_row *rule, const mpsim_block_seen *seen,
                      const uint8_t *code, const float *inverse, size_t n);
