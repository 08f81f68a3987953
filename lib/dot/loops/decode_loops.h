/* decode_loops.h -- codes to binary32 values, and these to binary64, in vectors: see panel.h. Included by one unit per instruction
 * set, after its vectors (lib/simd). The operations are those of panel_decode.h: exact in every
 * environment. */

typedef struct decode_constants {
    vu32 magnitude, normal, rebias, max_finite, negzero, is_signed;
    vf32 unit;
    vi32 lowest;
    int shift, sign_shift;
} decode_constants;

static ALWAYS_INLINE decode_constants decode_constants_of(const mpsim_unpacker *u, int lowest)
{
    return (decode_constants){.magnitude = v_u32((uint32_t)u->magnitude),
                              .normal = v_u32(u->same_bias ? 0 : 1u << 23),
                              .rebias = v_u32((uint32_t)u->rebias),
                              .max_finite = v_u32((uint32_t)u->max_finite),
                              .negzero = v_u32((uint32_t)u->negzero),
                              .is_signed = v_u32((uint32_t)u->is_signed),
                              .unit = v_f32((float)u->unit),
                              .lowest = v_i32(lowest),
                              .shift = u->shift,
                              .sign_shift = u->sign_shift};
}

/* Values, as bits, of V_LANES codes; *special |= which are none. */
static ALWAYS_INLINE vu32 decode_lanes(const decode_constants *c, vu32 code, unsigned *special)
{
    const vu32 m = code & c->magnitude, bits = m << c->shift;
    const vu32 negative = code >> c->sign_shift & c->is_signed;
    const vu32 one = v_u32(150u << 23); /* 2^23, | m: + m */
    const m32 is_small = v_gt_u32(c->normal, bits);
    const m32 is_special = m32_or(v_gt_u32(m, c->max_finite), v_gt_u32(negative & c->negzero, m));
    const vf32 small = ((vf32)(one | v_keep_u32(is_small, m)) - (vf32)one) * c->unit;
    *special |= m32_bits(is_special);
    return v_keep_u32(m32_not(is_special),
                      v_pick_u32(is_small, (vu32)small & v_u32(0x7fffffff), bits + c->rebias) | negative << 31);
}

/* The same of a format with binary32's exponents and sign: its codes are the first bits of a value. */
static ALWAYS_INLINE vu32 decode_first_bits(const decode_constants *c, vu32 code, unsigned *special)
{
    const vu32 bits = (code & (c->magnitude | v_u32(1u << c->sign_shift))) << c->shift;
    const m32 is_special = v_gt_u32(code & c->magnitude, c->max_finite);
    *special |= m32_bits(is_special);
    return v_keep_u32(m32_not(is_special), bits);
}

static ALWAYS_INLINE vu32 exponent_lanes(const decode_constants *c, vu32 value)
{
    const vi32 above = v_max_i32((vi32)((value << 1) >> 24) - v_i32(127), c->lowest);
    return v_pick_u32(v_eq_u32(value << 1, v_u32(0)), v_u32((uint32_t)MPSIM_EXPONENT_ZERO), (vu32)above);
}

/* a[0] b[0] a[1] b[1] ..., 16 bits each, as they stand in memory. */
static ALWAYS_INLINE vu32 side_by_side(vu32 a, vu32 b)
{
    const vu32 low = MPSIM_FIRST_IS_HIGH ? b : a, high = MPSIM_FIRST_IS_HIGH ? a : b;
    return (low & v_u32(0xffff)) | high << 16;
}

/* V_LANES codes of row i from place j on; beyond those of `words` their bits mean nothing. */
static ALWAYS_INLINE vu32 load_codes(const size_t bytes, const int words, const unsigned char *p, size_t i, size_t j)
{
    const size_t at = i * MPSIM_PANEL + j, each = 4 / bytes;
    if (words)
        return v_load_u32(p + 4 * (i / each * MPSIM_PANEL + j)) >> (int)(8 * bytes * (i % each));
    return bytes == 1 ? v_load_u8(p + at) : bytes == 2 ? v_load_u16(p + 2 * at) : v_load_u32(p + 4 * at);
}

/* With exponents. `bytes`, `words` and `pairs` are constants where this is inlined. */
static ALWAYS_INLINE unsigned decode_rows(const size_t bytes, const int words, const size_t pairs,
                                          const mpsim_unpacker *u, float *values, int16_t *e, int lowest,
                                          const unsigned char *codes, size_t rows)
{
    const decode_constants c = decode_constants_of(u, lowest);
    unsigned all = 0;
    for (size_t i = 0; i < rows; i += pairs)
        for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
            const size_t at = i * MPSIM_PANEL + j, next = at + MPSIM_PANEL;
            unsigned special = 0;
            const vu32 x = decode_lanes(&c, load_codes(bytes, words, codes, i, j), &special);
            v_store_u32(values + at, x);
            if (pairs == 2) {
                const vu32 y = decode_lanes(&c, load_codes(bytes, words, codes, i + 1, j), &special);
                v_store_u32(values + next, y);
                v_store_u32(e + at + j, side_by_side(exponent_lanes(&c, x), exponent_lanes(&c, y)));
            } else {
                v_store_u16(e + at, exponent_lanes(&c, x));
            }
            all |= special << j;
        }
    return all;
}

/* Rows i to i + n - 1 <= i + each - 1 at place j, without their exponents. */
static ALWAYS_INLINE unsigned decode_words(const size_t bytes, const int words, const int first_bits,
                                           const decode_constants *c, float *values, const unsigned char *codes,
                                           size_t i, size_t n, unsigned j)
{
    const vu32 all = load_codes(bytes, words, codes, i, j);
    unsigned special = 0;
    for (size_t k = 0; k < (words ? 4 / bytes : 1); k++)
        if (k < n) {
            const vu32 code = all >> (int)(8 * bytes * k);
            v_store_u32(values + (i + k) * MPSIM_PANEL + j,
                        first_bits ? decode_first_bits(c, code, &special) : decode_lanes(c, code, &special));
        }
    return special << j;
}

static ALWAYS_INLINE unsigned decode_values(const size_t bytes, const int words, const int first_bits,
                                            const mpsim_unpacker *u, float *values, const unsigned char *codes,
                                            size_t rows)
{
    const decode_constants c = decode_constants_of(u, 0);
    const size_t each = words ? 4 / bytes : 1;
    unsigned all = 0;
    size_t i = 0;
    for (; i + each <= rows; i += each)
        for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES)
            all |= decode_words(bytes, words, first_bits, &c, values, codes, i, each, j);
    for (unsigned j = 0; i < rows && j < MPSIM_PANEL; j += V_LANES)
        all |= decode_words(bytes, words, first_bits, &c, values, codes, i, rows - i, j);
    return all;
}

static ALWAYS_INLINE int has_first_bits(const mpsim_unpacker *u)
{
    return u->same_bias && u->is_signed && !u->negzero && u->sign_shift + u->shift == 31;
}

static ALWAYS_INLINE unsigned decode_some(const size_t bytes, const int words, const mpsim_unpacker *u, float *values,
                                          int16_t *e, int pairs, int lowest, const void *codes, size_t rows)
{
    const unsigned char *p = (const unsigned char *)codes;
    if (!e && bytes > 1 && has_first_bits(u))
        return decode_values(bytes, words, 1, u, values, p, rows);
    if (!e)
        return decode_values(bytes, words, 0, u, values, p, rows);
    return pairs ? decode_rows(bytes, words, 2, u, values, e, lowest, p, rows)
                 : decode_rows(bytes, words, 1, u, values, e, lowest, p, rows);
}

static unsigned decode(const mpsim_unpacker *u, float *values, int16_t *e, int pairs, int lowest, const void *codes,
                       int words, size_t rows)
{
    if (u->bytes == 1)
        return words ? decode_some(1, 1, u, values, e, pairs, lowest, codes, rows)
                     : decode_some(1, 0, u, values, e, pairs, lowest, codes, rows);
    if (u->bytes == 2)
        return words ? decode_some(2, 1, u, values, e, pairs, lowest, codes, rows)
                     : decode_some(2, 0, u, values, e, pairs, lowest, codes, rows);
    return decode_some(4, 0, u, values, e, pairs, lowest, codes, rows);
}

/* ---- values as they are ---- */

static unsigned look_f32(const void *values, size_t rows)
{
    const float *x = (const float *)values;
    unsigned all = 0;
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
        vi32 most = v_i32(0);
        for (size_t i = 0; i < rows; i++)
            most = v_max_i32((vi32)(v_load_u32(x + i * MPSIM_PANEL + j) & v_u32(0x7fffffff)), most);
        all |= m32_bits(v_gt_i32(most, v_i32(0x7f7fffff))) << j;
    }
    return all;
}

static unsigned look_f64(const void *values, size_t rows)
{
    const double *x = (const double *)values;
    unsigned all = 0;
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES / 2) {
        vu64 any = v_u64(0);
        for (size_t i = 0; i < rows; i++) /* the top bit, where the exponent is 2047 */
            any |= (v_load_u64(x + i * MPSIM_PANEL + j) & v_u64(0x7ff0000000000000)) + v_u64(0x0010000000000000);
        all |= m64_bits(v_test_u64(any, v_u64(0x8000000000000000))) << j;
    }
    return all;
}

static void widen(const float *values, double *to, size_t rows, mpsim_ranges *ranges)
{
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
        vi32 most = (vi32)v_load_u32(ranges->most + j), least = (vi32)v_load_u32(ranges->least + j);
        for (size_t i = 0; i < rows; i++) {
            const vf32 x = v_load_f32(values + i * MPSIM_PANEL + j);
            const vu32 m = (vu32)x & v_u32(0x7fffffff);
            most = v_max_i32((vi32)m, most);
            least = v_max_i32((vi32)v_keep_u32(m32_not(v_eq_u32(m, v_u32(0))), v_u32(0x7fffffff) - m), least);
            v_store_f64(to + i * MPSIM_PANEL + j, v_first_f64(x));
            v_store_f64(to + i * MPSIM_PANEL + j + V_LANES / 2, v_last_f64(x));
        }
        v_store_u32(ranges->most + j, (vu32)most);
        v_store_u32(ranges->least + j, (vu32)least);
    }
}
