/* panel_decode.h -- codes to values of one type: included by panel_any.c, which defines REAL, BITS (an
 * unsigned integer of its size), BITS_OF and REAL_OF (from one to the other), MANTISSA, BIAS, and
 * the names DECODE and EXPONENTS. */

/* Values of a row of codes. Returns whether one is not finite, special[j] which. Comparisons are
 * the top bits of differences of numbers below half the range, which every vector unit has. */
static unsigned DECODE(const mpsim_unpacker *u, REAL *y, const BITS *codes, BITS *special)
{
    enum { TOP = (int)sizeof(BITS) * 8 - 1 };
    const BITS magnitude = (BITS)u->magnitude, rebias = (BITS)u->rebias;
    const BITS max_finite = (BITS)u->max_finite, negzero = (BITS)u->negzero;
    const BITS normal = u->same_bias ? 0 : (BITS)1 << MANTISSA, whole = ((BITS)1 << TOP) - 1;
    const int shift = u->shift, sign_shift = u->sign_shift;
    const REAL unit = (REAL)u->unit;
    const BITS one = (BITS)(BIAS + MANTISSA) << MANTISSA; /* 2^MANTISSA, | m: + m */
    BITS any = 0;
    for (int j = 0; j < N; j++) {
        const BITS m = codes[j] & magnitude;
        const BITS negative = codes[j] >> sign_shift & (BITS)u->is_signed;
        const BITS bits = (BITS)(m << shift);
        const BITS is_small = (BITS)0 - ((BITS)(bits - normal) >> TOP);
        const REAL small = (REAL_OF(one | (m & is_small)) - REAL_OF(one)) * unit;
        const BITS value = (BITS_OF(small) & whole & is_small) | ((bits + rebias) & ~is_small);
        const BITS bad = (BITS)(max_finite - m) >> TOP | ((BITS)(m - 1) >> TOP & negative & negzero);
        y[j] = REAL_OF(value | negative << TOP);
        special[j] = bad;
        any |= bad;
    }
    return (unsigned)any;
}

/* Exponents of values; those of subnormal values are `lowest`. */
static void EXPONENTS(int16_t *e, const REAL *y, int lowest)
{
    const BITS fields = ((BITS)1 << ((int)sizeof(BITS) * 8 - 1 - MANTISSA)) - 1;
    for (int j = 0; j < N; j++) {
        const BITS u = BITS_OF(y[j]);
        const int field = (int)(u >> MANTISSA & fields);
        const int above = field - BIAS > lowest ? field - BIAS : lowest;
        e[j] = (int16_t)((BITS)(u << 1) ? above : MPSIM_EXPONENT_ZERO);
    }
}
