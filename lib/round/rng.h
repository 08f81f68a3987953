/* rng.h -- Philox4x32-10 as inline functions, for array loops and for CUDA. */
#pragma once

#include <mpsim/rng.h>

#include "scalar.h"

static inline MPSIM_HD void mpsim_philox_block(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u; /* golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1  */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The four words of elements 4 * block to 4 * block + 3. */
static inline MPSIM_HD void mpsim_rng_block(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t block)
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    mpsim_philox_block(out, counter, key);
}

/* mpsim_rng_words -- the words of elements i to i + n - 1: the first n behind the pointer that is
 * returned, into `room`, of n + MPSIM_RNG_ROOM words. */
enum { MPSIM_RNG_ROOM = 68 };
const uint32_t *mpsim_rng_words(uint32_t *room, const mpsim_rng *rng, uint64_t i, size_t n);
