/* optim.h -- optimizer steps, operation by operation as the frameworks do them.
 *
 * SGD, Adam, AdamW, Lion and Adafactor in named variants, which differ in what is rounded, contracted to an FMA or
 * computed in binary64. All arrays are binary32 values that are numbers of their format.
 * Needs the default floating-point environment.
 *
 * With a master copy, the parameter here is the fp32 master, and the model copy is the master
 * rounded (mpsim_round_array_f32). Without one, the parameter is in a low-precision format: then
 * variants that work operation by operation on tensors (torch-*) round every operation to it, the
 * others compute in binary32 and round what they store. */
#ifndef MPSIM_OPTIM_H
#define MPSIM_OPTIM_H

#include <mpsim/format.h>
#include <mpsim/rng.h>
#include <mpsim/round.h>

MPSIM_BEGIN

typedef enum mpsim_optim_algorithm {
    MPSIM_OPTIM_SGD,
    MPSIM_OPTIM_ADAM,
    MPSIM_OPTIM_ADAMW,
    MPSIM_OPTIM_LION,
    MPSIM_OPTIM_ADAFACTOR,
    MPSIM_OPTIM_ALGORITHMS
} mpsim_optim_algorithm;

MPSIM_API const char *mpsim_optim_name(mpsim_optim_algorithm a); /* "sgd", "adam", "adamw", "lion", "adafactor" */
MPSIM_API mpsim_status mpsim_optim_parse(mpsim_optim_algorithm *a, const char *name);

/* Settings of an optimizer: fields of mpsim_optim of these names, numbers first, then flags. */
typedef enum mpsim_optim_setting {
    MPSIM_OPTIM_LR,
    MPSIM_OPTIM_MOMENTUM,
    MPSIM_OPTIM_DAMPENING,
    MPSIM_OPTIM_WEIGHT_DECAY,
    MPSIM_OPTIM_BETA1,
    MPSIM_OPTIM_BETA2,
    MPSIM_OPTIM_EPS,
    MPSIM_OPTIM_BETA2_DECAY,
    MPSIM_OPTIM_EPS2,
    MPSIM_OPTIM_D,
    MPSIM_OPTIM_NUMBERS,
    MPSIM_OPTIM_NESTEROV = MPSIM_OPTIM_NUMBERS,
    MPSIM_OPTIM_AMSGRAD,
    MPSIM_OPTIM_MAXIMIZE,
    MPSIM_OPTIM_SETTINGS
} mpsim_optim_setting;

MPSIM_API const char *mpsim_optim_setting_name(mpsim_optim_setting s); /* "weight_decay" */

/* Arrays beside a parameter: a buffer or first moment, a second moment, the largest second moment. */
enum { MPSIM_OPTIM_M = 1, MPSIM_OPTIM_V = 2, MPSIM_OPTIM_VMAX = 4 };

/* An algorithm, the same in all its variants: what the library, replays, trainings, policies and the count
 * of memory ask instead of its name. */
typedef struct mpsim_optim_traits {
    const char *name, *title; /* "adamw", "AdamW"                                                 */
    const char *source;       /* of the algorithm, where it is not torch's documentation; or NULL     */
    const char *package;      /* what the class that it means is of, as "torch.optim."            */
    uint8_t family;           /* the first algorithm whose step and moments are the same but for decay  */
    uint8_t arrays;           /* that it always has; momentum adds M, amsgrad VMAX: mpsim_optim_arrays  */
    uint8_t decoupled;        /* 1: decay shrinks the parameter; 0: it is added to the gradient         */
    uint8_t copies;           /* 1: the first step makes the buffer the gradient, and moments are unused */
    uint8_t corrects;         /* 1: how many steps were taken enters a step                             */
    uint8_t roots;            /* 1: it takes square roots of v                                          */
    uint8_t cuda;             /* 1: the CUDA engine has it                                              */
    uint8_t factors;          /* 1: of a matrix it keeps a moment each row and each column, and steps whole tensors */
    uint16_t settings;        /* bit s: has setting s                                                   */
    double lr, weight_decay, beta1, beta2, eps, beta2_decay, eps2, d; /* where nobody says them   */
} mpsim_optim_traits;

/* mpsim_optim_traits_of -- its row; one with nothing, and no name, for what is no algorithm. */
MPSIM_API const mpsim_optim_traits *mpsim_optim_traits_of(int algorithm);
/* mpsim_optim_has -- whether an algorithm has a setting; 0 for what is none of either. */
MPSIM_API int mpsim_optim_has(int algorithm, mpsim_optim_setting s);

/* How a new parameter is stored in its format. */
typedef enum mpsim_store {
    MPSIM_STORE_NEAREST,
    MPSIM_STORE_STOCHASTIC, /* bits that do not fit decide: mode stochastic-a with 32 random bits
                               (bf16 from binary32: P(away) = the low 16 bits / 65536, exactly)   */
    MPSIM_STORE_KAHAN       /* nearest, with a compensation array                                 */
} mpsim_store;

/* How a variant is known. */
typedef enum mpsim_optim_evidence {
    MPSIM_OPTIM_DEFINED,  /* mpsim's own definition                                               */
    MPSIM_OPTIM_RECORDED, /* equal to recorded steps of the real thing in every bit               */
    MPSIM_OPTIM_DERIVED,  /* every rounding follows from the source and from how compilers contract it;
                             no run of the real thing was compared                                */
    MPSIM_OPTIM_OPEN      /* the source leaves bits open                                          */
} mpsim_optim_evidence;

typedef struct mpsim_optim_variant {
    const char *name;
    uint8_t algorithms; /* bit a: has algorithm a                                                */
    uint8_t stores;     /* bit s: can store by rule s                                            */
    uint8_t evidence;   /* mpsim_optim_evidence                                                  */
    const char *what;   /* one line: what it reproduces                                          */
    const char *source;
    const char *open; /* what is not confirmed, or NULL                                        */
} mpsim_optim_variant;

/* The table:
 *   ieee               textbook order, every operation rounded in binary32, no FMA
 *   torch              for-loop on CUDA: FMAs as ATen's kernels contract, x / scalar as a product
 *                      with the reciprocal, formed in binary64
 *   torch-foreach      foreach on CUDA: true division by the list of scalars
 *   torch-capturable   step size folded into the denominator's two numbers
 *   torch-foreach-capturable   the denominator divided by the step size
 *   torch-cpu          for-loop on CPU with FMA (AVX2, AVX-512: the same bits)
 *   torch-cpu-default  the same without FMA
 *   torch-cpu-foreach, torch-cpu-foreach-default
 *                      foreach on CPU: as the for-loop, but a low-precision tensor's factors
 *                      (momentum, beta2, 1 - lr wd) are rounded to its format, too
 *   torch-fused-a, -b, -c   fused CUDA kernels: 2022, binary64 arithmetic, binary32 with FMAs
 *   torch-fused-cpu, torch-fused-cpu-default   fused CPU kernel with and without FMA
 *   apex               Apex and TransformerEngine FusedAdam and FusedSGD, IEEE division and root
 *   torchao, torchao-cpu   moments rounded after use, stochastic rounding; with FMA in lerp, and
 *                      compiled for CPU without
 *   optimi             Kahan summation, each operation in the low-precision format, on CUDA
 *   optimi-cpu, optimi-cpu-default, optimi-cpu-foreach, optimi-cpu-foreach-default
 *                      the same on CPU, as torch-cpu*
 *   optimi-triton      Kahan summation, binary32 but for the parameter
 *   lion-pytorch, lion-pytorch-cpu, lion-pytorch-cpu-default
 *                      Lion of lion-pytorch: each operation in the parameter's format, on CUDA and on CPU
 *   torch-cpu-adafactor, torch-cpu-adafactor-default
 *                      Adafactor for-loop on CPU with FMA and without, but for the order of sums
 *   coat, ms-amp       AdamW of COAT; Adam and AdamW of MS-AMP (FP8-LM): moments in FP8 by
 *                      mpsim/optimstate.h
 *
 * ieee, with every scalar formed in binary64 and rounded to binary32, from left to right:
 *   g = g / grad_scale;  maximize: g = -g
 *   SGD:   g = g + wd * p;  m = mom * m + (1 - damp) * g;  nesterov: g = g + mom * m, else g = m
 *          p = p - lr * g
 *   Adam:  g = g + wd * p          AdamW: p = p - (lr wd) * p
 *          m = b1 * m + (1 - b1) * g;  v = b2 * v + (1 - b2) * (g * g);  amsgrad: v = max(vmax, v)
 *          p = p - lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 *   Lion:  p = p - (lr wd) * p;  u = the sign of b1 * m + (1 - b1) * g, 0 if that is a NaN
 *          p = p - lr * u;  m = b2 * m + (1 - b2) * g
 *   Adafactor, of matrices of rows x cols: w = t^beta2_decay
 *          a = max(eps2, norm(p) / sqrt(n)) * min(lr, 1 / sqrt(t)) in binary64;  p = p * (1 - lr wd)
 *          m = lerp(m, norm(a row)^2 / cols, w);  v = lerp(v, norm(a column)^2 / rows, w)
 *          V = m v / max(the mean of m, eps);  of vectors V = v = lerp(v, norm(g)^2, w), norm(g) = |g|
 *          u = 1 / sqrt(max(V, eps eps)) * g;  p = p - a / max(1, norm(u) / (sqrt(n) d)) * u
 *          with sums that are exact, rounded to binary64 and, as roots or means, to binary32
 * Steps with wd = 0 (or momentum = 0) leave that out, but for apex and torchao, where Adam adds 0.
 *
 * Square roots and divisions are IEEE's. MKL's square root, which torch's for-loop and foreach take
 * on CPU in binary32, is so only with MKL_CBWR=AVX2 in the environment. */
MPSIM_API size_t mpsim_optim_variant_count(void);
MPSIM_API const mpsim_optim_variant *mpsim_optim_variant_at(size_t i);
MPSIM_API const mpsim_optim_variant *mpsim_optim_variant_find(const char *name);
/* mpsim_optim_variant_unscales -- 1 if torch's GradScaler hands the optimizer scaled gradients and the
 * scale (grad_scale), unless they were unscaled before: the fused ones of torch. */
MPSIM_API int mpsim_optim_variant_unscales(const mpsim_optim_variant *v);

typedef struct mpsim_optim {
    const mpsim_optim_variant *variant;
    uint8_t algorithm; /* mpsim_optim_algorithm                                                   */
    uint8_t store;     /* mpsim_store                                                             */
    uint8_t nesterov, amsgrad, maximize;
    uint8_t float_powers; /* 1: beta^t and 1 - beta^t are rounded to binary32 (beta^2 and beta^3 product by product), as
                             where the betas of torch's for-loop Adam are tensors; 0: binary64     */
    double lr;            /* SGD, Adam, AdamW: 1e-3; Lion 1e-4; Adafactor 1e-2                     */
    double momentum;      /* 0                                                                     */
    double dampening;     /* 0                                                                     */
    double weight_decay;  /* 0; AdamW 1e-2                                                         */
    double beta1, beta2;  /* 0.9, 0.999; Lion 0.9, 0.99                                            */
    double eps;           /* 1e-8; Adafactor 2^-23, torch's of binary32 (it has bf16's and fp16's for those) */
    double beta2_decay, eps2, d; /* Adafactor: -0.8, 1e-3, 1; of others not read                  */
    size_t rows, cols;           /* Adafactor: the last two dimensions of the parameter; 0 and 0: a vector */
    double grad_scale;           /* ieee and torch-fused-* divide gradients by f32 of it, apex multiplies by
                            f32(1 / it); the others have no such option; 1: as they come          */
    mpsim_format param;          /* format of parameter and gradient: binary32, bf16, fp16, ...           */
    mpsim_format state;          /* of momentum buffer and moments                                        */
} mpsim_optim;

/* mpsim_optim_value, mpsim_optim_set -- a setting; flags are 0 and 1 (any x but 0). mpsim_optim_arrays -- the arrays that
 * a step needs: a set of MPSIM_OPTIM_M, V and VMAX. */
MPSIM_API double mpsim_optim_value(const mpsim_optim *o, mpsim_optim_setting s);
MPSIM_API void mpsim_optim_set(mpsim_optim *o, mpsim_optim_setting s, double x);
MPSIM_API unsigned mpsim_optim_arrays(const mpsim_optim *o);
/* mpsim_optim_elements -- the numbers that one of these arrays holds for a parameter of n elements: n, but where moments
 * are factored, one each row of a matrix (M; of vectors none) and one each column (V). A step gets arrays of n all the
 * same, and leaves the rest of them alone. */
MPSIM_API uint64_t mpsim_optim_elements(const mpsim_optim *o, unsigned array, uint64_t n);

/* mpsim_optim_init -- defaults of torch for the algorithm, in binary32, stored to nearest. */
MPSIM_API void mpsim_optim_init(mpsim_optim *o, mpsim_optim_algorithm a, const mpsim_optim_variant *v);

/* mpsim_optim_check -- MPSIM_OK; MPSIM_EUNAVAILABLE if the variant has no such algorithm, storing
 * or option; MPSIM_ERANGE if a format has numbers that binary32 has not; MPSIM_EINVAL for a variant
 * that is not of the table and a number that is not finite or outside its domain (lr >= 0, 0 <=
 * betas < 1, eps >= 0, momentum >= 0, grad_scale > 0, nesterov needs momentum > 0 and dampening 0,
 * ...).
 *
 * apex, torchao, optimi* and coat have no maximize; apex, optimi*, coat and ms-amp have no amsgrad, SGD
 * has none anywhere; optimi* have no nesterov, and their dampening is 0 or equal to the momentum (a switch
 * there). */
MPSIM_API mpsim_status mpsim_optim_check(const mpsim_optim *o);

/* The arrays of one parameter tensor, n elements each. */
typedef struct mpsim_optim_tensor {
    float *param;      /* numbers of o->param                                                   */
    const float *grad; /* numbers of o->param, but for fused, apex, torchao and ieee: any       */
    float *m;          /* SGD with momentum: the buffer; Adam, Lion: first moment; else NULL    */
    float *v;          /* Adam: second moment                                                   */
    float *vmax;       /* amsgrad                                                               */
    float *kahan;      /* MPSIM_STORE_KAHAN: compensation, in o->param, 0 at first              */
    size_t n;
} mpsim_optim_tensor;

/* mpsim_optim_step -- one step of one tensor.
 *
 *   step   1 for the first step of this tensor (SGD: the buffer becomes the gradient then,
 *          whatever is in it, but in optimi*, where it starts at 0; Adam: t of the bias
 *          correction, a power computed to 2^-100 and rounded to binary64)
 *   rng    for STOCHASTIC: element i takes the random word of index rng->index + i; else unused
 *
 * Moments and the denominator are numbers of o->state, everything else of o->param; torch itself
 * has one format for both where it works operation by operation.
 *
 * MPSIM_EINVAL if mpsim_optim_check is not MPSIM_OK, the step is 0, an array that is needed is NULL, or n elements
 * are not matrices of rows x cols (Adafactor: one or more, whole); nothing is touched then.
 * Equal for any split of the elements over calls, but for the variants with "-cpu"
 * that contract: their vector body (the largest multiple of 32 elements, 8 or 16 in the fused
 * kernel) and scalar tail differ, so that they need whole tensors, as one thread handles them; and for
 * torch-fused-c, where the compiler contracts the four elements of a thread differently. */
MPSIM_API mpsim_status mpsim_optim_step(const mpsim_optim *o, uint64_t step, const mpsim_optim_tensor *t,
                                        const mpsim_rng *rng);

/* mpsim_optim_reference -- the same step in binary64 throughout, in the order of ieee, whatever the
 * variant: what a run in lower precision is compared with. Arrays as above, NULL and errors alike. */
MPSIM_API mpsim_status mpsim_optim_reference(const mpsim_optim *o, uint64_t step, double *param, const double *grad,
                                             double *m, double *v, double *vmax, size_t n);

/* mpsim_power -- beta^n, correct to 2^-100 before it is rounded to binary64; 0 <= beta < 1, else
 * NaN. 0^0 is 1. */
MPSIM_API double mpsim_power(double beta, uint64_t n);
/* mpsim_optim_correction -- 1 - beta^step as step `step` has it (o->float_powers). */
MPSIM_API double mpsim_optim_correction(const mpsim_optim *o, double beta, uint64_t step);

/* mpsim_master_split, mpsim_master_join -- an fp32 master kept as the model's bf16 code and 16
 * remaining bits (TransformerEngine's store_param_remainders): the bf16 code is the upper half,
 * plus one if the lower half, as int16, is negative, so it is the master rounded to nearest, ties
 * away from zero. Lossless for every bit pattern; the code of a NaN whose payload lies in the lower half
 * may be one of an infinity or a zero, as in TransformerEngine. (i386 returns numbers in the x87, in which
 * a signalling NaN becomes quiet.) */
MPSIM_API void mpsim_master_split(uint16_t *model, int16_t *remainder, float master);
MPSIM_API float mpsim_master_join(uint16_t model, int16_t remainder);

MPSIM_END

#endif
