/* measure.cuh -- what all measurements of speed.cu share: inputs, memory, rows, time. Times are
 * those of events around one launch. */
#ifndef MPSIM_GPU_SPEED_MEASURE_CUH
#define MPSIM_GPU_SPEED_MEASURE_CUH

#include "../kernels/codes.cuh"
#include "speed.h"

#include <algorithm>
#include <vector>

namespace {

/* ---- inputs, the same on CPU and device ---- */

enum input { CONSTANT, BELL, UNIFORM_EXPONENTS };

__host__ __device__ inline uint32_t mix(uint64_t i)
{
    uint64_t x = i * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return static_cast<uint32_t>(x >> 32);
}

/* Bits of element i: 1; the sum of four uniform numbers about 0, of variance 1/3; any sign,
 * exponent and significand of a finite number. Sums of multiples of 2^-16 below 2: exact. */
__host__ __device__ inline uint32_t input_bits(int kind, uint64_t i)
{
    if (kind == CONSTANT)
        return 0x3f800000;
    const uint32_t a = mix(2 * i), b = mix(2 * i + 1);
    if (kind == UNIFORM_EXPONENTS)
        return (a & 0x807fffff) | b % 255 << 23;
    const int sum = static_cast<int>((a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16)) - 131070;
    return mpsim_bits_f32(static_cast<float>(sum) * 0x1p-16f);
}

__global__ void fill_kernel(uint32_t *x, size_t n, int kind)
{
    GPU_FOR(i, n)
        x[i] = input_bits(kind, i);
}

__global__ void compare_kernel(const uint32_t *x, const uint32_t *y, size_t n, gpu_word *apart)
{
    unsigned mine = 0;
    GPU_FOR(i, n)
        mine += x[i] != y[i];
    gpu_counter::one(apart, mine);
}

/* ---- memory and time ---- */

struct memory {
    void *p = nullptr;
    ~memory() { cudaFree(p); }
    cudaError_t get(size_t bytes)
    {
        unsigned char *q = nullptr;
        const cudaError_t e = cudaMalloc(&q, bytes ? bytes : 16);
        p = q;
        return e;
    }
};

struct session {
    const gpu_speed_plan *plan;
    gpu_speed_row *rows;
    size_t max, count;
    int multiprocessors;
    double copy; /* bytes a second */
    cudaError_t error;
};

gpu_speed_row *add_row(session *s, const char *name, double bytes, double flops)
{
    static gpu_speed_row beyond;
    gpu_speed_row *r = s->count < s->max ? &s->rows[s->count++] : &beyond;
    memset(r, 0, sizeof *r);
    snprintf(r->name, sizeof r->name, "%s", name);
    r->bytes = bytes;
    r->flops = flops;
    r->checked = -1;
    return r;
}

void keep_error(session *s, cudaError_t e)
{
    if (s->error == cudaSuccess)
        s->error = e;
}

/* Blocks of a grid that fills the device, as many as fit on a multiprocessor at once. */
template <class... T>
int grid_of(session *s, void (*kernel)(T...), int threads)
{
    int n = 0;
    keep_error(s, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, threads, 0));
    return s->multiprocessors * (n > 0 ? n : 1);
}

/* The median of the runs, in seconds. A run that does not count goes before each: while it is under
 * way the host asks for the next, so that no launch is waited for. None, if none shall warm up. */
template <class F>
double seconds_of(session *s, F run)
{
    std::vector<float> ms;
    cudaEvent_t from = nullptr, to = nullptr;
    keep_error(s, cudaEventCreate(&from));
    keep_error(s, cudaEventCreate(&to));
    for (int i = 0; i < s->plan->runs + s->plan->before && s->error == cudaSuccess; i++) {
        float t = 0;
        if (s->plan->before > 0)
            run();
        keep_error(s, cudaEventRecord(from));
        run();
        keep_error(s, cudaEventRecord(to));
        keep_error(s, cudaEventSynchronize(to));
        keep_error(s, cudaEventElapsedTime(&t, from, to));
        keep_error(s, cudaGetLastError());
        if (i >= s->plan->before)
            ms.push_back(t);
    }
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    if (ms.empty())
        return 0;
    std::sort(ms.begin(), ms.end());
    return static_cast<double>(ms[ms.size() / 2]) * 1e-3;
}

void set_time(session *s, gpu_speed_row *r, double seconds)
{
    r->seconds = seconds;
    if (r->bytes > 0 && seconds > 0 && s->copy > 0)
        r->share = r->bytes / seconds / s->copy;
}

enum { SAMPLE = 1 << 20 };

size_t sample_of(const session *s)
{
    return s->plan->elements < SAMPLE ? s->plan->elements : size_t(SAMPLE);
}

void fill(session *s, void *x, size_t n, int kind)
{
    GPU_LAUNCH(fill_kernel, grid_of(s, fill_kernel, 256), 256, 0, static_cast<uint32_t *>(x), n,
               kind);
}

/* Words of x that are not those of y are counted in the row, a share of `compared`. */
void compare(session *s, gpu_speed_row *r, const void *x, const void *y, size_t n)
{
    gpu_word apart = 0;
    memory count;
    keep_error(s, count.get(sizeof apart));
    keep_error(s, cudaMemset(count.p, 0, sizeof apart));
    if (s->error != cudaSuccess)
        return;
    GPU_LAUNCH(compare_kernel, grid_of(s, compare_kernel, 256), 256, 0,
               static_cast<const uint32_t *>(x), static_cast<const uint32_t *>(y), n,
               static_cast<gpu_word *>(count.p));
    keep_error(s, cudaMemcpy(&apart, count.p, sizeof apart, cudaMemcpyDeviceToHost));
    r->compared = n;
    r->differing = apart;
}

} // namespace

#endif
