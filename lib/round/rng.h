/* rng.h -- Philox4x32-10 as inline functions, for array loops and for CUDA. */
#pragma once

#include <mpsim/rng.h>

#include "scalar.h"

enum { MPSIM_PHILOX_ROUNDS = 10 };

static inline MPSIM_HD void mpsim_philox_round(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    const uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
    c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
    c[3] = (uint32_t)p0;
}

/* The keys of the next round. */
static inline MPSIM_HD void mpsim_philox_key(uint32_t *k0, uint32_t *k1)
{
    *k0 += 0x9E3779B9u; /* golden ratio */
    *k1 += 0xBB67AE85u; /* sqrt(3) - 1  */
}

static inline MPSIM_HD void mpsim_philox_block(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k0 = key[0], k1 = key[1];
    for (int round = 0; round < MPSIM_PHILOX_ROUNDS; round++) {
        mpsim_philox_round(c, k0, k1);
        mpsim_philox_key(&k0, &k1);
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
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
