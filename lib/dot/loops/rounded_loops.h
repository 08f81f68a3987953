/* rounded_loops.h -- the loops of rounded.h for lanes of one type: included by rounded_vectors.h twice, which
 * defines the type and its operations (V, U, LANES, LOAD, STORE, SPLAT, MAX, MAX_BITS, BIGGER, ADD_ODD, NAME; WHOLE, WHOLES, HALF and KEEP
 * for what is rounded as integers are). */

typedef struct NAME(place) {
    V spread, least;
    U signs, half, keep; /* half and keep: whole */
    int drop;
} NAME(place);

static ALWAYS_INLINE NAME(place) NAME(place_of)(const mpsim_place *p)
{
    return (NAME(place)){SPLAT((REAL)p->spread), SPLAT((REAL)p->least), (U)SPLAT(p->is_signed ? (REAL)-0.0 : 0),
                         HALF(p->drop),          KEEP(p->drop),         p->drop};
}

/* x rounded; the magnitude goes into *over. `whole` is a constant where this is inlined. */
static ALWAYS_INLINE V NAME(round)(const int whole, V x, const NAME(place) * p, V *over)
{
    const U exponent = (U)SPLAT((REAL)INFINITY), sign = (U)SPLAT((REAL)-0.0);
    V r = x;
    if (whole) {
        r = (V)WHOLE((U)x, p);
    } else {
        const V c = MAX((V)((U)x & exponent) * p->spread, p->least);
        r = (V)((U)((x + c) - c) | ((U)x & p->signs));
    }
    *over = (V)MAX_BITS((U)r & ~sign, (U)*over);
    return r;
}

/* The lanes where `over` is above the place's largest number, or none. */
static ALWAYS_INLINE unsigned NAME(beyond)(V over, const mpsim_place *p)
{
    return BIGGER((U)over, (U)SPLAT((REAL)p->most));
}

/* `rows` rows at once, one vector of columns; it, kind and odd are constants where this is inlined. */
static ALWAYS_INLINE void NAME(some)(const int kind, const int odd, const int whole, const size_t rows,
                                     const mpsim_rounded_chain *p, const REAL *a, size_t next, const REAL *b, REAL *s,
                                     size_t depth, unsigned column, unsigned *redo)
{
    const NAME(place) product = NAME(place_of)(&p->product), to = NAME(place_of)(&p->accumulator);
    V sum[8], over[8], of_products = SPLAT(0);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        sum[r] = LOAD(s + r * MPSIM_PANEL);
        over[r] = SPLAT(0);
    }
    for (size_t k = 0; k < depth; k++) {
        const V y = LOAD(b + k * MPSIM_PANEL);
        UNROLL
        for (size_t r = 0; r < rows; r++) {
            V x = SPLAT(a[r * next + k]) * y;
            if (kind != MPSIM_CHAIN_FMA)
                x = NAME(round)(whole, x, &product, &of_products);
            sum[r] = NAME(round)(whole, odd ? ADD_ODD(sum[r], x) : sum[r] + x, &to, &over[r]);
        }
    }
    const unsigned of_all = NAME(beyond)(of_products, &p->product);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        STORE(s + r * MPSIM_PANEL, sum[r]);
        redo[r] |= (NAME(beyond)(over[r], &p->accumulator) | (kind != MPSIM_CHAIN_FMA ? of_all : 0)) << column;
    }
}

static ALWAYS_INLINE void NAME(all)(const int kind, const int odd, const int whole, const mpsim_rounded_chain *p,
                                    const REAL *a, size_t next, const REAL *b, REAL *s, size_t rows, size_t depth,
                                    unsigned *redo)
{
    for (unsigned j = 0; j < MPSIM_PANEL; j += LANES) {
        size_t r = 0;
        for (; r + ROUNDED_ROWS <= rows; r += ROUNDED_ROWS)
            NAME(some)
        (kind, odd, whole, ROUNDED_ROWS, p, a + r * next, next, b + j, s + r * MPSIM_PANEL + j, depth, j, redo + r);
        for (; r < rows; r++)
            NAME(some)(kind, odd, whole, 1, p, a + r * next, next, b + j, s + r * MPSIM_PANEL + j, depth, j, redo + r);
    }
}

/* Neighbours first: see chain_vectors.h. One row, one vector of columns. */
static ALWAYS_INLINE void NAME(tree)(const int odd, const int whole, const mpsim_rounded_chain *p, const REAL *a,
                                     const REAL *b, REAL *s, size_t depth, unsigned column, unsigned *redo)
{
    const NAME(place) product = NAME(place_of)(&p->product), to = NAME(place_of)(&p->accumulator);
    V stack[8 * sizeof(size_t) + 1], over = SPLAT(0), of_products = SPLAT(0);
    size_t top = 0;
    for (size_t k = 0; k < depth; k++) {
        V x = NAME(round)(whole, SPLAT(a[k]) * LOAD(b + k * MPSIM_PANEL), &product, &of_products);
        for (size_t bits = k; bits & 1; bits >>= 1) {
            top--;
            x = NAME(round)(whole, odd ? ADD_ODD(stack[top], x) : stack[top] + x, &to, &over);
        }
        stack[top++] = x;
    }
    for (; top > 1; top--)
        stack[top - 2] = NAME(round)(
            whole, odd ? ADD_ODD(stack[top - 2], stack[top - 1]) : stack[top - 2] + stack[top - 1], &to, &over);
    if (depth) {
        const V x = LOAD(s);
        STORE(s, NAME(round)(whole, odd ? ADD_ODD(x, stack[0]) : x + stack[0], &to, &over));
    }
    *redo |= (NAME(beyond)(over, &p->accumulator) | NAME(beyond)(of_products, &p->product)) << column;
}

static ALWAYS_INLINE void NAME(trees)(const int odd, const int whole, const mpsim_rounded_chain *p, const REAL *a,
                                      size_t next, const REAL *b, REAL *s, size_t rows, size_t depth, unsigned *redo)
{
    for (size_t r = 0; r < rows; r++)
        for (unsigned j = 0; j < MPSIM_PANEL; j += LANES)
            NAME(tree)(odd, whole, p, a + r * next, b + j, s + r * MPSIM_PANEL + j, depth, j, redo + r);
}

static void NAME(rounded)(const mpsim_rounded_chain *p, const void *a, size_t next, const void *b, void *s, size_t rows,
                          size_t depth, unsigned *redo)
{
    const REAL *x = (const REAL *)a, *y = (const REAL *)b;
    const int odd = p->lanes == MPSIM_LANES_ODD;
    if (p->kind == MPSIM_CHAIN_FMA)
        NAME(all)(MPSIM_CHAIN_FMA, 1, 0, p, x, next, y, (REAL *)s, rows, depth, redo);
    else if (p->kind == MPSIM_CHAIN_MULADD && odd)
        NAME(all)(MPSIM_CHAIN_MULADD, 1, 0, p, x, next, y, (REAL *)s, rows, depth, redo);
    else if (p->kind == MPSIM_CHAIN_MULADD && WHOLES && p->whole)
        NAME(all)(MPSIM_CHAIN_MULADD, 0, WHOLES, p, x, next, y, (REAL *)s, rows, depth, redo);
    else if (p->kind == MPSIM_CHAIN_MULADD)
        NAME(all)(MPSIM_CHAIN_MULADD, 0, 0, p, x, next, y, (REAL *)s, rows, depth, redo);
    else if (odd)
        NAME(trees)(1, 0, p, x, next, y, (REAL *)s, rows, depth, redo);
    else if (WHOLES && p->whole)
        NAME(trees)(0, WHOLES, p, x, next, y, (REAL *)s, rows, depth, redo);
    else
        NAME(trees)(0, 0, p, x, next, y, (REAL *)s, rows, depth, redo);
}

static void NAME(outer)(const mpsim_rounded_chain *p, void *s, const void *t, size_t rows, unsigned *redo)
{
    const NAME(place) to = NAME(place_of)(&p->outer);
    const int odd = p->lanes == MPSIM_LANES_ODD;
    for (size_t r = 0; r < rows; r++)
        for (unsigned j = 0; j < MPSIM_PANEL; j += LANES) {
            REAL *at = (REAL *)s + r * MPSIM_PANEL + j;
            const V x = LOAD(at), y = LOAD((const REAL *)t + r * MPSIM_PANEL + j);
            V over = SPLAT(0);
            STORE(at, WHOLES && p->whole ? NAME(round)(WHOLES, x + y, &to, &over)
                                         : NAME(round)(0, odd ? ADD_ODD(x, y) : x + y, &to, &over));
            redo[r] |= NAME(beyond)(over, &p->outer) << j;
        }
}

#undef REAL
#undef V
#undef U
#undef LANES
#undef LOAD
#undef STORE
#undef SPLAT
#undef MAX
#undef MAX_BITS
#undef WHOLE
#undef WHOLES
#undef HALF
#undef KEEP
#undef BIGGER
#undef ADD_ODD
#undef NAME
