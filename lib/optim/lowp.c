/* lowp.c -- optimizers for low-precision parameters: torchao with stochastic rounding, optimi
 * with Kahan summation; a master copy kept as the remainder of the parameter. */
#include "steps.h"

#include "../round/scalar.h"

#include <math.h>
#include <string.h>

/* ---- torchao: optim/adam.py, single_param_adam ----
 *
 * Binary32 from the stored moments; what is stored is rounded, what is used is not. lr and the bias
 * corrections are binary32 tensors. Uncompiled on CPU lerp alone is contracted; compiled for CPU
 * nothing is; compiled for a GPU more may be. */

static inline float lerp(int fused, float s, float e, float w)
{
    const float from = w < 0.5f ? s : e, factor = w < 0.5f ? w : w - 1;
    return fused ? fmaf(factor, e - s, from) : factor * (e - s) + from;
}

void mpsim_adam_torchao(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float p[MPSIM_OPTIM_BLOCK], m[MPSIM_OPTIM_BLOCK], v[MPSIM_OPTIM_BLOCK];
    const mpsim_optim *o = j->o;
    const int fused = j->row->fused;
    const float lr = (float)o->lr, wd = (float)o->weight_decay, eps = (float)o->eps;
    const float w1 = (float)(1 - o->beta1), w2 = (float)(1 - o->beta2);
    const float bc1 = 1 - (float)j->beta1.of_float, root = sqrtf(1 - (float)j->beta2.of_float);
    for (size_t i = 0; i < b->n; i++) {
        float g = b->g[i];
        p[i] = b->p[i];
        if (o->algorithm == MPSIM_OPTIM_ADAMW)
            p[i] = p[i] - lr * wd * p[i];
        else
            g = g + wd * p[i];
        m[i] = lerp(fused, b->m[i], g, w1);
        v[i] = lerp(fused, b->v[i], g * g, w2);
    }
    mpsim_optim_store_state(j, b->m, m, b->n);
    mpsim_optim_store_state(j, b->v, v, b->n);
    if (o->amsgrad) {
        for (size_t i = 0; i < b->n; i++)
            v[i] = mpsim_optim_larger(b->vmax[i], v[i]);
        mpsim_optim_store_state(j, b->vmax, v, b->n);
    }
    for (size_t i = 0; i < b->n; i++)
        p[i] = p[i] - lr * (m[i] / bc1) / (sqrtf(v[i]) / root + eps);
    mpsim_optim_store_param(j, b, p);
}

/* ---- optimi: optimi/adam.py ----
 *
 * The betas are debiased: b^ = (b^t - b) / (b^t - 1), so that moments need no bias correction. With
 * Kahan summation the update goes to a compensation first, which keeps what the parameter lost. */

static double debiased(double beta, double power)
{
    return (power - beta) / (power - 1);
}

/* optimi's dampening is a switch, 1 - dampening being 1 or 1 - momentum, and its momentum buffer
 * starts at zero. */
static int dampened(const mpsim_optim *o)
{
    return o->dampening != 0;
}

/* ---- each operation on tensors in their format ---- */

/* Decay; the gradient, with decay if that is not decoupled. */
static void start(const mpsim_optim_job *j, const mpsim_optim_block *b, const mpsim_ops *x,
                  float *g)
{
    const mpsim_optim *o = j->o;
    memcpy(g, b->g, b->n * sizeof *g);
    if (o->weight_decay != 0 && o->algorithm == MPSIM_OPTIM_ADAMW)
        mpsim_op_mul(x, &j->param, b->p, 1 - o->lr * o->weight_decay);
    else if (o->weight_decay != 0)
        mpsim_op_add(x, &j->param, g, b->p, o->weight_decay);
}

/* The update is in the compensation: p gets it, and c what p did not take. */
static void compensate(const mpsim_optim_job *j, const mpsim_optim_block *b, const mpsim_ops *x)
{
    float old[MPSIM_OPTIM_BLOCK];
    memcpy(old, b->p, b->n * sizeof *old);
    mpsim_op_add(x, &j->param, b->p, b->kahan, 1);
    mpsim_op_add(x, &j->param, old, b->p, -1);
    mpsim_op_add(x, &j->param, b->kahan, old, 1);
}

void mpsim_sgd_optimi(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float g[MPSIM_OPTIM_BLOCK];
    const mpsim_optim *o = j->o;
    const mpsim_ops x = {.rules = j->row->rules, .n = b->n, .tail = b->tail};
    const int kahan = o->store == MPSIM_STORE_KAHAN;
    start(j, b, &x, g);
    if (o->momentum != 0 && dampened(o)) {
        mpsim_op_lerp(&x, &j->state, b->m, g, 1 - o->momentum);
    } else if (o->momentum != 0) {
        mpsim_op_mul(&x, &j->state, b->m, o->momentum);
        mpsim_op_add(&x, &j->state, b->m, g, 1);
    }
    mpsim_op_add(&x, &j->param, kahan ? b->kahan : b->p, o->momentum != 0 ? b->m : g, -o->lr);
    if (kahan)
        compensate(j, b, &x);
}

void mpsim_adam_optimi(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float d[MPSIM_OPTIM_BLOCK], g[MPSIM_OPTIM_BLOCK];
    const mpsim_optim *o = j->o;
    const mpsim_ops x = {.rules = j->row->rules, .n = b->n, .tail = b->tail};
    const int kahan = o->store == MPSIM_STORE_KAHAN;
    const double b1 = debiased(o->beta1, j->beta1.of_double);
    const double b2 = debiased(o->beta2, j->beta2.of_double);
    start(j, b, &x, g);
    mpsim_op_lerp(&x, &j->state, b->m, g, 1 - b1);
    mpsim_op_mul(&x, &j->state, b->v, b2);
    mpsim_op_addcmul(&x, &j->state, b->v, g, g, 1 - b2);
    mpsim_op_sqrt(&x, &j->state, d, b->v);
    mpsim_op_add_scalar(&x, &j->state, d, o->eps);
    mpsim_op_addcdiv(&x, &j->param, kahan ? b->kahan : b->p, b->m, d, -o->lr);
    if (kahan)
        compensate(j, b, &x);
}

/* ---- the Triton kernels: binary32, but for the parameter and its sums ---- */

/* The parameter after decoupled decay, rounded; the gradient with decay that is not decoupled. */
static void start_triton(const mpsim_optim_job *j, const mpsim_optim_block *b, float *g)
{
    const mpsim_optim *o = j->o;
    const float kept = (float)(1 - o->lr * o->weight_decay), wd = (float)o->weight_decay;
    memcpy(g, b->g, b->n * sizeof *g);
    if (wd != 0 && o->algorithm == MPSIM_OPTIM_ADAMW) {
        for (size_t i = 0; i < b->n; i++)
            b->p[i] *= kept;
        mpsim_hold_array(&j->param, b->p, b->n);
    } else if (wd != 0) {
        for (size_t i = 0; i < b->n; i++)
            g[i] = fmaf(wd, b->p[i], g[i]);
    }
}

/* p = p + rounded k; with Kahan summation k was added to the compensation, and what p did not take
 * is the new one: k + old p - new p in binary32, rounded. */
static void finish_triton(const mpsim_optim_job *j, const mpsim_optim_block *b, float *k)
{
    float sum[MPSIM_OPTIM_BLOCK];
    memcpy(sum, k, b->n * sizeof *k);
    mpsim_hold_array(&j->param, sum, b->n);
    for (size_t i = 0; i < b->n; i++)
        sum[i] += b->p[i];
    mpsim_hold_array(&j->param, sum, b->n);
    if (j->o->store == MPSIM_STORE_KAHAN) {
        for (size_t i = 0; i < b->n; i++)
            b->kahan[i] = k[i] + b->p[i] - sum[i];
        mpsim_hold_array(&j->param, b->kahan, b->n);
    }
    memcpy(b->p, sum, b->n * sizeof *sum);
}

/* What an update is subtracted from. */
static inline float compensation(const mpsim_optim_job *j, const mpsim_optim_block *b, size_t i)
{
    return j->o->store == MPSIM_STORE_KAHAN ? b->kahan[i] : 0;
}

void mpsim_sgd_optimi_triton(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float g[MPSIM_OPTIM_BLOCK], m[MPSIM_OPTIM_BLOCK];
    const mpsim_optim *o = j->o;
    const float lr = (float)o->lr, momentum = (float)o->momentum;
    const float rest = dampened(o) ? 1 - momentum : 1;
    start_triton(j, b, g);
    if (momentum != 0) {
        for (size_t i = 0; i < b->n; i++)
            g[i] = m[i] = fmaf(b->m[i], momentum, rest * g[i]);
        mpsim_optim_store_state(j, b->m, m, b->n);
    }
    for (size_t i = 0; i < b->n; i++)
        g[i] = fmaf(-lr, g[i], compensation(j, b, i));
    finish_triton(j, b, g);
}

void mpsim_adam_optimi_triton(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float g[MPSIM_OPTIM_BLOCK], m[MPSIM_OPTIM_BLOCK], v[MPSIM_OPTIM_BLOCK];
    const mpsim_optim *o = j->o;
    const double d1 = debiased(o->beta1, j->beta1.of_double);
    const double d2 = debiased(o->beta2, j->beta2.of_double);
    const float b1 = (float)d1, b2 = (float)d2, rest1 = (float)(1 - d1), rest2 = (float)(1 - d2);
    const float lr = (float)o->lr, eps = (float)o->eps;
    start_triton(j, b, g);
    for (size_t i = 0; i < b->n; i++) {
        m[i] = fmaf(b->m[i], b1, rest1 * g[i]);
        v[i] = fmaf(b->v[i], b2, rest2 * g[i] * g[i]);
        g[i] = compensation(j, b, i) - lr * m[i] / (sqrtf(v[i]) + eps);
    }
    mpsim_optim_store_state(j, b->m, m, b->n);
    mpsim_optim_store_state(j, b->v, v, b->n);
    finish_triton(j, b, g);
}

/* ---- a master in two halves ---- */

void mpsim_master_split(uint16_t *model, int16_t *remainder, float master)
{
    const uint32_t u = mpsim_bits_f32(master), low = u & 0xffff;
    *remainder = (int16_t)(low >= 0x8000 ? (int32_t)low - 0x10000 : (int32_t)low);
    *model = (uint16_t)((u >> 16) + (*remainder < 0));
}

float mpsim_master_join(uint16_t model, int16_t remainder)
{
    const uint32_t high = (uint32_t)(model - (remainder < 0)) & 0xffff;
    return mpsim_f32_bits(high << 16 | (uint16_t)remainder);
}
