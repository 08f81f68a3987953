/* stats_calls.cc -- calls of libmpsim-cuda on a runtime that fails, has several devices, or captures a graph
 * (tests/gpu/host_runtime.h). */
#include "tap.h"

#include "../../gpu/include/mpsim/cudastats.h"
#include "../../gpu/kernels/cuda.cuh"

#include <mpsim/format.h>

#include <vector>

namespace
{

enum { N = 1000 };

/* Binary32 numbers on the current device, and what counts them. */
struct counting {
    float *data = nullptr;
    mpsim_cuda *c = nullptr;
    mpsim_cuda_counted *k = nullptr;
    mpsim_stats stats = {};

    counting()
    {
        char why[256] = "";
        float numbers[N];
        for (int i = 0; i < N; i++)
            numbers[i] = float(i);
        c = mpsim_cuda_new(NULL, 0, 0, -1, why, sizeof why);
        if (cudaMalloc(&data, sizeof numbers) != cudaSuccess || !c)
            printf("Bail out! %s\n", why);
        (void)cudaMemcpy(data, numbers, sizeof numbers, cudaMemcpyHostToDevice);
    }
    ~counting()
    {
        gpu_host_driver_now = gpu_host_driver_of_tests();
        mpsim_cuda_free(c);
        (void)cudaFree(data);
    }
    counting(const counting &) = delete;
    counting &operator=(const counting &) = delete;

    static gpu_host_driver gpu_host_driver_of_tests()
    {
        gpu_host_driver now = {};
        now.devices = 1;
        now.shared = 232448;
        return now;
    }
    mpsim_status count(cudaStream_t stream)
    {
        return mpsim_cuda_count(c, mpsim_format_find("binary32"), data, N, 0, stream, &k);
    }
    mpsim_status read()
    {
        stats = mpsim_stats{};
        return mpsim_cuda_read(k, &stats, NULL, NULL);
    }
};

void ask_ready()
{
    counting of;
    OK(of.count(nullptr) == MPSIM_OK && mpsim_cuda_ready(of.k) == 1, "what is counted is ready");
    gpu_host_driver_now.query = cudaErrorNotReady;
    OK(mpsim_cuda_ready(of.k) == 0, "what is not counted yet is not ready");
    mpsim_cuda_counted *const first = of.k;
    OK(of.count(nullptr) == MPSIM_OK, "a count behind one that is not ready does not fail");
    OK(of.read() == MPSIM_OK && of.stats.count == N, "and is read");
    gpu_host_driver_now.query = cudaErrorLaunchFailure;
    OK(mpsim_cuda_ready(first) == -1, "a device that fails is not ready");
    OK(mpsim_cuda_error(of.c)[0] != 0, "and says why");
    mpsim_cuda_drop(first);
    OK(mpsim_cuda_ready(NULL) == -1, "nothing is never ready");
}

void ask_capture()
{
    counting of;
    gpu_host_stream graph = {}, other = {};
    (void)of.count(&other);
    mpsim_cuda_counted *const before = of.k;
    gpu_host_driver_now.capturing = &graph;
    const uint64_t launches = gpu_host.launches;
    OK(of.count(&graph) == MPSIM_EUNAVAILABLE && !of.k, "a stream that captures a graph is refused");
    OK(strstr(mpsim_cuda_error(of.c), "captures a graph") != NULL, "with its reason: %s", mpsim_cuda_error(of.c));
    OK(of.count(nullptr) == MPSIM_EUNAVAILABLE, "so is the default stream beside it");
    OK(gpu_host.launches == launches, "nothing is launched");
    OK(of.count(&other) == MPSIM_OK, "another stream counts, with new memory");
    OK(of.read() == MPSIM_OK && of.stats.count == N, "and is read");
    OK(mpsim_cuda_ready(before) == 1, "what was counted before is ready");
    mpsim_cuda_drop(before);
    OK(of.count(&other) == MPSIM_OK, "memory is used again");
    mpsim_cuda_drop(of.k);
    OK(gpu_host_driver_now.broken == 0, "no call has ended the capture");
    OK(gpu_host_driver_now.mode == cudaStreamCaptureModeGlobal, "the mode of the thread is as before");
    gpu_host_driver_now.capturing = nullptr;
    OK(of.count(&graph) == MPSIM_OK && of.read() == MPSIM_OK, "after its capture the stream counts");
}

void ask_drop()
{
    counting of;
    gpu_host_stream stream = {};
    (void)of.count(&stream);
    (void)of.read();
    (void)of.count(&stream);
    OK(gpu_host_driver_now.waits_on_the_stream == 0, "memory that was read is used again without a wait");
    mpsim_cuda_drop(of.k);
    (void)of.count(&stream);
    OK(gpu_host_driver_now.waits_on_the_stream == 1, "memory that was dropped is used behind its last use");
    OK(of.read() == MPSIM_OK && of.stats.count == N, "and counts right");
}

void ask_devices()
{
    gpu_host_driver_now.devices = 2;
    gpu_host_driver_now.device = 1;
    counting of;
    gpu_host_driver_now.device = 0;
    OK(of.count(nullptr) == MPSIM_OK && of.read() == MPSIM_OK && of.stats.count == N,
       "the device of mpsim_cuda_new counts");
    OK(gpu_host_driver_now.device == 0, "the thread's device is as before");
}

/* Codes on devices whose blocks have as much shared memory: the counts of all, and additions to memory. */
struct codes_counted {
    mpsim_stats stats = {};
    mpsim_histogram histogram = {};
    mpsim_status status = MPSIM_EINVAL;
    uint64_t atomics = 0, shared_atomics = 0;

    codes_counted(size_t shared, const char *format, const std::vector<unsigned char> &bytes, uint64_t n)
    {
        char why[256] = "";
        void *data = nullptr;
        mpsim_cuda_counted *k = nullptr;
        gpu_host_driver_now.shared = shared;
        mpsim_cuda *const c = mpsim_cuda_new(NULL, 0, MPSIM_SUMMARY_HISTOGRAM, -1, why, sizeof why);
        (void)cudaMalloc(&data, bytes.size());
        (void)cudaMemcpy(data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
        const uint64_t before = gpu_host.atomics, shared_before = gpu_host.shared_atomics;
        status = mpsim_cuda_count(c, mpsim_format_find(format), data, n, 0, NULL, &k);
        atomics = gpu_host.atomics - before;
        shared_atomics = gpu_host.shared_atomics - shared_before;
        if (status == MPSIM_OK)
            status = mpsim_cuda_read(k, &stats, &histogram, NULL);
        mpsim_cuda_free(c);
        (void)cudaFree(data);
        gpu_host_driver_now.shared = 232448;
    }
    int is(const codes_counted &other) const
    {
        return status == MPSIM_OK && memcmp(&stats, &other.stats, sizeof stats) == 0 &&
               memcmp(&histogram, &other.histogram, sizeof histogram) == 0;
    }
};

/* Devices of 99 KiB a block (sm_86, sm_89, sm_120) beside those of 227 KiB. */
void ask_shared()
{
    enum { BYTES = 300000, LITTLE = 101376 };
    static const char *const kinds[] = {"all codes", "two codes, which overflow counters", "one code"};
    for (int kind = 0; kind < 3; kind++) {
        std::vector<unsigned char> bytes(BYTES);
        uint32_t state = 1;
        for (int i = 0; i < BYTES; i++) {
            state = state * 1664525u + 1013904223u;
            bytes[size_t(i)] = (unsigned char)(kind == 0 ? state >> 24 : kind == 1 ? (i & 2 ? 0x3f : 0xbf) : 0xbf);
        }
        for (const char *format : {"bf16", "e4m3"}) {
            const uint64_t n = BYTES / (format[0] == 'b' ? 2 : 1) - 1;
            const codes_counted much(232448, format, bytes, n), little(LITTLE, format, bytes, n);
            OK(little.is(much), "99 KiB of shared memory give the same counts: %s, %s", format, kinds[kind]);
            OK(little.atomics <= 2 * 65536 && 2 * little.atomics < n, "and few additions to memory: %llu",
               (unsigned long long)little.atomics);
        }
    }
    OK(codes_counted(49152, "bf16", std::vector<unsigned char>(64), 32).status == MPSIM_EUNAVAILABLE,
       "48 KiB are too little: codes are not counted there");
}

/* Additions of a warp to one counter follow one another: few are left where most codes are one of two. */
void ask_often()
{
    static const char *const kinds[] = {"two codes", "two codes, one of them rare", "a code in two, and all others",
                                        "all codes"};
    enum { N_CODES = 100001 };
    for (int kind = 0; kind < 4; kind++) {
        std::vector<unsigned char> bytes(2 * N_CODES);
        uint64_t counts[2] = {0, 0};
        uint32_t state = 1;
        for (size_t i = 0; i < N_CODES; i++) {
            state = state * 1664525u + 1013904223u;
            const uint32_t r = state >> 16, second = kind == 1 ? r % 50 == 0 : r & 1;
            const uint32_t code = kind == 3 || (kind == 2 && second) ? r % 0x7000 + 1 : second ? 0x3fc0 : 0xbf80;
            counts[0] += code < 0x8000 && code >> 7 == 0x7f; /* in the binade of 1 */
            counts[1] += code >= 0x8000;
            bytes[2 * i] = (unsigned char)code;
            bytes[2 * i + 1] = (unsigned char)(code >> 8);
        }
        const codes_counted of(232448, "bf16", bytes, N_CODES), little(101376, "bf16", bytes, N_CODES);
        OK(of.status == MPSIM_OK && of.histogram.bin[0 - MPSIM_HISTOGRAM_MIN] == counts[0] + counts[1] && little.is(of),
           "counted: %s", kinds[kind]);
        OK(kind >= 2 || of.shared_atomics < N_CODES / 20, "without an addition for each: %s: %llu", kinds[kind],
           (unsigned long long)of.shared_atomics);
    }
}

} // namespace

void ask_calls();
void ask_calls()
{
    ask_ready();
    ask_capture();
    ask_drop();
    ask_devices();
    ask_shared();
    ask_often();
}
