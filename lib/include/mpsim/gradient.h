/* gradient.h -- gradients between backward pass and optimizer: unscale, check, norm, clip,
 * all-reduce.
 *
 * Numbers of a low-precision tensor are held as binary32 values that are numbers of its format;
 * operations are done in binary32 and each result is rounded to the tensor's format, nearest-even,
 * overflow to infinity: ATen's opmath. A format f must hold binary32 numbers only; nothing is
 * rounded for others. Needs the default floating-point environment. */
#ifndef MPSIM_GRADIENT_H
#define MPSIM_GRADIENT_H

#include <mpsim/format.h>
#include <mpsim/scaler.h>

MPSIM_BEGIN

/* Results of mpsim_unscale_array. */
enum {
    MPSIM_FOUND_INPUT = 1, /* an element that is not finite as it came: what torch and Apex test */
    MPSIM_FOUND_OUTPUT = 2 /* an element that is not finite once unscaled                        */
};

/* mpsim_unscale_factor -- f32(1 / scale), the quotient in binary64: inf for 0, 0 from 2^150 on. */
MPSIM_API float mpsim_unscale_factor(double scale);

/* mpsim_unscale_array -- y[i] = x[i] unscaled, rounded to f (NULL: binary32); y may equal x.
 *
 * RECIPROCAL multiplies by mpsim_unscale_factor(scale), and leaves every bit alone (a NaN's too) if
 * that is 1; ROUNDED rounds that factor to f first; DIVIDE divides by f32(scale). Elements that are
 * not finite are processed like others. Returns a set of MPSIM_FOUND_*. */
MPSIM_API unsigned mpsim_unscale_array(mpsim_unscale_rule rule, double scale, const mpsim_format *f, float *y,
                                       const float *x, size_t n);

/* mpsim_norm -- the Euclidean norm of n elements: the exact sum of squares, rounded to binary64;
 * its root, rounded to binary64, then to f (NULL: binary32), where it may overflow. NaN if an
 * element is NaN, else inf if one is infinite. Frameworks sum in binary32 in an order of their own:
 * compare with a tolerance. */
MPSIM_API float mpsim_norm(const mpsim_format *f, const float *x, size_t n);

/* Clipping by the global norm. The rules differ in what is rounded, in the 1e-6 and in whether a
 * factor of 1 is applied; DeepSpeed and fairseq unscale and clip with one factor. */
typedef enum mpsim_clip_rule {
    MPSIM_CLIP_NONE,
    MPSIM_CLIP_TORCH,          /* torch.nn.utils.clip_grad_norm_: coef = 1 / (norm + 1e-6) * max,
                                   each operation in the norm's format (max / tensor is a product
                                   with the reciprocal), at most 1, always multiplied             */
    MPSIM_CLIP_TORCH_CPU,      /* the same; 1e-6 is rounded to the norm's format first, as recorded */
    MPSIM_CLIP_APEX,           /* as TORCH on a device, in binary32                              */
    MPSIM_CLIP_MEGATRON,       /* coef is a tensor: as APEX                                      */
    MPSIM_CLIP_MEGATRON_FLOAT, /* coef is a Python float: multiplied only if it is below 1       */
    MPSIM_CLIP_DEEPSPEED,      /* FP16_Optimizer: clip = ((norm / S) + 1e-6) / max in binary64;
                                   divided by S, by clip S if clip > 1                            */
    MPSIM_CLIP_DEEPSPEED_ZERO, /* the same with a tensor: binary32, quotients by numbers as products
                                   with reciprocals, clip at least 1; a NaN clip stays            */
    MPSIM_CLIP_FAIRSEQ,        /* times f32(1/S), times max / norm' in binary32 if norm' = norm / S
                                   is above max. Without a scaler fairseq clips as APEX           */
    MPSIM_CLIP_RULES
} mpsim_clip_rule;

MPSIM_API const char *mpsim_clip_name(mpsim_clip_rule rule); /* "torch", "megatron-float", ... */
MPSIM_API mpsim_status mpsim_clip_parse(mpsim_clip_rule *rule, const char *name);
/* mpsim_clip_unscales -- 1 for DEEPSPEED, DEEPSPEED_ZERO and FAIRSEQ, which take the norm of scaled
 * gradients and multiply by a factor that contains 1/S. */
MPSIM_API int mpsim_clip_unscales(mpsim_clip_rule rule);

/* mpsim_clip_total -- the global norm of tensors whose norms are given, as the rule forms it: TORCH
 * and TORCH_CPU round it to f (NULL: binary32) from norms in f; MEGATRON_FLOAT takes the binary64 root
 * of its binary32 square; others round to binary32. NaN and inf as in mpsim_norm. */
MPSIM_API double mpsim_clip_total(mpsim_clip_rule rule, const mpsim_format *f, const float *norms, size_t n);

typedef struct mpsim_clip {
    double factor;    /* gradients are multiplied by f32(factor)                                   */
    uint8_t apply;    /* 0: they are left alone                                                    */
    uint8_t unscales; /* mpsim_clip_unscales: gradients must not be unscaled before                */
    uint8_t clipped;  /* 1: norm (unscaled) was above max                                          */
} mpsim_clip;

/* mpsim_clip_factor -- from the total norm (of scaled gradients for the rules that unscale) and the
 * largest norm > 0. f is the format of the total under TORCH and TORCH_CPU (NULL: binary32), ignored
 * by others; scale is S, used by the rules that unscale. A norm of inf gives 0. NaN gives NaN, but
 * nothing is applied under MEGATRON_FLOAT, and 1 / S under DEEPSPEED and FAIRSEQ, whose comparisons
 * are false then. MEGATRON_FLOAT and DEEPSPEED take the norm in binary64, the others in binary32.
 * Read from the frameworks' sources; TORCH_CPU is recorded. */
MPSIM_API mpsim_clip mpsim_clip_factor(mpsim_clip_rule rule, const mpsim_format *f, double norm, double max_norm,
                                       double scale);

/* mpsim_scale_array -- y[i] = x[i] * factor, in binary32, rounded to f (NULL: binary32); y may be x. */
MPSIM_API void mpsim_scale_array(const mpsim_format *f, float *y, const float *x, size_t n, float factor);

/* Sums of gradients over ranks. */
typedef enum mpsim_reduce_order {
    MPSIM_REDUCE_SEQUENTIAL, /* ((x0 + x1) + x2) + ...                                            */
    MPSIM_REDUCE_RING,       /* reduce-scatter over a ring: chunk c of ceil(n / ranks) elements is
                                summed in the order c, c+1, ..., c-1 (mod ranks), left to right   */
    MPSIM_REDUCE_TREE        /* binary tree of neighbours: (x0 + x1) + (x2 + x3), an odd one is
                                passed on                                                         */
} mpsim_reduce_order;

typedef enum mpsim_reduce_average {
    MPSIM_AVERAGE_NONE,
    MPSIM_AVERAGE_BEFORE, /* every contribution times f32(1 / ranks), rounded to wire (Megatron) */
    MPSIM_AVERAGE_AFTER   /* the sum divided by f32(ranks) in binary32                            */
} mpsim_reduce_average;

typedef struct mpsim_reduce {
    mpsim_format wire;        /* contributions are rounded to this                                */
    mpsim_format accumulator; /* every sum of two is rounded to this: the wire's format for NCCL,
                                 binary32 for fp32 accumulation of a low-precision wire           */
    mpsim_format result;      /* the end result is rounded to this                                */
    uint8_t order;            /* mpsim_reduce_order                                               */
    uint8_t average;          /* mpsim_reduce_average                                             */
} mpsim_reduce;

/* mpsim_reduce_array -- y[i] = sum over ranks of x[rank][i]; y may be one of them. All roundings
 * are nearest-even with overflow to infinity; sums are formed in binary32 and rounded. MPSIM_EINVAL
 * for an invalid format, order, NULL, or no ranks; MPSIM_ERANGE if a format has numbers that
 * binary32 has not. */
MPSIM_API mpsim_status mpsim_reduce_array(const mpsim_reduce *r, float *y, const float *const *x, size_t ranks,
                                          size_t n);

MPSIM_END

#endif
