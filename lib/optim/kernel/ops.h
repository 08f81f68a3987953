/* ops.h -- the tensor operations of ops.c in vectors: as loops over arrays, and strung together in
 * registers where nothing is rounded between them. Included by kernels.h only. */

/* ---- operations; s as in struct mpsim_op_rules, `low`: |s| < 0.5 ---- */

V_INLINE vf32 add_contracted(vf32 y, vf32 x, vf32 s) { return v_fma_f32(s, x, y); }
V_INLINE vf32 add_plain(vf32 y, vf32 x, vf32 s) { return y + s * x; }

V_INLINE vf32 lerp_cuda(vf32 y, vf32 x, vf32 s, int low)
{
    return low ? v_fma_f32(s, x - y, y) : v_fma_f32(-(x - y), v_f32(1) - s, x);
}

V_INLINE vf32 lerp_contracted(vf32 y, vf32 x, vf32 s, int low)
{
    return v_fma_f32(low ? s : s - v_f32(1), x - y, low ? y : x);
}

V_INLINE vf32 lerp_plain(vf32 y, vf32 x, vf32 s, int low) { return (low ? y : x) + (low ? s : s - v_f32(1)) * (x - y); }

V_INLINE vf32 addcmul_outer(vf32 y, vf32 a, vf32 b, vf32 s, int one)
{
    return one ? v_fma_f32(a, b, y) : v_fma_f32(s, a * b, y);
}

V_INLINE vf32 addcmul_inner(vf32 y, vf32 a, vf32 b, vf32 s) { return v_fma_f32(s * a, b, y); }
V_INLINE vf32 addcmul_plain(vf32 y, vf32 a, vf32 b, vf32 s) { return y + s * a * b; }
V_INLINE vf32 addcdiv_outer(vf32 y, vf32 a, vf32 b, vf32 s) { return v_fma_f32(s, a / b, y); }
V_INLINE vf32 addcdiv_inner(vf32 y, vf32 a, vf32 b, vf32 s) { return y + s * a / b; }

/* ---- over arrays ---- */

/* An operation over arrays: EXPRESSION of y, a, b, s. */
#define OP_LOOP(NAME, LOADS, EXPRESSION)                                                            \
    static size_t NAME(float *to, const float *from_a, const float *from_b, float scalar, size_t n) \
    {                                                                                               \
        const vf32 s = v_f32(scalar);                                                               \
        const int low = fabsf(scalar) < 0.5f, one = scalar == 1;                                    \
        size_t i = 0;                                                                               \
        (void)s, (void)low, (void)one, (void)from_a, (void)from_b;                                  \
        for (; i + V_LANES <= n; i += V_LANES) {                                                    \
            LOADS;                                                                                  \
            const vf32 result = EXPRESSION;                                                         \
            if (has_nan(result))                                                                    \
                break;                                                                              \
            v_store_f32(to + i, result);                                                            \
        }                                                                                           \
        return i;                                                                                   \
    }
#define LOAD_Y const vf32 y = v_load_f32(to + i)
#define LOAD_A const vf32 a = v_load_f32(from_a + i)
#define LOAD_B const vf32 b = v_load_f32(from_b + i)
#define LOAD_YA \
    LOAD_Y;     \
    LOAD_A
#define LOAD_YAB \
    LOAD_Y;      \
    LOAD_A;      \
    LOAD_B
OP_LOOP(op_scale, LOAD_A, a *s)
OP_LOOP(op_divide, LOAD_A, a / s)
OP_LOOP(op_shift, LOAD_A, a + s)
OP_LOOP(op_sqrt, LOAD_A, v_sqrt_f32(a))
OP_LOOP(op_larger, LOAD_YA, larger(y, a))
OP_LOOP(op_add, LOAD_YA, y + a)
OP_LOOP(op_multiply, LOAD_YA, y *a)
OP_LOOP(op_add_contracted, LOAD_YA, add_contracted(y, a, s))
OP_LOOP(op_add_plain, LOAD_YA, add_plain(y, a, s))
OP_LOOP(op_lerp_cuda, LOAD_YA, lerp_cuda(y, a, s, low))
OP_LOOP(op_lerp_contracted, LOAD_YA, lerp_contracted(y, a, s, low))
OP_LOOP(op_lerp_plain, LOAD_YA, lerp_plain(y, a, s, low))
OP_LOOP(op_addcmul_outer, LOAD_YAB, addcmul_outer(y, a, b, s, one))
OP_LOOP(op_addcmul_inner, LOAD_YAB, addcmul_inner(y, a, b, s))
OP_LOOP(op_addcmul_plain, LOAD_YAB, addcmul_plain(y, a, b, s))
OP_LOOP(op_addcdiv_outer, LOAD_YAB, addcdiv_outer(y, a, b, s))
OP_LOOP(op_addcdiv_inner, LOAD_YAB, addcdiv_inner(y, a, b, s))
#undef OP_LOOP
#undef LOAD_Y
#undef LOAD_A
#undef LOAD_B
#undef LOAD_YA
#undef LOAD_YAB

/* ---- strung together: the steps of ops.c, of lion.c and of optimi in lowp.c ---- */

enum ops_rules { OPS_CUDA, OPS_CPU, OPS_PLAIN };

V_INLINE vf32 ops_add(enum ops_rules r, vf32 y, vf32 x, vf32 s)
{
    return r == OPS_PLAIN ? add_plain(y, x, s) : add_contracted(y, x, s);
}

/* Its result in a format. As mpsim_op_add: on a CPU in two operations, of which scalar code rounds the product, too. */
V_INLINE vf32 held_add(enum ops_rules r, const held *h, vf32 y, vf32 x, vf32 s)
{
    if (h->in == MPSIM_HELD_EXACT || r == OPS_CUDA)
        return hold(h, ops_add(r, y, x, s));
    const vf32 product = s * x;
    return hold(h, y + (r == OPS_PLAIN ? hold(h, product) : product));
}

/* y = b y + s x, a product and a sum. */
V_INLINE vf32 held_follow(enum ops_rules r, const held *h, vf32 y, vf32 b, vf32 x, vf32 s)
{
    return held_add(r, h, hold(h, y * b), x, s);
}

V_INLINE vf32 ops_lerp(enum ops_rules r, vf32 y, vf32 x, vf32 s, int low)
{
    return r == OPS_CUDA  ? lerp_cuda(y, x, s, low)
           : r == OPS_CPU ? lerp_contracted(y, x, s, low)
                          : lerp_plain(y, x, s, low);
}

V_INLINE vf32 ops_addcmul(enum ops_rules r, vf32 y, vf32 a, vf32 b, vf32 s, int one)
{
    return r == OPS_CUDA  ? addcmul_outer(y, a, b, s, one)
           : r == OPS_CPU ? addcmul_inner(y, a, b, s)
                          : addcmul_plain(y, a, b, s);
}

V_INLINE vf32 ops_addcdiv(enum ops_rules r, vf32 y, vf32 a, vf32 b, vf32 s)
{
    return r == OPS_CUDA ? addcdiv_outer(y, a, b, s) : addcdiv_inner(y, a, b, s);
}

V_INLINE void sgd_by_ops(enum ops_rules r, const lanes *x, element *e)
{
    if (x->decays)
        e->g = held_add(r, &x->param, e->g, e->p, x->wd);
    if (x->has_momentum) {
        e->m = x->first ? hold(&x->state, e->g) : held_follow(r, &x->state, e->m, x->b1, e->g, x->rest);
        e->g = x->nesterov ? held_add(r, &x->param, e->g, e->m, x->momentum) : e->m;
    }
    e->p = held_add(r, &x->param, e->p, e->g, x->step_size);
}

V_INLINE void lion_by_ops(enum ops_rules r, const lanes *x, element *e)
{
    const vf32 u = held_follow(r, &x->state, e->m, x->b1, e->g, x->rest1);
    e->p = held_add(r, &x->param, hold(&x->param, e->p * x->kept), sign_of(u), x->step_size);
    e->m = held_follow(r, &x->state, e->m, x->b2, e->g, x->rest2);
}

V_INLINE void decay_by_ops(enum ops_rules r, const lanes *x, element *e)
{
    if (x->decays && x->decoupled)
        e->p = hold(&x->param, e->p * x->kept);
    else if (x->decays)
        e->g = held_add(r, &x->param, e->g, e->p, x->wd);
}

/* Decay and moments; the root of the second moment that is used. */
V_INLINE vf32 root_by_ops(enum ops_rules r, const lanes *x, element *e)
{
    decay_by_ops(r, x, e);
    e->m = hold(&x->state, ops_lerp(r, e->m, e->g, x->rest1, x->low));
    e->v = hold(&x->state, ops_addcmul(r, hold(&x->state, e->v * x->b2), e->g, e->g, x->rest2, x->one));
    return hold(&x->state, v_sqrt_f32(second_moment(x, e)));
}

V_INLINE void adam_by_ops(enum ops_rules r, const lanes *x, element *e, int reciprocal)
{
    const vf32 root = root_by_ops(r, x, e);
    const vf32 d = hold(&x->state, reciprocal ? root * x->root : root / x->root);
    e->p = hold(&x->param, ops_addcdiv(r, e->p, e->m, hold(&x->state, d + x->eps), x->step_size));
}

V_INLINE void adam_ops_reciprocal(const lanes *x, element *e) { adam_by_ops(OPS_CUDA, x, e, 1); }

/* The update is in the compensation: p gets it, and the compensation what p did not take. */
V_INLINE void compensate(enum ops_rules r, const lanes *x, element *e)
{
    const vf32 one = v_f32(1), old = e->p;
    e->p = held_add(r, &x->param, old, e->kahan, one);
    e->kahan = held_add(r, &x->param, e->kahan, held_add(r, &x->param, old, e->p, -one), one);
}

V_INLINE void sgd_by_optimi(enum ops_rules r, const lanes *x, element *e)
{
    vf32 *to = x->compensates ? &e->kahan : &e->p;
    decay_by_ops(r, x, e);
    if (x->has_momentum && x->dampened)
        e->g = e->m = hold(&x->state, ops_lerp(r, e->m, e->g, x->rest1, x->low));
    else if (x->has_momentum)
        e->g = e->m = held_follow(r, &x->state, e->m, x->b1, e->g, v_f32(1));
    *to = held_add(r, &x->param, *to, e->g, x->step_size);
    if (x->compensates)
        compensate(r, x, e);
}

V_INLINE void adam_by_optimi(enum ops_rules r, const lanes *x, element *e)
{
    const vf32 d = hold(&x->state, root_by_ops(r, x, e) + x->eps);
    vf32 *to = x->compensates ? &e->kahan : &e->p;
    *to = hold(&x->param, ops_addcdiv(r, *to, e->m, d, x->step_size));
    if (x->compensates)
        compensate(r, x, e);
}

V_INLINE void sgd_ops_cuda(const lanes *x, element *e) { sgd_by_ops(OPS_CUDA, x, e); }
V_INLINE void sgd_ops_cpu(const lanes *x, element *e) { sgd_by_ops(OPS_CPU, x, e); }
V_INLINE void sgd_ops_plain(const lanes *x, element *e) { sgd_by_ops(OPS_PLAIN, x, e); }
V_INLINE void lion_ops_cuda(const lanes *x, element *e) { lion_by_ops(OPS_CUDA, x, e); }
V_INLINE void lion_ops_cpu(const lanes *x, element *e) { lion_by_ops(OPS_CPU, x, e); }
V_INLINE void lion_ops_plain(const lanes *x, element *e) { lion_by_ops(OPS_PLAIN, x, e); }
V_INLINE void adam_ops_cuda(const lanes *x, element *e) { adam_by_ops(OPS_CUDA, x, e, 0); }
V_INLINE void adam_ops_cpu(const lanes *x, element *e) { adam_by_ops(OPS_CPU, x, e, 0); }
V_INLINE void adam_ops_plain(const lanes *x, element *e) { adam_by_ops(OPS_PLAIN, x, e, 0); }
V_INLINE void sgd_optimi_cuda(const lanes *x, element *e) { sgd_by_optimi(OPS_CUDA, x, e); }
V_INLINE void sgd_optimi_cpu(const lanes *x, element *e) { sgd_by_optimi(OPS_CPU, x, e); }
V_INLINE void sgd_optimi_plain(const lanes *x, element *e) { sgd_by_optimi(OPS_PLAIN, x, e); }
V_INLINE void adam_optimi_cuda(const lanes *x, element *e) { adam_by_optimi(OPS_CUDA, x, e); }
V_INLINE void adam_optimi_cpu(const lanes *x, element *e) { adam_by_optimi(OPS_CPU, x, e); }
V_INLINE void adam_optimi_plain(const lanes *x, element *e) { adam_by_optimi(OPS_PLAIN, x, e); }
