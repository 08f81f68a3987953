/* adafactor.cuh -- Adafactor on a device, a tensor at a time: the exact sums of lib/optim/adafactor.c, each rounded once. */
#pragma once

#include "../kernels/adafactor.cuh"
#include "call.cuh"

namespace library
{
namespace adafactor
{

/* Numbers of a tensor, beside its sums: the means of rows of its matrices. */
static size_t matrices_of(const mpsim_optim *o, uint64_t n)
{
    const size_t each = o->rows * o->cols;
    return each ? size_t(n) / each : 0;
}

static size_t place(gpu_adafactor *a, const mpsim_optim *o, uint64_t n, void *memory)
{
    room r(memory);
    a->sums = r.take<gpu_squares>(2);
    a->means = r.take<float>(matrices_of(o, n));
    return r.used;
}

static void set(gpu_adafactor *a, const gpu_optim &g, const mpsim_optim *o, uint64_t step,
                const mpsim_cuda_parameter &t)
{
    mpsim_adafactor_plan_of(&a->plan, o, step);
    a->o = g;
    a->t = {t.param, t.m, t.v, NULL, NULL, t.model, NULL, t.grad};
    a->n = size_t(t.n);
    a->rows = o->rows ? o->rows : 1;
    a->cols = o->rows ? o->cols : 1;
    a->each = o->rows * o->cols;
    a->rng = t.rng;
}

static unsigned blocks_over(size_t n)
{
    const size_t blocks = (n + GPU_ADAFACTOR_THREADS - 1) / GPU_ADAFACTOR_THREADS;
    return unsigned(blocks < (1u << 12) ? blocks : 1u << 12);
}

static void launch(cudaStream_t on, const gpu_adafactor &a)
{
    const unsigned over = blocks_over(a.n), lines = 1u << 20;
    const dim3 threads(GPU_ADAFACTOR_COLUMNS, GPU_ADAFACTOR_THREADS / GPU_ADAFACTOR_COLUMNS);
    GPU_LAUNCH_ON(on, adafactor_clear_kernel, 1, GPU_ADAFACTOR_THREADS, 0, a);
    GPU_LAUNCH_ON(on, adafactor_squares_kernel<0>, over, GPU_ADAFACTOR_THREADS, 0, a);
    if (!a.each) {
        GPU_LAUNCH_ON(on, adafactor_vector_kernel, over, GPU_ADAFACTOR_THREADS, 0, a);
    } else {
        const size_t rows = a.n / a.cols, matrices = a.n / a.each;
        const size_t columns = matrices * ((a.cols + GPU_ADAFACTOR_COLUMNS - 1) / GPU_ADAFACTOR_COLUMNS);
        GPU_LAUNCH_ON(on, adafactor_rows_kernel, unsigned(rows < lines ? rows : lines), GPU_ADAFACTOR_THREADS, 0, a);
        GPU_LAUNCH_ON(on, adafactor_columns_kernel, unsigned(columns < lines ? columns : lines), threads, 0, a);
        GPU_LAUNCH_ON(on, adafactor_means_kernel, unsigned(matrices < lines ? matrices : lines), GPU_ADAFACTOR_THREADS,
                      0, a);
    }
    GPU_LAUNCH_ON(on, adafactor_squares_kernel<1>, over, GPU_ADAFACTOR_THREADS, 0, a);
    GPU_LAUNCH_ON(on, adafactor_apply_kernel, over, GPU_ADAFACTOR_THREADS, 0, a);
}

} // namespace adafactor
} // namespace library
