/* variants.cu -- variants of wgmma (sm_90a only) against the model of their row: see variants.h.
 *
 * Three kernels, a block a tile, and between them memory: one makes the codes of tiles, plain for the reference and as
 * packing.h says for the instruction; one of each form issues the chain; one compares. So the many kernels of forms are
 * small. Where an instruction shall leave the addend out (scale-d 0), the sums are NaN before. */
#include "packing.h"
#include "tally.cuh"
#include "wgmma_forms.cuh"

/* What a tile has in memory: packed operands as they will be in shared memory, plain codes, sums. */
struct variant_room {
    unsigned char *packed, *plain[2];
    uint32_t *sums;
};

static __host__ __device__ inline int variant_line_bytes(const gpu_dots &j)
{
    return 32 * j.variant.chain;
}
static __host__ __device__ inline int variant_operand_bytes(const gpu_dots &j, int is_b)
{
    const gpu_packing p = gpu_packing_of(&j, is_b);
    return (gpu_packing_bytes(&p) + 1023) / 1024 * 1024;
}
static __host__ __device__ inline int variant_packed_b(const gpu_dots &j) /* where B begins */
{
    return variant_operand_bytes(j, 0);
}
static __host__ __device__ inline int variant_packed_bytes(const gpu_dots &j)
{
    return variant_operand_bytes(j, 0) + variant_operand_bytes(j, 1);
}
static __host__ __device__ inline size_t variant_room_bytes(const gpu_dots &j)
{
    const int plain = (j.rows + j.columns) * variant_line_bytes(j);
    return (size_t)(variant_packed_bytes(j) + plain + j.rows * j.columns * 4 + 1023) / 1024 * 1024;
}

static __device__ inline variant_room variant_room_of(const gpu_dots &j, unsigned char *rooms)
{
    variant_room r;
    r.packed = rooms + blockIdx.x * variant_room_bytes(j);
    r.plain[0] = r.packed + variant_packed_bytes(j);
    r.plain[1] = r.plain[0] + j.rows * variant_line_bytes(j);
    r.sums = reinterpret_cast<uint32_t *>(r.plain[1] + j.columns * variant_line_bytes(j));
    return r;
}

/* ---- operands ---- */

static __device__ inline void variant_put(unsigned char *to, int bytes, uint32_t code)
{
    if (bytes == 1)
        *to = (unsigned char)code;
    else if (bytes == 2)
        *reinterpret_cast<uint16_t *>(to) = (uint16_t)code;
    else
        *reinterpret_cast<uint32_t *>(to) = code;
}

/* A tf32 has its 19 bits at the top of a word, and what lies above them (GPU_DIRTY) below. */
static __device__ inline uint32_t variant_word(int bytes, uint32_t code)
{
    return bytes == 4 ? code << 13 | code >> 19 : code;
}

/* An operand, plain and packed. */
static __device__ GPU_NOINLINE void variant_operand(const gpu_dots &j, uint64_t tile, int is_b, const variant_room &r)
{
    const gpu_packing p = gpu_packing_of(&j, is_b);
    unsigned char *const packed = r.packed + (is_b ? variant_packed_b(j) : 0);
    for (int i = (int)threadIdx.x; i < p.lines * p.depth; i += GPU_THREADS) {
        const int line = i / p.depth, k = i % p.depth;
        const uint32_t code = gpu_operand(&j, tile, is_b, line, k);
        variant_put(r.plain[is_b] + i * p.bytes, p.bytes, code);
        variant_put(packed + gpu_place(&p, line, k), p.bytes, variant_word(p.bytes, code));
    }
}

static __device__ GPU_NOINLINE void variant_addends(const gpu_dots &j, uint64_t tile, const variant_room &r)
{
    const int without = gpu_without_addend(&j, tile);
    for (int i = (int)threadIdx.x; i < j.rows * j.columns; i += GPU_THREADS)
        r.sums[i] = without ? ~0u : gpu_addend(&j, tile, i / j.columns, i % j.columns);
}

__global__ void __launch_bounds__(GPU_THREADS)
    variant_fill_kernel(GPU_CONSTANT(gpu_dots) j, uint64_t first, unsigned char *rooms)
{
    const variant_room r = variant_room_of(j, rooms);
    variant_operand(j, first + blockIdx.x, 0, r);
    variant_operand(j, first + blockIdx.x, 1, r);
    variant_addends(j, first + blockIdx.x, r);
}

/* ---- what comes out ---- */

static __device__ inline uint32_t variant_expected(const gpu_dots &j, uint64_t tile, int i, const variant_room &r)
{
    const int row = i / j.columns, column = i % j.columns, bytes = gpu_packing_of(&j, 0).bytes;
    if (j.distribution == GPU_NAMES)
        return gpu_name_answer(&j, tile, row, column);
    const gpu_line a = {r.plain[0] + row * variant_line_bytes(j), bytes};
    const gpu_line b = {r.plain[1] + column * variant_line_bytes(j), bytes};
    return gpu_dot_of_lines(&j, a, b, gpu_addend(&j, tile, row, column));
}

__global__ void __launch_bounds__(GPU_THREADS, 1)
    variant_compare_kernel(GPU_CONSTANT(gpu_dots) j, GPU_CONSTANT(gpu_span) span, uint64_t first, gpu_tally *tally,
                           unsigned char *rooms)
{
    const variant_room r = variant_room_of(j, rooms);
    const uint64_t tile = first + blockIdx.x, outputs = gpu_tile_outputs(&j);
    gpu_local local(tally);
    for (int i = (int)threadIdx.x; i < j.rows * j.columns; i += GPU_THREADS)
        local.add(span, tile * outputs + (uint64_t)i, r.sums[i], variant_expected(j, tile, i, r));
    local.give();
}

/* ---- the instructions ---- */

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || GPU_ON_HOST
#if GPU_ON_HOST
static inline uint32_t variant_address(const unsigned char *p)
{
    return uint32_t(p - gpu_host.shared);
}
static inline void variant_publish()
{
}
template <class D>
static inline void variant_hold(D &)
{
}
static inline void variant_begin()
{
}
static inline void variant_end()
{
}
#else
static __device__ inline uint32_t variant_address(const unsigned char *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
static __device__ inline void variant_publish()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/* The registers have their numbers from here on. */
template <class D>
static __device__ __forceinline__ void variant_hold(D &d)
{
    GPU_UNROLL
    for (int i = 0; i < (int)(sizeof d / sizeof d[0]); i++)
        asm volatile("" : "+r"(d[i])::"memory");
}
static __device__ inline void variant_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ inline void variant_end()
{
    asm volatile("wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;" ::
                     : "memory");
}
#endif

/* Register i of the sums: its place in a tile, that of its first half if it has two. */
template <class F>
static __device__ __forceinline__ int variant_place(int i)
{
    const int first = (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4, pair = 2 * ((int)threadIdx.x % 4);
    return F::IS_HALF ? (first + 8 * (i % 2)) * F::N + 8 * (i / 2) + pair
                      : (first + 8 * (i / 2 % 2)) * F::N + 8 * (i / 4) + pair + i % 2;
}

/* Register r of A of one instruction ("Register Fragments", as those of mma.cuh). */
template <class F>
static __device__ __forceinline__ uint32_t variant_register(const gpu_dots &j, const variant_room &room, int step,
                                                            int r)
{
    const int row = (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4 + 8 * (r % 2);
    const int at = row * variant_line_bytes(j) + 32 * step + 4 * ((int)threadIdx.x % 4) + 16 * (r / 2);
    return variant_word(32 / F::K, *reinterpret_cast<const uint32_t *>(room.plain[0] + at));
}

/* The sums += a chain of CHAIN instructions, which ptxas shall see: it serialises a loop of them. */
template <class F, int CHAIN>
static __device__ __forceinline__ void variant_chain(const gpu_dots &j, const variant_room &r,
                                                     const unsigned char *shared, uint32_t scale_d, int swap,
                                                     typename F::sums &d)
{
    const gpu_packing pa = gpu_packing_of(&j, 0), pb = gpu_packing_of(&j, 1);
    const uint64_t a = gpu_descriptor(&pa, variant_address(shared), swap && gpu_has_two_offsets(&pa));
    const uint64_t b = gpu_descriptor(&pb, variant_address(shared + variant_packed_b(j)),
                                      swap && gpu_has_two_offsets(&pb));
    uint64_t of_a[CHAIN], of_b[CHAIN];
    uint32_t x[CHAIN][4];
    GPU_UNROLL
    for (int s = 0; s < CHAIN; s++) { /* the low bits of a descriptor are the address without four */
        of_a[s] = a + (gpu_place(&pa, 0, s * F::K) >> 4);
        of_b[s] = b + (gpu_place(&pb, 0, s * F::K) >> 4);
        GPU_UNROLL
        for (int n = 0; n < 4; n++)
            x[s][n] = F::IN_REGISTERS ? variant_register<F>(j, r, s, n) : 0;
    }
    variant_hold(d);
    variant_begin();
    GPU_UNROLL
    for (int s = 0; s < CHAIN; s++)
        F::multiply(x[s], of_a[s], of_b[s], s ? 1 : scale_d, d);
    variant_end();
    variant_hold(d);
}

/* The chains of variants.c. */
template <class F>
static __device__ __forceinline__ void variant_issue(const gpu_dots &j, const variant_room &r,
                                                     const unsigned char *shared, uint32_t scale_d, int swap,
                                                     typename F::sums &d)
{
    constexpr int IS_PLAIN = F::N == 16 && !F::NEGATED, HAS_TWO = IS_PLAIN || F::TRANSPOSED;
    if (j.variant.chain == 1)
        variant_chain<F, 1>(j, r, shared, scale_d, swap, d);
    else if (HAS_TWO && j.variant.chain == 2)
        variant_chain<F, HAS_TWO ? 2 : 1>(j, r, shared, scale_d, swap, d);
    else if (IS_PLAIN && j.variant.chain == 16)
        variant_chain<F, IS_PLAIN ? 16 : 1>(j, r, shared, scale_d, swap, d);
    else
        variant_chain<F, 4>(j, r, shared, scale_d, swap, d);
}

static __device__ inline void variant_load(const gpu_dots &j, const variant_room &r, unsigned char *shared)
{
    for (int i = (int)threadIdx.x; i < variant_packed_bytes(j) / 16; i += GPU_THREADS)
        reinterpret_cast<uint4 *>(shared)[i] = reinterpret_cast<const uint4 *>(r.packed)[i];
    variant_publish();
    __syncthreads();
}
#endif

template <class F>
__global__ void __launch_bounds__(GPU_THREADS)
    variant_kernel(GPU_CONSTANT(gpu_dots) j, uint64_t first, unsigned char *rooms, int swap)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || GPU_ON_HOST
    GPU_DYNAMIC_SHARED(unsigned char, shared);
    const variant_room r = variant_room_of(j, rooms);
    typename F::sums d;
    variant_load(j, r, shared);
    GPU_UNROLL
    for (int i = 0; i < (int)(sizeof d / sizeof d[0]); i++) {
        const uint32_t *const at = r.sums + variant_place<F>(i);
        d[i] = F::IS_HALF ? (at[0] & 0xffff) | at[1] << 16 : at[0];
    }
    variant_issue<F>(j, r, shared, !gpu_without_addend(&j, first + blockIdx.x), swap, d);
    GPU_UNROLL
    for (int i = 0; i < (int)(sizeof d / sizeof d[0]); i++) {
        uint32_t *const at = r.sums + variant_place<F>(i);
        at[0] = F::IS_HALF ? d[i] & 0xffff : d[i];
        if (F::IS_HALF)
            at[1] = d[i] >> 16;
    }
#endif
}

/* ---- launches ---- */

typedef cudaError_t variant_launcher(const gpu_dots *j, uint64_t first, unsigned tiles, unsigned char *rooms, int swap);

template <class F>
static cudaError_t variant_launch(const gpu_dots *j, uint64_t first, unsigned tiles, unsigned char *rooms, int swap)
{
    const int shared = variant_packed_bytes(*j);
    const cudaError_t e = cudaFuncSetAttribute(variant_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess)
        return e;
    GPU_LAUNCH(variant_kernel<F>, tiles, GPU_THREADS, size_t(shared), *j, first, rooms, swap);
    return cudaGetLastError();
}

#define LAUNCHER(...) variant_launch<FORM_NAME(__VA_ARGS__)>,
static variant_launcher *const launchers[] = {GPU_FORMS(LAUNCHER)};

/* Tiles whose rooms fit into 64 MB, which stay for the next launch. */
static cudaError_t variant_rooms(const gpu_dots *j, uint64_t left, unsigned char **rooms, unsigned *tiles)
{
    enum { ROOM = 1 << 26 };
    static unsigned char *kept;
    const uint64_t most = ROOM / variant_room_bytes(*j);
    *tiles = (unsigned)(left < most ? left : most);
    const cudaError_t e = kept ? cudaSuccess : cudaMalloc((void **)&kept, size_t(ROOM));
    *rooms = kept;
    return e;
}

cudaError_t gpu_variant_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally, int swap)
{
    const uint64_t outputs = gpu_tile_outputs(j), end = span->end / outputs;
    cudaError_t e = cudaSuccess;
    unsigned tiles;
    unsigned char *rooms;
    for (uint64_t tile = span->first / outputs; e == cudaSuccess && tile < end; tile += tiles) {
        e = variant_rooms(j, end - tile, &rooms, &tiles);
        if (e != cudaSuccess)
            break;
        GPU_LAUNCH(variant_fill_kernel, tiles, GPU_THREADS, 0, *j, tile, rooms);
        e = launchers[j->variant.form](j, tile, tiles, rooms, swap);
        if (e != cudaSuccess)
            break;
        GPU_LAUNCH(variant_compare_kernel, tiles, GPU_THREADS, 0, *j, *span, tile, tally, rooms);
        e = cudaGetLastError();
    }
    return e;
}
