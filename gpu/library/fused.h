/* fused.h -- products by fused additions in binary64 (fused.cu), for gemm.cu. */
#pragma once

#include "product.cuh"

namespace library
{

/* How an accumulator is rounded; STAGED: additions of CDNA3, of one sum or two; GROUPED: those of fp4 with scales. */
enum fused_kind {
    FUSED_BINARY32,
    FUSED_E8M13,
    FUSED_FP16,
    FUSED_KINDS,
    FUSED_STAGED = FUSED_KINDS,
    FUSED_STAGED_TWO,
    FUSED_GROUPED
};

enum { FUSED_LINES = 64 }; /* of a tile; operands are filled up to whole tiles */

/* A product that fused.cu computes. */
struct fused_product {
    fused_kind kind;
    int length, fraction, floor, kept;
    int near;          /* staged: an accumulator further below the largest exponent counts as 0 */
    int odd;           /* 1: truncation; 0: toward -infinity */
    int per_chunk;     /* additions a chunk or a block; 0: none */
    int quads;         /* zeros fill up a chunk */
    int blocks;        /* with factors; 0: none */
    int block, filled; /* products of a block, and with the zeros that fill up its last addition */
    block_factors a, b;
    int64_t end;           /* additions from there on are not made */
    int64_t deep;          /* products: of all additions, zeros included */
    int64_t rows, columns; /* filled up */
    uint64_t invalid;      /* the code of a sum without a value */
    float not_a_number;    /* the same as binary32 */
};

/* An operand in the workspace, k by k: the higher words of binary64 values, exponents of products in pairs, signs of each
 * addition's products (other things of GROUPED: grouped.cuh); per line, whether it has a NaN or an infinity. */
struct fused_operand {
    uint32_t *values, *exponents, *signs;
    unsigned char *special;
};

struct fused_places {
    fused_operand a, b;
    int *any;    /* one line is special */
    float *sums; /* NULL: sums are stored in d */
};

/* 1: fused.cu computes it. */
int fused_of(fused_product *f, const product_arguments &p);
fused_places fused_in(void *workspace, size_t *bytes, const fused_product &f, const product_arguments &p);
void fused_launch(const fused_product &f, const product_arguments &p, const fused_places &at,
                  const unsigned char *entered_a, const unsigned char *entered_b, cudaStream_t on);

} // namespace library
