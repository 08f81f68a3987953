/* words.h -- many words of Philox4x32-10; see kernel.h. */
#pragma once

#include "kernel.h"
#include "philox.h"

void V_NAME(mpsim_words)(uint32_t *words, uint64_t seed, uint64_t stream, uint64_t block, size_t blocks)
{
    words_stream s = words_of(seed, stream, block);
    for (size_t i = 0; i < blocks; i += 2 * WORDS_BLOCKS)
        words_batch(words + 4 * i, &s, block + i);
}
