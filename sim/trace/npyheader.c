/* npyheader.c -- the text of an npy header: a Python dict literal with exactly three keys.
 *
 * Only the literals that numpy writes are understood: one dict of strings, True or False,
 * and a flat tuple of natural numbers, with any spacing, either quote and optional trailing
 * commas, and behind the dict the comment of our own writer. Nothing nests, so nothing recurses. */
#include "impl.h"

#include <string.h>

typedef struct cursor {
    const char *text;
    size_t at, n;
    const char *why; /* the first thing that went wrong */
} cursor;

static int fail(cursor *c, const char *why)
{
    if (!c->why)
        c->why = why;
    return -1;
}

/* The next character past blanks, 0 at the end. */
static char peek(cursor *c)
{
    while (c->at < c->n &&
           (c->text[c->at] == ' ' || c->text[c->at] == '\t' || c->text[c->at] == '\n' || c->text[c->at] == '\r'))
        c->at++;
    return c->at < c->n ? c->text[c->at] : 0;
}

static int accept(cursor *c, char wanted)
{
    if (peek(c) != wanted || !wanted)
        return 0;
    c->at++;
    return 1;
}

static int string(cursor *c, char *out, size_t size)
{
    const char quote = peek(c);
    size_t n = 0;
    if (quote != '\'' && quote != '"')
        return fail(c, "a string expected");
    for (c->at++; c->at < c->n && c->text[c->at] != quote; c->at++) {
        const char ch = c->text[c->at];
        if (ch == '\\' || (unsigned char)ch < 0x20)
            return fail(c, "a string with an escape or a control character");
        if (n + 1 == size)
            return fail(c, "a string that is too long");
        out[n++] = ch;
    }
    if (c->at == c->n)
        return fail(c, "a string without end");
    c->at++;
    out[n] = 0;
    return 0;
}

static int word(cursor *c, const char *w)
{
    const size_t n = strlen(w);
    if (c->n - c->at < n || memcmp(c->text + c->at, w, n) != 0)
        return 0;
    c->at += n;
    return 1;
}

static int boolean(cursor *c, int *out)
{
    peek(c);
    if (word(c, "True"))
        *out = 1;
    else if (word(c, "False"))
        *out = 0;
    else
        return fail(c, "fortran_order is neither True nor False");
    return 0;
}

static int number(cursor *c, uint64_t *out)
{
    uint64_t u = 0;
    const char first = peek(c);
    if (first == '-')
        return fail(c, "a negative dimension");
    if (first == '(')
        return fail(c, "a tuple inside the shape");
    if (first < '0' || first > '9')
        return fail(c, "a number expected in the shape");
    for (; c->at < c->n && c->text[c->at] >= '0' && c->text[c->at] <= '9'; c->at++) {
        const unsigned digit = (unsigned)(c->text[c->at] - '0');
        if (u > (UINT64_MAX - digit) / 10)
            return fail(c, "a dimension of more than 64 bits");
        u = u * 10 + digit;
    }
    if (first == '0' && u > 0)
        return fail(c, "a number that begins with 0");
    if (c->at < c->n && c->text[c->at] == 'L')
        return fail(c, "a number with the suffix L of Python 2: save the file again");
    if (c->at < c->n && (c->text[c->at] == '.' || c->text[c->at] == 'e'))
        return fail(c, "a dimension that is not an integer");
    *out = u;
    return 0;
}

static int tuple(cursor *c, npy_header *h)
{
    int comma = 0;
    h->rank = 0;
    if (!accept(c, '('))
        return fail(c, "shape is not a tuple");
    while (!accept(c, ')')) {
        if (h->rank && !comma)
            return fail(c, "',' or ')' expected in the shape");
        if (h->rank == TRACE_RANK_MAX)
            return fail(c, "a shape of more than 64 dimensions");
        if (number(c, &h->shape[h->rank]))
            return -1;
        h->rank++;
        comma = accept(c, ',');
    }
    /* "(3)" is a number in Python, not a tuple */
    return h->rank == 1 && !comma ? fail(c, "shape is not a tuple") : 0;
}

static int item(cursor *c, npy_header *h, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[32];
    unsigned k = 0;
    (void)peek(c);
    const size_t at = c->at;
    if (string(c, key, sizeof key))
        return -1;
    while (k < 3 && strcmp(key, keys[k]) != 0)
        k++;
    if (k == 3 || *seen & 1u << k) {
        c->at = at;
        return fail(c, k == 3 ? "a key other than descr, fortran_order and shape" : "a key that occurs twice");
    }
    *seen |= 1u << k;
    if (!accept(c, ':'))
        return fail(c, "':' expected");
    if (k == 1)
        return boolean(c, &h->fortran);
    const char ch = peek(c);
    if (k == 2) {
        h->shape_at = c->at;
        return tuple(c, h);
    }
    if (ch == '[' || ch == '(' || ch == '{')
        return fail(c, "a structured dtype, which is not supported: save each field");
    h->descr_at = c->at;
    return string(c, h->descr, sizeof h->descr);
}

static int dict(cursor *c, npy_header *h)
{
    unsigned seen = 0;
    int comma = 1;
    if (!accept(c, '{'))
        return fail(c, "it is not a dict");
    while (!accept(c, '}')) {
        if (!comma)
            return fail(c, "',' or '}' expected");
        if (item(c, h, &seen))
            return -1;
        comma = accept(c, ',');
    }
    if (seen != 7)
        return fail(c, !(seen & 1) ? "no key descr" : !(seen & 2) ? "no key fortran_order" : "no key shape");
    return 0;
}

/* A comment of Python, which numpy passes over: "# mpsim: bf16". */
static void holds(cursor *c, npy_header *h)
{
    static const char mark[] = "# mpsim: ";
    size_t n = 0;
    if (peek(c) != '#' || !word(c, mark))
        return;
    while (c->at < c->n && c->text[c->at] > ' ' && n + 1 < sizeof h->holds)
        h->holds[n++] = c->text[c->at++];
}

const char *trace_npy_header_parse(npy_header *h, const char *text, size_t n, size_t *at)
{
    cursor c = {.text = text, .n = n};
    memset(h, 0, sizeof *h);
    if (n == 0 || text[n - 1] != '\n') {
        c.at = n;
        fail(&c, "no newline at its end");
    } else if (dict(&c, h) == 0) {
        holds(&c, h);
        if (peek(&c) || c.at != n)
            fail(&c, "something follows the dict");
    }
    *at = c.at;
    return c.why;
}
