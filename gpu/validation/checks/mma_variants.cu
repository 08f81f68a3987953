/* mma_variants.cu -- sparse mma.sync, and FP8 with a depth of 16, against the model of their row: a warp a tile, as in
 * mma.cu. The forms are in mma_forms.h. */
#include "chosen.cuh"
#include "mma.cuh"
#include "mma_forms.h"

enum { WARPS = GPU_THREADS / 32, M = 16, SPARSE_DEPTH = 2 * GPU_DEPTH };

/* What a lane gives and receives. */
struct mma_registers {
    uint32_t x[4], y[4], metadata, d[4]; /* d: codes */
};

#if GPU_ON_HOST

#define MMA_FORM(ID, text, result, na, nb, row, k, sparse, select) \
    static void form_##ID(const gpu_dots &j, mma_registers &r)     \
    {                                                              \
        gpu_host_mma_variant(j, r.x, r.y, r.metadata, r.d);        \
    }

#else

#define MMA_X_2 "{%4,%5}"
#define MMA_Y_2_1 "{%6}"
#define MMA_Y_2_2 "{%6,%7}"
#define MMA_X_4 "{%4,%5,%6,%7}"
#define MMA_Y_4_4 "{%8,%9,%10,%11}"
#define MMA_IN_2_1 "r"(r.x[0]), "r"(r.x[1]), "r"(r.y[0])
#define MMA_IN_2_2 MMA_IN_2_1, "r"(r.y[1])
#define MMA_IN_4_4 \
    "r"(r.x[0]), "r"(r.x[1]), "r"(r.x[2]), "r"(r.x[3]), "r"(r.y[0]), "r"(r.y[1]), "r"(r.y[2]), "r"(r.y[3])
#define MMA_D_F "{%0,%1,%2,%3}"
#define MMA_D_H "{%0,%1}"
#define MMA_SP_0 ""
#define MMA_SP_2 ".sp::ordered_metadata"
#define MMA_SP_4 ".sp::ordered_metadata"
#define MMA_END_0(at, select) ";"
#define MMA_END_2(at, select) ", " at ", " #select ";"
#define MMA_END_4(at, select) ", " at ", " #select ";"
#define MMA_AT_2_1 ""
#define MMA_AT_2_2 "%8"
#define MMA_AT_4_4 "%12"

#define MMA_FORM(ID, text, result, na, nb, row, k, sparse, select)                                                   \
    static __device__ __forceinline__ void form_##ID(const gpu_dots &, mma_registers &r)                             \
    {                                                                                                                \
        constexpr int IS_HALF = #result[0] == 'H';                                                                   \
        uint32_t d[4] = {IS_HALF ? r.d[0] | r.d[1] << 16 : r.d[0], IS_HALF ? r.d[2] | r.d[3] << 16 : r.d[1], r.d[2], \
                         r.d[3]};                                                                                    \
        asm volatile("mma" MMA_SP_##sparse ".sync.aligned." text " " MMA_D_##result ", " MMA_X_##na                  \
                     ", " MMA_Y_##na##_##nb ", " MMA_D_##result MMA_END_##sparse(MMA_AT_##na##_##nb, select)         \
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                                \
                     : MMA_IN_##na##_##nb, "r"(r.metadata));                                                         \
        for (int i = 0; i < 4; i++)                                                                                  \
            r.d[i] = IS_HALF ? d[i / 2] >> (16 * (i % 2)) & 0xffff : d[i];                                           \
    }

#endif

GPU_SPARSE_FORMS(MMA_FORM)
#if GPU_ON_HOST || __CUDA_ARCH__ >= 890
GPU_FP8_FORMS(MMA_FORM)
#endif

static __device__ void mma_form(const gpu_dots &j, mma_registers &r)
{
    enum {
#define MMA_NUMBER(ID, ...) IS_##ID,
        GPU_MMA_FORMS(MMA_NUMBER)
    };
    switch (j.variant.form) {
#define MMA_CASE(ID, ...) \
    case IS_##ID:         \
        form_##ID(j, r);  \
        break;
        GPU_SPARSE_FORMS(MMA_CASE)
#if GPU_ON_HOST || __CUDA_ARCH__ >= 890
        GPU_FP8_FORMS(MMA_CASE)
#endif
    default:
        break;
    }
}

/* The codes of a tile. */
static __device__ GPU_NOINLINE void mma_variant_fill(const gpu_dots &j, uint64_t tile, uint32_t *a, uint32_t *b,
                                                     int lane)
{
    const int deep = gpu_depth_of_b(&j);
    for (int i = lane; i < j.rows * j.k; i += 32)
        a[i] = gpu_operand(&j, tile, 0, i / j.k, i % j.k);
    for (int i = lane; i < j.columns * deep; i += 32)
        b[i] = gpu_operand(&j, tile, 1, i / deep, i % deep);
}

/* Fragments are those of mma.cuh, of a sparse A as if its elements were all there are; B has more registers. */
static __device__ GPU_NOINLINE void mma_variant_load(const gpu_dots &j, uint64_t tile, const uint32_t *a,
                                                     const uint32_t *b, int lane, mma_registers &r)
{
    const int g = lane / 4, t = lane % 4, p = j.a.bits == 19 ? 1 : 32 / j.a.bits, deep = gpu_depth_of_b(&j);
    for (int i = 0; i < 4; i++) {
        r.x[i] = i < j.k / (2 * p) ? mma_register(a + (g + 8 * (i % 2)) * j.k, p * t + 4 * p * (i / 2), j.a.bits) : 0;
        r.y[i] = i < deep / (4 * p) ? mma_register(b + g * deep, p * t + 4 * p * i, j.a.bits) : 0;
        r.d[i] = gpu_addend(&j, tile, g + 8 * (i / 2), 2 * t + i % 2);
    }
    r.metadata = j.variant.sparse ? gpu_metadata(&j, tile, 0, lane) : 0;
}

__global__ void __launch_bounds__(GPU_THREADS, 1)
    mma_variant_kernel(GPU_CONSTANT(gpu_dots) j, GPU_CONSTANT(gpu_span) span, gpu_tally *tally)
{
    GPU_SHARED(uint32_t, codes, [WARPS][M * GPU_DEPTH + GPU_COLUMNS * SPARSE_DEPTH]);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    uint32_t *const a = codes[warp], *const b = a + M * GPU_DEPTH;
    const uint64_t outputs = gpu_tile_outputs(&j), stride = (uint64_t)gridDim.x * WARPS;
    gpu_local local(tally);
    for (uint64_t tile = span.first / outputs + (uint64_t)blockIdx.x * WARPS + (uint64_t)warp;
         tile < span.end / outputs; tile += stride) {
        mma_registers r;
        mma_variant_fill(j, tile, a, b, lane);
        __syncwarp();
        mma_variant_load(j, tile, a, b, lane, r);
        mma_form(j, r);
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            local.add(span, tile * outputs + (uint64_t)(row * j.columns + column), r.d[i],
                      gpu_chosen_expected(j, tile, a, b, row, column));
        }
        __syncwarp();
    }
    local.give();
}

cudaError_t gpu_mma_variant_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally)
{
    const uint64_t tiles = (span->end - span->first) / gpu_tile_outputs(j), blocks = (tiles + WARPS - 1) / WARPS;
    GPU_LAUNCH(mma_variant_kernel, (unsigned)(blocks < GPU_BLOCKS ? blocks : uint64_t(GPU_BLOCKS)), GPU_THREADS, 0, *j,
               *span, tally);
    return cudaGetLastError();
}
