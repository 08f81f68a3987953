/* stats.cu -- libmpsim-cuda: its kernels and its C interface; see mpsim/cudastats.h. */
#include "../include/mpsim/cudastats.h"

#include "binary32.cuh"
#include "codes.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace
{

enum { REPLICAS = 32, FEW_BLOCKS = 64 };

enum { BINARY32, OF_CODES };

} // namespace

/* Memory for what is counted of an array, there and here. */
struct mpsim_cuda_counted {
    mpsim_cuda *owner;
    mpsim_cuda_counted *next; /* of those that are free, or of those in use */
    int kind, used, dropped;  /* dropped: before it was counted, perhaps */
    size_t there, here;       /* bytes */
    void *device, *host;
    cudaEvent_t done;
    mpsim_format format;
    uint64_t n;
};

struct mpsim_cuda {
    mpsim_format *formats;
    mpsim_cast *casts;
    stats_cast *planned; /* of the casts, if all can be */
    size_t n;
    unsigned want;
    int device, processors, parts; /* parts: blocks whose shared memory holds the counters of all codes */
    int has_codes, has_binary32;
    int blocks_binary32[stats::CASTS + 1]; /* that run at once on a processor */
    mpsim_cuda_counted *all;
    mpsim_summary *summary; /* for codes; NULL: not needed yet */
    uint64_t *counts;
    char error[256];
};

/* ---- errors, devices ---- */

static int failed(mpsim_cuda *c, cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return 0;
    snprintf(c->error, sizeof c->error, "%s: %.200s", what, cudaGetErrorString(e));
    return 1;
}

namespace
{

/* The thread's device is c's as long as this is there, and a stream that captures a graph is not disturbed: without the
 * relaxed mode, memory, events and waits of any thread would end its capture. */
struct on_device {
    int before = -1, is = 0;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    explicit on_device(const mpsim_cuda *c)
    {
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
        if (cudaGetDevice(&before) == cudaSuccess && before != c->device)
            is = cudaSetDevice(c->device) == cudaSuccess;
    }
    ~on_device()
    {
        if (is)
            (void)cudaSetDevice(before);
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
    }
    on_device(const on_device &) = delete;
    on_device &operator=(const on_device &) = delete;
};

} // namespace

/* ---- life ---- */

static int take_casts(mpsim_cuda *c, const mpsim_cast *casts, size_t n)
{
    c->n = n;
    c->formats = static_cast<mpsim_format *>(malloc((n + 1) * sizeof *c->formats));
    c->casts = static_cast<mpsim_cast *>(malloc((n + 1) * sizeof *c->casts));
    c->planned = static_cast<stats_cast *>(malloc((n + 1) * sizeof *c->planned));
    if (!c->formats || !c->casts || !c->planned)
        return -1;
    c->has_codes = c->has_binary32 = 1;
    for (size_t i = 0; i < n; i++) {
        c->formats[i] = *casts[i].format;
        c->casts[i] = casts[i];
        c->casts[i].format = &c->formats[i];
        c->has_codes = c->has_codes && casts[i].rounding.mode < MPSIM_ROUND_STOCHASTIC_A;
        c->has_binary32 = c->has_binary32 && stats_plan(&c->planned[i], &c->casts[i]);
    }
    return 0;
}

template <int N>
static cudaError_t occupancy(mpsim_cuda *c)
{
    const size_t bytes = stats::shared_words<N>() * sizeof(unsigned);
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&c->blocks_binary32[N], stats::binary32<N>, stats::THREADS,
                                                         bytes);
}

/* The blocks that count codes, 0: the device has none with so much shared memory. */
template <int PARTS>
static int parts_of(mpsim_cuda *c, size_t shared)
{
    const size_t bytes = stats::CODES_SHARED / PARTS;
    if (shared < bytes + stats::CODES_BESIDE ||
        failed(c, cudaFuncSetAttribute(stats::codes<PARTS>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)),
               "shared memory"))
        return 0;
    return PARTS;
}

static int find_device(mpsim_cuda *c, int device)
{
    cudaDeviceProp p;
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        (void)cudaGetLastError();
        snprintf(c->error, sizeof c->error, "no CUDA device");
        return -1;
    }
    if (device < 0 && failed(c, cudaGetDevice(&device), "the current device"))
        return -1;
    if (device >= n) {
        snprintf(c->error, sizeof c->error, "expected a device below %d, found %d", n, device);
        return -1;
    }
    c->device = device;
    if (failed(c, cudaGetDeviceProperties(&p, device), "the properties of the device"))
        return -1;
    const on_device on(c);
    c->processors = p.multiProcessorCount;
    c->parts = parts_of<1>(c, p.sharedMemPerBlockOptin);
    c->parts = c->parts ? c->parts : parts_of<2>(c, p.sharedMemPerBlockOptin);
    c->has_codes = c->has_codes && c->parts;
    return failed(c, occupancy<0>(c), "kernels") || failed(c, occupancy<1>(c), "kernels") ||
                   failed(c, occupancy<2>(c), "kernels") || failed(c, occupancy<3>(c), "kernels") ||
                   failed(c, occupancy<4>(c), "kernels")
               ? -1
               : 0;
}

mpsim_cuda *mpsim_cuda_new(const mpsim_cast *casts, size_t n, unsigned want, int device, char *why, size_t size)
{
    const unsigned all = MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS | MPSIM_SUMMARY_HISTOGRAM;
    const char *bad = want & ~all ? "expected a set of MPSIM_SUMMARY_*" : n && !casts ? "no casts" : NULL;
    for (size_t i = 0; i < n && !bad; i++)
        if (mpsim_format_check(casts[i].format) != MPSIM_OK || mpsim_rounding_check(&casts[i].rounding) != MPSIM_OK)
            bad = "a cast is invalid";
    mpsim_cuda *c = bad ? NULL : static_cast<mpsim_cuda *>(calloc(1, sizeof *c));
    if (c) {
        c->want = want;
        if (take_casts(c, casts, n) == 0 && find_device(c, device) == 0)
            return c;
    }
    if (why)
        snprintf(why, size, "%s", bad ? bad : c && c->error[0] ? c->error : "out of memory");
    mpsim_cuda_free(c);
    return NULL;
}

static void free_counted(mpsim_cuda_counted *k)
{
    (void)cudaFree(k->device);
    (void)cudaFreeHost(k->host);
    if (k->done)
        (void)cudaEventDestroy(k->done);
    free(k);
}

void mpsim_cuda_free(mpsim_cuda *c)
{
    if (!c)
        return;
    {
        const on_device on(c);
        for (mpsim_cuda_counted *k = c->all, *next; k; k = next) {
            next = k->next;
            (void)cudaEventSynchronize(k->done);
            free_counted(k);
        }
    }
    mpsim_summary_free(c->summary);
    free(c->counts);
    free(c->formats);
    free(c->casts);
    free(c->planned);
    free(c);
}

const char *mpsim_cuda_error(const mpsim_cuda *c)
{
    return c->error;
}

/* ---- counting ---- */

static int kind_of(const mpsim_format *f)
{
    return f->bits == 32 && mpsim_format_same(f, mpsim_format_find("binary32")) ? BINARY32 : OF_CODES;
}

int mpsim_cuda_can(const mpsim_cuda *c, const mpsim_format *f)
{
    if (!c || mpsim_format_check(f) != MPSIM_OK)
        return 0;
    return kind_of(f) == BINARY32 ? c->has_binary32 : f->bits <= 16 && c->has_codes;
}

/* Use it again, on a stream that waits for what a dropped count still does. */
static int use_again(mpsim_cuda *c, mpsim_cuda_counted *k, cudaStream_t stream)
{
    if (k->dropped && failed(c, cudaStreamWaitEvent(stream, k->done, 0), "an event"))
        return 0;
    k->dropped = 0;
    return k->used = 1;
}

/* Memory that is free, or more of it. */
static mpsim_cuda_counted *take(mpsim_cuda *c, int kind, cudaStream_t stream, mpsim_status *status)
{
    const size_t state = state_words(unsigned(c->n)) * sizeof(unsigned long long);
    const size_t table = stats::COUNTERS * sizeof(unsigned);
    for (mpsim_cuda_counted *k = c->all; k; k = k->next)
        if (!k->used && k->kind == kind) {
            *status = MPSIM_EIO;
            return use_again(c, k, stream) ? k : NULL;
        }
    mpsim_cuda_counted *k = static_cast<mpsim_cuda_counted *>(calloc(1, sizeof *k));
    *status = MPSIM_ENOMEM;
    if (!k)
        return NULL;
    k->owner = c;
    k->kind = kind;
    k->here = kind == BINARY32 ? state : table;
    k->there = kind == BINARY32 ? REPLICAS * state : table;
    if (failed(c, cudaMalloc(&k->device, k->there), "memory of the device") ||
        failed(c, cudaMallocHost(&k->host, k->here), "memory of the host") ||
        failed(c, cudaEventCreateWithFlags(&k->done, cudaEventDisableTiming), "an event")) {
        (void)cudaGetLastError();
        free_counted(k);
        return NULL;
    }
    k->used = 1;
    k->next = c->all;
    c->all = k;
    return k;
}

template <int N>
static void launch_binary32(const mpsim_cuda *c, const stats::job &j, unsigned blocks, cudaStream_t stream)
{
    const size_t bytes = stats::shared_words<N>() * sizeof(unsigned);
    const unsigned most = unsigned(c->processors) * unsigned(c->blocks_binary32[N] > 0 ? c->blocks_binary32[N] : 1);
    GPU_LAUNCH_ON(stream, stats::binary32<N>, blocks < most ? blocks : most, stats::THREADS, bytes, j);
}

static void count_binary32(const mpsim_cuda *c, mpsim_cuda_counted *k, const void *data, int64_t stride,
                           cudaStream_t stream)
{
    stats::job j = {};
    const size_t address = reinterpret_cast<size_t>(data);
    j.x = static_cast<const unsigned char *>(data);
    j.n = k->n;
    j.stride = stride;
    j.states = static_cast<unsigned long long *>(k->device);
    j.words = state_words(unsigned(c->n));
    j.replicas = REPLICAS;
    if (stride == 4 && address % 4 == 0) {
        j.head = (16 - address % 16) % 16 / 4;
        j.head = j.head < j.n ? j.head : j.n;
        j.full = (j.n - j.head) / stats::CHUNK;
    }
    const uint64_t chunks = j.full + (j.n - j.full * stats::CHUNK + stats::CHUNK - 1) / stats::CHUNK;
    const uint64_t wanted = (chunks + stats::THREADS / 32 - 1) / (stats::THREADS / 32);
    const unsigned blocks = unsigned(wanted < 1 << 20 ? wanted : 1 << 20);
    j.base = 1;
    j.histogram = (c->want & MPSIM_SUMMARY_HISTOGRAM) != 0;
    for (size_t first = 0; (first == 0 || first < c->n) && blocks; first += stats::CASTS, j.base = j.histogram = 0) {
        const size_t left = c->n - first, some = left < stats::CASTS ? left : +stats::CASTS;
        j.dropped = some ? ~0u : 0;
        for (size_t i = 0; i < some; i++) {
            const stats_cast *planned = &c->planned[first + i];
            const size_t to = i && planned->drop < j.casts[0].drop ? 0 : i; /* the first moves behind the others */
            j.casts[i] = j.casts[0];
            j.at[i] = j.at[0];
            j.casts[to] = *planned;
            j.at[to] = unsigned(first + i);
            j.dropped &= planned->scale ? ~0u >> (32 - planned->drop) : 0;
        }
        switch (some) {
        case 0:
            launch_binary32<0>(c, j, blocks, stream);
            break;
        case 1:
            launch_binary32<1>(c, j, blocks, stream);
            break;
        case 2:
            launch_binary32<2>(c, j, blocks, stream);
            break;
        case 3:
            launch_binary32<3>(c, j, blocks, stream);
            break;
        default:
            launch_binary32<4>(c, j, blocks, stream);
        }
    }
    GPU_LAUNCH_ON(stream, stats::gather, 4, 256, 0, j.states, j.words, j.replicas);
}

template <int PARTS>
static void launch_codes(const mpsim_cuda *c, const stats::codes_job &j, uint64_t wanted, cudaStream_t stream)
{
    const uint64_t most = unsigned(c->processors) / PARTS;
    const unsigned blocks = unsigned(wanted < most ? wanted : most);
    GPU_LAUNCH_ON(stream, stats::codes<PARTS>, PARTS * (blocks ? blocks : 1), stats::CODES_THREADS,
                  stats::CODES_SHARED / PARTS, j);
}

static void count_codes(const mpsim_cuda *c, mpsim_cuda_counted *k, const void *data, int width, int64_t stride,
                        cudaStream_t stream)
{
    stats::codes_job j = {};
    const size_t address = reinterpret_cast<size_t>(data);
    j.x = static_cast<const unsigned char *>(data);
    j.width = width;
    j.stride = stride;
    j.units = width == 1 ? k->n / 2 : k->n;
    j.odd = width == 1 && k->n % 2;
    j.table = static_cast<unsigned *>(k->device);
    if (stride == width && address % 2 == 0) {
        j.head = (16 - address % 16) % 16 / 2;
        j.head = j.head < j.units ? j.head : j.units;
        j.full = (j.units - j.head) / 8;
    }
    const uint64_t rest = j.units - 8 * j.full;
    const uint64_t vectors = (j.full + stats::CODES_THREADS * stats::VECTORS - 1) /
                             (stats::CODES_THREADS * stats::VECTORS);
    const uint64_t loose = (rest + stats::CODES_THREADS - 1) / stats::CODES_THREADS;
    const uint64_t wanted = vectors > loose ? vectors : loose;
    if (c->parts == 1)
        launch_codes<1>(c, j, wanted, stream);
    else
        launch_codes<2>(c, j, wanted, stream);
}

/* Whether the device can read there. */
static int is_there(const mpsim_cuda *c, const void *data)
{
    cudaPointerAttributes a;
    if (cudaPointerGetAttributes(&a, data) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return (a.type == cudaMemoryTypeDevice && a.device == c->device) || a.type == cudaMemoryTypeManaged;
}

/* Whether what is put on the stream is part of a graph, and not done. The legacy default stream cannot be used as long as
 * another stream captures one: that is an error here, which disturbs nobody. */
static int is_capturing(cudaStream_t stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) == cudaSuccess)
        return status != cudaStreamCaptureStatusNone;
    (void)cudaGetLastError();
    return 1;
}

mpsim_status mpsim_cuda_count(mpsim_cuda *c, const mpsim_format *f, const void *data, uint64_t n, int64_t stride,
                              void *stream, mpsim_cuda_counted **counted)
{
    mpsim_status status = MPSIM_OK;
    if (!c || !counted || mpsim_format_check(f) != MPSIM_OK || (n && !data))
        return MPSIM_EINVAL;
    *counted = NULL;
    if (!mpsim_cuda_can(c, f))
        return MPSIM_EUNAVAILABLE;
    if (n >> 32)
        return MPSIM_ERANGE;
    const on_device on(c);
    const cudaStream_t on_stream = static_cast<cudaStream_t>(stream);
    if (is_capturing(on_stream)) {
        snprintf(c->error, sizeof c->error, "the stream captures a graph: nothing is counted there");
        return MPSIM_EUNAVAILABLE;
    }
    if (n && !is_there(c, data)) {
        snprintf(c->error, sizeof c->error, "expected memory of device %d", c->device);
        return MPSIM_EINVAL;
    }
    const int kind = kind_of(f), width = int(mpsim_format_code_bytes(f));
    mpsim_cuda_counted *k = take(c, kind, on_stream, &status);
    if (!k)
        return status;
    k->n = n;
    k->format = *f;
    int bad = failed(c, cudaMemsetAsync(k->device, 0, k->there, on_stream), "memory of the device");
    if (!bad && n) {
        if (kind == BINARY32)
            count_binary32(c, k, data, stride ? stride : 4, on_stream);
        else
            count_codes(c, k, data, width, stride ? stride : width, on_stream);
        bad = failed(c, cudaGetLastError(), "a kernel");
    }
    bad = bad || failed(c, cudaMemcpyAsync(k->host, k->device, k->here, cudaMemcpyDeviceToHost, on_stream), "a copy") ||
          failed(c, cudaEventRecord(k->done, on_stream), "an event");
    if (bad) {
        k->used = 0;
        return MPSIM_EIO;
    }
    *counted = k;
    return MPSIM_OK;
}

/* ---- reading ---- */

int mpsim_cuda_ready(const mpsim_cuda_counted *k)
{
    if (!k)
        return -1;
    const on_device on(k->owner);
    const cudaError_t e = cudaEventQuery(k->done);
    if (e == cudaErrorNotReady)
        (void)cudaGetLastError(); /* else the next count would take it for an error of its own */
    return e == cudaErrorNotReady ? 0 : failed(k->owner, e, "counting") ? -1 : 1;
}

void mpsim_cuda_drop(mpsim_cuda_counted *k)
{
    if (!k)
        return;
    k->dropped = 1; /* the stream that uses its memory again waits */
    k->used = 0;
}

/* A table of codes of 16 bits, or of pairs of bytes, as one of codes of the format. */
static void fold(uint64_t *counts, const unsigned *table, const mpsim_format *f)
{
    const unsigned mask = (1u << f->bits) - 1;
    const int pairs = mpsim_format_code_bytes(f) == 1;
    memset(counts, 0, (size_t(mask) + 1) * sizeof *counts);
    for (unsigned i = 0; i < stats::CODES; i++) {
        if (!table[i])
            continue;
        counts[i & mask & (pairs ? 0xffu : 0xffffu)] += table[i];
        if (pairs)
            counts[(i >> 8) & mask] += table[i];
    }
    for (unsigned i = 0; i < stats::BYTES && pairs; i++)
        counts[i & mask] += table[stats::CODES + i];
}

static mpsim_status read_codes(mpsim_cuda *c, const mpsim_cuda_counted *k, mpsim_stats *stats,
                               mpsim_histogram *histogram, mpsim_cast_stats *casts)
{
    if (!c->summary)
        c->summary = mpsim_summary_new();
    if (!c->counts)
        c->counts = static_cast<uint64_t *>(malloc(stats::CODES * sizeof *c->counts));
    if (!c->summary || !c->counts)
        return MPSIM_ENOMEM;
    fold(c->counts, static_cast<const unsigned *>(k->host), &k->format);
    mpsim_status status = mpsim_summary_begin(c->summary, c->casts, c->n, c->want);
    if (status == MPSIM_OK)
        status = mpsim_summary_add_counts(c->summary, &k->format, c->counts);
    return status == MPSIM_OK ? mpsim_summary_read(c->summary, stats, histogram, casts) : status;
}

mpsim_status mpsim_cuda_read(mpsim_cuda_counted *k, mpsim_stats *stats, mpsim_histogram *histogram,
                             mpsim_cast_stats *casts)
{
    if (!k || !stats || (k->owner->n && !casts))
        return MPSIM_EINVAL;
    mpsim_cuda *c = k->owner;
    const on_device on(c);
    const int bad = failed(c, cudaEventSynchronize(k->done), "counting");
    k->used = 0;
    if (bad)
        return MPSIM_EIO;
    if (k->kind == OF_CODES)
        return read_codes(c, k, stats, histogram, casts);
    stats_read(static_cast<const unsigned long long *>(k->host), k->n, c->want, c->n, stats, histogram, casts);
    return MPSIM_OK;
}
