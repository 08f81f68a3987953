/* pairs.h -- the metadata of a file that cast writes. */
#pragma once

#include "contents.h"

/* Keys and values, copies; all zeros is an empty list. */
typedef struct pairs {
    char *(*all)[2];
    size_t n;
} pairs;

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void cast_pairs_put(pairs *p, const char *key, const char *format, ...);

/* cast_pairs_put_input -- those of the input that are true of the output: nothing about an earlier cast, nor about codes and
 * scales, of mpsim or torchao, which a cast reads as numbers. */
void cast_pairs_put_input(pairs *p, const trace *t);

/* cast_pairs_put_codes -- what the input says of quantised tensors whose codes and scales are copied. */
void cast_pairs_put_codes(pairs *p, const trace *t, const content *all, size_t n);

/* cast_pairs_open -- trace_writer_safetensors with these pairs; the list is empty afterwards. */
trace_writer *cast_pairs_open(pairs *p, const char *path, const trace_tensor *tensors, size_t n, trace_error *error);
