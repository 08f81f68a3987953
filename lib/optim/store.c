/* store.c -- how a step stores what it computed: rounded to the formats of parameter and moments. */
#include "steps.h"

#include "../round/scalar.h"

#include <mpsim/round.h>
#include <string.h>

/* ---- numbers of a format ---- */

/* As IEEE 754 has them: signed zeros, infinities and NaNs above the largest number. */
static int is_plain(const mpsim_format *f)
{
    const uint64_t top = ((((uint64_t)1 << f->ebits) - 1) << f->mbits) - 1;
    return mpsim_format_is_signed(f) && f->inf && f->nan == MPSIM_NAN_TOP && f->zero == MPSIM_ZERO_SIGNED &&
           f->ebits >= 2 && f->ebits <= 8 && f->mbits >= 1 && f->mbits <= 20 && f->max_finite == top;
}

static uint8_t held_in(const mpsim_format *f)
{
    const int emin = 1 - f->bias, emax = (1 << f->ebits) - 2 - f->bias;
    if (!is_plain(f))
        return MPSIM_HELD_ARRAY;
    if (f->ebits == 8)
        return f->bias == 127 ? MPSIM_HELD_FLAT : MPSIM_HELD_ARRAY;
    return emin >= -90 && emax <= 90 ? MPSIM_HELD_SUM : MPSIM_HELD_ARRAY;
}

mpsim_held mpsim_hold(const mpsim_format *f)
{
    const int exact = !f || (f->bits == 32 && f->ebits == 8 && f->mbits == 23 && f->bias == 127 && f->inf &&
                             f->nan == MPSIM_NAN_TOP && f->zero == MPSIM_ZERO_SIGNED);
    mpsim_held h = {.format = f, .exact = exact, .in = exact ? MPSIM_HELD_EXACT : held_in(f)};
    if (h.in == MPSIM_HELD_FLAT || h.in == MPSIM_HELD_SUM) {
        const int emin = 1 - f->bias, emax = (1 << f->ebits) - 2 - f->bias;
        h.drop = (uint8_t)(23 - f->mbits);
        h.last = (uint32_t)(emax + 128) << 23;
        h.last -= (uint32_t)1 << h.drop;
        h.normal = (uint32_t)(emin + 127) << 23;
    }
    return h;
}

/* One number as kernel/held.h rounds it; of a NaN the canonical one with its sign. */
static float rounded(const mpsim_held *h, float x)
{
    const uint32_t u = mpsim_bits_f32(x), sign = u & 0x80000000u, a = u ^ sign;
    if (a > 0x7f800000u)
        return mpsim_f32_bits(sign | 0x7fc00000u);
    if (h->in == MPSIM_HELD_FLAT) {
        const uint32_t even = (u >> h->drop & 1) + ((uint32_t)1 << (h->drop - 1)) - 1;
        return mpsim_f32_bits((u + even) & ~(((uint32_t)1 << h->drop) - 1));
    }
    const uint32_t huge = h->last + ((uint32_t)1 << 24), b = a < huge ? a : huge;
    const uint32_t top = b & 0x7f800000u;
    const float much = mpsim_f32_bits((top > h->normal ? top : h->normal) + ((uint32_t)h->drop << 23));
    const uint32_t sum = mpsim_bits_f32(mpsim_f32_bits(b) + much - much);
    return mpsim_f32_bits(sign | (sum > h->last ? 0x7f800000u : sum));
}

void mpsim_hold_array(const mpsim_held *h, float *x, size_t n)
{
    mpsim_optim_store(h, x, x, n);
}

void mpsim_optim_store(const mpsim_held *h, float *to, const float *x, size_t n)
{
    if (h->exact) {
        if (x != to)
            memcpy(to, x, n * sizeof *x);
    } else if (n <= MPSIM_OPTIM_LEFT && h->in != MPSIM_HELD_ARRAY) { /* faster than preparing a cast */
        for (size_t i = 0; i < n; i++)
            to[i] = rounded(h, x[i]);
    } else {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_round_array_f32(h->format, &r, NULL, to, x, n, NULL);
    }
}

float mpsim_hold_one(const mpsim_held *h, float x)
{
    mpsim_hold_array(h, &x, 1);
    return x;
}

/* ---- storing ---- */

void mpsim_optim_store_param(const mpsim_optim_job *j, const mpsim_optim_block *b, const float *x)
{
    if (j->o->store != MPSIM_STORE_STOCHASTIC || j->param.exact) {
        mpsim_optim_store(&j->param, b->p, x, b->n);
        return;
    }
    mpsim_rounding r;
    mpsim_rng rng = *j->rng;
    rng.index += b->at;
    mpsim_rounding_init(&r, MPSIM_ROUND_STOCHASTIC_A);
    mpsim_round_array_f32(j->param.format, &r, &rng, b->p, x, b->n, NULL);
}

void mpsim_optim_store_state(const mpsim_optim_job *j, float *to, const float *x, size_t n)
{
    mpsim_optim_store(&j->state, to, x, n);
}
