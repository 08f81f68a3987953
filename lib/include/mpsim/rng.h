/* rng.h -- random bits as a pure function of (seed, stream, index).
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3,
 * SC 2011). Element i of a stream takes word i mod 4 of the block
 *
 *     counter = (i/4 low 32, i/4 high 32, stream low 32, stream high 32),
 *     key     = (seed low 32, seed high 32).
 *
 * Every element consumes exactly one 32-bit word, whatever its value or the rounding, so
 * that any split of an array over calls, threads, ranks or devices draws the same bits. */
#ifndef MPSIM_RNG_H
#define MPSIM_RNG_H

#include <mpsim/api.h>
#include <stdint.h>

MPSIM_BEGIN

typedef struct mpsim_rng {
    uint64_t seed;   /* the experiment                                     */
    uint64_t stream; /* the tensor, or any other unit that is independent  */
    uint64_t index;  /* the first element of the array                      */
} mpsim_rng;

/* mpsim_philox -- one block: out[0..3] = Philox4x32-10(counter, key). */
MPSIM_API void mpsim_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* mpsim_rng_word -- the 32 random bits of element `index` of (seed, stream). */
MPSIM_API uint32_t mpsim_rng_word(uint64_t seed, uint64_t stream, uint64_t index);

MPSIM_END

#endif
