/* torchtext.c -- values of a pickle as text: keys of dicts, scalars, short collections, about as Python shows them. */
#include "torch.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { DEEP = 4, LONG = 32 };

typedef struct writer {
    char *out;
    size_t size, n;
    int full;
} writer;

/* All of it or, from the first piece on that has no room, nothing. */
static void put(writer *w, const char *s, size_t n)
{
    if (w->full || n > w->size - 1 - w->n) {
        w->full |= n > 0;
        return;
    }
    memcpy(w->out + w->n, s, n);
    w->n += n;
    w->out[w->n] = 0;
}

/* Text of the file: what is no character, and NUL, is escaped. */
static void put_text(writer *w, const char *s, size_t n)
{
    for (size_t i = 0, k; i < n && !w->full; i += k) {
        char unit[8];
        uint32_t c;
        k = s[i] ? utf8_character(s + i, &c) : 0;
        if (k)
            put(w, s + i, k);
        else
            put(w, unit, (size_t)snprintf(unit, sizeof unit, "\\x%02x", (unsigned char)s[i]));
        k += !k;
    }
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
print(writer *w, const char *format, ...)
{
    char text[TORCH_GLOBAL_MAX + 16];
    va_list ap;
    va_start(ap, format);
    const int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    put(w, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

enum { DIGITS = 17 }; /* that any number needs */

/* As a decimal of so many digits, zeros at its end left out; whether that is the number. */
static int is_decimal(char *text, size_t size, int digits, double d)
{
    snprintf(text, size, "%.*g", digits < DIGITS ? digits : DIGITS, d);
    return d != d || strtod(text, NULL) == d;
}

/* The fewest digits that are the number. Those of a normal one that needs no more than 15 are the first of its 15, since
 * no two decimals of 15 digits are one number; subnormal ones lie evenly, so that more digits are the number, too. */
static int digits_of(char *text, size_t size, double d)
{
    const int normal = isnormal(d);
    int low = normal ? 15 : 1, high = DIGITS;
    while (low < high) {
        const int middle = normal ? low : (low + high) / 2;
        if (is_decimal(text, size, middle, d))
            high = middle;
        else
            low = middle + 1;
    }
    if (normal && low == 15) {
        snprintf(text, size, "%.14e", fabs(d)); /* d.dddddddddddddde+dd */
        while (low > 1 && text[low] == '0')
            low--;
    }
    return low;
}

/* The shortest decimal that is this number, with a sign of a fraction. */
static void put_float(writer *w, double d)
{
    char text[40];
    is_decimal(text, sizeof text, digits_of(text, sizeof text, d), d);
    print(w, "%s%s", d != d ? "nan" : text, text[strcspn(text, ".ein")] ? "" : ".0");
}

static void put_big(writer *w, const unsigned char *b, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const int negative = n && b[n - 1] & 0x80;
    size_t top = n;
    while (top > 1 && b[top - 1] == 0)
        top--;
    print(w, negative ? "two's complement 0x" : "0x");
    for (size_t i = top; i-- > 0 && !w->full;) {
        put(w, &digits[b[i] >> 4], 1);
        put(w, &digits[b[i] & 15], 1);
    }
}

static void put_value(writer *w, const pickle *p, pickle_ref r, int depth);

static void put_items(writer *w, const pickle *p, pickle_ref r, int depth)
{
    const size_t n = pickle_count(p, r);
    for (size_t i = 0; i < n && i < LONG && !w->full; i++) {
        put(w, ", ", i ? 2 : 0);
        if (pickle_type_of(p, r) == PICKLE_DICT) {
            put_value(w, p, pickle_key(p, r, i), depth);
            put(w, ": ", 2);
        }
        put_value(w, p, pickle_item(p, r, i), depth);
    }
    if (n > LONG)
        print(w, ", ... %zu in all", n);
}

static void put_collection(writer *w, const pickle *p, pickle_ref r, int depth)
{
    const pickle_type type = pickle_type_of(p, r);
    put(w, type == PICKLE_LIST ? "[" : type == PICKLE_TUPLE ? "(" : "{", 1);
    if (depth < DEEP)
        put_items(w, p, r, depth + 1);
    else
        put(w, "...", 3);
    put(w, ",", type == PICKLE_TUPLE && pickle_count(p, r) == 1);
    put(w, type == PICKLE_LIST ? "]" : type == PICKLE_TUPLE ? ")" : "}", 1);
}

static void put_object(writer *w, const pickle *p, pickle_ref r, int depth)
{
    char name[TORCH_GLOBAL_MAX];
    const char *made = trace_torch_callable(p, pickle_callable(p, r), name, sizeof name);
    static const char builtins[] = "builtins.";
    const torch_global *g = trace_torch_global_find(made);
    pickle_bytes b;
    if (g && g->role == TORCH_ENCODED && pickle_data(p, pickle_item(p, pickle_args(p, r), 0), &b) == 0) {
        put(w, "bytes", 5);
        return;
    }
    if (made && strncmp(made, builtins, sizeof builtins - 1) == 0)
        made += sizeof builtins - 1;
    put_text(w, made ? made : "?", made ? strlen(made) : 1);
    put(w, "(", 1);
    if (depth < DEEP)
        put_items(w, p, pickle_args(p, r), depth + 1);
    else
        put(w, "...", 3);
    put(w, ")", 1);
}

static void put_value(writer *w, const pickle *p, pickle_ref r, int depth)
{
    size_t n;
    int64_t i = 0;
    double d = 0;
    const char *s;
    switch (pickle_type_of(p, r)) {
    case PICKLE_NOTHING:
        put(w, "?", 1);
        break;
    case PICKLE_NONE:
        put(w, "None", 4);
        break;
    case PICKLE_BOOL:
        pickle_int(p, r, &i);
        print(w, "%s", i ? "True" : "False");
        break;
    case PICKLE_INT:
        pickle_int(p, r, &i);
        print(w, "%" PRId64, i);
        break;
    case PICKLE_BIG: {
        const unsigned char *b = pickle_big(p, r, &n);
        put_big(w, b, n);
        break;
    }
    case PICKLE_FLOAT:
        pickle_float(p, r, &d);
        put_float(w, d);
        break;
    case PICKLE_TEXT:
        put(w, "'", depth > 0);
        if ((s = pickle_text(p, r, &n)))
            put_text(w, s, n);
        else
            put(w, "a long text", 11);
        put(w, "'", depth > 0);
        break;
    case PICKLE_BYTES: {
        pickle_bytes b;
        pickle_data(p, r, &b);
        print(w, "%" PRIu64 " bytes", b.n);
        break;
    }
    case PICKLE_LIST:
    case PICKLE_TUPLE:
    case PICKLE_SET:
    case PICKLE_DICT:
        put_collection(w, p, r, depth);
        break;
    case PICKLE_GLOBAL:
        s = pickle_global(p, r);
        put_text(w, s, strlen(s));
        break;
    case PICKLE_OBJECT:
        put_object(w, p, r, depth);
        break;
    case PICKLE_PERSISTENT:
        put(w, "a storage", 9);
        break;
    }
}

int trace_torch_text(const pickle *p, pickle_ref r, char *out, size_t size)
{
    writer w = {out, size, 0, 0};
    out[0] = 0;
    put_value(&w, p, r, 0);
    return w.full ? -1 : 0;
}
