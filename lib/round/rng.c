/* rng.c -- Philox4x32-10. Constants: Salmon et al., SC 2011, section 5.3. */
#include <mpsim/rng.h>

#include "kernel/kernel.h"
#include "rng.h"

void mpsim_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    mpsim_philox_block(out, counter, key);
}

uint32_t mpsim_rng_word(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t out[4];
    mpsim_rng_block(out, seed, stream, index / 4);
    return out[index % 4];
}

const uint32_t *mpsim_rng_words(uint32_t *room, const mpsim_rng *rng, uint64_t i, size_t n)
{
    const uint64_t first = rng->index + i;
    const size_t skip = (size_t)(first % 4);
    const mpsim_kernels *kernels = mpsim_kernels_choice();
    if (kernels && first + n >= first) { /* else indices begin again at 0 */
        kernels->words(room, rng->seed, rng->stream, first / 4, (skip + n + 63) / 64 * 16);
        return room + skip;
    }
    for (size_t k = 0; k < skip + n; k += 4)
        mpsim_rng_block(room + k, rng->seed, rng->stream, (first - skip + k) / 4);
    return room + skip;
}
