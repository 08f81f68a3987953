/* cut_loops.h -- fused additions that keep few bits, by chains that round toward zero: see cut.h. Included by one unit
 * per instruction set, after fused_loops.h. Each runs in the environment that rounds toward zero; what it computes
 * beside the chains is exact. */

#ifdef __AVX512F__
enum { CUT_ROWS = 8 };
#else
enum { CUT_ROWS = 4 };
#endif

/* ---- operands ---- */

static ALWAYS_INLINE vu32 marked(vu32 u, uint32_t odd)
{
    return u | v_pick_u32(v_eq_u32(u << 1, v_u32(0)), v_u32(MPSIM_CUT_ZERO), v_u32(odd));
}

static void mark_columns(float *values, uint32_t *signs, size_t n)
{
    for (size_t j = 0; j < MPSIM_PANEL; j += V_LANES) {
        vu32 of_all = v_u32(0);
        for (size_t k = 0; k < n; k++) {
            float *at = values + k * MPSIM_PANEL + j;
            const vu32 u = v_load_u32(at);
            of_all = of_all >> 1 | (u & v_u32(0x80000000));
            v_store_u32(at, marked(u, MPSIM_CUT_ODD));
        }
        v_store_u32(signs + j, v_shr_u32(of_all, v_u32((uint32_t)(32 - n))));
    }
}

static void mark_row(float *values, uint32_t *signs, size_t n)
{
    uint32_t last[V_LANES] = {0}, bits = 0;
    size_t k = 0;
    for (; k + V_LANES <= n; k += V_LANES) {
        const vu32 u = v_load_u32(values + k);
        bits |= m32_bits(v_top_u32(u)) << k;
        v_store_u32(values + k, marked(u, 0));
    }
    if (k < n) {
        memcpy(last, values + k, (n - k) * sizeof last[0]);
        const vu32 u = v_load_u32(last);
        bits |= m32_bits(v_top_u32(u)) << k;
        v_store_u32(last, marked(u, 0));
        memcpy(values + k, last, (n - k) * sizeof last[0]);
    }
    *signs = bits;
}

/* ---- chains ---- */

/* s + x y; without the instruction x y is rounded, too, toward zero: see cut.h. */
static ALWAYS_INLINE vf32 cut_step(vf32 x, vf32 y, vf32 s)
{
#ifdef __AVX2__
    return v_fma_f32(x, y, s);
#else
    return s + x * y;
#endif
}

static int cuts(void)
{
    volatile float x = 1.5F, s = 0x1p24F; /* whose sum is nearer to 2^24 + 2 */
    float sum[V_LANES];
    v_store_f32(sum, cut_step(v_f32(x), v_f32(1), v_f32(s)));
    return sum[0] == 0x1p24F;
}

static ALWAYS_INLINE vu32 count_bits(vu32 x)
{
    x = x - (x >> 1 & v_u32(0x55555555));
    x = (x & v_u32(0x33333333)) + (x >> 2 & v_u32(0x33333333));
    x = (x + (x >> 4)) & v_u32(0x0f0f0f0f);
    x = x + (x >> 8);
    return (x + (x >> 16)) & v_u32(0x3f);
}

/* The larger exponents of the pairs, and of c. */
static ALWAYS_INLINE vi32 largest_exponent(vi16 pairs, vf32 c)
{
    const vi32 low = (vi32)pairs << 16 >> 16, high = (vi32)pairs >> 16;
    return v_max_i32(v_max_i32(low, high), (vi32)(((vu32)c << 1) >> 24) - v_i32(127));
}

/* One addition of n products to the accumulators of `rows` rows; V_LANES columns from `column` on. */
static ALWAYS_INLINE void cut_products(const size_t rows, const mpsim_tile *t, const mpsim_cut_operand *a,
                                       const mpsim_cut_operand *b, vf32 *c, size_t n, unsigned column, unsigned *redo)
{
    const vi32 least = v_i32(t->floor > t->lowest ? t->floor : t->lowest);
    const vu32 keep = v_u32(UINT32_MAX << (23 - t->mbits)), start = v_u32(1u << 22), of_b = v_load_u32(b->signs);
    vi16 pairs[CUT_ROWS];
    vi32 raw[CUT_ROWS];
    vu32 zero[CUT_ROWS]; /* the bits of 2^23 units */
    vf32 s[CUT_ROWS];
    largest_pairs(rows, pairs, a->exponents, a->next, b->exponents, n);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        raw[r] = largest_exponent(pairs[r], c[r]);
        zero[r] = (vu32)(v_max_i32(raw[r], least) + v_i32(150 - t->fraction)) << 23;
        s[r] = (vf32)(zero[r] + start);
    }
    for (size_t k = 0; k < n; k++) {
        const vf32 y = v_load_f32(b->values + k * MPSIM_PANEL);
        UNROLL
        for (size_t r = 0; r < rows; r++)
            s[r] = cut_step(v_f32(a->values[r * a->next + k]), y, s[r]);
    }
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vf32 up = (vf32)(v_u32((150u + 127) << 23) - zero[r]), unit = (vf32)(zero[r] - v_u32(23u << 23));
        const vu32 negative = count_bits(v_u32(a->signs[r * a->next_signs]) ^ of_b);
        const vu32 sum = (vu32)s[r] - zero[r] - start + negative + (vu32)v_i32_of_f32(c[r] * up);
        const vf32 to = (vf32)((vu32)v_f32_of_i32((vi32)sum) & keep) * unit;
        const vi32 not_zero = (vi32)(v_u32(0) - ((vu32)c[r] & v_u32(0x7fffffff))); /* negative */
        const vi32 trouble = (v_i32(MPSIM_TILE_HIGH) - raw[r]) | ((raw[r] - v_i32(t->lowest)) & not_zero);
        c[r] = but_alone(m32_bits(v_top_u32((vu32)trouble)), t, a->values + r * a->next, a->exponents + r * a->next,
                         b->values, b->exponents, c[r], to, n, column, &redo[r]);
    }
}

static ALWAYS_INLINE void cut_some(const size_t rows, const mpsim_tile *t, mpsim_cut_operand a, mpsim_cut_operand b,
                                   float *c, size_t depth, unsigned column, unsigned *redo)
{
    const size_t length = (size_t)t->length;
    vf32 s[CUT_ROWS];
    UNROLL
    for (size_t r = 0; r < rows; r++)
        s[r] = v_load_f32(c + r * MPSIM_PANEL);
    for (size_t k = 0; k < depth; k += length) {
        cut_products(rows, t, &a, &b, s, depth - k < length ? depth - k : length, column, redo);
        a.values += length;
        a.exponents += length;
        a.signs++;
        b.values += length * MPSIM_PANEL;
        b.exponents += length * MPSIM_PANEL;
        b.signs += MPSIM_PANEL;
    }
    UNROLL
    for (size_t r = 0; r < rows; r++)
        v_store_f32(c + r * MPSIM_PANEL, s[r]);
}

static void cut(const mpsim_tile *t, const mpsim_cut_operand *a, const mpsim_cut_operand *b, float *c, size_t rows,
                size_t depth, unsigned *redo)
{
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
        const mpsim_cut_operand of_b = {b->values + j, b->exponents + 2 * j, b->signs + j, 0, 0};
        for (size_t r = 0; r < rows;) {
            const mpsim_cut_operand of_a = {a->values + r * a->next, a->exponents + r * a->next,
                                            a->signs + r * a->next_signs, a->next, a->next_signs};
            const size_t some = rows - r < CUT_ROWS ? 1 : CUT_ROWS;
            if (some == 1)
                cut_some(1, t, of_a, of_b, c + r * MPSIM_PANEL + j, depth, j, redo + r);
            else
                cut_some(CUT_ROWS, t, of_a, of_b, c + r * MPSIM_PANEL + j, depth, j, redo + r);
            r += some;
        }
    }
}
