/* moves.h -- which elements a step in binary64 moves, of arrays in binary32, of Adam's family. Included by kernels.h only.
 *
 * Nearly every element moves by far more than binary64 rounds: binary32 shows that at a third of the cost. A vector with an element that
 * binary32 cannot vouch for takes the step in binary64. */

/* What the estimate in binary32 multiplies by. */
typedef struct estimate {
    vf32 scale, b1, rest1, b2, rest2, rate, over_bc2, eps, decay;
} estimate;

static int within(double x, double least, double most) { return x >= least && x <= most; }

/* Whether the numbers of a step are such that the bounds in surely_moves hold. */
static int estimates(const mpsim_reference *r)
{
    const mpsim_optim *o = r->o;
    const double decay = o->lr * o->weight_decay;
    return within(o->grad_scale, 1e-15, 1e15) && within(o->lr, 1e-15, 1e6) && within(r->bc1, 1e-9, 1) &&
           within(r->bc2, 1e-9, 1) && o->eps <= 1e6 && (decay == 0 || (r->decoupled && within(decay, 1e-20, 1)));
}

static estimate estimate_of(const mpsim_reference *r)
{
    const mpsim_optim *o = r->o;
    return (estimate){.scale = v_f32((float)(1 / o->grad_scale)),
                      .b1 = v_f32((float)o->beta1),
                      .rest1 = v_f32((float)(o->maximize ? o->beta1 - 1 : 1 - o->beta1)),
                      .b2 = v_f32((float)o->beta2),
                      .rest2 = v_f32((float)(1 - o->beta2)),
                      .rate = v_f32((float)(o->lr / r->bc1)),
                      .over_bc2 = v_f32((float)(1 / r->bc2)),
                      .eps = v_f32((float)o->eps),
                      .decay = v_f32((float)(o->lr * o->weight_decay))};
}

V_INLINE vf32 magnitude_of(vf32 a) { return (vf32)((vu32)a & v_u32(0x7fffffff)); }

/* Elements whose movement D = decay p + rate m / (sqrt(v / bc2) + eps), times the denominator, is larger than 2^-48 p and than 2^-9 of its two
 * terms together: binary32 gives D within 2^-11 of these, as m is not what is left of two terms that cancel, and nothing underflows or overflows;
 * so binary64, whose error is below 2^-51 (p + D), moves p. NaNs fail every comparison. */
V_INLINE m32 surely_moves(const estimate *x, vf32 p, vf32 g, vf32 m, vf32 v)
{
    const vf32 unscaled = g * x->scale, old = x->b1 * m, new = x->rest1 *unscaled, sum = old + new;
    const vf32 below = v_sqrt_f32((x->b2 * v + x->rest2 * (unscaled * unscaled)) * x->over_bc2) + x->eps;
    const vf32 decay = x->decay * p * below, update = x->rate * sum, all = magnitude_of(decay + update),
               m_is = magnitude_of(sum);
    const m32 whole = m32_and(v_gt_f32(m_is, (magnitude_of(old) + magnitude_of(new)) * v_f32(0x1p-10f)),
                              v_gt_f32(m_is, v_f32(1e-35f)));
    const m32 sane = m32_and(m32_and(v_gt_f32(below, v_f32(1e-12f)), v_gt_f32(v_f32(1e18f), below)),
                             v_gt_f32(v, v_f32(-1e-45f)));
    const m32 far = m32_and(
        v_gt_f32(all, (magnitude_of(decay) + magnitude_of(update)) * v_f32(0x1p-9f)),
        m32_and(v_gt_f32(all, magnitude_of(p) * below * v_f32(0x1p-48f)), v_gt_f32(all, below * v_f32(1e-25f))));
    return m32_and(whole, m32_and(sane, far));
}

/* The step in binary64 of half a vector. */
V_INLINE void half_moves(const mpsim_reference *r, vf64 p, vf64 g, vf64 m, vf64 v, vf64 vmax, uint32_t *moves)
{
    enum { LANES = V_LANES / 2 };
    uint64_t stays[LANES];
    element64 e = {p, g, m, v, vmax};
    reference_element(r, &e, 1);
    v_store_u64(stays, v_pick_u64(v_eq_f64(e.p, p), v_u64(1), v_u64(0)));
    for (int k = 0; k < LANES; k++)
        moves[k] = !stays[k];
}

static size_t moves(const mpsim_reference *r, const mpsim_optim_tensor *t, uint32_t *moved)
{
    const mpsim_optim o = *r->o;
    const mpsim_reference job = {&o, r->step, r->bc1, r->bc2, r->arrays, r->decoupled, r->family};
    const int estimated = estimates(r) && !o.amsgrad;
    const estimate x = estimate_of(r);
    size_t i = 0;
    for (; i + V_LANES <= t->n; i += V_LANES) {
        const vf32 p = v_load_f32(t->param + i), g = v_load_f32(t->grad + i), m = v_load_f32(t->m + i),
                   v = v_load_f32(t->v + i), vmax = o.amsgrad ? v_load_f32(t->vmax + i) : v_f32(0);
        if (estimated && !m32_any(m32_not(surely_moves(&x, p, g, m, v)))) {
            v_store_u32(moved + i, v_u32(1));
            continue;
        }
        half_moves(&job, v_first_f64(p), v_first_f64(g), v_first_f64(m), v_first_f64(v), v_first_f64(vmax), moved + i);
        half_moves(&job, v_last_f64(p), v_last_f64(g), v_last_f64(m), v_last_f64(v), v_last_f64(vmax),
                   moved + i + V_LANES / 2);
    }
    return i;
}
