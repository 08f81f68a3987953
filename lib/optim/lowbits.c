/* lowbits.c -- steps of the optimizers that keep moments in FP8: COAT and MS-AMP. Their moments are binary32
 * here while a step runs (mpsim/optimstate.h says how they are stored).
 *
 * Sums of two products contract as in fused.c's kernels of apex; 1 - beta and beta^t - 1 are binary32. Neither
 * was compared with a run: what the device compiler contracts, and its powf, are open. */
#include "steps.h"

#include <math.h>

static void numbers_coat(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    x->rest1 = 1 - x->b1;
    x->rest2 = 1 - x->b2;
    x->bc1 = 1 - (float)j->beta1.of_float;
    x->root = sqrtf(1 - (float)j->beta2.of_float);
}

typedef struct results {
    float p[MPSIM_OPTIM_BLOCK], m[MPSIM_OPTIM_BLOCK], v[MPSIM_OPTIM_BLOCK];
} results;

static void store(const mpsim_optim_job *j, const mpsim_optim_block *b, const results *r)
{
    mpsim_optim_store_state(j, b->m, r->m, b->n);
    mpsim_optim_store_state(j, b->v, r->v, b->n);
    mpsim_optim_store_param(j, b, r->p);
}

/* ---- COAT: NVlabs/VILA @36f6adcd, fp8_adamw_expand_cuda_kernel.cu ----
 *
 * Both corrections are in the denominator; weight decay is added to the update. */

static void adam_coat(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim_numbers *x = &j->x;
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i], g = b->g[i];
        r.m[i] = fmaf(b->m[i], x->b1, x->rest1 * g);
        r.v[i] = fmaf(b->v[i], x->b2, x->rest2 * g * g);
        const float denominator = (sqrtf(r.v[i]) / x->root + x->eps) * x->bc1;
        r.p[i] = fmaf(-x->lr, fmaf(x->wd, p, r.m[i] / denominator), p);
    }
    store(j, b, &r);
}

const mpsim_step mpsim_adam_coat = {numbers_coat, adam_coat};

/* ---- MS-AMP: msamp/optim/adamw.py @03d05edc, adamw.cu @4480ffa4 ----
 *
 * Weight decay comes first, as operations on tensors; the corrections are those of C's pow, in binary64. */

static void numbers_msamp(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    numbers_coat(j, x);
    x->kept = (float)(1 - j->o->lr * j->o->weight_decay);
    x->step_size = x->lr / (float)(1 - j->beta1.of_float);
    x->root = sqrtf((float)(1 - j->beta2.of_float));
}

static void adam_msamp(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim_numbers *x = &j->x;
    const int decoupled = j->traits->decoupled;
    for (size_t i = 0; i < b->n; i++) {
        float p = b->p[i], g = x->negates ? -b->g[i] : b->g[i];
        if (x->decays && decoupled)
            p *= x->kept;
        else if (x->decays)
            g = fmaf(x->wd, p, g);
        r.m[i] = fmaf(b->m[i], x->b1, x->rest1 * g);
        r.v[i] = fmaf(b->v[i], x->b2, x->rest2 * (g * g));
        r.p[i] = fmaf(-x->step_size, r.m[i] / (sqrtf(r.v[i]) / x->root + x->eps), p);
    }
    store(j, b, &r);
}

const mpsim_step mpsim_adam_msamp = {numbers_msamp, adam_msamp};
