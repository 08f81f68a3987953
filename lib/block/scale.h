/* scale.h -- scale rules: from the largest magnitude of a block to its scale. */
#pragma once

#include "scalar.h"

/* How the value q of a code is scaled back, in binary32. */
typedef enum mpsim_dequantize {
    MPSIM_TIMES_INVERSE, /* q * inverse */
    MPSIM_OVER_FACTOR    /* q / factor  */
} mpsim_dequantize;

typedef struct mpsim_scale_rule_row {
    uint8_t has_tensor;               /* the tensor has a scale                        */
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

/* mpsim_scale_env_set -- what a rule knows of a recipe whose elements are of format f; no tensor scale yet. */
void mpsim_scale_env_set(mpsim_scale_env *env, const mpsim_block_recipe *b, const mpsim_format *f, float given);

/* mpsim_element_rounding -- how the elements of a recipe are rounded. */
void mpsim_element_rounding(mpsim_rounding *r, const mpsim_block_recipe *b);

/* mpsim_below_half -- the bits of the number below half of the format's smallest one, which microxcaling rounds up. */
uint32_t mpsim_below_half(const mpsim_format *f);
