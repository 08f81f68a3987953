/* elements.c -- rows of tables and their gradients, sums and products of elements, dropout; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "../round/rng.h"
#include "rows.h"

/* ---- tables ---- */

mpsim_status mpsim_embed(const mpsim_format *f, float *y, const float *table, const uint32_t *index, size_t rows,
                         size_t cols, size_t entries)
{
    mpsim_math m, out;
    const int any = rows > 0 && cols > 0;
    mpsim_status s = mpsim_layer_begin(&m, NULL, &out, f, mpsim_elements(rows, cols), MPSIM_NEEDED(y, table, index));
    if (s == MPSIM_OK && any && !mpsim_fits(mpsim_elements(entries, cols), sizeof *table))
        s = MPSIM_EINVAL;
    for (size_t r = 0; s == MPSIM_OK && any && r < rows; r++)
        s = index[r] < entries ? MPSIM_OK : MPSIM_EINVAL;
    for (size_t r = 0; s == MPSIM_OK && any && r < rows; r++) {
        memcpy(y + r * cols, table + index[r] * cols, cols * sizeof *y);
        mpsim_rows_round(&out, y + r * cols, cols);
    }
    return s;
}

mpsim_status mpsim_embed_backward(const mpsim_format *math, float *dtable, const float *dy, const uint32_t *index,
                                  size_t rows, size_t cols, size_t first, size_t n, int added)
{
    mpsim_math unused;
    mpsim_elementwise e = {.out = mpsim_rows_binary32};
    const int any = n > 0 && cols > 0;
    const void *const from = rows > 0 ? dy : (const void *)dtable, *const of = rows > 0 ? index : (const void *)dtable;
    const mpsim_status s = mpsim_layer_begin(&e.m, math, &unused, NULL, mpsim_elements(n, cols),
                                             MPSIM_NEEDED(dtable, from, of));
    if (s != MPSIM_OK || !any)
        return s;
    if (!mpsim_fits(mpsim_elements(rows, cols), sizeof *dy))
        return MPSIM_EINVAL;
    const mpsim_layer_kernels *const k = mpsim_layer_kernels_active();
    if (added)
        mpsim_rows_round(&e.m, dtable, n * cols);
    else
        memset(dtable, 0, n * cols * sizeof *dtable);
    for (size_t r = 0; r < rows; r++) {
        const size_t v = index[r];
        if (v >= first && v - first < n) {
            float *const sum = dtable + (v - first) * cols;
            k->elements[MPSIM_ELEMENTS_ADD](&e, sum, sum, dy + r * cols, cols);
        }
    }
    return MPSIM_OK;
}

/* ---- elements ---- */

static mpsim_status run(mpsim_elements_kind kind, const mpsim_format *math, const mpsim_format *f, float *y,
                        const float *a, const float *b, size_t n)
{
    mpsim_elementwise e = {.least = 0};
    const mpsim_status s = mpsim_layer_begin(&e.m, math, &e.out, f, n, MPSIM_NEEDED(y, a, b));
    if (s == MPSIM_OK)
        mpsim_layer_kernels_active()->elements[kind](&e, y, a, b, n);
    return s;
}

mpsim_status mpsim_add_array(const mpsim_format *math, const mpsim_format *f, float *y, const float *a, const float *b,
                             size_t n)
{
    return run(MPSIM_ELEMENTS_ADD, math, f, y, a, b, n);
}

mpsim_status mpsim_multiply_array(const mpsim_format *math, const mpsim_format *f, float *y, const float *a,
                                  const float *b, size_t n)
{
    return run(MPSIM_ELEMENTS_MULTIPLY, math, f, y, a, b, n);
}

/* ---- dropout ---- */

enum { SOME = 256 };

mpsim_status mpsim_dropout(const mpsim_format *math, const mpsim_format *f, double p, const mpsim_rng *rng, float *y,
                           const float *x, size_t n)
{
    mpsim_elementwise e;
    uint32_t room[SOME + MPSIM_RNG_ROOM];
    const mpsim_status s = mpsim_layer_begin(&e.m, math, &e.out, f, n, MPSIM_NEEDED(rng, y, x));
    if (s != MPSIM_OK || !(p >= 0 && p <= 1))
        return s != MPSIM_OK ? s : MPSIM_EINVAL;
    e.least = (uint64_t)(p * 0x1p+32);
    e.factor = mpsim_math_round(&e.m, p < 1 ? (float)(1 / (1 - p)) : 0.0f);
    for (size_t i = 0; i < n; i += SOME) {
        const size_t some = n - i < SOME ? n - i : SOME;
        const uint32_t *w = mpsim_rng_words(room, rng, i, some);
        mpsim_layer_kernels_active()->elements[MPSIM_ELEMENTS_DROP](&e, y + i, x + i, w, some);
    }
    return MPSIM_OK;
}
