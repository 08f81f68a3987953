/* speed.cu -- see speed.h. Times are those of events around one launch. */
#include "speed.h"

#include "cublas.h"
#include "../kernels/gemm.h"
#include "../kernels/statistics.cuh"
#include "../kernels/stream.cuh"

#include <mpsim/mpsim.h>

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

/* Codes of a bell for matrices; `seed` tells two matrices apart. */
__global__ void fill_codes_kernel(void *x, size_t n, const __grid_constant__ gpu_format f,
                                  uint64_t seed)
{
    GPU_FOR(i, n)
    gpu_store(f, x, i,
              gpu_encode(f, GPU_NEAREST, __uint_as_float(input_bits(BELL, i + seed))).code);
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
    int blocks; /* of a grid that fills the device */
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
    GPU_LAUNCH(fill_kernel, s->blocks, 256, 0, static_cast<uint32_t *>(x), n, kind);
}

/* ---- copies ---- */

void measure_copy(session *s, void *to, const void *from)
{
    const size_t n = s->plan->elements, bytes = 4 * n;
    gpu_speed_row *r = add_row(s, "copy, cudaMemcpyAsync", 2.0 * static_cast<double>(bytes), 0);
    const double runtime = seconds_of(s, [&] {
        keep_error(s, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr));
    });
    gpu_speed_row *own = add_row(s, "copy, own kernel", r->bytes, 0);
    const double kernel = seconds_of(s, [&] {
        GPU_LAUNCH(stream_copy_kernel, s->blocks, 256, 0, static_cast<uint4 *>(to),
                   static_cast<const uint4 *>(from), n / 4);
    });
    const double best = runtime > 0 && runtime < kernel ? runtime : kernel;
    s->copy = best > 0 ? r->bytes / best : 0;
    set_time(s, r, runtime);
    set_time(s, own, kernel);
    snprintf(r->text, sizeof r->text, "the faster of the two is the measure of the others");
}

/* ---- statistics ---- */

/* A CPU's count of the sample. */
void expect(gpu_statistics *w, int kind, size_t n)
{
    memset(w, 0, sizeof *w);
    for (size_t i = 0; i < n; i++) {
        const uint32_t m = input_bits(kind, i) & 0x7fffffff;
        w->bin[m >> 23]++;
        w->zero += m == 0;
        w->nan += m > 0x7f800000;
        w->inf += m == 0x7f800000;
        for (int k = 0; k < GPU_CASTS && m < 0x7f800000; k++) {
            w->overflow[k] += m >= stat_beyond(k);
            w->underflow[k] += m != 0 && m <= stat_nothing(k);
        }
        w->amax = m < 0x7f800000 && m > w->amax ? m : w->amax;
    }
}

int statistics_match(session *s, const void *x, int kind, gpu_statistics *to)
{
    gpu_statistics got, want;
    const stat_source source = {x, sample_of(s), gpu_format{}};
    keep_error(s, cudaMemset(to, 0, sizeof *to));
    GPU_LAUNCH(statistics_kernel<4>, s->blocks, STAT_THREADS, 0, source, to);
    keep_error(s, cudaMemcpy(&got, to, sizeof got, cudaMemcpyDeviceToHost));
    gpu_statistics_finish(&got);
    expect(&want, kind, source.n);
    return memcmp(&got, &want, sizeof got) == 0;
}

void measure_statistics(session *s, void *x, gpu_statistics *to)
{
    static const struct {
        const char *name;
        int kind;
    } inputs[] = {{"statistics of binary32, one constant", CONSTANT},
                  {"statistics of binary32, a bell", BELL},
                  {"statistics of binary32, uniform exponents", UNIFORM_EXPONENTS}};
    for (const auto &in : inputs) {
        gpu_speed_row *r = add_row(s, in.name, 4.0 * static_cast<double>(s->plan->elements), 0);
        stat_source source = {x, s->plan->elements, gpu_format{}};
        gpu_format_set(&source.format, mpsim_format_find("binary32"));
        fill(s, x, source.n, in.kind);
        r->checked = statistics_match(s, x, in.kind, to);
        snprintf(r->text, sizeof r->text, "all counts of %zu elements", sample_of(s));
        set_time(s, r, seconds_of(s, [&] {
            GPU_LAUNCH(statistics_kernel<4>, s->blocks, STAT_THREADS, 0, source, to);
        }));
    }
}

/* ---- casts ---- */

int casts_match(session *s, int set, const stat_casts *c)
{
    static const char *const names[GPU_CASTS] = {"fp16", "bf16", "e4m3", "e5m2"};
    const size_t n = sample_of(s);
    std::vector<float> x(n);
    for (size_t i = 0; i < n; i++)
        x[i] = mpsim_f32_bits(input_bits(UNIFORM_EXPONENTS, i));
    for (int k = 0; k < GPU_CASTS; k++) {
        if (!(set >> k & 1))
            continue;
        const mpsim_format *f = mpsim_format_find(names[k]);
        const size_t bytes = n * mpsim_format_code_bytes(f);
        std::vector<unsigned char> got(bytes), want(bytes);
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        if (k >= GPU_CAST_E4M3)
            r.overflow = MPSIM_OVERFLOW_MAX, r.infinity = MPSIM_INFINITY_MAX;
        mpsim_encode_array_f32(f, &r, NULL, want.data(), x.data(), n, NULL);
        keep_error(s, cudaMemcpy(got.data(), c->to[k], bytes, cudaMemcpyDeviceToHost));
        if (got != want)
            return 0;
    }
    return 1;
}

template <int SET, int COUNTED>
void measure_cast(session *s, const char *name, const void *x, const stat_casts *c,
                  gpu_statistics *to)
{
    const double out = 2 * (SET & 1) + 2 * (SET >> 1 & 1) + (SET >> 2 & 1) + (SET >> 3 & 1);
    gpu_speed_row *r = add_row(s, name, (4 + out) * static_cast<double>(s->plan->elements), 0);
    stat_source source = {x, s->plan->elements, gpu_format{}};
    gpu_format_set(&source.format, mpsim_format_find("binary32"));
    const double t = seconds_of(s, [&] {
        GPU_LAUNCH((casts_kernel<SET, COUNTED>), s->blocks, STAT_THREADS, 0, source, *c, to);
    });
    r->checked = casts_match(s, SET, c);
    snprintf(r->text, sizeof r->text, "codes of %zu elements of uniform exponents", sample_of(s));
    set_time(s, r, t);
}

void measure_casts(session *s, void *x, void *out, gpu_statistics *to)
{
    static const char *const names[GPU_CASTS] = {"fp16", "bf16", "e4m3", "e5m2"};
    unsigned char *p = static_cast<unsigned char *>(out);
    stat_casts c = {};
    for (int k = 0; k < GPU_CASTS; k++) {
        gpu_format_set(&c.format[k], mpsim_format_find(names[k]));
        c.to[k] = p;
        p += s->plan->elements * (k < GPU_CAST_E4M3 ? 2 : 1);
    }
    fill(s, x, s->plan->elements, UNIFORM_EXPONENTS);
    measure_cast<1, 0>(s, "cast of binary32 to fp16", x, &c, to);
    measure_cast<2, 0>(s, "cast of binary32 to bf16", x, &c, to);
    measure_cast<4, 0>(s, "cast of binary32 to e4m3", x, &c, to);
    measure_cast<15, 0>(s, "cast of binary32 to fp16, bf16, e4m3, e5m2", x, &c, to);
    measure_cast<15, 1>(s, "the same with statistics", x, &c, to);
}

/* ---- optimizer steps ---- */

/* The first step of the sample, by mpsim_optim_step: param, m, v and the copy must be equal. */
int optim_matches(session *s, const mpsim_optim *o, const gpu_optim *g, const stream_tensors *t)
{
    const size_t n = sample_of(s);
    std::vector<float> p(n), m(n, 0.0f), v(n, 0.0f), grad(n), got(n);
    std::vector<uint16_t> copy(n), want(n);
    mpsim_optim_tensor x = {};
    mpsim_rounding r;
    stream_tensors part = *t;
    part.fours = n / 4;
    for (size_t i = 0; i < n; i++)
        p[i] = grad[i] = mpsim_f32_bits(input_bits(BELL, i));
    x.n = n;
    x.param = p.data();
    x.grad = grad.data();
    x.m = t->m ? m.data() : NULL;
    x.v = t->v ? v.data() : NULL;
    if (mpsim_optim_step(o, 1, &x, NULL) != MPSIM_OK)
        return -1;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_encode_array_f32(mpsim_format_find("bf16"), &r, NULL, want.data(), p.data(), n, NULL);
    if (g->torch)
        GPU_LAUNCH(stream_optim_kernel<1>, s->blocks, 256, 0, *g, part);
    else
        GPU_LAUNCH(stream_optim_kernel<0>, s->blocks, 256, 0, *g, part);
    const struct {
        const void *device;
        const std::vector<float> *host;
    } pairs[] = {{t->param, &p}, {t->m, &m}, {t->v, &v}};
    for (const auto &pair : pairs) {
        if (!pair.device)
            continue;
        keep_error(s, cudaMemcpy(got.data(), pair.device, 4 * n, cudaMemcpyDeviceToHost));
        if (memcmp(got.data(), pair.host->data(), 4 * n) != 0)
            return 0;
    }
    keep_error(s, cudaMemcpy(copy.data(), t->copy, 2 * n, cudaMemcpyDeviceToHost));
    return copy == want;
}

void measure_optimizers(session *s, void *const buffer[4], void *copy)
{
    static const struct {
        const char *name, *variant;
        int algorithm;
        double bytes; /* an element: binary32 read and written, gradient read, copy written */
    } steps[] = {
        {"AdamW, ieee, with a copy in bf16", "ieee", MPSIM_OPTIM_ADAMW, 24 + 4 + 2},
        {"AdamW, torch, with a copy in bf16", "torch", MPSIM_OPTIM_ADAMW, 24 + 4 + 2},
        {"SGD with momentum, ieee, with a copy in bf16", "ieee", MPSIM_OPTIM_SGD, 16 + 4 + 2}};
    const size_t n = s->plan->elements;
    for (const auto &k : steps) {
        mpsim_optim o;
        gpu_optim g;
        gpu_reference ignored;
        stream_tensors t = {};
        const mpsim_optim_variant *variant = mpsim_optim_variant_find(k.variant);
        gpu_speed_row *r = add_row(s, k.name, k.bytes * static_cast<double>(n), 0);
        mpsim_optim_init(&o, (mpsim_optim_algorithm)k.algorithm, variant);
        o.lr = 0.001;
        if (k.algorithm == MPSIM_OPTIM_SGD)
            o.momentum = 0.9;
        if (gpu_optim_set(&g, &ignored, &o, 1) != 0)
            continue;
        const mpsim_format *binary32 = mpsim_format_find("binary32");
        gpu_format_set(&g.param, binary32);
        gpu_format_set(&g.grad, binary32);
        gpu_format_set(&g.state, binary32);
        g.n = n;
        t.param = static_cast<float4 *>(buffer[0]);
        t.grad = static_cast<const float4 *>(buffer[1]);
        t.m = static_cast<float4 *>(buffer[2]);
        t.v = k.algorithm == MPSIM_OPTIM_SGD ? NULL : static_cast<float4 *>(buffer[3]);
        t.copy = static_cast<uint2 *>(copy);
        gpu_format_set(&t.bf16, mpsim_format_find("bf16"));
        t.fours = n / 4;
        fill(s, buffer[0], n, BELL);
        fill(s, buffer[1], n, BELL);
        keep_error(s, cudaMemset(buffer[2], 0, 4 * n));
        keep_error(s, cudaMemset(buffer[3], 0, 4 * n));
        r->checked = optim_matches(s, &o, &g, &t);
        snprintf(r->text, sizeof r->text, "all bits of the first step of %zu elements",
                 sample_of(s));
        set_time(s, r, seconds_of(s, [&] {
            if (g.torch)
                GPU_LAUNCH(stream_optim_kernel<1>, s->blocks, 256, 0, g, t);
            else
                GPU_LAUNCH(stream_optim_kernel<0>, s->blocks, 256, 0, g, t);
        }));
    }
}

/* ---- matrix products ---- */

enum { DOTS = 64 };

/* 64 elements by mpsim_dot. */
int product_matches(const gpu_product *p, const std::vector<unsigned char> &a,
                    const std::vector<unsigned char> &b, const std::vector<uint32_t> &d)
{
    const size_t n = p->rows, bytes = mpsim_format_code_bytes(p->a.format);
    std::vector<unsigned char> line(n * bytes);
    for (uint64_t i = 0; i < DOTS; i++) {
        const size_t row = mix(7 * i) % n, column = mix(7 * i + 3) % n;
        uint64_t want;
        for (size_t k = 0; k < n; k++) {
            const size_t at = p->b.transposed ? column * n + k : k * n + column;
            memcpy(&line[k * bytes], &b[at * bytes], bytes);
        }
        if (mpsim_dot(p->model, p->a.format, &a[row * n * bytes], p->b.format, line.data(), n, 0,
                      NULL, &want) != MPSIM_OK)
            return -1;
        if (d[row * n + column] != want)
            return 0;
    }
    return 1;
}

/* The kernels of one format, and what cuBLAS makes of the same matrices. */
void measure_products(session *s, const char *format, const char *model_name, void *a, void *b,
                      void *d, const gpu_cublas *cublas, const char *no_cublas)
{
    static const struct {
        const char *name;
        gpu_gemm_path path;
        int transposed;
    } paths[] = {{"mma.sync", GPU_GEMM_FAST, 0}, {"mma.sync, b transposed", GPU_GEMM_FAST, 1},
                 {"wgmma, b transposed", GPU_GEMM_WGMMA, 1},
                 {"wgmma 128 x 256, b transposed", GPU_GEMM_WIDE, 1}};
    const size_t n = s->plan->order, total = n * n;
    const mpsim_format *f = mpsim_format_find(format);
    const size_t bytes = mpsim_format_code_bytes(f);
    mpsim_model model;
    gpu_format g;
    char name[64], why[128];
    if (mpsim_model_parse(&model, model_name) != MPSIM_OK || gpu_format_set(&g, f) != 0)
        return;
    GPU_LAUNCH(fill_codes_kernel, s->blocks, 256, 0, a, total, g, (uint64_t)1 << 40);
    GPU_LAUNCH(fill_codes_kernel, s->blocks, 256, 0, b, total, g, (uint64_t)1 << 41);
    std::vector<unsigned char> host_a(total * bytes), host_b(total * bytes);
    std::vector<uint32_t> ours(total), theirs(total);
    keep_error(s, cudaMemcpy(host_a.data(), a, total * bytes, cudaMemcpyDeviceToHost));
    keep_error(s, cudaMemcpy(host_b.data(), b, total * bytes, cudaMemcpyDeviceToHost));
    const size_t first = s->count;
    const double flops =
        2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    double best = 0;
    for (int transposed = 0; cublas && bytes == 2 && transposed < 2; transposed++) {
        snprintf(name, sizeof name, "%s %zu^3, cuBLAS%s", format, n,
                 transposed ? ", b transposed" : "");
        gpu_speed_row *r = add_row(s, name, 0, flops);
        int status = 0;
        set_time(s, r, seconds_of(s, [&] {
            status |= gpu_cublas_gemm(cublas, static_cast<int>(n), strcmp(format, "bf16") == 0,
                                      transposed, a, b, d);
        }));
        if (status)
            snprintf(r->text, sizeof r->text, "cublasGemmEx gives %d", status);
        else if (r->seconds > 0 && flops / r->seconds > best)
            best = flops / r->seconds;
        if (transposed)
            keep_error(s, cudaMemcpy(theirs.data(), d, 4 * total, cudaMemcpyDeviceToHost));
    }
    if (!cublas && bytes == 2) {
        snprintf(name, sizeof name, "%s %zu^3, cuBLAS", format, n);
        gpu_speed_row *r = add_row(s, name, 0, flops);
        snprintf(r->text, sizeof r->text, "%s", no_cublas);
    }
    for (const auto &k : paths) {
        gpu_product p = {};
        p.model = &model;
        p.rows = p.columns = p.depth = n;
        p.a = mpsim_matrix{f, a, n, 0};
        p.b = mpsim_matrix{f, b, n, k.transposed};
        p.factor = 1;
        p.format = mpsim_format_find("binary32");
        p.d = d;
        p.d_stride = n;
        const int failed = gpu_gemm(&p, s->plan->sm, k.path, why, sizeof why) != 0;
        if (failed && strncmp(why, "matrix product: ", 16) != 0)
            continue; /* not of this device or format */
        snprintf(name, sizeof name, "%s %zu^3, %s", format, n, k.name);
        gpu_speed_row *r = add_row(s, name, 0, flops);
        if (failed) {
            snprintf(r->text, sizeof r->text, "FAILED: %.100s", why);
            continue;
        }
        keep_error(s, cudaMemcpy(ours.data(), d, 4 * total, cudaMemcpyDeviceToHost));
        r->checked = product_matches(&p, host_a, host_b, ours);
        snprintf(r->text, sizeof r->text, "%d elements by mpsim_dot, model %s", DOTS, model_name);
        r->seconds = seconds_of(s, [&] { gpu_gemm(&p, s->plan->sm, k.path, why, sizeof why); });
    }
    double most = 0, apart = 0;
    for (size_t i = 0; i < total; i++) {
        const double x = static_cast<double>(mpsim_f32_bits(ours[i]));
        const double y = static_cast<double>(mpsim_f32_bits(theirs[i]));
        most = std::max(most, fabs(x));
        apart = std::max(apart, fabs(x - y));
    }
    for (size_t i = first; i < s->count; i++) {
        gpu_speed_row *r = &s->rows[i];
        if (r->seconds > 0 && best > 0)
            r->share = r->flops / r->seconds / best;
        if (strstr(r->name, "cuBLAS, b transposed") && !r->text[0] && most > 0) {
            r->difference = apart / most;
            snprintf(r->text, sizeof r->text, "compared by tolerance only, see difference");
        }
    }
}

void measure_gemm(session *s)
{
    const size_t total = s->plan->order * s->plan->order;
    memory a, b, d;
    gpu_cublas cublas;
    char why[100] = "";
    keep_error(s, a.get(2 * total));
    keep_error(s, b.get(2 * total));
    keep_error(s, d.get(4 * total));
    if (s->error != cudaSuccess)
        return;
    const int found = gpu_cublas_open(&cublas, s->plan->cublas, why, sizeof why) == 0;
    static const struct {
        const char *format, *model;
    } formats[] = {{"fp16", "fp16-fp32"}, {"bf16", "bf16-fp32"}, {"e4m3", "wgmma-fp8-fp32"}};
    static const char *const architectures[] = {"ampere", "ada", "hopper", "blackwell",
                                                "rtx-blackwell"};
    for (const auto &f : formats)
        for (const char *arch : architectures) {
            char model[96];
            snprintf(model, sizeof model, "%s-%s", arch, f.model);
            if (gpu_gemm_has(model, s->plan->sm))
                measure_products(s, f.format, model, a.p, b.p, d.p, found ? &cublas : NULL, why);
        }
    if (found)
        gpu_cublas_close(&cublas);
}

void measure_streams(session *s)
{
    const size_t n = s->plan->elements;
    memory x[4], copy, to;
    for (memory &m : x)
        keep_error(s, m.get(4 * n));
    keep_error(s, copy.get(2 * n));
    keep_error(s, to.get(sizeof(gpu_statistics)));
    memory out;
    keep_error(s, out.get(6 * n));
    if (s->error != cudaSuccess)
        return;
    gpu_statistics *const statistics = static_cast<gpu_statistics *>(to.p);
    void *const buffer[4] = {x[0].p, x[1].p, x[2].p, x[3].p};
    fill(s, buffer[0], n, BELL);
    measure_copy(s, buffer[1], buffer[0]);
    measure_statistics(s, buffer[0], statistics);
    measure_casts(s, buffer[0], out.p, statistics);
    measure_optimizers(s, buffer, copy.p);
}

} // namespace

int gpu_speed_run(gpu_speed_row *rows, size_t max, size_t *count, const gpu_speed_plan *plan,
                  char *why, size_t size)
{
    cudaDeviceProp device;
    session s = {plan, rows, max, 0, 1, 0, cudaSuccess};
    *count = 0;
    if (plan->runs < 1 || plan->runs > 100 || plan->elements % 4 || plan->order % 128) {
        snprintf(why, size, "speed: runs, elements or order out of range");
        return -1;
    }
    keep_error(&s, cudaGetDeviceProperties(&device, 0));
    s.blocks = device.multiProcessorCount * 4;
    if (s.error == cudaSuccess)
        measure_streams(&s);
    if (s.error == cudaSuccess && plan->order)
        measure_gemm(&s);
    *count = s.count;
    if (s.error != cudaSuccess) {
        snprintf(why, size, "speed: %s", cudaGetErrorString(s.error));
        return -1;
    }
    return 0;
}

/* ---- reports ---- */

static const char *speed_verdict(const gpu_speed_row *r)
{
    return r->checked < 0 ? "-" : r->checked ? "equal" : "DIFFERENT";
}

void gpu_speed_table(FILE *to, const gpu_speed_row *rows, size_t count)
{
    fprintf(to, "%-46s %10s %12s %7s  %-9s  %s\n", "", "ms", "", "share", "bits", "");
    for (size_t i = 0; i < count; i++) {
        const gpu_speed_row *r = &rows[i];
        const double rate = r->seconds > 0 ? (r->bytes + r->flops) / r->seconds : 0;
        fprintf(to, "%-46s %10.3f %7.1f %s %6.1f%%  %-9s  %s", r->name, r->seconds * 1e3,
                r->bytes > 0 ? rate * 1e-9 : rate * 1e-12, r->bytes > 0 ? "GB/s" : "Tf/s",
                r->share * 100, speed_verdict(r), r->text);
        if (r->difference > 0)
            fprintf(to, ": %.2g", r->difference);
        putc('\n', to);
    }
}
