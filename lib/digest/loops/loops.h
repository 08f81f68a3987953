/* loops.h -- the inner sum of the second digest (scalar.h), a unit for each instruction set. */
#pragma once

#include "../scalar.h"

#include <stddef.h>

/* Keys, their lower and upper halves; as many as the block has words. */
typedef struct mpsim_digest_keys {
    uint32_t low[MPSIM_DIGEST_WORDS], high[MPSIM_DIGEST_WORDS];
} mpsim_digest_keys;

/* Of a whole block of words in memory, without its count. */
typedef uint64_t mpsim_digest_loop(const mpsim_digest_format *f, const mpsim_digest_keys *keys, const void *words);

mpsim_digest_loop mpsim_digest_loop_generic, mpsim_digest_loop_avx2, mpsim_digest_loop_avx512;
