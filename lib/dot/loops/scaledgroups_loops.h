/* scaledgroups_loops.h -- the loops of scaledgroups.h in vectors: included by one unit per instruction set, after its vectors
 * (lib/simd) and exact_loops.h. A vector is V_LANES columns, or two of integers of 64 bits. */

enum { SCALEDGROUPS_ROWS = 4 };

/* x y + s, which is exact. */
static ALWAYS_INLINE vf32 integer_add(vf32 x, vf32 y, vf32 s)
{
#if defined __FMA__ || defined __AVX512F__ || defined __FP_FAST_FMA
    return v_fma_f32(x, y, s);
#else
    return x * y + s;
#endif
}

/* (m 2^up) >> n with a sign: all ones for minus. */
static ALWAYS_INLINE vi64 groups_term(vu64 m, int up, vu64 n, vi64 sign)
{
    return ((vi64)v_shr_u64(m << up, n) ^ sign) - sign;
}

/* Terms of one row. */
typedef struct groups_terms {
    vi32 p;        /* the sum of the products of a group, an integer */
    vu32 scale;    /* S; 0 for a group that does not count           */
    vi32 exponent; /* or far below                                   */
} groups_terms;

/* Integers below 2^51 cut to 24 bits, times 2^e. */
static ALWAYS_INLINE vf64 groups_number(vi64 t, vi64 e)
{
    const vi64 magic = v_i64(0x4338000000000000); /* 1.5 2^52 */
    const vf64 x = (vf64)(t + magic) - (vf64)magic;
    return (vf64)((vu64)x & v_u64(~(uint64_t)0x1fffffff)) * (vf64)((e + v_i64(1023)) << 52);
}

/* The accumulator with `count` terms; lanes in *bad are out of range. */
static ALWAYS_INLINE vf32 groups_finish(const mpsim_scaledgroups *p, const groups_terms *t, size_t count, vf32 c,
                                        unsigned *bad)
{
    const vu32 field = ((vu32)c << 1) >> 24, is_normal = v_keep_u32(v_gt_u32(field, v_u32(0)), v_u32(1u << 23));
    const m32 no_c = v_eq_u32((vu32)c << 1, v_u32(0));
    const vi32 e_c = v_max_i32((vi32)field - v_i32(127), v_i32(-126));
    const vu32 m_c = ((vu32)c & v_u32(0x7fffff)) | is_normal;
    vi32 e = v_max_i32(v_i32(p->floor), (vi32)v_pick_u32(no_c, v_u32((uint32_t)MPSIM_EXPONENT_ZERO), (vu32)e_c));
    for (size_t i = 0; i < count; i++)
        e = v_max_i32(e, t[i].exponent);

    const vi32 d_c = e - e_c, sign_c = (vi32)c >> 31;
    vi64 first = groups_term(v_first_u64(m_c), p->fraction - 23, v_first_u64((vu32)d_c), v_first_i64(sign_c));
    vi64 last = groups_term(v_last_u64(m_c), p->fraction - 23, v_last_u64((vu32)d_c), v_last_i64(sign_c));
    for (size_t i = 0; i < count; i++) {
        const vi32 sign = t[i].p >> 31;
        const vu32 d = (vu32)(e - t[i].exponent);
        const vu32 m = (vu32)(((t[i].p ^ sign) - sign)) * t[i].scale;
        first += groups_term(v_first_u64(m), p->up, v_first_u64(d), v_first_i64(sign));
        last += groups_term(v_last_u64(m), p->up, v_last_u64(d), v_last_i64(sign));
    }
    const vi32 unit = v_max_i32(v_min_i32(e, v_i32(200)), v_i32(-200)) - v_i32(p->fraction);
    const vf32 to = v_narrow_f32(groups_number(first, v_first_i64(unit)), groups_number(last, v_last_i64(unit)));
    const vi32 out = (e - v_i32(-60)) | (v_i32(100) - e);
    const vu64 zero = v_u64(0);
    const unsigned some = ~(m64_bits(v_eq_u64((vu64)first, zero)) | m64_bits(v_eq_u64((vu64)last, zero))
                                                                        << V_LANES / 2);
    *bad |= m32_bits(v_top_u32((vu32)out)) & some;
    return to;
}

static ALWAYS_INLINE void groups_some(const size_t rows, const mpsim_scaledgroups *p, const float *a,
                                      const mpsim_group_info *of_a, size_t next, const float *b,
                                      const mpsim_group_info *of_b, float *c, size_t depth, unsigned column,
                                      unsigned *redo)
{
    enum { MOST = 8 };
    const size_t group = (size_t)p->group, each = next / group;
    vf32 s[SCALEDGROUPS_ROWS];
    groups_terms terms[SCALEDGROUPS_ROWS][MOST];
    unsigned bad[SCALEDGROUPS_ROWS] = {0};
    UNROLL
    for (size_t r = 0; r < rows; r++)
        s[r] = v_load_f32(c + r * MPSIM_PANEL);
    for (size_t k = 0; k < depth; k += (size_t)p->length) {
        size_t count = 0;
        for (size_t at = k; at < depth && at < k + (size_t)p->length; at += group, count++) {
            const size_t q = at / group;
            vf32 sum[SCALEDGROUPS_ROWS];
            UNROLL
            for (size_t r = 0; r < rows; r++)
                sum[r] = v_f32(0);
            for (size_t i = at; i < at + group; i++) {
                const vf32 y = v_load_f32(b + i * MPSIM_PANEL);
                UNROLL
                for (size_t r = 0; r < rows; r++)
                    sum[r] = integer_add(v_f32(a[r * next + i]), y, sum[r]);
            }
            const vu32 nonzero = v_load_u32(of_b->nonzero + q * MPSIM_PANEL + column);
            const vu32 significand = v_load_u32(of_b->significand + q * MPSIM_PANEL + column);
            const vi32 exponent = (vi32)v_load_u32(of_b->exponent + q * MPSIM_PANEL + column);
            UNROLL
            for (size_t r = 0; r < rows; r++) {
                const m32 counts = v_test_u32(nonzero, v_u32(of_a->nonzero[r * each + q]));
                groups_terms *t = &terms[r][count];
                t->p = v_i32_of_f32(sum[r] * v_f32(p->up_p));
                t->scale = v_keep_u32(counts, significand * v_u32(of_a->significand[r * each + q]));
                t->exponent = (vi32)v_pick_u32(counts, (vu32)(exponent + v_i32(of_a->exponent[r * each + q])),
                                               v_u32((uint32_t)MPSIM_EXPONENT_ZERO));
            }
        }
        UNROLL
        for (size_t r = 0; r < rows; r++)
            s[r] = groups_finish(p, terms[r], count, s[r], &bad[r]);
    }
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        v_store_f32(c + r * MPSIM_PANEL, s[r]);
        redo[r] |= bad[r] << column;
    }
}

static void scaledgroups(const mpsim_scaledgroups *p, const float *a, const mpsim_group_info *of_a, size_t next,
                         const float *b, const mpsim_group_info *of_b, float *c, size_t rows, size_t depth,
                         unsigned *redo)
{
    const size_t each = next / (size_t)p->group;
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
        size_t r = 0;
        for (; r < rows;) {
            const mpsim_group_info x = {of_a->nonzero + r * each, of_a->significand + r * each,
                                        of_a->exponent + r * each};
            if (r + SCALEDGROUPS_ROWS <= rows) {
                groups_some(SCALEDGROUPS_ROWS, p, a + r * next, &x, next, b + j, of_b, c + r * MPSIM_PANEL + j, depth,
                            j, redo + r);
                r += SCALEDGROUPS_ROWS;
            } else {
                groups_some(1, p, a + r * next, &x, next, b + j, of_b, c + r * MPSIM_PANEL + j, depth, j, redo + r);
                r++;
            }
        }
    }
}
