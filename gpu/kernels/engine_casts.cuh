/* engine_casts.cuh -- casts of many tensors at once: those between usual formats by kernels of their own. */
#pragma once

#include "casts.cuh"
#include "engine_lists.cuh"

/* The kernel of a cast between usual formats, or NULL. */
static const gpu_usual_cast<gpu_pairs> *usual_cast_of(const train_pair *p, int mode)
{
    typedef gpu_usual_cast<gpu_pairs> row;
    static const row rows[] = {
        row::of<gpu_binary32, gpu_fp16, gpu_fp16, GPU_NEAREST>(),
        row::of<gpu_binary32, gpu_bf16, gpu_bf16, GPU_NEAREST>(),
        row::of<gpu_binary32, gpu_tf32, gpu_tf32, GPU_NEAREST>(),
        row::of<gpu_binary32, gpu_tf32, gpu_tf32, GPU_AWAY>(),
        row::of<gpu_binary32, gpu_e4m3, gpu_e4m3, GPU_NEAREST>(),
        row::of<gpu_binary32, gpu_e5m2, gpu_e5m2, GPU_NEAREST>(),
        row::of<gpu_fp16, gpu_binary32, gpu_binary32, GPU_NEAREST>(),
        row::of<gpu_bf16, gpu_binary32, gpu_binary32, GPU_NEAREST>(),
        row::of<gpu_e4m3, gpu_binary32, gpu_binary32, GPU_NEAREST>(),
        row::of<gpu_e5m2, gpu_binary32, gpu_binary32, GPU_NEAREST>(),
        row::of<gpu_fp16, gpu_e4m3, gpu_e4m3, GPU_NEAREST>(),
        row::of<gpu_bf16, gpu_e4m3, gpu_e4m3, GPU_NEAREST>(),
        row::of<gpu_fp16, gpu_e5m2, gpu_e5m2, GPU_NEAREST>(),
        row::of<gpu_bf16, gpu_e5m2, gpu_e5m2, GPU_NEAREST>(),
    };
    return gpu_usual_find(rows, sizeof rows / sizeof *rows, p->x->format, p->y->format, p->y->format, mode, 0);
}

/* To nearest, overflow to infinity or NaN. A NaN becomes nan_code; in binary32 it keeps its sign. */
static gpu_casting casting_of(const train_pair &p)
{
    gpu_casting how;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.nan = gpu_is_usual<gpu_binary32>(p.y->format) ? MPSIM_NANS_SIGNED : MPSIM_NANS_POSITIVE;
    gpu_casting_set(&how, p.y->format, &r, NULL, p.y->format);
    return how;
}

static int cuda_cast_list(train_engine *e, const train_pair *list, size_t n, mpsim_round_mode mode)
{
    int failed = 0;
    if (n > CUDA_SLOTS)
        return cuda_cast_list(e, list, CUDA_SLOTS, mode) || cuda_cast_list(e, list + CUDA_SLOTS, n - CUDA_SLOTS, mode)
                   ? -1
                   : 0;
    if (reserve_slots(e, n))
        return -1;
    const int how = mode == MPSIM_ROUND_NEAREST_AWAY ? int(GPU_AWAY) : int(GPU_NEAREST);
    for (size_t i = 0; i < n; i++)
        list[i].y->inverse = 1;
    const int code = run_pairs(
        e, "cast", list, n, [&](size_t i) { return slot_of(e, list[i].counts, &failed); },
        [&](size_t i, size_t elements) {
            const gpu_usual_cast<gpu_pairs> *usual = usual_cast_of(&list[i], how);
            return usual ? gpu_usual_blocks(elements, usual->blocks, self_of(e)->multiprocessors)
                         : gpu_list_blocks(elements);
        },
        [&](unsigned blocks, const train_pair &first, const gpu_pairs &now) {
            const gpu_usual_cast<gpu_pairs> *usual = usual_cast_of(&first, how);
            if (usual)
                GPU_LAUNCH(usual->kernel, blocks, GPU_LIST_THREADS, 0, casting_of(first), now);
            else
                GPU_LAUNCH(cast_kernel, blocks, GPU_LIST_THREADS, 0, format_of(first.y), format_of(first.x), now, how);
        });
    return failed ? -1 : code;
}

static int cuda_cast(train_engine *e, train_tensor *y, const train_tensor *x, mpsim_round_mode mode,
                     train_counts *counts)
{
    const train_pair one = {y, x, counts};
    return cuda_cast_list(e, &one, 1, mode);
}
