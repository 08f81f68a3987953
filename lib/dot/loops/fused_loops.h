/* fused_loops.h -- fused additions in vectors: see tile.h. Included by one unit per instruction set, after
 * its vectors (lib/simd). A vector is V_LANES columns; several rows at once share what is loaded of b. */

enum { FUSED_ROWS = 4 };

/* S toward zero to the 24 bits of binary32; of -2^31, which is of trouble only, anything. */
static ALWAYS_INLINE vf32 toward_zero(vi32 s)
{
#ifdef __AVX512F__
    return (vf32)_mm512_cvt_roundepi32_ps((__m512i)s, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
    const vi32 sign = s >> 31, m = (vi32)((vu32)(s ^ sign) - (vu32)sign); /* below 2^31 */
    const vf32 near = v_f32_of_i32(m);
    /* -1: near is above m; 2^31 is -2^31 */
    const vi32 above = (vi32)((vu32)m - (vu32)v_i32_of_f32(near)) >> 31;
    return (vf32)(((vi32)near + above) | (s & v_i32(INT32_MIN)));
#endif
}

/* S rounded to odd at 2^8 where it has more than 24 bits: exact in binary32 then. */
static ALWAYS_INLINE vf32 to_odd(vi32 s)
{
    const m32 is_small = v_gt_u32(v_u32(1u << 25), (vu32)s + v_u32(1u << 24));
    const vu32 low = (vu32)s & v_u32(0xff);
    const vu32 odd = ((vu32)s & v_u32(~0xffu)) | ((low + v_u32(0xff)) & v_u32(0x100));
    return v_f32_of_i32((vi32)v_pick_u32(is_small, (vu32)s, odd));
}

static ALWAYS_INLINE vf32 power(vi32 e)
{
    return (vf32)((e + v_i32(127)) << 23);
}

/* What an addition is done with, in every lane. */
typedef struct fused_constants {
    vi32 emin, floor, fraction, least, most;
    vu32 keep;
    vf32 spread, lowest; /* see rounded.h */
} fused_constants;

static ALWAYS_INLINE fused_constants constants_of(const mpsim_tile *t)
{
    const float least = (float)mpsim_f64_bits(t->least), most = (float)mpsim_f64_bits(t->most);
    fused_constants k;
    k.emin = v_i32(t->emin);
    k.floor = v_i32(t->floor > MPSIM_TILE_LOW ? t->floor : MPSIM_TILE_LOW);
    k.fraction = v_i32(t->fraction);
    k.least = (vi32)v_f32(least);
    k.most = (vi32)v_f32(most);
    k.keep = v_u32(UINT32_MAX << (23 - t->mbits));
    k.spread = power(v_i32(23 - t->mbits)) * v_f32(1.5f);
    k.lowest = power(v_i32(23 + t->emin - t->mbits)) * v_f32(1.5f);
    return k;
}

/* The larger exponents of the pairs, and of c; *raw without the floor. */
static ALWAYS_INLINE vi32 alignment(const fused_constants *k, vi16 pairs, vf32 c, vi32 *raw)
{
    const vi32 low = (vi32)pairs << 16 >> 16, high = (vi32)pairs >> 16;
    const vu32 field = ((vu32)c << 1) >> 24;
    const m32 is_zero = v_eq_u32((vu32)c << 1, v_u32(0));
    const vi32 of_c = v_max_i32((vi32)field - v_i32(127), k->emin);
    *raw = v_max_i32(v_max_i32(low, high), (vi32)v_pick_u32(is_zero, v_u32((uint32_t)MPSIM_EXPONENT_ZERO), (vu32)of_c));
    return v_max_i32(*raw, k->floor);
}

/* x + y; negative in *trouble where it does not fit. */
static ALWAYS_INLINE vi32 checked(vi32 x, vi32 y, vi32 *trouble)
{
    const vi32 sum = (vi32)((vu32)x + (vu32)y);
    *trouble |= (x ^ sum) & (y ^ sum);
    return sum;
}

/* The accumulator for S 2^(E - F); negative in *trouble where the lane must be done alone. */
static ALWAYS_INLINE vf32 finish_lanes(const int nearest, const fused_constants *k, vi32 s, vi32 e, vi32 *trouble)
{
    const vf32 down = power(e - k->fraction);
    vf32 r;
    if (nearest) {
        const vf32 x = to_odd(s) * down;
        const vf32 c = v_max_f32((vf32)((vu32)x & v_u32(0x7f800000)) * k->spread, k->lowest);
        r = (x + c) - c;
    } else {
        r = (vf32)((vu32)toward_zero(s) & k->keep) * down;
    }
    const vi32 m = (vi32)((vu32)r & v_u32(0x7fffffff));
    *trouble |= k->most - m;
    if (!nearest)
        *trouble |= (m - k->least) & ~(m - v_i32(1));
    return r;
}

/* The lanes of an addition that vectors do not do. */
static __attribute__((noinline)) unsigned do_alone(unsigned lanes, const mpsim_tile *t, const float *a,
                                                   const int16_t *ea, const float *b, const int16_t *eb, float *c,
                                                   size_t n)
{
    unsigned redo = 0;
    for (unsigned j = 0; j < V_LANES; j++)
        if (lanes >> j & 1)
            redo |= mpsim_tile_lane(t, a, ea, b + j, eb + 2 * j, c + j, n) << j;
    return redo;
}

/* `to`, but for the lanes that are done alone, from c. */
static ALWAYS_INLINE vf32 but_alone(unsigned alone, const mpsim_tile *t, const float *a, const int16_t *ea,
                                    const float *b, const int16_t *eb, vf32 c, vf32 to, size_t n, unsigned column,
                                    unsigned *redo)
{
    float from[V_LANES], lanes[V_LANES];
    if (__builtin_expect(alone == 0, 1))
        return to;
    v_store_f32(from, c);
    v_store_f32(lanes, to);
    *redo |= do_alone(alone, t, a, ea, b, eb, from, n) << column;
    for (int j = 0; j < V_LANES; j++)
        lanes[j] = alone >> j & 1 ? from[j] : lanes[j];
    return v_load_f32(lanes);
}

/* The largest exponents of n products for each of `rows` rows, of even k and of odd k side by side. */
static ALWAYS_INLINE void largest_pairs(const size_t rows, vi16 *pairs, const int16_t *ea, size_t next,
                                        const int16_t *eb, size_t n)
{
    UNROLL
    for (size_t r = 0; r < rows; r++)
        pairs[r] = v_i16(2 * MPSIM_EXPONENT_ZERO);
    for (size_t k = 0; k < n; k += 2) {
        const vi16 y = v_load_i16(eb + k * MPSIM_TILE);
        UNROLL
        for (size_t r = 0; r < rows; r++)
            pairs[r] = v_max_i16(pairs[r], v_pair_i16(ea + r * next + k) + y);
    }
}

/* One addition of n products to the accumulators of `rows` rows. What is no finite number becomes any integer,
 * whose sums may wrap: its exponent is trouble by itself. */
static ALWAYS_INLINE void add_products(const int nearest, const size_t rows, const mpsim_tile *t,
                                       const fused_constants *constant, const float *a, const int16_t *ea, size_t next,
                                       const float *b, const int16_t *eb, vf32 *c, size_t n, unsigned column,
                                       unsigned *redo)
{
    vi16 pairs[FUSED_ROWS];
    vi32 e[FUSED_ROWS], sum[FUSED_ROWS], total[FUSED_ROWS], trouble[FUSED_ROWS];
    vf32 up[FUSED_ROWS];
    largest_pairs(rows, pairs, ea, next, eb, n);
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        vi32 raw;
        e[r] = alignment(constant, pairs[r], c[r], &raw);
        trouble[r] = ((raw - v_i32(MPSIM_TILE_LOW)) & (v_i32(MPSIM_EXPONENT_ZERO / 2) - raw)) |
                     (v_i32(MPSIM_TILE_HIGH) - raw);
        up[r] = power(constant->fraction - e[r]);
        total[r] = v_i32_of_f32(c[r] * up[r]);
    }
    for (size_t first = 0; first < n; first += (size_t)t->group) {
        const size_t end = n - first < (size_t)t->group ? n : first + (size_t)t->group;
        UNROLL
        for (size_t r = 0; r < rows; r++)
            sum[r] = v_i32(0);
        for (size_t k = first; k < end; k++) {
            const vf32 y = v_load_f32(b + k * MPSIM_TILE);
            UNROLL
            for (size_t r = 0; r < rows; r++)
                sum[r] = (vi32)((vu32)sum[r] + (vu32)v_i32_of_f32(v_f32(a[r * next + k]) * y * up[r]));
        }
        UNROLL
        for (size_t r = 0; r < rows; r++)
            total[r] = checked(total[r], sum[r], &trouble[r]);
    }
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        const vf32 to = finish_lanes(nearest, constant, total[r], e[r], &trouble[r]);
        c[r] = but_alone(m32_bits(v_top_u32((vu32)trouble[r])), t, a + r * next, ea + r * next, b, eb, c[r], to, n,
                         column, &redo[r]);
    }
}

static ALWAYS_INLINE void fused_some(const int nearest, const size_t rows, const mpsim_tile *t, const float *a,
                                     const int16_t *ea, size_t next, const float *b, const int16_t *eb, float *c,
                                     size_t depth, unsigned column, unsigned *redo)
{
    const fused_constants constant = constants_of(t);
    const size_t length = (size_t)t->length;
    vf32 s[FUSED_ROWS];
    UNROLL
    for (size_t r = 0; r < rows; r++)
        s[r] = v_load_f32(c + r * MPSIM_TILE);
    for (size_t k = 0; k < depth; k += length)
        add_products(nearest, rows, t, &constant, a + k, ea + k, next, b + k * MPSIM_TILE, eb + k * MPSIM_TILE, s,
                     depth - k < length ? depth - k : length, column, redo);
    UNROLL
    for (size_t r = 0; r < rows; r++)
        v_store_f32(c + r * MPSIM_TILE, s[r]);
}

static ALWAYS_INLINE void fused_all(const int nearest, const mpsim_tile *t, const float *a, const int16_t *ea,
                                    size_t next, const float *b, const int16_t *eb, float *c, size_t rows, size_t depth,
                                    unsigned *redo)
{
    for (unsigned j = 0; j < MPSIM_TILE; j += V_LANES) {
        size_t r = 0;
        for (; r + FUSED_ROWS <= rows; r += FUSED_ROWS)
            fused_some(nearest, FUSED_ROWS, t, a + r * next, ea + r * next, next, b + j, eb + 2 * j,
                       c + r * MPSIM_TILE + j, depth, j, redo + r);
        for (; r < rows; r++)
            fused_some(nearest, 1, t, a + r * next, ea + r * next, next, b + j, eb + 2 * j, c + r * MPSIM_TILE + j,
                       depth, j, redo + r);
    }
}

static void fused(const mpsim_tile *t, const float *a, const int16_t *ea, size_t next, const float *b,
                  const int16_t *eb, float *c, size_t rows, size_t depth, unsigned *redo)
{
    if (t->nearest)
        fused_all(1, t, a, ea, next, b, eb, c, rows, depth, redo);
    else
        fused_all(0, t, a, ea, next, b, eb, c, rows, depth, redo);
}
