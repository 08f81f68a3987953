/* sums.c -- sums in lanes, of columns, over periods of rows; see mpsim/layer.h. */
#include <mpsim/layer.h>

#include "rows.h"

enum { LANES_MAX = 1024 };

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

mpsim_status mpsim_column_sums(const mpsim_format *math, const mpsim_format *f, float *sums, const float *x,
                               size_t rows, size_t cols, size_t stride)
{
    mpsim_math rounding, out;
    const void *const used = rows > 0 ? x : (const void *)sums;
    const mpsim_status s = mpsim_layer_begin(&rounding, math, &out, f, cols, MPSIM_NEEDED(sums, used));
    if (s != MPSIM_OK)
        return s;
    if (!mpsim_lines_fit(rows, cols, stride, sizeof *x))
        return MPSIM_EINVAL;
    mpsim_columns c = {.m = &rounding, .dy = x, .rows = rows, .stride = stride};
    for (; c.at < cols; c.at += c.width) {
        c.width = cols - c.at < MPSIM_COLUMNS_WIDTH ? cols - c.at : MPSIM_COLUMNS_WIDTH;
        mpsim_layer_kernels_active()->columns(&c, sums + c.at, NULL);
    }
    mpsim_rows_round(&out, sums, cols);
    return MPSIM_OK;
}

mpsim_status mpsim_period_sums(const mpsim_format *math, const mpsim_format *f, float *sums, const float *x,
                               size_t rows, size_t cols, size_t stride, size_t period, int added)
{
    mpsim_math out;
    mpsim_elementwise e = {.out = mpsim_rows_binary32};
    const void *const used = rows > 0 ? x : (const void *)sums;
    mpsim_status s = mpsim_layer_begin(&e.m, math, &out, f, cols, MPSIM_NEEDED(sums, used));
    if (s == MPSIM_OK && (period == 0 || !mpsim_lines_fit(rows, cols, stride, sizeof *x) ||
                          !mpsim_fits(mpsim_elements(period, cols), sizeof *sums)))
        s = MPSIM_EINVAL;
    for (size_t t = 0; s == MPSIM_OK && cols > 0 && t < period; t++) {
        float *const sum = sums + t * cols;
        for (size_t c = 0; c < cols; c++)
            sum[c] = added ? mpsim_math_round(&e.m, sum[c]) : 0.0f;
        for (size_t r = t; r < rows; r += period)
            mpsim_layer_kernels_active()->elements[MPSIM_ELEMENTS_ADD](&e, sum, sum, x + r * stride, cols);
        mpsim_rows_round(&out, sum, cols);
    }
    return s;
}
