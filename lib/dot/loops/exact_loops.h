/* exact_loops.h -- the loops of exact.h: included by one unit per instruction set, after its vectors
 * (lib/simd). */

enum { F64_LANES = V_LANES / 2, EXACT_VECTORS = 2 /* at once */ };

/* x y + s, which is exact. */
static ALWAYS_INLINE vf64 exact_add(vf64 x, vf64 y, vf64 s)
{
#if defined __FMA__ || defined __AVX512F__ || defined __FP_FAST_FMA
    return v_fma_f64(x, y, s);
#else
    return x * y + s;
#endif
}

static void slice(const double *x, const double (*c)[MPSIM_PANEL], double *to, size_t count, size_t n)
{
    for (size_t k = 0; k < n; k++, x += MPSIM_PANEL, to += count * MPSIM_PANEL)
        for (size_t j = 0; j < MPSIM_PANEL; j += F64_LANES) {
            vf64 rest = v_load_f64(x + j);
            for (size_t i = count - 1; i > 0; i--) {
                const vf64 by = v_load_f64(c[i] + j), part = (rest + by) - by;
                v_store_f64(to + i * MPSIM_PANEL + j, part);
                rest -= part;
            }
            v_store_f64(to + j, rest);
        }
}

/* `count` slices, a constant where this is inlined; EXACT_VECTORS vectors of columns. */
static ALWAYS_INLINE void slices_some(const size_t count, const double *a, const double *b, double (*s)[MPSIM_PANEL],
                                      size_t depth)
{
    vf64 sum[2 * MPSIM_SLICES - 1][EXACT_VECTORS];
    UNROLL
    for (size_t d = 0; d < 2 * count - 1; d++)
        UNROLL
    for (size_t v = 0; v < EXACT_VECTORS; v++)
        sum[d][v] = v_load_f64(s[d] + v * F64_LANES);
    for (size_t k = 0; k < depth; k++, b += count * MPSIM_PANEL) {
        const double *x = a + k / MPSIM_PANEL * count * MPSIM_PANEL + k % MPSIM_PANEL;
        UNROLL
        for (size_t i = 0; i < count; i++)
            UNROLL
        for (size_t j = 0; j < count; j++)
            UNROLL
        for (size_t v = 0; v < EXACT_VECTORS; v++)
            sum[i + j][v] = exact_add(v_f64(x[i * MPSIM_PANEL]), v_load_f64(b + j * MPSIM_PANEL + v * F64_LANES),
                                      sum[i + j][v]);
    }
    UNROLL
    for (size_t d = 0; d < 2 * count - 1; d++)
        UNROLL
    for (size_t v = 0; v < EXACT_VECTORS; v++)
        v_store_f64(s[d] + v * F64_LANES, sum[d][v]);
}

static void slices(const double *a, const double *b, double (*s)[MPSIM_PANEL], size_t count, size_t depth)
{
    for (size_t j = 0; j < MPSIM_PANEL; j += EXACT_VECTORS * F64_LANES)
        if (count == 2)
            slices_some(2, a, b + j, (double(*)[MPSIM_PANEL])(s[0] + j), depth);
        else
            slices_some(3, a, b + j, (double(*)[MPSIM_PANEL])(s[0] + j), depth);
}
