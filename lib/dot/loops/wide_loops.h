/* wide_loops.h -- fused additions by chains of binary64 that round toward zero: see cut.h. Included by one unit per
 * instruction set, after cut_loops.h. V_LANES columns are two vectors, the first half of them and the last. What has 32
 * bits of each column has those of column i of both halves in lane i of 64 bits, the last half's in the high word. */

enum { WIDE_ROWS = 4 /* with two sums each: 8 chains hide the latency of a multiply-add */ };

#if defined __AVX2__ || defined __AVX512F__ || defined __FP_FAST_FMA
enum { WIDE_FROM = 24 };
#else
enum { WIDE_FROM = 144 };
#endif

/* ---- operands ---- */

static ALWAYS_INLINE vu64 marked_wide(vf64 x, uint64_t odd)
{
    const vu64 u = (vu64)x;
    return u | v_pick_u64(v_eq_u64(u << 1, v_u64(0)), (vu64)v_f64(MPSIM_WIDE_ZERO), v_u64(odd));
}

/* Words of columns as they stand; see above. */
static ALWAYS_INLINE vu64 in_halves(vu32 x)
{
    return v_first_u64(x) | v_last_u64(x) << 32;
}

/* Exponents as fields of binary64 in the upper half of a lane; *low and *high are widened. */
static ALWAYS_INLINE vu32 wide_fields(vu32 u, int lowest, uint32_t bias, vu32 *low, vu32 *high)
{
    const m32 is_zero = v_eq_u32(u << 1, v_u32(0));
    const vu32 field = v_max_u32((u << 1) >> 24, v_u32((uint32_t)(127 + lowest)));
    *low = v_min_u32(*low, v_pick_u32(is_zero, v_u32(255), field));
    *high = v_max_u32(*high, v_keep_u32(m32_not(is_zero), field));
    return v_keep_u32(m32_not(is_zero), (field + v_u32(bias - 127)) << 4);
}

static void wide_columns(const float *from, const mpsim_wide_line *to, int lowest, size_t n)
{
    for (size_t j = 0; j < MPSIM_PANEL; j += V_LANES) {
        vu32 of_all = v_u32(0), low = v_load_u16(to->low + j), high = v_load_u16(to->high + j), fields[2];
        for (size_t k = 0; k < n; k += 2) {
            UNROLL
            for (size_t i = 0; i < 2; i++) {
                double *y = to->values + (k + i) * MPSIM_PANEL + j;
                const vu32 u = v_load_u32(from + (k + i) * MPSIM_PANEL + j);
                of_all = of_all >> 1 | (u & v_u32(0x80000000));
                fields[i] = wide_fields(u, lowest, MPSIM_WIDE_BIAS_B, &low, &high);
                v_store_u64(y, marked_wide(v_first_f64((vf32)u), MPSIM_CUT_ODD));
                v_store_u64(y + V_LANES / 2, marked_wide(v_last_f64((vf32)u), MPSIM_CUT_ODD));
            }
            v_store_u64(to->exponents + k * MPSIM_PANEL + 2 * j, in_halves(side_by_side(fields[0], fields[1])));
        }
        v_store_u64(to->signs + j, in_halves(v_shr_u32(of_all, v_u32((uint32_t)(32 - n)))));
        v_store_u16(to->low + j, low);
        v_store_u16(to->high + j, high);
    }
}

/* V_LANES values of a row: their signs. */
static ALWAYS_INLINE uint32_t wide_lanes(vu32 u, double *values, int16_t *exponents, int lowest, vu32 *low, vu32 *high)
{
    v_store_u64(values, marked_wide(v_first_f64((vf32)u), 0));
    v_store_u64(values + V_LANES / 2, marked_wide(v_last_f64((vf32)u), 0));
    v_store_u16(exponents, wide_fields(u, lowest, MPSIM_WIDE_BIAS_A, low, high));
    return m32_bits(v_top_u32(u));
}

static void wide_row(const float *from, const mpsim_wide_line *to, int lowest, size_t n)
{
    vu32 low = v_u32(255), high = v_u32(0);
    uint32_t bits = 0;
    size_t k = 0;
    for (; k + V_LANES <= n; k += V_LANES)
        bits |= wide_lanes(v_load_u32(from + k), to->values + k, to->exponents + k, lowest, &low, &high) << k;
    if (k < n) {
        double values[V_LANES];
        int16_t exponents[V_LANES];
        bits |= wide_lanes(v_load_u32_part(from + k, n - k), values, exponents, lowest, &low, &high) << k;
        memcpy(to->values + k, values, (n - k) * sizeof values[0]);
        memcpy(to->exponents + k, exponents, (n - k) * sizeof exponents[0]);
    }
    const int16_t least = (int16_t)v_reduce_min_u32(low), largest = (int16_t)v_reduce_max_u32(high);
    *to->signs = bits;
    *to->low = least < *to->low ? least : *to->low;
    *to->high = largest > *to->high ? largest : *to->high;
}

/* ---- chains ---- */

static ALWAYS_INLINE vf64 wide_step(vf64 x, vf64 y, vf64 s)
{
#ifdef __AVX2__
    return v_fma_f64(x, y, s);
#else
    return s + x * y;
#endif
}

static int wide_cuts(void)
{
    volatile double x = 1.5, s = 0x1p53; /* whose sum is nearer to 2^53 + 2 */
    double sum[V_LANES / 2];
    v_store_f64(sum, wide_step(v_f64(x), v_f64(1), v_f64(s)));
    return sum[0] == 0x1p53;
}

typedef struct wide_constants {
    vi16 least;
    vu64 field, half, up, keep, odd, magnitude, high;
    vf64 smallest, spread, most;
    vu64 of_smallest;
} wide_constants;

static ALWAYS_INLINE wide_constants wide_constants_of(const mpsim_tile *t)
{
    const int least = t->floor > MPSIM_WIDE_LOWEST ? t->floor : MPSIM_WIDE_LOWEST;
    return (wide_constants){.least = v_i16((int16_t)((1023 + least) << 4)),
                            .field = v_u64(0x7ff0000000000000),
                            .half = v_u64(0x0008000000000000),
                            .up = v_u64((uint64_t)(52 - t->fraction) << 52),
                            .keep = v_u64((UINT64_MAX << (52 - t->mbits)) & ~(uint64_t)1),
                            .odd = v_u64(1),
                            .magnitude = v_u64(0x7fffffffffffffff),
                            .high = v_u64(0xffffffff00000000),
                            .smallest = v_f64(mpsim_f64_bits((uint64_t)(1023 + t->emin) << 52)),
                            .spread = v_f64(mpsim_f64_bits((uint64_t)(1023 + 52 + t->emin - t->mbits) << 52)),
                            .most = v_f64(mpsim_f64_bits(t->most)),
                            .of_smallest = v_u64((uint64_t)(1023 + t->emin) << 52)};
}

static ALWAYS_INLINE void wide_exponents(const size_t rows, vi16 *e, const mpsim_wide_operand *a,
                                         const mpsim_wide_operand *b, size_t k)
{
    const vi16 y = v_load_i16(b->exponents + k * MPSIM_PANEL);
    UNROLL
    for (size_t r = 0; r < rows; r++)
        e[r] = v_max_i16(e[r], (vi16)((vu32)v_pair_i16(a->exponents + r * a->next + k) + (vu32)y));
}

static ALWAYS_INLINE void wide_chain(const size_t rows, const mpsim_wide_operand *a, const mpsim_wide_operand *b,
                                     vf64 (*s)[2], size_t k)
{
    const vf64 first = v_load_f64(b->values + k * MPSIM_PANEL);
    const vf64 last = v_load_f64(b->values + k * MPSIM_PANEL + V_LANES / 2);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vf64 x = v_f64(a->values[r * a->next + k]);
        s[r][0] = wide_step(x, first, s[r][0]);
        s[r][1] = wide_step(x, last, s[r][1]);
    }
}

/* In the highest 16 bits the larger exponent: that of e there, of which other bits mean nothing, or c's. */
static ALWAYS_INLINE vu64 larger_exponent(vu64 e, vf64 c)
{
#ifdef __AVX512F__
    return (vu64)_mm512_range_pd((__m512d)e, (__m512d)c, 0xb); /* the larger magnitude */
#else
    return (vu64)v_max_i16((vi16)e, (vi16)((vu64)c & v_u64(0x7fffffffffffffff)));
#endif
}

/* The upper halves of the lanes: of the first in the lower, of the last in the upper half. */
static ALWAYS_INLINE vu32 upper_halves(vf64 first, vf64 last)
{
#ifdef __AVX512F__
    return (vu32)_mm512_mask_movehdup_ps((__m512)last, 0x5555, (__m512)first);
#else
    return (vu32)v_bits_u64(v_u64(0xffffffff00000000), (vu64)last, (vu64)first >> 32);
#endif
}

/* 1.5 2^52 units. e: exponents of products, in the highest 16 bits. */
static ALWAYS_INLINE vf64 wide_start(const int tested, const wide_constants *t, vu64 e, vf64 c)
{
    if (tested) { /* numbers below the normal ones */
        const vu64 of_c = (vu64)c & t->magnitude;
        const m64 counts = v_gt_f64((vf64)of_c, v_f64(0x1p-200));
        c = (vf64)v_pick_u64(m64_and(counts, v_gt_f64(t->smallest, (vf64)of_c)), t->of_smallest, of_c);
    }
    return (vf64)(v_bits_u64(t->field, larger_exponent(e, c), t->half) + t->up);
}

/* Lanes that overflowed, and those of them that did below zero. */
typedef struct wide_over {
    unsigned lanes, minus;
    unsigned far; /* lanes with a product that may be beyond binary32: of additions in two stages  */
    unsigned addition, at[V_LANES / 2]; /* of those, too: the one that is made; the one that overflowed */
} wide_over;

/* The lanes of x that are beyond `most` for the first time. */
static ALWAYS_INLINE void add_over(wide_over *over, unsigned lanes, vf64 x)
{
    over->minus |= lanes & ~over->lanes & m64_bits(v_test_u64((vu64)x, v_u64(0x8000000000000000)));
    over->lanes |= lanes;
}

/* A sum as an accumulator, marked; the lanes that are no ordinary number in *over. */
static ALWAYS_INLINE vf64 wide_sum(const int tested, const wide_constants *t, vf64 x, wide_over *over)
{
    if (tested) {
        const vf64 size = (vf64)((vu64)x & t->magnitude);
        const vu64 low = (vu64)((size + t->spread) - t->spread) | ((vu64)x & ~t->magnitude);
        x = (vf64)v_pick_u64(v_gt_f64(t->smallest, size), low, (vu64)x);
        const vf64 cut = (vf64)((vu64)size & t->keep);
        const m64 is_over = v_gt_f64(cut, t->most);
        add_over(over, m64_bits(is_over), x);
        x = (vf64)v_keep_u64(m64_not(is_over), (vu64)x);
        return (vf64)(v_bits_u64(t->keep, (vu64)x, v_u64(0)) |
                      v_pick_u64(v_eq_u64((vu64)x << 1, v_u64(0)), (vu64)v_f64(MPSIM_WIDE_NOTHING), t->odd));
    }
    return (vf64)v_bits_u64(t->keep, (vu64)x, t->odd);
}

/* See cut_products. */
static ALWAYS_INLINE void wide_products(const int counts, const int tested, const size_t rows, const wide_constants *t,
                                        const mpsim_wide_operand *a, const mpsim_wide_operand *b, vi16 *e, vf64 (*c)[2],
                                        size_t n, size_t n_next, wide_over (*over)[2])
{
    vf64 s[WIDE_ROWS][2], zero[WIDE_ROWS][2];
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vu64 m = (vu64)v_max_i16(e[r], (vi16)((vu32)e[r] << 16));
        s[r][0] = zero[r][0] = wide_start(tested, t, m << 32, c[r][0]);
        s[r][1] = zero[r][1] = wide_start(tested, t, m, c[r][1]);
        e[r] = t->least;
    }
    size_t k = 0;
    for (; k < n_next; k += 2) {
        wide_exponents(rows, e, a, b, n + k);
        wide_chain(rows, a, b, s, k);
        wide_chain(rows, a, b, s, k + 1);
    }
    for (; k < n; k++)
        wide_chain(rows, a, b, s, k);
    const vu32 of_b = (vu32)v_load_u64(b->signs), top = v_u32(0x80000000);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vu32 of_products = v_u32(a->signs[r * a->next_signs]) ^ of_b;
        const vu32 signs = v_bits_u32(top, upper_halves(c[r][0], c[r][1]), of_products);
        const vu64 negative = (vu64)count_bits(counts, signs);
        const vu64 first = (vu64)(s[r][0] + c[r][0]) + (negative & ~t->high);
        const vu64 last = (vu64)(s[r][1] + c[r][1]) + (negative >> 32);
        c[r][0] = wide_sum(tested, t, (vf64)first - zero[r][0], &over[r][0]);
        c[r][1] = wide_sum(tested, t, (vf64)last - zero[r][1], &over[r][1]);
    }
}
