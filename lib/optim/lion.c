/* lion.c -- Lion, operation by operation as lion-pytorch does it, and in textbook order.
 *
 * arXiv 2302.06675; lion-pytorch 0.2.5, lion_pytorch.py. The update is the sign of an interpolation, +0 for zeros and
 * NaNs as torch.sign has it; the moment follows with another beta. */
#include "steps.h"

#include <string.h>

static float sign_of(float x)
{
    return (float)((x > 0) - (x < 0));
}

static void numbers_lion(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    x->decay = (float)(j->o->lr * j->o->weight_decay);
    x->kept = (float)(1 - j->o->lr * j->o->weight_decay);
    x->step_size = (float)-j->o->lr;
}

static void lion_ops(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float u[MPSIM_OPTIM_BLOCK];
    const mpsim_optim *o = j->o;
    const mpsim_ops x = {.rules = j->row->rules, .n = b->n, .tail = b->tail};
    mpsim_op_mul(&x, &j->param, b->p, 1 - o->lr * o->weight_decay);
    memcpy(u, b->m, b->n * sizeof *u);
    mpsim_op_mul(&x, &j->state, u, o->beta1);
    mpsim_op_add(&x, &j->state, u, b->g, 1 - o->beta1);
    for (size_t i = 0; i < b->n; i++)
        u[i] = sign_of(u[i]);
    mpsim_op_add(&x, &j->param, b->p, u, -o->lr);
    mpsim_op_mul(&x, &j->state, b->m, o->beta2);
    mpsim_op_add(&x, &j->state, b->m, b->g, 1 - o->beta2);
}

const mpsim_step mpsim_lion_ops = {numbers_lion, lion_ops};

static void lion_ieee(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float p[MPSIM_OPTIM_BLOCK], m[MPSIM_OPTIM_BLOCK];
    const mpsim_optim_numbers *x = &j->x;
    for (size_t i = 0; i < b->n; i++) {
        const float g = mpsim_optim_gradient(x, b->g[i]);
        const float kept = x->decays ? b->p[i] - x->decay * b->p[i] : b->p[i];
        p[i] = kept - x->lr * sign_of(x->b1 * b->m[i] + x->rest1 * g);
        m[i] = x->b2 * b->m[i] + x->rest2 * g;
    }
    mpsim_optim_store_state(j, b->m, m, b->n);
    mpsim_optim_store_param(j, b, p);
}

const mpsim_step mpsim_lion_ieee = {numbers_lion, lion_ieee};

double mpsim_lion_reference(const mpsim_reference *r, double g, double *m)
{
    const mpsim_optim *o = r->o;
    const double u = o->beta1 * *m + (1 - o->beta1) * g;
    *m = o->beta2 * *m + (1 - o->beta2) * g;
    return o->lr * ((u > 0) - (u < 0));
}
