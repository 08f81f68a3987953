/* t-host.cc -- the host executor itself: what CUDA promises, and the mistakes that it must find. */
#include "../../gpu/kernels/tma.cuh"
#include "../../gpu/kernels/wgmma.cuh"

#include "tap.h"

#include <fenv.h>

#include "../../gpu/train.h"
#include "../../gpu/validation/checks/open.cuh"

/* ---- what works ---- */

/* The sum of a block's numbers, by shared memory and shuffles. */
template <int N>
__global__ void sum_kernel(float *y, const float *x, int n, float more)
{
    GPU_SHARED(float, s, [N]);
    GPU_SHARED(float, extra, );
    GPU_DYNAMIC_SHARED(float, d);
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < (unsigned)n ? x[i] : 0;
    if (threadIdx.x == 0)
        extra = more;
    __syncthreads();
    for (unsigned h = N / 2; h >= 32; h /= 2) {
        if (threadIdx.x < h)
            s[threadIdx.x] += s[threadIdx.x + h];
        __syncthreads();
    }
    d[threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x < 32) {
        float v = d[threadIdx.x];
        for (unsigned h = 16; h > 0; h /= 2)
            v += __shfl_down_sync(0xffffffffu, v, h);
        if (threadIdx.x == 0)
            y[blockIdx.x] = v + extra;
    }
}

__global__ void index_kernel(unsigned *y)
{
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    y[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 100 + thread;
}

/* One word a lane and collective. */
enum { COLLECTIVES = 9 };

__global__ void warp_kernel(unsigned *y)
{
    const unsigned lane = threadIdx.x % 32, all = 0xffffffffu;
    unsigned *to = y + COLLECTIVES * threadIdx.x;
    to[0] = __shfl_sync(all, lane, (int)(lane + 1));
    to[1] = __shfl_xor_sync(all, lane, 5);
    to[2] = __shfl_down_sync(all, lane, 3);
    to[3] = __shfl_up_sync(all, lane, 3);
    to[4] = __shfl_down_sync(all, lane, 2, 8);
    to[5] = __ballot_sync(all, lane % 3 == 0);
    to[6] = __reduce_add_sync(all, lane);
    to[7] = (unsigned)__any_sync(all, lane == 7) + 2 * (unsigned)__all_sync(all, lane == 7);
    if (lane < 16) /* half a warp */
        to[8] = __ballot_sync(0x0000ffffu, lane & 1);
    else
        to[8] = __ballot_sync(0xffff0000u, lane > 20);
    __syncwarp();
}

__global__ void atomic_kernel(unsigned *y, unsigned long long *sum)
{
    atomicAdd(y, 1u);
    atomicMax(y + 1, threadIdx.x * 7 % 31);
    atomicOr(y + 2, 1u << threadIdx.x % 32);
    atomicMin(y + 3, threadIdx.x + 5);
    atomicAdd(sum, 0x100000000ull);
}

/* Threads that wait for a word of another one. */
__global__ void spin_kernel(volatile unsigned *y)
{
    if (threadIdx.x == 40)
        y[0] = 1;
    while (y[0] == 0)
        gpu_host_yield();
    y[1 + threadIdx.x] = 1;
}

/* ---- mistakes ---- */

__global__ void leaves_kernel(int *)
{
    if (threadIdx.x == 3)
        return;
    __syncthreads();
}

__global__ void apart_kernel(int *)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

__global__ void absent_kernel(int *y)
{
    if (threadIdx.x != 9)
        y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, (int)threadIdx.x, 1);
}

__global__ void unmasked_kernel(int *y)
{
    y[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 0);
}

__global__ void before_kernel(int *y)
{
    y[-1] = 0;
}
__global__ void behind_kernel(int *y)
{
    y[64] = 0;
}

__global__ void shared_kernel(int *y)
{
    GPU_SHARED(int, a, [4]);
    int *const p = a; /* past what a sanitizer of indices would see */
    p[threadIdx.x] = 1;
    y[0] = a[0];
}

__global__ void unset_kernel(float *y)
{
    GPU_SHARED(float, a, [4]);
    y[blockIdx.x] = a[1];
    a[1] = 1;
}

__global__ void alone_kernel(volatile int *y)
{
    while (y[0] != 12345)
        gpu_host_yield();
}

/* ---- clusters, mbarriers and tiles: what works, and what does not ---- */

enum tile_mistake {
    TILES_RIGHT,
    TOO_FEW_BYTES,
    TOO_MANY_BYTES,
    PHASE_TWICE,
    PHASE_SKIPPED,
    NOT_RELEASED,
    COPIED_TWICE,
    READ_EARLY,
    NO_ARRIVAL,
    ONE_ARRIVAL_MORE,
    OVERWRITTEN,
    PEER_LEAVES,
    NEVER_WAITED,
    NOT_ALIGNED,
    OTHER_COUNT
};

enum { TILE = 64 * 128, TILES = 5, TILE_BARS = 2 * TILE };

/* Thread 0 of two blocks copies TILES tiles to both, half of each tile a block, by one place; thread 32 adds up bytes of each,
 * and releases the place in both. */
template <int MISTAKE>
__global__ void tiles_kernel(GPU_CONSTANT(gpu_tensor) x, unsigned *y)
{
    GPU_DYNAMIC_SHARED(unsigned char, shared);
    uint64_t *const full = reinterpret_cast<uint64_t *>(shared + TILE_BARS), *const empty = full + 1;
    const unsigned rank = gpu_cluster_rank();
    if (threadIdx.x == 0) {
        gpu_bar_init(full, 1);
        gpu_bar_init(empty, 2);
    }
    gpu_cluster_sync();
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < TILES; i++) {
            if (MISTAKE != NOT_RELEASED || i == 0)
                gpu_bar_wait(empty, (i & 1) ^ 1);
            gpu_bar_expect(full, MISTAKE == TOO_FEW_BYTES ? TILE / 2 : MISTAKE == TOO_MANY_BYTES ? TILE + 1 : TILE);
            gpu_tile(x, shared + rank * (TILE / 2) + (MISTAKE == NOT_ALIGNED ? 16 : 0), full, 0, i * 64 + rank * 32, 0,
                     3);
            if (MISTAKE == COPIED_TWICE)
                gpu_tile(x, shared + rank * (TILE / 2), full, 0, 0, 0, 0);
            if (MISTAKE == ONE_ARRIVAL_MORE)
                gpu_bar_arrive(full), gpu_bar_arrive(full);
        }
        if (MISTAKE == OVERWRITTEN)
            *full = 0;
    } else if (threadIdx.x == 32 && MISTAKE != NEVER_WAITED) {
        unsigned sum = 0;
        for (unsigned i = 0; i < TILES; i++) {
            if (MISTAKE != PHASE_TWICE || i != 1)
                gpu_bar_wait(full, (i + (MISTAKE == PHASE_SKIPPED && i == 1)) & 1);
            else
                gpu_bar_wait(full, 0);
            for (unsigned n = 0; n < TILE; n++)
                sum += shared[n] * (n + 1);
            for (unsigned r = 0; r < 2; r++)
                if (MISTAKE != NO_ARRIVAL || r == 0)
                    gpu_bar_arrive_at(empty, r);
        }
        y[rank] = sum;
    }
    if (MISTAKE == OTHER_COUNT)
        gpu_group_sync(1, threadIdx.x < 32 ? 64 : 32);
    if (MISTAKE == PEER_LEAVES && rank == 1)
        return;
    gpu_cluster_sync();
}

/* A wgmma reads a tile that is on its way, or that is copied to again. */
template <int MISTAKE>
__global__ void multiplied_kernel(GPU_CONSTANT(gpu_tensor) x, unsigned *y)
{
    GPU_DYNAMIC_SHARED(unsigned char, shared);
    uint64_t *const full = reinterpret_cast<uint64_t *>(shared + TILE_BARS);
    float d[64] = {};
    if (threadIdx.x == 0) {
        gpu_bar_init(full, 1);
        gpu_bar_expect(full, 2 * TILE);
        gpu_tile(x, shared, full, 0, 0, 0, 0);
        gpu_tile(x, shared + TILE, full, 0, 64, 0, 0);
    }
    __syncthreads();
    if (MISTAKE != READ_EARLY)
        gpu_bar_wait(full, 0);
    wg_multiply<GPU_TYPES_F16, 128>(d, wg_descriptor(shared), wg_descriptor(shared));
    wg_commit();
    __syncthreads();
    if (MISTAKE == NOT_RELEASED && threadIdx.x == 0) {
        gpu_bar_expect(full, TILE);
        gpu_tile(x, shared + TILE, full, 0, 0, 0, 0);
    }
    wg_wait<0>();
    wg_hold<128>(d);
    y[threadIdx.x] = __float_as_uint(d[0]);
}

static int *memory;

template <class... P, class... A>
static void finds(const char *what, const char *expected, void (*kernel)(P...), unsigned threads, A... a)
{
    gpu_host_launch("kernel", kernel, 1, threads, 0, a...);
    const int found = cudaGetLastError() != cudaSuccess && strstr(cudaGetErrorString(cudaGetLastError()), expected);
    OK(found, "%s", what);
    if (!found)
        printf("# %s\n", cudaGetErrorString(cudaGetLastError()));
    gpu_host_clear();
}

/* The mistake is found in a cluster. */
template <class K>
static void finds_in_tiles(const char *what, const char *expected, K *kernel, unsigned blocks, unsigned threads)
{
    gpu_tensor x;
    unsigned char *bytes = nullptr;
    const size_t elements[3] = {64, 64 * TILES, 1}, apart[3] = {2, 128, 128};
    const unsigned box[2] = {64, blocks == 2 ? 32u : 64u};
    cudaMalloc(&bytes, size_t(TILE) * TILES);
    for (size_t i = 0; i < size_t(TILE) * TILES; i++)
        bytes[i] = static_cast<unsigned char>(i * 7 / 3 % 61);
    OK(gpu_tensor_set(&x, bytes, 2, elements, apart, box) == 0, "a tensor for: %s", what);
    gpu_host_cores_set(90);
    unsigned *const y = reinterpret_cast<unsigned *>(memory);
    GPU_LAUNCH_CLUSTERS(cudaStream_t(nullptr), blocks, kernel, blocks, threads, TILE_BARS + 16, x, y);
    const cudaError_t e = cudaGetLastError();
    const int found = *expected ? e != cudaSuccess && strstr(cudaGetErrorString(e), expected) : e == cudaSuccess;
    OK(found, "%s", what);
    if (!found)
        printf("# %s\n", cudaGetErrorString(e));
    unsigned sum = 0;
    for (size_t i = 0; i < size_t(TILE) * TILES; i++) {
        const size_t at = i % TILE;
        sum += bytes[i] * ((unsigned)(at ^ (at >> 7 & 7) << 4) + 1);
    }
    if (blocks == 2 && !*expected)
        OK(y[0] == sum && y[1] == sum, "tiles are where they should be");
    gpu_host_clear();
    cudaFree(bytes);
}

static void test_tiles()
{
    finds_in_tiles("two blocks copy to each other", "", tiles_kernel<TILES_RIGHT>, 2, 64);
    finds_in_tiles("expect_tx of too few bytes", "too few bytes", tiles_kernel<TOO_FEW_BYTES>, 2, 64);
    finds_in_tiles("expect_tx of too many bytes", "1 bytes", tiles_kernel<TOO_MANY_BYTES>, 2, 64);
    finds_in_tiles("a deadlock, with its place", "waits for an mbarrier", tiles_kernel<NO_ARRIVAL>, 2, 64);
    finds_in_tiles("a wait for the phase before", "t-host.cc", tiles_kernel<PHASE_TWICE>, 2, 64);
    finds_in_tiles("a wait for the phase after", "another phase", tiles_kernel<PHASE_SKIPPED>, 2, 64);
    finds_in_tiles("a stage that was not released", "more arrivals", tiles_kernel<NOT_RELEASED>, 2, 64);
    finds_in_tiles("a copy over a copy", "another one is under way", tiles_kernel<COPIED_TWICE>, 2, 64);
    finds_in_tiles("an arrival too many", "more arrivals", tiles_kernel<ONE_ARRIVAL_MORE>, 2, 64);
    finds_in_tiles("a barrier that is overwritten", "no mbarrier", tiles_kernel<OVERWRITTEN>, 2, 64);
    finds_in_tiles("a block that ends before its cluster", "ended", tiles_kernel<PEER_LEAVES>, 2, 64);
    finds_in_tiles("a place that is not aligned", "not aligned", tiles_kernel<NOT_ALIGNED>, 2, 64);
    finds_in_tiles("a named barrier of two counts", "two counts", tiles_kernel<OTHER_COUNT>, 2, 64);
    finds_in_tiles("copies that nobody waits for", "waits for an mbarrier", tiles_kernel<NEVER_WAITED>, 2, 64);
    finds_in_tiles("a wgmma of tiles that are there", "", multiplied_kernel<TILES_RIGHT>, 1, 128);
    finds_in_tiles("a wgmma of tiles on their way", "reads where a copy", multiplied_kernel<READ_EARLY>, 1, 128);
    finds_in_tiles("a copy to what a wgmma reads", "wgmma under way reads", multiplied_kernel<NOT_RELEASED>, 1, 128);
}

static void test_mistakes()
{
    finds("a thread that ends before a barrier", "thread 3 has ended", leaves_kernel, 64, memory);
    finds("barriers at two places", "at once", apart_kernel, 64, memory);
    finds("a lane that is not there", "thread 9 has ended", absent_kernel, 32, memory);
    finds("a lane outside its mask", "not in the mask", unmasked_kernel, 32, memory);
    finds("a shared array that is too small", "behind a shared array", shared_kernel, 5, memory);
    finds("a wait without end", "without end", alone_kernel, 2, static_cast<volatile int *>(memory));
    finds("1025 threads", "configuration", leaves_kernel, 1025, memory);
    finds("no threads", "configuration", leaves_kernel, 0, memory);
    for (int side = 0; side < 2; side++) {
        int *own = nullptr;
        cudaMalloc(&own, 64 * sizeof *own);
        finds(side ? "a write behind memory" : "a write before memory", "beside an allocation",
              side ? behind_kernel : before_kernel, 1, own);
        /* its guard stays broken: no cudaFree */
        free(gpu_host.memory.back().base - (256 - GPU_HOST_GUARD));
        gpu_host.memory.pop_back();
    }
    int here = 0;
    OK(cudaMemcpy(&here, &here, sizeof here, cudaMemcpyDeviceToHost) != cudaSuccess,
       "a copy from what is no memory of the device");
    gpu_host_clear();
    float *f = reinterpret_cast<float *>(memory), got[3];
    GPU_LAUNCH(unset_kernel, 3, 1, 0, f);
    cudaMemcpy(got, f, sizeof got, cudaMemcpyDeviceToHost);
    OK(isnan(got[0]) && isnan(got[1]) && isnan(got[2]), "shared memory begins as NaN in every block");
}

static void test_threads()
{
    unsigned *y, got[4 * 3 * 2 * 60];
    cudaMalloc(&y, sizeof got);
    GPU_LAUNCH(index_kernel, dim3(4, 3, 2), dim3(5, 4, 3), 0, y);
    cudaMemcpy(got, y, sizeof got, cudaMemcpyDeviceToHost);
    int good = 1;
    for (unsigned i = 0; i < 4 * 3 * 2 * 60; i++)
        good = good && got[i] == i / 60 * 100 + i % 60;
    OK(good, "indices of blocks and threads in three dimensions");
    cudaFree(y);
}

static void test_sum()
{
    float *x, *y, h[1000], r[4];
    for (int i = 0; i < 1000; i++)
        h[i] = (float)i;
    cudaMalloc(&x, sizeof h);
    cudaMalloc(&y, sizeof r);
    cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
    GPU_LAUNCH((sum_kernel<256>), 4, 256, 256 * sizeof(float), y, x, 1000, 5.0f);
    cudaMemcpy(r, y, sizeof r, cudaMemcpyDeviceToHost);
    OK(r[0] == 32645 && r[1] == 98181 && r[2] == 163717 && r[3] == 204977, "shared memory, barriers and shuffles");
    cudaFree(x);
    cudaFree(y);
}

static void test_warps()
{
    unsigned *y, got[64 * COLLECTIVES];
    int good = 1;
    cudaMalloc(&y, sizeof got);
    GPU_LAUNCH(warp_kernel, 1, 64, 0, y);
    cudaMemcpy(got, y, sizeof got, cudaMemcpyDeviceToHost);
    for (unsigned i = 0; i < 64; i++) {
        const unsigned l = i % 32, *g = got + COLLECTIVES * i;
        good = good && g[0] == (l + 1) % 32 && g[1] == (l ^ 5) && g[2] == (l + 3 < 32 ? l + 3 : l) &&
               g[3] == (l >= 3 ? l - 3 : l) && g[4] == (l % 8 + 2 < 8 ? l + 2 : l) && g[5] == 0x49249249u &&
               g[6] == 496 && g[7] == 1 && g[8] == (l < 16 ? 0xaaaau : 0xffe00000u);
    }
    OK(good, "collectives of a warp and of half of one");
    cudaFree(y);
}

static void test_atomics()
{
    unsigned *y, got[4] = {0, 0, 0, 99};
    unsigned long long *sum = nullptr, total = 0;
    cudaMalloc(&y, sizeof got);
    cudaMalloc(&sum, sizeof total);
    cudaMemcpy(y, got, sizeof got, cudaMemcpyHostToDevice);
    cudaMemset(sum, 0, sizeof total);
    GPU_LAUNCH(atomic_kernel, 3, 100, 0, y, sum);
    cudaMemcpy(got, y, sizeof got, cudaMemcpyDeviceToHost);
    cudaMemcpy(&total, sum, sizeof total, cudaMemcpyDeviceToHost);
    OK(got[0] == 300 && got[1] == 30 && got[2] == 0xffffffffu && got[3] == 5 && total == 300ull << 32, "atomics");
    GPU_LAUNCH(spin_kernel, 1, 64, 0, reinterpret_cast<unsigned *>(memory));
    unsigned waited[65];
    cudaMemcpy(waited, memory, sizeof waited, cudaMemcpyDeviceToHost);
    int good = waited[0] == 1;
    for (int i = 1; i < 65; i++)
        good = good && waited[i] == 1;
    OK(good && cudaGetLastError() == cudaSuccess, "threads that wait for another one's word");
    cudaFree(y);
    cudaFree(sum);
}

/* A program's thread has made another device than the first its own. */
static void test_devices()
{
    train_engine e;
    gpu_device d = {};
    char why[200] = "";
    gpu_host_driver_now.devices = 2;
    gpu_host_driver_now.device = 1;
    OK(train_engine_cuda(&e, why, sizeof why) == 0, "an engine: %s", why);
    OK(strcmp(e.device, "CPU executor, device 1") == 0, "is on the thread's device: %s", e.device);
    train_engine_close(&e);
    OK(gpu_open_device(&d, why, sizeof why) == 0 && strcmp(d.name, "CPU executor, device 1") == 0, "so are checks: %s",
       d.name);
    OK(gpu_host_driver_now.device == 1, "which stays as it was");
    gpu_host_driver_now.devices = 1;
    gpu_host_driver_now.device = 0;
}

/* Directed operations beside those of this CPU, whose rounding is set: few bits and many, sums that cancel, ends of the ranges. */
static void test_directed()
{
    uint64_t word = 1;
    int differs = 0, zeros = 0;
    const auto draw = [&word] { return (word = word * 6364136223846793005u + 1442695040888963407u) >> 11; };
    const auto number = [&draw](int most) {
        const uint64_t bits = draw(), how = draw() >> 3;
        const double x = ldexp(double(how & 1 ? bits >> 28 : bits),
                               how % 7 ? int(how >> 4 & 7) - 53 : int(bits % uint64_t(2 * most)) - most - 53);
        return how >> 8 & 15 ? how & 2 ? -x : x : how & 2 ? -0.0 : 0.0;
    };
    const auto differing = [](double x, double y) {
        return x == x || y == y ? int(gpu_host_bits<uint64_t>(x) != gpu_host_bits<uint64_t>(y)) : 0;
    };
    for (int i = 0; i < 20000; i++) {
        volatile double a = number(430), b = number(430), c = number(1070);
        volatile float u = float(number(70)), v = float(number(70)), w = float(number(140));
        if (i % 5 == 0)
            c = -(a * b), w = -(u * v);
        const double got[] = {__fma_rd(a, b, c),  __fma_ru(a, b, c),  __dadd_rd(a, c),
                              __fmaf_rd(u, v, w), __fmaf_ru(u, v, w), __fmaf_rz(u, v, w),
                              __fmul_rd(u, v),    __fmul_ru(u, v),    __fmul_rz(u, v)};
        double expected[9];
        fesetround(FE_DOWNWARD);
        expected[0] = fma(a, b, c), expected[2] = a + c, expected[3] = double(fmaf(u, v, w)),
        expected[6] = double(u * v);
        fesetround(FE_UPWARD);
        expected[1] = fma(a, b, c), expected[4] = double(fmaf(u, v, w)), expected[7] = double(u * v);
        fesetround(FE_TOWARDZERO);
        expected[5] = double(fmaf(u, v, w)), expected[8] = double(u * v);
        fesetround(FE_TONEAREST);
        for (int k = 0; k < 9; k++) {
            const int wrong = differing(got[k], expected[k]);
            if (wrong && differs++ < 5)
                printf("# operation %d of %a %a %a, %a %a %a: %a, not %a\n", k, a, b, c, double(u), double(v),
                       double(w), got[k], expected[k]);
            zeros += expected[k] == 0 && signbit(expected[k]);
        }
    }
    OK(differs == 0 && zeros > 1000, "directed operations: %d differ, %d times -0", differs, zeros);
}

int main()
{
    test_directed();
    test_devices();
    cudaMalloc(&memory, 128 * sizeof *memory);
    cudaMemset(memory, 0, 65 * sizeof *memory);
    test_threads();
    test_sum();
    test_warps();
    test_atomics();
    cudaMemset(memory, 0, 65 * sizeof *memory);
    test_tiles();
    cudaMemset(memory, 0, 65 * sizeof *memory);
    test_mistakes();
    cudaFree(memory);
    OK(cudaGetLastError() == cudaSuccess, "nothing else was found");
    return tap_end();
}
