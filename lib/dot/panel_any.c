/* panel_any.c -- codes of any format to values, 16 at a time (see panel.h), and panels of them. */
#include "panel_parts.h"

/* ---- a row of codes, to binary32 and to binary64 ---- */

#define REAL float
#define BITS uint32_t
#define BITS_OF mpsim_bits_f32
#define REAL_OF mpsim_f32_bits
#define MANTISSA 23
#define BIAS 127
#define DECODE decode_f32
#define EXPONENTS exponents_f32
#include "panel_decode.h"
#undef REAL
#undef BITS
#undef BITS_OF
#undef REAL_OF
#undef MANTISSA
#undef BIAS
#undef DECODE
#undef EXPONENTS

#define REAL double
#define BITS uint64_t
#define BITS_OF mpsim_bits_f64
#define REAL_OF mpsim_f64_bits
#define MANTISSA 52
#define BIAS 1023
#define DECODE decode_f64
#define EXPONENTS exponents_f64
#include "panel_decode.h"

void mpsim_unpacker_init(mpsim_unpacker *u, const mpsim_format *f, int wide)
{
    const int mantissa = wide ? 52 : 23, bias = wide ? 1023 : 127, width = wide ? 64 : 32;
    const int unit = mpsim_format_last_bit(f);
    u->format = f;
    u->bytes = mpsim_format_code_bytes(f);
    u->wide = wide;
    u->same_bias = f->bias == bias;
    /* numbers with E = 0 must be normal values, but for those that have the value's own layout */
    u->direct = f->zero != MPSIM_ZERO_NONE && f->bits <= width && f->mbits <= mantissa && f->ebits < width - mantissa &&
                (u->same_bias || unit >= 1 - bias);
    u->shift = mantissa - f->mbits;
    u->is_signed = mpsim_has_sign(f);
    u->sign_shift = u->is_signed ? mpsim_magnitude_bits(f) : 0;
    u->negzero = f->nan == MPSIM_NAN_NEGZERO;
    u->magnitude = mpsim_magnitude_mask(f);
    u->rebias = (uint64_t)(int64_t)(bias - f->bias) << mantissa;
    u->max_finite = f->max_finite;
    u->unit = u->direct && !u->same_bias ? mpsim_f64_bits((uint64_t)(unit + 1023) << 52) : 0;
}

int mpsim_is_direct(const mpsim_format *f)
{
    mpsim_unpacker u;
    mpsim_unpacker_init(&u, f, 0);
    return u.direct && u.bytes <= 4;
}

/* A row of values, and which of them are special. */
typedef union row {
    double f64[N];
    float f32[N];
} row;

static unsigned by_reference(const mpsim_unpacker *u, row *y, const uint64_t *codes)
{
    unsigned mask = 0;
    for (int j = 0; j < N; j++) {
        mpsim_number x = mpsim_scalar_unpack(u->format, codes[j]);
        if (x.kind != MPSIM_NUMBER_FINITE) {
            mask |= 1u << j;
            x = mpsim_number_make(0, 0, 0);
        }
        if (u->wide)
            y->f64[j] = mpsim_number_to_f64(x);
        else
            y->f32[j] = mpsim_number_to_f32(x);
    }
    return mask;
}

static unsigned decode(const mpsim_unpacker *u, row *y, const uint64_t *codes)
{
    unsigned mask = 0;
    if (!u->direct)
        return by_reference(u, y, codes);
    if (u->wide) {
        uint64_t special[N];
        const unsigned any = decode_f64(u, y->f64, codes, special);
        for (int j = 0; any && j < N; j++)
            mask |= (unsigned)special[j] << j;
    } else {
        uint32_t narrow[N], special[N];
        for (int j = 0; j < N; j++)
            narrow[j] = (uint32_t)codes[j];
        const unsigned any = decode_f32(u, y->f32, narrow, special);
        for (int j = 0; any && j < N; j++)
            mask |= special[j] << j;
    }
    return mask;
}

/* n codes, and zeros after them. */
static void load(uint64_t *out, const void *codes, size_t bytes, size_t first, size_t stride, size_t n)
{
    const unsigned char *p = (const unsigned char *)codes + (n ? first * bytes : 0);
    size_t j = 0;
    switch (bytes) {
    case 1:
        for (; j < n; j++)
            out[j] = p[j * stride];
        break;
    case 2:
        for (; j < n; j++) {
            uint16_t v;
            memcpy(&v, p + 2 * stride * j, sizeof v);
            out[j] = v;
        }
        break;
    case 4:
        for (; j < n; j++) {
            uint32_t v;
            memcpy(&v, p + 4 * stride * j, sizeof v);
            out[j] = v;
        }
        break;
    default:
        for (; j < n; j++)
            memcpy(&out[j], p + 8 * stride * j, sizeof out[j]);
    }
    for (; j < N; j++)
        out[j] = 0;
}

unsigned mpsim_unpack_line(const mpsim_unpacker *u, void *values, const void *codes, size_t first, size_t stride,
                           size_t n)
{
    uint64_t raw[N];
    row y;
    load(raw, codes, u->bytes, first, stride, n);
    const unsigned mask = decode(u, &y, raw);
    memcpy(values, &y, n * (u->wide ? sizeof(double) : sizeof(float)));
    return n < N ? mask & ((1u << n) - 1) : mask;
}

/* ---- panels ---- */

/* The same of 16 codes that were loaded. */
static void enter_loaded(const mpsim_lines *x, uint64_t *raw)
{
    union {
        uint8_t u8[N];
        uint16_t u16[N];
        uint32_t u32[N];
    } codes;
    uint32_t bits[N];
    if (!x->entry)
        return;
    for (size_t j = 0; j < N; j++)
        mpsim_code_store(&codes, x->bytes, j, raw[j]);
    const uint32_t *entered = mpsim_enter_codes(x->entry, bits, &codes, N);
    for (size_t j = 0; j < N; j++)
        raw[j] = entered[j];
}

/* Up to 16 codes of a line from product k on. */
static void load_along(const mpsim_lines *x, const mpsim_panels *to, uint64_t *raw, size_t l, size_t k)
{
    const size_t n = to->padded - k < N ? to->padded - k : N;
    if (!to->quads) {
        const size_t left = k < x->depth ? x->depth - k : 0;
        load(raw, x->codes, x->bytes, l * x->line + k * x->next, x->next, left < n ? left : n);
        enter_loaded(x, raw);
        return;
    }
    for (size_t i = 0; i < N; i++) {
        const size_t from = i < n ? mpsim_source_of_product(to, k + i) : x->depth;
        raw[i] = from < x->depth ? mpsim_code_load(x->codes, x->bytes, l * x->line + from * x->next) : 0;
    }
    enter_loaded(x, raw);
}

/* Code 0 is no zero in a format without zeros. */
static void clear(const mpsim_unpacker *u, row *y, size_t from, size_t to)
{
    for (size_t j = from; j < to; j++) {
        if (u->wide)
            y->f64[j] = 0;
        else
            y->f32[j] = 0;
    }
}

static void put_exponents(const mpsim_panels *to, const int16_t *e, size_t at, size_t n)
{
    if (!to->pairs) {
        memcpy(to->exponents + at, e, n * sizeof e[0]);
        return;
    }
    int16_t *pairs = to->exponents + at / (2 * N) * (2 * N) + at / N % 2;
    for (size_t j = 0; j < N; j++)
        pairs[2 * j] = e[j];
}

static void put(const mpsim_unpacker *u, const mpsim_panels *to, const row *y, size_t at, size_t n)
{
    if (u->wide)
        memcpy((double *)to->values + at, y->f64, n * sizeof(double));
    else
        memcpy((float *)to->values + at, y->f32, n * sizeof(float));
    if (!to->exponents)
        return;
    int16_t e[N];
    if (u->wide)
        exponents_f64(e, y->f64, to->lowest);
    else
        exponents_f32(e, y->f32, to->lowest);
    put_exponents(to, e, at, n);
}

/* What is no number counts as zero. */
static void clear_special(const mpsim_unpacker *u, row *y, unsigned special)
{
    for (size_t j = 0; special >> j; j++)
        if (special >> j & 1)
            clear(u, y, j, j + 1);
}

static void widen_range(const row *y, int *low, int *high)
{
    for (int j = 0; j < N; j++) {
        const int e = (int)(mpsim_bits_f64(y->f64[j]) >> 52 & 0x7ff);
        const int least = e ? e : 4000;
        low[j] = least < low[j] ? least : low[j];
        high[j] = e > high[j] ? e : high[j];
    }
}

void mpsim_pack_any_line(const mpsim_lines *x, const mpsim_panels *to, size_t l)
{
    int low[N], high[N];
    unsigned special = 0;
    for (int j = 0; j < N; j++) {
        low[j] = 4000;
        high[j] = 0;
    }
    for (size_t k = 0; k < to->padded; k += N) {
        const size_t n = to->padded - k < N ? to->padded - k : N;
        uint64_t raw[N];
        row y;
        load_along(x, to, raw, l, k);
        const unsigned bad = decode(&x->u, &y, raw);
        clear_special(&x->u, &y, bad);
        special |= bad;
        if (x->u.format->zero == MPSIM_ZERO_NONE)
            for (size_t i = 0; i < N; i++)
                if (i >= n || mpsim_source_of_product(to, k + i) >= x->depth)
                    clear(&x->u, &y, i, i + 1);
        put(&x->u, to, &y, l * to->padded + k, n);
        if (to->low)
            widen_range(&y, low, high);
    }
    to->special[l] = special != 0;
    if (!to->low)
        return;
    for (int j = 1; j < N; j++) {
        low[0] = low[j] < low[0] ? low[j] : low[0];
        high[0] = high[j] > high[0] ? high[j] : high[0];
    }
    mpsim_put_range(to, l, low[0], high[0]);
}

void mpsim_pack_any_across(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
{
    int low[N], high[N];
    unsigned special = 0;
    for (int j = 0; j < N; j++) {
        low[j] = 4000;
        high[j] = 0;
    }
    for (size_t k = 0; k < to->padded; k++) {
        const size_t from = mpsim_source_of_product(to, k), there = from < x->depth ? n : 0;
        uint64_t raw[N];
        row y;
        load(raw, x->codes, x->bytes, first * x->line + from * x->next, x->line, there);
        enter_loaded(x, raw);
        const unsigned bad = decode(&x->u, &y, raw);
        clear_special(&x->u, &y, bad);
        special |= bad;
        if (x->u.format->zero == MPSIM_ZERO_NONE)
            clear(&x->u, &y, there, N);
        put(&x->u, to, &y, first * to->padded + k * N, N);
        if (to->low)
            widen_range(&y, low, high);
    }
    for (size_t j = 0; j < N; j++) {
        to->special[first + j] = special >> j & 1;
        if (to->low)
            mpsim_put_range(to, first + j, low[j], high[j]);
    }
}
