/* device.cu -- the C interface of gpu.h: the device, one check, one probe. */
#include "open.cuh"
#include "orders.h"
#include "tally.cuh"

#include <chrono>
#include <stdio.h>
#include <stdlib.h>

/* ---- the device ---- */

static struct {
    int sm, compiled, has_wgmma;
    int swap; /* how wgmma names the two offsets of a descriptor, see wgmma.cu */
    int lost; /* a kernel faulted: nothing runs any more in this process       */
} device;

int gpu_open(gpu_device *d, char *why, size_t size)
{
    if (gpu_open_device(d, why, size))
        return -1;
    device.compiled = gpu_compiled_for();
    if (device.compiled < 0) {
        snprintf(why, size, "%s: compute capability %d.%d, for which nothing was compiled", d->name, d->sm / 10,
                 d->sm % 10);
        return -1;
    }
    device.sm = d->sm;
    device.has_wgmma = d->sm == 90 && gpu_wgmma_compiled();
    device.swap = 0;
    return 0;
}

/* ---- launches ---- */

/* Outputs of a launch: about a second, for devices whose displays have a watchdog; of dot products whole tiles. */
static uint64_t launch_outputs(const gpu_check *c)
{
    const uint64_t tile = c->is_dots ? gpu_tile_outputs(&c->dots) : 1;
    return ((uint64_t)1 << (c->is_dots ? 22 : 28)) / tile * tile;
}

static cudaError_t launch(const gpu_check *c, const gpu_span *span, gpu_tally *tally)
{
    static cudaError_t (*const scalars[])(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally) = {
        gpu_convert_launch, gpu_arith_launch, gpu_cvt_launch, gpu_reduce_launch, gpu_cvt_next_launch}; /* by gpu_unit */
    if (!c->is_dots)
        return scalars[c->scalar.unit](&c->scalar, span, tally);
    if (c->dots.variant.chain && c->dots.variant.unit == GPU_UNIT_WGMMA)
        return gpu_variant_launch(&c->dots, span, tally, device.swap);
    static cudaError_t (*const others[])(const gpu_dots *j, const gpu_span *span, gpu_tally *tally) = {
        NULL, gpu_mma_variant_launch, gpu_dmma_launch, gpu_wgmma_sparse_launch}; /* by gpu_variant_unit */
    if (c->dots.variant.chain)
        return others[c->dots.variant.unit](&c->dots, span, tally);
    return gpu_instruction_at(c->dots.instruction)->family == GPU_WGMMA
               ? gpu_wgmma_launch(&c->dots, span, tally, device.swap)
               : gpu_mma_launch(&c->dots, span, tally);
}

/* Outputs first to end - 1 of a check, counted in *t; `out` on the device or NULL. */
static cudaError_t run(const gpu_check *c, uint64_t first, uint64_t end, uint32_t *out, gpu_tally *t)
{
    gpu_tally *on_device = NULL;
    cudaError_t e = cudaMalloc((void **)&on_device, sizeof *on_device);
    memset(t, 0, sizeof *t);
    t->first = ~0ull;
    if (e == cudaSuccess)
        e = cudaMemcpy(on_device, t, sizeof *t, cudaMemcpyHostToDevice);
    for (uint64_t i = first; e == cudaSuccess && i < end;) {
        const uint64_t n = end - i < launch_outputs(c) ? end - i : launch_outputs(c);
        const gpu_span span = {i, i + n, c->sample_step, c->large_step, out};
        e = launch(c, &span, on_device);
        if (e == cudaSuccess)
            e = cudaDeviceSynchronize();
        i += n;
    }
    if (e == cudaSuccess)
        e = cudaMemcpy(t, on_device, sizeof *t, cudaMemcpyDeviceToHost);
    if (on_device)
        cudaFree(on_device);
    return e;
}

/* The same of few outputs, which come back. */
static cudaError_t run_few(const gpu_check *c, uint64_t first, uint64_t n, uint32_t *out, gpu_tally *t)
{
    uint32_t *on_device = NULL;
    cudaError_t e = cudaMalloc((void **)&on_device, n * sizeof *out);
    if (e == cudaSuccess)
        e = cudaMemset(on_device, 0, n * sizeof *out);
    if (e == cudaSuccess)
        e = run(c, first, first + n, on_device, t);
    if (e == cudaSuccess)
        e = cudaMemcpy(out, on_device, n * sizeof *out, cudaMemcpyDeviceToHost);
    if (on_device)
        cudaFree(on_device);
    return e;
}

enum { TILE = GPU_ROWS * GPU_MOST_COLUMNS }; /* outputs of the largest tile */
static uint32_t tile_out[TILE];

/* ---- is the device's layout of operands the one of mma.cuh, wgmma.cu and packing.h? ---- */

/* Of a check the tiles of small integers; of a variant's first look those in which every depth has its turn. */
static uint64_t layout_outputs(const gpu_check *c)
{
    const gpu_dots *j = &c->dots;
    const uint64_t few = j->k > GPU_ROWS ? (uint64_t)(j->k / GPU_ROWS) : 1;
    if (!j->variant.chain)
        return (uint64_t)(j->k + 1) * gpu_tile_outputs(j);
    return GPU_NAME_KINDS * (c->count > gpu_tile_outputs(j) ? (uint64_t)j->k : few) * gpu_tile_outputs(j);
}

static cudaError_t layout_mismatches(const gpu_check *c, gpu_tally *t)
{
    gpu_check layout = *c;
    layout.dots.distribution = c->dots.variant.chain ? GPU_NAMES : GPU_LAYOUT;
    layout.dots.same_as = -1;
    return run(&layout, 0, layout_outputs(c), NULL, t);
}

/* What a wrong small integer names, of variants: "; in row 3, column 5 ...". */
static void say_name(const gpu_dots *j, const gpu_tally *t, char *text, size_t size)
{
    static const char *const kinds[] = {"row",   "row",   "column", "column", "column",
                                        "depth", "depth", "depth",  "addend", "addend"};
    const uint64_t index = t->kept_index[0], tile = index / gpu_tile_outputs(j), at = index % gpu_tile_outputs(j);
    const int row = (int)at / j->columns, column = (int)at % j->columns;
    if (j->variant.chain && j->words == 1 && t->kept)
        snprintf(text, size, "; as at row %d, column %d, whose %s (depth %d) is 0x%x, not 0x%x", row, column,
                 kinds[tile % GPU_NAME_KINDS], gpu_named_depth(j, tile, row), t->kept_output[0],
                 gpu_name_answer(j, tile, row, column));
}

static cudaError_t check_layout(const gpu_check *c, char *text, size_t size)
{
    const gpu_instruction *in = gpu_instruction_at(c->dots.instruction);
    gpu_tally t;
    char name[160] = "";
    text[0] = 0;
    cudaError_t e = layout_mismatches(c, &t);
    if (e == cudaSuccess && t.mismatches && in->family == GPU_WGMMA) {
        const gpu_tally before = t;
        device.swap = !device.swap;
        e = layout_mismatches(c, &t);
        if (e != cudaSuccess || t.mismatches) {
            device.swap = !device.swap;
            t = before;
        }
    }
    if (e == cudaSuccess && t.mismatches) {
        say_name(&c->dots, &t, name, sizeof name);
        snprintf(text, size,
                 "layout: %llu of %llu small integers are in the wrong place (%s %s*%s-%s)%s: nothing is "
                 "said about the arithmetic",
                 t.mismatches, (unsigned long long)layout_outputs(c), in->name, in->a, in->b, in->d, name);
    }
    return e;
}

/* ---- checks ---- */

/* Why this device cannot do it, or NULL. */
static const char *lacks(const gpu_check *c)
{
    if (!c->is_dots && c->scalar.unit == GPU_UNIT_CVT_NEXT)
        return gpu_cvt_next_compiled()
                   ? NULL
                   : "the instruction is for compute capability 10.0 and 12.0 (sm_100a, sm_120a) only";
    if (!c->is_dots)
        return device.compiled < c->since ? "no such instruction in the code for this device" : NULL;
    const gpu_instruction *in = gpu_instruction_at(c->dots.instruction);
    if (in->family == GPU_WGMMA)
        return device.has_wgmma ? NULL : "wgmma is for compute capability 9.0 (sm_90a) only";
    return device.compiled < in->since ? "no such instruction in the code for this device" : NULL;
}

int gpu_is_lost(void)
{
    device.lost = device.lost || cudaDeviceSynchronize() != cudaSuccess;
    return device.lost;
}

static void say_error(char *text, size_t size, cudaError_t e)
{
    cudaGetLastError(); /* one that does not stay shall not meet the next launch */
    snprintf(text, size, "CUDA: %.200s%s", cudaGetErrorString(e), gpu_is_lost() ? "; the context is lost" : "");
}

/* The first mismatch once more, to see the output. */
static void describe(const gpu_check *c, gpu_result *r)
{
    gpu_tally t;
    const uint64_t tile = c->is_dots ? gpu_tile_outputs(&c->dots) : 1;
    const cudaError_t e = run_few(c, r->first / tile * tile, tile, tile_out, &t);
    if (e == cudaSuccess)
        gpu_check_describe(c, r->first, tile_out[r->first % tile], r->text, sizeof r->text);
    else
        snprintf(r->text, sizeof r->text, "CUDA: %s", cudaGetErrorString(e));
}

void gpu_check_run(size_t i, int quick, gpu_result *r)
{
    gpu_check c;
    gpu_tally t;
    memset(r, 0, sizeof *r);
    const int found = gpu_check_at(&c, i, device.sm, quick);
    const char *why = device.lost  ? "not run: the context was lost"
                      : found == 1 ? lacks(&c)
                                   : "no such instruction on this device, or no model of it";
    if (why) {
        r->status = GPU_SKIPPED;
        snprintf(r->text, sizeof r->text, "%s", why);
        return;
    }
    r->question = c.question;
    const auto start = std::chrono::steady_clock::now();
    cudaError_t e = c.is_dots ? check_layout(&c, r->text, sizeof r->text) : cudaSuccess;
    if (e == cudaSuccess && r->text[0]) {
        r->status = GPU_FAILED;
        return;
    }
    if (e == cudaSuccess)
        e = run(&c, 0, c.count, NULL, &t);
    r->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (e != cudaSuccess) {
        r->status = GPU_FAILED;
        say_error(r->text, sizeof r->text, e);
        return;
    }
    r->count = r->sample_end = c.count;
    r->mismatches = t.mismatches;
    r->digest_all = t.digest_all;
    r->digest_sample = t.digest_sample;
    r->digest_large = t.digest_large;
    r->sample_step = c.sample_step;
    r->large_step = c.large_step;
    r->first = t.first;
    r->kept = t.kept < GPU_KEPT ? t.kept : (unsigned)GPU_KEPT;
    memcpy(r->kept_index, t.kept_index, sizeof r->kept_index);
    memcpy(r->kept_output, t.kept_output, sizeof r->kept_output);
    if (r->mismatches)
        describe(&c, r);
}

/* ---- probes ---- */

static void end_probe(gpu_probe *p, gpu_status status, const char *text)
{
    p->status = status;
    snprintf(p->text, sizeof p->text, "%.*s", (int)sizeof p->text - 1, text);
}

void gpu_probe_run(size_t i, gpu_probe *p)
{
    gpu_check c;
    gpu_tally t;
    int instruction;
    uint32_t *const out = tile_out;
    char text[512];
    memset(p, 0, sizeof *p);
    if (!gpu_probe_fill(i, p, &instruction) || device.lost) {
        end_probe(p, GPU_SKIPPED, "not run: the context was lost");
        return;
    }
    memset(&c, 0, sizeof c);
    c.is_dots = 1;
    c.sample_step = c.large_step = 1;
    const int found = gpu_dots_fill(&c.dots, device.sm, instruction, GPU_PROBE) == 0;
    const char *why = found ? lacks(&c) : "no such instruction on this device, or no model of it";
    if (why) {
        end_probe(p, GPU_SKIPPED, why);
        return;
    }
    memcpy(c.dots.probe_a, p->a, sizeof p->a);
    memcpy(c.dots.probe_b, p->b, sizeof p->b);
    c.dots.probe_c = p->c;
    const uint64_t n = gpu_tile_outputs(&c.dots);
    cudaError_t e = check_layout(&c, text, sizeof text);
    if (e == cudaSuccess && !text[0])
        e = run_few(&c, 0, n, out, &t);
    if (e != cudaSuccess)
        say_error(text, sizeof text, e);
    for (uint64_t k = 1; k < n && !text[0]; k++)
        if (out[k] != out[0])
            snprintf(text, sizeof text, "not the same everywhere in the tile: 0x%08x, 0x%08x", out[0], out[k]);
    p->d = text[0] ? 0 : out[0];
    end_probe(p, text[0] ? GPU_FAILED : GPU_DONE, text);
}

/* ---- orders ---- */

enum { ORDER_ROUNDS = 3 };

/* One round, back here. */
static cudaError_t ask_order(const gpu_order_plan *p, uint32_t *on_device, uint32_t *sums, uint32_t *uneven)
{
    const size_t bytes = GPU_ORDER_RESULTS * sizeof *sums;
    cudaError_t e = cudaMemset(on_device, 0, 2 * bytes);
    if (e == cudaSuccess)
        e = gpu_order_launch(p, on_device, on_device + GPU_ORDER_RESULTS);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    if (e == cudaSuccess)
        e = cudaMemcpy(sums, on_device, bytes, cudaMemcpyDeviceToHost);
    if (e == cudaSuccess)
        e = cudaMemcpy(uneven, on_device + GPU_ORDER_RESULTS, bytes, cudaMemcpyDeviceToHost);
    return e;
}

static cudaError_t ask_rounds(const gpu_order_plan *p, uint32_t *on_device, gpu_order *o)
{
    uint32_t sums[GPU_ORDER_RESULTS], uneven[GPU_ORDER_RESULTS], changed[GPU_ORDER_RESULTS] = {};
    for (o->rounds = 0; o->rounds < ORDER_ROUNDS; o->rounds++) {
        const cudaError_t e = ask_order(p, on_device, sums, uneven);
        if (e != cudaSuccess)
            return e;
        for (int i = 0; i < o->sums; i++) {
            if (o->rounds == 0)
                o->result[i] = sums[i];
            changed[i] |= sums[i] != o->result[i];
            o->uneven += o->rounds == 0 && uneven[i];
        }
    }
    for (int i = 0; i < o->sums; i++)
        o->changed += changed[i] != 0;
    return cudaSuccess;
}

void gpu_order_run(size_t i, gpu_order *o)
{
    gpu_order_plan p;
    uint32_t *on_device = NULL;
    if (!gpu_order_list(i, o) || !gpu_order_fill(i, &p) || device.lost || device.compiled < 90) {
        snprintf(o->text, sizeof o->text, "%s",
                 device.lost ? "not run: the context was lost" : "no such instruction in the code for this device");
        return;
    }
    cudaError_t e = cudaMalloc((void **)&on_device, 2 * GPU_ORDER_RESULTS * sizeof *on_device);
    if (e == cudaSuccess)
        e = ask_rounds(&p, on_device, o);
    if (on_device)
        cudaFree(on_device);
    o->status = e == cudaSuccess ? GPU_DONE : GPU_FAILED;
    if (e != cudaSuccess)
        say_error(o->text, sizeof o->text, e);
}
