/* chosen.cuh -- what is expected of an output, by the model row, from the elements of B that the metadata choose; without
 * metadata all are chosen. */
#pragma once

#include "tally.cuh"

/* a: lines of j.k codes, the elements that are there; b: lines of gpu_depth_of_b codes. */
static __device__ GPU_NOINLINE uint32_t gpu_chosen_expected(const gpu_dots &j, uint64_t tile, const uint32_t *a,
                                                            const uint32_t *b, int row, int column)
{
    uint32_t chosen[GPU_DEPTH];
    if (j.distribution == GPU_NAMES)
        return gpu_name_answer(&j, tile, row, column);
    for (int k = 0; k < j.k; k++)
        chosen[k] = b[column * gpu_depth_of_b(&j) + gpu_chosen(&j, tile, row, k)];
    return gpu_dot_reference(&j, a + row * j.k, chosen, gpu_addend(&j, tile, row, column));
}
