/* panel_f32.c -- panels of binary32 values, whose codes have at most 32 bits, and what is made of them: marked values, those of
 * binary64. */
#include "panel_parts.h"

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
        mpsim_put_range(to, l + i, least ? field_of(0x7fffffff - (uint32_t)least) : 4000,
                        most ? field_of((uint32_t)most) : 0);
    }
}
enum { BLOCK = 64 /* rows of N codes that are decoded at once, but the last of a line */ };

/* Where the codes of `count` products from k on are in a line, in bytes; SIZE_MAX beyond its end. */
static void places_of(size_t *at, const mpsim_lines *x, const mpsim_panels *to, size_t k, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t from = mpsim_source_of_product(to, k + i);
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

void mpsim_pack_f32_line(const mpsim_lines *x, const mpsim_panels *to, size_t l)
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
            codes = mpsim_enter_codes(x->entry, entered, raw, (whole + (rest > 0)) * N);
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

int mpsim_pack_f32_together(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
{
    const size_t at = first * to->padded, rows = n * to->padded / N;
    uint32_t raw[BLOCK * N], entered[BLOCK * N];
    float narrow[BLOCK * N], *values = x->widen || x->prepare ? narrow : (float *)to->values + at;
    int16_t *e = to->exponents && !x->prepare ? to->exponents + at : NULL;
    if (!are_short(x, to, n))
        return 0;
    const void *codes = gather_lines((unsigned char *)raw, x, to, first, n);
    if (x->entry)
        codes = mpsim_enter_codes(x->entry, entered, raw, rows * N);
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

void mpsim_pack_f32_across(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
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
        const uint32_t *codes = x->entry ? mpsim_enter_codes(x->entry, entered, raw, count * N) : raw;
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
