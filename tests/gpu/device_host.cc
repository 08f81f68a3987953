/* device_host.cc -- what makes mpsim-gpu a program without a device: gpu/validation/checks/device.cu on a "CPU executor",
 * whose instructions the reference plays, and the engine of training on tests/gpu/host.h. Kernels and
 * instructions fault and hang on request (host_faults.h).
 *
 * MPSIM_TEST_FAULT=N: from the N-th matrix product on (from 1) each product forgets its last
 * multiply-add: what a broken kernel would look like. gpu/validation/program/main.c is compiled with
 * train_engine_cuda as another name. */
#undef train_engine_cuda
#include "../../gpu/kernels/fragments.cuh"

#include "host_mma.h"
#include "host_wgmma.h"

#include "../../gpu/validation/checks/device.cu"
#include "../../gpu/validation/checks/dmma.cu"
#include "../../gpu/validation/checks/mma_variants.cu"
#include "../../gpu/validation/checks/variants.cu"
#include "../../gpu/validation/checks/wgmma_sparse.cu"
#include "../../gpu/train.h"
#include "support/onebyone.h"

/* ---- the engine, with a fault on request ---- */

static train_ops faulty_ops;
static int (*whole_gemm)(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts);
static long products, first_fault;

static int faulty_gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    train_gemm less = *g;
    const size_t depth = g->a_transposed ? g->a->rows : g->a->cols;
    const int whole = g->depth_limit == 0 || g->depth_limit == depth;
    if (++products >= first_fault && whole && depth > 1)
        less.depth_limit = depth - 1;
    return whole_gemm(e, d, &less, counts);
}

extern "C" int test_engine_cuda(train_engine *e, char *why, size_t size)
{
    const char *fault = getenv("MPSIM_TEST_FAULT");
    const int code = train_engine_cuda(e, why, size);
    if (code == 0 && fault) {
        first_fault = strtol(fault, NULL, 10);
        faulty_ops = *e->ops;
        whole_gemm = e->ops->gemm;
        faulty_ops.gemm = faulty_gemm;
        faulty_ops.gemm_list = one_by_one;
        e->ops = &faulty_ops;
    }
    return code;
}

/* ---- instructions, played by the reference ---- */

static cudaError_t answer(const char *name, const gpu_span *span, gpu_tally *tally,
                          uint64_t (*output)(const void *of, uint64_t index), const void *of)
{
    gpu_local local(tally);
    const int wrong = gpu_host_wants("wrong", name, nullptr);
    if (gpu_host_faults(name, nullptr))
        gpu_host_fail(cudaErrorLaunchFailure, "a fault that the tests asked for");
    for (uint64_t i = span->first; i < span->end && gpu_host.error == cudaSuccess; i++) {
        const uint64_t y = output(of, i);
        local.add(*span, i, wrong && i % 3 == 0 ? y ^ 1 : y, y);
    }
    local.give();
    return gpu_host.error;
}

static uint64_t scalar_output(const void *of, uint64_t index)
{
    const gpu_scalar *s = static_cast<const gpu_scalar *>(of);
    uint32_t in[3];
    gpu_scalar_case(s, index, in);
    return gpu_scalar_reference(s, in);
}

static uint64_t dots_output(const void *of, uint64_t index)
{
    const gpu_dots *j = static_cast<const gpu_dots *>(of);
    const uint64_t outputs = gpu_tile_outputs(j), tile = index / outputs;
    const int row = int(index % outputs) / j->columns, column = int(index % outputs) % j->columns;
    uint32_t a[GPU_DEPTH], b[GPU_DEPTH];
    if (j->distribution == GPU_LAYOUT)
        return gpu_layout_answer(j, row, column);
    for (int k = 0; k < j->k; k++) {
        a[k] = gpu_operand(j, tile, 0, row, k);
        b[k] = gpu_operand(j, tile, 1, column, gpu_chosen(j, tile, row, k));
    }
    return gpu_dot_reference(j, a, b, gpu_addend(j, tile, row, column));
}

/* "wgmma_kernel wgmma.k16 bf16-fp32 inputs" */
static cudaError_t answer_dots(const char *kernel, const gpu_dots *j, const gpu_span *span, gpu_tally *tally)
{
    char instruction[48], name[128];
    gpu_instruction_name(gpu_instruction_at(j->instruction), instruction, sizeof instruction);
    snprintf(name, sizeof name, "%s %s%s", kernel, instruction,
             j->distribution == GPU_LAYOUT  ? " layout"
             : j->distribution == GPU_PROBE ? " probe"
                                            : " inputs");
    return answer(name, span, tally, dots_output, j);
}

cudaError_t gpu_mma_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally)
{
    return answer_dots("mma_kernel", j, span, tally);
}

cudaError_t gpu_wgmma_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally, int)
{
    return answer_dots("wgmma_kernel", j, span, tally);
}

static cudaError_t answer_scalar(const char *kernel, const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    char name[64];
    snprintf(name, sizeof name, "%s %d", kernel, s->instruction);
    return answer(name, span, tally, scalar_output, s);
}

cudaError_t gpu_convert_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    return answer_scalar("convert_kernel", s, span, tally);
}

cudaError_t gpu_cvt_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    return answer_scalar("cvt_kernel", s, span, tally);
}

cudaError_t gpu_cvt_next_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    return answer_scalar("cvt_next_kernel", s, span, tally);
}

cudaError_t gpu_reduce_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    return answer_scalar("reduce_kernel", s, span, tally);
}

cudaError_t gpu_arith_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    return answer_scalar("arith_kernel", s, span, tally);
}

/* Lane by lane. */
cudaError_t gpu_order_launch(const gpu_order_plan *p, uint32_t *sums, uint32_t *)
{
    char name[64];
    const size_t i = (size_t)(p->stream - GPU_ORDER_STREAM);
    snprintf(name, sizeof name, "order_kernel %zu.", i);
    const int wrong = gpu_host_wants("wrong", name, nullptr);
    if (gpu_host_faults(name, nullptr))
        gpu_host_fail(cudaErrorLaunchFailure, "a fault that the tests asked for");
    for (int sum = 0; sum < gpu_order_sums(p) && gpu_host.error == cudaSuccess; sum++) {
        gpu_order_played(i, 0, sum, &sums[sum]);
        sums[sum] ^= wrong && sum == 1;
    }
    return gpu_host.error;
}

int gpu_compiled_for()
{
    gpu_host_cores_set(90);
    return 90;
}

int gpu_cvt_next_compiled()
{
    return 0;
}

int gpu_wgmma_compiled()
{
    return 1;
}
