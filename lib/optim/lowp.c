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

static void numbers_torchao(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    x->bc1 = 1 - (float)j->beta1.of_float;
    x->root = sqrtf(1 - (float)j->beta2.of_float);
    x->decay = x->lr * x->wd;
}

static void adam_torchao(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float p[MPSIM_OPTIM_BLOCK], m[MPSIM_OPTIM_BLOCK], v[MPSIM_OPTIM_BLOCK];
    const mpsim_optim *o = j->o;
    const int fused = j->row->fused;
    const float lr = j->x.lr, wd = j->x.wd, decay = j->x.decay, eps = j->x.eps;
    const float w1 = j->x.rest1, w2 = j->x.rest2, bc1 = j->x.bc1, root = j->x.root;
    for (size_t i = 0; i < b->n; i++) {
        float g = b->g[i];
        p[i] = b->p[i];
        if (j->traits->decoupled)
            p[i] = p[i] - decay * p[i];
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

const mpsim_step mpsim_adam_torchao = {numbers_torchao, adam_torchao};

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
static void start(const mpsim_optim_job *j, const mpsim_optim_block *b, const mpsim_ops *x, float *g)
{
    const mpsim_optim *o = j->o;
    memcpy(g, b->g, b->n * sizeof *g);
    if (o->weight_decay != 0 && j->traits->decoupled)
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

static void numbers_sgd_optimi(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    x->kept = (float)(1 - j->o->lr * j->o->weight_decay);
    x->b1 = x->momentum;
    x->rest1 = (float)(1 - j->o->momentum);
    x->step_size = (float)-j->o->lr;
}

static void sgd_optimi(const mpsim_optim_job *j, const mpsim_optim_block *b)
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

const mpsim_step mpsim_sgd_optimi = {numbers_sgd_optimi, sgd_optimi};

static void numbers_adam_optimi(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    const double b1 = debiased(j->o->beta1, j->beta1.of_double);
    const double b2 = debiased(j->o->beta2, j->beta2.of_double);
    x->kept = (float)(1 - j->o->lr * j->o->weight_decay);
    x->rest1 = (float)(1 - b1);
    x->b2 = (float)b2;
    x->rest2 = (float)(1 - b2);
    x->step_size = (float)-j->o->lr;
}

static void adam_optimi(const mpsim_optim_job *j, const mpsim_optim_block *b)
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

const mpsim_step mpsim_adam_optimi = {numbers_adam_optimi, adam_optimi};

/* ---- the Triton kernels: binary32, but for the parameter and its sums ---- */

/* The parameter after decoupled decay, rounded; the gradient with decay that is not decoupled. */
static void start_triton(const mpsim_optim_job *j, const mpsim_optim_block *b, float *g)
{
    memcpy(g, b->g, b->n * sizeof *g);
    if (j->x.decays && j->traits->decoupled) {
        mpsim_op(MPSIM_OP_SCALE, b->p, b->p, NULL, j->x.kept, b->n);
        mpsim_hold_array(&j->param, b->p, b->n);
    } else if (j->x.decays) {
        mpsim_op(MPSIM_OP_ADD_CONTRACTED, g, b->p, NULL, j->x.wd, b->n);
    }
}

/* What an update is subtracted from. */
static void compensation(const mpsim_optim_job *j, const mpsim_optim_block *b, float *k)
{
    if (j->o->store == MPSIM_STORE_KAHAN)
        memcpy(k, b->kahan, b->n * sizeof *k);
    else
        memset(k, 0, b->n * sizeof *k);
}

/* p = p + rounded k; with Kahan summation k was added to the compensation, and what p did not take
 * is the new one: k + old p - new p in binary32, rounded. */
static void finish_triton(const mpsim_optim_job *j, const mpsim_optim_block *b, float *k)
{
    float sum[MPSIM_OPTIM_BLOCK];
    memcpy(sum, k, b->n * sizeof *k);
    mpsim_hold_array(&j->param, sum, b->n);
    mpsim_op(MPSIM_OP_ADD, sum, b->p, NULL, 0, b->n);
    mpsim_hold_array(&j->param, sum, b->n);
    if (j->o->store == MPSIM_STORE_KAHAN) {
        mpsim_op(MPSIM_OP_ADD, k, b->p, NULL, 0, b->n);
        mpsim_op(MPSIM_OP_ADD_PLAIN, k, sum, NULL, -1, b->n);
        memcpy(b->kahan, k, b->n * sizeof *k);
        mpsim_hold_array(&j->param, b->kahan, b->n);
    }
    memcpy(b->p, sum, b->n * sizeof *sum);
}

static void numbers_sgd_triton(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    x->decays = x->wd != 0;
    x->has_momentum = x->momentum != 0;
    x->rest = dampened(j->o) ? 1 - x->momentum : 1;
}

static void sgd_optimi_triton(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float g[MPSIM_OPTIM_BLOCK], k[MPSIM_OPTIM_BLOCK];
    start_triton(j, b, g);
    if (j->x.has_momentum) {
        mpsim_op(MPSIM_OP_SCALE, g, g, NULL, j->x.rest, b->n);
        mpsim_op(MPSIM_OP_ADD_SCALED, g, b->m, NULL, j->x.momentum, b->n);
        mpsim_optim_store_state(j, b->m, g, b->n);
    }
    compensation(j, b, k);
    mpsim_op(MPSIM_OP_ADD_CONTRACTED, k, g, NULL, -j->x.lr, b->n);
    finish_triton(j, b, k);
}

const mpsim_step mpsim_sgd_optimi_triton = {numbers_sgd_triton, sgd_optimi_triton};

static void numbers_adam_triton(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    const double d1 = debiased(j->o->beta1, j->beta1.of_double);
    const double d2 = debiased(j->o->beta2, j->beta2.of_double);
    x->decays = x->wd != 0;
    x->kept = (float)(1 - j->o->lr * j->o->weight_decay);
    x->b1 = (float)d1;
    x->b2 = (float)d2;
    x->rest1 = (float)(1 - d1);
    x->rest2 = (float)(1 - d2);
}

static void adam_optimi_triton(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float g[MPSIM_OPTIM_BLOCK], m[MPSIM_OPTIM_BLOCK], v[MPSIM_OPTIM_BLOCK], k[MPSIM_OPTIM_BLOCK];
    start_triton(j, b, g);
    mpsim_op(MPSIM_OP_SCALE, m, g, NULL, j->x.rest1, b->n);
    mpsim_op(MPSIM_OP_ADD_SCALED, m, b->m, NULL, j->x.b1, b->n);
    mpsim_op(MPSIM_OP_SCALE, v, g, NULL, j->x.rest2, b->n);
    mpsim_op(MPSIM_OP_MULTIPLY, v, g, NULL, 0, b->n);
    mpsim_op(MPSIM_OP_ADD_SCALED, v, b->v, NULL, j->x.b2, b->n);
    mpsim_op(MPSIM_OP_SQRT, g, v, NULL, 0, b->n);
    mpsim_op(MPSIM_OP_SHIFT, g, g, NULL, j->x.eps, b->n);
    compensation(j, b, k);
    mpsim_op(MPSIM_OP_ADDCDIV_INNER, k, m, g, -j->x.lr, b->n);
    mpsim_optim_store_state(j, b->m, m, b->n);
    mpsim_optim_store_state(j, b->v, v, b->n);
    finish_triton(j, b, k);
}

const mpsim_step mpsim_adam_optimi_triton = {numbers_adam_triton, adam_optimi_triton};

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
