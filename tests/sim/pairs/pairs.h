/* pairs.h -- pairs of tensors of which it is known how one was made from the other, or from the same numbers, and what
 * `mpsim diff` may say of them.
 *
 * `right` names the verdicts that fit the cause, `near` those that are true and say less. "close", "related" and
 * "unrelated" claim no cause: where they are in neither list, they count as unknown. Any other verdict is false.
 *
 * All but the last nine were written from the page of verdicts (doc/explanations/differences.md) alone, before the code of
 * sim/diff was read. Since then verdicts that did not exist ("signs", "affine") became right, and what is true but says less
 * near, for three: int8, mask, stuck bit. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PAIR_MOST 4096

typedef struct pair_tensor {
    const char *format; /* of mpsim: binary32, bf16, ... */
    size_t shape[3];    /* of as many dimensions as are not 0 */
    size_t n;
    double x[PAIR_MOST]; /* rounded to nearest even when it is written */
} pair_tensor;

typedef struct pair {
    const char *name, *cause, *right, *near;
    void (*base)(pair_tensor *, uint64_t *random);                  /* A, of which B is a copy at first */
    double (*element)(double x, size_t i);                          /* then each element of B, */
    void (*make)(pair_tensor *a, pair_tensor *b, uint64_t *random); /* or what is done to both */
    void (*codes)(uint64_t *b, size_t n);                           /* and at last to the codes of B */
    const char *fqn;                                                /* the tensor's name; NULL: that of a weight */
} pair;

/* Lists that end with a name of NULL. */
extern const pair pairs_elements[]; /* each element by itself */
extern const pair pairs_rounded[];  /* narrower formats and sums */
extern const pair pairs_tensors[];  /* scalars, constants, places, damage, trainings */

/* What tensors begin as. */
void pair_weight(pair_tensor *, uint64_t *random);     /* normal, 0.02, binary32, 64 rows of 48 */
void pair_gradient(pair_tensor *, uint64_t *random);   /* of many magnitudes */
void pair_activation(pair_tensor *, uint64_t *random); /* after a relu: half of it zeros */
void pair_hidden(pair_tensor *, uint64_t *random);     /* normal, 1 */
void pair_weight_bf16(pair_tensor *, uint64_t *random);
void pair_gradient_bf16(pair_tensor *, uint64_t *random);
void pair_scalar(pair_tensor *, uint64_t *random); /* one element, 4 */
void pair_ones(pair_tensor *, uint64_t *random);   /* 128 */
void pair_zeros(pair_tensor *, uint64_t *random);  /* 128 */
void pair_empty(pair_tensor *, uint64_t *random);  /* none: `make` does it all */

void pair_shape(pair_tensor *t, const char *format, size_t rows, size_t columns);
double pair_normal(uint64_t *random);
double pair_rounded(const char *format, double x); /* to nearest even */
