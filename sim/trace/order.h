/* order.h -- which weights the numbered parameters of an optimizer are, where the file names none: what order and shapes
 * leave no choice about. */
#pragma once

#include "impl.h"

/* A parameter of an optimizer: its number, as param_groups has it, its group, and its place among all. */
typedef struct parameter {
    const char *number;
    uint64_t group;
    size_t place;
    const trace_tensor *state; /* of its shape; NULL: it has none */
    const char *name;          /* what is found; or NULL          */
} parameter;

/* trace_order_names -- names of the weights, which are in the order of the model, for parameters in any order. Groups follow
 * the order of the model, each; a parameter whose weight is not certain gets no name. 0, or -1: no memory. */
int trace_order_names(parameter *all, size_t n, const trace_entry *const *weights, size_t n_weights);

int trace_order_same_shape(const trace_tensor *a, const trace_tensor *b);
