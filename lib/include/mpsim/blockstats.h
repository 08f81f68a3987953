/* blockstats.h -- what a block recipe does to a tensor, in accumulators that merge exactly.
 *
 * As everything of mpsim/stats.h: counts, exact sums and maxima, so that any split of a matrix into
 * bands of whole blocks, quantised in any order and merged, gives the same accumulator. */
#ifndef MPSIM_BLOCKSTATS_H
#define MPSIM_BLOCKSTATS_H

#include <mpsim/stats.h>

MPSIM_BEGIN

/* Exponents of scales, those of binary32. */
enum { MPSIM_SCALE_MIN = -149, MPSIM_SCALE_MAX = 127, MPSIM_SCALE_BINS = 277 };

typedef struct mpsim_block_stats {
    mpsim_cast_stats casts; /* elements, as mpsim_blocks.casts                              */
    /* Finite elements. casts counts them by their codes, and counts spoilt elements as overflow. */
    uint64_t underflow;        /* other than 0, they stand for 0 (also by a scale of 0)        */
    uint64_t saturated;        /* rounded, beyond the largest number; they stand for a finite one, not 0 */
    uint64_t spoilt;           /* another element or the scale makes them NaN or infinite */
    uint64_t blocks;           /* all, those at the edges included                             */
    uint64_t zero_blocks;      /* every element is zero                                        */
    uint64_t saturated_blocks; /* an element is one of `saturated`                            */
    uint64_t lost_blocks;      /* all elements finite, not all zero, and every value is zero   */
    uint64_t nonfinite_blocks; /* holds NaN or infinity                                       */
    /* Of the blocks that are no zero blocks: those whose scale code is the least that the rule gives to
     * a block with numbers (E8M0: 0; E4M3 by TransformerEngine: 0 or 1, by torchao: 8, 2^-6), or the
     * largest of a number (E8M0: 254; E4M3: 126); 0 where scales are binary32. */
    uint64_t least_scales, largest_scales;
    /* Of the blocks that are no zero blocks: by s = mpsim_blocks.inverses, what the numbers of codes are
     * multiplied by, tensor scale included: 0, infinite or NaN, and by floor(log2 s). */
    uint64_t scale_zero, scale_nonfinite;
    uint64_t scales[MPSIM_SCALE_BINS]; /* [floor(log2 s) - MPSIM_SCALE_MIN] */
} mpsim_block_stats;

MPSIM_API void mpsim_block_stats_init(mpsim_block_stats *s);
MPSIM_API void mpsim_block_stats_merge(mpsim_block_stats *to, const mpsim_block_stats *from);

MPSIM_END

#endif
