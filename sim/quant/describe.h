/* describe.h -- what mpsim says in a file's metadata of a tensor that it quantised, in any layout: one key for each
 * tensor, "mpsim.quantised.NAME", whose value is a JSON object
 *
 *   {"layout": "plain", "recipe": "mxfp8-rceil", "element": "e4m3", "scale": "e8m0", "shape": [64, 128],
 *    "block": [1, 32], "axis": "rows", "packing": "bytes", "scales": "plain", "tensor_scale": "none", "transform": 0}
 *
 * shape is the tensor's; block, packing, scales ("plain" or "swizzled") and tensor_scale ("none", "multiply",
 * "divide", "amax") are those of the parts as they are stored (quant.h); recipe, axis and transform say how the
 * numbers were made. */
#pragma once

#include "quant.h"

#define QUANT_KEY "mpsim.quantised."

typedef struct quant_description {
    char layout[32], recipe[64], element[32], scale[32];
    size_t rank;
    uint64_t shape[QUANT_RANK_MAX];
    uint32_t block_rows, block_cols; /* that a stored scale is of; QUANT_WHOLE: of 2^32 or more  */
    int columns;                     /* the axis                                                 */
    int swizzled;
    int tensor_scale;   /* there is one                                             */
    unsigned transform; /* size of the groups of the Hadamard transform, or 0       */
} quant_description;

/* quant_describe -- the JSON text, to be freed; NULL without memory. */
char *quant_describe(const quant_description *d);

/* quant_described -- from such a text, which may be anything. 0, or -1 and what is wrong with it; -2: no memory. */
int quant_described(quant_description *d, const char *text, char *why, size_t size);
