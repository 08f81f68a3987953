/* wgmma_sparse.cu -- wgmma with a sparse A (sm_90a only), 64 x 16, against the model of its row. Both operands are in
 * shared memory, K-major: A without its zeros; metadata are those of mma.sync, 16 rows a warp. The forms are in mma_forms.h. */
#include "chosen.cuh"
#include "mma_forms.h"
#include "packing.h"

enum { SPARSE_N = 16, SPARSE_ROWS = 64, SPARSE_LINE = 128 }; /* bytes of a line, at most */
enum { SPARSE_A = SPARSE_ROWS * SPARSE_LINE, SPARSE_B = SPARSE_N * SPARSE_LINE };
enum { SPARSE_CODES_A = SPARSE_ROWS * GPU_DEPTH, SPARSE_CODES_B = SPARSE_N * 2 * GPU_DEPTH };
enum { SPARSE_SHARED = SPARSE_A + SPARSE_B + 4 * (SPARSE_CODES_A + SPARSE_CODES_B) };

static __device__ inline gpu_packing sparse_packing(const gpu_dots &j, int is_b)
{
    const gpu_packing p = {j.variant.swizzle, 0, 32 / j.k, is_b ? SPARSE_N : SPARSE_ROWS, is_b ? 2 * j.k : j.k};
    return p;
}

/* Codes of an operand, and the bytes that the instruction reads. */
static __device__ GPU_NOINLINE void sparse_fill(const gpu_dots &j, uint64_t tile, int is_b, uint32_t *codes,
                                                unsigned char *packed)
{
    const gpu_packing p = sparse_packing(j, is_b);
    for (int i = (int)threadIdx.x; i < p.lines * p.depth; i += GPU_THREADS) {
        const uint32_t code = gpu_operand(&j, tile, is_b, i / p.depth, i % p.depth);
        const uint32_t word = p.bytes == 4 ? code << 13 | code >> 19 : code;
        codes[i] = code;
        for (int n = 0; n < p.bytes; n++)
            packed[gpu_place(&p, i / p.depth, i % p.depth) + (uint32_t)n] = (unsigned char)(word >> (8 * n));
    }
}

#if GPU_ON_HOST

static inline void sparse_multiply(const gpu_dots &j, uint64_t a, uint64_t b, uint32_t metadata, uint32_t,
                                   uint32_t d[8])
{
    gpu_host_sparse_wgmma(j, a, b, metadata, d);
}
static inline uint32_t sparse_address(const unsigned char *p)
{
    return uint32_t(p - gpu_host.shared);
}

#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)

static __device__ inline uint32_t sparse_address(const unsigned char *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* One piece of code from fence to wait, as in wgmma.cu. */
#define SPARSE_TAIL_HALF ", 1, 1, 0, 0"
#define SPARSE_TAIL ", 1, 1"
#define SPARSE_D_F "{%0,%1,%2,%3,%4,%5,%6,%7}"
#define SPARSE_D_H "{%0,%1,%2,%3}"
#define SPARSE_CASE(ID, text, result, tail, row, k, sparse, select)                                                   \
    case IS_##ID:                                                                                                     \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %11, 0;\n"                                                       \
                     "wgmma.fence.sync.aligned;\n"                                                                    \
                     "wgmma.mma_async.sp.sync.aligned." text " " SPARSE_D_##result                                    \
                     ", %8, %9, %10, " #select ", p" tail ";\n"                                                       \
                     "wgmma.commit_group.sync.aligned;\n"                                                             \
                     "wgmma.wait_group.sync.aligned 0; }"                                                             \
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]) \
                     : "l"(a), "l"(b), "r"(metadata), "r"(scale_d)                                                    \
                     : "memory");                                                                                     \
        break;

static __device__ void sparse_multiply(const gpu_dots &j, uint64_t a, uint64_t b, uint32_t metadata, uint32_t scale_d,
                                       uint32_t d[8])
{
    enum {
#define SPARSE_NUMBER(ID, ...) IS_##ID,
        GPU_SPARSE_WGMMA_FORMS(SPARSE_NUMBER)
    };
    switch (j.variant.form) {
        GPU_SPARSE_WGMMA_FORMS(SPARSE_CASE)
    default:
        break;
    }
}

#endif

/* Register i of the sums: row and first column. */
static __device__ inline int sparse_row(int i, int is_half)
{
    return (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4 + 8 * (is_half ? i % 2 : i / 2 % 2);
}
static __device__ inline int sparse_column(int i, int is_half)
{
    return 2 * ((int)threadIdx.x % 4) + (is_half ? 8 * (i / 2) : 8 * (i / 4) + i % 2);
}

__global__ void __launch_bounds__(GPU_THREADS, 1)
    wgmma_sparse_kernel(GPU_CONSTANT(gpu_dots) j, GPU_CONSTANT(gpu_span) span, gpu_tally *tally)
{
#if GPU_ON_HOST || defined(__CUDA_ARCH_FEAT_SM90_ALL)
    GPU_DYNAMIC_SHARED(unsigned char, shared);
    unsigned char *const packed_b = shared + SPARSE_A;
    uint32_t *const a = reinterpret_cast<uint32_t *>(packed_b + SPARSE_B), *const b = a + SPARSE_CODES_A;
    const gpu_packing pa = sparse_packing(j, 0), pb = sparse_packing(j, 1);
    const int is_half = j.sum.result.format.bits == 16, registers = is_half ? 4 : 8, lane = (int)threadIdx.x % 32;
    const uint64_t outputs = gpu_tile_outputs(&j);
    gpu_local local(tally);
    for (uint64_t tile = span.first / outputs + blockIdx.x; tile < span.end / outputs; tile += gridDim.x) {
        uint32_t d[8] = {};
        const int without = gpu_without_addend(&j, tile);
        sparse_fill(j, tile, 0, a, shared);
        sparse_fill(j, tile, 1, b, packed_b);
        for (int i = 0; i < 8; i++) {
            const int row = sparse_row(i, is_half), column = sparse_column(i, is_half);
            if (i < registers)
                d[i] = gpu_addend(&j, tile, row, column) | (is_half ? gpu_addend(&j, tile, row, column + 1) << 16 : 0);
            d[i] = without ? GPU_ON_HOST ? 0 : ~0u : d[i]; /* scale-d is 0 */
        }
#if !GPU_ON_HOST
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        __syncthreads();
        sparse_multiply(j, gpu_descriptor(&pa, sparse_address(shared), 0),
                        gpu_descriptor(&pb, sparse_address(packed_b), 0),
                        gpu_metadata(&j, tile, (int)threadIdx.x / 32 * 16, lane), !without, d);
        for (int i = 0; i < 8; i++)
            for (int n = 0; n < 1 + is_half && i < registers; n++) {
                const int row = sparse_row(i, is_half), column = sparse_column(i, is_half) + n;
                const uint32_t is = is_half ? d[i] >> (16 * n) & 0xffff : d[i];
                local.add(span, tile * outputs + (uint64_t)(row * SPARSE_N + column), is,
                          gpu_chosen_expected(j, tile, a, b, row, column));
            }
        __syncthreads();
    }
    local.give();
#endif
}

cudaError_t gpu_wgmma_sparse_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally)
{
    const uint64_t tiles = (span->end - span->first) / gpu_tile_outputs(j);
    GPU_LAUNCH(wgmma_sparse_kernel, (unsigned)(tiles < GPU_BLOCKS ? tiles : uint64_t(GPU_BLOCKS)), GPU_THREADS,
               size_t(SPARSE_SHARED), *j, *span, tally);
    return cudaGetLastError();
}
