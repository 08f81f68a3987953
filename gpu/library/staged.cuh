/* staged.cuh -- an addition of AMD's CDNA3 (lib/dot/staged.h) by multiply-adds of binary64, for the tiles of fused.cuh.
 *
 * Products are added as fused additions add them: for each of `WAYS` sums from 1.5 2^52 units of its own. A sum without those units is
 * exact. Adding it to 1.5 2^52 larger units toward -infinity takes the integer below: so the sums of products meet, and so does the
 * accumulator, of whose last bits some are dropped. The total is at most 40 bits long, hence exact, and is rounded twice: to
 * `kept` bits below its exponent toward -infinity, and to binary32.
 *
 * Exponents of products are at most 126 (lines with larger ones are the reference's), so that no product overflows. An infinite
 * accumulator stays what it is: every sum with it is infinite. */
#pragma once

#include "fused.cuh"

namespace library
{

/* 1.5 2^52 units, where `high` is their place beside an exponent with bias; the same for an exponent that is in its place. */
static __device__ __forceinline__ double units_at(int place, int high)
{
    return __hiloint2double(static_cast<int>(static_cast<unsigned>(place) + static_cast<unsigned>(high)), 0);
}
static __device__ __forceinline__ double units_of(int exponent, int high)
{
    return units_at(static_cast<int>(static_cast<unsigned>(exponent) << 20), high);
}

/* x + units, toward -infinity, without the units: a multiple of the unit. */
static __device__ __forceinline__ double floor_to(double x, double units)
{
    return __dadd_rn(__dadd_rd(units, x), -units);
}

static __device__ __forceinline__ double nearest_to(double x, double units)
{
    return __dadd_rn(__dadd_rn(units, x), -units);
}

enum { STAGED_LEAST = FUSED_BIAS - 126, STAGED_MOST = FUSED_BIAS + 126 };

/* A total of no usual size, rounded; s: the accumulator before. */
static __device__ GPU_NOINLINE double staged_rare(double total, double s, int last)
{
    const int field = field_of(total);
    if (field_of(s) == 0x7ff || total == 0)
        return field_of(s) == 0x7ff ? s : 0.0;
    const int own = field < STAGED_LEAST ? int(STAGED_LEAST) : field;
    const double y = nearest_to(floor_to(total, units_of(own, last)), units_of(own, 29 * 0x100000 + 0x80000));
    const uint32_t sign = static_cast<uint32_t>(high_of(total)) & 0x80000000u;
    if (field_of(y) > FUSED_BIAS + 127)
        return __hiloint2double(static_cast<int>(sign | 0x7ff00000u), 0);
    return y == 0 ? __hiloint2double(static_cast<int>(sign), 0) : y;
}

static __device__ __forceinline__ int staged_is_rare(double total)
{
    return is_outside(high_of(total), STAGED_LEAST, STAGED_MOST);
}

static __device__ __forceinline__ double staged_rounded(double total, int last)
{
    const int high = high_of(total) & 0x7ff00000;
    const double kept = __hiloint2double(high + last, 0),
                 binary32 = __hiloint2double(high + 29 * 0x100000 + 0x80000, 0);
    return nearest_to(floor_to(total, kept), binary32);
}

static __device__ __forceinline__ void staged_rare_all(fused_results *r, const double (*total)[FUSED_SIDE], int last)
{
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++)
        GPU_UNROLL
    for (int j = 0; j < FUSED_SIDE; j++) {
        const double y = staged_rounded(total[i][j], last);
        r->s[i][j] = staged_is_rare(total[i][j]) ? staged_rare(total[i][j], r->s[i][j], last) : y;
    }
}

/* Exponents of products, in pairs: for two sums those of the first are in the lower halves. */
template <int L>
static __device__ __forceinline__ void staged_exponents(uint32_t (*e)[FUSED_SIDE], const fused_shared<L> &m, int group,
                                                        int row, int column, int floor)
{
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE * FUSED_SIDE; i++)
        e[i / FUSED_SIDE][i % FUSED_SIDE] = static_cast<uint32_t>(floor) * 0x10001u;
    fused_raise<L>(e, m, group, row, column);
}

/* The sums of products, still beside their units. */
template <int L, int WAYS>
static __device__ __forceinline__ void staged_products(double (*acc)[FUSED_SIDE][FUSED_SIDE], const fused_shared<L> &m,
                                                       int group, int row, int column)
{
    GPU_UNROLL
    for (int k = 0; k < L; k++) {
        double a[FUSED_SIDE], b[FUSED_SIDE];
        fused_values<L>(a, b, m, group * L + k, row, column);
        GPU_UNROLL
        for (int i = 0; i < FUSED_SIDE; i++)
            GPU_UNROLL
        for (int j = 0; j < FUSED_SIDE; j++)
            acc[k % WAYS][i][j] = __fma_rd(a[i], b[j], acc[k % WAYS][i][j]);
    }
}

/* The sum of the products and s, not rounded; most: the largest exponent of products, as all here in its place in a higher word. */
template <int WAYS>
static __device__ __forceinline__ double staged_total(double first, double second, int most, double s,
                                                      const fused_steps &w)
{
    enum { LEAST = STAGED_LEAST * 0x100000 };
    const int place = high_of(s) & 0x7ff00000, own = place > LEAST ? place : int(LEAST);
    const int largest = most > own ? most : own;
    const double kept = units_at(largest, w.kept), cut = units_at(largest, w.high);
    double products = fused_sum(first);
    if (WAYS == 2) {
        const double both = units_at(most, w.high);
        products = __dadd_rn(__dadd_rd(__dadd_rd(both, products), fused_sum(second)), -both);
        s = static_cast<unsigned>(largest - own) > static_cast<unsigned>(w.near) ? 0.0 : s;
    }
    return __dadd_rn(__dadd_rn(__dadd_rd(kept, products), floor_to(s, cut)), -kept);
}

template <int L, int WAYS>
static __device__ __forceinline__ void staged_addition(fused_results *r, const fused_shared<L> &m, int group, int row,
                                                       int column, const fused_steps &w)
{
    double acc[WAYS][FUSED_SIDE][FUSED_SIDE];
    uint32_t e[FUSED_SIDE][FUSED_SIDE];
    staged_exponents<L>(e, m, group, row, column, w.floor);
    const fused_four a = *reinterpret_cast<const fused_four *>(&m.signs[0][group][row]);
    const fused_four b = fused_columns(m.signs[1][group], column);
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++)
        GPU_UNROLL
    for (int j = 0; j < FUSED_SIDE; j++) {
        const uint32_t both = e[i][j], minus = a.v[i] ^ b.v[j];
        const uint32_t largest = __vmaxs2(both, both << 16 | both >> 16);
        e[i][j] = largest << 20; /* in its place in a higher word */
        for (int way = 0; way < WAYS; way++) {
            const uint32_t of = WAYS == 1 ? e[i][j] : way ? (both >> 16) << 20 : both << 20;
            const uint32_t negative = WAYS == 1 ? minus : minus & (way ? 0xaaaaaaaau : 0x55555555u);
            acc[way][i][j] = __hiloint2double(static_cast<int>(of + static_cast<uint32_t>(w.high)), __popc(negative));
        }
    }
    staged_products<L, WAYS>(acc, m, group, row, column);
    int rare = 0;
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++)
        GPU_UNROLL
    for (int j = 0; j < FUSED_SIDE; j++) {
        acc[0][i][j] = staged_total<WAYS>(acc[0][i][j], acc[WAYS - 1][i][j], static_cast<int>(e[i][j]), r->s[i][j], w);
        rare |= staged_is_rare(acc[0][i][j]);
    }
    if (rare)
        staged_rare_all(r, acc[0], w.last);
    else
        GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE * FUSED_SIDE; i++)
        r->s[i / FUSED_SIDE][i % FUSED_SIDE] = staged_rounded(acc[0][i / FUSED_SIDE][i % FUSED_SIDE], w.last);
}

} // namespace library
