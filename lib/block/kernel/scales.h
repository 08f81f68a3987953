/* scales.h -- the scale rules that are made of many blocks, V_LANES at a time: those of scale.c, operation
 * by operation, for finite amax. Included by vector.h. */

/* What E4M3 is to a cast, see kernel.h. */
static const mpsim_element_grid e4m3_grid = {
    .max = 0x43e00000u,    /* 448                          */
    .normal = 0x3c800000u, /* 2^-6                         */
    .drop = 20,
    .rebias = (127 - 7) << 3,
    .lift = (20u << 23) + 0x38,
    .unit = 0x3b000000u, /* 2^-9                         */
};

typedef struct scale {
    vu32 code;
    vf32 factor, inverse;
} scale;

/* ---- power-of-two scales ---- */

V_INLINE vu32 exponent_or_nan(vu32 field, vu32 code)
{
    const vu32 power = v_pick_u32(v_eq_u32(field, v_u32(0)), v_u32(0x400000), field << 23);
    return v_pick_u32(v_eq_u32(code, v_u32(255)), v_u32(0x7fc00000u), power);
}

V_INLINE scale e8m0(vu32 code)
{
    scale s;
    s.code = code;
    s.factor = (vf32)exponent_or_nan(v_u32(254) - code, code);
    s.inverse = (vf32)exponent_or_nan(code, code);
    return s;
}

/* The code of exponent field - 127 - emax, within those that there are. */
V_INLINE vu32 e8m0_code(vu32 field, int emax)
{
    const vi32 e = (vi32)field - emax;
    return (vu32)v_max_i32(v_min_i32(e, v_i32(255)), v_i32(0));
}

/* v rounded up to a power of two: its exponent field. */
V_INLINE vu32 rounded_up(vu32 v)
{
    const vu32 e = v >> 23, m = v & 0x7fffff;
    const vu32 kept = v_pick_u32(v_eq_u32(e, v_u32(0)), v_u32(0x400000), v_u32(0));
    return e + v_keep_u32(less_u31(kept, m), v_u32(1));
}

/* amax rounded to the element's significand, halves up, and cut to its exponent. */
V_INLINE vu32 to_significand(const mpsim_scale_env *env, vu32 amax)
{
    return (amax + ((uint32_t)1 << (22 - env->mbits))) & 0xff800000u;
}

/* torchao 0.18: code 0 divides by 2^-126, code 255 by infinity. */
V_INLINE scale as_018(scale s)
{
    s.factor = (vf32)v_pick_u32(v_eq_u32(s.code, v_u32(0)), (vu32)v_f32(0x1p126f), (vu32)s.factor);
    s.factor = (vf32)v_keep_u32(m32_not(v_eq_u32(s.code, v_u32(255))), (vu32)s.factor);
    return s;
}

/* Infinity, that `to_significand` may give, is NaN. */
V_INLINE scale finite_even(const mpsim_scale_env *env, vu32 amax)
{
    const vu32 a = to_significand(env, amax);
    const vu32 code = e8m0_code(a >> 23, env->emax);
    return e8m0(v_pick_u32(v_eq_u32(a, v_u32(INFINITE)), v_u32(255), code));
}

/* ---- NVFP4 ---- */

V_INLINE scale nvfp4_te(const mpsim_scale_env *env, vf32 amax)
{
    const vf32 v = amax * (env->encode * (1 / env->max));
    const rounded r = round_nearest(&e4m3_grid, v_min_u32((vu32)v, v_u32(e4m3_grid.max)));
    scale s;
    s.code = r.code;
    s.factor = (vf32)v_min_u32((vu32)(v_f32(1) / (r.value * env->decode)), v_u32(0x7f7fffffu));
    s.inverse = r.value * env->amax * (1 / (448 * env->max));
    return s;
}

/* decode above 0. */
V_INLINE scale nvfp4_torchao(const mpsim_scale_env *env, vf32 amax)
{
    const vf32 v = amax / env->max / env->decode;
    const vu32 up = v_max_u32((vu32)v, v_u32(e4m3_grid.normal));
    const rounded r = round_nearest(&e4m3_grid, v_min_u32(up, v_u32(e4m3_grid.max)));
    scale s;
    s.code = r.code;
    s.inverse = r.value * env->decode;
    s.factor = env->encode / r.value;
    return s;
}

/* ---- the rules ---- */

/* microxcaling's floor(log2), rounded to binary32 first, may be one more just below a power of two; by 88
 * steps or less, see scale.c. */
static int near_power_of_two(const uint32_t *amax, size_t n)
{
    m32 near = v_eq_u32(v_u32(0), v_u32(1));
    for (size_t i = 0; i < n; i += V_LANES)
        near = m32_or(near, less_u31(v_u32(0x7fffff - 100), v_load_u32(amax + i) & 0x7fffff));
    return m32_any(near);
}

V_INLINE scale scale_of(const mpsim_scale_env *env, int rule, vu32 amax)
{
    const vu32 field = amax >> 23, fraction = amax & 0x7fffff;
    const vu32 ceiling = field + v_keep_u32(v_test_u32(fraction, fraction), v_u32(1));
    const vu32 quotient = (vu32)((vf32)amax * (1 / env->max));
    switch (rule) {
    case MPSIM_SCALE_E8M0_EVEN:
        return finite_even(env, amax);
    case MPSIM_SCALE_E8M0_CEIL:
        return e8m0(e8m0_code(ceiling, env->emax));
    case MPSIM_SCALE_E8M0_RCEIL:
        return e8m0(v_min_u32(rounded_up(quotient), v_u32(255)));
    case MPSIM_SCALE_E8M0_TE:
        return e8m0(v_min_u32(rounded_up(quotient), v_u32(254)));
    case MPSIM_SCALE_E8M0_MICROX: {
        const m32 zero = v_eq_u32(amax, v_u32(0));
        return e8m0(e8m0_code(v_pick_u32(zero, v_u32(1), field), env->emax));
    }
    case MPSIM_SCALE_NVFP4_TE:
        return nvfp4_te(env, (vf32)amax);
    case MPSIM_SCALE_NVFP4_1LEVEL:
    case MPSIM_SCALE_NVFP4_TORCHAO:
        return nvfp4_torchao(env, (vf32)amax);
    case MPSIM_SCALE_TORCHAO_018_FLOOR:
        return as_018(e8m0(e8m0_code(field, env->emax)));
    case MPSIM_SCALE_TORCHAO_018_EVEN:
        return as_018(e8m0(e8m0_code(to_significand(env, amax) >> 23, env->emax)));
    case MPSIM_SCALE_TORCHAO_018_CEIL:
        return as_018(e8m0(e8m0_code(ceiling, env->emax)));
    case MPSIM_SCALE_E8M0_FLOOR:
    default:
        return e8m0(e8m0_code(field, env->emax));
    }
}

V_INLINE void scales(const mpsim_scale_env *of, int rule, const uint32_t *amax, size_t n, const mpsim_block_scales *to)
{
    const mpsim_scale_env env = *of;
    for (size_t i = 0; i < n; i += V_LANES) {
        const scale s = scale_of(&env, rule, v_load_u32(amax + i));
        v_store_u8(to->code + i, s.code);
        v_store_f32(to->factor + i, s.factor);
        v_store_f32(to->inverse + i, s.inverse);
        v_store_u8(to->irregular + i,
                   v_keep_u32(m32_or(not_finite((vf32)v_load_u32(amax + i)), not_finite(s.factor)), v_u32(1)));
    }
}

static int scales_run(const mpsim_scale_env *env, const uint32_t *amax, size_t n, const mpsim_block_scales *to)
{
    switch (env->rule) {
    case MPSIM_SCALE_NVFP4_TORCHAO:
        if (!(env->decode > 0))
            return 0;
        break;
    case MPSIM_SCALE_E8M0_MICROX:
        if (env->emax < 0 || near_power_of_two(amax, n))
            return 0;
    }
    switch (env->rule) {
#define RULE(rule)                      \
    case rule:                          \
        scales(env, rule, amax, n, to); \
        return 1
        RULE(MPSIM_SCALE_E8M0_FLOOR);
        RULE(MPSIM_SCALE_E8M0_EVEN);
        RULE(MPSIM_SCALE_E8M0_CEIL);
        RULE(MPSIM_SCALE_E8M0_RCEIL);
        RULE(MPSIM_SCALE_E8M0_TE);
        RULE(MPSIM_SCALE_E8M0_MICROX);
        RULE(MPSIM_SCALE_NVFP4_TE);
        RULE(MPSIM_SCALE_NVFP4_TORCHAO);
        RULE(MPSIM_SCALE_NVFP4_1LEVEL);
        RULE(MPSIM_SCALE_TORCHAO_018_FLOOR);
        RULE(MPSIM_SCALE_TORCHAO_018_EVEN);
        RULE(MPSIM_SCALE_TORCHAO_018_CEIL);
#undef RULE
    default:
        return 0;
    }
}
