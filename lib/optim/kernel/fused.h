/* fused.h -- an element's step in vectors: what fused.c, lowp.c and the textbook's Lion of lion.c
 * do with numbers in registers. Included by kernels.h only. */

/* An element of each lane, and what a step does with all of them. */
typedef struct element {
    vf32 p, g, m, v, vmax, kahan;
} element;

typedef struct lanes {
    vf32 lr, wd, eps, momentum, rest, b1, b2, rest1, rest2, bc1, bc2, root, step_size, kept, decay;
    int decays, decoupled, has_momentum, first, nesterov, amsgrad, dampened;
    int low, low_v, one;  /* rest1, rest2 below 1/2; rest2 is 1 */
    int compensates;      /* Kahan summation */
    held param, state;    /* of steps that round on their way */
    const mpsim_optim *o; /* for binary64 */
} lanes;

typedef void element_function(const lanes *x, element *e);

V_INLINE vf32 fused_if(int contracted, vf32 a, vf32 b, vf32 c) { return contracted ? v_fma_f32(a, b, c) : a * b + c; }

V_INLINE vf32 larger(vf32 a, vf32 b)
{
    const m32 first = m32_or(v_gt_f32(a, b), m32_not(v_eq_f32(a, a)));
    return (vf32)v_pick_u32(first, (vu32)a, (vu32)b);
}

/* The second moment that is used. */
V_INLINE vf32 second_moment(const lanes *x, element *e)
{
    if (!x->amsgrad)
        return e->v;
    e->vmax = larger(e->vmax, e->v);
    return e->vmax;
}

/* ---- binary64 ---- */

/* x + a y, rounded once each to binary64, then to binary32. */
V_INLINE vf32 wide_add(vf32 x, double a, vf32 y)
{
    const vf64 s = v_f64(a);
    return v_narrow_f32(v_first_f64(x) + s * v_first_f64(y), v_last_f64(x) + s * v_last_f64(y));
}

V_INLINE vf32 wide_subtract(vf32 x, double a, vf32 y)
{
    const vf64 s = v_f64(a);
    return v_narrow_f32(v_first_f64(x) - s * v_first_f64(y), v_last_f64(x) - s * v_last_f64(y));
}

/* a x + b y */
V_INLINE vf32 wide_combine(double a, vf32 x, double b, vf32 y)
{
    const vf64 s = v_f64(a), t = v_f64(b);
    return v_narrow_f32(s * v_first_f64(x) + t * v_first_f64(y), s * v_last_f64(x) + t * v_last_f64(y));
}

/* a x + b y y */
V_INLINE vf32 wide_squares(double a, vf32 x, double b, vf32 y)
{
    const vf64 s = v_f64(a), t = v_f64(b), first = v_first_f64(y), last = v_last_f64(y);
    return v_narrow_f32(s * v_first_f64(x) + t * first * first, s * v_last_f64(x) + t * last * last);
}

V_INLINE void sgd_fused_double(const lanes *x, element *e)
{
    const mpsim_optim *o = x->o;
    if (x->decays)
        e->g = wide_add(e->g, o->weight_decay, e->p);
    if (x->has_momentum) {
        e->m = x->first ? e->g : wide_combine(o->momentum, e->m, 1 - o->dampening, e->g);
        e->g = x->nesterov ? wide_add(e->g, o->momentum, e->m) : e->m;
    }
    e->p = wide_subtract(e->p, o->lr, e->g);
}

V_INLINE void adam_fused_double(const lanes *x, element *e)
{
    const mpsim_optim *o = x->o;
    if (x->decays && x->decoupled)
        e->p = wide_subtract(e->p, o->lr * o->weight_decay, e->p);
    else if (x->decays)
        e->g = wide_add(e->g, o->weight_decay, e->p);
    e->m = wide_combine(o->beta1, e->m, 1 - o->beta1, e->g);
    e->v = wide_squares(o->beta2, e->v, 1 - o->beta2, e->g);
    const vf32 root = v_sqrt_f32(second_moment(x, e)) / x->root;
    const vf64 eps = v_f64(o->eps);
    const vf32 denominator = v_narrow_f32(v_first_f64(root) + eps, v_last_f64(root) + eps);
    e->p = e->p - x->step_size * e->m / denominator;
}

/* ---- binary32 ---- */

/* Of Apex. */
V_INLINE void sgd_fused_float(const lanes *x, element *e)
{
    if (x->decays)
        e->g = v_fma_f32(x->wd, e->p, e->g);
    if (x->has_momentum) {
        e->m = x->first ? e->g : v_fma_f32(x->momentum, e->m, x->rest * e->g);
        e->g = x->nesterov ? v_fma_f32(x->momentum, e->m, e->g) : e->m;
    }
    e->p = v_fma_f32(-x->lr, e->g, e->p);
}

V_INLINE void adam_fused_float(const lanes *x, element *e)
{
    if (x->decays && x->decoupled)
        e->p = v_fma_f32(-x->decay, e->p, e->p);
    else if (x->decays)
        e->g = v_fma_f32(e->p, x->wd, e->g);
    const vf32 square = e->g * e->g;
    e->m = v_fma_f32(x->b1, e->m, v_fma_f32(-x->b1, e->g, e->g));
    e->v = v_fma_f32(x->b2, e->v, v_fma_f32(-x->b2, square, square));
    const vf32 v = second_moment(x, e);
    e->p = e->p - x->step_size * e->m / (v_sqrt_f32(v) / x->root + x->eps);
}

V_INLINE void sgd_cpu(const lanes *x, element *e, int contracted)
{
    if (x->decays)
        e->g = fused_if(contracted, e->p, x->wd, e->g);
    if (x->has_momentum) {
        e->m = x->first ? e->g : fused_if(contracted, e->g, x->rest, e->m * x->momentum);
        e->g = x->nesterov ? fused_if(contracted, e->m, x->momentum, e->g) : e->m;
    }
    e->p = fused_if(contracted, e->g, -x->lr, e->p);
}

V_INLINE void sgd_fused_cpu(const lanes *x, element *e) { sgd_cpu(x, e, 1); }
V_INLINE void sgd_fused_cpu_plain(const lanes *x, element *e) { sgd_cpu(x, e, 0); }

V_INLINE void adam_cpu(const lanes *x, element *e, int contracted)
{
    if (x->decays && x->decoupled)
        e->p *= x->kept;
    else if (x->decays)
        e->g = fused_if(contracted, e->p, x->wd, e->g);
    e->m = x->low ? fused_if(contracted, x->rest1, e->g - e->m, e->m)
                  : fused_if(contracted, x->rest1 - v_f32(1), e->g - e->m, e->g);
    e->v = fused_if(contracted, x->rest2 * e->g, e->g, e->v * x->b2);
    const vf32 v = second_moment(x, e);
    e->p = e->p - x->step_size * e->m / (v_sqrt_f32(v) / x->root + x->eps);
}

V_INLINE void adam_fused_cpu(const lanes *x, element *e) { adam_cpu(x, e, 1); }
V_INLINE void adam_fused_cpu_plain(const lanes *x, element *e) { adam_cpu(x, e, 0); }

V_INLINE void adam_apex(const lanes *x, element *e)
{
    if (!x->decoupled)
        e->g = v_fma_f32(x->wd, e->p, e->g);
    e->m = v_fma_f32(e->m, x->b1, x->rest1 * e->g);
    e->v = v_fma_f32(e->v, x->b2, e->g * (x->rest2 * e->g));
    vf32 update = e->m / x->bc1 / (v_sqrt_f32(e->v / x->bc2) + x->eps);
    if (x->decoupled)
        update = v_fma_f32(x->wd, e->p, update);
    e->p = v_fma_f32(-x->lr, update, e->p);
}

V_INLINE void sgd_ieee(const lanes *x, element *e)
{
    if (x->decays)
        e->g = e->g + x->wd * e->p;
    if (x->has_momentum) {
        e->m = x->first ? e->g : x->momentum * e->m + x->rest * e->g;
        e->g = x->nesterov ? e->g + x->momentum * e->m : e->m;
    }
    e->p = e->p - x->lr * e->g;
}

/* -1, 0 or 1; +0 of zeros and NaNs. */
V_INLINE vf32 sign_of(vf32 a)
{
    const vf32 zero = v_f32(0);
    const vu32 below = v_pick_u32(v_gt_f32(zero, a), (vu32)v_f32(-1), (vu32)zero);
    return (vf32)v_pick_u32(v_gt_f32(a, zero), (vu32)v_f32(1), below);
}

V_INLINE void lion_ieee(const lanes *x, element *e)
{
    const vf32 kept = x->decays ? e->p - x->decay * e->p : e->p;
    e->p = kept - x->lr * sign_of(x->b1 * e->m + x->rest1 * e->g);
    e->m = x->b2 * e->m + x->rest2 * e->g;
}

V_INLINE void adam_ieee(const lanes *x, element *e)
{
    if (x->decays && x->decoupled)
        e->p = e->p - x->decay * e->p;
    else if (x->decays)
        e->g = e->g + x->wd * e->p;
    e->m = x->b1 * e->m + x->rest1 * e->g;
    e->v = x->b2 * e->v + x->rest2 * (e->g * e->g);
    const vf32 v = second_moment(x, e);
    e->p = e->p - x->lr * (e->m / x->bc1) / (v_sqrt_f32(v / x->bc2) + x->eps);
}

/* ---- torchao, optimi's Triton kernels ---- */

V_INLINE vf32 torchao_lerp(int contracted, vf32 s, vf32 e, vf32 w, int low)
{
    return fused_if(contracted, low ? w : w - v_f32(1), e - s, low ? s : e);
}

V_INLINE void torchao(const lanes *x, element *e, int contracted)
{
    if (x->decoupled)
        e->p = e->p - x->decay * e->p;
    else
        e->g = e->g + x->wd * e->p;
    e->m = torchao_lerp(contracted, e->m, e->g, x->rest1, x->low);
    e->v = torchao_lerp(contracted, e->v, e->g * e->g, x->rest2, x->low_v);
    const vf32 v = second_moment(x, e);
    e->p = e->p - x->lr * (e->m / x->bc1) / (v_sqrt_f32(v) / x->root + x->eps);
}

V_INLINE void adam_torchao(const lanes *x, element *e) { torchao(x, e, 1); }
V_INLINE void adam_torchao_plain(const lanes *x, element *e) { torchao(x, e, 0); }

V_INLINE void start_triton(const lanes *x, element *e)
{
    if (x->decays && x->decoupled)
        e->p = hold(&x->param, e->p * x->kept);
    else if (x->decays)
        e->g = v_fma_f32(x->wd, e->p, e->g);
}

/* As finish_triton of lowp.c. */
V_INLINE void finish_triton(const lanes *x, element *e, vf32 k)
{
    const vf32 sum = hold(&x->param, hold(&x->param, k) + e->p);
    if (x->compensates)
        e->kahan = hold(&x->param, k + e->p - sum);
    e->p = sum;
}

/* What an update is subtracted from. */
V_INLINE vf32 compensation(const lanes *x, const element *e) { return x->compensates ? e->kahan : v_f32(0); }

V_INLINE void sgd_triton(const lanes *x, element *e)
{
    start_triton(x, e);
    if (x->has_momentum)
        e->g = v_fma_f32(e->m, x->momentum, x->rest * e->g);
    e->m = hold(&x->state, e->g);
    finish_triton(x, e, v_fma_f32(-x->lr, e->g, compensation(x, e)));
}

V_INLINE void adam_triton(const lanes *x, element *e)
{
    start_triton(x, e);
    e->m = v_fma_f32(e->m, x->b1, x->rest1 * e->g);
    e->v = v_fma_f32(e->v, x->b2, x->rest2 * e->g * e->g);
    finish_triton(x, e, compensation(x, e) - x->lr * e->m / (v_sqrt_f32(e->v) + x->eps));
    e->m = hold(&x->state, e->m);
    e->v = hold(&x->state, e->v);
}
