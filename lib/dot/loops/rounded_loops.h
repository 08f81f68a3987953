/* rounded_loops.h -- the loops of rounded.h for lanes of one type: included by rounded_vectors.h twice, which
 * defines the type and its operations (V, U, LANES, LOAD, STORE, SPLAT, MAX, MAX_BITS, BIGGER, ADD_ODD, NAME; WHOLE, WHOLES, HALF and KEEP
 * for what is rounded as integers are). */

typedef struct NAME(place) {
    V spread, least, most;
    U signs, half, keep; /* half and keep: whole */
    int drop;
} NAME(place);

static ALWAYS_INLINE NAME(place) NAME(place_of)(const mpsim_place *p)
{
    return (NAME(place)){SPLAT((REAL)p->spread),
                         SPLAT((REAL)p->least),
                         SPLAT((REAL)p->most),
                         (U)SPLAT(p->is_signed ? (REAL)-0.0 : 0),
                         HALF(p->drop),
                         KEEP(p->drop),
                         p->drop};
}

/* x rounded; the magnitude goes into *over. `how` is a constant where this is inlined: WHOLE_HOW as integers are; ENDLESS_HOW: what is
 * beyond the place's numbers is an infinity. */
static ALWAYS_INLINE V NAME(round)(const int how, V x, const NAME(place) * p, V *over)
{
    const U exponent = (U)SPLAT((REAL)INFINITY), sign = (U)SPLAT((REAL)-0.0);
    V r = x;
    if (how & WHOLE_HOW) {
        r = (V)WHOLE((U)x, p);
    } else {
        const V c = MAX((V)((U)x & exponent) * p->spread, p->least);
        r = (V)((U)((x + c) - c) | ((U)x & p->signs));
    }
    if (how & ENDLESS_HOW) /* an infinity and a NaN times infinity are themselves */
        r = UNLESS_ABOVE((V)((U)r & ~sign), p->most, r, x * SPLAT((REAL)INFINITY));
    *over = (V)MAX_BITS((U)r & ~sign, (U)*over);
    return r;
}

/* The lanes where `over` is above the place's largest number, or none. */
static ALWAYS_INLINE unsigned NAME(beyond)(V over, const mpsim_place *p)
{
    return BIGGER((U)over, (U)SPLAT((REAL)p->most));
}

/* x + y; of ENDLESS_HOW infinities and NaNs, too. */
static ALWAYS_INLINE V NAME(sum)(const int odd, const int how, V x, V y)
{
    const V sum = x + y;
    if (!odd)
        return sum;
    if (how & ENDLESS_HOW)
        return UNLESS_ABOVE((V)((U)sum & ~(U)SPLAT((REAL)-0.0)), SPLAT(LARGEST), ADD_ODD(x, y), sum);
    return ADD_ODD(x, y);
}

/* `rows` rows at once, one vector of columns; it, kind and odd are constants where this is inlined. */
static ALWAYS_INLINE void NAME(some)(const int kind, const int odd, const int how, const size_t rows,
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
                x = NAME(round)(how, x, &product, &of_products);
            sum[r] = NAME(round)(how, NAME(sum)(odd, how, sum[r], x), &to, &over[r]);
        }
    }
    const unsigned of_all = NAME(beyond)(of_products, &p->product);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        STORE(s + r * MPSIM_PANEL, sum[r]);
        redo[r] |= (NAME(beyond)(over[r], &p->accumulator) | (kind != MPSIM_CHAIN_FMA ? of_all : 0)) << column;
    }
}

static ALWAYS_INLINE void NAME(all)(const int kind, const int odd, const int how, const mpsim_rounded_chain *p,
                                    const REAL *a, size_t next, const REAL *b, REAL *s, size_t rows, size_t depth,
                                    unsigned *redo)
{
    for (unsigned j = 0; j < MPSIM_PANEL; j += LANES) {
        size_t r = 0;
        for (; r + ROUNDED_ROWS <= rows; r += ROUNDED_ROWS)
            NAME(some)
        (kind, odd, how, ROUNDED_ROWS, p, a + r * next, next, b + j, s + r * MPSIM_PANEL + j, depth, j, redo + r);
        for (; r < rows; r++)
            NAME(some)(kind, odd, how, 1, p, a + r * next, next, b + j, s + r * MPSIM_PANEL + j, depth, j, redo + r);
    }
}

/* Neighbours first: see chain_vectors.h. One row, one vector of columns. */
static ALWAYS_INLINE void NAME(tree)(const int odd, const int how, const mpsim_rounded_chain *p, const REAL *a,
                                     const REAL *b, REAL *s, size_t depth, unsigned column, unsigned *redo)
{
    const NAME(place) product = NAME(place_of)(&p->product), to = NAME(place_of)(&p->accumulator);
    V stack[8 * sizeof(size_t) + 1], over = SPLAT(0), of_products = SPLAT(0);
    size_t top = 0;
    for (size_t k = 0; k < depth; k++) {
        V x = NAME(round)(how, SPLAT(a[k]) * LOAD(b + k * MPSIM_PANEL), &product, &of_products);
        for (size_t bits = k; bits & 1; bits >>= 1) {
            top--;
            x = NAME(round)(how, NAME(sum)(odd, how, stack[top], x), &to, &over);
        }
        stack[top++] = x;
    }
    for (; top > 1; top--)
        stack[top - 2] = NAME(round)(how, NAME(sum)(odd, how, stack[top - 2], stack[top - 1]), &to, &over);
    if (depth) {
        const V x = LOAD(s);
        STORE(s, NAME(round)(how, NAME(sum)(odd, how, x, stack[0]), &to, &over));
    }
    *redo |= (NAME(beyond)(over, &p->accumulator) | NAME(beyond)(of_products, &p->product)) << column;
}

static ALWAYS_INLINE void NAME(trees)(const int odd, const int how, const mpsim_rounded_chain *p, const REAL *a,
                                      size_t next, const REAL *b, REAL *s, size_t rows, size_t depth, unsigned *redo)
{
    for (size_t r = 0; r < rows; r++)
        for (unsigned j = 0; j < MPSIM_PANEL; j += LANES)
            NAME(tree)(odd, how, p, a + r * next, b + j, s + r * MPSIM_PANEL + j, depth, j, redo + r);
}

/* Of one way to round. */
static ALWAYS_INLINE void NAME(rounded_how)(const int how, const mpsim_rounded_chain *p, const REAL *a, size_t next,
                                            const REAL *b, REAL *s, size_t rows, size_t depth, unsigned *redo)
{
    const int odd = p->lanes == MPSIM_LANES_ODD;
    if (p->kind == MPSIM_CHAIN_FMA)
        NAME(all)(MPSIM_CHAIN_FMA, 1, how, p, a, next, b, s, rows, depth, redo);
    else if (p->kind == MPSIM_CHAIN_MULADD && odd)
        NAME(all)(MPSIM_CHAIN_MULADD, 1, how, p, a, next, b, s, rows, depth, redo);
    else if (p->kind == MPSIM_CHAIN_MULADD)
        NAME(all)(MPSIM_CHAIN_MULADD, 0, how, p, a, next, b, s, rows, depth, redo);
    else if (odd)
        NAME(trees)(1, how, p, a, next, b, s, rows, depth, redo);
    else
        NAME(trees)(0, how, p, a, next, b, s, rows, depth, redo);
}

static void NAME(rounded)(const mpsim_rounded_chain *p, const void *a, size_t next, const void *b, void *s, size_t rows,
                          size_t depth, unsigned *redo)
{
    const REAL *x = (const REAL *)a, *y = (const REAL *)b;
    if (WHOLES && p->whole)
        NAME(rounded_how)(WHOLES * WHOLE_HOW, p, x, next, y, (REAL *)s, rows, depth, redo);
    else if (p->endless)
        NAME(rounded_how)(ENDLESS_HOW, p, x, next, y, (REAL *)s, rows, depth, redo);
    else
        NAME(rounded_how)(0, p, x, next, y, (REAL *)s, rows, depth, redo);
}

static void NAME(outer)(const mpsim_rounded_chain *p, void *s, const void *t, size_t rows, unsigned *redo)
{
    const NAME(place) to = NAME(place_of)(&p->outer);
    const int odd = p->lanes == MPSIM_LANES_ODD;
    for (size_t r = 0; r < rows; r++)
        for (unsigned j = 0; j < MPSIM_PANEL; j += LANES) {
            REAL *at = (REAL *)s + r * MPSIM_PANEL + j;
            const V x = LOAD(at), y = LOAD((const REAL *)t + r * MPSIM_PANEL + j);
            V over = SPLAT(0), sum;
            if (WHOLES && p->whole)
                sum = NAME(round)(WHOLES * WHOLE_HOW, x + y, &to, &over);
            else if (p->endless)
                sum = NAME(round)(ENDLESS_HOW, NAME(sum)(odd, ENDLESS_HOW, x, y), &to, &over);
            else
                sum = NAME(round)(0, odd ? ADD_ODD(x, y) : x + y, &to, &over);
            STORE(at, sum);
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
#undef UNLESS_ABOVE
#undef LARGEST
#undef NAME
