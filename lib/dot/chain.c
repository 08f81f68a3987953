/* chain.c -- see chain.h. */
#include "chain.h"

#include "../base/environment.h"
#include "binary32.h"

int mpsim_is_native(const mpsim_rounded *p)
{
    const mpsim_rounding *r = &p->rounding;
    return mpsim_format_same(&p->format, &mpsim_binary32) && r->mode == MPSIM_ROUND_NEAREST_EVEN &&
           r->overflow == MPSIM_OVERFLOW_INF && r->infinity == MPSIM_INFINITY_KEEP && !r->flush_output;
}

/* No subnormal number of f is one of binary32, or it is flushed. */
static int is_flushed(const mpsim_model *m, const mpsim_format *f)
{
    return m->traits & MPSIM_TRAIT_FLUSH_OPERANDS ? mpsim_emin(f) == -126 : mpsim_format_last_bit(f) >= -126;
}

/* Whether the machine flushes: valgrind's does not though it is told to, others are not told to (environment.h). */
static int machine_flushes(void)
{
    const mpsim_environment before = mpsim_environment_flushing();
    volatile float normal = 0x1p-126F, subnormal = 0x1p-149F;
    volatile float below = normal * 0.5F, above = subnormal * 0x1p30F;
    mpsim_environment_restore(before);
    return below == 0 && above == 0;
}

/* Chains of instructions: they flush their sums, and which NaN comes of it the reference says. */
static int instruction_init(int *kind, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const int flushes = MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS;
    if (m->addition != MPSIM_ADDITION_FMA || m->traits & ~(flushes | MPSIM_TRAIT_NAN_MINUS) ||
        !(m->traits & MPSIM_TRAIT_FLUSH_SUMS) || mpsim_emin(&m->result.format) < -126 || !is_flushed(m, fa) ||
        !is_flushed(m, fb))
        return 0;
    *kind = m->order == MPSIM_ORDER_LANES ? MPSIM_CHAIN_LANES : MPSIM_CHAIN_ODD_FIRST;
    return (m->order == MPSIM_ORDER_ODD_FIRST || (m->order == MPSIM_ORDER_LANES && m->length == 2)) &&
           machine_flushes();
}

/* Whether every product is a number of binary32: then a fused multiply-add rounds as a product and a sum do. */
static int products_are_exact(const mpsim_format *fa, const mpsim_format *fb)
{
    return fa->mbits + fb->mbits + 2 <= 24 && mpsim_format_last_bit(fa) + mpsim_format_last_bit(fb) >= -149 &&
           mpsim_format_highest(fa) + mpsim_format_highest(fb) <= 128;
}

int mpsim_chain_init(int *kind, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const int is_fma = m->addition == MPSIM_ADDITION_FMA;
    if ((!is_fma && m->addition != MPSIM_ADDITION_MULADD) || !mpsim_in_binary32(fa) || !mpsim_in_binary32(fb))
        return 0;
    if (!mpsim_is_native(&m->accumulator) || !mpsim_in_binary32(&m->result.format) ||
        (!is_fma && !mpsim_is_native(&m->product)) || (m->chunk != 0 && !mpsim_is_native(&m->outer)))
        return 0;
    if (m->traits || m->order > MPSIM_ORDER_PAIRWISE)
        return instruction_init(kind, m, fa, fb);
    *kind = is_fma                             ? MPSIM_CHAIN_FMA
            : m->order == MPSIM_ORDER_PAIRWISE ? MPSIM_CHAIN_PAIRWISE
            : products_are_exact(fa, fb)       ? MPSIM_CHAIN_FMA
                                               : MPSIM_CHAIN_MULADD;
    return 1;
}
