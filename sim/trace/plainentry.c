/* plainentry.c -- the description of a tensor in the header of a safetensors file, in the spelling that every
 * writer uses: {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, the keys in any order, spaces anywhere.
 *
 * A file may have a hundred thousand of them, and a tree of each takes most of the time that opening it takes.
 * What is not plain, whatever it is, is left to the JSON library (safetensors.c). */
#include "impl.h"

#include <string.h>

typedef struct plain {
    const char *p, *end;
} plain;

static char next(plain *s)
{
    while (s->p < s->end && *s->p == ' ')
        s->p++;
    return s->p < s->end ? *s->p : '\0';
}

/* Whether the next character is c; it is consumed then. */
static int take(plain *s, char c)
{
    if (next(s) != c)
        return 0;
    s->p++;
    return 1;
}

size_t trace_plain_string(const char *text, size_t n)
{
    size_t i = 1;
    if (n == 0 || text[0] != '"')
        return 0;
    while (i < n && text[i] >= ' ' && text[i] <= '~' && text[i] != '"' && text[i] != '\\')
        i++;
    return i < n && text[i] == '"' ? i + 1 : 0;
}

/* A string without its quotes, as long as `room` allows. */
static int take_string(plain *s, char *out, size_t room)
{
    next(s);
    const size_t n = trace_plain_string(s->p, (size_t)(s->end - s->p));
    if (n < 2 || n - 2 >= room)
        return 0;
    memcpy(out, s->p + 1, n - 2);
    out[n - 2] = '\0';
    s->p += n;
    return 1;
}

static int take_number(plain *s, uint64_t *u)
{
    enum { DIGITS = 18 }; /* what any signed 64-bit integer holds */
    int n = 0;
    next(s);
    for (*u = 0; s->p < s->end && *s->p >= '0' && *s->p <= '9' && n <= DIGITS; n++)
        *u = *u * 10 + (uint64_t)(*s->p++ - '0');
    const char first = n ? s->p[-n] : '\0';
    return n > 0 && n <= DIGITS && (n == 1 || first != '0');
}

static int take_numbers(plain *s, uint64_t *out, size_t room, size_t *n)
{
    *n = 0;
    if (!take(s, '['))
        return 0;
    if (take(s, ']'))
        return 1;
    do {
        if (*n == room || !take_number(s, &out[(*n)++]))
            return 0;
    } while (take(s, ','));
    return take(s, ']');
}

size_t trace_plain_entry(trace_description *d, const char *text, size_t n)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    plain s = {text, text + n};
    int seen = 0;
    char key[16];
    if (!take(&s, '{'))
        return 0;
    do {
        size_t two = 2;
        if (!take_string(&s, key, sizeof key) || !take(&s, ':'))
            return 0;
        const int is = strcmp(key, "dtype") == 0          ? DTYPE
                       : strcmp(key, "shape") == 0        ? SHAPE
                       : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                          : 0;
        if (!is || (seen & is))
            return 0;
        seen |= is;
        if (is == DTYPE   ? !take_string(&s, d->dtype, sizeof d->dtype)
            : is == SHAPE ? !take_numbers(&s, d->shape, TRACE_RANK_MAX, &d->rank)
                          : !take_numbers(&s, d->range, 2, &two) || two != 2)
            return 0;
    } while (take(&s, ','));
    return take(&s, '}') && seen == ALL ? (size_t)(s.p - text) : 0;
}
