/* rounded.c -- which models and operands rounded.h can do. */
#include "rounded.h"

#include <math.h>

/* Whether each number of f is one of g. */
static int is_within(const mpsim_format *f, const mpsim_format *g)
{
    return f->mbits <= g->mbits && mpsim_format_last_bit(f) >= mpsim_format_last_bit(g) &&
           mpsim_format_highest(f) <= mpsim_format_highest(g);
}

/* Ties go to the even significand in lanes: of a format without explicit bits that is no even code. */
static int is_nearest(const mpsim_rounded *p)
{
    return p->rounding.mode == MPSIM_ROUND_NEAREST_EVEN && !p->rounding.flush_output && p->format.mbits > 0 &&
           p->format.zero != MPSIM_ZERO_NONE && mpsim_has_sign(&p->format);
}

/* What lanes must hold. */
typedef struct lanes {
    int mantissa, lowest, highest; /* bits; exponents of numbers that are normal, with room above */
} lanes;

static const lanes kinds[] = {
    [MPSIM_LANES_F32] = {23, -126, 80}, [MPSIM_LANES_F64] = {52, -900, 800}, [MPSIM_LANES_ODD] = {52, -900, 800}};

/* Whether it is binary32 with fewer bits, so that lanes can be rounded as integers are, in every range. */
static int is_whole(const mpsim_format *f)
{
    return f->bias == 127 && mpsim_format_highest(f) == 128 && f->mbits <= 22 && f->zero == MPSIM_ZERO_SIGNED;
}

/* A place in lanes, for numbers up to 2^highest: its constants must be numbers of the lane. */
static int fits(const mpsim_format *f, const lanes *l, int highest)
{
    const int top = mpsim_format_highest(f) > highest ? mpsim_format_highest(f) : highest;
    return mpsim_format_last_bit(f) >= l->lowest && top <= l->highest && f->mbits <= l->mantissa - 2;
}

static mpsim_place place(const mpsim_format *f, const lanes *l)
{
    return (mpsim_place){ldexp(1.5, l->mantissa - f->mbits), ldexp(1.5, l->mantissa + mpsim_format_last_bit(f)),
                         mpsim_format_max(f), f->zero == MPSIM_ZERO_SIGNED, 23 - f->mbits};
}

/* Sums of numbers of x and of y in the format of p: no double rounding. */
static int is_innocuous(const mpsim_format *x, const mpsim_format *y, const mpsim_format *p, const lanes *l)
{
    return is_within(x, p) && is_within(y, p) && 2 * (p->mbits + 1) + 2 <= l->mantissa + 1;
}

/* Products of `bits` bits, the last 2^last at least, and sums in binary32. A product that is at least half of the smallest number
 * of its format is exact there; one that is beyond the lane is beyond its format. */
static int can_narrow(const mpsim_model *m, int bits, int last, const lanes *l)
{
    const mpsim_format *product = &m->product.format, *acc = &m->accumulator.format;
    const mpsim_format *outer = &m->outer.format, *result = &m->result.format;
    const int whole = is_whole(product) && is_whole(acc) && (m->chunk == 0 || is_whole(outer));
    if (last < -149 && mpsim_format_last_bit(product) - bits < -149)
        return 0;
    if (!whole &&
        (!fits(acc, l, 0) || !fits(product, l, 0) || !fits(result, l, 0) || (m->chunk != 0 && !fits(outer, l, 0))))
        return 0;
    if (!is_innocuous(product, m->chunk ? product : result, acc, l))
        return 0;
    return m->chunk == 0 || is_innocuous(acc, result, outer, l);
}

static int can(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb, int kind)
{
    const lanes *l = &kinds[kind];
    const mpsim_format *product = &m->product.format, *acc = &m->accumulator.format;
    const mpsim_format *outer = &m->outer.format, *result = &m->result.format;
    const int is_fma = m->addition == MPSIM_ADDITION_FMA;
    const int high = mpsim_format_highest(fa) + mpsim_format_highest(fb);
    const int last = mpsim_format_last_bit(fa) + mpsim_format_last_bit(fb);
    const int bits = fa->mbits + fb->mbits + 2;
    if (bits > l->mantissa + 1)
        return 0;
    if (kind == MPSIM_LANES_F32)
        return !is_fma && mpsim_in_binary32(fa) && mpsim_in_binary32(fb) && can_narrow(m, bits, last, l);
    if (high > l->highest || last < l->lowest)
        return 0;
    if (!fits(acc, l, is_fma ? high : 0) || (!is_fma && !fits(product, l, high)) || !fits(result, l, 0) ||
        (m->chunk != 0 && !fits(outer, l, 0)))
        return 0;
    if (kind == MPSIM_LANES_ODD)
        return 1;
    if (is_fma || !is_innocuous(product, m->chunk ? product : result, acc, l))
        return 0;
    return m->chunk == 0 || is_innocuous(acc, result, outer, l);
}

int mpsim_rounded_init(mpsim_rounded_chain *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const int is_fma = m->addition == MPSIM_ADDITION_FMA;
    if (m->traits || m->order > MPSIM_ORDER_PAIRWISE || (!is_fma && m->addition != MPSIM_ADDITION_MULADD) ||
        !is_nearest(&m->accumulator) || (!is_fma && !is_nearest(&m->product)) ||
        (m->chunk != 0 && !is_nearest(&m->outer)))
        return 0;
    for (p->lanes = MPSIM_LANES_F32; !can(m, fa, fb, p->lanes); p->lanes++)
        if (p->lanes == MPSIM_LANES_ODD)
            return 0;
    p->whole = p->lanes == MPSIM_LANES_F32 && is_whole(&m->product.format) && is_whole(&m->accumulator.format) &&
               (m->chunk == 0 || is_whole(&m->outer.format));
    p->kind = is_fma ? MPSIM_CHAIN_FMA : m->order == MPSIM_ORDER_PAIRWISE ? MPSIM_CHAIN_PAIRWISE : MPSIM_CHAIN_MULADD;
    p->product = place(&m->product.format, &kinds[p->lanes]);
    p->accumulator = place(&m->accumulator.format, &kinds[p->lanes]);
    p->outer = place(&m->outer.format, &kinds[p->lanes]);
    return 1;
}
