/* like.h -- dot products as a library computes them, whole: torch._scaled_mm, and torch's products on CPUs. */
#pragma once

#include "error.h"

#include <mpsim/torchmm.h>

/* A product of mpsim/scaledmm.h or, if cpu is set, of mpsim/torchmm.h. */
typedef struct like_product {
    int cpu;
    mpsim_scaled_mm scaled;
    mpsim_torch_mm torch;
    mpsim_model shown; /* a model with its name and result, for reports */
} like_product;

/* dot_like_parse -- the name of such a product for these operands: 0, or an exit code after a message, as where the number of
 * parts of K is not known. */
int dot_like_parse(like_product *p, const char *name, const mpsim_format *fa, const mpsim_format *fb);

/* dot_like_measure -- its errors over all pairs of rows, the scales of the operands taken out. */
int dot_like_measure(dot_error *e, const like_product *p, const operand *a, const operand *b, size_t depth,
                     const dot_truth *truth);
