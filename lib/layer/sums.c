/* sums.c -- sums in lanes, of columns, over periods of rows; see mpsim/layer.h. */
#include <mpsim/layer.h>

#include "rows.h"

enum { LANES_MAX = 1024, ABREAST = 16 };

float mpsim_sum_lanes(const mpsim_format *math, const float *x, size_t n, size_t stride, size_t lanes)
{
    mpsim_math m;
    float s[LANES_MAX] = {0};
    if (lanes == 0 || lanes > LANES_MAX || (lanes & (lanes - 1)) || (n > 0 && !x) ||
        !mpsim_lines_fit(n, 1, stride, sizeof *x) || mpsim_math_init(&m, math) != MPSIM_OK)
        return NAN;
    for (size_t i = 0; i < n; i += lanes) {
        const size_t left = n - i < lanes ? n - i : lanes;
        for (size_t t = 0; t < left; t++)
            s[t] = mpsim_math_add(&m, s[t], mpsim_math_round(&m, x[(i + t) * stride]));
    }
    return mpsim_lanes_tree(&m, s, lanes);
}

float mpsim_mean(const mpsim_format *math, const float *x, size_t n, size_t counted)
{
    mpsim_math m;
    const float sum = mpsim_sum_lanes(math, x, n, 1, MPSIM_LANES_ALL);
    if (mpsim_math_init(&m, math) != MPSIM_OK)
        return sum;
    return mpsim_math_div(&m, sum, mpsim_math_round(&m, (float)counted));
}

/* ---- columns, some side by side ---- */

typedef struct matrix {
    const float *x;
    size_t rows, cols, stride;
} matrix;

static inline void add_abreast(const mpsim_math *m, float *restrict s, const float *restrict x, size_t n)
{
    for (size_t j = 0; j < n; j++)
        s[j] = mpsim_math_add(m, s[j], mpsim_math_round(m, x[j]));
}

static inline void sum_abreast(const mpsim_math *m, const matrix *x, float *sums, size_t first, size_t n)
{
    float s[MPSIM_LANES_ALL][ABREAST];
    const size_t lanes = mpsim_lanes_used(x->rows);
    memset(s, 0, lanes * sizeof s[0]);
    for (size_t i = 0; i < x->rows; i++)
        add_abreast(m, s[i % MPSIM_LANES_ALL], x->x + i * x->stride + first, n);
    for (size_t h = lanes / 2; h > 0; h /= 2)
        for (size_t t = 0; t < h; t++)
            for (size_t j = 0; j < n; j++)
                s[t][j] = mpsim_math_add(m, s[t][j], s[t + h][j]);
    memcpy(sums + first, s[0], n * sizeof *sums);
}

mpsim_status mpsim_column_sums(const mpsim_format *math, const mpsim_format *f, float *sums, const float *x,
                               size_t rows, size_t cols, size_t stride)
{
    mpsim_math rounding, out;
    const matrix from = {x, rows, cols, stride};
    const void *const used = rows > 0 ? x : (const void *)sums;
    const mpsim_status s = mpsim_layer_begin(&rounding, math, &out, f, cols, MPSIM_NEEDED(sums, used));
    if (s != MPSIM_OK)
        return s;
    if (!mpsim_lines_fit(rows, cols, stride, sizeof *x))
        return MPSIM_EINVAL;
    for (size_t c = 0; c < cols; c += ABREAST)
        MPSIM_ROWS_BY_MATH(&rounding, m, sum_abreast(m, &from, sums, c, cols - c < ABREAST ? cols - c : ABREAST));
    mpsim_rows_round(&out, sums, cols);
    return MPSIM_OK;
}

mpsim_status mpsim_period_sums(const mpsim_format *math, const mpsim_format *f, float *sums, const float *x,
                               size_t rows, size_t cols, size_t stride, size_t period, int added)
{
    mpsim_math rounding, out;
    const void *const used = rows > 0 ? x : (const void *)sums;
    mpsim_status s = mpsim_layer_begin(&rounding, math, &out, f, cols, MPSIM_NEEDED(sums, used));
    if (s == MPSIM_OK && (period == 0 || !mpsim_lines_fit(rows, cols, stride, sizeof *x) ||
                          !mpsim_fits(mpsim_elements(period, cols), sizeof *sums)))
        s = MPSIM_EINVAL;
    for (size_t t = 0; s == MPSIM_OK && cols > 0 && t < period; t++) {
        float *const sum = sums + t * cols;
        for (size_t c = 0; c < cols; c++)
            sum[c] = added ? mpsim_math_round(&rounding, sum[c]) : 0.0f;
        for (size_t r = t; r < rows; r += period)
            MPSIM_ROWS_BY_MATH(&rounding, m, add_abreast(m, sum, x + r * stride, cols));
        mpsim_rows_round(&out, sum, cols);
    }
    return s;
}
