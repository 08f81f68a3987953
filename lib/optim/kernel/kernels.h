/* kernels.h -- the loops of kernel.h in the words of lib/simd/generic.h; included once by the unit of
 * each instruction set. */
#include "kernel.h"

#include <math.h>

#include "../../round/kernel/philox.h"
#include "held.h"

#include "fused.h"
#include "ops.h"
#include "gradient.h"
#include "moves.h"

/* ---- steps ---- */

static inline lanes lanes_of(const mpsim_optim_job *j)
{
    const mpsim_optim *o = j->o;
    const mpsim_optim_numbers *x = &j->x;
    return (lanes){.lr = v_f32(x->lr),
                   .wd = v_f32(x->wd),
                   .eps = v_f32(x->eps),
                   .momentum = v_f32(x->momentum),
                   .rest = v_f32(x->rest),
                   .b1 = v_f32(x->b1),
                   .b2 = v_f32(x->b2),
                   .rest1 = v_f32(x->rest1),
                   .rest2 = v_f32(x->rest2),
                   .bc1 = v_f32(x->bc1),
                   .bc2 = v_f32(x->bc2),
                   .root = v_f32(x->root),
                   .step_size = v_f32(x->step_size),
                   .kept = v_f32(x->kept),
                   .decay = v_f32(x->decay),
                   .decays = x->decays,
                   .decoupled = j->traits->decoupled,
                   .has_momentum = x->has_momentum,
                   .first = j->step == 1,
                   .nesterov = o->nesterov,
                   .amsgrad = o->amsgrad,
                   .dampened = o->dampening != 0,
                   .low = fabsf(x->rest1) < 0.5f,
                   .low_v = x->rest2 < 0.5f,
                   .one = x->rest2 == 1,
                   .compensates = o->store == MPSIM_STORE_KAHAN,
                   .param = held_of(&j->param),
                   .state = held_of(&j->state),
                   .o = o};
}

/* A gradient as it enters a step. */
V_INLINE vf32 start(const mpsim_optim_numbers *x, vf32 g)
{
    if (x->divides)
        g = g / v_f32(x->grad_scale);
    else if (x->multiplies)
        g = g * v_f32(x->grad_scale);
    return x->negates ? -g : g;
}

/* The arrays that a step has. */
typedef struct has {
    int m, v, vmax, kahan;
} has;

V_INLINE element load(const has *h, const mpsim_optim_numbers *x, const mpsim_optim_block *from, size_t i)
{
    const vf32 none = v_f32(0);
    return (element){.p = v_load_f32(from->p + i),
                     .g = start(x, v_load_f32(from->g + i)),
                     .m = h->m ? v_load_f32(from->m + i) : none,
                     .v = h->v ? v_load_f32(from->v + i) : none,
                     .vmax = h->vmax ? v_load_f32(from->vmax + i) : none,
                     .kahan = h->kahan ? v_load_f32(from->kahan + i) : none};
}

V_INLINE void store(const has *h, const mpsim_optim_results *to, float *kahan, const element *e, size_t i)
{
    v_store_f32(to->p + i, e->p);
    if (h->m)
        v_store_f32(to->m + i, e->m);
    if (h->v)
        v_store_f32(to->v + i, e->v);
    if (h->vmax)
        v_store_f32(to->vmax + i, e->vmax);
    if (h->kahan)
        v_store_f32(kahan + i, e->kahan);
}

V_INLINE int any_nan(const element *e)
{
    const m32 first = m32_and(v_eq_f32(e->p, e->p), v_eq_f32(e->g, e->g));
    const m32 last = m32_and(v_eq_f32(e->m, e->m), m32_and(v_eq_f32(e->v, e->v), v_eq_f32(e->kahan, e->kahan)));
    return m32_any(m32_not(m32_and(first, last)));
}

/* What a step stores that does not round on its way; `words` of a stochastic store, else NULL. */
V_INLINE void hold_all(const lanes *x, element *e, const uint32_t *words)
{
    e->p = words ? hold_drawn(&x->param, e->p, v_load_u32(words)) : hold(&x->param, e->p);
    e->m = hold(&x->state, e->m);
    e->v = hold(&x->state, e->v);
    e->vmax = hold(&x->state, e->vmax);
}

/* rounds: whether results are rounded, by the step itself or after it. */
V_INLINE size_t run(const mpsim_optim_job *j, const mpsim_optim_block *b, const mpsim_optim_results *r,
                    mpsim_optim_algorithm family, int rounds_itself, element_function *step)
{
    const lanes x = lanes_of(j);
    const mpsim_optim_numbers numbers = j->x;
    const mpsim_optim_block from = *b;
    const mpsim_optim_results to = *r;
    const int adam = family == MPSIM_OPTIM_ADAM, lion = family == MPSIM_OPTIM_LION;
    const has h = {adam || lion || x.has_momentum, adam, adam && x.amsgrad, rounds_itself && x.compensates};
    const int rounds = to.rounds && (x.param.in || x.state.in), after = rounds && !rounds_itself;
    const int draws = after && j->o->store == MPSIM_STORE_STOCHASTIC && x.param.in;
    words_source words;
    size_t i = 0;
    if (draws)
        words_begin(&words, NULL, j->rng->seed, j->rng->stream, j->rng->index + b->at);
    for (; i + V_LANES <= from.n; i += V_LANES) {
        element e = load(&h, &numbers, &from, i);
        if (rounds && any_nan(&e))
            break;
        step(&x, &e);
        if (has_nan(e.p) || (h.kahan && has_nan(e.kahan)) || (lion && has_nan(e.m)))
            break; /* p is a NaN where a gradient or moment is, but for a sign of them */
        if (after)
            hold_all(&x, &e, draws ? words_at(&words, i) : NULL);
        store(&h, &to, from.kahan, &e, i);
    }
    return i;
}

#define STEP(NAME, FAMILY) STEP_OF(NAME, FAMILY, 0)
#define STEP_HOLDS(NAME, FAMILY) STEP_OF(NAME, FAMILY, 1)
#define STEP_OF(NAME, FAMILY, ROUNDS)                                                                             \
    static size_t step_##NAME(const mpsim_optim_job *j, const mpsim_optim_block *b, const mpsim_optim_results *r) \
    {                                                                                                             \
        return run(j, b, r, MPSIM_OPTIM_##FAMILY, ROUNDS, NAME);                                                  \
    }
STEP(sgd_ieee, SGD)
STEP(sgd_fused_double, SGD)
STEP(sgd_fused_float, SGD)
STEP(sgd_fused_cpu, SGD)
STEP(sgd_fused_cpu_plain, SGD)
STEP_HOLDS(sgd_ops_cuda, SGD)
STEP_HOLDS(sgd_ops_cpu, SGD)
STEP_HOLDS(sgd_ops_plain, SGD)
STEP_HOLDS(sgd_optimi_cuda, SGD)
STEP_HOLDS(sgd_optimi_cpu, SGD)
STEP_HOLDS(sgd_optimi_plain, SGD)
STEP_HOLDS(sgd_triton, SGD)
STEP(adam_ieee, ADAM)
STEP(adam_fused_double, ADAM)
STEP(adam_fused_float, ADAM)
STEP(adam_fused_cpu, ADAM)
STEP(adam_fused_cpu_plain, ADAM)
STEP(adam_apex, ADAM)
STEP(adam_torchao, ADAM)
STEP(adam_torchao_plain, ADAM)
STEP_HOLDS(adam_ops_reciprocal, ADAM)
STEP_HOLDS(adam_ops_cuda, ADAM)
STEP_HOLDS(adam_ops_cpu, ADAM)
STEP_HOLDS(adam_ops_plain, ADAM)
STEP_HOLDS(adam_optimi_cuda, ADAM)
STEP_HOLDS(adam_optimi_cpu, ADAM)
STEP_HOLDS(adam_optimi_plain, ADAM)
STEP_HOLDS(adam_triton, ADAM)
STEP(lion_ieee, LION)
STEP_HOLDS(lion_ops_cuda, LION)
STEP_HOLDS(lion_ops_cpu, LION)
STEP_HOLDS(lion_ops_plain, LION)
#undef STEP
#undef STEP_HOLDS
#undef STEP_OF

/* ---- all ---- */

const mpsim_optim_kernels V_NAME(mpsim_optim_kernels) = {
    .step = {[MPSIM_STEP_SGD_IEEE] = step_sgd_ieee,
             [MPSIM_STEP_SGD_FUSED_DOUBLE] = step_sgd_fused_double,
             [MPSIM_STEP_SGD_FUSED_FLOAT] = step_sgd_fused_float,
             [MPSIM_STEP_SGD_FUSED_CPU] = step_sgd_fused_cpu,
             [MPSIM_STEP_SGD_FUSED_CPU_PLAIN] = step_sgd_fused_cpu_plain,
             [MPSIM_STEP_SGD_OPS_CUDA] = step_sgd_ops_cuda,
             [MPSIM_STEP_SGD_OPS_CPU] = step_sgd_ops_cpu,
             [MPSIM_STEP_SGD_OPS_PLAIN] = step_sgd_ops_plain,
             [MPSIM_STEP_SGD_OPTIMI_CUDA] = step_sgd_optimi_cuda,
             [MPSIM_STEP_SGD_OPTIMI_CPU] = step_sgd_optimi_cpu,
             [MPSIM_STEP_SGD_OPTIMI_PLAIN] = step_sgd_optimi_plain,
             [MPSIM_STEP_SGD_TRITON] = step_sgd_triton,
             [MPSIM_STEP_ADAM_IEEE] = step_adam_ieee,
             [MPSIM_STEP_ADAM_FUSED_DOUBLE] = step_adam_fused_double,
             [MPSIM_STEP_ADAM_FUSED_FLOAT] = step_adam_fused_float,
             [MPSIM_STEP_ADAM_FUSED_CPU] = step_adam_fused_cpu,
             [MPSIM_STEP_ADAM_FUSED_CPU_PLAIN] = step_adam_fused_cpu_plain,
             [MPSIM_STEP_ADAM_APEX] = step_adam_apex,
             [MPSIM_STEP_ADAM_TORCHAO] = step_adam_torchao,
             [MPSIM_STEP_ADAM_TORCHAO_PLAIN] = step_adam_torchao_plain,
             [MPSIM_STEP_ADAM_OPS_RECIPROCAL] = step_adam_ops_reciprocal,
             [MPSIM_STEP_ADAM_OPS_CUDA] = step_adam_ops_cuda,
             [MPSIM_STEP_ADAM_OPS_CPU] = step_adam_ops_cpu,
             [MPSIM_STEP_ADAM_OPS_PLAIN] = step_adam_ops_plain,
             [MPSIM_STEP_ADAM_OPTIMI_CUDA] = step_adam_optimi_cuda,
             [MPSIM_STEP_ADAM_OPTIMI_CPU] = step_adam_optimi_cpu,
             [MPSIM_STEP_ADAM_OPTIMI_PLAIN] = step_adam_optimi_plain,
             [MPSIM_STEP_ADAM_TRITON] = step_adam_triton,
             [MPSIM_STEP_LION_IEEE] = step_lion_ieee,
             [MPSIM_STEP_LION_OPS_CUDA] = step_lion_ops_cuda,
             [MPSIM_STEP_LION_OPS_CPU] = step_lion_ops_cpu,
             [MPSIM_STEP_LION_OPS_PLAIN] = step_lion_ops_plain},
    .op = {[MPSIM_OP_SCALE] = op_scale,
           [MPSIM_OP_DIVIDE] = op_divide,
           [MPSIM_OP_SHIFT] = op_shift,
           [MPSIM_OP_SQRT] = op_sqrt,
           [MPSIM_OP_LARGER] = op_larger,
           [MPSIM_OP_ADD] = op_add,
           [MPSIM_OP_MULTIPLY] = op_multiply,
           [MPSIM_OP_ADD_CONTRACTED] = op_add_contracted,
           [MPSIM_OP_ADD_SCALED] = op_add_contracted,
           [MPSIM_OP_ADD_PLAIN] = op_add_plain,
           [MPSIM_OP_LERP_CUDA] = op_lerp_cuda,
           [MPSIM_OP_LERP_CONTRACTED] = op_lerp_contracted,
           [MPSIM_OP_LERP_PLAIN] = op_lerp_plain,
           [MPSIM_OP_ADDCMUL_OUTER] = op_addcmul_outer,
           [MPSIM_OP_ADDCMUL_INNER] = op_addcmul_inner,
           [MPSIM_OP_ADDCMUL_PLAIN] = op_addcmul_plain,
           [MPSIM_OP_ADDCDIV_OUTER] = op_addcdiv_outer,
           [MPSIM_OP_ADDCDIV_INNER] = op_addcdiv_inner},
    .scale = scale_array,
    .squares = squares,
    .reference = reference_step,
    .moves = moves,
};
