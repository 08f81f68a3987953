/* roundoff.h -- gradients of biases that are nothing but rounding: sums whose terms cancel.
 *
 * The gradient of a bias is a sum over the batch, b = a_1 + ... + a_N, of the gradient of what its layer puts out. Where a constant cannot change the
 * loss (the keys of attention, before a softmax; a layer before BatchNorm), the terms cancel, b is 0 mathematically, and what a
 * file holds is what rounding left. A term has a relative error of u = 2^-24 at least, the sum itself adds errors of the same size, and
 * the terms are differences themselves, which multiplies their errors (in the bundled traces by up to 16). So an element
 * is taken for round-off where
 *
 *   |a_1 + ... + a_N| and |b| are at most 64 u (|a_1| + ... + |a_N|) = 2^-18 (|a_1| + ... + |a_N|),
 *
 * in binary64 64 times 2^-53; where the terms were recorded in a narrower format of unit roundoff v, at most 4 v / sqrt(N) times
 * the sum if that is more. Terms of random signs come as low by chance, one in 2^18 / sqrt(N); so it must be 4 elements or more in a
 * row, zeros between them passed over, or all of the tensor. A gradient that is small since its terms are is none: both sides shrink.
 *
 * A file without the terms leaves a guess. The gradient of the layer's weight has the same terms, times the inputs: in place
 * of the sum of magnitudes comes the largest magnitude of the row of the weight's gradient, with 2^-18, too: inputs are numbers of the order of
 * 1. Without that, elements below 2^-20 of the tensor's largest, and none between 2^-20 and 2^-12 of it. */
#pragma once

#include "trace.h"

/* trace_find_roundoff -- look for such elements in all tensors of a trace: from now on they are read as zeros, and counted
 * in trace_tensor.roundoff->count. *bytes: what was read for it. 0, or -1 with *error filled. Not while another thread reads. */
int trace_find_roundoff(trace *t, uint64_t *bytes, trace_error *error);

/* trace_roundoff -- how many of n elements of tensor i from `first` on are round-off. */
uint64_t trace_roundoff(const trace *t, size_t i, uint64_t first, uint64_t n);

/* trace_roundoff_evidence -- how that is known, in words. */
const char *trace_roundoff_evidence(int evidence);
