/* staged_loops.h -- additions in two stages by chains of binary64 that round toward zero: see cut.h. Included by one unit per
 * instruction set, after wide_loops.h. */

typedef struct staged_constants {
    vi16 least, smallest;
    vu64 field, half, up, up_all, whole, magnitude, high, before;
    vf64 to_kept, to_result, between, normal, most;
    vu64 beyond, ties;
} staged_constants;

static ALWAYS_INLINE staged_constants staged_constants_of(const mpsim_tile *t)
{
    const int64_t kept = (int64_t)1 << (52 - t->kept), result = (int64_t)1 << (52 - 23);
    return (staged_constants){.least = v_i16((1023 + MPSIM_WIDE_LOWEST) << 4),
                              .smallest = v_i16((1023 - 126) << 4),
                              .field = v_u64(0x7ff0000000000000),
                              .half = v_u64(0x0008000000000000),
                              .up = v_u64((uint64_t)(52 - t->fraction) << 52),
                              .up_all = v_u64((uint64_t)(52 - t->kept - 1) << 52),
                              .whole = v_u64(UINT64_MAX << (t->kept + 1 - t->fraction)),
                              .magnitude = v_u64(0x7fffffffffffffff),
                              .high = v_u64(0xffffffff00000000),
                              .before = v_u64((uint64_t)(t->fraction + 1) << 52),
                              .to_kept = v_f64(1.5 * (double)kept),
                              .to_result = v_f64(-1.5 * (double)result),
                              .between = v_f64(1.5 * (double)(result - kept)),
                              .normal = v_f64(0x1p-126),
                              .most = v_f64(mpsim_f64_bits(t->most)),
                              .beyond = v_u64(((uint64_t)(1023 + 127) << 52) - 1),
                              .ties = v_u64(((uint64_t)1 << (t->kept - 24)) - 1)};
}

/* 1.5 2^52 units; m: an exponent in the highest 16 bits. */
static ALWAYS_INLINE vf64 staged_base(const staged_constants *t, vu64 m, vu64 up)
{
    return (vf64)(v_bits_u64(t->field, m, t->half) + up);
}

/* Lanes of x that are beyond `most`. */
static __attribute__((noinline)) void staged_over(wide_over *over, unsigned lanes, vf64 x)
{
    for (unsigned j = 0; j < V_LANES / 2; j++)
        if ((lanes & ~over->lanes) >> j & 1)
            over->at[j] = over->addition;
    add_over(over, lanes, x);
}

/* x toward -infinity to kept + 1 bits, then to the nearest number of binary32, even where there are two. */
static ALWAYS_INLINE vf64 staged_round(const int tested, const staged_constants *t, vf64 x, wide_over *over)
{
    vf64 power = (vf64)((vu64)x & t->field);
    if (tested)
        power = v_max_f64(power, t->normal);
    vf64 s = wide_step(power, t->to_kept, x); /* 1.5 2^52 units and x */
#ifdef V_NEAR
    s = v_near_fma_f64(power, t->between, s);
#else
    const vu64 last = (vu64)wide_step(power, t->between, s) & v_u64(1);
    s = wide_step(power, t->between, (vf64)((vu64)s + t->ties + last));
#endif
    vf64 sum = wide_step(power, t->to_result, s);
    if (tested) {
        const m64 is_over = v_gt_f64((vf64)((vu64)sum & t->magnitude), t->most);
        if (m64_any(is_over))
            staged_over(over, m64_bits(is_over), sum);
        sum = (vf64)v_keep_u64(m64_not(is_over), (vu64)sum | ((vu64)x & ~t->magnitude));
    }
    return sum;
}

/* The products' sum and the accumulator. e: the largest exponent of products. */
static ALWAYS_INLINE vf64 staged_sum(const int tested, const int drop, const staged_constants *t, vf64 products, vu64 e,
                                     vf64 c, wide_over *over)
{
    vu64 m = larger_exponent(e, c);
    if (tested) {
        m = (vu64)v_max_i16((vi16)m, t->smallest);
        over->far |= m64_bits(v_gt_u64(e, t->beyond));
        over->addition++;
    }
    const vf64 zero = staged_base(t, m, t->up_all);
    if (drop) {
        const vi16 size = (vi16)((vu64)c & t->magnitude);
        const vu64 of_c = (vu64)(tested ? v_max_i16(size, t->smallest) : size);
        c = (vf64)v_keep_u64(m64_not(v_gt_u64((m & t->field) - t->before, of_c)), (vu64)c);
    }
    const vf64 of_c = (vf64)((vu64)(zero + c) & t->whole);
    return staged_round(tested, t, (of_c + products) - zero, over);
}

/* See cut_products. */
static ALWAYS_INLINE void staged_products(const int counts, const int tested, const int ways, const int drop,
                                          const size_t rows, const staged_constants *t, const mpsim_wide_operand *a,
                                          const mpsim_wide_operand *b, vi16 *e, vf64 (*c)[2], size_t n, size_t n_next,
                                          wide_over (*over)[2])
{
    vf64 s[2][WIDE_ROWS][2], zero[2][WIDE_ROWS][2];
    vu64 all[WIDE_ROWS];
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vu64 low = (vu64)((vu32)e[r] << 16), high = (vu64)e[r];
        all[r] = (vu64)v_max_i16((vi16)low, (vi16)high);
        UNROLL
        for (int way = 0; way < ways; way++) {
            const vu64 m = ways == 1 ? all[r] : way == MPSIM_FIRST_IS_HIGH ? low : high;
            s[way][r][0] = zero[way][r][0] = staged_base(t, m << 32, t->up);
            s[way][r][1] = zero[way][r][1] = staged_base(t, m, t->up);
        }
        e[r] = t->least;
    }
    size_t k = 0;
    for (; k < n_next; k += 2) {
        wide_exponents(rows, e, a, b, n + k);
        wide_chain(rows, a, b, s[0], k);
        wide_chain(rows, a, b, s[ways - 1], k + 1);
    }
    for (; k < n; k += 2) {
        wide_chain(rows, a, b, s[0], k);
        wide_chain(rows, a, b, s[ways - 1], k + 1);
    }
    const vu32 of_b = (vu32)v_load_u64(b->signs);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vu32 signs = v_u32(a->signs[r * a->next_signs]) ^ of_b;
        vf64 sum[2][2], whole[2];
        UNROLL
        for (int way = 0; way < ways; way++) {
            const vu32 of_way = ways == 1 ? signs : signs & v_u32(way ? 0xaaaaaaaa : 0x55555555);
            const vu64 negative = (vu64)count_bits(counts, of_way);
            sum[way][0] = (vf64)((vu64)s[way][r][0] + (negative & ~t->high)) - zero[way][r][0];
            sum[way][1] = (vf64)((vu64)s[way][r][1] + (negative >> 32)) - zero[way][r][1];
        }
        UNROLL
        for (int half = 0; half < 2; half++) {
            whole[half] = sum[0][half];
            if (ways == 2) {
                const vf64 base = v_max_f64(zero[0][r][half], zero[1][r][half]);
                whole[half] = ((base + sum[0][half]) + sum[1][half]) - base;
            }
            c[r][half] = staged_sum(tested, drop, t, whole[half], half ? all[r] : all[r] << 32, c[r][half],
                                    &over[r][half]);
        }
    }
}
