/* pieces.c -- see pieces.h. Exact sums of binary32 numbers are a fast path of the library, those of wider ones are not. */
#include "pieces.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 2 };

/* x as the sum of two numbers of binary32; whether it is that. The difference of x and the first is exact. */
static int cut(float piece[MOST], double x)
{
    piece[0] = (float)x;
    if (!isfinite(piece[0]))
        return 0;
    piece[1] = (float)(x - (double)piece[0]);
    return (double)piece[1] == x - (double)piece[0];
}

/* How many pieces the numbers need; 0: more than there may be. */
static size_t count(const double *x, size_t n)
{
    size_t most = 1;
    float piece[MOST];
    for (size_t i = 0; i < n; i++) {
        if (!cut(piece, x[i]))
            return 0;
        most = piece[1] != 0 ? MOST : most;
    }
    return most;
}

/* Piece j of a number of this operand stands at the places j step, j step + 1, ... for `step` places, and again until there are
 * `each`. */
static float *cut_all(const double *x, size_t n, size_t of, size_t step, size_t each)
{
    float *to = need_memory(n * each, sizeof *to), piece[MOST];
    for (size_t i = 0; i < n; i++) {
        (void)cut(piece, x[i]);
        for (size_t j = 0; j < each; j++)
            to[i * each + j] = piece[j / step % of];
    }
    return to;
}

static void *copy(const double *x, size_t n)
{
    double *to = need_memory(n, sizeof *to);
    if (n)
        memcpy(to, x, n * sizeof *to);
    return to;
}

void dot_pieces_make(pieces *p, const double *x, size_t n, const double *y, size_t m)
{
    const size_t of_a = count(x, n), of_b = count(y, m);
    p->each = of_a && of_b ? of_a * of_b : 1;
    p->format = *mpsim_format_find(of_a && of_b ? "binary32" : "binary64");
    p->a = of_a && of_b ? (void *)cut_all(x, n, of_a, 1, p->each) : copy(x, n);
    p->b = of_a && of_b ? (void *)cut_all(y, m, of_b, of_a, p->each) : copy(y, m);
}

void dot_pieces_clear(pieces *p)
{
    free(p->a);
    free(p->b);
    memset(p, 0, sizeof *p);
}
