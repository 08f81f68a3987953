/* text.c -- loss scalers as text: configurations by name, states as a line; see
 * mpsim/scaler.h. Independent of the locale: no decimal point reaches the C library. */
#include <mpsim/scaler.h>

#include "../base/words.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* ---- writing ---- */

typedef struct writer {
    char *text;
    size_t size, n; /* n: characters so far, whether they had room or not */
} writer;

static void put(writer *w, const char *text)
{
    for (; *text; text++, w->n++)
        if (w->n + 1 < w->size) {
            w->text[w->n] = *text;
            w->text[w->n + 1] = 0;
        }
}

static void put_integer(writer *w, int64_t x)
{
    char digits[24];
    char *p = digits + sizeof digits;
    uint64_t v = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    *--p = 0;
    do
        *--p = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    if (x < 0)
        *--p = '-';
    put(w, p);
}

/* ---- numbers ---- */

enum { DIGITS = 1100, EXPONENT = 100000 };

/* Significant digits without their point, and what the exponent must be for it. */
typedef struct digits {
    char text[DIGITS + 32];
    size_t n;
    int64_t exponent; /* decimal, or binary after 0x */
    int hexadecimal, any, zero;
} digits;

static int is_digit(char c, int hexadecimal)
{
    return (c >= '0' && c <= '9') || (hexadecimal && mpsim_fold(c) >= 'a' && mpsim_fold(c) <= 'f');
}

/* "[+-]N", all of the n characters, held to +-EXPONENT. */
static int parse_exponent(int64_t *value, const char *text, size_t n)
{
    size_t i = n > 0 && (text[0] == '-' || text[0] == '+');
    int64_t v = 0;
    if (i == n)
        return 0;
    for (; i < n; i++) {
        if (!is_digit(text[i], 0))
            return 0;
        if (v < EXPONENT)
            v = 10 * v + (text[i] - '0');
    }
    *value = text[0] == '-' ? -v : v;
    return 1;
}

/* Digits with at most one point; returns how many characters they are. */
static size_t take_digits(digits *d, const char *text, size_t n)
{
    int point = 0;
    size_t i;
    for (i = 0; i < n && (is_digit(text[i], d->hexadecimal) || (text[i] == '.' && !point)); i++) {
        if (text[i] == '.') {
            point = 1;
            continue;
        }
        d->any = 1;
        d->zero &= text[i] == '0';
        if (d->zero || d->n < DIGITS)
            d->exponent -= point ? (d->hexadecimal ? 4 : 1) : 0;
        else if (!point) /* more digits than any midpoint has: they only count */
            d->exponent += d->hexadecimal ? 4 : 1;
        if (!d->zero && d->n < DIGITS)
            d->text[d->n++] = text[i];
        else if (!d->zero && text[i] != '0')
            d->text[DIGITS - 1] = '1'; /* sticky */
    }
    return i;
}

/* How long the beginning of a power of two is: "2^", or as Python writes it "2**", "2.**", "2.0**"; 0: the text is none. */
static size_t power_of_two(const char *text, size_t n)
{
    size_t i = n > 0 && text[0] == '2';
    if (i && n > 1 && text[1] == '^')
        return 2;
    if (i && i < n && text[i] == '.')
        for (i++; i < n && text[i] == '0'; i++)
            ;
    return i && i + 1 < n && text[i] == '*' && text[i + 1] == '*' ? i + 2 : 0;
}

/* A number that is all of the n characters: decimal, hexadecimal, or 2^N. MPSIM_EINVAL if it is
 * none, MPSIM_ERANGE if binary64 has no such finite number, or only 0 for what is not 0. */
static mpsim_status parse_number(double *x, const char *text, size_t n)
{
    int64_t power = 0;
    const size_t start = power_of_two(text, n);
    if (start) {
        if (!parse_exponent(&power, text + start, n - start))
            return MPSIM_EINVAL;
        if (power < -1074 || power > 1023)
            return MPSIM_ERANGE;
        *x = ldexp(1, (int)power);
        return MPSIM_OK;
    }
    digits d = {.zero = 1};
    const size_t sign = n > 0 && (text[0] == '-' || text[0] == '+');
    size_t i = sign;
    d.hexadecimal = n > i + 2 && text[i] == '0' && mpsim_fold(text[i + 1]) == 'x';
    i += d.hexadecimal ? 2 : 0;
    i += take_digits(&d, text + i, n - i);
    if (!d.any)
        return MPSIM_EINVAL;
    if (i < n && mpsim_fold(text[i]) == (d.hexadecimal ? 'p' : 'e')) {
        if (!parse_exponent(&power, text + i + 1, n - i - 1))
            return MPSIM_EINVAL;
        i = n;
    }
    if (i < n)
        return MPSIM_EINVAL;
    char whole[DIGITS + 64] = "";
    writer w = {whole, sizeof whole, 0};
    d.text[d.n] = 0;
    put(&w, d.hexadecimal ? "0x" : "");
    put(&w, d.n ? d.text : "0");
    put(&w, d.hexadecimal ? "p" : "e");
    put_integer(&w, d.exponent + power);
    const double value = strtod(whole, NULL);
    if (!isfinite(value) || (value == 0 && !d.zero))
        return MPSIM_ERANGE;
    *x = text[0] == '-' ? -value : value;
    return MPSIM_OK;
}

/* An integer from 0 up to binary64's 2^63; plain digits up to 2^64 - 1, exactly. */
static mpsim_status parse_whole(uint64_t *value, const char *text, size_t n)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < n && is_digit(text[i], 0); i++) {
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (v > (UINT64_MAX - digit) / 10)
            break;
        v = 10 * v + digit;
    }
    if (n > 0 && i == n) {
        *value = v;
        return MPSIM_OK;
    }
    double x;
    const mpsim_status s = parse_number(&x, text, n);
    if (s != MPSIM_OK)
        return s;
    if (!(x >= 0 && x <= 0x1p63 && x == floor(x)))
        return MPSIM_ERANGE;
    *value = (uint64_t)x;
    return MPSIM_OK;
}

/* ---- configurations ---- */

typedef enum key_kind { NUMBER, BOUND, FLAG, WORD, WORDS, COUNT32, COUNT64 } key_kind;

typedef struct key {
    const char *name;
    key_kind kind;
    size_t field;
    const char *words; /* for the values 0, 1, ... (WORD) or 1, 2, 4, ... (WORDS) */
} key;

#define FIELD(name) offsetof(mpsim_scaler_config, name)

static const key keys[] = {
    {"init", NUMBER, FIELD(init), NULL},
    {"growth", NUMBER, FIELD(growth), NULL},
    {"backoff", NUMBER, FIELD(backoff), NULL},
    {"window", COUNT64, FIELD(window), NULL},
    {"hysteresis", COUNT32, FIELD(hysteresis), NULL},
    {"floor", NUMBER, FIELD(floor), NULL},
    {"ceiling", BOUND, FIELD(ceiling), NULL},
    {"tolerance", NUMBER, FIELD(tolerance), NULL},
    {"threshold", NUMBER, FIELD(threshold), NULL},
    {"skip", FLAG, FIELD(skip), NULL},
    {"dynamic", FLAG, FIELD(dynamic), NULL},
    {"guard", FLAG, FIELD(guard), NULL},
    {"refill", WORDS, FIELD(refill), "clean growth backoff"},
    {"growth-rule", WORD, FIELD(growth_rule), "counter interval multiple"},
    {"floor-rule", WORD, FIELD(floor_rule), "clamp raise stop"},
    {"order", WORD, FIELD(order), "after-step before-step before-unscale"},
    {"unscale", WORD, FIELD(unscale), "reciprocal divide rounded"},
    {"arithmetic", WORD, FIELD(arithmetic), "f32-f64 f32 f64"},
    {"check", WORD, FIELD(check), "elements norm"},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

/* The place of a word in a list, or -1. */
static int place_of(const char *list, const char *text, size_t n)
{
    for (int i = 0; *list; i++) {
        char word[24] = {0};
        const size_t length = strcspn(list, " ");
        memcpy(word, list, length);
        if (mpsim_same_word(text, n, word))
            return i;
        list += length + (list[length] == ' ');
    }
    return -1;
}

/* "clean+growth", or "never" */
static mpsim_status parse_words(uint8_t *set, const char *list, const char *text, size_t n)
{
    unsigned found = 0;
    if (mpsim_same_word(text, n, "never")) {
        *set = 0;
        return MPSIM_OK;
    }
    for (size_t at = 0;; at++) {
        const char *plus = memchr(text + at, '+', n - at);
        const size_t length = plus ? (size_t)(plus - text) - at : n - at;
        const int i = place_of(list, text + at, length);
        if (i < 0)
            return MPSIM_ENOTFOUND;
        found |= 1u << i;
        at += length;
        if (!plus)
            break;
    }
    *set = (uint8_t)found;
    return MPSIM_OK;
}

/* Set the field of a key from the n characters of its value. */
static mpsim_status set_field(mpsim_scaler_config *c, const key *k, const char *text, size_t n)
{
    unsigned char *at = (unsigned char *)c + k->field;
    mpsim_status s = MPSIM_OK;
    uint64_t whole = 0;
    double x = 0;
    if (n == 0)
        return MPSIM_EINVAL;
    switch (k->kind) {
    case BOUND:
        if (mpsim_same_word(text, n, "inf")) {
            *(double *)(void *)at = (double)INFINITY;
            return MPSIM_OK;
        } /* fall through */
    case NUMBER:
        if ((s = parse_number(&x, text, n)) == MPSIM_OK)
            *(double *)(void *)at = x;
        return s;
    case WORD: {
        const int i = place_of(k->words, text, n);
        if (i >= 0)
            *at = (uint8_t)i;
        return i >= 0 ? MPSIM_OK : MPSIM_ENOTFOUND;
    }
    case WORDS:
        return parse_words(at, k->words, text, n);
    default:
        break;
    }
    const uint64_t most = k->kind == FLAG ? 1 : k->kind == COUNT32 ? UINT32_MAX : UINT64_MAX;
    if ((s = parse_whole(&whole, text, n)) != MPSIM_OK)
        return s;
    if (whole > most)
        return MPSIM_ERANGE;
    if (k->kind == FLAG)
        *at = (uint8_t)whole;
    else if (k->kind == COUNT32)
        *(uint32_t *)(void *)at = (uint32_t)whole;
    else
        *(uint64_t *)(void *)at = whole;
    return MPSIM_OK;
}

static const key *find_key(const char *text, size_t n)
{
    for (int i = 0; i < KEYS; i++)
        if (mpsim_same_word(text, n, keys[i].name))
            return &keys[i];
    return NULL;
}

mpsim_status mpsim_scaler_set(mpsim_scaler_config *c, unsigned *given, const char *key_text, size_t n,
                              const char *value, size_t m)
{
    if (!c || !given || !key_text || !value)
        return MPSIM_EINVAL;
    const key *k = find_key(key_text, n);
    if (!k)
        return MPSIM_ENOTFOUND;
    if (*given >> (k - keys) & 1)
        return MPSIM_EINVAL;
    const mpsim_status s = set_field(c, k, value, m);
    *given |= s == MPSIM_OK ? 1u << (k - keys) : 0;
    return s;
}

/* The row that a text begins with; *length: of its name. */
static const mpsim_scaler_type *row_of(const char *text, size_t *length)
{
    char name[sizeof(mpsim_scaler_config){0}.name];
    *length = strcspn(text, ":");
    if (*length >= sizeof name)
        return NULL;
    memcpy(name, text, *length);
    name[*length] = 0;
    return mpsim_scaler_find(name);
}

mpsim_status mpsim_scaler_parse(mpsim_scaler_config *c, const char *text)
{
    unsigned given = 0;
    size_t length;
    if (!c || !text)
        return MPSIM_EINVAL;
    const mpsim_scaler_type *row = row_of(text, &length);
    if (!row)
        return MPSIM_ENOTFOUND;
    mpsim_scaler_config parsed = row->config;
    const char *p = text + length;
    for (int first = 1; *p; first = 0) { /* at ':' or ',' */
        p++;
        const size_t n = strcspn(p, ",:");
        const char *equals = memchr(p, '=', n);
        const size_t used = equals ? (size_t)(equals - p) + 1 : 0;
        if (!equals && (!first || n == 0))
            return MPSIM_EINVAL;
        const mpsim_status s = equals ? mpsim_scaler_set(&parsed, &given, p, used - 1, p + used, n - used)
                                      : mpsim_scaler_set(&parsed, &given, "init", 4, p, n);
        if (s != MPSIM_OK)
            return s;
        p += n;
    }
    if (mpsim_scaler_config_check(&parsed) != MPSIM_OK)
        return MPSIM_ERANGE;
    *c = parsed;
    return MPSIM_OK;
}

/* ---- states ---- */

/* A magnitude in C's hexadecimal form: "0x1.8p+4", "0x0p+0", "inf". */
static void put_hexadecimal(writer *w, double x)
{
    char fraction[14] = "";
    int e = 1, n = 13;
    if (isinf(x)) {
        put(w, "inf");
        return;
    }
    const double m = frexp(x, &e); /* 0.5 <= m < 1, or 0 */
    const uint64_t bits = (uint64_t)ldexp(m, 53);
    for (int i = 0; i < 13; i++)
        fraction[i] = "0123456789abcdef"[bits >> (48 - 4 * i) & 15];
    while (n > 0 && fraction[n - 1] == '0')
        fraction[--n] = 0;
    put(w, x > 0 ? "0x1" : "0x0");
    put(w, n ? "." : "");
    put(w, fraction);
    e = x > 0 ? e - 1 : 0;
    put(w, e < 0 ? "p" : "p+");
    put_integer(w, e);
}

size_t mpsim_scaler_save(const mpsim_scaler *s, char *text, size_t size)
{
    const struct {
        const char *name;
        int64_t value;
    } rest[] = {
        {" step=", (int64_t)s->step},
        {" clean=", (int64_t)s->clean},
        {" last-overflow=", s->last_overflow},
        {" last-rescale=", s->last_rescale},
        {" overflows=", (int64_t)s->overflows},
        {" hysteresis=", s->hysteresis},
        {" stopped=", s->stopped},
    };
    writer w = {text, text ? size : 0, 0};
    if (w.size > 0)
        text[0] = 0;
    put(&w, "scale=");
    put_hexadecimal(&w, s->scale);
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        put(&w, rest[i].name);
        put_integer(&w, rest[i].value);
    }
    return w.n;
}

/* "NAME=VALUE" at *text, with the blank before it unless it is the first: the value, of *n
 * characters; NULL if it is not there. */
static const char *take_value(const char **text, const char *name, int first, size_t *n)
{
    const char *p = *text;
    const size_t length = strlen(name);
    if (!first && *p++ != ' ')
        return NULL;
    if (strncmp(p, name, length) != 0 || p[length] != '=')
        return NULL;
    p += length + 1;
    *n = strcspn(p, " \r\n");
    *text = p + *n;
    return p;
}

/* A whole number, with or without a minus sign; at most `most`. */
static int take_integer(const char **text, const char *name, int64_t least, uint64_t most, int64_t *value)
{
    size_t n;
    uint64_t v;
    const char *p = take_value(text, name, 0, &n);
    const int minus = p && n > 1 && p[0] == '-';
    if (!p || n - (size_t)minus == 0 || strspn(p + minus, "0123456789") != n - (size_t)minus ||
        parse_whole(&v, p + minus, n - (size_t)minus) != MPSIM_OK || v > most || v > INT64_MAX)
        return 0;
    *value = minus ? -(int64_t)v : (int64_t)v;
    return *value >= least;
}

mpsim_status mpsim_scaler_load(mpsim_scaler *s, const char *text)
{
    int64_t step, clean, overflow, rescale, overflows, hysteresis, stopped;
    double scale = (double)INFINITY;
    size_t n = 0;
    if (!s || !text)
        return MPSIM_EINVAL;
    const char *p = text, *number = take_value(&p, "scale", 1, &n);
    if (!number || (!(n == 3 && memcmp(number, "inf", 3) == 0) && parse_number(&scale, number, n) != MPSIM_OK))
        return MPSIM_EINVAL;
    if (!(scale >= 0) || (s->config.arithmetic != MPSIM_SCALE_F64 && (double)(float)scale != scale) || signbit(scale) ||
        !take_integer(&p, "step", 0, INT64_MAX / 2, &step) || !take_integer(&p, "clean", 0, (uint64_t)step, &clean) ||
        !take_integer(&p, "last-overflow", -1, INT64_MAX, &overflow) ||
        !take_integer(&p, "last-rescale", -1, INT64_MAX, &rescale) ||
        !take_integer(&p, "overflows", 0, (uint64_t)step, &overflows) ||
        !take_integer(&p, "hysteresis", 1, s->config.hysteresis, &hysteresis) ||
        !take_integer(&p, "stopped", 0, 1, &stopped) || overflow >= step || rescale >= step)
        return MPSIM_EINVAL;
    if (p[strspn(p, " \r\n")])
        return MPSIM_EINVAL;
    s->scale = scale;
    s->step = (uint64_t)step;
    s->clean = (uint64_t)clean;
    s->last_overflow = overflow;
    s->last_rescale = rescale;
    s->overflows = (uint64_t)overflows;
    s->hysteresis = hysteresis;
    s->stopped = (uint8_t)stopped;
    return MPSIM_OK;
}
