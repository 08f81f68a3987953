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
 * all alike. */
static int is_plain(const mpsim_model *m, const mpsim_format *f)
{
    return mpsim_in_binary32(f) && (is_narrow(f) || mpsim_tile_lowest(m, f) == mpsim_emin(f));
}

/* See tile.h; a rounding to nearest takes 16 bits of the sum and what is left as one. */
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
           t->lowest >= MPSIM_TILE_LOW && high - 60 < t->lowest - t->fraction &&
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
    return !m->chunk && mpsim_is_native(&m->accumulator) && mpsim_in_binary32(&m->result.format) && is_plain(m, fa) &&
           is_plain(m, fb) && fa->mbits + fb->mbits + 2 <= 24 && MPSIM_WIDE_LENGTH % m->length == 0 &&
           m->length % 2 == 0 && m->fraction >= 24 && m->fraction <= 25 && lower >= 1 && lower <= 8;
}

int mpsim_tile_init(mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const mpsim_format *acc = &m->accumulator.format, *result = &m->result.format;
    const mpsim_rounding *r = &m->accumulator.rounding;
    if (m->addition == MPSIM_ADDITION_STAGED)
        return staged_init(t, m, fa, fb);
    if (m->addition != MPSIM_ADDITION_FUSED || m->alignment != MPSIM_ALIGN_TRUNCATE || m->normalised)
        return 0;
    if ((r->mode != MPSIM_ROUND_TOWARD_ZERO && r->mode != MPSIM_ROUND_NEAREST_EVEN) || r->flush_output ||
        !mpsim_has_sign(acc) || acc->zero != MPSIM_ZERO_SIGNED || acc->mbits < 1 || acc->mbits > 30)
        return 0;
    /* c, in the result's format, is an accumulator, too */
    if (mpsim_emin(acc) != mpsim_emin(result) || mpsim_emin(acc) < -300 || mpsim_format_highest(acc) > 300 ||
        mpsim_format_highest(result) > 300 || result->zero != MPSIM_ZERO_SIGNED)
        return 0;

    const int bits = fa->mbits + fb->mbits;
    const int last_a = mpsim_format_last_bit(fa), last_b = mpsim_format_last_bit(fb);
    const int low = last_a + last_b, high = mpsim_format_highest(fa) + mpsim_format_highest(fb);
    const int highest = mpsim_format_highest(acc) > mpsim_format_highest(result) ? mpsim_format_highest(acc)
                                                                                 : mpsim_format_highest(result);
    /* binary32 values: operands, products and 2^(F - E) for every E are normal numbers of it */
    t->lowest = mpsim_tile_lowest(m, fa) + mpsim_tile_lowest(m, fb);
    t->wide = !(bits + 2 <= 24 && is_narrow(fa) && is_narrow(fb) && low >= -126 && high <= 127 &&
                m->fraction - t->lowest <= 127 && highest - 1 <= 126 + m->fraction);
    if (bits + 2 > 53 || last_a < -1022 || last_b < -1022 || low < -700 || high > 600 || m->fraction > 28)
        return 0;
    t->length = m->length;
    t->fraction = m->fraction;
    t->ways = 0;
    /* terms that are not zero have exponents from -700 on, those that are below -2900 */
    t->floor = m->floor > -800 ? m->floor : -800;
    if (t->floor > (t->wide ? 300 : 100))
        return 0;

    /* |aligned product| <= (2^(p_a+1) - 1) (2^(p_b+1) - 1) 2^(F - bits) < 2^(F+2) <= 2^30 */
    const uint64_t product = (((uint64_t)2 << fa->mbits) - 1) * (((uint64_t)2 << fb->mbits) - 1);
    const int shift = m->fraction - bits;
    const uint64_t term = shift >= 0 ? product << shift : (product >> -shift) + 1;
    const uint64_t group = (((uint64_t)1 << 31) - 1) / term;
    t->group = group < (uint64_t)m->length ? (int)group : m->length;

    t->emin = mpsim_emin(acc);
    t->mbits = acc->mbits;
    t->nearest = r->mode == MPSIM_ROUND_NEAREST_EVEN;
    t->least = mpsim_bits_f64(mpsim_format_min_normal(acc));
    t->most = mpsim_bits_f64(mpsim_format_max(acc));
    t->vectors = has_vectors(t, m, fa, fb);
    t->wide &= !t->vectors;
    t->cut = !t->vectors                    ? MPSIM_CUT_NONE
             : mpsim_cut_init(t, m, fa, fb) ? MPSIM_CUT_NARROW
             : mpsim_wide_init(t, m)        ? MPSIM_CUT_WIDE
                                            : MPSIM_CUT_NONE;
    return 1;
}
