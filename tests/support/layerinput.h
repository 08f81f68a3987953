/* layerinput.h -- numbers that layers get, and results compared. */
#pragma once

#include <mpsim/format.h>
#include <stddef.h>
#include <stdint.h>

enum { LAYER_PLAIN, LAYER_WIDE, LAYER_HUGE, LAYER_TINY, LAYER_BITS, LAYER_SPECIAL, LAYER_CONSTANT, LAYER_KINDS };

/* Formats of `math`, and of outputs; NULL is one. */
enum { LAYER_MATHS = 6, LAYER_OUTS = 7 };
extern const char *const layer_formats[LAYER_OUTS];

const mpsim_format *layer_format(const char *name); /* NULL for NULL */

void layer_fill(float *x, size_t n, int kind, uint64_t *state);

/* n numbers that are the same bits, or NaN both; returns n. */
size_t layer_equal(const char *what, const char *math, const char *out, const float *got, const float *want, size_t n);
