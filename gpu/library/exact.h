/* exact.h -- products by exact sums (exact.cu), for gemm.cu. */
#pragma once

#include "tile.cuh"

namespace library
{

/* A product that exact.cu computes. */
struct exact_product {
    int length;    /* products of a sum that is rounded with the accumulator: 2, 4; 0: all, or a chunk's */
    int chunk;     /* products of a sum that is rounded and added to the sum so far; 0: none */
    int flush_in;  /* subnormal numbers are read as zeros */
    int flush_out; /* so are sums */
    tile_plan tiles;
};

/* 1: exact.cu computes it, but results that are left: a byte of each, 1 where walk_kernel computes it. */
int exact_of(exact_product *f, const product_arguments &p);
void exact_launch(const exact_product &f, const product_arguments &p, const unsigned char *entered_a,
                  const unsigned char *entered_b, unsigned char *left, cudaStream_t on);

} // namespace library
