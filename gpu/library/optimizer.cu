/* optimizer.cu -- mpsim_cuda_optimizer: arguments are checked here; the kernels are kernels/optimizer.cuh's. */
#include "../include/mpsim/cudaoptim.h"

#include "../kernels/optimizer.cuh"
#include "adafactor.cuh"
#include "call.cuh"

namespace library
{

static const char OPTIMIZER[] = "mpsim_cuda_optimizer";

/* What is told of a step that mpsim_optim_check refuses, or the device has no kernel for. */
static mpsim_status refuse_step(const mpsim_cuda_call *call, const mpsim_optim *o, mpsim_status s)
{
    const char *const variant = o && o->variant ? o->variant->name : "no variant";
    const char *const algorithm = mpsim_optim_traits_of(o ? int(o->algorithm) : -1)->title;
    if (s == MPSIM_EUNAVAILABLE)
        return refuse(call, s, "%s: the device has no kernel for %s of variant %s with these options and formats",
                      OPTIMIZER, algorithm ? algorithm : "this algorithm", variant);
    if (s == MPSIM_ERANGE)
        return refuse(call, s, "%s: a format has numbers that binary32 has not", OPTIMIZER);
    return refuse(call, s, "%s: the settings of variant %s are invalid, or the step is 0", OPTIMIZER, variant);
}

static int factors(const mpsim_optim *o)
{
    return mpsim_optim_traits_of(int(o->algorithm))->factors;
}

/* The settings of a launch. `optim`: those of o, with the variant of this library's table. */
static mpsim_status set_step(gpu_optim *g, mpsim_optim *optim, const mpsim_cuda_optim *o, uint64_t step,
                             const mpsim_cuda_call *call)
{
    if (!o || !o->optim)
        return refuse(call, MPSIM_EINVAL, "%s: no optimizer is given", OPTIMIZER);
    *optim = *o->optim;
    if (optim->variant) /* the caller's libmpsim has a table of its own */
        optim->variant = mpsim_optim_variant_find(optim->variant->name);
    if (o->grad_scale)
        optim->grad_scale = 2; /* any number but 1 */
    const mpsim_status s = gpu_optim_set(g, optim, step, o->grad ? o->grad : &o->optim->param, factors(o->optim));
    if (s)
        return refuse_step(call, o->optim, s);
    if (gpu_format_set(&g->model, o->model ? o->model : mpsim_format_find("bf16")))
        return refuse(call, MPSIM_EUNAVAILABLE, "%s: the device has no copies in %s", OPTIMIZER, o->model->name);
    g->grad_scale = o->grad_scale;
    return MPSIM_OK;
}

/* What lacks a tensor; NULL: nothing. */
static const char *lack_of(const gpu_optim &g, const mpsim_optim *o, const mpsim_cuda_parameter &t)
{
    const int whole = factors(o);
    const size_t each = o->rows * o->cols;
    const unsigned arrays = mpsim_optim_arrays(o) & (whole && !each ? ~unsigned(MPSIM_OPTIM_M) : ~0u);
    const struct {
        int lacks;
        const char *what;
    } rows[] = {
        {!t.param && !(t.model && t.remainder), "param"},
        {!t.grad, "grad"},
        {(arrays & MPSIM_OPTIM_M) && !t.m, "m"},
        {(arrays & MPSIM_OPTIM_V) && !t.v, "v"},
        {(arrays & MPSIM_OPTIM_VMAX) && !t.vmax, "vmax"},
        {g.compensates && !t.kahan, "kahan"},
        {whole && t.remainder, "a parameter in one piece"},
        {whole && each && t.n % each, "as many elements as whole matrices have"},
        {t.remainder && t.param, "param without a remainder"},
        {t.remainder && (g.param.kind != GPU_BINARY32 || g.model.convert != GPU_CVT_BF16),
         "binary32 masters of bf16 models, which alone have remainders"},
    };
    for (const auto &row : rows)
        if (row.lacks && t.n)
            return row.what;
    return NULL;
}

static unsigned fill(gpu_update *to, const mpsim_cuda_parameter &t)
{
    *to = gpu_update{{t.param, t.m, t.v, t.vmax, t.kahan, t.model, t.remainder, t.grad}, size_t(t.n), t.rng};
    return gpu_list_blocks(to->n);
}

/* Tensors that are stepped as a whole, one after the other, in one workspace. */
static mpsim_status step_whole(const gpu_optim &g, const mpsim_optim *o, uint64_t step, const mpsim_cuda_parameter *t,
                               size_t n, const mpsim_cuda_call *call)
{
    const mpsim_status s = has_room(call, OPTIMIZER, mpsim_cuda_optimizer_room(o, t, n));
    for (size_t i = 0; i < n && !s; i++) {
        gpu_adafactor a;
        if (t[i].n == 0)
            continue;
        adafactor::set(&a, g, o, step, t[i]);
        (void)adafactor::place(&a, o, t[i].n, call->room);
        adafactor::launch(stream_of(call), a);
    }
    return s ? s : launched(call, OPTIMIZER);
}

} // namespace library

size_t mpsim_cuda_optimizer_room(const mpsim_optim *o, const mpsim_cuda_parameter *t, size_t n)
{
    size_t most = 0;
    gpu_adafactor a;
    for (size_t i = 0; o && t && i < n && library::factors(o); i++) {
        const size_t own = library::adafactor::place(&a, o, t[i].n, NULL);
        most = own > most ? own : most;
    }
    return most;
}

mpsim_status mpsim_cuda_optimizer(const mpsim_cuda_optim *o, uint64_t step, const mpsim_cuda_parameter *t, size_t n,
                                  const mpsim_cuda_call *call)
{
    using namespace library;
    gpu_optim g;
    if (!call)
        return MPSIM_EINVAL;
    mpsim_optim optim;
    const mpsim_status s = set_step(&g, &optim, o, step, call);
    if (s)
        return s;
    if (n && !t)
        return refuse(call, MPSIM_EINVAL, "%s: no tensors are given", OPTIMIZER);
    for (size_t i = 0; i < n; i++)
        if (const char *const lack = lack_of(g, o->optim, t[i]))
            return refuse(call, MPSIM_EINVAL, "%s: tensor %zu needs %s", OPTIMIZER, i, lack);
    if (factors(&optim))
        return step_whole(g, &optim, step, t, n, call);
    const gpu_reference none = gpu_reference();
    gpu_updates list;
    for (size_t i = 0; i < n;) {
        unsigned blocks = 0;
        for (list.n = 0; i < n && list.n < unsigned(gpu_updates::ROOM); i++)
            if (const unsigned own = fill(&list.item[list.n], t[i]))
                list.end[list.n++] = blocks += own;
        if (blocks)
            optim_function<0>(g)(stream_of(call), blocks, g, none, list, NULL);
    }
    return launched(call, OPTIMIZER);
}
