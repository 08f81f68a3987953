/* placement.h -- in which formats the tensors of a layer are: what a policy says of a layer, and what a training follows. */
#ifndef MPSIM_PLACEMENT_H
#define MPSIM_PLACEMENT_H

#include <mpsim/block.h>
#include <mpsim/format.h>
#include <mpsim/optimstate.h>

MPSIM_BEGIN

/* Role of a tensor in its layer. */
typedef enum mpsim_role {
    MPSIM_ROLE_ACT,    /* input of the layer, as it enters the product         */
    MPSIM_ROLE_OUT,    /* output                                               */
    MPSIM_ROLE_WEIGHT, /* weight and bias, as they enter                       */
    MPSIM_ROLE_AGRAD,  /* gradient of the output, as it enters the product     */
    MPSIM_ROLE_DGRAD,  /* gradient of the input                                */
    MPSIM_ROLE_WGRAD,  /* gradients of weight and bias, as backward leaves them */
    MPSIM_ROLES
} mpsim_role;

typedef enum mpsim_master {
    MPSIM_NO_MASTER,
    MPSIM_MASTER,      /* a binary32 copy beside low-precision parameters      */
    MPSIM_SPLIT_MASTER /* bf16 parameters and the other 16 bits of the master  */
} mpsim_master;

/* The placement of one layer. Formats have binary32 numbers only, are signed and have a zero and a NaN. */
typedef struct mpsim_placement {
    mpsim_format format[MPSIM_ROLES];
    mpsim_format storage; /* of the model's parameters                                           */
    mpsim_format kept;    /* of what accumulates updates: the master's, or storage               */
    mpsim_format state;   /* of momentum and moments                                             */
    const mpsim_block_recipe *recipe[MPSIM_ROLES]; /* of ACT, WEIGHT and AGRAD, or NULL: rows of
                                                      mpsim_block_at; of what enters a product   */
    uint32_t hadamard;          /* 16: operands of the weight's gradient go through the random Hadamard
                          transform in groups of so many along the depth before their recipe; 0  */
    uint32_t promote;           /* depth of a block, of recipes with one-byte elements: their codes are
                          multiplied, and sums leave the tensor core with their scales after so
                          many products; 0: what code and scale stand for, as bf16 numbers       */
    uint32_t muon;              /* 1: the weight is stepped by Muon; trainings                            */
    const mpsim_states *states; /* in which moments are kept in few bits; NULL: as `state` says  */
} mpsim_placement;

MPSIM_END

#endif
