/* group_loops.h -- the loops of groups.h: included by one unit per instruction set, after rounded_vectors.h. */

/* x, or zero of its sign where it is tiny. */
static ALWAYS_INLINE vf64 flushed(vf64 x)
{
    const vu64 sign = (vu64)v_f64(-0.0);
    const m64 kept = v_gt_f64((vf64)((vu64)x & ~sign), v_f64(0x1.fffffffffffffp-127));
    return (vf64)(v_keep_u64(kept, (vu64)x) | ((vu64)x & sign));
}

/* A number that is rounded to odd, to 24 bits in the same way. */
static ALWAYS_INLINE vf64 cut_odd(vf64 x, vf64 *over)
{
    const vu64 low = v_u64(0x1fffffff), u = (vu64)x;
    const vu64 r = (u & ~low) | (((u & low) + low) & v_u64(0x20000000)) | (u & v_u64(0x20000000));
    *over = v_max_f64((vf64)(r & ~(vu64)v_f64(-0.0)), *over);
    return (vf64)r;
}

static ALWAYS_INLINE vf64 add_to_odd(vf64 x, vf64 y, vf64 *over)
{
    return flushed(cut_odd(add_odd(x, y), over));
}

typedef struct group_columns {
    const double *a, *b; /* a row; a column of vectors */
    size_t depth;
} group_columns;

/* Product k; a zero beyond the operands. */
static ALWAYS_INLINE vf64 group_product(const group_columns *x, size_t k, int flush)
{
    if (k >= x->depth)
        return v_f64(0);
    const vf64 a = v_f64(x->a[k]), b = v_load_f64(x->b + k * MPSIM_PANEL);
    return flush ? flushed(flushed(a) * flushed(b)) : a * b;
}

static ALWAYS_INLINE vf64 group_odd(const group_columns *x, vf64 s, vf64 *over)
{
    for (size_t k = 0; k < x->depth; k += 2) {
        const vf64 p = cut_odd(group_product(x, k, 1), over), q = cut_odd(group_product(x, k + 1, 1), over);
        s = add_to_odd(s, add_to_odd(p, q, over), over);
    }
    return s;
}

static ALWAYS_INLINE vf64 group_pairs(const group_columns *x, const place_f64 *place, vf64 s, vf64 *over)
{
    for (size_t k = 0; k < x->depth; k += 2) {
        const vf64 t = add_odd(group_product(x, k, 0), group_product(x, k + 1, 0));
        s = round_f64(add_odd(s, round_f64(t, place, over)), place, over);
    }
    return s;
}

static ALWAYS_INLINE vf64 group_exact(const group_columns *x, size_t chunk, const place_f64 *place, vf64 s, vf64 *over)
{
    const vf64 cut = v_f64(0x1.8p52);
    for (size_t k = 0; k < x->depth; k += chunk) {
        const size_t end = x->depth - k < chunk ? x->depth : k + chunk;
        vf64 high = v_f64(0), low = v_f64(0);
        for (size_t i = k; i < end; i++) {
            const vf64 p = group_product(x, i, 0), whole = (p + cut) - cut;
            high += whole;
            low += p - whole;
        }
        const vf64 t = round_f64(add_odd(high, low), place, over);
        s = flushed(round_f64(add_odd(s, t), place, over));
    }
    return s;
}

static void groups(const mpsim_group *p, const double *a, size_t next, const double *b, double *s, size_t rows,
                   size_t depth, unsigned *redo)
{
    const place_f64 place = place_of_f64(&p->place);
    for (size_t r = 0; r < rows; r++)
        for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES / 2) {
            const group_columns x = {a + r * next, b + j, depth};
            double *at = s + r * MPSIM_PANEL + j;
            vf64 sum = v_load_f64(at), over = v_f64(0);
            sum = p->kind == MPSIM_GROUP_ODD     ? group_odd(&x, sum, &over)
                  : p->kind == MPSIM_GROUP_PAIRS ? group_pairs(&x, &place, sum, &over)
                                                 : group_exact(&x, p->chunk, &place, sum, &over);
            v_store_f64(at, sum);
            redo[r] |= beyond_f64(over, &p->place) << j;
        }
}
