/* panel.c -- see panel.h. */
#include "panel.h"

#include "../base/codes.h"
#include "../base/environment.h"
#include "cut.h"
#include "scalar.h"

enum { N = MPSIM_PANEL };

/* ---- numbers that enter ---- */

/* n codes become the bits of binary32 values, in `raw` itself if the codes are such values, else in `bits`; returns where. */
static uint32_t *enter(const mpsim_entry *e, uint32_t *bits, void *raw, size_t n)
{
    float *values = (float *)(e->as_values ? raw : bits);
    if (!e->as_values)
        mpsim_decode_array_f32(e->from, values, raw, n);
    if (e->rounds)
        (void)mpsim_ready_run(&e->ready, values, values, n);
    return (uint32_t *)(void *)values;
}

/* ---- codes to values, of binary32 and of binary64 ---- */

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

/* Where product k of the model's order stands in the operands. */
static size_t source_of(const mpsim_panels *to, size_t k)
{
    const size_t chunk = to->quads;
    return chunk ? k - k % chunk + mpsim_fused_quads(k % chunk, chunk) : k;
}

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
    const uint32_t *entered = enter(x->entry, bits, &codes, N);
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
        const size_t from = i < n ? source_of(to, k + i) : x->depth;
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

static void put_range(const mpsim_panels *to, size_t l, int low, int high)
{
    to->low[l] = (int16_t)(low - 1023);
    to->high[l] = (int16_t)(high - 1023);
}

/* The binary64 exponent field of a magnitude of binary32. */
static int field_of(uint32_t m)
{
    return m >> 23 ? (int)(m >> 23) + 1023 - 127 : 63 - mpsim_clz64(m) + 1023 - 149;
}

/* Of lines from l on, `lines` of them: one of all places, or one a place. */
static void put_ranges(const mpsim_panels *to, size_t l, size_t lines, const mpsim_ranges *r)
{
    const size_t each = N / lines;
    for (size_t i = 0; i < lines; i++) {
        int32_t most = 0, least = 0;
        for (size_t j = i * each; j < (i + 1) * each; j++) {
            most = r->most[j] > most ? r->most[j] : most;
            least = r->least[j] > least ? r->least[j] : least;
        }
        put_range(to, l + i, least ? field_of(0x7fffffff - (uint32_t)least) : 4000,
                  most ? field_of((uint32_t)most) : 0);
    }
}

/* ---- panels of binary32 values, whose codes have at most 32 bits ---- */

enum { BLOCK = 64 /* rows of N codes that are decoded at once, but the last of a line */ };

/* Where the codes of `count` products from k on are in a line, in bytes; SIZE_MAX beyond its end. */
static void places_of(size_t *at, const mpsim_lines *x, const mpsim_panels *to, size_t k, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t from = source_of(to, k + i);
        at[i] = from < x->depth ? from * x->next * x->bytes : SIZE_MAX;
    }
}

/* One code of each place to every `step`-th; `bytes` is a constant where this is inlined. */
static inline void copy_codes(const size_t bytes, unsigned char *to, size_t step, const unsigned char *from,
                              const size_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at[i] != SIZE_MAX)
            memcpy(to + i * step * bytes, from + at[i], bytes);
}

static void gather_line(unsigned char *to, size_t step, const mpsim_lines *x, size_t l, const size_t *at, size_t count)
{
    const unsigned char *from = (const unsigned char *)x->codes + l * x->line * x->bytes;
    if (x->bytes == 1)
        copy_codes(1, to, step, from, at, count);
    else if (x->bytes == 2)
        copy_codes(2, to, step, from, at, count);
    else
        copy_codes(4, to, step, from, at, count);
}

/* N values and their exponents, `step` apart, times powers of two, value j that of exponent scales[j]. Returns which
 * have no normal value then, as bits. */
static unsigned scale_values(float *y, int16_t *e, size_t step, const int16_t *scales)
{
    unsigned special = 0;
    for (size_t j = 0; j < N; j++) {
        const uint32_t u = mpsim_bits_f32(y[j]);
        const int is_nan = scales[j] == MPSIM_SCALE_NAN, is_zero = u << 1 == 0;
        const int by = is_nan ? 0 : scales[j], field = (int)(u >> 23 & 0xff) + by;
        special |= (unsigned)(is_nan || (!is_zero && (field < 1 || field > 254))) << j;
        y[j] = is_zero ? y[j] : mpsim_f32_bits((u & 0x807fffff) | (uint32_t)(field & 0xff) << 23);
        if (e && !is_zero)
            e[j * step] = (int16_t)(e[j * step] + by);
    }
    return special;
}

static void flush_values(float *y, const mpsim_format *f)
{
    const uint32_t least = mpsim_bits_f32((float)mpsim_format_min_normal(f));
    for (size_t j = 0; j < N; j++) {
        const uint32_t u = mpsim_bits_f32(y[j]);
        y[j] = mpsim_f32_bits((u & 0x7fffffff) < least ? 0 : u);
    }
}

static int adapts(const mpsim_lines *x)
{
    return x->flush || x->scales;
}

/* What comes after decoding: n of N values of a line from product k on or, across, of lines from l on. */
static unsigned adapt(const mpsim_lines *x, float *y, int16_t *e, size_t step, size_t l, size_t k, size_t n, int across)
{
    int16_t scales[N] = {0};
    if (x->flush)
        flush_values(y, x->numbers);
    if (!x->scales || k >= x->depth)
        return 0;
    for (size_t j = 0; j < n; j++)
        scales[j] = x->scales[(across ? l + j : l) * x->blocks + k / x->block];
    return scale_values(y, e, step, scales);
}

/* Codes of n products of line l from k on, side by side, and zeros up to `whole`. */
static void gather_along(unsigned char *to, const mpsim_lines *x, const mpsim_panels *panels, size_t l, size_t k,
                         size_t n, size_t whole)
{
    const size_t bytes = x->bytes, left = k < x->depth ? x->depth - k : 0, there = left < n ? left : n;
    size_t places[BLOCK * N];
    if (!panels->quads && x->next == 1) {
        memcpy(to, (const unsigned char *)x->codes + (l * x->line + k) * bytes, there * bytes);
        memset(to + there * bytes, 0, (whole - there) * bytes);
        return;
    }
    memset(to, 0, whole * bytes);
    places_of(places, x, panels, k, n);
    gather_line(to, 1, x, l, places, n);
}

/* Where `count` lines from `first` on stand from product k on; `at`: of their first value. */
static mpsim_wide_line wide_line(const mpsim_panels *to, size_t first, size_t lines, size_t at, size_t k)
{
    const size_t q = k / to->length;
    return (mpsim_wide_line){(double *)to->values + at, to->exponents + at, to->low + first, to->high + first,
                             to->signs + first * to->words + q * lines};
}

/* n values of each of `lines` lines side by side, products k to k + n - 1. */
static void prepare(const mpsim_lines *x, const mpsim_panels *to, const float *values, size_t first, size_t lines,
                    size_t at, size_t k, size_t n)
{
    for (size_t i = 0; i < n; i += to->length) {
        const mpsim_wide_line line = wide_line(to, first, lines, at + i * lines, k + i);
        x->prepare(values + i * lines, &line, to->lowest, n - i < to->length ? n - i : to->length);
    }
}

static void begin_range(const mpsim_panels *to, size_t first, size_t lines)
{
    for (size_t j = 0; j < lines; j++) {
        to->low[first + j] = 255;
        to->high[first + j] = 0;
    }
}

/* The last values of a line, fewer than N. */
static void put_rest(const mpsim_lines *x, const mpsim_panels *to, const float *y, size_t at, size_t rest,
                     mpsim_ranges *ranges)
{
    double wide[N];
    if (x->widen) {
        x->widen(y, wide, 1, ranges);
        memcpy((double *)to->values + at, wide, rest * sizeof wide[0]);
    } else {
        memcpy((float *)to->values + at, y, rest * sizeof y[0]);
    }
}

static void mark_line(const mpsim_lines *x, const mpsim_panels *to, size_t l)
{
    for (size_t q = 0; q < to->words; q++) {
        const size_t k = q * to->length, left = to->padded - k;
        x->mark((float *)to->values + l * to->padded + k, to->signs + l * to->words + q, to->bytes + l * to->padded + k,
                to->lowest, left < to->length ? left : to->length);
    }
}

static void pack_line_f32(const mpsim_lines *x, const mpsim_panels *to, size_t l)
{
    unsigned special = 0;
    mpsim_ranges ranges;
    if (x->widen)
        memset(&ranges, 0, sizeof ranges);
    if (x->prepare)
        begin_range(to, l, 1);
    for (size_t k = 0; k < to->padded; k += BLOCK * N) {
        const size_t n = to->padded - k < BLOCK * N ? to->padded - k : BLOCK * N, whole = n / N, rest = n % N;
        const size_t at = l * to->padded + k;
        uint32_t raw[(BLOCK + 1) * N], entered[(BLOCK + 1) * N];
        const uint32_t *codes = raw;
        float narrow[BLOCK * N], *values = x->widen || x->prepare ? narrow : (float *)to->values + at, y[N];
        int16_t *e = to->exponents && !x->prepare ? to->exponents + at : NULL, ey[N];
        gather_along((unsigned char *)raw, x, to, l, k, n, (whole + 1) * N);
        if (x->entry)
            codes = enter(x->entry, entered, raw, (whole + (rest > 0)) * N);
        special |= x->decode(&x->u, values, e, 0, to->lowest, codes, 0, whole);
        for (size_t i = 0; adapts(x) && i < whole; i++)
            special |= adapt(x, values + i * N, e ? e + i * N : NULL, 1, l, k + i * N, N, 0);
        if (x->widen)
            x->widen(narrow, (double *)to->values + at, whole, &ranges);
        if (rest) {
            special |= x->decode(&x->u, y, ey, 0, to->lowest, (const unsigned char *)codes + whole * N * x->u.bytes, 0,
                                 1);
            special |= adapt(x, y, ey, 1, l, k + whole * N, N, 0);
            if (x->prepare)
                memcpy(narrow + whole * N, y, rest * sizeof y[0]);
            else
                put_rest(x, to, y, at + whole * N, rest, &ranges);
            if (e)
                memcpy(e + whole * N, ey, rest * sizeof ey[0]);
        }
        if (x->prepare)
            prepare(x, to, values, l, 1, at, k, n);
    }
    if (x->mark)
        mark_line(x, to, l);
    if (!x->prepare)
        if (to->low)
            put_ranges(to, l, 1, &ranges);
    to->special[l] = special != 0;
}

/* ---- short lines, all of a panel at once ---- */

static int are_short(const mpsim_lines *x, const mpsim_panels *to, size_t n)
{
    return to->padded <= BLOCK && n * to->padded % N == 0 && !x->scales;
}

/* Codes of n lines, `padded` each, zeros after those of a line: in `raw`, unless they lie so. */
static const void *gather_lines(unsigned char *raw, const mpsim_lines *x, const mpsim_panels *to, size_t first,
                                size_t n)
{
    const size_t each = to->padded * x->bytes;
    const unsigned char *from = (const unsigned char *)x->codes + first * x->line * x->bytes;
    size_t places[BLOCK];
    if (x->next == 1 && !to->quads && x->line == to->padded && x->depth == to->padded && !x->entry)
        return from;
    memset(raw, 0, n * each);
    for (size_t l = 0; x->next == 1 && !to->quads && l < n; l++)
        memcpy(raw + l * each, from + l * x->line * x->bytes, x->depth * x->bytes);
    if (x->next == 1 && !to->quads)
        return raw;
    places_of(places, x, to, 0, to->padded);
    for (size_t l = 0; l < n; l++)
        gather_line(raw + l * each, 1, x, first + l, places, to->padded);
    return raw;
}

enum { BITS_OF_WORD = 32 };

/* The words of signs of n lines, from those of their values one after the other. */
static void cut_signs(const mpsim_panels *to, const uint32_t *bits, size_t first, size_t n)
{
    for (size_t l = 0; l < n; l++)
        for (size_t q = 0; q < to->words; q++) {
            const size_t k = q * to->length, at = l * to->padded + k, left = to->padded - k;
            const uint64_t two = bits[at / BITS_OF_WORD] | (uint64_t)bits[at / BITS_OF_WORD + 1] << BITS_OF_WORD;
            const size_t count = left < to->length ? left : to->length;
            to->signs[(first + l) * to->words + q] = (uint32_t)(two >> at % BITS_OF_WORD &
                                                                (((uint64_t)1 << count) - 1));
        }
}

/* As x->mark and x->prepare do line by line, for as many values at once as a word has signs of. */
static void mark_together(const mpsim_lines *x, const mpsim_panels *to, float *values, size_t first, size_t n)
{
    const size_t at = first * to->padded, all = n * to->padded;
    uint32_t bits[BLOCK * N / BITS_OF_WORD + 1] = {0};
    int16_t low = 255, high = 0;
    for (size_t i = 0; i < all; i += BITS_OF_WORD) {
        const size_t some = all - i < BITS_OF_WORD ? all - i : BITS_OF_WORD;
        const mpsim_wide_line line = {(double *)to->values + at + i, to->exponents + at + i, &low, &high,
                                      &bits[i / BITS_OF_WORD]};
        if (x->mark)
            x->mark(values + i, line.signs, to->bytes + at + i, to->lowest, some);
        else
            x->prepare(values + i, &line, to->lowest, some);
    }
    cut_signs(to, bits, first, n);
    for (size_t l = first; x->prepare && l < first + n; l++) {
        to->low[l] = low;
        to->high[l] = high;
    }
}

/* n lines of binary32 values become binary64; their ranges are those of all of them. */
static void widen_together(const mpsim_lines *x, const mpsim_panels *to, const float *values, size_t first, size_t n)
{
    mpsim_ranges ranges;
    memset(&ranges, 0, sizeof ranges);
    x->widen(values, (double *)to->values + first * to->padded, n * to->padded / N, &ranges);
    if (!to->low)
        return;
    put_ranges(to, first, 1, &ranges);
    for (size_t l = first + 1; l < first + n; l++) {
        to->low[l] = to->low[first];
        to->high[l] = to->high[first];
    }
}

/* Returns 0 where a line is special: they must be packed one by one. */
static int pack_together(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
{
    const size_t at = first * to->padded, rows = n * to->padded / N;
    uint32_t raw[BLOCK * N], entered[BLOCK * N];
    float narrow[BLOCK * N], *values = x->widen || x->prepare ? narrow : (float *)to->values + at;
    int16_t *e = to->exponents && !x->prepare ? to->exponents + at : NULL;
    const void *codes = gather_lines((unsigned char *)raw, x, to, first, n);
    if (x->entry)
        codes = enter(x->entry, entered, raw, rows * N);
    if (x->decode(&x->u, values, e, 0, to->lowest, codes, 0, rows))
        return 0;
    for (size_t i = 0; x->flush && i < rows; i++)
        flush_values(values + i * N, x->numbers);
    if (x->widen)
        widen_together(x, to, values, first, n);
    if (x->mark || x->prepare)
        mark_together(x, to, values, first, n);
    memset(to->special + first, 0, n);
    return 1;
}

/* The codes in 4 bytes, the first in the low bits; `bytes` is a constant where this is inlined. */
static inline uint32_t word_of(const size_t bytes, const unsigned char *p)
{
    uint16_t half[2];
    memcpy(half, p, sizeof half);
    return bytes == 2 ? half[0] | (uint32_t)half[1] << 16
                      : p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* n bytes of a line to every N-th word, zeros in the last. */
static inline void words_of(const size_t bytes, uint32_t *to, const unsigned char *from, size_t n)
{
    unsigned char rest[4] = {0};
    for (size_t i = 0; i < n / 4; i++)
        to[i * N] = word_of(bytes, from + 4 * i);
    memcpy(rest, from + n / 4 * 4, n % 4);
    if (n % 4)
        to[n / 4 * N] = word_of(bytes, rest);
}

/* n codes of 4 bytes of a line to every N-th word. */
static inline void spread(uint32_t *to, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t v; /* not memcpy to `to`, which the compiler's checks of sizes make a call */
        memcpy(&v, from + 4 * i, sizeof v);
        to[i * N] = v;
    }
}

/* Codes of n lines that lie side by side, of `count` products. */
static inline void copy_rows(const size_t bytes, unsigned char *to, const unsigned char *from, size_t n, size_t next,
                             size_t count)
{
    for (size_t i = 0; i < count && n == N; i++)
        memcpy(to + i * N * bytes, from + i * next * bytes, N * bytes);
    for (size_t i = 0; i < count && n < N; i++)
        memcpy(to + i * N * bytes, from + i * next * bytes, n * bytes);
}

static void gather_rows(unsigned char *to, const mpsim_lines *x, size_t first, size_t n, size_t k, size_t count)
{
    const unsigned char *from = (const unsigned char *)x->codes + (first + k * x->next) * x->bytes;
    if (x->bytes == 1)
        copy_rows(1, to, from, n, x->next, count);
    else if (x->bytes == 2)
        copy_rows(2, to, from, n, x->next, count);
    else
        copy_rows(4, to, from, n, x->next, count);
}

/* Codes of n lines from `first` on, of `count` products from k on, and zeros: those of a product side by side, or in
 * words (see mpsim_panel_decode_function). Returns whether they are. */
static int gather_across(uint32_t *to, const mpsim_lines *x, const mpsim_panels *panels, size_t first, size_t n,
                         size_t k, size_t count)
{
    const size_t bytes = x->bytes, left = k < x->depth ? x->depth - k : 0, there = left < count ? left : count;
    const int words = !panels->quads && !x->entry && bytes < 4 && x->next == 1;
    size_t places[BLOCK];
    const int side_by_side = !panels->quads && bytes == 4 && x->next == 1;
    if (n < N || panels->quads || there < count)
        memset(to, 0, (count * bytes + 3) / 4 * N * 4);
    if (!panels->quads && x->line == 1 && x->next != 1) {
        gather_rows((unsigned char *)to, x, first, n, k, there);
        return 0;
    }
    if (!words && !side_by_side)
        places_of(places, x, panels, k, count);
    for (size_t j = 0; j < n; j++) {
        const unsigned char *from = (const unsigned char *)x->codes + ((first + j) * x->line + k) * bytes;
        if (side_by_side)
            spread(to + j, from, there);
        else if (!words)
            gather_line((unsigned char *)to + j * bytes, N, x, first + j, places, count);
        else if (bytes == 1)
            words_of(1, to + j, from, there);
        else
            words_of(2, to + j, from, 2 * there);
    }
    return words;
}

static void pack_k_major_f32(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
{
    unsigned special = 0;
    mpsim_ranges ranges;
    if (x->widen)
        memset(&ranges, 0, sizeof ranges);
    if (x->prepare)
        begin_range(to, first, N);
    for (size_t k = 0; k < to->padded; k += BLOCK) {
        const size_t count = to->padded - k < BLOCK ? to->padded - k : BLOCK;
        const size_t at = first * to->padded + k * N;
        float narrow[BLOCK * N], *values = x->widen || x->prepare ? narrow : (float *)to->values + at;
        int16_t *e = to->exponents && !x->prepare ? to->exponents + at : NULL;
        uint32_t raw[BLOCK * N], entered[BLOCK * N];
        const int words = gather_across(raw, x, to, first, n, k, count);
        const uint32_t *codes = x->entry ? enter(x->entry, entered, raw, count * N) : raw;
        special |= x->decode(&x->u, values, e, to->pairs, to->lowest, codes, words, count);
        for (size_t i = 0; adapts(x) && i < count; i++) {
            int16_t *ei = !e ? NULL : to->pairs ? e + i / 2 * 2 * N + i % 2 : e + i * N;
            special |= adapt(x, values + i * N, ei, to->pairs ? 2 : 1, first, k + i, n, 1);
        }
        for (size_t i = 0; x->mark && i < count; i += to->length)
            x->mark(values + i * N, to->signs + first * to->words + (k + i) / to->length * N, to->bytes + at + i * N,
                    to->lowest, count - i < to->length ? count - i : to->length);
        if (x->prepare)
            prepare(x, to, values, first, N, at, k, count);
        if (x->widen)
            x->widen(narrow, (double *)to->values + at, count, &ranges);
    }
    if (!x->prepare)
        if (to->low)
            put_ranges(to, first, N, &ranges);
    for (size_t j = 0; j < N; j++)
        to->special[first + j] = special >> j & 1;
}

/* ---- panels of codes that are values ---- */

/* n values to every `step`-th; `next` bytes from one to the next. */
static void scatter_f32(uint32_t *to, size_t step, const unsigned char *from, size_t next, size_t n)
{
    for (size_t i = 0; i < n; i++, from += next) {
        uint32_t value; /* of its own: see spread */
        memcpy(&value, from, sizeof value);
        to[i * step] = value;
    }
}

static void scatter_f64(uint64_t *to, size_t step, const unsigned char *from, size_t next, size_t n)
{
    for (size_t i = 0; i < n; i++, from += next) {
        uint64_t value;
        memcpy(&value, from, sizeof value);
        to[i * step] = value;
    }
}

/* n values of a line from number `at` of the codes on, to every `step`-th. */
static void copy_line(const mpsim_lines *x, void *to, size_t step, size_t at, size_t n)
{
    const unsigned char *from = (const unsigned char *)x->codes + at * x->bytes;
    if (step == 1 && x->next == 1)
        memcpy(to, from, n * x->bytes);
    else if (x->bytes == 4)
        scatter_f32(to, step, from, 4 * x->next, n);
    else
        scatter_f64(to, step, from, 8 * x->next, n);
}

/* Whether one of n values that lie side by side is special. */
static unsigned look_along(const mpsim_lines *x, const unsigned char *values, size_t n)
{
    unsigned char rest[8 * N] = {0};
    memcpy(rest, values + n / N * N * x->bytes, n % N * x->bytes);
    return x->look(values, n / N) | x->look(rest, 1);
}

static void pack_values_along(const mpsim_lines *x, const mpsim_panels *to, size_t l)
{
    const unsigned char *lying = (const unsigned char *)x->codes + l * x->line * x->bytes;
    unsigned char *values = (unsigned char *)to->values + l * to->padded * x->bytes;
    if (to->values)
        copy_line(x, values, 1, l * x->line, x->depth);
    to->special[l] = x->depth && look_along(x, to->values ? values : lying, x->depth) != 0;
}

/* n lines that lie one after the other; returns 0 where one is special. */
static int pack_values_together(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
{
    const unsigned char *lying = (const unsigned char *)x->codes + first * x->line * x->bytes;
    unsigned char *values = (unsigned char *)to->values + first * to->padded * x->bytes;
    if (x->next != 1 || x->line != x->depth || to->padded != x->depth || look_along(x, lying, n * x->depth))
        return 0;
    if (to->values)
        memcpy(values, lying, n * x->depth * x->bytes);
    memset(to->special + first, 0, n);
    return 1;
}

static void pack_values_across(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
{
    unsigned special = 0;
    for (size_t k = 0; k < x->depth; k += BLOCK) {
        const size_t count = x->depth - k < BLOCK ? x->depth - k : BLOCK;
        unsigned char *values = (unsigned char *)to->values + (first * to->padded + k * N) * x->bytes;
        if (n < N)
            memset(values, 0, count * N * x->bytes);
        for (size_t j = 0; x->line != 1 && j < n; j++)
            copy_line(x, values + j * x->bytes, N, (first + j) * x->line + k * x->next, count);
        for (size_t i = 0; x->line == 1 && i < count; i++)
            memcpy(values + i * N * x->bytes, (const unsigned char *)x->codes + (first + (k + i) * x->next) * x->bytes,
                   n * x->bytes);
        special |= x->look(values, count);
    }
    for (size_t j = 0; j < N; j++)
        to->special[first + j] = special >> j & 1;
}

/* ---- all others ---- */

static void pack_line(const mpsim_lines *x, const mpsim_panels *to, size_t l)
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
                if (i >= n || source_of(to, k + i) >= x->depth)
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
    put_range(to, l, low[0], high[0]);
}

static void pack_k_major(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
{
    int low[N], high[N];
    unsigned special = 0;
    for (int j = 0; j < N; j++) {
        low[j] = 4000;
        high[j] = 0;
    }
    for (size_t k = 0; k < to->padded; k++) {
        const size_t from = source_of(to, k), there = from < x->depth ? n : 0;
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
            put_range(to, first + j, low[j], high[j]);
    }
}

/* Lines first to first + n - 1, each of them k after k. */
static void pack_lines(const mpsim_lines *x, const mpsim_panels *to, int narrow, size_t first, size_t n)
{
    if (x->look ? pack_values_together(x, to, first, n)
                : narrow && are_short(x, to, n) && pack_together(x, to, first, n))
        return;
    for (size_t l = first; l < first + n; l++)
        (x->look ? pack_values_along : narrow ? pack_line_f32 : pack_line)(x, to, l);
}

void mpsim_panel_pack(const mpsim_lines *x, const mpsim_panels *to, size_t panel)
{
    const size_t first = panel * N, n = x->count - first < N ? x->count - first : N;
    const int narrow = x->u.direct && !x->u.wide && x->u.bytes <= 4;
    const mpsim_environment before = mpsim_environment_default(); /* for x->widen */
    if (!to->k_major)
        pack_lines(x, to, narrow, first, n);
    else if (x->look)
        pack_values_across(x, to, first, n);
    else
        (narrow ? pack_k_major_f32 : pack_k_major)(x, to, first, n);
    mpsim_environment_restore(before);
}
