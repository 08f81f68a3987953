/* transpose.h -- y[j][i] = x[i][j] of a matrix of rows x cols, by rows; x and y do not overlap. */
#pragma once

#include <stddef.h>

static inline void mpsim_transpose(float *y, const float *x, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            y[j * rows + i] = x[i * cols + j];
}
