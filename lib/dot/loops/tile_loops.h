/* tile_loops.h -- the loops of tile.h: included by one unit per instruction set,
 * which defines TILE, the name. Plain C that compilers turn into vector code. */
#include <string.h>

/* ---- the end of an addition ---- */

/* Add the accumulators to the aligned products and round. */
static unsigned finish(const mpsim_tile *t, const int16_t *e, const double *total, double *c)
{
    enum { N = MPSIM_TILE };
    const int drop = 52 - t->mbits;
    const uint64_t half = t->nearest ? (uint64_t)1 << (drop - 1) : 0, odd = half != 0;
    uint64_t sum[N], rounded[N], rare = 0;
    for (int j = 0; j < N; j++) {
        const double up = mpsim_f64_bits((uint64_t)(1023 + t->fraction - e[j]) << 52);
        const double down = mpsim_f64_bits((uint64_t)(1023 - t->fraction + e[j]) << 52);
        const double s = total[j] + (double)(int32_t)(c[j] * up);
        const uint64_t zero = s == 0 ? 0 : ~(uint64_t)0; /* +0 for either zero */
        sum[j] = mpsim_bits_f64(s * down) & zero;
    }
    for (int j = 0; j < N; j++) {
        const uint64_t u = sum[j], m = u & 0x7fffffffffffffffu;
        const uint64_t r = (m + (half - odd) + ((m >> drop) & odd)) >> drop << drop;
        rounded[j] = r | (u & 0x8000000000000000u);
        rare |= (uint64_t)((m < t->least) & (m != 0)) | (uint64_t)(r > t->most);
    }
    memcpy(c, rounded, sizeof rounded);
    if (!rare)
        return 0;

    unsigned redo = 0;
    for (int j = 0; j < N; j++) {
        unsigned bad = 0;
        c[j] = mpsim_f64_bits(sum[j] ? mpsim_tile_round(t, sum[j], &bad) : 0);
        redo |= bad << j;
    }
    return redo;
}

/* ---- the additions, on binary32 and on binary64 values ---- */

#define REAL float
#define BITS uint32_t
#define BIAS 127
#define MANTISSA 23
#define ADD_TILE add_f32
#include "tile_additions.h"
#undef REAL
#undef BITS
#undef BIAS
#undef MANTISSA
#undef ADD_TILE

#define REAL double
#define BITS uint64_t
#define BIAS 1023
#define MANTISSA 52
#define ADD_TILE add_f64
#include "tile_additions.h"
#undef REAL
#undef BITS
#undef BIAS
#undef MANTISSA
#undef ADD_TILE

/* Columns of `ended` keep where they ended first, and go on as zeros. */
static unsigned keep_ends(double *ends, double *c, unsigned before, unsigned ended)
{
    for (int j = 0; ended && j < MPSIM_TILE; j++)
        if (ended >> j & 1) {
            ends[j] = before >> j & 1 ? ends[j] : c[j];
            c[j] = 0;
        }
    return before | ended;
}

static unsigned TILE(const mpsim_tile *t, const void *a, const int16_t *ea, const void *b, const int16_t *eb, double *c,
                     size_t depth)
{
    const size_t length = (size_t)t->length;
    double ends[MPSIM_TILE];
    unsigned redo = 0;
    for (size_t k = 0; k < depth; k += length) {
        const int n = (int)(depth - k < length ? depth - k : length);
        const unsigned ended = t->wide ? add_f64(t, (const double *)a + k, ea + k, (const double *)b + k * MPSIM_TILE,
                                                 eb + k * MPSIM_TILE, c, n)
                                       : add_f32(t, (const float *)a + k, ea + k, (const float *)b + k * MPSIM_TILE,
                                                 eb + k * MPSIM_TILE, c, n);
        redo = keep_ends(ends, c, redo, ended);
    }
    for (int j = 0; j < MPSIM_TILE; j++)
        c[j] = redo >> j & 1 ? ends[j] : c[j];
    return redo;
}
