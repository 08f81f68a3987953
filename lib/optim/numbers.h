/* numbers.h -- the numbers of an optimizer step and which kernel does it: between lib/optim and the kernels of devices. */
#pragma once

#include <mpsim/muon.h>
#include <mpsim/optim.h>

MPSIM_BEGIN

/* The numbers of a step that are the same for all elements, as the variant rounds them. */
typedef struct mpsim_optim_numbers {
    float lr, wd, eps, momentum, rest;                     /* rest: of dampening                                    */
    float b1, b2, rest1, rest2, bc1, bc2, root, step_size; /* b1 of SGD: the momentum that m is multiplied by */
    float kept, decay;                                     /* a parameter is multiplied by, or gives away of itself  */
    float grad_scale;
    uint8_t decays, has_momentum;         /* as the variant sees it, which rounds before it compares */
    uint8_t divides, multiplies, negates; /* a gradient, by grad_scale                           */
    uint8_t uneven;                       /* 1: not all elements are contracted alike: no kernel */
} mpsim_optim_numbers;

/* Steps that there are kernels for (kernel/kernel.h, gpu/kernels/optimizer.cuh); 0: none. */
typedef enum mpsim_step_kernel {
    MPSIM_STEP_NONE,
    MPSIM_STEP_SGD_IEEE,
    MPSIM_STEP_SGD_FUSED_DOUBLE,
    MPSIM_STEP_SGD_FUSED_FLOAT,
    MPSIM_STEP_SGD_FUSED_CPU,
    MPSIM_STEP_SGD_FUSED_CPU_PLAIN,
    MPSIM_STEP_SGD_OPS_CUDA,
    MPSIM_STEP_SGD_OPS_CPU,
    MPSIM_STEP_SGD_OPS_PLAIN,
    MPSIM_STEP_SGD_OPTIMI_CUDA,
    MPSIM_STEP_SGD_OPTIMI_CPU,
    MPSIM_STEP_SGD_OPTIMI_PLAIN,
    MPSIM_STEP_SGD_TRITON,
    MPSIM_STEP_ADAM_IEEE,
    MPSIM_STEP_ADAM_FUSED_DOUBLE,
    MPSIM_STEP_ADAM_FUSED_FLOAT,
    MPSIM_STEP_ADAM_FUSED_CPU,
    MPSIM_STEP_ADAM_FUSED_CPU_PLAIN,
    MPSIM_STEP_ADAM_APEX,
    MPSIM_STEP_ADAM_TORCHAO,
    MPSIM_STEP_ADAM_TORCHAO_PLAIN,
    MPSIM_STEP_ADAM_OPS_RECIPROCAL,
    MPSIM_STEP_ADAM_OPS_CUDA,
    MPSIM_STEP_ADAM_OPS_CPU,
    MPSIM_STEP_ADAM_OPS_PLAIN,
    MPSIM_STEP_ADAM_CAPTURABLE_LIST, /* of devices alone, as are COAT and MSAMP */
    MPSIM_STEP_ADAM_COAT,
    MPSIM_STEP_ADAM_MSAMP,
    MPSIM_STEP_ADAM_OPTIMI_CUDA,
    MPSIM_STEP_ADAM_OPTIMI_CPU,
    MPSIM_STEP_ADAM_OPTIMI_PLAIN,
    MPSIM_STEP_ADAM_TRITON,
    MPSIM_STEP_LION_IEEE,
    MPSIM_STEP_LION_OPS_CUDA,
    MPSIM_STEP_LION_OPS_CPU,
    MPSIM_STEP_LION_OPS_PLAIN,
    MPSIM_STEP_KERNELS
} mpsim_step_kernel;

/* How sums contract: as ATen's on CUDA, as those of CPUs with FMA, or not at all. */
typedef enum mpsim_contraction { MPSIM_CONTRACT_CUDA, MPSIM_CONTRACT_CPU, MPSIM_CONTRACT_NONE } mpsim_contraction;

/* A step of any tensor, for a kernel of a device. */
typedef struct mpsim_optim_plan {
    mpsim_optim_numbers x;
    mpsim_step_kernel kernel;      /* MPSIM_STEP_NONE: the step is not one of elements */
    unsigned arrays;               /* mpsim_optim_arrays */
    mpsim_contraction contraction; /* of tensor operations; NONE where the variant has none */
    uint8_t family, decoupled, first;
    uint8_t stores_m;
    uint8_t multiple; /* elements beyond the largest multiple of it are a scalar tail; 0: there is none apart */
} mpsim_optim_plan;

/* mpsim_optim_plan_of -- MPSIM_EINVAL, MPSIM_EUNAVAILABLE and MPSIM_ERANGE as mpsim_optim_check; MPSIM_EINVAL for step 0. */
mpsim_status mpsim_optim_plan_of(mpsim_optim_plan *p, const mpsim_optim *o, uint64_t step);

/* A step of Muon for a kernel of a device: the numbers of mpsim/muon.h as the variant rounds them. */
typedef struct mpsim_muon_plan {
    mpsim_contraction contraction;
    float end, momentum;        /* weights of the two interpolations */
    float decay, alpha, factor; /* of apply; factor: KELLER          */
    float eps;
    float a, b, c;
    unsigned multiple;       /* elements beyond the largest multiple of it are a scalar tail; 0: all are */
    uint8_t rounds_products; /* of alpha and an element, in the tail                                    */
} mpsim_muon_plan;

/* mpsim_muon_plan_of -- of an o that mpsim_muon_check takes, for a matrix of rows x columns. */
void mpsim_muon_plan_of(mpsim_muon_plan *p, const mpsim_muon *o, size_t rows, size_t columns);

/* A step of Adafactor for a kernel of a device. */
typedef struct mpsim_adafactor_plan {
    float weight;      /* of new mean squares                     */
    float kept;        /* what is left of a parameter by decay    */
    double rho;        /* the relative step size                  */
    double eps2, d;    /* the least size of a parameter; the clip */
    float least, eps1; /* of second moments; of the mean of rows  */
} mpsim_adafactor_plan;

/* mpsim_adafactor_plan_of -- of an o that mpsim_optim_check takes. */
void mpsim_adafactor_plan_of(mpsim_adafactor_plan *p, const mpsim_optim *o, uint64_t step);

MPSIM_END
