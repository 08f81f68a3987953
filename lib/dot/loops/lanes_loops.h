/* lanes_loops.h -- the loops of lanes.h in vectors: included by one unit per instruction set, after its vectors
 * (lib/simd) and fused_loops.h. A vector is V_LANES columns, or two of binary64. */

enum { LANES_ROWS = 4 };

/* ---- exact sums ---- */

/* s + p, its error into *error. */
static ALWAYS_INLINE vf64 two_sum(vf64 s, vf64 p, vu64 *error)
{
    const vf64 t = s + p, of_p = t - s, of_s = t - of_p;
    *error |= (vu64)((s - of_s) + (p - of_p));
    return t;
}

static ALWAYS_INLINE void exact_addition(const size_t rows, const float *a, size_t next, const float *b, vf32 *c,
                                         size_t n, unsigned column, unsigned *redo)
{
    vf64 s[LANES_ROWS][2];
    vu64 error[LANES_ROWS][2];
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        s[r][0] = v_first_f64(c[r]);
        s[r][1] = v_last_f64(c[r]);
        error[r][0] = error[r][1] = v_u64(0);
    }
    for (size_t k = 0; k < n; k++) {
        const vf32 y = v_load_f32(b + k * MPSIM_PANEL);
        const vf64 first = v_first_f64(y), last = v_last_f64(y);
        UNROLL
        for (size_t r = 0; r < rows; r++) {
            const vf64 x = v_f64((double)a[r * next + k]);
            s[r][0] = two_sum(s[r][0], x * first, &error[r][0]);
            s[r][1] = two_sum(s[r][1], x * last, &error[r][1]);
        }
    }
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vf32 to = v_narrow_f32(s[r][0] + v_f64(0), s[r][1] + v_f64(0)); /* -0 + 0 is +0 */
        const vu64 magnitude = v_u64(0x7fffffffffffffff);
        const unsigned alone = m64_bits(v_test_u64(error[r][0], magnitude)) |
                               m64_bits(v_test_u64(error[r][1], magnitude)) << V_LANES / 2;
        if (__builtin_expect(alone != 0, 0)) {
            float from[V_LANES], lanes[V_LANES];
            v_store_f32(from, c[r]);
            v_store_f32(lanes, to);
            for (unsigned j = 0; j < V_LANES; j++)
                if (alone >> j & 1) {
                    redo[r] |= mpsim_lanes_exact(a + r * next, b + j, &from[j], n) << (column + j);
                    lanes[j] = from[j];
                }
            c[r] = v_load_f32(lanes);
        } else {
            c[r] = to;
        }
    }
}

/* ---- without subnormal numbers ---- */

static ALWAYS_INLINE vf32 flush_lanes(vf32 x)
{
    const m32 is_small = v_eq_u32((vu32)x & v_u32(0x7f800000), v_u32(0));
    return (vf32)v_pick_u32(is_small, (vu32)x & v_u32(0x80000000), (vu32)x);
}

static ALWAYS_INLINE vf32 flushed_product(const int flush, float x, const float *y)
{
    const vf32 p = v_f32(x) * v_load_f32(y);
    return flush ? flush_lanes(p) : p;
}

/* The tree of n <= 4 products. */
static ALWAYS_INLINE vf32 flushed_tree(const int flush, const size_t n, const float *a, const float *b)
{
    vf32 s = flushed_product(flush, a[0], b);
    if (n > 1)
        s = flush_lanes(s + flushed_product(flush, a[1], b + MPSIM_PANEL));
    if (n == 3)
        s = flush_lanes(s + flushed_product(flush, a[2], b + 2 * MPSIM_PANEL));
    if (n == 4)
        s = flush_lanes(s + flush_lanes(flushed_product(flush, a[2], b + 2 * MPSIM_PANEL) +
                                        flushed_product(flush, a[3], b + 3 * MPSIM_PANEL)));
    return s;
}

static ALWAYS_INLINE void flushed_addition(const int flush, const size_t rows, const float *a, size_t next,
                                           const float *b, vf32 *c, size_t n)
{
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const float *x = a + r * next;
        const vf32 t = n == 4   ? flushed_tree(flush, 4, x, b)
                       : n == 3 ? flushed_tree(flush, 3, x, b)
                       : n == 2 ? flushed_tree(flush, 2, x, b)
                                : flushed_tree(flush, 1, x, b);
        c[r] = flush_lanes(c[r] + t);
    }
}

/* ---- in two stages ---- */

/* (high 2^lower + low) 2^unit with 0 <= low < 2^lower, rounded toward -infinity to kept + 1 bits, then to binary32. */
static ALWAYS_INLINE vf64 staged_number(const mpsim_lanes *p, vi64 high, vu64 low, vi64 unit)
{
    const vi64 magic = v_i64(0x4338000000000000);              /* 1.5 2^52 */
    const vi64 v = (vi64)((vu64)high << p->lower) + (vi64)low; /* at most 41 bits */
    const vf64 x = (vf64)(v + magic) - (vf64)magic;
    const vf64 power_of_x = (vf64)((vu64)x & v_u64(0x7ff0000000000000));
    const vf64 keep = power_of_x * v_f64(1.5 * (double)(1ll << (52 - p->staged.kept)));
    const vf64 near = (x + keep) - keep;
    const vf64 last = power_of_x * v_f64(1 / (double)(1ll << p->staged.kept));
    const vf64 step = (vf64)v_keep_u64(v_gt_f64(near, x), (vu64)last);
    return (near - step) * (vf64)((unit + v_i64(1023)) << 52);
}

/* The sum and the accumulator together. t: in units of 2^(e - fraction), e its exponent, or far below for none. */
static ALWAYS_INLINE vf32 staged_finish(const mpsim_lanes *p, vi32 t, vi32 e, vf32 c, vi32 *trouble)
{
    const int fraction = p->staged.fraction, lower = p->lower;
    const vu32 field = ((vu32)c << 1) >> 24;
    const vi32 e_c = v_max_i32((vi32)field - v_i32(127), v_i32(-126));
    const vu32 implicit = v_keep_u32(v_gt_u32(field, v_u32(0)), v_u32(1u << 23));
    const vi32 sign = (vi32)c >> 31;
    const vi32 m = (vi32)((((vu32)c & v_u32(0x7fffff)) | implicit) << (fraction - 23));
    const vi32 largest = v_max_i32(v_max_i32(e, e_c), v_i32(MPSIM_TILE_LOW));
    const vi32 d = largest - e, d_c = largest - e_c;
    const m32 no_sum = v_gt_i32(v_i32(MPSIM_EXPONENT_ZERO / 2), e);

    /* c toward -infinity; with `drop`, none below the last bit but one */
    vi32 whole_c = v_sar_i32((m ^ sign) - sign, (vu32)d_c);
    if (p->staged.drop)
        whole_c = (vi32)v_keep_u32(m32_not(v_gt_i32(d_c, v_i32(fraction + 1))), (vu32)whole_c);
    const vi32 sum = (vi32)v_keep_u32(m32_not(no_sum), (vu32)t);
    const vi32 high = (vi32)((vu32)v_sar_i32(sum, (vu32)d) + (vu32)whole_c); /* a lane that is redone may wrap */
    const m32 is_near = v_gt_i32(v_i32(lower + 1), d);
    const vu32 up = v_shl_u32((vu32)sum, v_keep_u32(is_near, (vu32)(v_i32(lower) - d)));
    const vu32 down = (vu32)v_sar_i32(sum, v_keep_u32(m32_not(is_near), (vu32)(d - v_i32(lower))));
    const vu32 low = v_pick_u32(is_near, up, down) & v_u32((1u << lower) - 1);

    /* out of range: below, unless there is nothing; above */
    const vu32 nothing = ((vu32)c << 1) | v_keep_u32(m32_not(no_sum), v_u32(1));
    const vi32 below = v_max_i32(
        e, (vi32)v_pick_u32(v_eq_u32((vu32)c << 1, v_u32(0)), v_u32((uint32_t)MPSIM_EXPONENT_ZERO), (vu32)e_c));
    *trouble |= (v_i32(MPSIM_TILE_HIGH) - largest) |
                (vi32)v_keep_u32(m32_not(v_eq_u32(nothing, v_u32(0))), (vu32)(below - v_i32(MPSIM_TILE_LOW)));
    const vi32 unit = largest - v_i32(fraction + lower);
    return v_narrow_f32(staged_number(p, v_first_i64(high), v_first_u64(low), v_first_i64(unit)),
                        staged_number(p, v_last_i64(high), v_last_u64(low), v_last_i64(unit)));
}

static __attribute__((noinline)) void staged_alone(unsigned lanes, const mpsim_lanes *p, const float *a,
                                                   const int16_t *ea, const float *b, const int16_t *eb, vf32 *c,
                                                   vf32 to, size_t n, unsigned column, unsigned *redo)
{
    float from[V_LANES], result[V_LANES];
    v_store_f32(from, *c);
    v_store_f32(result, to);
    for (unsigned j = 0; j < V_LANES; j++)
        if (lanes >> j & 1) {
            *redo |= mpsim_lanes_staged(p, a, ea, b + j, eb + 2 * j, &from[j], n) << (column + j);
            result[j] = from[j];
        }
    *c = v_load_f32(result);
}

static ALWAYS_INLINE void staged_addition(const int ways, const size_t rows, const mpsim_lanes *p, const float *a,
                                          const int16_t *ea, size_t next, const float *b, const int16_t *eb, vf32 *c,
                                          size_t n, unsigned column, unsigned *redo)
{
    vi16 pairs[LANES_ROWS];
    vi32 e[LANES_ROWS][2], sum[LANES_ROWS][2], trouble[LANES_ROWS];
    vf32 up[LANES_ROWS][2];
    largest_pairs(rows, pairs, ea, next, eb, n);
    const vi32 least = v_i32(MPSIM_TILE_LOW), none = v_i32(MPSIM_EXPONENT_ZERO / 2),
               fraction = v_i32(p->staged.fraction);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        e[r][MPSIM_FIRST_IS_HIGH] = (vi32)pairs[r] << 16 >> 16;
        e[r][!MPSIM_FIRST_IS_HIGH] = (vi32)pairs[r] >> 16;
        if (ways == 1)
            e[r][0] = v_max_i32(e[r][0], e[r][1]);
        trouble[r] = v_i32(0);
        for (int way = 0; way < ways; way++) {
            const vi32 x = e[r][way];
            trouble[r] |= ((x - least) & (none - x)) | (v_i32(MPSIM_TILE_HIGH) - x);
            up[r][way] = power(fraction - v_max_i32(x, least));
            sum[r][way] = v_i32(0);
        }
    }
    for (size_t k = 0; k < n; k++) {
        const vf32 y = v_load_f32(b + k * MPSIM_TILE);
        const size_t way = ways == 1 ? 0 : k % 2;
        UNROLL
        for (size_t r = 0; r < rows; r++)
            sum[r][way] = (vi32)((vu32)sum[r][way] + (vu32)v_i32_of_f32(v_f32(a[r * next + k]) * y * up[r][way]));
    }
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        vi32 t = sum[r][0], largest = e[r][0];
        if (ways == 2) {
            largest = v_max_i32(e[r][0], e[r][1]);
            t = (vi32)((vu32)v_sar_i32(sum[r][0], (vu32)(largest - e[r][0])) +
                       (vu32)v_sar_i32(sum[r][1], (vu32)(largest - e[r][1])));
        }
        const vf32 to = staged_finish(p, t, largest, c[r], &trouble[r]);
        const unsigned alone = m32_bits(v_top_u32((vu32)trouble[r]));
        if (__builtin_expect(alone != 0, 0))
            staged_alone(alone, p, a + r * next, ea + r * next, b, eb, &c[r], to, n, column, &redo[r]);
        else
            c[r] = to;
    }
}

/* ---- all ---- */

static ALWAYS_INLINE void lanes_some(const int kind, const int variant, const size_t rows, const mpsim_lanes *p,
                                     const float *a, const int16_t *ea, size_t next, const float *b, const int16_t *eb,
                                     float *c, size_t depth, unsigned column, unsigned *redo)
{
    vf32 s[LANES_ROWS];
    UNROLL
    for (size_t r = 0; r < rows; r++)
        s[r] = v_load_f32(c + r * MPSIM_TILE);
    for (size_t k = 0; k < depth; k += p->length) {
        const size_t n = depth - k < p->length ? depth - k : p->length;
        if (kind == MPSIM_LANES_EXACT)
            exact_addition(rows, a + k, next, b + k * MPSIM_TILE, s, n, column, redo);
        else if (kind == MPSIM_LANES_FLUSHED)
            flushed_addition(variant, rows, a + k, next, b + k * MPSIM_TILE, s, n);
        else
            staged_addition(variant, rows, p, a + k, ea + k, next, b + k * MPSIM_TILE, eb + k * MPSIM_TILE, s, n,
                            column, redo);
    }
    UNROLL
    for (size_t r = 0; r < rows; r++)
        v_store_f32(c + r * MPSIM_TILE, s[r]);
}

static ALWAYS_INLINE void lanes_all(const int kind, const int variant, const mpsim_lanes *p, const float *a,
                                    const int16_t *ea, size_t next, const float *b, const int16_t *eb, float *c,
                                    size_t rows, size_t depth, unsigned *redo)
{
    for (unsigned j = 0; j < MPSIM_TILE; j += V_LANES) {
        const int16_t *e = eb ? eb + 2 * j : NULL;
        size_t r = 0;
        for (; r + LANES_ROWS <= rows; r += LANES_ROWS)
            lanes_some(kind, variant, LANES_ROWS, p, a + r * next, ea ? ea + r * next : NULL, next, b + j, e,
                       c + r * MPSIM_TILE + j, depth, j, redo + r);
        for (; r < rows; r++)
            lanes_some(kind, variant, 1, p, a + r * next, ea ? ea + r * next : NULL, next, b + j, e,
                       c + r * MPSIM_TILE + j, depth, j, redo + r);
    }
}

static void lanes(const mpsim_lanes *p, const float *a, const int16_t *ea, size_t next, const float *b,
                  const int16_t *eb, float *c, size_t rows, size_t depth, unsigned *redo)
{
    if (p->kind == MPSIM_LANES_EXACT)
        lanes_all(MPSIM_LANES_EXACT, 0, p, a, ea, next, b, eb, c, rows, depth, redo);
    else if (p->kind == MPSIM_LANES_FLUSHED && p->flush_products)
        lanes_all(MPSIM_LANES_FLUSHED, 1, p, a, ea, next, b, eb, c, rows, depth, redo);
    else if (p->kind == MPSIM_LANES_FLUSHED)
        lanes_all(MPSIM_LANES_FLUSHED, 0, p, a, ea, next, b, eb, c, rows, depth, redo);
    else if (p->staged.ways == 1)
        lanes_all(MPSIM_LANES_STAGED, 1, p, a, ea, next, b, eb, c, rows, depth, redo);
    else
        lanes_all(MPSIM_LANES_STAGED, 2, p, a, ea, next, b, eb, c, rows, depth, redo);
}
