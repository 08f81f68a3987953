/* normal.c -- normal numbers, by Box and Muller; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "../base/extent.h"
#include "../round/rng.h"
#include "kernel/kernel.h"
#include "scalar.h"

enum { SOME = 256 };

void mpsim_normal_array(const mpsim_rng *rng, float deviation, float *y, size_t n)
{
    const mpsim_layer_kernels *k = mpsim_layer_kernels_active();
    uint32_t room[2 * SOME + MPSIM_RNG_ROOM];
    float radius[SOME], turn[SOME];
    const mpsim_rng all = {rng->seed, rng->stream, 0};
    for (size_t i = 0; mpsim_fits(n, sizeof *y) && i < n; i += SOME) {
        const size_t some = n - i < SOME ? n - i : SOME;
        const uint32_t *w = mpsim_rng_words(room, &all, 2 * (rng->index + i), 2 * some);
        for (size_t j = 0; j < some; j++) {
            radius[j] = mpsim_f32_mul((float)((w[2 * j] >> 8) + 1), 0x1p-24f);
            turn[j] = mpsim_f32_mul(mpsim_f32_mul((float)(w[2 * j + 1] >> 8), 0x1p-24f), 0x1.921fb6p+2f);
        }
        k->log(radius, radius, some);
        k->cos(turn, turn, some);
        for (size_t j = 0; j < some; j++) {
            const float r = mpsim_f32_sqrt(mpsim_f32_mul(-2.0f, radius[j]));
            y[i + j] = mpsim_f32_mul(deviation, mpsim_f32_mul(r, turn[j]));
        }
    }
}
