/* exact.c -- see exact.h. */
#include "exact.h"

#include "../arith/scalar.h"

/* Numbers of a line are integers below 2^width in units of 2^unit. */
typedef struct scaled {
    int width, unit;
} scaled;

static scaled scaled_line(int low, int high, int bits)
{
    if (low > high) /* zeros */
        return (scaled){0, 0};
    return (scaled){high - low + bits, low - bits + 1};
}

int mpsim_exact_init(mpsim_exact *e, const mpsim_model *m, const mpsim_format *fa,
                     const mpsim_format *fb, size_t depth)
{
    if (m->addition != MPSIM_ADDITION_EXACT || m->chunk != 0 || !mpsim_in_binary32(fa) ||
        !mpsim_in_binary32(fb))
        return 0;
    e->bits_a = fa->mbits + 1;
    e->bits_b = fb->mbits + 1;
    e->depth = depth;
    e->carry = 0;
    while (e->carry < 63 && (uint64_t)1 << e->carry < depth)
        e->carry++;
    return 1;
}

int mpsim_exact_in_f64(const mpsim_exact *e, const mpsim_exact_row *x)
{
    const scaled row = scaled_line(x->low, x->high, e->bits_a);
    int width = 0;
    for (int j = 0; j < MPSIM_PANEL; j++) {
        const scaled column = scaled_line(x->lows[j], x->highs[j], e->bits_b);
        width = column.width > width ? column.width : width;
    }
    return row.width + width + e->carry <= 53;
}

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

enum { BLOCK = 128 };

/* x 2^-unit, an integer below 2^62; |unit| < 400 */
static int64_t to_integer(double x, double scale)
{
    return (int64_t)(x * scale);
}

static double power(int e)
{
    return mpsim_f64_bits((uint64_t)(1023 + e) << 52);
}

static wide column_sum(const int64_t *a, const double *b, double scale, size_t n)
{
    wide sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (wide)a[k] * to_integer(b[k * MPSIM_PANEL], scale);
    return sum;
}

static mpsim_number number_of(wide sum, int unit)
{
    const int sign = sum < 0;
    const unsigned_wide m = sign ? 0 - (unsigned_wide)sum : (unsigned_wide)sum;
    const mpsim_u128 parts = {(uint64_t)(m >> 64), (uint64_t)m};
    return m ? mpsim_number_wide(sign, parts, unit + 127) : mpsim_number_make(0, 0, 0);
}

unsigned mpsim_exact_integers(const mpsim_exact *e, const mpsim_exact_row *x, unsigned wanted,
                              mpsim_number *sums)
{
    const scaled row = scaled_line(x->low, x->high, e->bits_a);
    scaled column[MPSIM_PANEL];
    wide total[MPSIM_PANEL] = {0};
    unsigned beyond = 0;
    for (int j = 0; j < MPSIM_PANEL; j++) {
        column[j] = scaled_line(x->lows[j], x->highs[j], e->bits_b);
        /* 126 bits: an addend that follows needs two more (mpsim_number_add) */
        if (row.width > 62 || column[j].width > 62 ||
            row.width + column[j].width + e->carry > 126)
            beyond |= 1u << j;
    }
    beyond &= wanted;
    wanted &= ~beyond;
    if (!wanted)
        return beyond;
    const double scale = power(-row.unit);
    for (size_t k = 0; k < e->depth; k += BLOCK) {
        const size_t n = e->depth - k < BLOCK ? e->depth - k : BLOCK;
        int64_t a[BLOCK];
        for (size_t i = 0; i < n; i++)
            a[i] = to_integer(x->a[k + i], scale);
        for (size_t j = 0; j < MPSIM_PANEL; j++)
            if (wanted >> j & 1)
                total[j] += column_sum(a, x->b + k * MPSIM_PANEL + j, power(-column[j].unit), n);
    }
    for (int j = 0; j < MPSIM_PANEL; j++)
        sums[j] = number_of(total[j], row.unit + column[j].unit);
    return beyond;
}
#else
unsigned mpsim_exact_integers(const mpsim_exact *e, const mpsim_exact_row *x, unsigned wanted,
                              mpsim_number *sums)
{
    (void)e;
    (void)x;
    (void)sums;
    return wanted;
}
#endif
