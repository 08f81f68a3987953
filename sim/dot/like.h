/* like.h -- dot products as a library computes them, whole: torch._scaled_mm. */
#pragma once

#include "error.h"

/* like_parse -- the name of such a product (mpsim/scaledmm.h) for these operands: 0, or an exit code after a message, as
 * where the number of parts of K is not known. *shown: a model with its name and result, for reports. */
int like_parse(mpsim_scaled_mm *p, mpsim_model *shown, const char *name, const mpsim_format *fa,
               const mpsim_format *fb);

/* like_measure -- its errors over all pairs of rows, the scales of the operands taken out. */
int like_measure(dot_error *e, const mpsim_scaled_mm *p, const operand *a, const operand *b, size_t depth,
                 const double *exact);
