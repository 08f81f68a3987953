/* kernel.h -- the fast path of the array functions: arrays of native numbers to codes or values.
 *
 * The same function as mpsim_scalar_encode, without branches that depend on the data but one: zeros,
 * subnormal numbers and overflows are handled among the others, NaN and infinities in vectors, too,
 * where there are any. Written once in the words of simd/generic.h and compiled by a unit for each
 * instruction set. The choice changes speed, never a bit.
 *
 * How: the bits of a source without its sign are an exponent field followed by a fraction. Read as one
 * integer they grow with the magnitude. Call it E; a subnormal source is given the exponent field, zero or
 * negative, that it would have if it were normal. Multiplying by a power of two adds to the field of E alone.
 *
 * From E comes an integer A. Its bits from bit `drop` on are the code, truncated; those below `drop` decide how
 * it is rounded:
 *   - of a number that is normal in the target, A is E less the exponent field at which the target's normal
 *     numbers begin;
 *   - of a smaller one A is the significand with its leading bit written out, and `drop` is larger by as much
 *     as its exponent is smaller.
 * Rounding away adds 1 to the code; a carry out of the fraction increments the exponent, since codes are
 * consecutive. A scale that is a power of two lowers the target's exponents instead of touching the sources.
 * By other scales sources are multiplied, in integers; bits that do not fit into the significand of E are or-ed
 * into its last bit.
 *
 * Counting what happened is a loop of its own. Floating point is used only where it is exact, or where the
 * instruction itself says how it rounds (AVX-512).
 *
 * In lanes of 64 bits (cast64.h) rare rounding modes share one loop, which looks the mode up; common modes have loops of their
 * own. On big-endian machines casts use the reference alone. */
#pragma once

#include <mpsim/rng.h>

#include "../scalar.h"

/* The loops of a unit. Lean: without counts, and nothing unusual (cast32.h says what); near: lean and
 * nearest-even. Flat: the target has binary32's exponents, its codes are the leading bits. Product: the
 * scale is no power of two. Power: nearest-even to the powers of two from 2^-127 on. The lanes are of 32 bits, or of 64 for binary64 and for the formats and scales
 * that need them. */
typedef enum mpsim_cast_loop {
    MPSIM_CAST_NEAR,
    MPSIM_CAST_NEAR_FLAT,
    MPSIM_CAST_LEAN,
    MPSIM_CAST_LEAN_FLAT,
    MPSIM_CAST_LEAN_PRODUCT,
    MPSIM_CAST_POWER,
    MPSIM_CAST_32,
    MPSIM_CAST_32_FLAT,
    MPSIM_CAST_32_PRODUCT,
    MPSIM_CAST_64,
    MPSIM_CAST_64_PRODUCT,
    MPSIM_CAST_LOOPS
} mpsim_cast_loop;

/* Loops of units whose instructions say how they round (V_NEAR): rounding by floating-point sums. */
typedef enum mpsim_cast_sums {
    MPSIM_CAST_NO_SUM,
    MPSIM_CAST_SUM,
    MPSIM_CAST_SUM_CUT, /* toward zero, up, down: of binary32 without a product */
    MPSIM_CAST_SUM_UP,
    MPSIM_CAST_SUM_DOWN,
    MPSIM_CAST_SUM_PRODUCT,
    MPSIM_CAST_SUM64,
    MPSIM_CAST_SUM64_PRODUCT,
    MPSIM_CAST_SUMS
} mpsim_cast_sums;

/* Everything about a source, a format and a rounding that the kernel needs, in plain integers. "By
 * sign": of positive, of negative numbers. Results are codes, or the bits of values of the source type;
 * in lanes of 64 bits those of binary64 values. */
typedef struct mpsim_cast_constants {
    mpsim_cast_loop loop;
    int source; /* bytes of an element: 4 (binary32) or 8                          */
    int bytes;  /* bytes of a result                                               */
    int values; /* values, not codes                                               */
    int random; /* a stochastic mode; 2: one whose draws are added (cast_drawn)    */
    int draws;  /* whose loop makes the words of elements `index`, ... itself      */
    uint64_t seed, word_stream, index;
    int stream;                /* results past the caches                                         */
    int end;                   /* last call for this array                                        */
    int drop;                  /* bits of the fraction that are dropped of a normal result        */
    int base;                  /* exponent field one below that of the smallest normal number     */
    int drop_base;             /* drop + base, also where base had to be limited                  */
    int scale_exp;             /* scale in [2^scale_exp, 2^(scale_exp + 1))                       */
    uint64_t scale;            /* its significand, the top bit set                                */
    int wide;                  /* subnormal sources can have results that are not zero             */
    mpsim_cast_sums near_sums; /* where those may be used: nothing disturbs them         */
    int near_drop, near_base;  /* drop and base there                                      */
    int near_huge;             /* then: exponent field of what overflows by far                   */
    int near_scale;            /* a scale of 24 bits: 1: likewise of multiplying, 2: only of significands */
    uint64_t max_value;        /* max_finite as a result                                          */
    uint64_t flush_value;      /* likewise the largest that is flushed to zero                   */
    int flat_values;           /* a value is its code, shifted                                    */
    int subnormal_values;      /* values may be subnormal numbers of the type they are stored in */
    uint64_t sign;             /* sign bit of the source, 0: signs are ignored                    */
    uint64_t sign_bit;         /* sign bit of a result, 0: none                                   */
    int sign_shift;            /* of the sign from the source down to the result                  */
    uint64_t below;            /* magnitudes up to this are zero                                  */
    uint64_t no_zero;          /* 1 in a format without zero: codes are one less                  */
    uint64_t max_finite;       /* + no_zero                                                       */
    uint64_t normal;           /* the smallest normal code; 0 in a format without zero            */
    int flush;                 /* subnormal results become zero                                   */
    int is_unsigned;
    int one_zero; /* zero has no sign                                                */
    /* Deterministic: away if the fraction, at the top of a lane, is above threshold[1] or [0]: [1]
     * if the code below is odd (by_odd) or the number negative (by_sign). */
    int by_odd, by_sign;
    uint64_t threshold[2];
    /* Stochastic: away if the fraction is above the complement of (random word & draw | half), or one
     * more if `even` and bit `last` of it is 0; see cast32.h. */
    uint64_t draw, half;
    int even, last;
    int ties;             /* fractions of more than 32 bits matter: 1, and how, 2 or 3 */
    uint64_t zero[2];     /* result of a zero, by sign                                      */
    uint64_t small[2];    /* of a number that rounds to zero, by sign                       */
    uint64_t over[2];     /* of an overflow, by sign                                        */
    int over_by_sign;     /* they differ by more than the sign, or the first has a sign      */
    uint64_t infinite[2]; /* of an infinity, by sign                                        */
    uint64_t nan[2];      /* of a NaN, by sign, without its payload                         */
    uint64_t payload;     /* bits of the payload in the result                              */
    int payload_shift;    /* how far down they are                                          */
    uint64_t quiet;       /* of a NaN that keeps a payload which is not 0                   */
    uint64_t negative;    /* of a negative number in an unsigned format                     */
    uint64_t least;       /* smallest positive value                                        */
    unsigned zero_flags;  /* of +0                                                          */
} mpsim_cast_constants;

/* n elements from x to out, element i with words[i] in stochastic modes (NULL where k->draws); what happened is added to
 * *counts unless that is NULL. n < 2^32; x and out at any alignment; x == out if of one size. */
typedef void mpsim_cast_function(const mpsim_cast_constants *k, void *out, const void *x, size_t n,
                                 const uint32_t *words, mpsim_counts *counts);

/* words[i], 0 <= i < 4 * blocks, are those of elements 4 * block + i; blocks is a multiple of 16. */
typedef void mpsim_words_function(uint32_t *words, uint64_t seed, uint64_t stream, uint64_t block, size_t blocks);

/* What decoding needs; the values are normal numbers of their type, binary64 or binary32, but for the special codes,
 * which are left: y[i] of the first n that are not; returns how many that is. n may be anything. */
typedef struct mpsim_decoder {
    int bytes, mbits, sign_shift;
    int exp; /* of the least positive number, where there are subnormal ones */
    uint32_t magnitude, max_finite;
    uint32_t normal;   /* the smallest normal code, 0: all are, or subnormal ones are those of binary32 */
    uint32_t sign;     /* the sign bit of a code, 0: none */
    uint32_t nan;      /* the code of -0 where that is NaN, else 0 */
    uint32_t infinity; /* its magnitude; 0: none */
    uint64_t rebias;   /* to be added to a normal value of the type */
} mpsim_decoder;
typedef size_t mpsim_decode_function(const mpsim_decoder *d, void *y, const void *codes, size_t n);

mpsim_cast_function mpsim_cast_generic, mpsim_cast_neon, mpsim_cast_avx2, mpsim_cast_avx512;
mpsim_words_function mpsim_words_generic, mpsim_words_neon, mpsim_words_avx2, mpsim_words_avx512;
mpsim_decode_function mpsim_decode_generic, mpsim_decode_neon, mpsim_decode_avx2, mpsim_decode_avx512;
mpsim_decode_function mpsim_decode32_generic, mpsim_decode32_neon, mpsim_decode32_avx2, mpsim_decode32_avx512;

/* The functions of an instruction set. */
typedef struct mpsim_kernels {
    mpsim_cast_function *cast;
    mpsim_words_function *words;
    mpsim_decode_function *decode;   /* to binary64 */
    mpsim_decode_function *decode32; /* to binary32 */
} mpsim_kernels;

/* mpsim_kernels_choice -- those of the active one; NULL: the reference does everything. */
const mpsim_kernels *mpsim_kernels_choice(void);

/* mpsim_cast_init -- fill *k for a source of `source` bytes. 0 if the kernel cannot do it. */
int mpsim_cast_init(mpsim_cast_constants *k, const mpsim_format *f, const mpsim_rounding *r, int source, int values,
                    int counted);

/* mpsim_decoder_init -- fill *d, for binary64 if wide, else binary32. 0 if the kernel cannot do it. */
int mpsim_decoder_init(mpsim_decoder *d, const mpsim_format *f, int wide);
