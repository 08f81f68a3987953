/* target.c -- thresholds of a cast; see target.h. */
#include "target.h"

#include "loops/loops.h"

enum { INFINITE = 0x7f800000 };

/* Whether the cast of a magnitude raises (or, with `without`, does not raise) a flag of `flags`. */
static int raises(const mpsim_cast *c, unsigned flags, int without, uint32_t word)
{
    unsigned raised;
    (void)mpsim_encode_f64(c->format, &c->rounding, (double)mpsim_f32_bits(word), 0, &raised);
    return ((raised & flags) != 0) != without;
}

/* The least magnitude whose cast does: there is one from which on all do. Found at once if the guess is right. */
static uint32_t threshold(const mpsim_cast *c, unsigned flags, int without, uint32_t guess)
{
    uint32_t low = 1, high = INFINITE;
    if (guess > low && guess <= high && !raises(c, flags, without, guess - 1)) {
        low = guess;
        if (guess < high && raises(c, flags, without, guess))
            high = guess;
    }
    while (low < high) {
        const uint32_t u = low + (high - low) / 2;
        if (raises(c, flags, without, u))
            high = u;
        else
            low = u + 1;
    }
    return low;
}

/* What a threshold is so many binades further on, if it is a normal number there. */
static uint32_t moved(uint32_t word, int binades)
{
    return word == INFINITE ? word : word + ((uint32_t)binades << 23);
}

static int kind_of(int mode)
{
    switch (mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
    case MPSIM_ROUND_NEAREST_AWAY:
        return MPSIM_CELL_NEAREST;
    case MPSIM_ROUND_TOWARD_ZERO:
        return MPSIM_CELL_TRUNCATED;
    default:
        return -1;
    }
}

/* The largest number / scale, and whether overflows become it. */
static void find_largest(mpsim_target *t, const mpsim_cast *c, int scale_exp)
{
    unsigned flags;
    const mpsim_number huge = mpsim_number_make(0, 1, 4000);
    const uint64_t over = mpsim_scalar_encode(c->format, &c->rounding, c->rounding.mode, huge, 0, &flags);
    const mpsim_number m = mpsim_scalar_unpack(c->format, c->format->max_finite);
    int zeros = 0;
    while (!(m.hi >> zeros & 1))
        zeros++;
    t->saturates = mpsim_scalar_unpack(c->format, over).kind == MPSIM_NUMBER_FINITE;
    t->largest = m.hi >> zeros;
    t->largest_binade = m.exp - scale_exp;
    t->largest_exp = t->largest_binade - 63 + zeros;
}

int mpsim_target_init(mpsim_target *t, const mpsim_cast *cast, size_t index, const mpsim_target *like)
{
    enum { FAR = 500, SCALES = 200 }; /* all numbers and quotients are exact in binary64 */
    const mpsim_format *f = cast->format;
    const mpsim_number scale = mpsim_number_f64(cast->rounding.scale);
    const int emin = mpsim_emin(f), emax = (int)(f->max_finite >> f->mbits) - f->bias;
    t->index = index;
    t->kind = kind_of(cast->rounding.mode);
    if (t->kind < 0 || !mpsim_has_sign(f) || f->zero == MPSIM_ZERO_NONE || scale.hi != (uint64_t)1 << 63 ||
        scale.exp < -SCALES || scale.exp > SCALES || emin - f->mbits < -FAR || emax > FAR)
        return 0;
    t->floor = emin - scale.exp + 127;
    const mpsim_target guess = like ? *like : (mpsim_target){.floor = t->floor};
    const int binades = t->floor - guess.floor;
    t->least = threshold(cast, MPSIM_FLAG_UNDERFLOW, 1, moved(guess.least, binades));
    t->normal = threshold(cast, MPSIM_FLAG_UNDERFLOW | MPSIM_FLAG_SUBNORMAL, 1, moved(guess.normal, binades));
    t->over = threshold(cast, MPSIM_FLAG_OVERFLOW, 0, moved(guess.over, binades));
    t->cuts_zero = cast->rounding.flush_input || cast->rounding.flush_output;
    t->drop = 23 - f->mbits;
    find_largest(t, cast, scale.exp);
    return t->over == INFINITE || f->mbits <= 23;
}

int mpsim_target_excess(const mpsim_target *t, int key)
{
    const int binade = key - 127;
    if (t->largest_exp >= binade - 52)
        return MPSIM_EXCESS_EXACT;
    return t->largest_binade <= binade - 56 ? MPSIM_EXCESS_WHOLE : MPSIM_EXCESS_ROUNDED;
}
