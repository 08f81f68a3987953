/* normal.c -- normal numbers by Box and Muller, one at a time: what normal.h computes in vectors. */
#include "../functions.h"
#include "kernel.h"

void mpsim_normal_plain(float deviation, float *y, const uint32_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float u = mpsim_f32_mul((float)((words[2 * i] >> 8) + 1), 0x1p-24f);
        const float turn = mpsim_f32_mul((float)(words[2 * i + 1] >> 8), 0x1p-24f);
        const float r = mpsim_f32_sqrt(mpsim_f32_mul(-2.0f, mpsim_log_f32(u)));
        y[i] = mpsim_f32_mul(deviation, mpsim_f32_mul(r, mpsim_cos_f32(mpsim_f32_mul(turn, 0x1.921fb6p+2f))));
    }
}
