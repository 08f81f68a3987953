/* wide_rows.h -- rows of the chains of wide_loops.h and staged_loops.h: included by one unit per instruction set, after
 * these. */

static ALWAYS_INLINE void next_wide(mpsim_wide_operand *a, mpsim_wide_operand *b, size_t n)
{
    a->values += n;
    a->exponents += n;
    a->signs++;
    b->values += n * MPSIM_PANEL;
    b->exponents += n * MPSIM_PANEL;
    b->signs += MPSIM_PANEL;
}

static ALWAYS_INLINE vf64 marked_wide_sum(vf64 x)
{
    const vu64 u = (vu64)x;
    return (vf64)(u | v_pick_u64(v_eq_u64(u << 1, v_u64(0)), (vu64)v_f64(MPSIM_WIDE_NOTHING), v_u64(1)));
}

/* Marked sums as they are; a zero is +0. */
static ALWAYS_INLINE vf32 narrow_sums(vf64 first, vf64 last)
{
    const vu64 all = v_u64(~(uint64_t)1);
    return v_narrow_f32((vf64)((vu64)first & all), (vf64)((vu64)last & all)) + v_f32(0);
}

/* The lanes that overflowed are infinities; bits of redo. */
static __attribute__((noinline)) unsigned ends_of(unsigned lanes, unsigned minus, float *c)
{
    for (unsigned j = 0; j < V_LANES; j++)
        if (lanes >> j & 1)
            c[j] = mpsim_f32_bits(0x7f800000 | (minus >> j & 1) << 31);
    return lanes * MPSIM_TILE_OVERFLOW;
}

/* Lanes with products of a sign that are beyond binary32, infinities in an addition in two stages. */
typedef struct beyond {
    unsigned lanes[2];       /* by sign                      */
    unsigned first[V_LANES]; /* the first addition with some */
} beyond;

/* Lanes of two halves that reach 2^128. */
static ALWAYS_INLINE unsigned lanes_beyond(vf64 first, vf64 last)
{
    const vf64 most = v_f64(mpsim_f64_bits(((uint64_t)(1023 + 128) << 52) - 1));
    return m64_bits(v_gt_f64(first, most)) | m64_bits(v_gt_f64(last, most)) << V_LANES / 2;
}

static void add_beyond(beyond *to, unsigned plus, unsigned minus, unsigned addition)
{
    const unsigned fresh = (plus | minus) & ~(to->lanes[0] | to->lanes[1]);
    for (unsigned j = 0; j < V_LANES; j++)
        if (fresh >> j & 1)
            to->first[j] = addition;
    to->lanes[0] |= plus;
    to->lanes[1] |= minus;
}

static void find_beyond(beyond *to, mpsim_wide_operand a, mpsim_wide_operand b, size_t length, size_t depth)
{
    unsigned addition = 0;
    for (size_t n, left = depth; left; left -= n) {
        vf64 most[2] = {v_f64(0), v_f64(0)}, least[2] = {v_f64(0), v_f64(0)};
        n = left < length ? left : length;
        for (size_t k = 0; k < n; k++)
            for (unsigned half = 0; half < 2; half++) {
                const vf64 p = v_f64(a.values[k]) * v_load_f64(b.values + k * MPSIM_PANEL + half * V_LANES / 2);
                most[half] = v_max_f64(most[half], p);
                least[half] = v_max_f64(least[half], -p);
            }
        add_beyond(to, lanes_beyond(most[0], most[1]), lanes_beyond(least[0], least[1]), ++addition);
        next_wide(&a, &b, n);
    }
}

/* Which infinities a lane of an addition in two stages has had, as bits: of products, and of a sum before these. */
static unsigned infinities_of(const beyond *products, const wide_over *over, unsigned j)
{
    const wide_over *own = over + j / (V_LANES / 2);
    const unsigned l = j % (V_LANES / 2), signs = (products->lanes[0] >> j & 1) | (products->lanes[1] >> j & 1) << 1;
    if (own->lanes >> l & 1 && (!signs || own->at[l] < products->first[j]))
        return signs | 1u << (own->minus >> l & 1);
    return signs;
}

/* As ends_of, for additions in two stages to the sums `from`: infinities, or NaN of infinities of both signs. */
static __attribute__((noinline)) unsigned staged_ends(const wide_over *over, mpsim_wide_operand a, mpsim_wide_operand b,
                                                      size_t length, size_t depth, const float *from, float *c)
{
    static const uint32_t ends[] = {0, 0x7f800000, 0xff800000, 0x7fc00000};
    unsigned redo = 0;
    beyond products = {{0, 0}, {0}};
    if (over[0].far | over[1].far)
        find_beyond(&products, a, b, length, depth);
    for (unsigned j = 0; j < V_LANES; j++) {
        const unsigned signs = infinities_of(&products, over, j);
        const int known = (mpsim_bits_f32(from[j]) & 0x7f800000) != 0x7f800000;
        if (signs) {
            c[j] = known ? mpsim_f32_bits(ends[signs]) : 0;
            redo |= (unsigned)(known ? MPSIM_TILE_OVERFLOW : MPSIM_TILE_UNKNOWN) << j;
        }
    }
    return redo;
}

/* ways: 0, or those of an addition in two stages. */
static ALWAYS_INLINE void wide_some(const int counts, const int tested, const int ways, const int drop,
                                    const size_t rows, const mpsim_tile *t, mpsim_wide_operand a, mpsim_wide_operand b,
                                    float *c, size_t depth, unsigned column, unsigned *redo)
{
    const wide_constants constants = wide_constants_of(t);
    staged_constants staged;
    const size_t length = (size_t)t->length;
    vf64 s[WIDE_ROWS][2];
    vi16 e[WIDE_ROWS];
    wide_over over[WIDE_ROWS][2] = {{{.lanes = 0}}};
    const mpsim_wide_operand all_a = a, all_b = b;
    float before[V_LANES];
    if (ways)
        staged = staged_constants_of(t);
    if (ways && tested)
        memcpy(before, c, sizeof before);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vf32 from = v_load_f32(c + r * MPSIM_PANEL);
        s[r][0] = ways ? v_first_f64(from) : marked_wide_sum(v_first_f64(from));
        s[r][1] = ways ? v_last_f64(from) : marked_wide_sum(v_last_f64(from));
        e[r] = constants.least;
    }
    for (size_t k = 0; k < depth && k < length; k += 2)
        wide_exponents(rows, e, &a, &b, k);
    for (size_t left = depth; left;) {
        const size_t n = left < length ? left : length, n_next = left - n < length ? left - n : length;
        if (ways)
            staged_products(counts, tested, ways, drop, rows, &staged, &a, &b, e, s, n, n_next, over);
        else
            wide_products(counts, tested, rows, &constants, &a, &b, e, s, n, n_next, over);
        next_wide(&a, &b, n);
        left -= n;
    }
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        v_store_f32(c + r * MPSIM_PANEL, ways ? v_narrow_f32(s[r][0], s[r][1]) : narrow_sums(s[r][0], s[r][1]));
        const unsigned lanes = over[r][0].lanes | over[r][1].lanes << V_LANES / 2;
        if (tested && ways && (lanes | over[r][0].far | over[r][1].far)) /* a single row */
            redo[r] |= staged_ends(over[r], all_a, all_b, length, depth, before, c) << column;
        else if (tested && lanes)
            redo[r] |= ends_of(lanes, over[r][0].minus | over[r][1].minus << V_LANES / 2, c + r * MPSIM_PANEL)
                       << column;
    }
}

static ALWAYS_INLINE void wide_all(const int counts, const int tested, const int ways, const int drop,
                                   const mpsim_tile *t, const mpsim_wide_operand *a, const mpsim_wide_operand *b,
                                   float *c, size_t rows, size_t depth, unsigned *redo)
{
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
        const mpsim_wide_operand of_b = {b->values + j, b->exponents + 2 * j, b->signs + j, 0, 0};
        for (size_t r = 0; r < rows;) {
            const mpsim_wide_operand of_a = {a->values + r * a->next, a->exponents + r * a->next,
                                             a->signs + r * a->next_signs, a->next, a->next_signs};
            const size_t some = tested || rows - r < WIDE_ROWS ? 1 : WIDE_ROWS;
            if (some == 1)
                wide_some(counts, tested, ways, drop, 1, t, of_a, of_b, c + r * MPSIM_PANEL + j, depth, j, redo + r);
            else
                wide_some(counts, tested, ways, drop, WIDE_ROWS, t, of_a, of_b, c + r * MPSIM_PANEL + j, depth, j,
                          redo + r);
            r += some;
        }
    }
}

static ALWAYS_INLINE void wide_ways(const int ways, const int drop, const mpsim_tile *t, int tested,
                                    const mpsim_wide_operand *a, const mpsim_wide_operand *b, float *c, size_t rows,
                                    size_t depth, unsigned *redo)
{
    if (tested) {
        wide_all(0, 1, ways, drop, t, a, b, c, rows, depth, redo);
        return;
    }
#ifdef __AVX512F__
    if (t->counts) {
        wide_all(1, 0, ways, drop, t, a, b, c, rows, depth, redo);
        return;
    }
#endif
    wide_all(0, 0, ways, drop, t, a, b, c, rows, depth, redo);
}

static void wide(const mpsim_tile *t, int tested, const mpsim_wide_operand *a, const mpsim_wide_operand *b, float *c,
                 size_t rows, size_t depth, unsigned *redo)
{
    if (t->ways == 2)
        wide_ways(2, t->drop, t, tested, a, b, c, rows, depth, redo);
    else if (t->ways)
        wide_ways(1, t->drop, t, tested, a, b, c, rows, depth, redo);
    else
        wide_ways(0, 0, t, tested, a, b, c, rows, depth, redo);
}
