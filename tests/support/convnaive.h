/* convnaive.h -- convolutions and their gradients by naive loops: the products of each number in an explicit order, added by mpsim_dot. */
#pragma once

#include "support/convtensor.h"

#include <mpsim/convolution.h>

typedef enum convkind { CONV_FORWARD, CONV_INPUT, CONV_WEIGHT } convkind;

/* A convolution with its sizes. */
typedef struct convsizes {
    size_t dims, images, channels, outputs, groups, in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    uint8_t transposed, order, taps;
    size_t row_multiple;
} convsizes;

typedef struct convproblem {
    convsizes c;
    mpsim_model m;
    mpsim_rng rng;
    const mpsim_pool *pool;
    float factor;
    int has_bias, rounds;     /* rounds: the result, to e4m3 */
    mpsim_entered counts;     /* that is wanted */
    convtensor x, w, y, bias; /* or their gradients */
    convkind what;
    uint64_t *a, *b; /* the factors of a sum */
    size_t n;
} convproblem;

size_t convsizes_product(const size_t *n, size_t dims);
/* Where position `at` reads by tap t: 1: at from, 0: outside, -1: nowhere. */
int convsizes_reads(const convsizes *c, int turned, const size_t *at, const size_t *t, const size_t *extent,
                    size_t *from);
mpsim_status convproblem_run(const convproblem *p);
void convproblem_check(convproblem *p);
void convproblem_clear(convproblem *p);
void convproblem_tensors(convproblem *p, const mpsim_format *x, const mpsim_format *w, const mpsim_format *y,
                         uint64_t *seed);
void convsizes_init(convsizes *c, size_t dims);
/* The sizes of y; 0: there are none. */
int convsizes_set(convsizes *c, const size_t *extra);
/* One row of three numbers, a kernel of three, padding 1: by hand. */
void convproblem_by_hand(convproblem *p);
