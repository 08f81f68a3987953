/* chain_vectors.h -- the loops of chain.h in vectors: included by one unit per instruction set,
 * which defines VECTOR, LANES, ROWS (how many are done at once), PANELS (how many beside each other), the
 * operations on vectors, and CHAIN.
 *
 * Multiplications bound them as long as no load does: a value of a is loaded once for all vectors of columns that are
 * beside each other, one of b once for all rows, and loops over these are unrolled, so that sums stay in registers. */

enum { VECTORS = MPSIM_PANEL / LANES, WIDE = PANELS * VECTORS };

typedef VECTOR chain_sums[ROWS][WIDE];

/* Some rows and vectors of columns; how many is a constant where the functions below are inlined, as is the kind. */
typedef struct chain_tile {
    const float *a, *b;
    size_t next, apart; /* of rows, of panels */
    size_t depth;
} chain_tile;

/* Where vector v begins in panels that are `apart` values from each other. */
static ALWAYS_INLINE size_t vector_at(size_t v, size_t apart)
{
    return v / VECTORS * apart + v % VECTORS * LANES;
}

static ALWAYS_INLINE VECTOR chain_add(int kind, VECTOR x, VECTOR y, VECTOR s)
{
    return kind == MPSIM_CHAIN_MULADD ? ADD(s, MUL(x, y)) : FMA(x, y, s);
}

/* The products number k. */
static ALWAYS_INLINE void chain_step(const int kind, const size_t rows, const size_t vectors, const chain_tile *t,
                                     size_t k, VECTOR (*sum)[WIDE])
{
    VECTOR y[WIDE];
    UNROLL
    for (size_t v = 0; v < vectors; v++)
        y[v] = LOAD(t->b + k * MPSIM_PANEL + vector_at(v, t->apart));
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const VECTOR x = SPLAT(t->a[r * t->next + k]);
        UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[r][v] = chain_add(kind, x, y[v], sum[r][v]);
    }
}

static ALWAYS_INLINE void chain_all(const int kind, const size_t rows, const size_t vectors, const chain_tile *t,
                                    VECTOR (*sum)[WIDE])
{
    for (size_t k = 0; k < t->depth; k++)
        chain_step(kind, rows, vectors, t, k, sum);
}

/* In pairs, the second product first; an odd last one follows a product of zeros. */
static ALWAYS_INLINE void odd_first(const size_t rows, const size_t vectors, const chain_tile *t, VECTOR (*sum)[WIDE])
{
    size_t k = 0;
    for (; k + 1 < t->depth; k += 2) {
        chain_step(MPSIM_CHAIN_FMA, rows, vectors, t, k + 1, sum);
        chain_step(MPSIM_CHAIN_FMA, rows, vectors, t, k, sum);
    }
    if (k == t->depth)
        return;
    UNROLL
    for (size_t r = 0; r < rows; r++)
        UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[r][v] = FMA(SPLAT(0), SPLAT(0), sum[r][v]);
    chain_step(MPSIM_CHAIN_FMA, rows, vectors, t, k, sum);
}

/* Sums of even and of odd k, then both. */
static ALWAYS_INLINE void two_lanes(const size_t rows, const size_t vectors, const chain_tile *t, VECTOR (*sum)[WIDE])
{
    chain_sums odd;
    size_t k = 0;
    UNROLL
    for (size_t r = 0; r < rows; r++)
        UNROLL
    for (size_t v = 0; v < vectors; v++)
        odd[r][v] = SPLAT(0);
    for (; k + 1 < t->depth; k += 2) {
        chain_step(MPSIM_CHAIN_FMA, rows, vectors, t, k, sum);
        chain_step(MPSIM_CHAIN_FMA, rows, vectors, t, k + 1, odd);
    }
    if (k < t->depth)
        chain_step(MPSIM_CHAIN_FMA, rows, vectors, t, k, sum);
    UNROLL
    for (size_t r = 0; r < rows; r++)
        UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[r][v] = ADD(sum[r][v], odd[r][v]);
}

/* The sums from s on, or, of a chunk, from +0 and added to s. */
static ALWAYS_INLINE void chain_part(const int kind, const size_t rows, const size_t vectors, const chain_tile *t,
                                     float *s, size_t sums, int is_chunk)
{
    chain_sums sum;
    UNROLL
    for (size_t r = 0; r < rows; r++)
        UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[r][v] = is_chunk ? SPLAT(0) : LOAD(s + r * MPSIM_PANEL + vector_at(v, sums));
    if (kind == MPSIM_CHAIN_ODD_FIRST)
        odd_first(rows, vectors, t, sum);
    else if (kind == MPSIM_CHAIN_LANES)
        two_lanes(rows, vectors, t, sum);
    else
        chain_all(kind, rows, vectors, t, sum);
    UNROLL
    for (size_t r = 0; r < rows; r++)
        UNROLL
    for (size_t v = 0; v < vectors; v++) {
        float *to = s + r * MPSIM_PANEL + vector_at(v, sums);
        STORE(to, is_chunk ? ADD(LOAD(to), sum[r][v]) : sum[r][v]);
    }
}

/* All chunks; `row` and `panel` are the first. */
static ALWAYS_INLINE void chain_chunks(const int kind, const size_t rows, const size_t vectors,
                                       const mpsim_chain_work *w, size_t row, size_t panel, float *s)
{
    const size_t chunk = w->chunk ? w->chunk : w->depth;
    float *to = s + row * MPSIM_PANEL + panel * w->sums;
    for (size_t k = 0; k < w->depth; k += chunk) {
        const chain_tile t = {w->a + row * w->next + k, w->b + panel * w->apart + k * MPSIM_PANEL, w->next, w->apart,
                              w->depth - k < chunk ? w->depth - k : chunk};
        chain_part(kind, rows, vectors, &t, to, w->sums, w->chunk != 0);
    }
}

/* `most` rows at once. Those that are left are done one by one, as are panels. */
static ALWAYS_INLINE void chain_kind(const int kind, const size_t most, const mpsim_chain_work *w, float *s)
{
    size_t r = 0, p;
    for (; r + most <= w->rows; r += most) {
        for (p = 0; p + PANELS <= w->panels; p += PANELS)
            chain_chunks(kind, most, WIDE, w, r, p, s);
        for (; p < w->panels; p++)
            chain_chunks(kind, most, VECTORS, w, r, p, s);
    }
    for (; r < w->rows; r++)
        for (p = 0; p < w->panels; p++)
            chain_chunks(kind, 1, VECTORS, w, r, p, s);
}

/* Not inlined, since the loops beside it would lack its registers. */
static __attribute__((noinline)) void chain_fma(const mpsim_chain_work *w, float *s)
{
    chain_kind(MPSIM_CHAIN_FMA, ROWS, w, s);
}

static __attribute__((noinline)) void chain_muladd(const mpsim_chain_work *w, float *s)
{
    chain_kind(MPSIM_CHAIN_MULADD, ROWS, w, s);
}

static __attribute__((noinline)) void chain_odd_first(const mpsim_chain_work *w, float *s)
{
    chain_kind(MPSIM_CHAIN_ODD_FIRST, ROWS, w, s);
}

static __attribute__((noinline)) void chain_two_lanes(const mpsim_chain_work *w, float *s)
{
    chain_kind(MPSIM_CHAIN_LANES, ROWS / 2, w, s);
}

/* Neighbours first: a stack of the sums of 2^i products. Each bit of k that is set is one of them;
 * what is left at the end is added from the shortest on, as the odd ones of every level are. */
static void tree(const float *a, const float *b, float *s, size_t depth)
{
    VECTOR stack[8 * sizeof(size_t) + 1][VECTORS];
    size_t top = 0;
    for (size_t k = 0; k < depth; k++, top++) {
        const VECTOR x = SPLAT(a[k]);
        UNROLL
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

/* The trees of a row and a panel: of all products added to s, or of each chunk to +0 and that to s. */
static void trees_of_row(const mpsim_chain_work *w, const float *a, const float *b, float *s)
{
    if (!w->chunk)
        tree(a, b, s, w->depth);
    for (size_t k = 0; w->chunk && k < w->depth; k += w->chunk) {
        float sum[MPSIM_PANEL] = {0};
        tree(a + k, b + k * MPSIM_PANEL, sum, w->depth - k < w->chunk ? w->depth - k : w->chunk);
        UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            STORE(s + v * LANES, ADD(LOAD(s + v * LANES), LOAD(sum + v * LANES)));
    }
}

static void trees(const mpsim_chain_work *w, float *s)
{
    for (size_t p = 0; p < w->panels; p++)
        for (size_t r = 0; r < w->rows; r++)
            trees_of_row(w, w->a + r * w->next, w->b + p * w->apart, s + p * w->sums + r * MPSIM_PANEL);
}

static void CHAIN(int kind, const mpsim_chain_work *w, float *s)
{
    static void (*const kinds[])(const mpsim_chain_work *, float *) = {[MPSIM_CHAIN_FMA] = chain_fma,
                                                                       [MPSIM_CHAIN_MULADD] = chain_muladd,
                                                                       [MPSIM_CHAIN_PAIRWISE] = trees,
                                                                       [MPSIM_CHAIN_ODD_FIRST] = chain_odd_first,
                                                                       [MPSIM_CHAIN_LANES] = chain_two_lanes};
    kinds[kind](w, s);
}

#undef VECTOR
#undef LANES
#undef ROWS
#undef PANELS
#undef LOAD
#undef STORE
#undef SPLAT
#undef MUL
#undef ADD
#undef FMA
