/* blocks.cu -- the launches of blocks_launch.cuh. The kernels are compiled here alone: trainings and libmpsim-cuda share them. */
#include "blocks_launch.cuh"

#define GPU_BLOCKS_LAUNCH(...) GPU_LAUNCH_ON(stream, (__VA_ARGS__), blocks, GPU_BLOCKS_THREADS, 0, q, list)

template <int IN, int ELEMENT, int VALUES>
static void gpu_blocks_launch_fp8(int way, const gpu_recipe &q, const gpu_blocked_list &list, unsigned blocks,
                                  cudaStream_t stream)
{
    if (way == GPU_WAY_ONE)
        GPU_BLOCKS_LAUNCH(one_block_kernel<IN, ELEMENT, VALUES>);
    else if (way == GPU_WAY_ROWS)
        GPU_BLOCKS_LAUNCH(row_blocks_kernel<IN, ELEMENT, VALUES>);
    else if (way == GPU_WAY_TILES)
        GPU_BLOCKS_LAUNCH(tile_blocks_kernel<IN, ELEMENT, VALUES, 8>);
    else if (ELEMENT == GPU_E4M3 && !q.power.is)
        GPU_BLOCKS_LAUNCH(blocks_kernel<IN, GPU_E4M3, VALUES, 128, GPU_LINE_DEEPSEEK>);
    else if (q.block_cols == 128)
        GPU_BLOCKS_LAUNCH(blocks_kernel<IN, ELEMENT, VALUES, 128, GPU_LINE_POWER>);
    else
        GPU_BLOCKS_LAUNCH(blocks_kernel<IN, ELEMENT, VALUES, 32, GPU_LINE_POWER>);
}

template <int IN, int VALUES>
static void gpu_blocks_launch_of(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_blocked_list &list,
                                 unsigned blocks, cudaStream_t stream)
{
    switch (form.element) {
    case GPU_E4M3:
        gpu_blocks_launch_fp8<IN, GPU_E4M3, VALUES>(form.way, q, list, blocks, stream);
        break;
    case GPU_E5M2:
        gpu_blocks_launch_fp8<IN, GPU_E5M2, VALUES>(form.way, q, list, blocks, stream);
        break;
    case GPU_E3M2:
        GPU_BLOCKS_LAUNCH(blocks_kernel<IN, GPU_E3M2, VALUES, 32, GPU_LINE_POWER>);
        break;
    case GPU_E2M3:
        GPU_BLOCKS_LAUNCH(blocks_kernel<IN, GPU_E2M3, VALUES, 32, GPU_LINE_POWER>);
        break;
    case GPU_E2M1:
        if (form.way == GPU_WAY_TILES)
            GPU_BLOCKS_LAUNCH(tile_blocks_kernel<IN, GPU_E2M1, VALUES, 1>);
        else if (q.block_cols == 16)
            GPU_BLOCKS_LAUNCH(blocks_kernel<IN, GPU_E2M1, VALUES, 16, GPU_LINE_NVFP4>);
        else
            GPU_BLOCKS_LAUNCH(blocks_kernel<IN, GPU_E2M1, VALUES, 32, GPU_LINE_POWER>);
        break;
    default:
        if (form.way == GPU_WAY_TILES)
            GPU_BLOCKS_LAUNCH(tile_blocks_kernel<IN, GPU_E2M1_RANDOM, VALUES, 1>);
        else
            GPU_BLOCKS_LAUNCH(blocks_kernel<IN, GPU_E2M1_RANDOM, VALUES, 16, GPU_LINE_NVFP4>);
    }
}

void gpu_blocks_launch(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_blocked_list &list,
                       cudaStream_t stream)
{
    const unsigned blocks = list.n ? list.end[list.n - 1] : 0;
    if (blocks == 0)
        return;
    if (form.input == GPU_INPUT_F32 && form.values)
        gpu_blocks_launch_of<GPU_INPUT_F32, 1>(form, q, list, blocks, stream);
    else if (form.input == GPU_INPUT_F32)
        gpu_blocks_launch_of<GPU_INPUT_F32, 0>(form, q, list, blocks, stream);
    else if (form.input == GPU_INPUT_BF16 && form.values)
        gpu_blocks_launch_of<GPU_INPUT_BF16, 1>(form, q, list, blocks, stream);
    else if (form.input == GPU_INPUT_BF16)
        gpu_blocks_launch_of<GPU_INPUT_BF16, 0>(form, q, list, blocks, stream);
    else
        gpu_blocks_launch_of<GPU_INPUT_F16, 1>(form, q, list, blocks, stream);
}

void gpu_blocks_launch_amax(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_blocked_list &list,
                            cudaStream_t stream)
{
    const unsigned blocks = list.n ? list.end[list.n - 1] : 0;
    if (blocks == 0)
        return;
    if (form.input == GPU_INPUT_F32)
        GPU_BLOCKS_LAUNCH(blocks_amax_kernel<GPU_INPUT_F32>);
    else if (form.input == GPU_INPUT_BF16)
        GPU_BLOCKS_LAUNCH(blocks_amax_kernel<GPU_INPUT_BF16>);
    else
        GPU_BLOCKS_LAUNCH(blocks_amax_kernel<GPU_INPUT_F16>);
}

template <int IN, int VALUES>
static void gpu_blocks_launch_both_of(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_both_list &list,
                                      unsigned blocks, cudaStream_t stream)
{
    if (form.element == GPU_E4M3)
        GPU_BLOCKS_LAUNCH(both_blocks_kernel<IN, GPU_E4M3, VALUES>);
    else
        GPU_BLOCKS_LAUNCH(both_blocks_kernel<IN, GPU_E5M2, VALUES>);
}

void gpu_blocks_launch_both(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_both_list &list,
                            cudaStream_t stream)
{
    const unsigned blocks = list.n ? list.end[list.n - 1] : 0;
    if (blocks == 0)
        return;
    if (form.input == GPU_INPUT_F32 && form.values)
        gpu_blocks_launch_both_of<GPU_INPUT_F32, 1>(form, q, list, blocks, stream);
    else if (form.input == GPU_INPUT_F32)
        gpu_blocks_launch_both_of<GPU_INPUT_F32, 0>(form, q, list, blocks, stream);
    else if (form.input == GPU_INPUT_BF16 && form.values)
        gpu_blocks_launch_both_of<GPU_INPUT_BF16, 1>(form, q, list, blocks, stream);
    else if (form.input == GPU_INPUT_BF16)
        gpu_blocks_launch_both_of<GPU_INPUT_BF16, 0>(form, q, list, blocks, stream);
    else
        gpu_blocks_launch_both_of<GPU_INPUT_F16, 1>(form, q, list, blocks, stream);
}
