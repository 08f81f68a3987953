/* convtensor.h -- tensors for tests of convolutions: any format and axes in any order, with gaps, some of them backwards. */
#pragma once

#include <mpsim/product.h>
#include <stddef.h>
#include <stdint.h>

enum { CONV_AXES = 5 };

typedef struct convtensor {
    mpsim_stack s;
    mpsim_operand o;              /* the same as it is multiplied */
    size_t dims, size[CONV_AXES]; /* of 2 + dims axes: images, channels, ...; the rest is 1 */
    unsigned char *memory;
    size_t room; /* bytes */
} convtensor;

size_t convtensor_numbers(const convtensor *t);
/* Axes in a random order, gaps between them, some backwards. */
convtensor convtensor_new(const mpsim_format *memory, size_t dims, size_t first, size_t second, const size_t *extent,
                          uint64_t *seed);
void *convtensor_place(const convtensor *t, const size_t *i);
uint64_t convtensor_load(const convtensor *t, const size_t *i);
/* The number as it is multiplied. */
uint64_t convtensor_operand(const convtensor *t, const size_t *i);
/* Index number n of a tensor, row-major. */
void convtensor_unravel(const convtensor *t, size_t n, size_t *i);
void convtensor_fill(convtensor *t, int kind, uint64_t *seed);
void convtensor_put(const convtensor *t, const float *values);
float convtensor_number(const convtensor *t, size_t n);
