/* measure.cuh -- what all measurements of speed.cu share: inputs, memory, rows, time. Times are
 * those of events around one launch. */
#pragma once

#include "../../kernels/codes.cuh"
#include "../../kernels/gemm.h"
#include "nvml.h"
#include "speed.h"

#include <stdio.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace
{

/* ---- inputs, the same on CPU and device ---- */

enum input { BELL, UNIFORM_EXPONENTS, MOSTLY_BELL };

__host__ __device__ inline uint32_t mix(uint64_t i)
{
    uint64_t x = i * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return static_cast<uint32_t>(x >> 32);
}

/* Bits of element i: the sum of four uniform numbers about 0, of variance 1/3; any sign,
 * exponent and significand of a finite number; a bell with one such number in 4096. Sums of multiples of 2^-16 below 2: exact. */
__host__ __device__ inline uint32_t input_bits(int kind, uint64_t i)
{
    const uint32_t a = mix(2 * i), b = mix(2 * i + 1);
    if (kind == UNIFORM_EXPONENTS || (kind == MOSTLY_BELL && i % 4096 == 0))
        return (a & 0x807fffff) | b % 255 << 23;
    const int sum = static_cast<int>((a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16)) - 131070;
    return mpsim_bits_f32(static_cast<float>(sum) * 0x1p-16f);
}

__global__ void fill_kernel(uint32_t *x, size_t n)
{
    GPU_FOR(i, n)
    x[i] = input_bits(BELL, i);
}

__global__ void compare_kernel(const uint32_t *x, const uint32_t *y, size_t n, gpu_word *apart)
{
    unsigned mine = 0;
    GPU_FOR(i, n)
    mine += x[i] != y[i];
    gpu_counter::one(apart, mine);
}

/* ---- rows ---- */

struct session;
struct tensor_case;
struct cast_case;
struct layer_case;
struct product_case;

/* A row of the table: what it is, and how it is measured. */
struct item {
    char name[64], group[32];
    double bytes, flops;
    void (*measure)(session *s, const item *it);
    const tensor_case *tensor;   /* of operations on tensors */
    const cast_case *cast;       /* of casts that a training does not have */
    const layer_case *layer;     /* of operations of layers, optimizers and attention */
    const product_case *product; /* of products: operands, model, and which path or library */
    char model[96];
    gpu_gemm_path path;
    int library, transposed, fast; /* library: one of NVIDIA's, no path of ours */
};

struct item_list {
    item at[GPU_SPEED_ROWS];
    size_t n;
};

/* One row being measured. */
struct session {
    const gpu_speed_plan *plan;
    const item *items;         /* of all rows */
    const gpu_speed_row *rows; /* all rows; those before `at` may be measured */
    size_t at;
    gpu_speed_row *row;
    int multiprocessors;
    gpu_nvml *nvml; /* or NULL */
    cudaError_t error;
};

item *add_item(item_list *list, const char *group, void (*measure)(session *, const item *))
{
    static item beyond;
    item *it = list->n < GPU_SPEED_ROWS ? &list->at[list->n++] : &beyond;
    memset(it, 0, sizeof *it);
    snprintf(it->group, sizeof it->group, "%s", group);
    it->measure = measure;
    return it;
}

void keep_error(session *s, cudaError_t e)
{
    if (s->error == cudaSuccess)
        s->error = e;
}

/* The row says that it cannot be measured, and why. */
void give_up(session *s, gpu_status status, const char *why)
{
    s->row->status = status;
    snprintf(s->row->text, sizeof s->row->text, "%.180s", why);
}

/* Bytes and operations a second of a row that was measured; 0: it was not. */
double rate_of(const gpu_speed_row *r)
{
    return r->status == GPU_DONE && r->seconds > 0 ? (r->bytes + r->flops) / r->seconds : 0;
}

/* ---- memory ---- */

struct memory {
    void *p = nullptr;
    memory() = default;
    memory(const memory &) = delete;
    ~memory()
    {
        cudaFree(p);
    }
    void get(session *s, size_t bytes)
    {
        unsigned char *q = nullptr;
        keep_error(s, cudaMalloc(&q, bytes ? bytes : 16));
        p = q;
    }
};

/* Blocks of a grid that fills the device, as many as fit on a multiprocessor at once. */
template <class... T>
int grid_of(session *s, void (*kernel)(T...), int threads)
{
    int n = 0;
    keep_error(s, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, threads, 0));
    return s->multiprocessors * (n > 0 ? n : 1);
}

/* ---- models ---- */

const char *const architectures[] = {"ampere", "ada", "hopper", "blackwell", "rtx-blackwell"};

/* The row of that kind ("bf16-fp32") that the device's products have, or NULL. */
const char *model_of_device(const char *kind, int sm)
{
    static char name[96];
    for (const char *arch : architectures) {
        snprintf(name, sizeof name, "%s-%s", arch, kind);
        if (gpu_gemm_own(name, sm))
            return name;
    }
    return NULL;
}

/* ---- time ---- */

/* The clocks of a device that was idle are low: runs for 200 ms before the first that is timed. */
template <class F>
void warm_up(session *s, F run)
{
    const auto began = std::chrono::steady_clock::now();
    while (s->error == cudaSuccess && std::chrono::steady_clock::now() - began < std::chrono::milliseconds(200)) {
        run();
        keep_error(s, cudaDeviceSynchronize());
    }
}

/* Clocks, power and temperature while the device is at work: some 20 ms of runs are given to it first. */
template <class F>
void sample_clocks(session *s, double seconds, F run)
{
    gpu_clocks c;
    const double runs = seconds > 0 ? 0.02 / seconds : 0;
    if (!s->nvml || s->error != cudaSuccess)
        return;
    for (int i = 0; i < std::min(runs, 200.0) && s->plan->before > 0; i++)
        run();
    gpu_nvml_sample(s->nvml, &c);
    keep_error(s, cudaDeviceSynchronize());
    s->row->sm_clock = c.sm;
    s->row->memory_clock = c.memory;
    s->row->power = c.power;
    s->row->temperature = c.temperature;
    s->row->throttle = c.throttle;
    gpu_nvml_reasons(c.throttle, s->row->throttle_text, sizeof s->row->throttle_text);
}

/* The row gets the median of the runs, in seconds. A run that does not count goes before each: while it is
 * under way the host asks for the next, so that no launch is waited for. None, if none shall warm up. */
template <class F>
void measure_time(session *s, F run)
{
    std::vector<float> ms;
    cudaEvent_t from = nullptr, to = nullptr;
    keep_error(s, cudaEventCreate(&from));
    keep_error(s, cudaEventCreate(&to));
    if (s->plan->before > 0)
        warm_up(s, run);
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
        return;
    std::sort(ms.begin(), ms.end());
    s->row->seconds = static_cast<double>(ms[ms.size() / 2]) * 1e-3;
    sample_clocks(s, s->row->seconds, run);
}

/* Words of x that are not those of y are counted in the row. */
void compare(session *s, const void *x, const void *y, size_t n)
{
    gpu_word apart = 0;
    memory count;
    count.get(s, sizeof apart);
    if (s->error == cudaSuccess)
        keep_error(s, cudaMemset(count.p, 0, sizeof apart));
    if (s->error != cudaSuccess)
        return;
    GPU_LAUNCH(compare_kernel, grid_of(s, compare_kernel, 256), 256, 0, static_cast<const uint32_t *>(x),
               static_cast<const uint32_t *>(y), n, static_cast<gpu_word *>(count.p));
    keep_error(s, cudaMemcpy(&apart, count.p, sizeof apart, cudaMemcpyDeviceToHost));
    s->row->compared = n;
    s->row->differing = apart;
    s->row->checked = apart == 0;
}

} // namespace
