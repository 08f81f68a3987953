/* casts.cuh -- measurements of casts that a training does not have: the kernels of mpsim_cuda_cast (kernels/casts.cuh) on one
 * large tensor. A sample is compared with what the CPU's library makes of it. */
#pragma once

#include "../../kernels/casts.cuh"
#include "measure.cuh"

#include <mpsim/mpsim.h>

namespace
{

typedef gpu_list<gpu_pair, 1> one_pair;
typedef gpu_usual_cast<one_pair> cast_kernel_row;

struct cast_case {
    const char *name, *from, *to, *y; /* y: the format of the results */
    mpsim_round_mode mode;
    double bytes; /* of an element, read and written */
    cast_kernel_row (*kernel)();
    double scale = 0; /* 0: none */
};

const cast_case cast_cases[] = {
    {"cast of bf16 to e4m3", "bf16", "e4m3", "e4m3", MPSIM_ROUND_NEAREST_EVEN, 2 + 1,
     cast_kernel_row::of<gpu_bf16, gpu_e4m3, gpu_e4m3, GPU_NEAREST>},
    {"cast of e4m3 to bf16", "e4m3", "bf16", "bf16", MPSIM_ROUND_NEAREST_EVEN, 1 + 2,
     cast_kernel_row::of<gpu_e4m3, gpu_bf16, gpu_bf16, GPU_NEAREST>},
    {"cast of binary32 to e4m3, as binary32", "binary32", "e4m3", "binary32", MPSIM_ROUND_NEAREST_EVEN, 4 + 4,
     cast_kernel_row::of<gpu_binary32, gpu_e4m3, gpu_binary32, GPU_NEAREST>},
    {"stochastic cast of binary32 to bf16", "binary32", "bf16", "bf16", MPSIM_ROUND_STOCHASTIC_C, 4 + 2,
     cast_kernel_row::of<gpu_binary32, gpu_bf16, gpu_bf16, GPU_STOCHASTIC>},
    {"stochastic cast of binary32 to e4m3", "binary32", "e4m3", "e4m3", MPSIM_ROUND_STOCHASTIC_C, 4 + 1,
     cast_kernel_row::of<gpu_binary32, gpu_e4m3, gpu_e4m3, GPU_STOCHASTIC>},
    {"stochastic cast of bf16 to e4m3", "bf16", "e4m3", "e4m3", MPSIM_ROUND_STOCHASTIC_C, 2 + 1,
     cast_kernel_row::of<gpu_bf16, gpu_e4m3, gpu_e4m3, GPU_STOCHASTIC>},
    {"scaled cast of binary32 to e4m3", "binary32", "e4m3", "e4m3", MPSIM_ROUND_NEAREST_EVEN, 4 + 1,
     cast_kernel_row::of<gpu_binary32, gpu_e4m3, gpu_e4m3, GPU_NEAREST, 1>, 1.7f},
    {"scaled cast of bf16 to e4m3", "bf16", "e4m3", "e4m3", MPSIM_ROUND_NEAREST_EVEN, 2 + 1,
     cast_kernel_row::of<gpu_bf16, gpu_e4m3, gpu_e4m3, GPU_NEAREST, 1>, 1.7f},
    {"scaled cast of binary32 to e2m1", "binary32", "e2m1", "e2m1", MPSIM_ROUND_NEAREST_EVEN, 4 + 1,
     cast_kernel_row::of<gpu_binary32, gpu_e2m1, gpu_e2m1, GPU_NEAREST, 1>, 1.7f},
};

mpsim_rounding rounding_of(const cast_case *c)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, c->mode);
    r.scale = c->scale != 0 ? c->scale : 1;
    return r;
}

enum { CAST_SAMPLE = 1 << 16 };
const mpsim_rng cast_rng = {1, 2, 0};

/* Codes of n numbers that a training may have, and of some that overflow or are lost. */
std::vector<unsigned char> codes_of_sample(const mpsim_format *f, size_t n)
{
    std::vector<unsigned char> codes(n * mpsim_format_code_bytes(f));
    std::vector<float> v(n);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n; i++)
        v[i] = mpsim_f32_bits(input_bits(MOSTLY_BELL, i));
    mpsim_encode_array_f32(f, &r, NULL, codes.data(), v.data(), n, NULL);
    return codes;
}

/* What the library makes of the sample. */
std::vector<unsigned char> cast_by_library(const cast_case *c, const std::vector<unsigned char> &x, size_t n)
{
    const mpsim_format *from = mpsim_format_find(c->from), *to = mpsim_format_find(c->to);
    const mpsim_format *y = mpsim_format_find(c->y);
    std::vector<unsigned char> codes(n * mpsim_format_code_bytes(y));
    std::vector<float> v(n);
    const mpsim_rounding r = rounding_of(c);
    if (strcmp(c->from, "binary32") == 0)
        memcpy(v.data(), x.data(), 4 * n);
    else
        mpsim_decode_array_f32(from, v.data(), x.data(), n);
    if (mpsim_format_same(y, to)) {
        mpsim_encode_array_f32(to, &r, &cast_rng, codes.data(), v.data(), n, NULL);
    } else {
        mpsim_round_array_f32(to, &r, &cast_rng, v.data(), v.data(), n, NULL);
        memcpy(codes.data(), v.data(), 4 * n);
    }
    return codes;
}

void measure_cast(session *s, const item *it)
{
    const cast_case *c = it->cast;
    const mpsim_format *from = mpsim_format_find(c->from), *to = mpsim_format_find(c->to);
    const mpsim_format *y = mpsim_format_find(c->y);
    const size_t n = s->plan->elements, sample = std::min(n, size_t(CAST_SAMPLE)), out = mpsim_format_code_bytes(y);
    const std::vector<unsigned char> codes = codes_of_sample(from, sample);
    const cast_kernel_row kernel = c->kernel();
    memory x, results, counts;
    gpu_casting how;
    const mpsim_rounding r = rounding_of(c);
    one_pair list = {};
    x.get(s, n * mpsim_format_code_bytes(from));
    results.get(s, n * out);
    counts.get(s, GPU_COUNTERS * sizeof(gpu_word));
    for (size_t i = 0; i < n && s->error == cudaSuccess; i += sample)
        keep_error(s, cudaMemcpy(static_cast<unsigned char *>(x.p) + i * codes.size() / sample, codes.data(),
                                 codes.size(), cudaMemcpyHostToDevice));
    if (s->error != cudaSuccess)
        return;
    gpu_casting_set(&how, to, &r, &cast_rng, y);
    list.n = 1;
    list.item[0] = gpu_pair{results.p, x.p, n, counts.p};
    list.end[0] = gpu_usual_blocks(n, kernel.blocks, s->multiprocessors);
    measure_time(s, [&] { GPU_LAUNCH(kernel.kernel, list.end[0], GPU_LIST_THREADS, 0, how, list); });
    std::vector<unsigned char> got(sample * out);
    keep_error(s, cudaMemcpy(got.data(), results.p, got.size(), cudaMemcpyDeviceToHost));
    s->row->checked = got == cast_by_library(c, codes, sample);
    snprintf(s->row->text, sizeof s->row->text, "codes of %zu elements by the CPU's library", sample);
}

void list_casts(item_list *list, const gpu_speed_plan *plan)
{
    for (const cast_case &c : cast_cases) {
        item *it = add_item(list, "cast", measure_cast);
        snprintf(it->name, sizeof it->name, "%s", c.name);
        it->cast = &c;
        it->bytes = c.bytes * static_cast<double>(plan->elements);
    }
}

} // namespace
