/* errors.h -- elements of blocks with all that statistics say of them: counts, squares of errors, the
 * largest relative error. Included by vector.h.
 *
 * Blocks that come here are plain (lib/block/block.c): finite, not all zero, their scales, products and
 * values far from the ends of binary32. A difference that is not larger than either number (they are within
 * a factor of 2 of each other), or whose value is 0, is exact; that it is below `bound` is looked at. Of
 * such elements the relative error is at most 1, and 1 where the value is 0. The others go to
 * mpsim_block_errors_one. */

enum { BY_FMA = V_LANES > 4 }; /* it is an instruction */

typedef struct outcome {
    vu32 underflow, subnormal, overflow, inexact;
    vu64 exact;   /* where `inexact` is not counted */
    m32 vanished; /* against another origin: the value is 0, the origin is not */
} outcome;

/* A block's numbers in every lane, and what is found of it. */
typedef struct lanes_of_block {
    vf32 factor, inverse;
    vu32 bound;
    m32 saturated, kept;
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

V_INLINE m32 nowhere(void)
{
    return v_gt_u32(v_u32(0), v_u32(0));
}

V_INLINE m32 is_not_zero(vu32 a)
{
    return v_test_u32(a, a);
}

/* ---- squares ---- */

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

static __attribute__((noinline)) void leave_rests(mpsim_block_errors *e, vf64 first, vf64 last)
{
    double rest[2][V_LANES / 2];
    v_store_f64(rest[0], first);
    v_store_f64(rest[1], last);
    mpsim_block_errors_rest(e, rest[0], V_LANES);
}

/* The levels that stay in memory. */
V_INLINE void add_rests(mpsim_block_errors *e, vf64 first, vf64 last)
{
    for (int i = 2; i < MPSIM_ERROR_LEVELS; i++) {
        vf64 a = v_load_f64(e->level[i][0]), b = v_load_f64(e->level[i][1]);
        first = extract(&a, first);
        last = extract(&b, last);
        v_store_f64(e->level[i][0], a);
        v_store_f64(e->level[i][1], b);
        if (!any_rest(first, last))
            return;
    }
    leave_rests(e, first, last);
}

V_INLINE void add_squares(mpsim_block_errors *e, squares *s, vf32 d)
{
    const vf64 first = v_first_f64(d), last = v_last_f64(d);
    const vf64 a = extract(&s->level[1][0], extract(&s->level[0][0], first * first));
    const vf64 b = extract(&s->level[1][1], extract(&s->level[0][1], last * last));
    if (any_rest(a, b))
        add_rests(e, a, b);
}

/* ---- errors ---- */

/* Lanes of `left` by the reference, of `larger` their relative errors. */
static __attribute__((noinline)) void leave(mpsim_block_errors *e, vf32 from, vf32 value, vf32 d, unsigned left,
                                            unsigned larger)
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

/* Whether an error of the lanes of m really is a larger one: where few numbers come again and again, the largest
 * does, too. */
V_INLINE int any_larger(const mpsim_block_errors *e, m32 m, vu32 error, vu32 of)
{
    const vf32 d = (vf32)v_keep_u32(m, error), x = (vf32)v_pick_u32(m, of, (vu32)v_f32(1));
    const vf64 most = v_f64(e->to->max_rel_err);
    return m64_any(
        m64_or(v_gt_f64(v_first_f64(d) / v_first_f64(x), most), v_gt_f64(v_last_f64(d) / v_last_f64(x), most)));
}

/* The errors of `value`, which is zero in the lanes of `zero`, against `from`; returns the lanes that were
 * left. */
V_INLINE m32 add_errors(mpsim_block_errors *e, squares *s, const lanes_of_block *b, vf32 from, vf32 value, m32 zero)
{
    vf32 d = from - value;
    const vu32 size = magnitude((vu32)d), m = magnitude((vu32)from);
    const m32 far = m32_not(less_u31(size, b->bound));
    const m32 apart = less_u31(v_min_u32(m, magnitude((vu32)value)), size);
    const m32 beyond = v_gt_f32((vf32)size, (vf32)m * v_f32(e->relative));
    const m32 some = m32_and(m32_or(apart, beyond), m32_not(zero));
    if (m32_any(m32_or(far, some))) {
        const m32 left = m32_or(far, m32_and(apart, m32_not(zero)));
        if (m32_any(left) || any_larger(e, some, size, m))
            leave(e, from, value, d, m32_bits(left), m32_bits(some));
        d = (vf32)v_keep_u32(m32_not(left), (vu32)d);
    }
    add_squares(e, s, d);
    return far;
}

/* ---- counts ---- */

/* Counts where q is not the scaled element; what vanished is not. Else the products and differences are far
 * from the subnormal numbers, so that an fma is 0 where they are equal. */
V_INLINE void add_inexact(const mpsim_block_kernel *k, outcome *o, const lanes_of_block *b, vf32 x, vf32 q,
                          m32 vanished)
{
    if (BY_FMA) {
        const vf32 of = k->divides ? q : x, by = k->divides ? b->inverse : b->factor;
        const m32 equal = v_eq_f32(v_fma_f32(of, by, k->divides ? -x : -q), v_f32(0));
        o->inexact = v_inc_u32(m32_or(m32_not(equal), vanished), o->inexact);
    } else {
        o->exact = count_exact(k, o->exact, x, b->factor, b->inverse, q);
    }
}

/* x is scaled to y and rounded to q; as `count` of count.h, for plain blocks. Returns where q is zero. */
V_INLINE m32 add_counts(const mpsim_block_kernel *k, int mode, outcome *o, lanes_of_block *b, vf32 x, vf32 y, vu32 word,
                        vf32 q)
{
    const vu32 size = magnitude((vu32)q);
    const m32 some = is_not_zero(size), zero = m32_not(some), over = saturates(k, mode, y, word);
    const m32 vanished = m32_and(zero, is_not_zero(magnitude((vu32)x)));
    o->underflow = v_inc_u32(vanished, o->underflow);
    o->subnormal = v_inc_u32(m32_and(less_u31(size, v_u32(k->grid.normal)), some), o->subnormal);
    o->overflow = v_inc_u32(over, o->overflow);
    add_inexact(k, o, b, x, q, vanished);
    b->saturated = m32_or(b->saturated, over);
    b->kept = m32_or(b->kept, some);
    return zero;
}

V_INLINE void add_tally_of(mpsim_counts *to, const outcome *o, uint64_t lanes)
{
    to->inexact += BY_FMA ? sum_of(o->inexact) : lanes - v_sum_u64(o->exact);
    to->underflow += sum_of(o->underflow);
    to->subnormal += sum_of(o->subnormal);
    to->overflow += sum_of(o->overflow);
}

/* ---- rows of blocks ---- */

/* A vector of elements; returns their values, sets *code. lean: x are their own origin. */
V_INLINE vf32 account(const mpsim_block_kernel *k, int mode, int lean, mpsim_block_errors *e, squares *s, outcome *o,
                      lanes_of_block *b, vf32 x, vf32 from, vu32 word, vu32 *code)
{
    const vf32 y = scaled(k, x, b->factor, b->inverse), q = number(k, mode, y, word, code);
    const vf32 value = scaled_back(k, q, b->factor, b->inverse);
    const m32 zero = add_counts(k, mode, o, b, x, y, word, q);
    const m32 far = add_errors(e, s, b, lean ? x : from, value, zero);
    if (!lean) {
        const m32 vanished = m32_and(zero, is_not_zero(magnitude((vu32)from)));
        o->vanished = m32_or(o->vanished, m32_and(vanished, m32_not(far)));
    }
    return value;
}

/* Block j of a row, whose elements begin at `at`. lean: no outputs, either. */
V_INLINE void account_block(const mpsim_block_kernel *k, int mode, int lean, const mpsim_block_row *r, size_t j,
                            size_t at, mpsim_block_errors *e, squares *s, outcome *o)
{
    lanes_of_block b = {v_f32(r->factor[j]), v_f32(r->inverse[j]), v_u32((uint32_t)(r->top[j] / 2 + 127) << 23),
                        nowhere(), nowhere()};
    const float *against = r->origin ? r->origin : r->x;
    const size_t end = at + r->width;
    vu32 code;
    size_t i = at;
    for (; i + V_LANES <= end; i += V_LANES) {
        const vu32 word = mode == GRID ? v_load_u32(r->words + i) : v_u32(0);
        const vf32 value = account(k, mode, lean, e, s, o, &b, v_load_f32(r->x + i), v_load_f32(against + i), word,
                                   &code);
        if (!lean && r->codes)
            v_store_u8(r->codes + i, code);
        if (!lean && r->values)
            v_store_f32(r->values + i, value);
    }
    if (i < end) {
        const size_t n = end - i;
        float back[V_LANES];
        uint8_t bytes[V_LANES];
        const vu32 word = mode == GRID ? v_load_u32_part(r->words + i, n) : v_u32(0);
        v_store_f32(back, account(k, mode, lean, e, s, o, &b, (vf32)v_load_u32_part(r->x + i, n),
                                  (vf32)v_load_u32_part(against + i, n), word, &code));
        v_store_u8(bytes, code);
        if (!lean && r->codes)
            memcpy(r->codes + i, bytes, n);
        if (!lean && r->values)
            memcpy(r->values + i, back, n * sizeof *back);
    }
    r->seen[j].saturated |= (uint8_t)m32_any(b.saturated);
    r->seen[j].kept |= (uint8_t)m32_any(b.kept);
}

V_INLINE void errors(const mpsim_block_kernel *kernel, int mode, int lean, const mpsim_block_row *r,
                     mpsim_block_errors *e)
{
    mpsim_block_kernel k = *kernel;
    const unsigned each = (unsigned)(r->width + V_LANES - 1) / V_LANES;
    outcome o = {.vanished = nowhere()};
    squares s = load_squares(e);
    uint64_t lanes = 0;
    if (lean)
        k.one_zero = k.microx = 0;
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
        account_block(&k, mode, lean, r, j, j * r->width, e, &s, &o);
        lanes += (uint64_t)each * V_LANES;
    }
    store_squares(e, &s);
    add_tally_of(&e->to->counts, &o, lanes);
    if (m32_any(r->origin ? o.vanished : is_not_zero(o.underflow)))
        mpsim_block_errors_relative(e, 1, 1);
}

#define ERRORS(name, mode)                                                                         \
    static void name(const mpsim_block_kernel *k, const mpsim_block_row *r, mpsim_block_errors *e) \
    {                                                                                              \
        if (r->origin || r->codes || r->values || k->one_zero || k->microx)                        \
            errors(k, mode, 0, r, e);                                                              \
        else                                                                                       \
            errors(k, mode, 1, r, e);                                                              \
    }
ERRORS(errors_nearest_even, MPSIM_ROUND_NEAREST_EVEN)
ERRORS(errors_nearest_away, MPSIM_ROUND_NEAREST_AWAY)
ERRORS(errors_directed, directed(k))
ERRORS(errors_fp4_grid, GRID)
#undef ERRORS
