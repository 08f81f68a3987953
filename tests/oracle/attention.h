/* attention.h -- attention in tiles as the formulas of mpsim/attention.h have it, operation by operation: products of core.h,
 * operations of layer.h. */
#pragma once

#include <mpsim/attention.h>
#include <stddef.h>
#include <stdint.h>

enum { ORACLE_QUERIES = 40, ORACLE_KEYS = 70, ORACLE_DIM = 24, ORACLE_SIZE = 12 }; /* at most */

/* The products: the model's name, formats of the operands, of results (NULL: binary32) and of P. */
typedef struct oracle_products {
    const char *model, *operand, *result, *p;
} oracle_products;

/* One head: numbers of the operands' format, row by row. */
typedef struct oracle_head {
    const mpsim_attention *a;
    mpsim_attention_shape shape;
    const oracle_products *by;
    const float *q, *k, *v;
} oracle_head;

typedef struct oracle_outcome {
    float y[ORACLE_QUERIES * ORACLE_SIZE], lse[ORACLE_QUERIES];
    uint8_t flags[ORACLE_QUERIES];
    mpsim_attention_counts counts;
} oracle_outcome;

void oracle_attention(const oracle_head *h, oracle_outcome *to);

/* The gradients of a head, of the gradient dy of y: numbers of the operands' format; P and dS in the format of P, results in
 * that of f. lse and d are those of the forward pass and the dots of rows. */
typedef struct oracle_gradients {
    float dq[ORACLE_QUERIES * ORACLE_DIM], dk[ORACLE_KEYS * ORACLE_DIM], dv[ORACLE_KEYS * ORACLE_SIZE];
} oracle_gradients;

void oracle_attention_backward(const oracle_head *h, const mpsim_attention_gradient *g, const float *dy,
                               const float *lse, const float *d, oracle_gradients *to);

/* Whether query i sees key j. */
int oracle_sees(const mpsim_attention *a, const mpsim_attention_shape *shape, size_t i, size_t j);
