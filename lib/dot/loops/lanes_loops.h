/* lanes_loops.h -- the loops of lanes.h in vectors: included by one unit per instruction set, after its vectors
 * (lib/simd). A vector is V_LANES columns, or two of binary64. */

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

/* ---- all ---- */

static ALWAYS_INLINE void lanes_some(const int kind, const int flush, const size_t rows, const mpsim_lanes *p,
                                     const float *a, size_t next, const float *b, float *c, size_t depth,
                                     unsigned column, unsigned *redo)
{
    vf32 s[LANES_ROWS];
    UNROLL
    for (size_t r = 0; r < rows; r++)
        s[r] = v_load_f32(c + r * MPSIM_PANEL);
    for (size_t k = 0; k < depth; k += p->length) {
        const size_t n = depth - k < p->length ? depth - k : p->length;
        if (kind == MPSIM_LANES_EXACT)
            exact_addition(rows, a + k, next, b + k * MPSIM_PANEL, s, n, column, redo);
        else
            flushed_addition(flush, rows, a + k, next, b + k * MPSIM_PANEL, s, n);
    }
    UNROLL
    for (size_t r = 0; r < rows; r++)
        v_store_f32(c + r * MPSIM_PANEL, s[r]);
}

static ALWAYS_INLINE void lanes_all(const int kind, const int flush, const mpsim_lanes *p, const float *a, size_t next,
                                    const float *b, float *c, size_t rows, size_t depth, unsigned *redo)
{
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
        size_t r = 0;
        for (; r + LANES_ROWS <= rows; r += LANES_ROWS)
            lanes_some(kind, flush, LANES_ROWS, p, a + r * next, next, b + j, c + r * MPSIM_PANEL + j, depth, j,
                       redo + r);
        for (; r < rows; r++)
            lanes_some(kind, flush, 1, p, a + r * next, next, b + j, c + r * MPSIM_PANEL + j, depth, j, redo + r);
    }
}

static void lanes(const mpsim_lanes *p, const float *a, size_t next, const float *b, float *c, size_t rows,
                  size_t depth, unsigned *redo)
{
    if (p->kind == MPSIM_LANES_EXACT)
        lanes_all(MPSIM_LANES_EXACT, 0, p, a, next, b, c, rows, depth, redo);
    else if (p->flush_products)
        lanes_all(MPSIM_LANES_FLUSHED, 1, p, a, next, b, c, rows, depth, redo);
    else
        lanes_all(MPSIM_LANES_FLUSHED, 0, p, a, next, b, c, rows, depth, redo);
}
