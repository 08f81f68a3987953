/* aten.h -- products of bf16 matrices as ATen's own kernels sum them on CPUs, in binary32; see mpsim/muon.h. */
#pragma once

#include <stddef.h>

/* y = x w', of m x depth and n x depth, both by rows. halves: the eight lanes of a vector are added by halves, as AVX2's
 * are; else one after the other. */
void mpsim_aten_dots(float *y, const float *x, const float *w, size_t m, size_t n, size_t depth, int halves);

/* y = x w, of m x depth and depth x n, both by rows: `chains` sums (at most 4), the c-th over k = c, c + chains, ...; what is
 * left over of the depth goes to the first, to which the others are added. sums: room for `chains` times n. */
void mpsim_aten_chains(float *y, const float *x, const float *w, size_t m, size_t n, size_t depth, size_t chains,
                       float *sums);
