/* dotcases.h -- operands for the tests of dot products and matrix products. */
#pragma once

#include "sim/verify/kinds.h"

#include <mpsim/dot.h>
#include <stddef.h>
#include <stdint.h>

/* dot_pack, dot_unpack -- codes to an array as the library takes it, and back, from element
 * `first` of the array on. */
void dot_pack(const mpsim_format *f, void *out, size_t first, const uint64_t *codes, size_t n);
uint64_t dot_unpack(const mpsim_format *f, const void *in, size_t i);

/* dot_formats -- operand formats for a model: all that its row lists, or a choice for a model that
 * takes any. Returns their number, at most room. */
size_t dot_formats(const mpsim_model *m, mpsim_format *list, size_t room);

/* Formats of every kind, typed and from the table, for operands and for models. */
enum { DOT_FORMATS = 25 };
mpsim_format dot_format(size_t i);

/* dot_can -- whether the model takes these operands. */
int dot_can(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* dot_any_model -- a random valid model: additions, orders, lengths, formats, modes and choices
 * that no table has. dot_print_model prints one as TAP comments. */
void dot_any_model(mpsim_model *m, uint64_t *seed);
void dot_print_model(const mpsim_model *m);
