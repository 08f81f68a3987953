/* careful.h -- elements of blocks with NaN, infinity or subnormal numbers, V_LANES at a time. NaNs are those of
 * mpsim_rule_settle. Some processors take a hundred cycles more for a product with a subnormal operand or result: here
 * small numbers are multiplied as numbers 2^85 times larger. Results are those of the reference in batch.c. Included by
 * vector.h. */

enum { UP = 85 }; /* a subnormal number times 2^85 is normal, and stays normal times a factor of 2^-62 */

#define TIMES_UP ((uint32_t)UP << 23)       /* added to the bits of a normal number          */
#define LEAST_UP ((uint32_t)(UP + 1) << 23) /* the bits of the least normal number times 2^85 */

V_INLINE m32 is_nan_u32(vu32 u)
{
    return less_u31(v_u32(INFINITE), magnitude(u));
}

V_INLINE m32 is_subnormal(vu32 u)
{
    return v_gt_u32(v_u32(0x7fffff), magnitude(u) - 1);
}

/* mpsim_rule_settle */
V_INLINE vf32 settle(vf32 y, vf32 a, vf32 b)
{
    const vu32 quiet = v_u32(0x400000u);
    const vu32 of_b = v_pick_u32(is_nan_u32((vu32)b), (vu32)b | quiet, v_u32(0xffc00000u));
    const vu32 from = v_pick_u32(is_nan_u32((vu32)a), (vu32)a | quiet, of_b);
    return (vf32)v_pick_u32(is_nan_u32((vu32)y), from, (vu32)y);
}

/* ---- small numbers ---- */

/* x 2^85, |x| < 2^-100: with the sign of x. */
V_INLINE vf32 raised(vu32 u)
{
    const vu32 a = magnitude(u), sign = u & 0x80000000u;
    const vu32 of_subnormal = (vu32)(v_f32_of_i32((vi32)a) * v_f32(0x1p-64f));
    return (vf32)(v_pick_u32(v_gt_u32(v_u32(0x800000u), a), of_subnormal, a + TIMES_UP) | sign);
}

/* A product or quotient of t = 2^85 y: y, but for subnormal numbers, which are all alike to a cast: they are below half
 * of the smallest number, and not zero. */
V_INLINE vf32 lowered_for_cast(vf32 t)
{
    const vu32 u = (vu32)t, a = magnitude(u), sign = u & 0x80000000u;
    const vu32 tiny = v_keep_u32(v_gt_f32((vf32)a, v_f32(0x1p-65f)), v_u32(0x800000u));
    const vu32 y = v_pick_u32(v_gt_u32(v_u32(LEAST_UP), a), tiny, a - TIMES_UP);
    return (vf32)(v_pick_u32(less_u31(a, v_u32(INFINITE)), y, a) | sign);
}

/* A block's numbers in every lane. */
typedef struct block_scale {
    vf32 factor, inverse, up; /* `up`: the small one, times 2^85     */
    int small_factor;         /* elements are scaled by `up` 2^-85   */
    int small_inverse;        /* values are multiplied by it         */
} block_scale;

V_INLINE block_scale block_scale_of(const mpsim_block_kernel *k, float factor, float inverse)
{
    block_scale b = {.factor = v_f32(factor), .inverse = v_f32(inverse)};
    b.small_factor = !k->divides && factor > 0 && factor < 0x1p-100f;
    b.small_inverse = !b.small_factor && k->dequantize != MPSIM_OVER_FACTOR && inverse > 0 && inverse < 0x1p-90f;
    b.up = raised((vu32)(b.small_factor ? b.factor : b.inverse));
    return b;
}

V_CALLED vf32 scaled_small(const mpsim_block_kernel *k, vf32 x, vf32 factor, vf32 inverse)
{
    const m32 small = v_gt_f32(v_f32(0x1p-100f), (vf32)magnitude((vu32)x));
    const vf32 by = k->divides ? inverse : factor, up = raised(v_pick_u32(small, (vu32)x, v_u32(0)));
    const vf32 rest = (vf32)v_pick_u32(small, v_u32(0x3f800000u), (vu32)x);
    const vf32 of_small = lowered_for_cast(k->divides ? up / by : up * by);
    return (vf32)v_pick_u32(small, (vu32)of_small, (vu32)(k->divides ? rest / by : rest * by));
}

/* What is cast for x. */
V_INLINE vf32 scaled_carefully(const mpsim_block_kernel *k, const block_scale *b, vf32 x)
{
    vf32 y;
    if (b->small_factor)
        y = lowered_for_cast(x * b->up);
    else if (m32_any(is_subnormal((vu32)x)))
        y = scaled_small(k, x, b->factor, b->inverse);
    else
        y = scaled(k, x, b->factor, b->inverse);
    return m32_any(is_nan_u32((vu32)y)) ? settle(y, b->factor, x) : y;
}

/* q times an inverse below 2^-90 that is `up` 2^-85. Subnormal numbers are rounded once: in a sum whose last place is
 * theirs. */
V_INLINE vf32 back_small(vf32 q, vf32 up)
{
    const vu32 u = (vu32)q, a = magnitude(u), sign = u & 0x80000000u;
    const vf32 unit = v_f32(0x1p-41f), t = (vf32)a * up;
    const vu32 subnormal = (vu32)v_fma_f32((vf32)a, up, unit) - (vu32)unit;
    const vu32 value = v_pick_u32(v_gt_u32(v_u32(LEAST_UP), (vu32)t), subnormal, (vu32)t - TIMES_UP);
    return (vf32)v_pick_u32(less_u31(a, v_u32(INFINITE)), value | sign, u);
}

V_INLINE vf32 back_carefully(const mpsim_block_kernel *k, const block_scale *b, vf32 q)
{
    if (b->small_inverse)
        return back_small(q, b->up);
    const vf32 value = scaled_back(k, q, b->factor, b->inverse);
    if (!m32_any(is_nan_u32((vu32)value)))
        return value;
    return settle(value, q, k->dequantize == MPSIM_OVER_FACTOR ? b->factor : b->inverse);
}

/* ---- NaNs ---- */

/* Lanes of y that are NaN: by the reference, which is asked once for many that are alike. */
V_CALLED void nan_lanes(const mpsim_block_kernel *k, vf32 y, uint32_t *code, uint32_t *value)
{
    float of[V_LANES];
    uint32_t last = 0, last_code = 0, last_value = 0;
    v_store_f32(of, y);
    for (size_t i = 0; i < V_LANES; i++) {
        uint32_t u;
        memcpy(&u, &of[i], sizeof u);
        if ((u & 0x7fffffffu) <= INFINITE)
            continue;
        if (u != last) {
            last = u;
            last_code = mpsim_block_nan(k, of[i], &last_value);
        }
        code[i] = last_code;
        value[i] = last_value;
    }
}

/* What NaNs are cast to: by sign, or those whose bits are `y`. */
typedef struct known_nan {
    uint32_t y, code[2], value[2];
} known_nan;

V_INLINE void know_nans(const mpsim_block_kernel *k, known_nan *of, float factor)
{
    const uint32_t y = mpsim_rule_is_nan(factor) ? mpsim_bits_f32(factor) | 0x400000u : 0xffc00000u;
    if (of->y == y)
        return;
    of->y = y;
    for (uint32_t sign = 0; sign < 2; sign++)
        of->code[sign] = mpsim_block_nan(k, mpsim_f32_bits(k->torch ? y : sign << 31 | 0x7fc00000u), &of->value[sign]);
}

/* As `element`, of any y. */
V_INLINE vf32 element_carefully(const mpsim_block_kernel *k, int mode, vf32 y, vu32 word, vu32 *code,
                                const known_nan *known)
{
    const vu32 u = (vu32)y;
    const m32 nan = is_nan_u32(u), negative = v_top_u32(u);
    vu32 value = (vu32)number(k, mode, y, word, code);
    if (!m32_any(nan))
        return (vf32)value;
    if (k->torch && m32_any(m32_and(nan, m32_not(v_eq_u32(u, v_u32(known->y)))))) {
        uint32_t codes[V_LANES], values[V_LANES];
        v_store_u32(codes, *code);
        v_store_u32(values, value);
        nan_lanes(k, y, codes, values);
        *code = v_load_u32(codes);
        return (vf32)v_load_u32(values);
    }
    *code = v_pick_u32(nan, v_pick_u32(negative, v_u32(known->code[1]), v_u32(known->code[0])), *code);
    return (vf32)v_pick_u32(nan, v_pick_u32(negative, v_u32(known->value[1]), v_u32(known->value[0])), value);
}

/* ---- counts ---- */

/* The first n lanes; infinite elements count nothing, as ones that are zero. */
V_INLINE void count_carefully(const mpsim_block_kernel *k, int mode, tally *t, vf32 x, const block_scale *b, vf32 y,
                              vu32 word, vf32 q, vf32 value, size_t n)
{
    static const uint32_t order[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const m32 counted = m32_and(m32_not(v_eq_u32(magnitude((vu32)x), v_u32(INFINITE))),
                                v_gt_u32(v_u32((uint32_t)n), v_load_u32(order)));
    const vu32 one = (vu32)v_f32(1);
    count(k, mode, t, (vf32)v_keep_u32(counted, (vu32)x), (vf32)v_pick_u32(counted, (vu32)b->factor, one),
          (vf32)v_pick_u32(counted, (vu32)b->inverse, one), (vf32)v_keep_u32(counted, (vu32)y), word,
          (vf32)v_keep_u32(counted, (vu32)q), (vf32)v_keep_u32(counted, (vu32)value));
}

/* ---- blocks ---- */

/* n elements, V_LANES of them or fewer. */
V_INLINE void careful_vector(const mpsim_block_kernel *k, int mode, uint8_t *codes, float *values, const float *x,
                             const uint32_t *words, size_t n, const block_scale *b, const known_nan *known, tally *t)
{
    vu32 code;
    uint8_t bytes[V_LANES];
    float back[V_LANES];
    const int whole = n == V_LANES;
    const vf32 from = (vf32)(whole ? v_load_u32(x) : v_load_u32_part(x, n));
    const vu32 word = mode != GRID ? v_u32(0) : whole ? v_load_u32(words) : v_load_u32_part(words, n);
    const vf32 y = scaled_carefully(k, b, from);
    const vf32 q = element_carefully(k, mode, y, word, &code, known);
    if (codes) {
        v_store_u8(whole ? codes : bytes, code);
        if (!whole)
            memcpy(codes, bytes, n);
    }
    if (!values && !t)
        return;
    const vf32 value = back_carefully(k, b, q);
    if (values) {
        v_store_f32(whole ? values : back, value);
        if (!whole)
            memcpy(values, back, n * sizeof *values);
    }
    if (t)
        count_carefully(k, mode, t, from, b, y, word, q, value, n);
}

V_INLINE void careful(const mpsim_block_kernel *kernel, int mode, uint8_t *codes, float *values, const float *x,
                      const float *factors, const float *inverses, const uint32_t *words, size_t width, size_t n,
                      tally *t)
{
    const mpsim_block_kernel k = *kernel;
    known_nan known = {.y = 0};
    for (size_t j = 0; j < n; j++) {
        const block_scale b = block_scale_of(&k, factors[j], inverses[j]);
        know_nans(&k, &known, factors[j]);
        size_t i = j * width;
        const size_t end = i + width;
        for (; i + V_LANES <= end; i += V_LANES)
            careful_vector(&k, mode, codes ? codes + i : NULL, values ? values + i : NULL, x + i,
                           mode == GRID ? words + i : NULL, V_LANES, &b, &known, t);
        if (i < end)
            careful_vector(&k, mode, codes ? codes + i : NULL, values ? values + i : NULL, x + i,
                           mode == GRID ? words + i : NULL, end - i, &b, &known, t);
    }
}

/* Of all modes: mpsim_block_cast_function. */
static void careful_run(const mpsim_block_kernel *k, uint8_t *codes, float *values, const float *x, const float *factor,
                        const float *inverse, const uint32_t *words, size_t width, size_t n, mpsim_counts *counts)
{
    tally t = {.all = 0};
    if (!counts && !words && k->mode == MPSIM_ROUND_NEAREST_EVEN)
        careful(k, MPSIM_ROUND_NEAREST_EVEN, codes, values, x, factor, inverse, NULL, width, n, NULL);
    else
        careful(k, words ? GRID : k->mode, codes, values, x, factor, inverse, words, width, n, counts ? &t : NULL);
    if (counts)
        add_tally(counts, &t);
}

#undef TIMES_UP
#undef LEAST_UP
