/* weights.h -- which names are of parameters: those that only parameters have, and, in the dictionary of a model, all
 * but those that are known to be something else. */
#pragma once

#include <stddef.h>

/* A tensor: its fqn, of n characters, and the properties that distinguish a buffer from a parameter. */
typedef struct weights_name {
    const char *fqn;
    size_t n, rank;
    int first_is_one; /* its first dimension is 1 */
    int numbers;      /* floating-point numbers; else integers, which may be packed codes */
    const char *dtype;
} weights_name;

/* trace_weights_only_parameters -- whether the last word of the name is one that only parameters have. */
int trace_weights_only_parameters(const weights_name *w);

/* trace_weights_in_model -- whether a tensor of a model's dictionary is a weight: it is not known to be a buffer, a scale of
 * codes or an index. Integers are weights where they can be packed codes. */
int trace_weights_in_model(const weights_name *w);

/* trace_weights_packed -- whether integers can be the packed codes of a weight. */
int trace_weights_packed(const weights_name *w);

/* trace_weights_buffer -- whether a name is known to be that of no parameter. */
int trace_weights_buffer(const weights_name *w);
