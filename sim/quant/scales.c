/* scales.c -- where block scales lie, and what they multiply by: see quant.h.
 *
 * The swizzled order: cuBLAS documentation, "1D Block Scaling Factors Layout" (CUDA 12.8 and later); the same in torchao
 * 0.18 (prototype/mx_formats/utils.py, to_blocked). */
#include "quant.h"

#include <math.h>

enum { TILE_OUTER = 128, TILE_INNER = 4, TILE = TILE_OUTER * TILE_INNER };

uint64_t quant_swizzled_index(uint64_t o, uint64_t i, uint64_t inner)
{
    const uint64_t tile = o / TILE_OUTER * quant_up(inner, TILE_INNER) + i / TILE_INNER;
    return tile * TILE + o % 32 * 16 + o % TILE_OUTER / 32 * 4 + i % TILE_INNER;
}

uint64_t quant_scale_at(const quant_geometry *g, uint64_t i, uint64_t j)
{
    if (g->swizzled)
        return g->block_rows > g->block_cols ? quant_swizzled_index(j, i, g->grid_rows)
                                             : quant_swizzled_index(i, j, g->grid_cols);
    return g->form->arrangement == QUANT_PADDED_TRANSPOSED ? j * g->line_scales + i : i * g->line_scales + j;
}

/* Of NVFP4: the largest number of E2M1 times that of E4M3. */
static const float full = 6 * 448;

float quant_factor(const quant_form *f, float scale, float tensor)
{
    switch (f->tensor_scale) {
    case QUANT_DIVIDE: /* compressed-tensors: scale / global_scale, there in the dtype of the model */
        return scale / tensor;
    case QUANT_AMAX: /* TransformerEngine: scale * amax * (1 / (6 * 448)) */
        return scale * tensor * (1 / full);
    case QUANT_MULTIPLY: /* torchao: per_tensor_scale * scale */
    case QUANT_MAYBE:
        return tensor * scale;
    case QUANT_NONE:
        break;
    }
    return scale;
}

float quant_stored(const quant_form *f, float decode, float amax)
{
    switch (f->tensor_scale) {
    case QUANT_DIVIDE: /* compressed-tensors: 448 * 6 / amax; 1 where that is no number */
        return amax > 0 && full / amax < INFINITY ? full / amax : 1 / decode;
    case QUANT_AMAX:
        return amax;
    default:
        return decode;
    }
}
