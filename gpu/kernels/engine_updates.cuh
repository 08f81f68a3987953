/* engine_updates.cuh -- the optimizer's operation. */
#pragma once

#include "engine.cuh"
#include "engine_lists.cuh"
#include "optimizer.cuh"

/* The arguments of a kernel for one update, except its tensors. */
static int optim_set(train_engine *e, const train_update *u, gpu_optim *g, gpu_reference *r)
{
    const mpsim_optim *o = u->optim;
    if (!mpsim_optim_traits_of(o->algorithm)->cuda)
        return cuda_fail(e, "optim: the device has no %s", mpsim_optim_traits_of(o->algorithm)->title);
    gpu_format state;
    if (gpu_format_set(&state, &o->state))
        return cuda_fail(e, "optim: the device has no tensors of %s", o->state.name);
    if (gpu_optim_set(g, o, u->step, u->grad->format) || u->kahan)
        return cuda_fail(e, "optim: the device has no kernel for variant %s", o->variant->name);
    *r = gpu_reference_of(o, u->step);
    return 0;
}

static int alike_updates(const train_update *a, const train_update *b)
{
    const mpsim_optim *p = a->optim, *q = b->optim;
    return a->step == b->step && mpsim_format_same(a->grad->format, b->grad->format) &&
           mpsim_format_same(&p->param, &q->param) && mpsim_format_same(&p->state, &q->state) &&
           p->variant == q->variant && p->algorithm == q->algorithm && p->store == q->store &&
           p->nesterov == q->nesterov && p->amsgrad == q->amsgrad && p->maximize == q->maximize && p->lr == q->lr &&
           p->momentum == q->momentum && p->dampening == q->dampening && p->weight_decay == q->weight_decay &&
           p->beta1 == q->beta1 && p->beta2 == q->beta2 && p->eps == q->eps && p->grad_scale == q->grad_scale;
}

static unsigned optim_fill(gpu_update *to, const train_update *u)
{
    *to = gpu_update{{at_of(u->param), at_of(u->m), at_of(u->v), at_of(u->vmax), NULL, NULL, NULL, at_of(u->grad)},
                     size_of(u->param),
                     u->rng ? *u->rng : mpsim_rng{0, 0, 0}};
    return gpu_list_blocks(to->n);
}

static int cuda_optim(train_engine *e, const train_update *list, size_t n, uint64_t *updates, uint64_t *lost)
{
    gpu_optim g;
    gpu_reference r;
    gpu_updates now;
    size_t first = 0;
    unsigned blocks;
    for (size_t i = 0; i < n; i++)
        if (optim_set(e, &list[i], &g, &r))
            return -1;
    gpu_word *moved = updates || lost ? slot_for(e, CUDA_MOVED, updates, lost) : NULL;
    unsigned char *taken = untaken(e, n);
    if (!taken || ((updates || lost) && !moved))
        return -1;
    const auto alike = [&](size_t a, size_t b) { return alike_updates(&list[a], &list[b]); };
    const auto fill = [&](gpu_update *to, size_t i) { return optim_fill(to, &list[i]); };
    while ((blocks = gpu_list_next(&now, taken, n, &first, alike, fill)) > 0) {
        if (optim_set(e, &list[first], &g, &r))
            return -1;
        optim_function<1>(g)(NULL, blocks, g, r, now, moved);
    }
    return cuda_launched(e, "optim");
}
