/* steps.h -- between the files of the optimizers: rows, jobs, tensor operations. */
#ifndef MPSIM_LIB_OPTIM_STEPS_H
#define MPSIM_LIB_OPTIM_STEPS_H

#include <mpsim/optim.h>

#include <float.h>

_Static_assert(FLT_EVAL_METHOD == 0, "optimizer steps need operations in their own type");

/* Elements that a step function sees at once: its temporaries are arrays of this size. */
enum { MPSIM_OPTIM_BLOCK = 256 };

/* ---- numbers of a format, held in binary32 ---- */

typedef struct mpsim_held {
    const mpsim_format *format;
    int exact; /* every binary32 value is one: rounding does nothing */
} mpsim_held;

/* f NULL: binary32. */
mpsim_held mpsim_hold(const mpsim_format *f);

/* Round n values in place: to nearest even, overflow to infinity. */
void mpsim_hold_array(const mpsim_held *h, float *x, size_t n);
float mpsim_hold_one(const mpsim_held *h, float x);

/* ---- what a step knows ---- */

typedef struct mpsim_optim_job mpsim_optim_job;

/* Elements at .. at + n - 1 of a tensor, n <= MPSIM_OPTIM_BLOCK. */
typedef struct mpsim_optim_block {
    float *p, *m, *v, *vmax, *kahan;
    const float *g;
    size_t at, n;
    int tail; /* 1: these elements are beyond the vector body */
} mpsim_optim_block;

typedef void mpsim_optim_function(const mpsim_optim_job *j, const mpsim_optim_block *b);

/* Options that not every variant has: a set. */
enum {
    MPSIM_HAS_AMSGRAD = 1,
    MPSIM_HAS_MAXIMIZE = 2,
    MPSIM_HAS_GRAD_SCALE = 4,
    MPSIM_HAS_NESTEROV = 8,
    MPSIM_HAS_DAMPENING = 16, /* any; else 0 or the momentum itself */
    MPSIM_TAKES_SCALE = 32,   /* mpsim_optim_variant_unscales */
};

/* A row of the table: the public part, and what runs. */
typedef struct mpsim_optim_row {
    mpsim_optim_variant variant;
    mpsim_optim_function *sgd, *adam;
    const struct mpsim_op_rules *rules; /* of tensor operations, or NULL                      */
    uint8_t options;
    uint8_t body[2];  /* the vector body is a multiple of this: binary32, others; 0: all tail */
    uint8_t fused;    /* products and sums are contracted to FMAs                             */
    uint8_t generation; /* of fused kernels: 'a', 'b', 'c'                                    */
} mpsim_optim_row;

/* The row of a variant of the table, NULL if it is none. */
const mpsim_optim_row *mpsim_optim_row_of(const mpsim_optim_variant *v);

/* beta^t, for beta in binary64 and for beta rounded to binary32 first, both in binary64. */
typedef struct mpsim_optim_power {
    double of_double, of_float;
} mpsim_optim_power;

struct mpsim_optim_job {
    const mpsim_optim *o;
    const mpsim_optim_row *row;
    uint64_t step;
    mpsim_held param, state;
    mpsim_optim_power beta1, beta2;
    const mpsim_rng *rng;
};

/* ---- storing: x is binary32; the results are numbers of the format ---- */

/* To the parameter by the store rule, STOCHASTIC or NEAREST. x is overwritten. */
void mpsim_optim_store_param(const mpsim_optim_job *j, const mpsim_optim_block *b, float *x);

/* To the moments: to nearest. */
void mpsim_optim_store_state(const mpsim_optim_job *j, float *to, const float *x, size_t n);

/* The larger of two; NaN if one is. */
static inline float mpsim_optim_larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

/* g, divided by grad_scale and negated where the options say so. */
static inline float mpsim_optim_gradient(const mpsim_optim *o, float g)
{
    if (o->grad_scale != 1)
        g /= (float)o->grad_scale;
    return o->maximize ? -g : g;
}

/* ---- tensor operations ----
 *
 * Each is done on n elements in binary32 and its result rounded to h. */

typedef struct mpsim_op_rules mpsim_op_rules;

typedef struct mpsim_ops {
    const mpsim_op_rules *rules;
    size_t n;
    int tail;
} mpsim_ops;

extern const mpsim_op_rules mpsim_rules_cuda_loop, mpsim_rules_cuda_list, mpsim_rules_cpu_loop,
    mpsim_rules_cpu_list, mpsim_rules_cpu_loop_plain, mpsim_rules_cpu_list_plain;

void mpsim_op_mul(const mpsim_ops *o, const mpsim_held *h, float *y, double scalar);
void mpsim_op_add(const mpsim_ops *o, const mpsim_held *h, float *y, const float *x, double alpha);
void mpsim_op_lerp(const mpsim_ops *o, const mpsim_held *h, float *y, const float *end,
                   double weight);
void mpsim_op_addcmul(const mpsim_ops *o, const mpsim_held *h, float *y, const float *a,
                      const float *b, double value);
void mpsim_op_addcdiv(const mpsim_ops *o, const mpsim_held *h, float *y, const float *a,
                      const float *b, double value);
void mpsim_op_sqrt(const mpsim_ops *o, const mpsim_held *h, float *y, const float *x);
void mpsim_op_div(const mpsim_ops *o, const mpsim_held *h, float *y, double scalar);
void mpsim_op_add_scalar(const mpsim_ops *o, const mpsim_held *h, float *y, double scalar);

/* ---- the steps ---- */

mpsim_optim_function mpsim_sgd_ops, mpsim_adam_ops, mpsim_adam_capturable;
mpsim_optim_function mpsim_sgd_fused_double, mpsim_adam_fused_double;
mpsim_optim_function mpsim_sgd_fused_float, mpsim_adam_fused_float;
mpsim_optim_function mpsim_sgd_fused_cpu, mpsim_adam_fused_cpu;
mpsim_optim_function mpsim_sgd_apex, mpsim_adam_apex, mpsim_sgd_ieee, mpsim_adam_ieee;
mpsim_optim_function mpsim_adam_torchao, mpsim_sgd_optimi, mpsim_adam_optimi;
mpsim_optim_function mpsim_sgd_optimi_triton, mpsim_adam_optimi_triton;

#endif
