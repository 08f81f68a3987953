/* turn.h -- transposing: matrices whose columns are contiguous in memory, row after row. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* mpsim_turn_codes -- a matrix of codes of `bytes` bytes, from code number `first` on; the next row is `row` codes further, the next column `col`.
 * Its rows are written `apart` codes apart. */
void mpsim_turn_codes(void *to, int64_t apart, const void *codes, size_t bytes, int64_t first, int64_t row, int64_t col,
                      size_t rows, size_t cols);
