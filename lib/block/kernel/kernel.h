/* kernel.h -- the fast path of scaled quantisation: largest magnitudes, scales, elements.
 *
 * Rows of blocks: those of finite numbers by one function of each mode, those with another amax or scale, and those of
 * subnormal numbers, by `careful`. mpsim_blocks.casts, and statistics of such blocks, are left to the batches of batch.h;
 * other statistics of blocks are made here. Needs the default floating-point
 * environment, as block.h says: operations of binary32 are those of the sources.
 *
 * What bounds NVFP4 (make bench, rows `quantize`): the scale of the tensor comes first, so elements are read twice,
 * 0.26 ns each at 2.95 GHz, where memcpy takes 0.37 ns an element. With codes written that is 0.58 ns: at most 0.4
 * of memcpy. 0.78 ns are measured, 0.44 in the cache: rounding to nearest is one sum in the last place of the
 * binade, 18 operations for 16 elements. Stochastic rounding needs Philox (2.1 operations an element) and a
 * rounding (2.2): 0.75 ns beside the first pass, at most 0.23 of memcpy; 0.16 are measured. */
#pragma once

#include "../batch.h"
#include "../errors.h"

/* The numbers of a format, in plain integers; bits are those of binary32. */
typedef struct mpsim_element_grid {
    uint32_t max;    /* bits of the largest number                              */
    uint32_t normal; /* bits of the smallest normal number, 2^emin              */
    uint32_t drop;   /* bits of the significand that go                         */
    uint32_t rebias; /* a normal number's bits without them, less its magnitude */
    uint32_t lift;   /* the bits of a binade plus this are the bits of the addend            */
    uint32_t unit;   /* bits of the smallest positive number                    */
} mpsim_element_grid;

/* A cast to a format, and back. */
typedef struct mpsim_block_kernel {
    mpsim_element_grid grid;
    uint32_t sign_bit, sign_shift; /* of a code; from the sign of a number there */
    int one_zero;                  /* zero has no sign        */
    uint32_t nan_code, nan_value;
    const mpsim_format *torch; /* NULL, or torch's format that has no NaN     */
    uint32_t nan_codes[2];     /* of others, by sign                          */
    const float *decoded;      /* the value of every code                     */
    int mode;                  /* mpsim_round_mode        */
    int dequantize;            /* mpsim_dequantize        */
    int divides;               /* elements, by `inverse`    */
    int microx;                /* microxcaling's zeros    */
    uint32_t below_half;
    size_t ahead;     /* bytes from an element to the one that is read next from memory: prefetched */
    uint32_t over[2]; /* bits of the least magnitude that saturates, by sign; for counts, and
                            not of FP4 by random bits */
} mpsim_block_kernel;

/* Scales of n blocks, a number each; all arrays have room up to the next multiple of 16, where amax has numbers, too. */
typedef struct mpsim_block_scales {
    float *factor, *inverse;
    uint8_t *code;
    uint8_t *irregular; /* 1: amax or factor is not finite */
} mpsim_block_scales;

/* bits[k] becomes the largest magnitude's of x[k width] to x[(k + 1) width - 1] and bits[k], for k < n;
 * NaN is the largest, or dropped. */
typedef void mpsim_block_amax_function(uint32_t *bits, const float *x, size_t width, size_t n, int drops_nan);

/* The scales of n blocks by the bits of their amax, with room as above; 0: not by this function. Where
 * amax is not finite they mean nothing. */
typedef int mpsim_block_scales_function(const mpsim_scale_env *env, const uint32_t *amax, size_t n,
                                        const mpsim_block_scales *to);

/* Codes and values (or NULL) of n blocks of `width` elements; words: random ones, for FP4 by random
 * bits only; counts: NULL, or added to: less than 2^32 elements. */
typedef void mpsim_block_cast_function(const mpsim_block_kernel *k, uint8_t *codes, float *values, const float *x,
                                       const float *factor, const float *inverse, const uint32_t *words, size_t width,
                                       size_t n, mpsim_counts *counts);

/* A row of n blocks of `width` elements, and what is made of those that are plain. */
typedef struct mpsim_block_row {
    const float *x, *origin; /* NULL: x itself                                       */
    const uint32_t *words;   /* random ones, for FP4 by random bits                  */
    uint8_t *codes;          /* NULL, or as above; not of blocks that are not plain  */
    float *values;
    size_t width, n; /* together at most MPSIM_BLOCK_BATCH elements          */
    const float *factor, *inverse;
    const uint8_t *plain;
    const int16_t *top; /* squares of most errors are below 2^top, an even one  */
    mpsim_block_seen *seen;
} mpsim_block_row;

/* Adds errors, and counts, to e->to, but for the compared elements. */
typedef void mpsim_block_errors_function(const mpsim_block_kernel *k, const mpsim_block_row *r, mpsim_block_errors *e);

/* By mode; the stochastic ones are NULL. */
typedef struct mpsim_block_functions {
    mpsim_block_amax_function *amax;
    mpsim_block_scales_function *scales;
    mpsim_block_cast_function *cast[MPSIM_ROUND_STOCHASTIC_A], *fp4_grid;
    mpsim_block_cast_function
        *careful; /* of every mode: for blocks with NaN, infinity, subnormal numbers, and their scales */
    mpsim_block_errors_function *errors[MPSIM_ROUND_STOCHASTIC_A], *errors_fp4_grid;
} mpsim_block_functions;

extern const mpsim_block_functions mpsim_block_generic, mpsim_block_neon, mpsim_block_avx2, mpsim_block_avx512;

/* mpsim_block_nan -- the code of y, which is NaN; sets the bits of its value. */
static inline uint32_t mpsim_block_nan(const mpsim_block_kernel *k, float y, uint32_t *value)
{
    const uint32_t code = k->torch ? mpsim_rule_torch_nan(k->torch, y) : k->nan_codes[mpsim_bits_f32(y) >> 31];
    *value = mpsim_bits_f32(k->decoded[code]);
    return code;
}

/* mpsim_block_functions_active -- those of the active instruction set; NULL: the reference. */
const mpsim_block_functions *mpsim_block_functions_active(void);

/* mpsim_block_kernel_init -- fill *k for this work; returns the cast, NULL if there is none, and sets
 * *errors if the work wants statistics of blocks. Both are NULL if it wants those of casts. */
mpsim_block_cast_function *mpsim_block_kernel_init(mpsim_block_kernel *k, const mpsim_block_work *w,
                                                   mpsim_block_errors_function **errors);
