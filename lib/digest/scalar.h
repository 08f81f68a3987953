/* scalar.h -- the two digests of mpsim/digest.h. Integers only, C17 and CUDA.
 *
 * The first is the sum modulo 2^64 of a mix of index and code: ten 64-bit multiplications a code with the index's.
 *
 * The second takes two 32-bit multiplications for 32 bits of codes. A block is 512 words. Its inner sum, modulo 2^64, is
 *
 *     codes in the block * key 512 + the sum of word j * key j
 *
 * with odd keys of 64 bits that depend on j alone (a multilinear hash: Carter and Wegman, STOC 1977; Lemire and Kaser, "Strongly
 * universal string hashing is fast", Computer Journal 57, 2014). The digest is the sum of the mixes of (block, inner sum).
 * What it sees:
 *
 *   - one changed word, always: an odd key times a difference below 2^32 is not 0, and the mix is a bijection of the inner
 *     sum. So one flipped bit, and two codes of a word exchanged;
 *   - two codes of a block exchanged, always: (a - b) (K_i - K_j) 2^s is not 0, since no two keys are equal modulo 2^32
 *     (t-digest looks at all pairs), and the difference shifted within a word has at most 31 zeros at its end. Where the codes lie at
 *     different places of their words, the difference of the shifted keys has few zeros at its end, because keys are odd;
 *   - two numbers of binary32 with the other sign in a block, always: no sum of two keys is 0 modulo 2^32, either;
 *   - zeros put behind the codes of a block: the count has a key;
 *   - other changes within a block, changes of several blocks, exchanged blocks and rows: but for a chance of about 2^-64. */
#pragma once

#include "../round/scalar.h"

/* Two rounds of the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline MPSIM_HD uint64_t mpsim_mix(uint64_t index, uint64_t output)
{
    uint64_t z = index * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    z ^= output * 0xd6e8feb86659fd93u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- the second digest ---- */

enum { MPSIM_DIGEST_WORDS = 512, MPSIM_DIGEST_BLOCK = 4 * MPSIM_DIGEST_WORDS /* bytes */ };

/* The key of a word of a block; at MPSIM_DIGEST_WORDS that of the count. */
static inline MPSIM_HD uint64_t mpsim_digest_key(uint32_t j)
{
    uint64_t z = (j + UINT64_C(1)) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) | 1;
}

/* What becomes of a word of one, two or four codes before it is digested: bits above the codes go, and a NaN becomes a code
 * of ones. A magnitude is a NaN from `nan` on; it leaves its container's highest bit free. */
typedef struct mpsim_digest_format {
    uint32_t ones, magnitude; /* of each code */
    uint32_t high, nan;       /* the highest bit of each container; nan 0: no code changes */
    int shift;                /* of that bit in the first container */
} mpsim_digest_format;

static inline MPSIM_HD uint32_t mpsim_digest_word(const mpsim_digest_format *f, uint32_t word)
{
    const uint32_t nans = (((word & f->magnitude) | f->high) - f->nan) & f->high;
    return (word | (nans + nans - (nans >> f->shift))) & f->ones; /* from the code's lowest bit to its highest */
}

static inline MPSIM_HD uint64_t mpsim_digest_ones(const mpsim_format *f)
{
    return UINT64_MAX >> (64 - f->bits);
}

/* 0: codes have 64 bits, or a NaN's magnitude takes the highest bit: they are digested one by one. */
static inline int mpsim_digest_format_set(mpsim_digest_format *to, const mpsim_format *f)
{
    const int bits = f->bits <= 8 ? 8 : f->bits <= 16 ? 16 : 32;
    const uint32_t each = bits == 8 ? 0x01010101u : bits == 16 ? 0x00010001u : 1;
    const uint64_t nan = f->max_finite + (f->inf ? 2 : 1), magnitude = mpsim_magnitude_mask(f);
    const int has_nans = f->nan == MPSIM_NAN_TOP && nan < mpsim_digest_ones(f); /* ones alone: it stays */
    if (f->bits > 32 || (has_nans && magnitude >> (bits - 1)))
        return 0;
    to->ones = (uint32_t)mpsim_digest_ones(f) * each;
    to->magnitude = has_nans ? (uint32_t)magnitude * each : 0;
    to->high = has_nans ? ((uint32_t)1 << (bits - 1)) * each : 0;
    to->nan = has_nans ? (uint32_t)nan * each : 0;
    to->shift = bits - 1;
    return 1;
}
