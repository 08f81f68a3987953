/* chain_vectors.h -- the loops of chain.h in vectors: included by one unit per instruction set,
 * which defines VECTOR, LANES, ROWS (how many are done at once), the operations on vectors, and
 * CHAIN. */

enum { VECTORS = MPSIM_PANEL / LANES };

static ALWAYS_INLINE VECTOR chain_add(int kind, VECTOR x, VECTOR y, VECTOR s)
{
    return kind == MPSIM_CHAIN_FMA ? FMA(x, y, s) : ADD(s, MUL(x, y));
}

/* `rows` rows at once; it and `kind` are constants where this is inlined. */
static ALWAYS_INLINE void chain_rows(const int kind, const size_t rows, const float *a, size_t next, const float *b,
                                     float *s, size_t depth)
{
    VECTOR sum[ROWS][VECTORS];
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < VECTORS; v++)
            sum[r][v] = LOAD(s + r * MPSIM_PANEL + v * LANES);
    for (size_t k = 0; k < depth; k++) {
        VECTOR y[VECTORS];
        for (size_t v = 0; v < VECTORS; v++)
            y[v] = LOAD(b + k * MPSIM_PANEL + v * LANES);
        for (size_t r = 0; r < rows; r++) {
            const VECTOR x = SPLAT(a[r * next + k]);
            for (size_t v = 0; v < VECTORS; v++)
                sum[r][v] = chain_add(kind, x, y[v], sum[r][v]);
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < VECTORS; v++)
            STORE(s + r * MPSIM_PANEL + v * LANES, sum[r][v]);
}

static ALWAYS_INLINE void chain_all(const int kind, const float *a, size_t next, const float *b, float *s, size_t rows,
                                    size_t depth)
{
    size_t r = 0;
    for (; r + ROWS <= rows; r += ROWS)
        chain_rows(kind, ROWS, a + r * next, next, b, s + r * MPSIM_PANEL, depth);
    for (; r < rows; r++)
        chain_rows(kind, 1, a + r * next, next, b, s + r * MPSIM_PANEL, depth);
}

/* Neighbours first: a stack of the sums of 2^i products. Each bit of k that is set is one of them;
 * what is left at the end is added from the shortest on, as the odd ones of every level are. */
static void tree(const float *a, const float *b, float *s, size_t depth)
{
    VECTOR stack[8 * sizeof(size_t) + 1][VECTORS];
    size_t top = 0;
    for (size_t k = 0; k < depth; k++, top++) {
        const VECTOR x = SPLAT(a[k]);
        for (size_t v = 0; v < VECTORS; v++)
            stack[top][v] = MUL(x, LOAD(b + k * MPSIM_PANEL + v * LANES));
        for (size_t bits = k; bits & 1; bits >>= 1, top--)
            for (size_t v = 0; v < VECTORS; v++)
                stack[top - 1][v] = ADD(stack[top - 1][v], stack[top][v]);
    }
    for (; top > 1; top--)
        for (size_t v = 0; v < VECTORS; v++)
            stack[top - 2][v] = ADD(stack[top - 2][v], stack[top - 1][v]);
    for (size_t v = 0; depth && v < VECTORS; v++)
        STORE(s + v * LANES, ADD(LOAD(s + v * LANES), stack[0][v]));
}

/* Fused multiply-adds in pairs, the second product first; an odd last one follows a product of zeros. */
static ALWAYS_INLINE void odd_first(const size_t rows, const float *a, size_t next, const float *b, float *s,
                                    size_t depth)
{
    VECTOR sum[ROWS][VECTORS];
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < VECTORS; v++)
            sum[r][v] = LOAD(s + r * MPSIM_PANEL + v * LANES);
    for (size_t k = 0; k < depth; k += 2) {
        const int both = k + 1 < depth;
        VECTOR y[2][VECTORS];
        for (size_t v = 0; v < VECTORS; v++) {
            y[0][v] = LOAD(b + k * MPSIM_PANEL + v * LANES);
            y[1][v] = both ? LOAD(b + (k + 1) * MPSIM_PANEL + v * LANES) : SPLAT(0);
        }
        for (size_t r = 0; r < rows; r++) {
            const VECTOR x = SPLAT(a[r * next + k]), z = SPLAT(both ? a[r * next + k + 1] : 0);
            for (size_t v = 0; v < VECTORS; v++)
                sum[r][v] = FMA(x, y[0][v], FMA(z, y[1][v], sum[r][v]));
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < VECTORS; v++)
            STORE(s + r * MPSIM_PANEL + v * LANES, sum[r][v]);
}

/* One chunk from +0: sums of even and of odd k, then both. */
static ALWAYS_INLINE void two_lanes(const size_t rows, const float *a, size_t next, const float *b, float *s,
                                    size_t depth)
{
    VECTOR even[ROWS][VECTORS], odd[ROWS][VECTORS];
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < VECTORS; v++)
            even[r][v] = odd[r][v] = SPLAT(0);
    for (size_t k = 0; k + 1 < depth; k += 2)
        for (size_t v = 0; v < VECTORS; v++) {
            const VECTOR y = LOAD(b + k * MPSIM_PANEL + v * LANES), z = LOAD(b + (k + 1) * MPSIM_PANEL + v * LANES);
            for (size_t r = 0; r < rows; r++) {
                even[r][v] = FMA(SPLAT(a[r * next + k]), y, even[r][v]);
                odd[r][v] = FMA(SPLAT(a[r * next + k + 1]), z, odd[r][v]);
            }
        }
    for (size_t v = 0; depth % 2 && v < VECTORS; v++) {
        const VECTOR y = LOAD(b + (depth - 1) * MPSIM_PANEL + v * LANES);
        for (size_t r = 0; r < rows; r++)
            even[r][v] = FMA(SPLAT(a[r * next + depth - 1]), y, even[r][v]);
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < VECTORS; v++)
            STORE(s + r * MPSIM_PANEL + v * LANES, ADD(even[r][v], odd[r][v]));
}

/* Not inlined, since the loops beside it would lack its registers. */
static __attribute__((noinline)) void instruction(int kind, const float *a, size_t next, const float *b, float *s,
                                                  size_t rows, size_t depth)
{
    size_t r = 0;
    for (; r + ROWS <= rows; r += ROWS)
        if (kind == MPSIM_CHAIN_ODD_FIRST)
            odd_first(ROWS, a + r * next, next, b, s + r * MPSIM_PANEL, depth);
        else
            two_lanes(ROWS, a + r * next, next, b, s + r * MPSIM_PANEL, depth);
    for (; r < rows; r++)
        if (kind == MPSIM_CHAIN_ODD_FIRST)
            odd_first(1, a + r * next, next, b, s + r * MPSIM_PANEL, depth);
        else
            two_lanes(1, a + r * next, next, b, s + r * MPSIM_PANEL, depth);
}

static void CHAIN(int kind, const float *a, size_t next, const float *b, float *s, size_t rows, size_t depth)
{
    if (kind == MPSIM_CHAIN_FMA)
        chain_all(MPSIM_CHAIN_FMA, a, next, b, s, rows, depth);
    else if (kind == MPSIM_CHAIN_MULADD)
        chain_all(MPSIM_CHAIN_MULADD, a, next, b, s, rows, depth);
    else if (mpsim_chain_flushes(kind))
        instruction(kind, a, next, b, s, rows, depth);
    else
        for (size_t r = 0; r < rows; r++)
            tree(a + r * next, b, s + r * MPSIM_PANEL, depth);
}

#undef VECTOR
#undef LANES
#undef ROWS
#undef LOAD
#undef STORE
#undef SPLAT
#undef MUL
#undef ADD
#undef FMA
