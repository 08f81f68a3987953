/* attend.h -- hidden states from attention, whose K and V a side keeps in a cache. */
#pragma once

#include "arithmetic.h"
#include "operands.h"

/* mismatch_attend -- hidden states x, o->count x o->size numbers: rms(H + A), with the given hidden states H or 0 and the results A
 * of causal attention, the heads of a token side by side.
 *
 * A side rounds K and V to its cache and back, then Q, K and V to its operands. Products are exact, all else of
 * mpsim_attention_forward is in binary32. rms divides a row by its root mean square, computed in binary64, and rounds to
 * binary32; a row of zeros stays. With a = NULL nothing is rounded (mpsim_attention_exact).
 *
 * 0, or an exit code after a message that names the side. */
int mismatch_attend(double *x, const mismatch_operands *o, const arithmetic *a, const char *side);

/* mismatch_keep -- n numbers as a cache of format f gives them back: f32(x) / scale in binary32, rounded, at most the largest
 * number, times the scale. */
void mismatch_keep(double *to, const double *x, size_t n, const mpsim_format *f, float scale);
/* mismatch_keep_scale -- how much of n numbers is their largest magnitude, of the largest number of f; 1 of zeros. */
float mismatch_keep_scale(const double *x, size_t n, const mpsim_format *f);
