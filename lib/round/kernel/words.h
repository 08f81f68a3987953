/* words.h -- Philox4x32-10 (lib/round/rng.h), a block in each lane of 64 bits. */
#pragma once

#include "kernel.h"

void V_NAME(mpsim_words)(uint32_t *words, uint64_t seed, uint64_t stream, uint64_t block, size_t blocks)
{
    enum { BLOCKS = V_LANES / 2 };
    uint64_t place[BLOCKS]; /* the block of each lane, so that v_zip_even, _odd find them in order */
    for (uint64_t p = 0; p < BLOCKS; p++)
        place[p] = p / 2 + p % 2 * (BLOCKS / 2);
    uint64_t keys[10][2]; /* of the rounds; the upper halves mean nothing */
    for (uint32_t round = 0; round < 10; round++) {
        keys[round][0] = (uint32_t)seed + round * 0x9E3779B9u;
        keys[round][1] = (uint32_t)(seed >> 32) + round * 0xBB67AE85u;
    }
    const vu32 m0 = (vu32)v_u64(0xD2511F53u), m1 = (vu32)v_u64(0xCD9E8D57u);
    const vu64 low_half = v_u64(0xffffffffu), last_block = v_u64(UINT64_MAX / 4); /* then comes 0 */
    for (size_t i = 0; i < blocks; i += 2 * BLOCKS) {
        vu64 c0[2], c1[2], c2[2], c3[2]; /* so do those of these */
        for (int j = 0; j < 2; j++) {
            c0[j] = (v_load_u64(place) + v_u64(block + i + (uint64_t)j * BLOCKS)) & last_block;
            c1[j] = c0[j] >> 32;
            c2[j] = v_u64(stream);
            c3[j] = v_u64(stream >> 32);
        }
#pragma GCC unroll 10
        for (int round = 0; round < 10; round++) {
            const vu64 k0 = v_u64(keys[round][0]), k1 = v_u64(keys[round][1]);
#pragma GCC unroll 2
            for (int j = 0; j < 2; j++) {
                const vu64 p0 = v_mul_even_u32((vu32)c0[j], m0), p1 = v_mul_even_u32((vu32)c2[j], m1);
                c0[j] = v_xor3_u64(p1 >> 32, c1[j], k0);
                c1[j] = p1;
                c2[j] = v_xor3_u64(p0 >> 32, c3[j], k1);
                c3[j] = p0;
            }
        }
        for (size_t j = 0; j < 2; j++) {
            const vu64 first = v_bits_u64(low_half, c0[j], c1[j] << 32);
            const vu64 last = v_bits_u64(low_half, c2[j], c3[j] << 32);
            v_store_u64(words + 4 * (i + j * BLOCKS), v_zip_even_u64(first, last));
            v_store_u64(words + 4 * (i + j * BLOCKS) + V_LANES, v_zip_odd_u64(first, last));
        }
    }
}
