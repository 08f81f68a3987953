/* steps.h -- between the files of the optimizers: rows, jobs, tensor operations. */
#pragma once

#include "numbers.h"

#include <float.h>

_Static_assert(FLT_EVAL_METHOD == 0, "optimizer steps need operations in their own type");

/* Elements that a step function sees at once: its temporaries are arrays of this size. */
enum { MPSIM_OPTIM_BLOCK = 1024 };

/* Elements that the reference does where a kernel stopped before some. */
enum { MPSIM_OPTIM_LEFT = 16 };

/* ---- numbers of a format, held in binary32 ---- */

typedef struct mpsim_held {
    const mpsim_format *format;
    int exact;       /* every binary32 value is one: rounding does nothing */
    uint8_t in;      /* mpsim_held_in */
    uint8_t drop;    /* bits of a binary32 significand that a normal number has not */
    uint32_t last;   /* the largest number, as binary32 */
    uint32_t normal; /* the least normal one */
} mpsim_held;

/* How the kernels round to it in registers. */
enum mpsim_held_in {
    MPSIM_HELD_EXACT,
    MPSIM_HELD_FLAT,  /* binary32's exponents: the leading bits (bf16) */
    MPSIM_HELD_SUM,   /* fewer exponents: by adding a power of two (fp16) */
    MPSIM_HELD_ARRAY, /* not: arrays are rounded after each operation */
};

/* f NULL: binary32. */
mpsim_held mpsim_hold(const mpsim_format *f);

/* Round n values to `to`, which may be x, or in place: to nearest even, overflow to infinity. */
void mpsim_optim_store(const mpsim_held *h, float *to, const float *x, size_t n);
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

/* Where the results of a block go before they are rounded to their formats. */
typedef struct mpsim_optim_results {
    float *p, *m, *v, *vmax;
    int rounds; /* they are to be rounded by the kernel */
} mpsim_optim_results;

/* A step: its numbers; one block, the reference; what kernel.h has for it. */
typedef struct mpsim_step {
    void (*numbers)(const mpsim_optim_job *j, mpsim_optim_numbers *x);
    mpsim_optim_function *run;
} mpsim_step;

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
    const mpsim_step *step[MPSIM_OPTIM_ALGORITHMS]; /* by family                             */
    const struct mpsim_op_rules *rules;             /* of tensor operations, or NULL                      */
    uint8_t kernel[MPSIM_OPTIM_ALGORITHMS];         /* mpsim_step_kernel, by family                    */
    void (*tensor)(const mpsim_optim_job *j, const mpsim_optim_tensor *t); /* a step of a family that factors */
    uint8_t options;
    uint8_t body[2];    /* the vector body is a multiple of this: binary32, others; 0: all tail */
    uint8_t one_pass;   /* what is stored is rounded, nothing else: the kernels do all formats  */
    uint8_t fused;      /* products and sums are contracted to FMAs                             */
    uint8_t generation; /* of fused kernels: 'a', 'b', 'c'                                    */
} mpsim_optim_row;

/* The row of a variant of the table, NULL if it is not one of them. */
const mpsim_optim_row *mpsim_optim_row_of(const mpsim_optim_variant *v);

/* mpsim_optim_fits -- whether n elements are whole matrices, for an algorithm that factors moments. */
int mpsim_optim_fits(const mpsim_optim *o, size_t n);

/* beta^t, for beta in binary64 and for beta rounded to binary32 first, both in binary64. */
typedef struct mpsim_optim_power {
    double of_double, of_float;
} mpsim_optim_power;

struct mpsim_optim_job {
    const mpsim_optim *o;
    const mpsim_optim_row *row;
    const mpsim_optim_traits *traits;
    const mpsim_step *run; /* of the row, for the family; NULL: row->tensor                       */
    unsigned arrays;       /* mpsim_optim_arrays                                                  */
    uint64_t step;
    size_t n; /* elements of the tensor */
    mpsim_held param, state;
    mpsim_optim_power beta1, beta2;
    mpsim_optim_numbers x;
    const mpsim_rng *rng;
};

/* ---- storing: x is binary32; the results are numbers of the format ---- */

/* To the parameter by the store rule, STOCHASTIC or NEAREST. x may be b->p. */
void mpsim_optim_store_param(const mpsim_optim_job *j, const mpsim_optim_block *b, const float *x);

/* To the moments: to nearest. x may be `to`. */
void mpsim_optim_store_state(const mpsim_optim_job *j, float *to, const float *x, size_t n);

/* Whether a step has an m: a momentum may be 0 in the precision of a variant. */
static inline int mpsim_optim_stores_m(const mpsim_optim_job *j)
{
    return (j->traits->arrays & MPSIM_OPTIM_M) || j->x.has_momentum;
}

/* The larger of two; NaN if one is. */
static inline float mpsim_optim_larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

/* g as it enters a step. */
static inline float mpsim_optim_gradient(const mpsim_optim_numbers *x, float g)
{
    if (x->divides)
        g /= x->grad_scale;
    else if (x->multiplies)
        g *= x->grad_scale;
    return x->negates ? -g : g;
}

/* ---- tensor operations ----
 *
 * Each is done on n elements in binary32 and its result rounded to h. */

typedef struct mpsim_op_rules mpsim_op_rules;

/* What one does with n elements, y and its operands a and b, and a scalar s. */
typedef enum mpsim_op_kind {
    MPSIM_OP_SCALE,          /* y = s a                                        */
    MPSIM_OP_DIVIDE,         /* y = a / s                                      */
    MPSIM_OP_SHIFT,          /* y = a + s                                      */
    MPSIM_OP_SQRT,           /* y = sqrt(a)                                    */
    MPSIM_OP_LARGER,         /* y = the larger of y and a; NaN if one is       */
    MPSIM_OP_ADD,            /* y = y + a                                      */
    MPSIM_OP_MULTIPLY,       /* y = y a                                        */
    MPSIM_OP_ADD_CONTRACTED, /* y = y + s a, an FMA                            */
    MPSIM_OP_ADD_SCALED,     /* the same, a s + y: of two NaNs another one may stay */
    MPSIM_OP_ADD_PLAIN,
    MPSIM_OP_LERP_CUDA, /* y = y + s (a - y)                              */
    MPSIM_OP_LERP_CONTRACTED,
    MPSIM_OP_LERP_PLAIN,
    MPSIM_OP_ADDCMUL_OUTER, /* y = y + s a b                                  */
    MPSIM_OP_ADDCMUL_INNER,
    MPSIM_OP_ADDCMUL_PLAIN,
    MPSIM_OP_ADDCDIV_OUTER, /* y = y + s a / b                                */
    MPSIM_OP_ADDCDIV_INNER,
    MPSIM_OPS
} mpsim_op_kind;

/* a may be y; operands that an operation has not are NULL. */
void mpsim_op(mpsim_op_kind kind, float *y, const float *a, const float *b, float s, size_t n);

typedef struct mpsim_ops {
    const mpsim_op_rules *rules;
    size_t n;
    int tail;
} mpsim_ops;

extern const mpsim_op_rules mpsim_rules_cuda_loop, mpsim_rules_cuda_list, mpsim_rules_cpu_loop, mpsim_rules_cpu_list,
    mpsim_rules_cpu_loop_plain, mpsim_rules_cpu_list_plain;

/* The scalars of j->x as the operations see them. */
void mpsim_op_scalars(const mpsim_optim_job *j, mpsim_optim_numbers *x);

/* What plans for kernels of devices are made of (numbers.h): the scalars of a product and of a sum; whether a sum in h has its
 * product first. */
mpsim_contraction mpsim_op_contraction(const mpsim_op_rules *r);
float mpsim_op_factor(const mpsim_op_rules *r, const mpsim_held *h, double s);
float mpsim_op_alpha(const mpsim_op_rules *r, const mpsim_held *h, double s);
int mpsim_op_multiplies_first(const mpsim_op_rules *r, const mpsim_held *h);

void mpsim_op_mul(const mpsim_ops *o, const mpsim_held *h, float *y, double scalar);
void mpsim_op_add(const mpsim_ops *o, const mpsim_held *h, float *y, const float *x, double alpha);
void mpsim_op_lerp(const mpsim_ops *o, const mpsim_held *h, float *y, const float *end, double weight);
void mpsim_op_addcmul(const mpsim_ops *o, const mpsim_held *h, float *y, const float *a, const float *b, double value);
void mpsim_op_addcdiv(const mpsim_ops *o, const mpsim_held *h, float *y, const float *a, const float *b, double value);
void mpsim_op_sqrt(const mpsim_ops *o, const mpsim_held *h, float *y, const float *x);
void mpsim_op_div(const mpsim_ops *o, const mpsim_held *h, float *y, double scalar);
void mpsim_op_add_scalar(const mpsim_ops *o, const mpsim_held *h, float *y, double scalar);

/* ---- the steps ---- */

extern const mpsim_step mpsim_sgd_ops, mpsim_adam_ops, mpsim_adam_capturable, mpsim_adam_capturable_list;
extern const mpsim_step mpsim_sgd_fused_double, mpsim_adam_fused_double;
extern const mpsim_step mpsim_sgd_fused_float, mpsim_adam_fused_float;
extern const mpsim_step mpsim_sgd_fused_cpu, mpsim_adam_fused_cpu;
extern const mpsim_step mpsim_sgd_apex, mpsim_adam_apex, mpsim_sgd_ieee, mpsim_adam_ieee;
extern const mpsim_step mpsim_adam_torchao, mpsim_sgd_optimi, mpsim_adam_optimi;
extern const mpsim_step mpsim_sgd_optimi_triton, mpsim_adam_optimi_triton;
extern const mpsim_step mpsim_adam_coat, mpsim_adam_msamp;
extern const mpsim_step mpsim_lion_ops, mpsim_lion_ieee;
void mpsim_adafactor_step(const mpsim_optim_job *j, const mpsim_optim_tensor *t);

/* What an element of mpsim_optim_reference is updated with. */
typedef struct mpsim_reference {
    const mpsim_optim *o;
    uint64_t step;
    double bc1, bc2;
    unsigned arrays; /* mpsim_optim_arrays */
    int decoupled;
    uint8_t family;
} mpsim_reference;

/* mpsim_optim_moves -- moved[i]: 1 if mpsim_optim_reference of binary32 arrays changes parameter i, else 0. How many of the first elements are
 * told: 0 where there are no kernels for the optimizer. */
size_t mpsim_optim_moves(const mpsim_optim *o, uint64_t step, const mpsim_optim_tensor *t, uint32_t *moved);

/* What a parameter gives away in binary64, but for decay. */
double mpsim_lion_reference(const mpsim_reference *r, double g, double *m);
