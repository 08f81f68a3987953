/* store.c -- how a step stores what it computed: rounded to the formats of parameter and moments. */
#include "steps.h"

#include <mpsim/round.h>
#include <string.h>

/* ---- numbers of a format ---- */

mpsim_held mpsim_hold(const mpsim_format *f)
{
    const int exact = !f || (f->bits == 32 && f->ebits == 8 && f->mbits == 23 && f->bias == 127 && f->inf &&
                             f->nan == MPSIM_NAN_TOP && f->zero == MPSIM_ZERO_SIGNED);
    return (mpsim_held){.format = f, .exact = exact};
}

void mpsim_hold_array(const mpsim_held *h, float *x, size_t n)
{
    if (h->exact)
        return;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_round_array_f32(h->format, &r, NULL, x, x, n, NULL);
}

float mpsim_hold_one(const mpsim_held *h, float x)
{
    mpsim_hold_array(h, &x, 1);
    return x;
}

/* ---- storing ---- */

void mpsim_optim_store_param(const mpsim_optim_job *j, const mpsim_optim_block *b, const float *x)
{
    const int stochastic = j->o->store == MPSIM_STORE_STOCHASTIC && !j->param.exact;
    mpsim_rounding r;
    mpsim_rng rng = {0, 0, 0};
    if (stochastic) {
        rng = *j->rng;
        rng.index += b->at;
    }
    mpsim_rounding_init(&r, stochastic ? MPSIM_ROUND_STOCHASTIC_A : MPSIM_ROUND_NEAREST_EVEN);
    if (!j->param.exact)
        mpsim_round_array_f32(j->param.format, &r, stochastic ? &rng : NULL, b->p, x, b->n, NULL);
    else if (x != b->p)
        memcpy(b->p, x, b->n * sizeof *x);
}

void mpsim_optim_store_state(const mpsim_optim_job *j, float *to, const float *x, size_t n)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (!j->state.exact)
        mpsim_round_array_f32(j->state.format, &r, NULL, to, x, n, NULL);
    else if (x != to)
        memcpy(to, x, n * sizeof *x);
}
