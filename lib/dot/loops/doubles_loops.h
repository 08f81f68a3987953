/* doubles_loops.h -- chains of multiply-adds in binary64, fused ones (lanes.h) and exact ones (chain.h): included by one
 * unit per instruction set, after rounded_vectors.h. Two vectors of columns, so many rows that the sums
 * stay in registers. */

#ifdef __AVX512F__
enum { DOUBLES_ROWS = 8 };
#else
enum { DOUBLES_ROWS = 4 };
#endif

/* x y + s. Where it is exact, a machine without the instruction needs none. */
static ALWAYS_INLINE vf64 doubles_add(const int is_exact, vf64 x, vf64 y, vf64 s)
{
#if defined __FMA__ || defined __AVX512F__ || defined __FP_FAST_FMA
    (void)is_exact;
    return v_fma_f64(x, y, s);
#else
    return is_exact ? x * y + s : v_fma_f64(x, y, s);
#endif
}

static ALWAYS_INLINE void doubles_some(const int is_exact, const size_t rows, const double *a, size_t next,
                                       const double *b, double *c, size_t depth)
{
    vf64 s[DOUBLES_ROWS][2];
    UNROLL
    for (size_t r = 0; r < rows; r++)
        UNROLL
    for (size_t v = 0; v < 2; v++)
        s[r][v] = v_load_f64(c + r * MPSIM_PANEL + v * V_LANES / 2);
    for (size_t k = 0; k < depth; k++) {
        const vf64 y = v_load_f64(b + k * MPSIM_PANEL), z = v_load_f64(b + k * MPSIM_PANEL + V_LANES / 2);
        UNROLL
        for (size_t r = 0; r < rows; r++) {
            const vf64 x = v_f64(a[r * next + k]);
            s[r][0] = doubles_add(is_exact, x, y, s[r][0]);
            s[r][1] = doubles_add(is_exact, x, z, s[r][1]);
        }
    }
    UNROLL
    for (size_t r = 0; r < rows; r++)
        UNROLL
    for (size_t v = 0; v < 2; v++)
        v_store_f64(c + r * MPSIM_PANEL + v * V_LANES / 2, s[r][v]);
}

static ALWAYS_INLINE void doubles_all(const int is_exact, const double *a, size_t next, const double *b, double *c,
                                      size_t rows, size_t depth)
{
    for (size_t j = 0; j < MPSIM_PANEL; j += V_LANES) {
        size_t r = 0;
        for (; r + DOUBLES_ROWS <= rows; r += DOUBLES_ROWS)
            doubles_some(is_exact, DOUBLES_ROWS, a + r * next, next, b + j, c + r * MPSIM_PANEL + j, depth);
        for (; r < rows; r++)
            doubles_some(is_exact, 1, a + r * next, next, b + j, c + r * MPSIM_PANEL + j, depth);
    }
}

static void doubles(const double *a, size_t next, const double *b, double *c, size_t rows, size_t depth)
{
    doubles_all(0, a, next, b, c, rows, depth);
}

#if defined __FMA__ || defined __AVX512F__ || defined __FP_FAST_FMA
#define exact_doubles doubles
#else
static void exact_doubles(const double *a, size_t next, const double *b, double *c, size_t rows, size_t depth)
{
    doubles_all(1, a, next, b, c, rows, depth);
}
#endif

/* ---- halves (exact.h) ---- */

static void halves(const double *x, double cut, double *high, double *low, size_t n)
{
    size_t k = 0;
    for (; k + V_LANES / 2 <= n; k += V_LANES / 2) {
        const vf64 all = v_load_f64(x + k), by = v_f64(cut), part = (all + by) - by;
        v_store_f64(high + k, part);
        v_store_f64(low + k, all - part);
    }
    for (; k < n; k++) {
        high[k] = (x[k] + cut) - cut;
        low[k] = x[k] - high[k];
    }
}

static void odd(const double *high, const double *low, double *s)
{
    for (size_t j = 0; j < MPSIM_PANEL; j += V_LANES / 2)
        v_store_f64(s + j, add_odd(v_load_f64(high + j), v_load_f64(low + j)));
}
