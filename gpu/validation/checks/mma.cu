/* mma.cu -- mma.sync against the model of its row: a warp makes a tile of inputs in shared memory,
 * runs the instruction and computes its own elements by the integer reference. */
#include "mma.cuh"

enum { WARPS = GPU_THREADS / 32, M = 16 };

__global__ void __launch_bounds__(GPU_THREADS, 1)
    mma_kernel(GPU_CONSTANT(gpu_dots) j, GPU_CONSTANT(gpu_span) span, gpu_tally *tally)
{
    __shared__ uint32_t codes[WARPS][M * GPU_DEPTH + GPU_COLUMNS * GPU_DEPTH + M * GPU_COLUMNS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint32_t *a = codes[warp], *b = a + M * GPU_DEPTH, *c = b + GPU_COLUMNS * GPU_DEPTH;
    const int half_c = j.sum.result.format.bits == 16;
    const uint64_t outputs = M * GPU_COLUMNS, stride = (uint64_t)gridDim.x * WARPS;
    gpu_local local(tally);
    for (uint64_t tile = span.first / outputs + (uint64_t)blockIdx.x * WARPS + warp; tile < span.end / outputs;
         tile += stride) {
        uint32_t d[4];
        dots_fill(j, tile, a, b, c, lane, 32);
        __syncwarp();
        mma_tile(j.instruction, j.k, j.a.bits, a, b, c, half_c, d);
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            const uint64_t index = tile * outputs + (uint64_t)(row * GPU_COLUMNS + column);
            local.add(span, index, d[i], dots_expected(j, a, b, c, row, column));
        }
        __syncwarp();
    }
    local.give();
}

cudaError_t gpu_mma_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally)
{
    const uint64_t tiles = (span->end - span->first) / (M * GPU_COLUMNS);
    const uint64_t blocks = (tiles + WARPS - 1) / WARPS;
    mma_kernel<<<(unsigned)(blocks < GPU_BLOCKS ? blocks : GPU_BLOCKS), GPU_THREADS>>>(*j, *span, tally);
    return cudaGetLastError();
}
