/* tile.c -- which models and operands tile.h can do. */
#include "chain.h"
#include "cut.h"

int mpsim_tile_lowest(const mpsim_model *m, const mpsim_format *f)
{
    const int last = mpsim_format_last_bit(f);
    const int e = m->operand_emin > last ? m->operand_emin : last;
    return e < mpsim_emin(f) ? e : mpsim_emin(f);
}

/* Whether every number of f is zero or a normal binary32 number. */
static int is_narrow(const mpsim_format *f)
{
    return mpsim_format_last_bit(f) >= -126 && mpsim_format_highest(f) <= 127;
}

/* Whether the exponents of operands can be taken from binary32 values: those of subnormal ones are
 * all alike, and normal ones are normal in binary32, too. */
static int is_plain(const mpsim_model *m, const mpsim_format *f)
{
    return mpsim_in_binary32(f) &&
           (is_narrow(f) || (mpsim_tile_lowest(m, f) == mpsim_emin(f) && mpsim_emin(f) >= -126));
}

/* See tile.h. Of a sum of 25 to 31 bits vectors round to nearest the 16 highest bits at least and one for all below them (to_odd of
 * fused_loops.h): p + 1 bits of an accumulator and the next one are among them for p <= 13, with one to spare. */
static int has_vectors(const mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const mpsim_format *acc = &m->accumulator.format;
    return is_plain(m, fa) && is_plain(m, fb) && fa->mbits + fb->mbits + 2 <= 24 && mpsim_in_binary32(acc) &&
           mpsim_in_binary32(&m->result.format) && (m->chunk == 0 || mpsim_in_binary32(&m->outer.format)) &&
           m->chunk % 2 == 0 && m->length % 2 == 0 && t->floor <= MPSIM_TILE_HIGH &&
           acc->mbits <= (t->nearest ? 13 : 23);
}

int mpsim_cut_init(const mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const int high_a = mpsim_format_highest(fa), high_b = mpsim_format_highest(fb);
    const int high = high_a > high_b ? high_a : high_b;
    /* 32 terms and the sum of all are below 2^22 units; the products of zeros with the largest numbers less than one */
    return !t->nearest && m->order == MPSIM_ORDER_SEQUENTIAL && MPSIM_CUT_LENGTH % m->length == 0 &&
           m->length % 4 == 0 && m->chunk % m->length == 0 && t->fraction <= 14 && fa->mbits + fb->mbits + 2 <= 16 &&
           t->lowest >= MPSIM_TILE_LOW && t->lowest <= MPSIM_TILE_HIGH && high - 60 < t->lowest - t->fraction &&
           high + MPSIM_CUT_BIAS_B < 127 + t->lowest &&
           /* results are no smaller than a unit, and less than 2^24 */
           t->emin <= t->lowest - t->fraction &&
           mpsim_format_highest(&m->accumulator.format) > MPSIM_TILE_HIGH - t->fraction + 24;
}

int mpsim_wide_init(const mpsim_tile *t, const mpsim_model *m)
{
    return !t->nearest && m->order == MPSIM_ORDER_SEQUENTIAL && MPSIM_WIDE_LENGTH % m->length == 0 &&
           m->chunk % m->length == 0;
}

int mpsim_cut_is_tame(const mpsim_format *fa, const mpsim_format *fb, size_t depth)
{
    int high = mpsim_format_highest(fa) + mpsim_format_highest(fb);
    for (; depth; depth >>= 1)
        high++;
    return high < MPSIM_TILE_HIGH - 1;
}

/* Whether products with subnormal numbers of f, which have its smallest exponent, stay below 2^128: the loops look at values. */
static int is_below_overflow(const mpsim_format *f, const mpsim_format *other)
{
    return mpsim_emin(f) + mpsim_format_highest(other) <= 128;
}

/* Additions in two stages: see cut.h. */
static int staged_init(mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const int lower = m->kept + 1 - m->fraction;
    *t = (mpsim_tile){.vectors = 1,
                      .cut = MPSIM_CUT_WIDE,
                      .length = m->length,
                      .fraction = m->fraction,
                      .ways = m->ways,
                      .kept = m->kept,
                      .drop = m->drop,
                      .floor = MPSIM_WIDE_LOWEST,
                      .emin = -126,
                      .mbits = 23,
                      .least = mpsim_bits_f64(0x1p-126),
                      .most = mpsim_bits_f64(0x1.fffffep127)};
    return !m->chunk && mpsim_is_direct(fa) && mpsim_is_direct(fb) && mpsim_is_native(&m->accumulator) &&
           mpsim_in_binary32(&m->result.format) && is_plain(m, fa) && is_plain(m, fb) && is_below_overflow(fa, fb) &&
           is_below_overflow(fb, fa) && fa->mbits + fb->mbits + 2 <= 24 && MPSIM_WIDE_LENGTH % m->length == 0 &&
           m->length % 2 == 0 && m->fraction >= 24 && m->fraction <= 25 && lower >= 1 && lower <= 8;
}

/* What must fit where.
 *
 * An operand is s 2^(e - p): s < 2^(p + 1), p the bits that are stored. A product is s_a s_b 2^(e_a + e_b - bits), bits = p_a + p_b:
 * it has bits + 2 bits at most, its last one is 2^low or above, it is below 2^high. E is the largest of the floor, the exponents of
 * products (t->lowest to high - 2) and that of the accumulator (emin to highest - 1). Where E < t->lowest all products are zeros,
 * and t->lowest serves as well. As E >= e_a + e_b, an aligned product is
 *
 *     |product 2^(F - E)| <= (2^(p_a + 1) - 1) (2^(p_b + 1) - 1) 2^(F - bits) < 2^(F + 2),
 *
 * an aligned accumulator is below 2^(F + 1). So:
 *
 *     F <= 28             2^(F + 2) <= 2^30: an int32_t holds each; t->group is how many of them it holds the sum of
 *     bits + 2 <= 24      binary32 holds a product; 53: binary64 does
 *     -126 <= low, high <= 127
 *                         a product is a normal number of binary32, and so loses no bit
 *     F - E <= 127        2^(F - E) is one: E >= t->lowest
 *     F - E >= -126       E <= high - 2 <= 125, E <= floor <= 100, E <= highest - 1
 *     -700 <= low, high <= 600, emin >= -300, highest <= 300
 *                         the same of binary64: with -800 <= E <= 600 a product, 2^(F - E), its inverse (both from 2^-828 to 2^828) and a
 *                         sum of less than 2^53 times that are normal numbers
 *     floor -800          is below the exponents of all that is not zero (-700 of products, -300 of accumulators) and above those of
 *                         zeros (below -2900, see MPSIM_EXPONENT_ZERO): one that is lower decides nothing
 *     1 <= p <= 30        of the accumulator: its last bit is an explicit one of binary64, at least one lies below it (tile_lane.h) */
typedef struct bounds {
    int bits, low, high, highest;
} bounds;

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static bounds bounds_of(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    return (bounds){fa->mbits + fb->mbits, mpsim_format_last_bit(fa) + mpsim_format_last_bit(fb),
                    mpsim_format_highest(fa) + mpsim_format_highest(fb),
                    larger(mpsim_format_highest(&m->accumulator.format), mpsim_format_highest(&m->result.format))};
}

/* Whether the model adds and rounds as the loops do. c, in the result's format, is an accumulator, too. */
static int is_done_so(const mpsim_model *m)
{
    const mpsim_format *acc = &m->accumulator.format, *result = &m->result.format;
    const mpsim_rounding *r = &m->accumulator.rounding;
    return m->addition == MPSIM_ADDITION_FUSED && m->alignment == MPSIM_ALIGN_TRUNCATE && !m->normalised &&
           (r->mode == MPSIM_ROUND_TOWARD_ZERO || r->mode == MPSIM_ROUND_NEAREST_EVEN) && !r->flush_output &&
           mpsim_has_sign(acc) && acc->zero == MPSIM_ZERO_SIGNED && result->zero == MPSIM_ZERO_SIGNED &&
           mpsim_emin(acc) == mpsim_emin(result);
}

static int fits_binary64(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb, const bounds *b)
{
    const mpsim_format *acc = &m->accumulator.format;
    return b->bits + 2 <= 53 && mpsim_format_last_bit(fa) >= -1022 && mpsim_format_last_bit(fb) >= -1022 &&
           b->low >= -700 && b->high <= 600 && m->fraction <= 28 && mpsim_emin(acc) >= -300 && b->highest <= 300 &&
           acc->mbits >= 1 && acc->mbits <= 30;
}

/* Operands and products; accumulators stay in binary64. */
static int fits_binary32(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb, const bounds *b,
                         int lowest)
{
    return b->bits + 2 <= 24 && is_narrow(fa) && is_narrow(fb) && b->low >= -126 && b->high <= 127 &&
           m->fraction - lowest <= 127 && b->highest - 1 <= 126 + m->fraction;
}

/* Products whose aligned sum is below 2^31. */
static int group_of(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const uint64_t product = (((uint64_t)2 << fa->mbits) - 1) * (((uint64_t)2 << fb->mbits) - 1);
    const int shift = m->fraction - fa->mbits - fb->mbits;
    const uint64_t term = shift >= 0 ? product << shift : (product >> -shift) + 1;
    const uint64_t group = (((uint64_t)1 << 31) - 1) / term;
    return group < (uint64_t)m->length ? (int)group : m->length;
}

static int cut_of(const mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    if (!t->vectors || !mpsim_is_direct(fa) || !mpsim_is_direct(fb))
        return MPSIM_CUT_NONE;
    return mpsim_cut_init(t, m, fa, fb) ? MPSIM_CUT_NARROW : mpsim_wide_init(t, m) ? MPSIM_CUT_WIDE : MPSIM_CUT_NONE;
}

int mpsim_tile_init(mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const mpsim_format *acc = &m->accumulator.format;
    const bounds b = bounds_of(m, fa, fb);
    const int lowest = mpsim_tile_lowest(m, fa) + mpsim_tile_lowest(m, fb), floor = larger(m->floor, -800);
    if (m->addition == MPSIM_ADDITION_STAGED)
        return staged_init(t, m, fa, fb);
    const int wide = !fits_binary32(m, fa, fb, &b, lowest);
    if (!is_done_so(m) || !fits_binary64(m, fa, fb, &b) || floor > (wide ? 300 : 100))
        return 0;
    *t = (mpsim_tile){.length = m->length,
                      .fraction = m->fraction,
                      .group = group_of(m, fa, fb),
                      .floor = floor,
                      .lowest = lowest,
                      .emin = mpsim_emin(acc),
                      .mbits = acc->mbits,
                      .nearest = m->accumulator.rounding.mode == MPSIM_ROUND_NEAREST_EVEN,
                      .least = mpsim_bits_f64(mpsim_format_min_normal(acc)),
                      .most = mpsim_bits_f64(mpsim_format_max(acc))};
    t->vectors = has_vectors(t, m, fa, fb);
    t->wide = wide && !t->vectors;
    t->cut = cut_of(t, m, fa, fb);
    return 1;
}
