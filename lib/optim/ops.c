/* ops.c -- optimizer steps that are sequences of tensor operations.
 *
 * torch/optim/sgd.py and adam.py, single-tensor and foreach. Every operation is done in binary32,
 * and its result is rounded to the tensor's format (ATen's opmath). What an operation contracts to
 * an FMA, how it associates, and what becomes of its scalar differ between CUDA and the CPU, and
 * between foreach and the for-loop: a row of mpsim_op_rules.
 *
 * A low-precision tensor is an array of binary32 values that are numbers of its format. A step in bf16, fp16 or a
 * similar format is one pass: the kernel rounds in registers (kernel/held.h), to bf16 by adding to the bits, to
 * fewer exponents by adding a power of two. A second table lists the scalars
 * that a framework rounds to the tensor's format. */
#include "kernel/kernel.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Scalars that are rounded to a low-precision tensor's format first. */
enum { ROUND_ALPHA = 1, ROUND_FACTOR = 2 };

struct mpsim_op_rules {
    mpsim_op_kind add;     /* y = y + s x                  */
    mpsim_op_kind lerp;    /* y = y + s (x - y), |s| < 0.5 */
    mpsim_op_kind addcmul; /* y = y + s a b                */
    mpsim_op_kind addcdiv; /* y = y + s a / b              */
    int reciprocal;        /* x / s is x * (1 / s), of which the reciprocal is binary64's */
    int scalars;           /* ROUND_*                      */
};

/* ---- what operations do: the reference of kernel/ops.h, and what it leaves ---- */

typedef void reference_function(float *y, const float *a, const float *b, float s, size_t n);

static void scale(float *y, const float *a, const float *b, float s, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] * s;
}

static void divide(float *y, const float *a, const float *b, float s, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] / s;
}

static void shift(float *y, const float *a, const float *b, float s, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + s;
}

static void root(float *y, const float *a, const float *b, float s, size_t n)
{
    (void)b, (void)s;
    for (size_t i = 0; i < n; i++)
        y[i] = sqrtf(a[i]);
}

static void larger(float *y, const float *a, const float *b, float s, size_t n)
{
    (void)b, (void)s;
    for (size_t i = 0; i < n; i++)
        y[i] = mpsim_optim_larger(y[i], a[i]);
}

static void add(float *y, const float *a, const float *b, float s, size_t n)
{
    (void)b, (void)s;
    for (size_t i = 0; i < n; i++)
        y[i] += a[i];
}

static void multiply(float *y, const float *a, const float *b, float s, size_t n)
{
    (void)b, (void)s;
    for (size_t i = 0; i < n; i++)
        y[i] *= a[i];
}

static void add_contracted(float *y, const float *x, const float *b, float s, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(s, x[i], y[i]);
}

static void add_scaled(float *y, const float *x, const float *b, float s, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(x[i], s, y[i]);
}

static void add_plain(float *y, const float *x, const float *b, float s, size_t n)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] + s * x[i];
}

/* Lerp.h: from the nearer end, on CUDA e - (e - y) (1 - s), on CPU e + (s - 1) (e - y). They differ
 * where 1 - s is 0 and e is -0: +0 and -0. */
static void lerp_cuda(float *y, const float *x, const float *b, float s, size_t n)
{
    const int low = fabsf(s) < 0.5f;
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] = low ? fmaf(s, x[i] - y[i], y[i]) : fmaf(-(x[i] - y[i]), 1 - s, x[i]);
}

static void lerp_contracted(float *y, const float *x, const float *b, float s, size_t n)
{
    const int low = fabsf(s) < 0.5f;
    const float w = low ? s : s - 1;
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(w, x[i] - y[i], low ? y[i] : x[i]);
}

static void lerp_plain(float *y, const float *x, const float *b, float s, size_t n)
{
    const int low = fabsf(s) < 0.5f;
    const float w = low ? s : s - 1;
    (void)b;
    for (size_t i = 0; i < n; i++)
        y[i] = (low ? y[i] : x[i]) + w * (x[i] - y[i]);
}

/* CUDA, DeviceAddCmulCdiv.cuh: the product of the tensors first. */
static void addcmul_outer(float *y, const float *a, const float *b, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = s == 1 ? fmaf(a[i], b[i], y[i]) : fmaf(s, a[i] * b[i], y[i]);
}

/* CPU: the scalar times the first tensor first. */
static void addcmul_inner(float *y, const float *a, const float *b, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(s * a[i], b[i], y[i]);
}

static void addcmul_plain(float *y, const float *a, const float *b, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] + s * a[i] * b[i];
}

/* CUDA; for s = 1 that is y + a / b. */
static void addcdiv_outer(float *y, const float *a, const float *b, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(s, a[i] / b[i], y[i]);
}

static void addcdiv_inner(float *y, const float *a, const float *b, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] + s * a[i] / b[i];
}

static reference_function *const references[MPSIM_OPS] = {
    [MPSIM_OP_SCALE] = scale,
    [MPSIM_OP_DIVIDE] = divide,
    [MPSIM_OP_SHIFT] = shift,
    [MPSIM_OP_SQRT] = root,
    [MPSIM_OP_LARGER] = larger,
    [MPSIM_OP_ADD] = add,
    [MPSIM_OP_MULTIPLY] = multiply,
    [MPSIM_OP_ADD_CONTRACTED] = add_contracted,
    [MPSIM_OP_ADD_SCALED] = add_scaled,
    [MPSIM_OP_ADD_PLAIN] = add_plain,
    [MPSIM_OP_LERP_CUDA] = lerp_cuda,
    [MPSIM_OP_LERP_CONTRACTED] = lerp_contracted,
    [MPSIM_OP_LERP_PLAIN] = lerp_plain,
    [MPSIM_OP_ADDCMUL_OUTER] = addcmul_outer,
    [MPSIM_OP_ADDCMUL_INNER] = addcmul_inner,
    [MPSIM_OP_ADDCMUL_PLAIN] = addcmul_plain,
    [MPSIM_OP_ADDCDIV_OUTER] = addcdiv_outer,
    [MPSIM_OP_ADDCDIV_INNER] = addcdiv_inner,
};

static const float *from(const float *x, size_t i)
{
    return x ? x + i : NULL;
}

void mpsim_op(mpsim_op_kind kind, float *y, const float *a, const float *b, float s, size_t n)
{
    const mpsim_optim_kernels *k = mpsim_optim_kernels_active();
    size_t most = k ? MPSIM_OPTIM_LEFT : n;
    for (size_t i = 0; i < n;) {
        const size_t done = k ? k->op[kind](y + i, from(a, i), from(b, i), s, n - i) : 0;
        i += done;
        most = k && done > 0 ? MPSIM_OPTIM_LEFT : 2 * most;
        const size_t m = n - i < most ? n - i : most;
        references[kind](y + i, from(a, i), from(b, i), s, m);
        i += m;
    }
}

/* ---- rules ---- */

/* CUDA divides a tensor by a number as a product with its reciprocal, of binary64, but foreach by a list
 * of numbers truly (recorded: data/vectors/device). On CPU, alpha and added numbers are rounded to the tensor's
 * format, in foreach the factors of mul, too (data/vectors/optim/check_optim.py). */
const mpsim_op_rules mpsim_rules_cuda_loop = {
    MPSIM_OP_ADD_CONTRACTED, MPSIM_OP_LERP_CUDA, MPSIM_OP_ADDCMUL_OUTER, MPSIM_OP_ADDCDIV_OUTER, 1, 0};
const mpsim_op_rules mpsim_rules_cuda_list = {
    MPSIM_OP_ADD_CONTRACTED, MPSIM_OP_LERP_CUDA, MPSIM_OP_ADDCMUL_OUTER, MPSIM_OP_ADDCDIV_OUTER, 0, 0};
const mpsim_op_rules mpsim_rules_cpu_loop = {
    MPSIM_OP_ADD_CONTRACTED, MPSIM_OP_LERP_CONTRACTED, MPSIM_OP_ADDCMUL_INNER, MPSIM_OP_ADDCDIV_INNER, 0, ROUND_ALPHA};
const mpsim_op_rules mpsim_rules_cpu_list = {
    MPSIM_OP_ADD_CONTRACTED,   MPSIM_OP_LERP_CONTRACTED, MPSIM_OP_ADDCMUL_INNER, MPSIM_OP_ADDCDIV_INNER, 0,
    ROUND_ALPHA | ROUND_FACTOR};
const mpsim_op_rules mpsim_rules_cpu_loop_plain = {
    MPSIM_OP_ADD_PLAIN, MPSIM_OP_LERP_PLAIN, MPSIM_OP_ADDCMUL_PLAIN, MPSIM_OP_ADDCDIV_INNER, 0, ROUND_ALPHA};
const mpsim_op_rules mpsim_rules_cpu_list_plain = {
    MPSIM_OP_ADD_PLAIN,        MPSIM_OP_LERP_PLAIN, MPSIM_OP_ADDCMUL_PLAIN, MPSIM_OP_ADDCDIV_INNER, 0,
    ROUND_ALPHA | ROUND_FACTOR};

/* ---- operations ---- */

/* A scalar as the operation sees it. */
static float scalar_of(const mpsim_ops *o, const mpsim_held *h, double s, int rule)
{
    const float x = (float)s;
    return o->rules->scalars & rule ? mpsim_hold_one(h, x) : x;
}

enum {
    SGD = 1 << MPSIM_OPTIM_SGD,
    ADAM = 1 << MPSIM_OPTIM_ADAM,
    LION = 1 << MPSIM_OPTIM_LION,
    ALL = SGD | ADAM | LION
};

/* Numbers of a step that are scalars of operations in the format of the parameter or of the state. */
static const struct {
    size_t at;
    uint8_t rule, of_state, families;
} scalars[] = {{offsetof(mpsim_optim_numbers, wd), ROUND_ALPHA, 0, ALL},
               {offsetof(mpsim_optim_numbers, momentum), ROUND_ALPHA, 0, SGD},
               {offsetof(mpsim_optim_numbers, step_size), ROUND_ALPHA, 0, SGD | LION},
               {offsetof(mpsim_optim_numbers, eps), ROUND_ALPHA, 1, ADAM},
               {offsetof(mpsim_optim_numbers, rest), ROUND_ALPHA, 1, SGD},
               {offsetof(mpsim_optim_numbers, rest1), ROUND_ALPHA, 1, LION},
               {offsetof(mpsim_optim_numbers, rest2), ROUND_ALPHA, 1, LION},
               {offsetof(mpsim_optim_numbers, kept), ROUND_FACTOR, 0, ALL},
               {offsetof(mpsim_optim_numbers, b1), ROUND_FACTOR, 1, SGD | LION},
               {offsetof(mpsim_optim_numbers, b2), ROUND_FACTOR, 1, ADAM | LION}};

void mpsim_op_scalars(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    const unsigned family = 1u << j->traits->family;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        float *const s = (float *)((char *)x + scalars[i].at);
        if (j->row->rules->scalars & scalars[i].rule && family & scalars[i].families)
            *s = mpsim_hold_one(scalars[i].of_state ? &j->state : &j->param, *s);
    }
}

mpsim_contraction mpsim_op_contraction(const mpsim_op_rules *r)
{
    return r->lerp == MPSIM_OP_LERP_CUDA         ? MPSIM_CONTRACT_CUDA
           : r->lerp == MPSIM_OP_LERP_CONTRACTED ? MPSIM_CONTRACT_CPU
                                                 : MPSIM_CONTRACT_NONE;
}

float mpsim_op_factor(const mpsim_op_rules *r, const mpsim_held *h, double s)
{
    return scalar_of(&(mpsim_ops){.rules = r}, h, s, ROUND_FACTOR);
}

float mpsim_op_alpha(const mpsim_op_rules *r, const mpsim_held *h, double s)
{
    return scalar_of(&(mpsim_ops){.rules = r}, h, s, ROUND_ALPHA);
}

int mpsim_op_multiplies_first(const mpsim_op_rules *r, const mpsim_held *h)
{
    return r->scalars & ROUND_ALPHA && !h->exact;
}

void mpsim_op_mul(const mpsim_ops *o, const mpsim_held *h, float *y, double scalar)
{
    const float s = scalar_of(o, h, scalar, ROUND_FACTOR);
    mpsim_op(MPSIM_OP_SCALE, y, y, NULL, s, o->n);
    mpsim_hold_array(h, y, o->n);
}

/* The CPU's scalar code in a low-precision format rounds the product, its vector code does not. */
void mpsim_op_add(const mpsim_ops *o, const mpsim_held *h, float *y, const float *x, double alpha)
{
    const float s = scalar_of(o, h, alpha, ROUND_ALPHA);
    if (mpsim_op_multiplies_first(o->rules, h)) {
        float product[MPSIM_OPTIM_BLOCK];
        mpsim_op(MPSIM_OP_SCALE, product, x, NULL, s, o->n);
        if (o->tail)
            mpsim_hold_array(h, product, o->n);
        mpsim_op(MPSIM_OP_ADD, y, product, NULL, 0, o->n);
    } else {
        mpsim_op(o->rules->add, y, x, NULL, s, o->n);
    }
    mpsim_hold_array(h, y, o->n);
}

void mpsim_op_lerp(const mpsim_ops *o, const mpsim_held *h, float *y, const float *end, double weight)
{
    mpsim_op(o->rules->lerp, y, end, NULL, (float)weight, o->n);
    mpsim_hold_array(h, y, o->n);
}

void mpsim_op_addcmul(const mpsim_ops *o, const mpsim_held *h, float *y, const float *a, const float *b, double value)
{
    mpsim_op(o->rules->addcmul, y, a, b, (float)value, o->n);
    mpsim_hold_array(h, y, o->n);
}

void mpsim_op_addcdiv(const mpsim_ops *o, const mpsim_held *h, float *y, const float *a, const float *b, double value)
{
    mpsim_op(o->rules->addcdiv, y, a, b, (float)value, o->n);
    mpsim_hold_array(h, y, o->n);
}

void mpsim_op_sqrt(const mpsim_ops *o, const mpsim_held *h, float *y, const float *x)
{
    mpsim_op(MPSIM_OP_SQRT, y, x, NULL, 0, o->n);
    mpsim_hold_array(h, y, o->n);
}

void mpsim_op_div(const mpsim_ops *o, const mpsim_held *h, float *y, double scalar)
{
    if (o->rules->reciprocal)
        mpsim_op(MPSIM_OP_SCALE, y, y, NULL, (float)(1 / scalar), o->n);
    else
        mpsim_op(MPSIM_OP_DIVIDE, y, y, NULL, (float)scalar, o->n);
    mpsim_hold_array(h, y, o->n);
}

void mpsim_op_add_scalar(const mpsim_ops *o, const mpsim_held *h, float *y, double scalar)
{
    const float s = scalar_of(o, h, scalar, ROUND_ALPHA);
    mpsim_op(MPSIM_OP_SHIFT, y, y, NULL, s, o->n);
    mpsim_hold_array(h, y, o->n);
}

/* ---- the steps ---- */

static mpsim_ops ops_of(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    return (mpsim_ops){.rules = j->row->rules, .n = b->n, .tail = b->tail};
}

/* The gradient, negated if the loss is maximized, and with decay if it is not decoupled. */
static void start_gradient(const mpsim_optim_job *j, const mpsim_optim_block *b, const mpsim_ops *x, float *g)
{
    for (size_t i = 0; i < b->n; i++)
        g[i] = mpsim_optim_gradient(&j->x, b->g[i]);
    if (j->o->weight_decay != 0 && !j->traits->decoupled)
        mpsim_op_add(x, &j->param, g, b->p, j->o->weight_decay);
}

static void numbers_sgd(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    x->b1 = x->momentum;
    x->rest = (float)(1 - j->o->dampening);
    x->step_size = (float)-j->o->lr;
}

static void sgd_ops(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float g[MPSIM_OPTIM_BLOCK];
    const mpsim_optim *o = j->o;
    const mpsim_ops x = ops_of(j, b);
    start_gradient(j, b, &x, g);
    if (o->momentum != 0) {
        if (j->step == 1) {
            mpsim_optim_store_state(j, b->m, g, b->n);
        } else {
            mpsim_op_mul(&x, &j->state, b->m, o->momentum);
            mpsim_op_add(&x, &j->state, b->m, g, 1 - o->dampening);
        }
        if (o->nesterov)
            mpsim_op_add(&x, &j->param, g, b->m, o->momentum);
        else
            memcpy(g, b->m, b->n * sizeof *g);
    }
    mpsim_op_add(&x, &j->param, b->p, g, -o->lr);
}

const mpsim_step mpsim_sgd_ops = {numbers_sgd, sgd_ops};

/* Decay, moments; in d the root of the second, or of the largest. */
static void adam_root(const mpsim_optim_job *j, const mpsim_optim_block *b, const mpsim_ops *x, float *d)
{
    float g[MPSIM_OPTIM_BLOCK];
    const mpsim_optim *o = j->o;
    start_gradient(j, b, x, g);
    if (o->weight_decay != 0 && j->traits->decoupled)
        mpsim_op_mul(x, &j->param, b->p, 1 - o->lr * o->weight_decay);
    mpsim_op_lerp(x, &j->state, b->m, g, 1 - o->beta1);
    mpsim_op_mul(x, &j->state, b->v, o->beta2);
    mpsim_op_addcmul(x, &j->state, b->v, g, g, 1 - o->beta2);
    if (o->amsgrad)
        mpsim_op(MPSIM_OP_LARGER, b->vmax, b->v, NULL, 0, b->n);
    mpsim_op_sqrt(x, &j->state, d, o->amsgrad ? b->vmax : b->v);
}

static void numbers_adam(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    x->kept = (float)(1 - j->o->lr * j->o->weight_decay);
    const double root = sqrt(1 - j->beta2.of_double);
    x->root = (float)(j->row->kernel[MPSIM_OPTIM_ADAM] == MPSIM_STEP_ADAM_OPS_RECIPROCAL ? 1 / root : root);
    x->step_size = (float)-(j->o->lr / (1 - j->beta1.of_double));
}

static void adam_ops(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float d[MPSIM_OPTIM_BLOCK];
    const mpsim_ops x = ops_of(j, b);
    const double step_size = j->o->lr / (1 - j->beta1.of_double);
    adam_root(j, b, &x, d);
    mpsim_op_div(&x, &j->state, d, sqrt(1 - j->beta2.of_double));
    mpsim_op_add_scalar(&x, &j->state, d, j->o->eps);
    mpsim_op_addcdiv(&x, &j->param, b->p, b->m, d, -step_size);
}

const mpsim_step mpsim_adam_ops = {numbers_adam, adam_ops};

/* The scalars are binary32 tensors on the device, a number over a tensor is the tensor's reciprocal
 * times the number (Tensor.__rdiv__), and dividing by a tensor is a true division, in which a
 * low-precision tensor takes the scalar rounded to its format. */
static void numbers_capturable(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    const float bc1 = 1 - (float)j->beta1.of_float, bc2 = 1 - (float)j->beta2.of_float;
    const float step_size = -(1 / bc1 * (float)j->o->lr);
    x->kept = (float)(1 - j->o->lr * j->o->weight_decay);
    x->root = mpsim_hold_one(&j->state, sqrtf(bc2) * step_size);
    x->eps = mpsim_hold_one(&j->state, 1 / step_size * (float)j->o->eps);
    x->step_size = 1;
}

static void divide_held(const mpsim_optim_job *j, const mpsim_ops *x, float *d, float s)
{
    mpsim_op(MPSIM_OP_DIVIDE, d, d, NULL, s, x->n);
    mpsim_hold_array(&j->state, d, x->n);
}

static void adam_capturable(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float d[MPSIM_OPTIM_BLOCK];
    const mpsim_ops x = ops_of(j, b);
    adam_root(j, b, &x, d);
    divide_held(j, &x, d, j->x.root);
    mpsim_op_add_scalar(&x, &j->state, d, (double)j->x.eps);
    mpsim_op_addcdiv(&x, &j->param, b->p, b->m, d, 1);
}

const mpsim_step mpsim_adam_capturable = {numbers_capturable, adam_capturable};

/* foreach divides the whole denominator by minus the step size, which is the reciprocal of (beta1^t - 1) / lr;
 * / lr is a product with the reciprocal. */
static void numbers_capturable_list(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    const float bc1 = (float)j->beta1.of_float - 1, bc2 = -((float)j->beta2.of_float - 1);
    x->kept = (float)(1 - j->o->lr * j->o->weight_decay);
    x->root = mpsim_hold_one(&j->state, sqrtf(bc2));
    x->step_size = mpsim_hold_one(&j->state, 1 / (bc1 * (float)(1 / j->o->lr)));
}

static void adam_capturable_list(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    float d[MPSIM_OPTIM_BLOCK];
    const mpsim_ops x = ops_of(j, b);
    adam_root(j, b, &x, d);
    divide_held(j, &x, d, j->x.root);
    mpsim_op_add_scalar(&x, &j->state, d, j->o->eps);
    divide_held(j, &x, d, j->x.step_size);
    mpsim_op_addcdiv(&x, &j->param, b->p, b->m, d, 1);
}

const mpsim_step mpsim_adam_capturable_list = {numbers_capturable_list, adam_capturable_list};
