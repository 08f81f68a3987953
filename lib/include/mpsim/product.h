/* mpsim/product.h -- products of stacks of matrices in the caller's memory: operands of any strides, rounded or quantised as they are read,
 * sums by an accumulation model, one rounding to the format of the results.
 *
 * A stack is an array of 2 to 8 dimensions: the last two are the rows and columns of its matrices. A product has for every matrix
 * of d
 *
 *   s = the model's chain of a's row and b's row over the depth, from `start` or +0
 *   s = s * f32(a's inverse * b's inverse), left out where both are 1;  s = s * factor, left out where it is 1
 *   s = s + bias;  s = s + add * add_factor (no product where add_factor is 1);  d = RN(numbers, s)
 *
 * in binary32, every operation rounded to nearest, subnormal numbers kept, nothing contracted; in binary64 where the results of the
 * model are no binary32 numbers. RN rounds to nearest even, overflow to infinity, or to NaN in formats without one. */
#ifndef MPSIM_PRODUCT_H
#define MPSIM_PRODUCT_H

#include <mpsim/block.h>
#include <mpsim/dot.h>

MPSIM_BEGIN

enum { MPSIM_STACK_RANK = 8 };

/* The element with the indices i is code number i[0] strides[0] + i[1] strides[1] + ... from `codes` on. Strides are any, also
 * negative and, of what is only read, 0: one element is used for all of the dimension. */
typedef struct mpsim_stack {
    const mpsim_format *format; /* of the codes: binary32 for an array of float */
    void *codes;                /* of operands only read                        */
    uint32_t rank;
    size_t shape[MPSIM_STACK_RANK];
    int64_t strides[MPSIM_STACK_RANK];
} mpsim_stack;

/* Form in which an operand of a recipe is multiplied; with a single scale the default is codes. */
typedef enum mpsim_block_use {
    MPSIM_BLOCKS_AS_VALUES, /* the values, rounded to bf16                                                    */
    MPSIM_BLOCKS_AS_CODES,  /* the codes; the sum over each block of the depth is multiplied by both factors  */
    MPSIM_BLOCKS_SCALED,    /* the codes with their scale codes, in a model that takes them (mpsim_model.block) */
    MPSIM_BLOCKS_AS_NUMBERS /* the values, in binary32; also of a recipe with one scale                       */
} mpsim_block_use;

/* How numbers enter: rounded to `format`; each row through mpsim_hadamard_groups (seed 0) and rounded to `format` again; the
 * recipe. The columns are the depth of the product to come.
 *
 * A recipe with one block (block_rows = block_cols = 0) has one scale for the whole stack and gives codes, with `inverse`. Other
 * recipes have blocks that end with their matrix; the tensor scale of NVFP4 is that of the whole stack. Random bits: element i of
 * the stack, counted row-major, takes index rng.index + i. A dimension of stride 0 before the last two counts as 1 here. */
typedef struct mpsim_entering {
    const mpsim_format *format;       /* NULL: that of the codes                              */
    uint8_t mode;                     /* of this rounding: mpsim_round_mode, not stochastic   */
    uint8_t use;                      /* mpsim_block_use                                      */
    uint32_t hadamard;                /* 0: none; 16, 32, 64, 128                             */
    const mpsim_block_recipe *recipe; /* NULL: none                                           */
    float given;                      /* MPSIM_SCALE_GIVEN, MSAMP: the scale, the scale so far */
    mpsim_rng rng;                    /* for stochastic element modes                         */
} mpsim_entering;

/* Counts of the rounding of operands or results, which functions add to. */
typedef struct mpsim_entered {
    uint64_t nonzero;   /* finite and not zero before                           */
    uint64_t lost;      /* of these: zero after                                 */
    uint64_t overflow;  /* of these: beyond the largest number, saturated or not */
    uint64_t nonfinite; /* infinite or NaN after                                */
} mpsim_entered;

/* Requested results of entering; pointers may be NULL. */
typedef struct mpsim_entry_stats {
    float *amax;             /* becomes the larger of itself and mpsim_amax of what the recipe is given */
    mpsim_entered *counts;   /* of the recipe; without one of the rounding to `format`                  */
    mpsim_cast_stats *casts; /* the same with errors                                                    */
} mpsim_entry_stats;

/* An operand as products read it. Filled by the functions below, or by hand. Formats, and what lies in the caller's memory, must
 * stay as long as it does. */
typedef struct mpsim_operand {
    mpsim_stack stack; /* rows x depth                                                        */
    const mpsim_format
        *format;     /* of what is multiplied; where it is another than the stack's, a product rounds what it reads */
    uint8_t mode;    /* of this rounding                                                    */
    uint8_t rounded; /* 1: they are already numbers of this format, stored in another */
    float inverse;   /* numbers stand for number * inverse                                  */
    /* of blocks that are multiplied as codes or scaled; NULL: none. block_rows x block_cols elements share a factor; those of a
     * matrix are grid_rows x grid_cols, row-major, matrix after matrix in the order of the codes, which have no gaps */
    const float *factors;
    size_t block_rows, block_cols, grid_rows, grid_cols;
    const mpsim_format *scales; /* the factors are numbers of this format: for a model with scales; NULL: promoted */
    void *memory;               /* the library's                                                       */
} mpsim_operand;

/* mpsim_operand_init -- an operand that a product reads in place and rounds to `format` (NULL: does not round). */
MPSIM_API void mpsim_operand_init(mpsim_operand *o, const mpsim_stack *x, const mpsim_format *format,
                                  mpsim_round_mode mode);

/* mpsim_operand_enter -- an operand in memory of its own, which mpsim_operand_free gives back; x where it lies if nothing is to be
 * done. stats may be NULL. MPSIM_EINVAL for what is inconsistent, MPSIM_ERANGE for numbers that a recipe or a transform cannot
 * take (they must be numbers of binary32), MPSIM_ENOMEM; *o is untouched then. */
MPSIM_API mpsim_status mpsim_operand_enter(mpsim_operand *o, const mpsim_stack *x, const mpsim_entering *how,
                                           const mpsim_entry_stats *stats, const mpsim_pool *pool);
MPSIM_API void mpsim_operand_free(mpsim_operand *o);

/* mpsim_operand_turn -- the same operand with rows and columns exchanged, without a copy. MPSIM_EINVAL if it has factors. What is
 * turned belongs to `o` and ends with it. */
MPSIM_API mpsim_status mpsim_operand_turn(mpsim_operand *turned, const mpsim_operand *o);

typedef struct mpsim_product {
    const mpsim_model *model;
    const mpsim_operand *a, *b;  /* rows x depth; columns x depth                                        */
    const mpsim_stack *d;        /* rows x columns; its codes are written                                */
    const mpsim_format *numbers; /* that results are rounded to, which d's format must have; NULL: d's  */
    float factor;
    const mpsim_stack *start; /* in the format of the model's results, or NULL                       */
    const mpsim_stack *bias;  /* or NULL                                                             */
    const mpsim_stack *add;   /* or NULL; may be d                                                   */
    float add_factor;
    size_t depth_limit;    /* 0; else only the first products of the depth                            */
    const mpsim_rng *rng;  /* of stochastic models: mpsim_gemm's, of a matrix with all rows of the stack, or NULL */
    mpsim_entered *counts; /* of the last rounding; or NULL                                        */
} mpsim_product;

/* mpsim_product_init -- factors 1, everything else 0. */
MPSIM_API void mpsim_product_init(mpsim_product *p);

/* mpsim_product_run -- d has the shape of the product. Dimensions before the last two of a, b, start, bias, add and the last two of
 * these three are those of d, counted from the last, or 1, or missing: then one matrix (row, column) serves all.
 *
 * MPSIM_EINVAL for what is inconsistent; MPSIM_ERANGE for formats that the model cannot take, and for d's that has not all numbers;
 * MPSIM_ENOMEM. After an error other than MPSIM_ENOMEM d is untouched. Bits depend neither on threads nor on strides. */
MPSIM_API mpsim_status mpsim_product_run(const mpsim_product *p, const mpsim_pool *pool);

/* mpsim_product_of -- the whole in one call: both operands enter, are multiplied, and are given back. p->a and p->b are ignored. */
MPSIM_API mpsim_status mpsim_product_of(const mpsim_product *p, const mpsim_stack *a, const mpsim_entering *how_a,
                                        const mpsim_stack *b, const mpsim_entering *how_b, const mpsim_pool *pool);

MPSIM_END

#endif
