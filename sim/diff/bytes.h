/* bytes.h -- two tensors by the bytes that they are stored as: those whose numbers are not read, and codes and scales
 * that stand for equal numbers. */
#pragma once

#include "verdict.h"

/* diff_bytes_compare -- two tensors, of which one at least has no floating-point numbers that are read: VERDICT_EQUAL, or what
 * differs; VERDICT_NOT_COMPARED where the bytes of one are not there. 0, or -1 with *error. On one thread. */
int diff_bytes_compare(verdict_case *c, finding *f, trace_error *error);

/* diff_bytes_codes -- the same of two quantised tensors that are equal numbers: *f is changed only where another verdict than
 * VERDICT_EQUAL fits. */
int diff_bytes_codes(verdict_case *c, finding *f, trace_error *error);
