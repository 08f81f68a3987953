/* engine_updates.cuh -- operations on gradients, and the optimizer's. */
#ifndef MPSIM_GPU_KERNELS_ENGINE_UPDATES_CUH
#define MPSIM_GPU_KERNELS_ENGINE_UPDATES_CUH

#include "elements.cuh"
#include "engine.cuh"
#include "optimizer.cuh"

/* ---- gradients ---- */

static int cuda_unscale(train_engine *e, train_tensor *y, const train_tensor *x,
                        mpsim_unscale_rule rule, double scale, unsigned *found)
{
    cuda_self *self = self_of(e);
    if (check(e, "unscale", x) || check_shape(e, "unscale", y, x->rows, x->cols))
        return -1;
    const size_t n = size_of(x);
    const int divide = rule == MPSIM_UNSCALE_DIVIDE;
    float factor = divide ? (float)scale : mpsim_unscale_factor(scale);
    if (rule == MPSIM_UNSCALE_ROUNDED)
        factor = mpsim_math_round(&format_of(y).math, factor);
    if (found && results_begin(e, "unscale"))
        return -1;
    GPU_LAUNCH(unscale_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0,
               format_of(y), at_of(y), format_of(x), at_of(x), n, factor, divide,
               found ? &self->results->found : static_cast<unsigned *>(NULL));
    y->inverse = 1;
    if (!found)
        return cuda_launched(e, "unscale");
    const cuda_results *r = results_end(e, "unscale");
    if (r)
        *found |= r->found;
    return r ? 0 : -1;
}

static int cuda_norm(train_engine *e, const train_tensor *x, const mpsim_format *f, float *norm)
{
    cuda_self *self = self_of(e);
    if (check(e, "norm", x))
        return -1;
    if (!norm)
        return cuda_fail(e, "norm: nowhere to put it");
    const size_t n = size_of(x);
    if (results_begin(e, "norm"))
        return -1;
    GPU_LAUNCH(squares_kernel, blocks_of(n, GPU_LIST_THREADS), GPU_LIST_THREADS, 0, format_of(x),
               at_of(x), n, &self->results->squares);
    const cuda_results *r = results_end(e, "norm");
    if (r)
        *norm = gpu_squares_norm(&r->squares, f);
    return r ? 0 : -1;
}

static int cuda_scale(train_engine *e, train_tensor *x, float factor)
{
    if (check(e, "scale", x))
        return -1;
    const size_t n = size_of(x);
    GPU_LAUNCH(unscale_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0,
               format_of(x), at_of(x), format_of(x), at_of(x), n, factor, 0,
               static_cast<unsigned *>(NULL));
    return cuda_launched(e, "scale");
}

/* ---- the optimizer ---- */

/* NULL, or like the parameter. */
static int check_like(train_engine *e, const train_tensor *x, const train_tensor *param,
                      const mpsim_format *f)
{
    if (!x)
        return 0;
    return check_shape(e, "optim", x, param->rows, param->cols) ||
           (f && check_formats(e, "optim", x->format, f));
}

static int check_update(train_engine *e, const mpsim_optim *o, const train_update *u)
{
    if (!o || !u || !o->variant)
        return cuda_fail(e, "optim: an optimizer or its tensors are missing");
    const mpsim_status s = mpsim_optim_check(o);
    if (s)
        return cuda_fail(e, "optim: %s of %s in %s: %s", o->variant->name,
                         mpsim_optim_name((mpsim_optim_algorithm)o->algorithm), o->param.name,
                         mpsim_status_string(s));
    const int adam = o->algorithm != MPSIM_OPTIM_SGD;
    if (((adam || o->momentum != 0) && !u->m) || (adam && !u->v) || (o->amsgrad && !u->vmax))
        return cuda_fail(e, "optim: a state is missing");
    return check(e, "optim", u->param) || check(e, "optim", u->grad) ||
                   check_formats(e, "optim", u->param->format, &o->param) ||
                   check_like(e, u->grad, u->param, NULL) ||
                   check_like(e, u->m, u->param, &o->state) ||
                   check_like(e, u->v, u->param, &o->state) ||
                   check_like(e, u->vmax, u->param, &o->state)
               ? -1
               : 0;
}

static int cuda_optim(train_engine *e, const mpsim_optim *o, uint64_t step, const train_update *u,
                      const mpsim_rng *rng, uint64_t *updates, uint64_t *lost)
{
    cuda_self *self = self_of(e);
    gpu_optim g;
    gpu_reference r;
    const int counting = updates || lost;
    if (check_update(e, o, u))
        return -1;
    if (step == 0 || (o->store == MPSIM_STORE_STOCHASTIC && !rng))
        return cuda_fail(e, "optim: a step from 1 and random bits are needed");
    if (gpu_optim_set(&g, &r, o, step) || u->kahan)
        return cuda_fail(e, "optim: the device has no kernel for variant %s", o->variant->name);
    const gpu_optim_tensors t = {at_of(u->param), at_of(u->m), at_of(u->v), at_of(u->vmax),
                                 at_of(u->grad)};
    g.param = format_of(u->param);
    g.grad = format_of(u->grad);
    if (gpu_format_set(&g.state, &o->state))
        return cuda_fail(e, "optim: the device has no tensors of %s", o->state.name);
    if (rng)
        g.rng = *rng;
    g.n = size_of(u->param);
    if (counting && results_begin(e, "optim"))
        return -1;
    GPU_LAUNCH(optim_kernel, blocks_of(g.n, 256), 256, 0, g, t, r,
               counting ? self->results->moved : static_cast<gpu_word *>(NULL));
    if (!counting)
        return cuda_launched(e, "optim");
    const cuda_results *result = results_end(e, "optim");
    if (result && updates)
        *updates += result->moved[0];
    if (result && lost)
        *lost += result->moved[1];
    return result ? 0 : -1;
}

#endif
