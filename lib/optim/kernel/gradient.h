/* gradient.h -- gradients and binary64 steps in vectors: what gradient.c and reference.c do. Included
 * by kernels.h only. */

static size_t scale_array(float *y, const float *x, float scalar, int divides, size_t n, uint32_t *in, uint32_t *out)
{
    const vf32 s = v_f32(scalar);
    const vu32 magnitude = v_u32(0x7fffffff);
    vu32 largest_in = v_u32(*in), largest_out = v_u32(*out);
    size_t i = 0;
    for (; i + V_LANES <= n; i += V_LANES) {
        const vf32 a = v_load_f32(x + i), b = divides ? a / s : a * s;
        v_store_f32(y + i, b);
        largest_in = v_max_u32(largest_in, (vu32)a & magnitude);
        largest_out = v_max_u32(largest_out, (vu32)b & magnitude);
    }
    *in = v_reduce_max_u32(largest_in);
    *out = v_reduce_max_u32(largest_out);
    return i;
}

/* ---- sums of squares ----
 *
 * A square of binary32 is a binary64 number. With sigma = 1.5 * 2^52 * u, acc + x, acc in [2^52 u,
 * 2^53 u), is rounded to a multiple of u: what it takes of x is their difference, exactly, and x without
 * it is left, exactly, at most u / 2. So a level with a u of its own sums what it takes without error
 * as long as the sum stays below 2^51 u; what it leaves goes to the next one. */

enum { SQUARES_BITS = 42 }; /* elements below 2^42 u at each level: 2^10 of them stay below 2^52 u */

typedef struct level {
    vf64 first, last; /* of the halves of a vector */
} level;

V_INLINE vf64 deposit(vf64 *acc, vf64 x)
{
    const vf64 sum = *acc + x, taken = sum - *acc;
    *acc = sum;
    return x - taken;
}

V_INLINE double sum_f64(vf64 a)
{
    double lane[V_LANES / 2], sum = 0;
    v_store_f64(lane, a);
    for (int i = 0; i < V_LANES / 2; i++)
        sum += lane[i];
    return sum;
}

static inline double power_of_two(int e)
{
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* top: the squares are below 2^top. Whether nothing is left after `levels` levels. */
V_INLINE int squares_by(double *parts, const float *x, size_t n, int top, const int levels)
{
    level acc[MPSIM_SQUARES_PARTS];
    vf64 sigma[MPSIM_SQUARES_PARTS], left = v_f64(0);
    for (int k = 0; k < levels; k++) { /* what is left is at most half a unit: one bit more */
        const int unit = top - SQUARES_BITS - k * (SQUARES_BITS + 1);
        sigma[k] = v_f64(1.5 * power_of_two(unit + 52));
        acc[k] = (level){sigma[k], sigma[k]};
    }
    for (size_t i = 0; i < n; i += V_LANES) {
        const vf32 a = v_load_f32(x + i);
        vf64 first = v_first_f64(a), last = v_last_f64(a);
        first *= first;
        last *= last;
        for (int k = 0; k < levels; k++) {
            first = deposit(&acc[k].first, first);
            last = deposit(&acc[k].last, last);
        }
        left = (vf64)((vu64)left | (vu64)first | (vu64)last);
    }
    for (int k = 0; k < MPSIM_SQUARES_PARTS; k++)
        parts[k] = k < levels ? sum_f64((acc[k].first - sigma[k]) + (acc[k].last - sigma[k])) : 0;
    return !m64_any(m64_not(v_eq_f64(left, v_f64(0))));
}

static size_t squares(double parts[MPSIM_SQUARES_PARTS], const float *x, size_t n)
{
    const size_t whole = n - n % V_LANES;
    vu32 most = v_u32(0);
    for (size_t i = 0; i < whole; i += V_LANES)
        most = v_max_u32(most, v_load_u32(x + i) & v_u32(0x7fffffff));
    const uint32_t amax = v_reduce_max_u32(most);
    if (amax >= 0x7f800000)
        return 0;
    const int e = (int)(amax >> 23), top = 2 * ((e ? e : 1) - 126);
    return squares_by(parts, x, whole, top, 2) || squares_by(parts, x, whole, top, 4) ? whole : 0;
}

/* ---- steps in binary64 ---- */

V_INLINE vf64 larger_f64(vf64 a, vf64 b)
{
    const m64 first = m64_or(v_gt_f64(a, b), m64_not(v_eq_f64(a, a)));
    return (vf64)v_pick_u64(first, (vu64)a, (vu64)b);
}

typedef struct element64 {
    vf64 p, g, m, v, vmax;
} element64;

V_INLINE void reference_sgd(const mpsim_reference *r, element64 *e)
{
    const mpsim_optim *o = r->o;
    if (o->momentum != 0) {
        const vf64 momentum = v_f64(o->momentum);
        e->m = r->step == 1 ? e->g : momentum * e->m + v_f64(1 - o->dampening) * e->g;
        e->g = o->nesterov ? e->g + momentum * e->m : e->m;
    }
    e->p = e->p - v_f64(o->lr) * e->g;
}

V_INLINE void reference_adam(const mpsim_reference *r, element64 *e)
{
    const mpsim_optim *o = r->o;
    e->m = v_f64(o->beta1) * e->m + v_f64(1 - o->beta1) * e->g;
    e->v = v_f64(o->beta2) * e->v + v_f64(1 - o->beta2) * (e->g * e->g);
    e->vmax = larger_f64(e->vmax, e->v);
    const vf64 v = o->amsgrad ? e->vmax : e->v;
    e->p = e->p - v_f64(o->lr) * (e->m / v_f64(r->bc1)) / (v_sqrt_f64(v / v_f64(r->bc2)) + v_f64(o->eps));
}

V_INLINE void reference_element(const mpsim_reference *r, element64 *e, int adam)
{
    const mpsim_optim *o = r->o;
    e->g = e->g / v_f64(o->grad_scale);
    e->g = o->maximize ? -e->g : e->g;
    if (o->weight_decay != 0 && r->decoupled)
        e->p = e->p - v_f64(o->lr * o->weight_decay) * e->p;
    else if (o->weight_decay != 0)
        e->g = e->g + v_f64(o->weight_decay) * e->p;
    if (adam)
        reference_adam(r, e);
    else
        reference_sgd(r, e);
}

static size_t reference_step(const mpsim_reference *r, const mpsim_reference_arrays *a, size_t n)
{
    enum { LANES = V_LANES / 2 };
    const mpsim_optim o = *r->o;
    const mpsim_reference job = {&o, r->step, r->bc1, r->bc2, r->arrays, r->decoupled, r->family};
    const mpsim_reference_arrays at = *a;
    const int adam = r->arrays & MPSIM_OPTIM_V, has_m = r->arrays & MPSIM_OPTIM_M;
    const vf64 zero = v_f64(0);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        element64 e = {v_load_f64(at.p + i), v_load_f64(at.g + i), has_m ? v_load_f64(at.m + i) : zero,
                       adam ? v_load_f64(at.v + i) : zero, o.amsgrad ? v_load_f64(at.vmax + i) : zero};
        reference_element(&job, &e, adam);
        if (m64_any(m64_not(v_eq_f64(e.p, e.p))))
            break;
        v_store_f64(at.p + i, e.p);
        if (has_m)
            v_store_f64(at.m + i, e.m);
        if (adam)
            v_store_f64(at.v + i, e.v);
        if (o.amsgrad)
            v_store_f64(at.vmax + i, e.vmax);
    }
    return i;
}
