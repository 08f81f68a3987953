/* streams.cuh -- measurements of what memory bounds: copies, statistics, casts, optimizer steps.
 * Each result is compared with the CPU's, all of it or a sample. */
#ifndef MPSIM_GPU_SPEED_STREAMS_CUH
#define MPSIM_GPU_SPEED_STREAMS_CUH

#include "measure.cuh"
#include "../kernels/statistics.cuh"
#include "../kernels/stream.cuh"

#include <mpsim/mpsim.h>

#include <chrono>

namespace {

/* ---- copies ---- */

/* The clocks of a device that was idle are low: copies for 200 ms before the first measurement. */
void warm_up(session *s, void *to, const void *from)
{
    const auto began = std::chrono::steady_clock::now();
    const int grid = grid_of(s, stream_copy_kernel, 256);
    while (s->plan->before > 0 && s->error == cudaSuccess &&
           std::chrono::steady_clock::now() - began < std::chrono::milliseconds(200)) {
        GPU_LAUNCH(stream_copy_kernel, grid, 256, 0, static_cast<uint4 *>(to),
                   static_cast<const uint4 *>(from), s->plan->elements / 4);
        keep_error(s, cudaDeviceSynchronize());
    }
}

/* A copy, and whether all of it is there. */
template <class F>
gpu_speed_row *measure_copy_by(session *s, const char *name, void *to, const void *from, F run)
{
    const size_t n = s->plan->elements;
    gpu_speed_row *r = add_row(s, name, 8.0 * static_cast<double>(n), 0);
    keep_error(s, cudaMemset(to, 0, 4 * n));
    r->seconds = seconds_of(s, run);
    compare(s, r, to, from, n);
    r->checked = r->differing == 0;
    return r;
}

void measure_copy(session *s, void *to, const void *from)
{
    const size_t n = s->plan->elements;
    const int grid = grid_of(s, stream_copy_kernel, 256);
    warm_up(s, to, from);
    gpu_speed_row *const rows[] = {
        measure_copy_by(s, "copy, cudaMemcpyAsync", to, from, [&] {
            keep_error(s, cudaMemcpyAsync(to, from, 4 * n, cudaMemcpyDeviceToDevice, nullptr));
        }),
        measure_copy_by(s, "copy, own kernel", to, from, [&] {
            GPU_LAUNCH(stream_copy_kernel, grid, 256, 0, static_cast<uint4 *>(to),
                       static_cast<const uint4 *>(from), n / 4);
        })};
    for (const gpu_speed_row *r : rows)
        if (r->seconds > 0)
            s->copy = std::max(s->copy, r->bytes / r->seconds);
    for (gpu_speed_row *r : rows)
        set_time(s, r, r->seconds);
    snprintf(rows[0]->text, sizeof rows[0]->text,
             "the faster of the two is the measure of the others");
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
    GPU_LAUNCH(statistics_kernel<4>, grid_of(s, statistics_kernel<4>, STAT_THREADS), STAT_THREADS, 0,
               source, to);
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
    const int grid = grid_of(s, statistics_kernel<4>, STAT_THREADS);
    for (const auto &in : inputs) {
        gpu_speed_row *r = add_row(s, in.name, 4.0 * static_cast<double>(s->plan->elements), 0);
        stat_source source = {x, s->plan->elements, gpu_format{}};
        gpu_format_set(&source.format, mpsim_format_find("binary32"));
        fill(s, x, source.n, in.kind);
        r->checked = statistics_match(s, x, in.kind, to);
        snprintf(r->text, sizeof r->text, "all counts of %zu elements", sample_of(s));
        set_time(s, r, seconds_of(s, [&] {
            GPU_LAUNCH(statistics_kernel<4>, grid, STAT_THREADS, 0, source, to);
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
    const int grid = grid_of(s, casts_kernel<SET, COUNTED>, STAT_THREADS);
    const double t = seconds_of(s, [&] {
        GPU_LAUNCH((casts_kernel<SET, COUNTED>), grid, STAT_THREADS, 0, source, *c, to);
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

struct optim_row {
    const char *name, *variant;
    mpsim_optim_algorithm algorithm;
    double bytes; /* an element: binary32 read and written, gradient read, copy written */
};

/* A step as the library and as the kernel take it. */
struct optim_step {
    mpsim_optim o;
    gpu_optim g;
    stream_tensors t;
};

void launch_optim(session *s, const optim_step &x)
{
    auto *const kernel = x.g.torch ? stream_optim_kernel<1> : stream_optim_kernel<0>;
    GPU_LAUNCH(kernel, grid_of(s, kernel, 256), 256, 0, x.g, x.t);
}

/* The first step of the sample, by mpsim_optim_step: param, m, v and the copy must be equal. */
int optim_matches(session *s, const optim_step &whole)
{
    const size_t n = sample_of(s);
    std::vector<float> p(n), m(n, 0.0f), v(n, 0.0f), grad(n), got(n);
    std::vector<uint16_t> copy(n), want(n);
    mpsim_optim_tensor x = {};
    mpsim_rounding r;
    optim_step part = whole;
    const stream_tensors &t = part.t;
    part.t.fours = n / 4;
    for (size_t i = 0; i < n; i++)
        p[i] = grad[i] = mpsim_f32_bits(input_bits(BELL, i));
    x.n = n;
    x.param = p.data();
    x.grad = grad.data();
    x.m = t.m ? m.data() : NULL;
    x.v = t.v ? v.data() : NULL;
    if (mpsim_optim_step(&part.o, 1, &x, NULL) != MPSIM_OK)
        return -1;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_encode_array_f32(mpsim_format_find("bf16"), &r, NULL, want.data(), p.data(), n, NULL);
    launch_optim(s, part);
    const struct {
        const void *device;
        const std::vector<float> *host;
    } pairs[] = {{t.param, &p}, {t.m, &m}, {t.v, &v}};
    for (const auto &pair : pairs) {
        if (!pair.device)
            continue;
        keep_error(s, cudaMemcpy(got.data(), pair.device, 4 * n, cudaMemcpyDeviceToHost));
        if (memcmp(got.data(), pair.host->data(), 4 * n) != 0)
            return 0;
    }
    keep_error(s, cudaMemcpy(copy.data(), t.copy, 2 * n, cudaMemcpyDeviceToHost));
    return copy == want;
}

/* 0, or -1: not a step of the device. */
int optim_step_set(optim_step *x, const optim_row &row, size_t n, void *const buffer[4], void *copy)
{
    gpu_reference ignored;
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    mpsim_optim_init(&x->o, row.algorithm, mpsim_optim_variant_find(row.variant));
    x->o.lr = 0.001;
    if (row.algorithm == MPSIM_OPTIM_SGD)
        x->o.momentum = 0.9;
    if (gpu_optim_set(&x->g, &ignored, &x->o, 1) != 0)
        return -1;
    gpu_format_set(&x->g.param, binary32);
    gpu_format_set(&x->g.grad, binary32);
    gpu_format_set(&x->g.state, binary32);
    x->g.n = n;
    x->t = stream_tensors{};
    x->t.param = static_cast<float4 *>(buffer[0]);
    x->t.grad = static_cast<const float4 *>(buffer[1]);
    x->t.m = static_cast<float4 *>(buffer[2]);
    x->t.v = row.algorithm == MPSIM_OPTIM_SGD ? NULL : static_cast<float4 *>(buffer[3]);
    x->t.copy = static_cast<uint2 *>(copy);
    gpu_format_set(&x->t.bf16, mpsim_format_find("bf16"));
    x->t.fours = n / 4;
    return 0;
}

void measure_optimizers(session *s, void *const buffer[4], void *copy)
{
    static const optim_row rows[] = {
        {"AdamW, ieee, with a copy in bf16", "ieee", MPSIM_OPTIM_ADAMW, 24 + 4 + 2},
        {"AdamW, torch, with a copy in bf16", "torch", MPSIM_OPTIM_ADAMW, 24 + 4 + 2},
        {"SGD with momentum, ieee, with a copy in bf16", "ieee", MPSIM_OPTIM_SGD, 16 + 4 + 2}};
    const size_t n = s->plan->elements;
    for (const optim_row &row : rows) {
        optim_step x;
        gpu_speed_row *r = add_row(s, row.name, row.bytes * static_cast<double>(n), 0);
        if (optim_step_set(&x, row, n, buffer, copy) != 0)
            continue;
        fill(s, buffer[0], n, BELL);
        fill(s, buffer[1], n, BELL);
        keep_error(s, cudaMemset(buffer[2], 0, 4 * n));
        keep_error(s, cudaMemset(buffer[3], 0, 4 * n));
        r->checked = optim_matches(s, x);
        snprintf(r->text, sizeof r->text, "all bits of the first step of %zu elements",
                 sample_of(s));
        set_time(s, r, seconds_of(s, [&] { launch_optim(s, x); }));
    }
}

/* ---- all of them ---- */

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

#endif
