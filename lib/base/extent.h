/* extent.h -- whether memory can hold arrays of the sizes and strides that a caller gives: no array, gaps between its lines
 * included, has more than PTRDIFF_MAX bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The elements of a matrix; SIZE_MAX, which no array has, if they are more. */
static inline size_t mpsim_elements(size_t rows, size_t columns)
{
    return columns && rows > SIZE_MAX / columns ? SIZE_MAX : rows * columns;
}

static inline int mpsim_fits(size_t n, size_t bytes)
{
    return n <= (size_t)PTRDIFF_MAX / bytes;
}

/* Lines of `across` elements that begin `stride` elements apart. Without elements a stride says nothing. */
static inline int mpsim_lines_fit(size_t lines, size_t across, size_t stride, size_t bytes)
{
    const size_t most = (size_t)PTRDIFF_MAX / bytes;
    if (lines == 0 || across == 0)
        return 1;
    return across <= most && (lines == 1 || stride <= (most - across) / (lines - 1));
}

/* Elements of a shape with a stride for each dimension, negative or 0, too; and no more elements than an array of
 * numbers of 16 bytes has. */
static inline int mpsim_strides_fit(size_t dims, const size_t *shape, const int64_t *strides, size_t bytes)
{
    uint64_t left = (uint64_t)PTRDIFF_MAX / bytes - 1;
    size_t n = 1;
    for (size_t i = 0; i < dims; i++)
        if (shape[i] == 0)
            return 1;
    for (size_t i = 0; i < dims; i++) {
        const uint64_t stride = strides[i] < 0 ? 0 - (uint64_t)strides[i] : (uint64_t)strides[i], steps = shape[i] - 1;
        if (steps && stride > left / steps)
            return 0;
        left -= stride * steps;
        n = mpsim_elements(n, shape[i]);
    }
    return mpsim_fits(n, 16);
}
