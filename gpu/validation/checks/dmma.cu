/* dmma.cu -- mma.sync of binary64 against chains of fused multiply-adds: a warp a tile, operands in registers.
 *
 * "Matrix Fragments for mma.m8n8k4 / m16n8k4 / k8 / k16 with .f64": with g = lane / 4 and t = lane mod 4, register i of A is
 * row g + 8 (i mod 2), depth t + 4 (i / 2) (m8: row g, depth t), of B depth t + 4 i, column g; element i of C is row
 * g + 8 (i / 2), column 2 t + i mod 2. */
#include "doubles.h"
#include "tally.cuh"

enum { DMMA_WARPS = GPU_THREADS / 32 };

/* What a lane gives and receives. */
struct dmma_registers {
    double x[8], y[4], d[4];
};

#if !GPU_ON_HOST
#define DMMA_D4 "{%0,%1,%2,%3}"
#define DMMA(shape, of_d, of_a, of_b, ...)                                                                    \
    asm volatile("mma.sync.aligned." shape ".row.col.f64.f64.f64.f64 " of_d ", " of_a ", " of_b ", " of_d ";" \
                 : "+d"(r.d[0]), "+d"(r.d[1]), "+d"(r.d[2]), "+d"(r.d[3])                                     \
                 : __VA_ARGS__)
static __device__ void dmma_multiply(const gpu_dots &j, dmma_registers &r)
{
    if (j.rows == 8)
        DMMA("m8n8k4", "{%0,%1}", "{%4}", "{%5}", "d"(r.x[0]), "d"(r.y[0]));
#if __CUDA_ARCH__ >= 900
    else if (j.k == 4)
        DMMA("m16n8k4", DMMA_D4, "{%4,%5}", "{%6}", "d"(r.x[0]), "d"(r.x[1]), "d"(r.y[0]));
    else if (j.k == 8)
        DMMA("m16n8k8", DMMA_D4, "{%4,%5,%6,%7}", "{%8,%9}", "d"(r.x[0]), "d"(r.x[1]), "d"(r.x[2]), "d"(r.x[3]),
             "d"(r.y[0]), "d"(r.y[1]));
    else
        DMMA("m16n8k16", DMMA_D4, "{%4,%5,%6,%7,%8,%9,%10,%11}", "{%12,%13,%14,%15}", "d"(r.x[0]), "d"(r.x[1]),
             "d"(r.x[2]), "d"(r.x[3]), "d"(r.x[4]), "d"(r.x[5]), "d"(r.x[6]), "d"(r.x[7]), "d"(r.y[0]), "d"(r.y[1]),
             "d"(r.y[2]), "d"(r.y[3]));
#endif
}
#else
static void dmma_multiply(const gpu_dots &j, dmma_registers &r)
{
    gpu_host_dmma(j, r.x, r.y, r.d);
}
#endif

static __device__ GPU_NOINLINE void dmma_load(const gpu_dots &j, uint64_t tile, int lane, dmma_registers &r)
{
    const int g = lane / 4, t = lane % 4, high = j.rows / 8; /* registers of A a depth */
    for (int i = 0; i < 8; i++)
        r.x[i] = i < high * j.k / 4 ? __longlong_as_double((long long)gpu_double_operand(
                                          &j, tile, 0, g + 8 * (i % high), t + 4 * (i / high)))
                                    : 0;
    for (int i = 0; i < 4; i++) {
        r.y[i] = i < j.k / 4 ? __longlong_as_double((long long)gpu_double_operand(&j, tile, 1, g, t + 4 * i)) : 0;
        r.d[i] = i < 2 * high
                     ? __longlong_as_double((long long)gpu_double_addend(&j, tile, g + 8 * (i / 2), 2 * t + i % 2))
                     : 0;
    }
}

static __device__ GPU_NOINLINE uint64_t dmma_expected(const gpu_dots &j, uint64_t tile, int row, int column)
{
    return gpu_double_expected(&j, tile, row, column);
}

__global__ void __launch_bounds__(GPU_THREADS, 1)
    dmma_kernel(GPU_CONSTANT(gpu_dots) j, GPU_CONSTANT(gpu_span) span, gpu_tally *tally)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const uint64_t outputs = gpu_tile_outputs(&j), stride = (uint64_t)gridDim.x * DMMA_WARPS;
    gpu_local local(tally);
    for (uint64_t tile = span.first / outputs + (uint64_t)blockIdx.x * DMMA_WARPS + (uint64_t)warp;
         tile < span.end / outputs; tile += stride) {
        dmma_registers r;
        dmma_load(j, tile, lane, r);
        __syncwarp();
        dmma_multiply(j, r);
        for (int i = 0; i < j.rows / 4; i++) {
            const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            const uint64_t at = tile * outputs + 2 * (uint64_t)(row * j.columns + column);
            const uint64_t is = (uint64_t)__double_as_longlong(r.d[i]), expected = dmma_expected(j, tile, row, column);
            for (int high = 0; high < 2; high++)
                local.add(span, at + (uint64_t)high, gpu_double_word(is, high), gpu_double_word(expected, high));
        }
    }
    local.give();
}

cudaError_t gpu_dmma_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally)
{
    const uint64_t tiles = (span->end - span->first) / gpu_tile_outputs(j),
                   blocks = (tiles + DMMA_WARPS - 1) / DMMA_WARPS;
    GPU_LAUNCH(dmma_kernel, (unsigned)(blocks < GPU_BLOCKS ? blocks : uint64_t(GPU_BLOCKS)), GPU_THREADS, 0, *j, *span,
               tally);
    return cudaGetLastError();
}
