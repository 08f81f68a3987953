/* blocks.c -- the second digest of mpsim/digest.h: blocks of words, by the loops of loops/. */
#include "config.h"

#include <mpsim/digest.h>

#include "../base/codes.h"
#include "../base/extent.h"
#include "../base/isa.h"
#include "loops/loops.h"

/* Words of a block are those in memory. */
#define LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

static mpsim_digest_loop *const loops[MPSIM_ISAS] = {
    [MPSIM_ISA_GENERIC] = mpsim_digest_loop_generic,
    [MPSIM_ISA_NEON] = mpsim_digest_loop_generic,
#ifdef HAVE_AVX2
    [MPSIM_ISA_AVX2] = mpsim_digest_loop_avx2,
#endif
#ifdef HAVE_AVX512
    [MPSIM_ISA_AVX512] = mpsim_digest_loop_avx512,
#endif
};

static uint64_t key_of(const mpsim_digest_keys *k, size_t j)
{
    return (uint64_t)k->high[j] << 32 | k->low[j];
}

static void make_keys(mpsim_digest_keys *k, size_t words)
{
    for (uint32_t j = 0; j < MPSIM_DIGEST_WORDS && j < words; j++) {
        const uint64_t key = mpsim_digest_key(j);
        k->low[j] = (uint32_t)key;
        k->high[j] = (uint32_t)(key >> 32);
    }
}

/* ---- code by code: the last block, codes of 64 bits, other machines ---- */

typedef struct digesting {
    const mpsim_format *f;
    const void *codes;
    size_t bytes; /* of a code */
    uint64_t ones;
    mpsim_digest_format words;
    mpsim_digest_keys keys;
} digesting;

static uint64_t code_at(const digesting *d, size_t i)
{
    const uint64_t code = mpsim_code_load(d->codes, d->bytes, i) & d->ones;
    return d->f->nan == MPSIM_NAN_TOP && mpsim_classify(d->f, code) == MPSIM_CLASS_NAN ? d->ones : code;
}

/* m codes, from code i on. */
static uint64_t sum_codes(const digesting *d, size_t i, size_t m)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < m; k++) {
        const uint64_t code = code_at(d, i + k);
        const size_t at = k * d->bytes / 4;
        sum += (uint64_t)((uint32_t)code << 8 * (k * d->bytes % 4)) * key_of(&d->keys, at);
        if (d->bytes == 8)
            sum += (code >> 32) * key_of(&d->keys, at + 1);
    }
    return sum;
}

/* ---- all of them ---- */

uint64_t mpsim_digest_blocks(const mpsim_format *f, const void *codes, size_t n, uint64_t first)
{
    uint64_t sum = 0;
    if (!codes || mpsim_format_check(f) != MPSIM_OK || !mpsim_fits(n, mpsim_format_code_bytes(f)))
        return 0;
    digesting d = {.f = f, .codes = codes, .bytes = mpsim_format_code_bytes(f), .ones = mpsim_digest_ones(f)};
    const size_t block = MPSIM_DIGEST_BLOCK / d.bytes;
    if (first % block)
        return 0;
    mpsim_digest_loop *const loop = loops[mpsim_isa_choice()];
    const int fast = LITTLE && loop && mpsim_digest_format_set(&d.words, f);
    make_keys(&d.keys, n < block ? (n * d.bytes + 3) / 4 : MPSIM_DIGEST_WORDS);
    for (size_t i = 0; i < n; i += block) {
        const size_t m = n - i < block ? n - i : block;
        const uint64_t inner = fast && m == block ? loop(&d.words, &d.keys, (const unsigned char *)codes + i * d.bytes)
                                                  : sum_codes(&d, i, m);
        sum += mpsim_mix(first / block + i / block, m * mpsim_digest_key(MPSIM_DIGEST_WORDS) + inner);
    }
    return sum;
}
