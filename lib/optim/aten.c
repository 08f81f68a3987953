/* aten.c -- see aten.h. The orders: aten/src/ATen/native/cpu/BlasKernel.cpp (sum, gemm_transb_) and
 * ReducedPrecisionFloatGemvFastPathKernel.cpp (dot products), torch 2.15. */
#include "aten.h"

#include <string.h>

enum { LANES = 8, REGISTERS = 8, WHOLE = LANES * REGISTERS, PAIR = 2 * LANES };

/* s[i] += s[i + n / 2], and so on, down to `least` of them. */
static void halve(float *s, size_t n, size_t least)
{
    for (size_t half = n / 2; half >= least; half /= 2)
        for (size_t i = 0; i < half; i++)
            s[i] += s[i + half];
}

static float add_lanes(float *s, int halves)
{
    if (halves)
        halve(s, LANES, 1);
    for (size_t i = 1; i < LANES && !halves; i++)
        s[0] += s[i];
    return s[0];
}

static float dot(const float *a, const float *b, size_t n, int halves)
{
    float s[WHOLE] = {0}, rest[LANES] = {0};
    size_t k = 0;
    for (; k + WHOLE <= n; k += WHOLE)
        for (size_t l = 0; l < WHOLE; l++)
            s[l] += a[k + l] * b[k + l];
    halve(s, WHOLE, LANES);
    for (const size_t end = n - n % PAIR; k < end; k += LANES)
        for (size_t l = 0; l < LANES; l++)
            rest[l] += a[k + l] * b[k + l];
    float sum = add_lanes(s, halves) + add_lanes(rest, halves);
    for (; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

void mpsim_aten_dots(float *y, const float *x, const float *w, size_t m, size_t n, size_t depth, int halves)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            y[i * n + j] = dot(x + i * depth, w + j * depth, depth, halves);
}

void mpsim_aten_chains(float *y, const float *x, const float *w, size_t m, size_t n, size_t depth, size_t chains,
                       float *sums)
{
    const size_t even = depth - depth % chains;
    for (size_t i = 0; i < m; i++) {
        memset(sums, 0, chains * n * sizeof *sums);
        for (size_t k = 0; k < depth; k++) {
            float *s = sums + (k < even ? k % chains : 0) * n;
            for (size_t j = 0; j < n; j++)
                s[j] += x[i * depth + k] * w[k * n + j];
        }
        memcpy(y + i * n, sums, n * sizeof *y);
        for (size_t c = 1; c < chains; c++)
            for (size_t j = 0; j < n; j++)
                y[i * n + j] += sums[c * n + j];
    }
}
