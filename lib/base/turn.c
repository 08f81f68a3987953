/* turn.c -- matrices whose columns lie side by side, row after row: squares of 16 bytes a line are turned in vectors; see turn.h. */
#include "turn.h"

#include <string.h>

typedef uint8_t tile_line __attribute__((vector_size(16)));

#if defined __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef SHUFFLE
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (tile_line){__VA_ARGS__})
#endif

#define INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

/* clang-format off */
/* Codes of the first halves of two lines by turns. */
static INLINE tile_line first_halves(const size_t bytes, tile_line a, tile_line b)
{
    if (bytes == 1)
        return SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    if (bytes == 2)
        return SHUFFLE(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
    if (bytes == 4)
        return SHUFFLE(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    return SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
}

static INLINE tile_line last_halves(const size_t bytes, tile_line a, tile_line b)
{
    if (bytes == 1)
        return SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    if (bytes == 2)
        return SHUFFLE(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
    if (bytes == 4)
        return SHUFFLE(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    return SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}
/* clang-format on */

enum { LINE = sizeof(tile_line) };

/* A square of codes whose lines are `next` bytes apart: lines i and i + half by turns, until it is turned. `bytes`, of a code,
 * is a constant where this is inlined. */
static INLINE void turn_square(const size_t bytes, unsigned char *to, int64_t apart, const unsigned char *from,
                               int64_t next)
{
    const size_t n = LINE / bytes;
    tile_line x[LINE], y[LINE];
    UNROLL
    for (size_t i = 0; i < n; i++)
        memcpy(&x[i], from + (int64_t)i * next, LINE);
    UNROLL
    for (size_t round = 1; round < n; round *= 2) {
        UNROLL
        for (size_t i = 0; i < n / 2; i++) {
            y[2 * i] = first_halves(bytes, x[i], x[i + n / 2]);
            y[2 * i + 1] = last_halves(bytes, x[i], x[i + n / 2]);
        }
        UNROLL
        for (size_t i = 0; i < n; i++)
            x[i] = y[i];
    }
    UNROLL
    for (size_t i = 0; i < n; i++)
        memcpy(to + (int64_t)i * apart, &x[i], LINE);
}

/* A matrix to turn: steps of what is read, and of the rows of what is written, in bytes. */
typedef struct turning {
    unsigned char *to;
    const unsigned char *from;
    int64_t row, col, apart;
} turning;

/* Rows first to last - 1, n columns from c on, code by code. */
static INLINE void turn_some(const size_t bytes, const turning *t, size_t first, size_t last, size_t c, size_t n)
{
    for (size_t r = first; r < last; r++)
        for (size_t i = c; i < c + n; i++)
            memcpy(t->to + (int64_t)r * t->apart + i * bytes, t->from + (int64_t)r * t->row + (int64_t)i * t->col,
                   bytes);
}

static INLINE void turn(const size_t bytes, const turning *t, size_t rows, size_t cols)
{
    const size_t n = LINE / bytes, whole = t->row == (int64_t)bytes ? rows / n * n : 0;
    for (size_t c = 0; c < cols; c += n) { /* what is read of a cache line is read at once */
        const size_t here = cols - c < n ? cols - c : n, squares = here == n ? whole : 0;
        for (size_t r = 0; r < squares; r += n)
            turn_square(bytes, t->to + (int64_t)r * t->apart + c * bytes, t->apart,
                        t->from + (int64_t)r * t->row + (int64_t)c * t->col, t->col);
        turn_some(bytes, t, squares, rows, c, here);
    }
}

void mpsim_turn_codes(void *to, int64_t apart, const void *codes, size_t bytes, int64_t first, int64_t row, int64_t col,
                      size_t rows, size_t cols)
{
    const int64_t size = (int64_t)bytes;
    const turning t = {(unsigned char *)to, (const unsigned char *)codes + first * size, row * size, col * size,
                       apart * size};
    if (bytes == 1)
        turn(1, &t, rows, cols);
    else if (bytes == 2)
        turn(2, &t, rows, cols);
    else if (bytes == 4)
        turn(4, &t, rows, cols);
    else
        turn(8, &t, rows, cols);
}
