/* vector.h -- the kernel of kernel.h in vectors of the compiler's, written once.
 *
 * Included by one unit per instruction set, which defines MPSIM_KERNEL_LANES, the width that is
 * native there, and MPSIM_KERNEL_RUN, the name of the function. The notation is that of
 * mpsim_scalar_encode. The fraction is rest / 2^drop; a drop above 63 is cut to 63: the 53 bits
 * of sig are then all below the half, which is all that deterministic modes ask, and
 * stochastic modes leave such elements to the reference. */
#include "kernel.h"

/* Comparisons give 0 or all ones, as signed lanes. */
typedef uint64_t lanes __attribute__((vector_size(8 * MPSIM_KERNEL_LANES)));
typedef int64_t slanes __attribute__((vector_size(8 * MPSIM_KERNEL_LANES)));

#define ALWAYS_INLINE inline __attribute__((always_inline))

static ALWAYS_INLINE lanes pick(slanes mask, lanes a, lanes b)
{
    return (a & (lanes)mask) | (b & ~(lanes)mask);
}

/* Whether the magnitude is rounded away from zero, as 0 or all ones; the operands are those of
 * mpsim_rounds_away. rest < 2^drop is the fraction times 2^drop. */
static ALWAYS_INLINE slanes rounds_away(int mode, int n, lanes draw, slanes negative, lanes low,
                                        lanes rest, lanes drop)
{
    const lanes odd = low & 1, half = ((lanes){} + 1) << (drop - 1);
    const slanes inexact = rest != 0;
    switch (mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        return (slanes)(rest + odd) > (slanes)half;
    case MPSIM_ROUND_NEAREST_AWAY:
        return (slanes)rest >= (slanes)half;
    case MPSIM_ROUND_UP:
        return inexact & ~negative;
    case MPSIM_ROUND_DOWN:
        return inexact & negative;
    case MPSIM_ROUND_TO_ODD:
        return inexact & (odd == 0);
    case MPSIM_ROUND_STOCHASTIC_A: {
        const lanes frac = rest << (64 - drop);
        return ((frac >> (64 - n)) + draw) >> n != 0;
    }
    case MPSIM_ROUND_STOCHASTIC_B: {
        const lanes frac = rest << (64 - drop);
        return ((frac >> (63 - n)) + 2 * draw + 1) >> (n + 1) != 0;
    }
    case MPSIM_ROUND_STOCHASTIC_C: {
        const lanes frac = rest << (64 - drop), whole = frac >> (64 - n);
        /* more than half of a unit is left, or half and `whole` is odd: bit 63 of the rest */
        const lanes more = frac << n, top = more >> 63, below = more << 1;
        const lanes up = top & (lanes)((below != 0) | ((whole & 1) != 0));
        return (whole + up + draw) >> n != 0;
    }
    default:
        return inexact & 0;
    }
}

static ALWAYS_INLINE int run_mode(const mpsim_kernel *k, const int mode, const int values,
                                  uint64_t *results, uint64_t *left, mpsim_counts *counts,
                                  const void *x, const uint64_t *draws)
{
    const lanes zero = {0}, one = zero + 1;
    const lanes normal = one << k->mbits, max_finite = zero + k->max_finite;
    const int64_t offset = k->scale_exp - 1023 - k->emin; /* e + offset: exponent above emin */
    const slanes stochastic = (slanes)zero - (mode >= MPSIM_ROUND_STOCHASTIC_A);
    const slanes is_unsigned = (slanes)zero - k->is_unsigned, flush = (slanes)zero - k->flush;
    lanes inexact = zero, underflow = zero, subnormal = zero, over = zero, any = zero;
    for (int i = 0; i < MPSIM_KERNEL_BLOCK; i += MPSIM_KERNEL_LANES) {
        lanes u, draw = zero;
        memcpy(&u, (const unsigned char *)x + 8 * i, sizeof u);
        if (mode >= MPSIM_ROUND_STOCHASTIC_A)
            memcpy(&draw, draws + i, sizeof draw);
        const lanes t = u & 0xfffffffffffffu, e = u >> 52 & 0x7ff, sign = u >> 63;
        const slanes negative = sign != 0;
        const lanes sig = (t | one << 52) & (lanes)(e != 0); /* subnormals are left anyway */
        /* of a zero nothing may be left, whatever the scale */
        const slanes above = ((slanes)e + offset) & (slanes)(sig != 0);
        const slanes binade = above & (above > 0);
        const slanes full_drop = 52 - k->mbits + (binade - above);
        const lanes drop = pick(full_drop < 63, (lanes)full_drop, zero + 63);
        const lanes low = ((lanes)binade << k->mbits) + (sig >> drop);
        const lanes rest = sig & ((one << drop) - 1);
        const slanes away = rounds_away(mode, k->sr_bits, draw, negative, low, rest, drop);
        const lanes m = low - (lanes)away;
        const slanes overflow = (slanes)m > (slanes)max_finite;
        const slanes tiny = ((slanes)m < (slanes)normal) & (m != 0);
        const slanes flushed = tiny & flush;
        const slanes to_zero = (m == 0) | flushed;
        const lanes zeros = pick(negative, zero + k->zero[1], zero + k->zero[0]);
        const lanes overflows = pick(negative, zero + k->overflow[1], zero + k->overflow[0]);
        lanes number = m | sign << k->sign_shift;
        if (values) {
            /* S >= 1 where drop <= 52: the bits of x without the dropped ones, plus `away` at
             * their end, carry into the exponent by themselves. Above that S = 0. */
            const lanes kept = (u & 0x7fffffffffffffffu & ~((one << drop) - 1)) +
                               ((lanes)away & (one << drop)) + ((uint64_t)k->scale_exp << 52);
            const lanes least = (lanes)away & k->least;
            number = pick(full_drop <= 52, kept, least) | sign << 63;
        }
        const lanes result = pick(overflow, overflows, pick(to_zero, zeros, number));
        const slanes leave = (e == 0x7ff) | ((e == 0) & (t != 0)) | (is_unsigned & negative) |
                             (stochastic & (full_drop > 63) & (sig != 0));
        memcpy(results + i, &result, sizeof result);
        memcpy(left + i, &leave, sizeof leave);
        any |= (lanes)leave;
        inexact -= (lanes)(((rest != 0) | overflow | flushed) & ~leave);
        underflow -= (lanes)(to_zero & (sig != 0) & ~leave);
        subnormal -= (lanes)(tiny & ~flushed & ~leave);
        over -= (lanes)(overflow & ~leave);
    }
    uint64_t left_any = 0;
    for (int l = 0; l < MPSIM_KERNEL_LANES; l++) {
        counts->inexact += inexact[l];
        counts->underflow += underflow[l];
        counts->subnormal += subnormal[l];
        counts->overflow += over[l];
        left_any |= any[l];
    }
    return left_any != 0;
}

static ALWAYS_INLINE int run_any(const mpsim_kernel *k, const int values, uint64_t *results,
                                 uint64_t *left, mpsim_counts *counts, const void *x,
                                 const uint64_t *draws)
{
    switch (k->mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        return run_mode(k, MPSIM_ROUND_NEAREST_EVEN, values, results, left, counts, x, draws);
    case MPSIM_ROUND_NEAREST_AWAY:
        return run_mode(k, MPSIM_ROUND_NEAREST_AWAY, values, results, left, counts, x, draws);
    case MPSIM_ROUND_UP:
        return run_mode(k, MPSIM_ROUND_UP, values, results, left, counts, x, draws);
    case MPSIM_ROUND_DOWN:
        return run_mode(k, MPSIM_ROUND_DOWN, values, results, left, counts, x, draws);
    case MPSIM_ROUND_TO_ODD:
        return run_mode(k, MPSIM_ROUND_TO_ODD, values, results, left, counts, x, draws);
    case MPSIM_ROUND_STOCHASTIC_A:
        return run_mode(k, MPSIM_ROUND_STOCHASTIC_A, values, results, left, counts, x, draws);
    case MPSIM_ROUND_STOCHASTIC_B:
        return run_mode(k, MPSIM_ROUND_STOCHASTIC_B, values, results, left, counts, x, draws);
    case MPSIM_ROUND_STOCHASTIC_C:
        return run_mode(k, MPSIM_ROUND_STOCHASTIC_C, values, results, left, counts, x, draws);
    default:
        return run_mode(k, MPSIM_ROUND_TOWARD_ZERO, values, results, left, counts, x, draws);
    }
}

/* The function of this instruction set; everything above is inlined into it. */
int MPSIM_KERNEL_RUN(const mpsim_kernel *k, uint64_t *results, uint64_t *left,
                     mpsim_counts *counts, const void *x, const uint64_t *draws)
{
    return k->values ? run_any(k, 1, results, left, counts, x, draws)
                     : run_any(k, 0, results, left, counts, x, draws);
}
