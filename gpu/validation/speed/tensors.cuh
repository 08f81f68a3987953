/* tensors.cuh -- measurements of what memory bounds: copies, and operations of the engine of trainings on one
 * large tensor. Copies are compared whole, operations on a sample by the CPU's engine. */
#pragma once

#include "../../train.h"
#include "measure.cuh"

#include <mpsim/mpsim.h>

namespace
{

/* ---- copies ---- */

/* Four loads of 16 bytes of a thread are under way. */
__global__ void __launch_bounds__(256) copy_kernel(uint4 *to, const uint4 *from, size_t n)
{
    enum { AHEAD = 4 };
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + (AHEAD - 1) * stride < n; i += AHEAD * stride) {
        uint4 v[AHEAD];
        GPU_UNROLL
        for (int k = 0; k < AHEAD; k++)
            v[k] = __ldcs(from + i + k * stride);
        GPU_UNROLL
        for (int k = 0; k < AHEAD; k++)
            to[i + k * stride] = v[k];
    }
    for (; i < n; i += stride)
        to[i] = __ldcs(from + i);
}

/* A copy by `run` from filled memory, and whether all of it is there. */
template <class F>
void measure_copy_by(session *s, F run)
{
    const size_t n = s->plan->elements;
    memory to, from;
    to.get(s, 4 * n);
    from.get(s, 4 * n);
    if (s->error != cudaSuccess)
        return;
    GPU_LAUNCH(fill_kernel, grid_of(s, fill_kernel, 256), 256, 0, static_cast<uint32_t *>(from.p), n);
    keep_error(s, cudaMemset(to.p, 0, 4 * n));
    measure_time(s, [&] { run(to.p, from.p); });
    compare(s, to.p, from.p, n);
    snprintf(s->row->text, sizeof s->row->text,
             "all elements; the faster of the two copies is the measure of the others");
}

void measure_runtime_copy(session *s, const item *)
{
    measure_copy_by(s, [s](void *to, const void *from) {
        keep_error(s, cudaMemcpyAsync(to, from, 4 * s->plan->elements, cudaMemcpyDeviceToDevice, nullptr));
    });
}

void measure_own_copy(session *s, const item *)
{
    const int grid = grid_of(s, copy_kernel, 256);
    measure_copy_by(s, [s, grid](void *to, const void *from) {
        GPU_LAUNCH(copy_kernel, grid, 256, 0, static_cast<uint4 *>(to), static_cast<const uint4 *>(from),
                   s->plan->elements / 4);
    });
}

/* ---- operations of the engine ---- */

struct tensor_case {
    const char *name, *group, *from, *to; /* formats; to: NULL: a number comes out */
    const char *recipe;                   /* of blocks, or NULL: a cast */
    double bytes;                         /* of an element, read and written */
    train_digest_kind digests = TRAIN_DIGEST_CODES;
};

/* One scale for a tensor needs its largest number first: it is read twice. That operation and the digest wait for
 * the device, as they do in a training; their times have the wait in them. */
const tensor_case tensor_cases[] = {
    {"cast of binary32 to fp16", "cast", "binary32", "fp16", NULL, 4 + 2},
    {"cast of binary32 to bf16", "cast", "binary32", "bf16", NULL, 4 + 2},
    {"cast of binary32 to e4m3", "cast", "binary32", "e4m3", NULL, 4 + 1},
    {"cast of bf16 to binary32", "cast", "bf16", "binary32", NULL, 2 + 4},
    {"digest of binary32", "digest", "binary32", NULL, NULL, 4},
    {"digest of bf16", "digest", "bf16", NULL, NULL, 2},
    {"block digest of binary32", "block digest", "binary32", NULL, NULL, 4, TRAIN_DIGEST_BLOCKS},
    {"block digest of bf16", "block digest", "bf16", NULL, NULL, 2, TRAIN_DIGEST_BLOCKS},
    {"quantize bf16, one scale, e4m3", "quantize, one scale", "bf16", "e4m3", "te-current", 2 + 2 + 1},
    {"quantize bf16, MXFP8, as bf16", "quantize, blocks", "bf16", "bf16", "mxfp8", 2 + 2},
    {"quantize bf16, NVFP4, as bf16", "quantize, NVFP4", "bf16", "bf16", "nvfp4", 2 + 2 + 2},
    {"quantize bf16, NVFP4 2d, as bf16", "quantize, NVFP4", "bf16", "bf16", "nvfp4-2d", 2 + 2 + 2},
    {"quantize bf16, NVFP4 stochastic, as bf16", "quantize, NVFP4", "bf16", "bf16", "nvfp4-sr", 2 + 2 + 2},
    {"quantize bf16, MXFP8, codes", "quantize, blocks", "bf16", "e4m3", "mxfp8", 2 + 1 + 4.0 / 32},
    {"quantize binary32, MXFP8, codes", "quantize, blocks", "binary32", "e4m3", "mxfp8", 4 + 1 + 4.0 / 32},
    {"quantize bf16, 1x128, codes", "quantize, blocks", "bf16", "e4m3", "te-block-1x128", 2 + 1 + 4.0 / 128},
    {"quantize bf16, 128x128, codes", "quantize, blocks", "bf16", "e4m3", "te-block-128x128", 2 + 1}};

enum { COLUMNS = 1024, SAMPLE = 1 << 20 };

size_t sample_of(const session *s)
{
    return std::min(s->plan->elements, size_t(SAMPLE));
}

/* Tensors of an engine, and what an operation makes of them; blocks: factors beside codes. */
struct operands {
    train_engine e;
    train_tensor x, y, blocks;
    train_counts counts;
    uint64_t digest;
};

void release(operands *o)
{
    if (o->e.ops) {
        o->e.ops->release(&o->e, &o->x);
        o->e.ops->release(&o->e, &o->y);
        o->e.ops->release(&o->e, &o->blocks);
    }
    train_engine_close(&o->e);
}

train_tensor tensor_of(const char *format, size_t rows)
{
    train_tensor t = {};
    t.format = mpsim_format_find(format);
    t.rows = rows;
    t.cols = COLUMNS;
    return t;
}

/* A tensor whose first `rows` rows hold numbers from place `first` on, as often as it has rows: as sums with zeros. 0,
 * or -1. */
int make_repeated(train_engine *e, train_tensor *x, size_t rows, int kind, uint64_t first)
{
    std::vector<float> values(rows * x->cols);
    mpsim_rounding r;
    train_tensor table = *x;
    table.rows = rows;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    for (size_t i = 0; i < values.size(); i++)
        values[i] = mpsim_f32_bits(input_bits(kind, first + i));
    mpsim_round_array_f32(table.format, &r, NULL, values.data(), values.data(), values.size(), NULL);
    const int failed = e->ops->alloc(e, &table) || e->ops->put(e, &table, values.data()) || e->ops->alloc(e, x) ||
                       e->ops->add_rows(e, x, x, &table, NULL);
    e->ops->release(e, &table);
    return failed ? -1 : 0;
}

/* Whether the recipe gives codes with a factor for each block. */
int gives_factors(const tensor_case *c)
{
    const mpsim_block_recipe *b = c->recipe ? mpsim_block_find(c->recipe) : NULL;
    return b && strcmp(c->to, b->element) == 0 && (b->block_rows || b->block_cols);
}

int make_factors(operands *o, const tensor_case *c)
{
    o->blocks = tensor_of("binary32", 1);
    if (!gives_factors(c))
        return 0;
    mpsim_block_grid(mpsim_block_find(c->recipe), o->y.rows, o->y.cols, &o->blocks.rows, &o->blocks.cols);
    return o->e.ops->alloc(&o->e, &o->blocks);
}

/* n elements: the numbers of the sample again and again. 0, or -1. */
int fill_tensor(operands *o, const tensor_case *c, size_t n, size_t sample)
{
    o->x = tensor_of(c->from, n / COLUMNS);
    o->y = tensor_of(c->to ? c->to : c->from, c->to ? n / COLUMNS : 1);
    return make_repeated(&o->e, &o->x, sample / COLUMNS,
                         c->recipe ? BELL
                         : c->to   ? MOSTLY_BELL
                                   : UNIFORM_EXPONENTS,
                         0) ||
                   o->e.ops->alloc(&o->e, &o->y) || make_factors(o, c)
               ? -1
               : 0;
}

int operate(operands *o, const tensor_case *c)
{
    o->e.digests = c->digests;
    if (c->recipe) {
        train_quantize q = {};
        q.recipe = mpsim_block_find(c->recipe);
        q.blocks = gives_factors(c) ? &o->blocks : NULL;
        return o->e.ops->quantize(&o->e, &o->y, &o->x, &q, NULL, &o->counts);
    }
    return c->to ? o->e.ops->cast(&o->e, &o->y, &o->x, MPSIM_ROUND_NEAREST_EVEN, &o->counts)
                 : o->e.ops->digest(&o->e, &o->x, &o->digest);
}

/* Numbers; NaNs are one class. */
int are_equal(const std::vector<float> &x, const std::vector<float> &y)
{
    for (size_t i = 0; i < x.size(); i++)
        if (mpsim_bits_f32(x[i]) != mpsim_bits_f32(y[i]) && !(x[i] != x[i] && y[i] != y[i]))
            return 0;
    return 1;
}

/* The first rows of what the device has made, and what the CPU makes of them: 1 equal, 0, or -1. A scale
 * of the whole tensor is that of the sample, of which the tensor consists. */
int tensor_matches(operands *device, const tensor_case *c, size_t sample)
{
    operands cpu = {}, part = *device;
    std::vector<float> got(sample), want(sample);
    int equal = -1;
    if (c->to)
        part.y.rows = sample / COLUMNS;
    else
        part.x.rows = sample / COLUMNS;
    if (train_engine_cpu(&cpu.e, NULL) == 0 && fill_tensor(&cpu, c, sample, sample) == 0 && operate(&cpu, c) == 0) {
        if (!c->to)
            equal = operate(&part, c) ? -1 : part.digest == cpu.digest;
        else if (part.e.ops->get(&part.e, &part.y, got.data()) == 0 && cpu.e.ops->get(&cpu.e, &cpu.y, want.data()) == 0)
            equal = part.y.inverse == cpu.y.inverse && are_equal(got, want);
    }
    release(&cpu);
    return equal;
}

void measure_tensor(session *s, const item *it)
{
    const tensor_case *c = it->tensor;
    const size_t n = s->plan->elements, sample = sample_of(s);
    operands o = {};
    char why[192] = "";
    if (train_engine_cuda(&o.e, why, sizeof why)) {
        give_up(s, GPU_FAILED, why);
        return;
    }
    int failed = fill_tensor(&o, c, n, sample);
    if (!failed)
        measure_time(s, [&] { failed |= operate(&o, c); });
    if (!failed) {
        s->row->checked = tensor_matches(&o, c, sample);
        snprintf(s->row->text, sizeof s->row->text, "%s of %zu elements by the CPU's engine",
                 c->to ? "numbers" : "digest", sample);
    }
    if (failed || s->row->checked < 0)
        give_up(s, GPU_FAILED, o.e.error);
    release(&o);
}

/* ---- all of them ---- */

void set_share_of_copy(session *s)
{
    double best = 0;
    for (size_t i = 0; i <= s->at; i++)
        if (s->items[i].measure == measure_runtime_copy || s->items[i].measure == measure_own_copy)
            best = std::max(best, rate_of(&s->rows[i]));
    if (best > 0)
        s->row->share = rate_of(s->row) / best;
}

void list_tensors(item_list *list, const gpu_speed_plan *plan)
{
    const double n = static_cast<double>(plan->elements);
    item *it = add_item(list, "copy, runtime", measure_runtime_copy);
    snprintf(it->name, sizeof it->name, "copy, cudaMemcpyAsync");
    it->bytes = 8 * n;
    it = add_item(list, "copy", measure_own_copy);
    snprintf(it->name, sizeof it->name, "copy, own kernel");
    it->bytes = 8 * n;
    for (const tensor_case &c : tensor_cases) {
        it = add_item(list, c.group, measure_tensor);
        snprintf(it->name, sizeof it->name, "%s", c.name);
        it->tensor = &c;
        it->bytes = c.bytes * n;
    }
}

} // namespace
