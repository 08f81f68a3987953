/* device_host.cc -- what makes mpsim-gpu a program without a device: a "CPU executor" that has no
 * instructions to check, and the engine of training on tests/gpu/host.h.
 *
 * MPSIM_TEST_FAULT=N: from the N-th matrix product on (from 1) each product forgets its last
 * multiply-add: what a broken kernel would look like. gpu/program/main.c is compiled with
 * train_engine_cuda as another name. */
#undef train_engine_cuda
#include "../../gpu/checks/checks.h"
#include "../../gpu/kernels/fragments.cuh"
#include "../../gpu/train.h"

/* ---- the engine, with a fault on request ---- */

static train_ops faulty_ops;
static int (*whole_gemm)(train_engine *e, train_tensor *d, const train_gemm *g,
                         train_counts *counts);
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
        e->ops = &faulty_ops;
    }
    return code;
}

/* ---- the rest of gpu.h ---- */

int gpu_open(gpu_device *d, char *, size_t)
{
    gpu_host_cores_set(90);
    memset(d, 0, sizeof *d);
    snprintf(d->name, sizeof d->name, "CPU executor");
    d->sm = 90;
    return 0;
}

void gpu_check_run(size_t, int, gpu_result *r)
{
    memset(r, 0, sizeof *r);
    r->status = GPU_SKIPPED;
    snprintf(r->text, sizeof r->text, "no device");
}

void gpu_probe_run(size_t i, gpu_probe *p)
{
    int instruction;
    memset(p, 0, sizeof *p);
    (void)gpu_probe_fill(i, p, &instruction);
    p->status = GPU_SKIPPED;
}
