/* scale.h -- scale rules: from the largest magnitude of a block to its scale. */
#pragma once

#include <mpsim/block.h>

#include <float.h>

_Static_assert(FLT_EVAL_METHOD == 0, "scales need operations in their own type");

/* A block's scale. */
typedef struct mpsim_block_scale {
    float factor;  /* elements are multiplied by it                                   */
    float inverse; /* dequantises                                                     */
    uint8_t code;  /* E8M0 or E4M3; 0 where the scale is binary32                     */
} mpsim_block_scale;

/* What a rule knows besides amax. */
typedef struct mpsim_scale_env {
    const mpsim_block_recipe *recipe;
    float max;    /* largest number of the element format     */
    int emax;     /* its exponent                             */
    int mbits;    /* significand field of the element format  */
    float given;  /* the caller's scale                       */
    float encode; /* the tensor's scale (NVFP4), 1 for others */
    float decode; /* the inverse that is stored with codes    */
    float amax;   /* of the tensor (NVFP4_TE)                 */
} mpsim_scale_env;

/* How elements are cast once they are scaled. */
typedef enum mpsim_element_cast {
    MPSIM_CAST_CUDA,  /* cvt.satfinite: the preset cuda                                  */
    MPSIM_CAST_TORCH, /* clamp, then torch's or torchao's conversion: NaN keeps its sign */
    MPSIM_CAST_MICROX /* microxcaling's arithmetic                                       */
} mpsim_element_cast;

/* How the value q of a code is scaled back, in binary32. */
typedef enum mpsim_dequantize {
    MPSIM_TIMES_INVERSE, /* q * inverse */
    MPSIM_OVER_FACTOR    /* q / factor  */
} mpsim_dequantize;

typedef struct mpsim_scale_rule_row {
    void (*tensor)(mpsim_scale_env *env, float amax); /* NULL: no tensor scale */
    mpsim_block_scale (*block)(const mpsim_scale_env *env, float amax);
    uint8_t cast;                     /* mpsim_element_cast                            */
    uint8_t dequantize;               /* mpsim_dequantize                              */
    uint8_t drops_nan;                /* amax is that of the other elements            */
    uint8_t scale_bytes;              /* of a block's scale, as it is stored           */
    uint8_t fp4_only;                 /* the element format is e2m1                    */
    uint8_t takes_given;              /* `given` enters                                */
    uint8_t divides;                  /* elements are divided by `inverse`             */
    uint8_t least_code, largest_code; /* of scales of blocks with numbers, for statistics */
} mpsim_scale_rule_row;

/* The row of a rule, NULL for any other number. */
const mpsim_scale_rule_row *mpsim_scale_rule_at(unsigned rule);
