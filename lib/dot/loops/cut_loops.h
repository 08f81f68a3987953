/* cut_loops.h -- fused additions that keep few bits, by chains that round toward zero: see cut.h. Included by one unit
 * per instruction set, after fused_loops.h. Each runs in the environment that rounds toward zero; what it computes
 * beside the chains is exact. */

#ifdef __AVX512F__
enum { CUT_ROWS = 8 };
#else
enum { CUT_ROWS = 4 };
#endif

/* ---- operands ---- */

static ALWAYS_INLINE vu32 marked(vu32 u, uint32_t odd)
{
    return u | v_pick_u32(v_eq_u32(u << 1, v_u32(0)), v_u32(MPSIM_CUT_ZERO), v_u32(odd));
}

/* Bytes of exponents, see cut.h. */
static ALWAYS_INLINE vu32 exponent_bytes(vu32 u, int lowest, uint32_t bias)
{
    const vu32 field = v_max_u32((u << 1) >> 24, v_u32((uint32_t)(127 + lowest)));
    return v_keep_u32(m32_not(v_eq_u32(u << 1, v_u32(0))), field - v_u32(127 - bias));
}

/* Four bytes of 32-bit lanes, as they stand in memory. */
static ALWAYS_INLINE vu32 in_words(vu32 a, vu32 b, vu32 c, vu32 d)
{
    return MPSIM_FIRST_IS_HIGH ? a << 24 | b << 16 | c << 8 | d : d << 24 | c << 16 | b << 8 | a;
}

static void mark_columns(float *values, uint32_t *signs, uint8_t *exponents, int lowest, size_t n)
{
    for (size_t j = 0; j < MPSIM_PANEL; j += V_LANES) {
        vu32 of_all = v_u32(0), bytes[4];
        for (size_t k = 0; k < n; k += 4) {
            UNROLL
            for (size_t i = 0; i < 4; i++) {
                float *at = values + (k + i) * MPSIM_PANEL + j;
                const vu32 u = v_load_u32(at);
                of_all = of_all >> 1 | (u & v_u32(0x80000000));
                bytes[i] = exponent_bytes(u, lowest, MPSIM_CUT_BIAS_B);
                v_store_u32(at, marked(u, MPSIM_CUT_ODD));
            }
            v_store_u32(exponents + k * MPSIM_PANEL + 4 * j, in_words(bytes[0], bytes[1], bytes[2], bytes[3]));
        }
        v_store_u32(signs + j, v_shr_u32(of_all, v_u32((uint32_t)(32 - n))));
    }
}

/* V_LANES values of a row: their signs. */
static ALWAYS_INLINE uint32_t mark_lanes(float *values, uint8_t *exponents, int lowest)
{
    const vu32 u = v_load_u32(values);
    v_store_u8(exponents, exponent_bytes(u, lowest, MPSIM_CUT_BIAS_A));
    v_store_u32(values, marked(u, 0));
    return m32_bits(v_top_u32(u));
}

static void mark_row(float *values, uint32_t *signs, uint8_t *exponents, int lowest, size_t n)
{
    float last[V_LANES] = {0};
    uint8_t bytes[V_LANES];
    uint32_t bits = 0;
    size_t k = 0;
    for (; k + V_LANES <= n; k += V_LANES)
        bits |= mark_lanes(values + k, exponents + k, lowest) << k;
    if (k < n) {
        memcpy(last, values + k, (n - k) * sizeof last[0]);
        bits |= mark_lanes(last, bytes, lowest) << k;
        memcpy(values + k, last, (n - k) * sizeof last[0]);
        memcpy(exponents + k, bytes, n - k);
    }
    *signs = bits;
}

/* ---- chains ---- */

/* s + x y; without the instruction x y is rounded, too, toward zero: see cut.h. */
static ALWAYS_INLINE vf32 cut_step(vf32 x, vf32 y, vf32 s)
{
#ifdef __AVX2__
    return v_fma_f32(x, y, s);
#else
    return s + x * y;
#endif
}

static int cuts(void)
{
    volatile float x = 1.5F, s = 0x1p24F; /* whose sum is nearer to 2^24 + 2 */
    float sum[V_LANES];
    v_store_f32(sum, cut_step(v_f32(x), v_f32(1), v_f32(s)));
    return sum[0] == 0x1p24F;
}

/* `counts`: the machine has an instruction for it. */
static ALWAYS_INLINE vu32 count_bits(const int counts, vu32 x)
{
#ifdef __AVX512F__
    if (counts) { /* beyond what the unit is compiled for */
        __m512i n;
        __asm__("vpopcntd %1, %0" : "=v"(n) : "v"((__m512i)x));
        return (vu32)n;
    }
#endif
    (void)counts;
    x = x - (x >> 1 & v_u32(0x55555555));
    x = (x & v_u32(0x33333333)) + (x >> 2 & v_u32(0x33333333));
    x = (x + (x >> 4)) & v_u32(0x0f0f0f0f);
    x = x + (x >> 8);
    return (x + (x >> 16)) & v_u32(0x3f);
}

static ALWAYS_INLINE vu32 bytes_at(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return v_u32(x);
}

/* The bytes of the products from k on, four a lane. */
static ALWAYS_INLINE void widen_bytes(const size_t rows, vu32 *e, const mpsim_cut_operand *a,
                                      const mpsim_cut_operand *b, size_t k)
{
    const vu32 y = v_load_u32(b->exponents + k * MPSIM_PANEL);
    UNROLL
    for (size_t r = 0; r < rows; r++)
        e[r] = v_max_u8(e[r], bytes_at(a->exponents + r * a->next + k) + y);
}

static ALWAYS_INLINE void cut_chain(const size_t rows, const mpsim_cut_operand *a, const mpsim_cut_operand *b, vf32 *s,
                                    size_t k)
{
    const vf32 y = v_load_f32(b->values + k * MPSIM_PANEL);
    UNROLL
    for (size_t r = 0; r < rows; r++)
        s[r] = cut_step(v_f32(a->values[r * a->next + k]), y, s[r]);
}

/* The constants of additions. */
typedef struct cut_constants {
    vu32 least, field, half, up, keep, odd;
} cut_constants;

static ALWAYS_INLINE cut_constants cut_constants_of(const mpsim_tile *t)
{
    const int least = 127 + (t->floor > t->lowest ? t->floor : t->lowest);
    return (cut_constants){.least = v_u32((uint32_t)least * 0x01010101u),
                           .field = v_u32(0x7f800000),
                           .half = v_u32(0x00400000),
                           .up = v_u32((uint32_t)(23 - t->fraction) << 23),
                           .keep = v_u32((UINT32_MAX << (23 - t->mbits)) & ~1u),
                           .odd = v_u32(1)};
}

/* One addition of n products, a multiple of 4, to the accumulators of `rows` rows, which are marked; V_LANES columns.
 * e: the largest exponents of these products in any byte of a lane; then of the next n_next, which follow. */
static ALWAYS_INLINE void cut_products(const int counts, const size_t rows, const cut_constants *t,
                                       const mpsim_cut_operand *a, const mpsim_cut_operand *b, vu32 *e, vf32 *c,
                                       size_t n, size_t n_next)
{
    vf32 s[CUT_ROWS], zero[CUT_ROWS];
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vu32 two = v_max_u8(e[r], e[r] << 16), one = v_max_u8(two, two << 8);
        const vu32 m = v_max_u8(one, (vu32)c[r] + (vu32)c[r]);
        zero[r] = (vf32)(v_bits_u32(t->field, m >> 1, t->half) + t->up); /* 1.5 2^23 units */
        s[r] = zero[r];
        e[r] = t->least;
    }
    size_t k = 0;
    for (; k < n_next; k += 4) {
        widen_bytes(rows, e, a, b, n + k);
        UNROLL
        for (size_t i = 0; i < 4; i++)
            cut_chain(rows, a, b, s, k + i);
    }
    for (; k < n; k++)
        cut_chain(rows, a, b, s, k);
    const vu32 of_b = v_load_u32(b->signs);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vu32 negative = count_bits(counts, v_u32(a->signs[r * a->next_signs]) ^ of_b);
        const vu32 sum = (vu32)(s[r] + c[r]) + negative - (vu32)((vi32)c[r] >> 31);
        c[r] = (vf32)v_bits_u32(t->keep, (vu32)((vf32)sum - zero[r]), t->odd);
    }
}

/* ---- lanes that chains do not do ---- */

/* An accumulator as chains take it: its last bit is set, and no number is subnormal. */
static ALWAYS_INLINE vf32 marked_sum(vf32 c)
{
    const vu32 u = (vu32)c, tiny = v_u32(27u << 23);
    return (vf32)(u | v_pick_u32(v_eq_u32(u << 1, v_u32(0)), tiny, v_u32(1)));
}

/* Lanes of accumulators that any products can follow (see cut.h), as bits; *large: of those that none can. */
static ALWAYS_INLINE unsigned ready_lanes(const mpsim_tile *t, vf32 c, unsigned *large)
{
    const vu32 u = (vu32)c & v_u32(0x7fffffff), high = v_u32((127 + MPSIM_TILE_HIGH - 1) << 23);
    const unsigned small = m32_bits(v_gt_u32(v_u32((uint32_t)(127 + t->lowest) << 23), u));
    *large = m32_bits(v_ge_u32(u, high));
    return ((1u << V_LANES) - 1) & ~*large & (~small | m32_bits(v_eq_u32(u, v_u32(0))));
}

/* One addition to some lanes of a row, by scalars. */
static __attribute__((noinline)) void cut_alone(unsigned lanes, const mpsim_tile *t, const mpsim_cut_operand *a,
                                                const mpsim_cut_operand *b, float *c, size_t n, unsigned column,
                                                unsigned *redo)
{
    int16_t ea[MPSIM_CUT_LENGTH], eb[MPSIM_CUT_LENGTH * MPSIM_PANEL];
    for (size_t k = 0; k < n; k++)
        ea[k] = (int16_t)(a->exponents[k] ? a->exponents[k] - MPSIM_CUT_BIAS_A : MPSIM_EXPONENT_ZERO);
    for (unsigned j = 0; j < V_LANES; j++) {
        if (!(lanes >> j & 1))
            continue;
        for (size_t k = 0; k < n; k++) {
            const int e = b->exponents[k / 4 * 4 * MPSIM_PANEL + 4 * j + k % 4];
            eb[2 * MPSIM_TILE * (k / 2) + k % 2] = (int16_t)(e ? e - MPSIM_CUT_BIAS_B : MPSIM_EXPONENT_ZERO);
        }
        *redo |= mpsim_tile_lane(t, a->values, ea, b->values + j, eb, c + j, n) << (column + j);
    }
}

/* One addition to a row whose lanes are not all ready. */
static ALWAYS_INLINE void cut_tested(const mpsim_tile *t, const mpsim_cut_operand *a, const mpsim_cut_operand *b,
                                     float *c, size_t n, unsigned column, unsigned *redo)
{
    const cut_constants constants = cut_constants_of(t);
    const vf32 old = v_load_f32(c);
    vf32 sum = marked_sum(old);
    vu32 e = v_u32(0);
    float in_vectors[V_LANES];
    unsigned large;
    const unsigned ready = ready_lanes(t, old, &large);
    for (size_t k = 0; k < n; k += 4)
        widen_bytes(1, &e, a, b, k);
    e = v_max_u8(e, e << 16);
    e = v_max_u8(e, e << 8);
    const unsigned low = m32_bits(v_gt_u32(v_u32((uint32_t)(127 + t->lowest)), e >> 24));
    const unsigned high = m32_bits(v_gt_u32(e >> 24, v_u32(127 + MPSIM_TILE_HIGH)));
    const unsigned alone = large | high | (low & ~ready);
    e = v_max_u8(e, constants.least);
    cut_products(0, 1, &constants, a, b, &e, &sum, n, 0);
    v_store_u32(in_vectors, (vu32)sum & v_u32(~1u));
    cut_alone(alone, t, a, b, c, n, column, redo);
    for (unsigned j = 0; j < V_LANES; j++)
        c[j] = alone >> j & 1 ? c[j] : in_vectors[j];
}

static ALWAYS_INLINE void next_addition(mpsim_cut_operand *a, mpsim_cut_operand *b, size_t length)
{
    a->values += length;
    a->exponents += length;
    a->signs++;
    b->values += length * MPSIM_PANEL;
    b->exponents += length * MPSIM_PANEL;
    b->signs += MPSIM_PANEL;
}

/* Additions until all lanes are ready; how many products they took. */
static __attribute__((noinline)) size_t cut_first(size_t rows, const mpsim_tile *t, mpsim_cut_operand *a,
                                                  mpsim_cut_operand *b, float *c, size_t depth, unsigned column,
                                                  unsigned *redo)
{
    const size_t length = (size_t)t->length;
    size_t k = 0;
    while (k < depth) {
        unsigned ready = t->tame ? (1u << V_LANES) - 1 : 0, large;
        for (size_t r = 0; r < rows; r++)
            ready &= ready_lanes(t, v_load_f32(c + r * MPSIM_PANEL), &large);
        if (ready == (1u << V_LANES) - 1)
            break;
        const size_t n = depth - k < length ? depth - k : length;
        for (size_t r = 0; r < rows; r++) {
            const mpsim_cut_operand row = {a->values + r * a->next, a->exponents + r * a->next,
                                           a->signs + r * a->next_signs, 0, 0};
            cut_tested(t, &row, b, c + r * MPSIM_PANEL, n, column, redo + r);
        }
        next_addition(a, b, n);
        k += n;
    }
    return k;
}

static ALWAYS_INLINE void cut_some(const int counts, const size_t rows, const mpsim_tile *t, mpsim_cut_operand a,
                                   mpsim_cut_operand b, float *c, size_t depth, unsigned column, unsigned *redo)
{
    const size_t length = (size_t)t->length;
    const cut_constants constants = cut_constants_of(t);
    vf32 s[CUT_ROWS];
    vu32 e[CUT_ROWS];
    size_t left = depth - cut_first(rows, t, &a, &b, c, depth, column, redo);
    if (left == 0)
        return;
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        s[r] = marked_sum(v_load_f32(c + r * MPSIM_PANEL));
        e[r] = constants.least;
    }
    for (size_t k = 0; k < left && k < length; k += 4)
        widen_bytes(rows, e, &a, &b, k);
    while (left) {
        const size_t n = left < length ? left : length, n_next = left - n < length ? left - n : length;
        cut_products(counts, rows, &constants, &a, &b, e, s, n, n_next);
        next_addition(&a, &b, n);
        left -= n;
    }
    UNROLL
    for (size_t r = 0; r < rows; r++)
        v_store_u32(c + r * MPSIM_PANEL, (vu32)s[r] & v_u32(~1u));
}

static ALWAYS_INLINE void cut_all(const int counts, const mpsim_tile *t, const mpsim_cut_operand *a,
                                  const mpsim_cut_operand *b, float *c, size_t rows, size_t depth, unsigned *redo)
{
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
        const mpsim_cut_operand of_b = {b->values + j, b->exponents + 4 * j, b->signs + j, 0, 0};
        for (size_t r = 0; r < rows;) {
            const mpsim_cut_operand of_a = {a->values + r * a->next, a->exponents + r * a->next,
                                            a->signs + r * a->next_signs, a->next, a->next_signs};
            const size_t some = rows - r < CUT_ROWS ? 1 : CUT_ROWS;
            if (some == 1)
                cut_some(counts, 1, t, of_a, of_b, c + r * MPSIM_PANEL + j, depth, j, redo + r);
            else
                cut_some(counts, CUT_ROWS, t, of_a, of_b, c + r * MPSIM_PANEL + j, depth, j, redo + r);
            r += some;
        }
    }
}

static void cut(const mpsim_tile *t, const mpsim_cut_operand *a, const mpsim_cut_operand *b, float *c, size_t rows,
                size_t depth, unsigned *redo)
{
#ifdef __AVX512F__
    if (t->counts) {
        cut_all(1, t, a, b, c, rows, depth, redo);
        return;
    }
#endif
    cut_all(0, t, a, b, c, rows, depth, redo);
}
