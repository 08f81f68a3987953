/* philox.h -- Philox4x32-10 (lib/round/rng.h) in the words of lib/simd, a block in each lane of 64 bits; words where loops use them. */
#pragma once

#include "../rng.h"

#include <string.h>

enum { WORDS_BLOCKS = V_LANES / 2, WORDS_BATCH = 8 * WORDS_BLOCKS };

/* What the words of a stream have in common, of 2^32 blocks that follow one another: what the first two rounds make of all but
 * the lower half of the block's number. */
typedef struct words_stream {
    uint64_t place[WORDS_BLOCKS]; /* the block of each lane, so that v_zip_even, _odd find them in order */
    uint64_t keys[10][2];         /* of the rounds; the upper halves mean nothing */
    uint64_t seed, stream, high;  /* of the number: its upper half */
    uint64_t second[4];           /* words 1, 2 (but for the product), 3 of the first round; 3 of the second */
} words_stream;

/* The number of a block: after the last comes 0. */
V_INLINE uint64_t words_block(uint64_t block)
{
    return block & UINT64_MAX / 4;
}

V_INLINE void words_set(words_stream *s, uint64_t high)
{
    const uint64_t p1 = 0xCD9E8D57u * (uint64_t)(uint32_t)s->stream;
    const uint32_t c0 = (uint32_t)((p1 >> 32) ^ high ^ s->keys[0][0]);
    s->high = high;
    s->second[0] = p1 ^ s->keys[1][0];
    s->second[1] = s->stream >> 32 ^ s->keys[0][1];
    s->second[3] = 0xD2511F53u * (uint64_t)c0;
    s->second[2] = s->second[3] >> 32 ^ s->keys[1][1];
}

V_INLINE words_stream words_of(uint64_t seed, uint64_t stream, uint64_t block)
{
    words_stream s;
    for (uint64_t p = 0; p < WORDS_BLOCKS; p++)
        s.place[p] = p / 2 + p % 2 * (WORDS_BLOCKS / 2);
    for (uint32_t round = 0; round < 10; round++) {
        s.keys[round][0] = (uint32_t)seed + round * 0x9E3779B9u;
        s.keys[round][1] = (uint32_t)(seed >> 32) + round * 0xBB67AE85u;
    }
    s.seed = seed;
    s.stream = stream;
    words_set(&s, words_block(block) >> 32);
    return s;
}

/* Where the upper half of the number changes. */
static __attribute__((noinline)) void words_turn(uint32_t *words, words_stream *s, uint64_t block)
{
    for (uint64_t i = 0; i < 2 * WORDS_BLOCKS; i++)
        mpsim_rng_block(words + 4 * i, s->seed, s->stream, words_block(block + i));
    words_set(s, words_block(block + 2 * WORDS_BLOCKS) >> 32);
}

/* The WORDS_BATCH words from a block on: two vectors of blocks side by side, since a round is a chain. */
V_INLINE void words_batch(uint32_t *words, words_stream *s, uint64_t block)
{
    const vu32 m0 = (vu32)v_u64(0xD2511F53u), m1 = (vu32)v_u64(0xCD9E8D57u);
    const vu64 low_half = v_u64(0xffffffffu);
    vu64 c0[2], c1[2], c2[2], c3[2];
    block = words_block(block);
    if (__builtin_expect(block >> 32 != s->high || (uint32_t)block > UINT32_MAX - 2 * WORDS_BLOCKS, 0)) {
        words_turn(words, s, block);
        return;
    }
    for (int j = 0; j < 2; j++) { /* the first two rounds */
        const vu64 number = v_load_u64(s->place) + v_u64(block + (uint64_t)j * WORDS_BLOCKS);
        const vu64 p0 = v_mul_even_u32((vu32)number, m0);
        const vu64 p1 = v_mul_even_u32((vu32)(v_upper_u64(p0) ^ v_u64(s->second[1])), m1);
        c0[j] = v_upper_u64(p1) ^ v_u64(s->second[0]);
        c1[j] = p1;
        c2[j] = p0 ^ v_u64(s->second[2]);
        c3[j] = v_u64(s->second[3]);
    }
#pragma GCC unroll 8
    for (int round = 2; round < 10; round++) {
        const vu64 k0 = v_u64(s->keys[round][0]), k1 = v_u64(s->keys[round][1]);
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            const vu64 p0 = v_mul_even_u32((vu32)c0[j], m0), p1 = v_mul_even_u32((vu32)c2[j], m1);
            c0[j] = v_xor3_u64(v_upper_u64(p1), c1[j], k0);
            c1[j] = p1;
            c2[j] = v_xor3_u64(v_upper_u64(p0), c3[j], k1);
            c3[j] = p0;
        }
    }
    for (size_t j = 0; j < 2; j++) {
        const vu64 first = v_bits_u64(low_half, c0[j], c1[j] << 32);
        const vu64 last = v_bits_u64(low_half, c2[j], c3[j] << 32);
        v_store_u64(words + j * WORDS_BATCH / 2, v_zip_even_u64(first, last));
        v_store_u64(words + j * WORDS_BATCH / 2 + V_LANES, v_zip_odd_u64(first, last));
    }
}

/* ---- words as a loop over elements takes them ---- */

/* Those of the caller, or made a batch at a time where they are used: the caches hold them, and the machine makes some while it rounds
 * with others. Where the first element does not take the first word of a block, the last words of a batch are
 * kept for the next. */
typedef struct words_source {
    words_stream s;
    const uint32_t *words; /* the caller's, or NULL */
    uint64_t block;        /* the next */
    size_t skip;           /* words of the first block that are not used */
    uint32_t room[2 * WORDS_BATCH] __attribute__((aligned(64)));
} words_source;

V_INLINE void words_begin(words_source *w, const uint32_t *words, uint64_t seed, uint64_t stream, uint64_t index)
{
    w->words = words;
    if (words)
        return;
    w->s = words_of(seed, stream, index / 4);
    w->block = index / 4;
    w->skip = index % 4;
    if (w->skip)
        words_batch(w->room, &w->s, w->block++);
    memcpy(w->room + 2 * WORDS_BATCH - 4, w->room, 4 * sizeof *w->room);
}

/* Of V_LANES elements from i on, which grows by V_LANES. */
V_INLINE const uint32_t *words_at(words_source *w, size_t i)
{
    if (w->words)
        return w->words + i;
    if (i % WORDS_BATCH == 0) {
        memcpy(w->room + WORDS_BATCH - 4, w->room + 2 * WORDS_BATCH - 4, 4 * sizeof *w->room);
        words_batch(w->room + WORDS_BATCH, &w->s, w->block);
        w->block += 2 * WORDS_BLOCKS;
    }
    return w->room + WORDS_BATCH - (w->skip ? 4 - w->skip : 0) + i % WORDS_BATCH;
}
