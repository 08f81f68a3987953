/* normal.c -- normal numbers, by Box and Muller; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "../base/extent.h"
#include "../round/rng.h"
#include "kernel/kernel.h"

enum { SOME = 256, WHOLE = 16 }; /* numbers at once; of a vector */

void mpsim_normal_array(const mpsim_rng *rng, float deviation, float *y, size_t n)
{
    uint32_t room[2 * SOME + MPSIM_RNG_ROOM];
    const mpsim_rng all = {rng->seed, rng->stream, 0};
    for (size_t i = 0; mpsim_fits(n, sizeof *y) && i < n; i += SOME) {
        const size_t some = n - i < SOME ? n - i : SOME, drawn = (some + WHOLE - 1) / WHOLE * WHOLE;
        const uint32_t *words = mpsim_rng_words(room, &all, 2 * (rng->index + i), 2 * drawn);
        mpsim_layer_kernels_active()->normal(deviation, y + i, words, some);
    }
}
