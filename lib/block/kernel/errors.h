/* errors.h -- elements of blocks with all that statistics say of them: counts, squares of errors, the
 * largest relative error. Included by vector.h.
 *
 * Blocks that come here are plain (lib/block/block.c): finite, not all zero, their scales, products and
 * values far from the ends of binary32. A difference that is not larger than either number (they are within
 * a factor of 2 of each other), or whose value is 0, is exact; that it is below `bound` is looked at. Of
 * such elements the relative error is at most 1, and 1 where the value is 0. The others go to
 * mpsim_block_errors_one. */

typedef struct outcome {
    vu32 underflow, subnormal, overflow;
    vu64 exact;
    m32 vanished; /* the value is 0, the element is not */
} outcome;

/* A block's numbers in every lane, and what is found of it. */
typedef struct lanes_of_block {
    vf32 factor, inner;
    vu32 bound;
    m32 saturated;
    vu32 kept;
} lanes_of_block;

/* Levels 0 and 1 of the first, the last half of the lanes. */
typedef struct squares {
    vf64 level[2][2];
} squares;

V_INLINE squares load_squares(const mpsim_block_errors *e)
{
    squares s;
    for (int i = 0; i < 2; i++)
        for (int half = 0; half < 2; half++)
            s.level[i][half] = v_load_f64(e->level[i][half]);
    return s;
}

V_INLINE void store_squares(mpsim_block_errors *e, const squares *s)
{
    for (int i = 0; i < 2; i++)
        for (int half = 0; half < 2; half++)
            v_store_f64(e->level[i][half], s->level[i][half]);
}

/* Adds s to a level, returns the rest. */
V_INLINE vf64 extract(vf64 *level, vf64 s)
{
    const vf64 sum = *level + s, taken = sum - *level;
    *level = sum;
    return s - taken;
}

V_INLINE int any_rest(vf64 first, vf64 last)
{
    const vu64 rest = (vu64)first | (vu64)last;
    return m64_any(v_test_u64(rest, rest));
}

static __attribute__((noinline)) void add_rests(mpsim_block_errors *e, vf64 first, vf64 last)
{
    double rest[2][V_LANES / 2];
    for (int i = 2; i < MPSIM_ERROR_LEVELS; i++) {
        vf64 a = v_load_f64(e->level[i][0]), b = v_load_f64(e->level[i][1]);
        first = extract(&a, first);
        last = extract(&b, last);
        v_store_f64(e->level[i][0], a);
        v_store_f64(e->level[i][1], b);
        if (!any_rest(first, last))
            return;
    }
    v_store_f64(rest[0], first);
    v_store_f64(rest[1], last);
    mpsim_block_errors_rest(e, rest[0], V_LANES);
}

V_INLINE void add_squares(mpsim_block_errors *e, squares *s, vf32 d)
{
    const vf64 first = v_first_f64(d), last = v_last_f64(d);
    const vf64 a = extract(&s->level[1][0], extract(&s->level[0][0], first * first));
    const vf64 b = extract(&s->level[1][1], extract(&s->level[0][1], last * last));
    if (any_rest(a, b))
        add_rests(e, a, b);
}

/* Lanes of `left` by the reference, of `larger` their relative errors. */
static __attribute__((noinline)) void leave(mpsim_block_errors *e, vf32 from, vf32 value, vf32 d,
                                            unsigned left, unsigned larger)
{
    float x[V_LANES], v[V_LANES], error[V_LANES];
    v_store_f32(x, from);
    v_store_f32(v, value);
    v_store_f32(error, d);
    for (unsigned i = 0; i < V_LANES; i++)
        if (left >> i & 1)
            mpsim_block_errors_one(e, x[i], v[i]);
        else if (larger >> i & 1)
            mpsim_block_errors_relative(e, x[i], error[i]);
}

/* The errors of `value` against `from`. */
V_INLINE void add_errors(mpsim_block_errors *e, squares *s, outcome *o, const lanes_of_block *b,
                         vf32 from, vf32 value)
{
    vf32 d = from - value;
    const vu32 size = magnitude((vu32)d), m = magnitude((vu32)from), n = magnitude((vu32)value);
    const m32 none = v_eq_u32(n, v_u32(0)), far = m32_not(less_u31(size, b->bound));
    const m32 apart = m32_and(less_u31(v_min_u32(m, n), size), m32_not(none));
    const m32 left = m32_or(far, apart);
    const m32 beyond = v_gt_f32((vf32)size, (vf32)m * v_f32(e->relative));
    const m32 larger = m32_and(beyond, m32_not(none));
    o->vanished = m32_or(o->vanished, m32_and(m32_and(none, v_test_u32(m, m)), m32_not(far)));
    if (m32_any(m32_or(left, larger))) {
        leave(e, from, value, d, m32_bits(left), m32_bits(larger));
        d = (vf32)v_keep_u32(m32_not(left), (vu32)d);
    }
    add_squares(e, s, d);
}

/* x is scaled to y and rounded to q; as `count` of count.h, for plain blocks. */
V_INLINE void add_counts(const mpsim_block_kernel *k, int mode, outcome *o, lanes_of_block *b,
                         vf32 x, vf32 y, vu32 word, vf32 q)
{
    const vu32 size = magnitude((vu32)q), m = magnitude((vu32)x);
    const m32 zero = v_eq_u32(size, v_u32(0)), over = saturates(k, mode, y, word);
    const m32 tiny = m32_and(less_u31(size, v_u32(k->grid.normal)), m32_not(zero));
    o->underflow = v_inc_u32(m32_and(zero, v_test_u32(m, m)), o->underflow);
    o->subnormal = v_inc_u32(tiny, o->subnormal);
    o->overflow = v_inc_u32(over, o->overflow);
    b->saturated = m32_or(b->saturated, over);
    o->exact = count_exact(k, o->exact, x, b->factor, b->inner, q);
}

/* A vector of elements; returns their values, sets *code. */
V_INLINE vf32 account(const mpsim_block_kernel *k, int mode, mpsim_block_errors *e, squares *s,
                      outcome *o, lanes_of_block *b, vf32 x, vf32 from, vu32 word, vu32 *code)
{
    const vf32 y = scaled(k, x, b->factor, b->inner), q = element(k, mode, y, word, code);
    const vf32 value = scaled_back(k, q, b->factor, b->inner);
    add_counts(k, mode, o, b, x, y, word, q);
    add_errors(e, s, o, b, from, value);
    b->kept |= magnitude((vu32)value);
    return value;
}

/* Block j of a row, whose elements begin at `at`. */
V_INLINE void account_block(const mpsim_block_kernel *k, int mode, const mpsim_block_row *r, size_t j,
                            size_t at, mpsim_block_errors *e, squares *s, outcome *o)
{
    const m32 no = v_gt_u32(v_u32(0), v_u32(0));
    lanes_of_block b = {v_f32(r->factor[j]), v_f32(r->inner[j]),
                        v_u32((uint32_t)(r->top[j] / 2 + 127) << 23), no, v_u32(0)};
    const float *against = r->origin ? r->origin : r->x;
    const size_t end = at + r->width;
    vu32 code;
    size_t i = at;
    for (; i + V_LANES <= end; i += V_LANES) {
        const vu32 word = mode == GRID ? v_load_u32(r->words + i) : v_u32(0);
        const vf32 value = account(k, mode, e, s, o, &b, v_load_f32(r->x + i),
                                   v_load_f32(against + i), word, &code);
        if (r->codes)
            v_store_u8(r->codes + i, code);
        if (r->values)
            v_store_f32(r->values + i, value);
    }
    if (i < end) {
        const size_t n = end - i;
        float back[V_LANES];
        uint8_t bytes[V_LANES];
        const vu32 word = mode == GRID ? v_load_u32_part(r->words + i, n) : v_u32(0);
        v_store_f32(back, account(k, mode, e, s, o, &b, (vf32)v_load_u32_part(r->x + i, n),
                                  (vf32)v_load_u32_part(against + i, n), word, &code));
        v_store_u8(bytes, code);
        if (r->codes)
            memcpy(r->codes + i, bytes, n);
        if (r->values)
            memcpy(r->values + i, back, n * sizeof *back);
    }
    r->seen[j].saturated |= (uint8_t)m32_any(b.saturated);
    r->seen[j].kept |= (uint8_t)m32_any(v_test_u32(b.kept, b.kept));
}

V_INLINE void errors(const mpsim_block_kernel *kernel, int mode, const mpsim_block_row *r,
                     mpsim_block_errors *e)
{
    const mpsim_block_kernel k = *kernel;
    const unsigned each = (unsigned)(r->width + V_LANES - 1) / V_LANES;
    outcome o = {.vanished = v_gt_u32(v_u32(0), v_u32(0))};
    squares s = load_squares(e);
    uint64_t lanes = 0;
    for (size_t j = 0; j < r->n; j++) {
        if (!r->plain[j])
            continue;
        const int slack = e->top - r->top[j];
        if (slack < 0 || slack > MPSIM_ERROR_SLACK || e->additions + each > MPSIM_ERROR_ADDITIONS) {
            store_squares(e, &s);
            mpsim_block_errors_move(e, r->top[j] + 10);
            s = load_squares(e);
        }
        e->additions += each;
        account_block(&k, mode, r, j, j * r->width, e, &s, &o);
        lanes += (uint64_t)each * V_LANES;
    }
    store_squares(e, &s);
    mpsim_counts *c = &e->to->counts;
    c->inexact += lanes - v_sum_u64(o.exact);
    c->underflow += sum_of(o.underflow);
    c->subnormal += sum_of(o.subnormal);
    c->overflow += sum_of(o.overflow);
    if (m32_any(o.vanished))
        mpsim_block_errors_relative(e, 1, 1);
}

#define ERRORS(name, mode)                                                                        \
    static void name(const mpsim_block_kernel *k, const mpsim_block_row *r, mpsim_block_errors *e) \
    {                                                                                             \
        errors(k, mode, r, e);                                                                    \
    }
ERRORS(errors_nearest_even, MPSIM_ROUND_NEAREST_EVEN)
ERRORS(errors_nearest_away, MPSIM_ROUND_NEAREST_AWAY)
ERRORS(errors_toward_zero, MPSIM_ROUND_TOWARD_ZERO)
ERRORS(errors_up, MPSIM_ROUND_UP)
ERRORS(errors_down, MPSIM_ROUND_DOWN)
ERRORS(errors_to_odd, MPSIM_ROUND_TO_ODD)
ERRORS(errors_fp4_grid, GRID)
#undef ERRORS
