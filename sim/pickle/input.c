/* input.c -- the bytes of a pickle, its lines, and the literals of protocol 0. */
#include "impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pickle_input_fail(input *in, uint64_t at, const char *message, ...)
{
    va_list ap;
    in->error->what = PICKLE_BAD;
    in->error->at = at;
    va_start(ap, message);
    vsnprintf(in->error->text, sizeof in->error->text, message, ap);
    va_end(ap);
    return -1;
}

/* Makes the window begin at in->at, and hold n bytes or all that is left. */
static int fill(input *in, size_t n)
{
    const uint64_t left = in->end - in->at;
    const size_t have = in->at >= in->window_at && in->at <= in->window_at + in->fill
                            ? (size_t)(in->window_at + in->fill - in->at)
                            : 0;
    if (have >= n || have == left)
        return 0;
    if (!in->window) {
        in->window_bytes = left < WINDOW ? (size_t)left : WINDOW;
        if (!(in->window = malloc(in->window_bytes))) {
            in->error->what = PICKLE_NO_MEMORY;
            return -1;
        }
    }
    in->window_at = in->at;
    in->fill = 0;
    const size_t wanted = left < in->window_bytes ? (size_t)left : in->window_bytes;
    const ssize_t r = in->source->read(in->source->context, in->window, wanted, in->at);
    if (r < 0) {
        in->error->what = PICKLE_CANNOT_READ;
        in->error->at = in->at;
        return -1;
    }
    in->fill = (size_t)r;
    return 0;
}

/* Accounts for n bytes that follow. */
static int account(input *in, uint64_t n, int stay)
{
    if (n > in->end - in->at)
        return pickle_input_fail(in, in->at,
                                 "the pickle ends within what it promises: %" PRIu64 " bytes, there are %" PRIu64, n,
                                 in->end - in->at);
    if (in->frame_end && in->at + n > in->frame_end) {
        if (in->at < in->frame_end)
            return pickle_input_fail(in, in->at, "a frame of the pickle ends within an instruction");
        in->frame_end = 0;
    }
    if (!stay && n > in->max - in->counted)
        return pickle_input_fail(in, in->at, "the pickle is above the cap of %zu bytes", in->max);
    in->counted += stay ? 0 : (size_t)n;
    return 0;
}

const unsigned char *pickle_input_take(input *in, size_t n)
{
    static const unsigned char none[1];
    if (account(in, n, 0) || fill(in, n))
        return NULL;
    if (n == 0)
        return none;
    if (in->window_at + in->fill < in->at + n) {
        pickle_input_fail(in, in->window_at + in->fill, "the file ends here, within a pickle");
        return NULL;
    }
    const unsigned char *p = in->window + (in->at - in->window_at);
    in->at += n;
    return p;
}

int pickle_input_skip(input *in, uint64_t n)
{
    if (account(in, n, 1))
        return -1;
    in->at += n;
    return 0;
}

int pickle_input_line(input *in, const char **text, uint64_t *at, uint64_t *n)
{
    const uint64_t first = in->at;
    uint64_t here = first;
    const unsigned char *newline = NULL;
    if (fill(in, PICKLE_TEXT_MAX + 1))
        return -1;
    while (!newline) {
        in->at = here;
        if (here != first && fill(in, 1))
            return -1;
        const size_t have = in->at < in->window_at + in->fill ? (size_t)(in->window_at + in->fill - in->at) : 0;
        if (have == 0)
            return pickle_input_fail(in, first, "the pickle ends within a line");
        newline = memchr(in->window + (in->at - in->window_at), '\n', have);
        here = newline ? in->window_at + (uint64_t)(newline - in->window) : in->at + have;
    }
    *at = first;
    *n = here - first;
    in->at = first;
    if (*n <= PICKLE_TEXT_MAX) {
        *text = (const char *)pickle_input_take(in, (size_t)*n + 1);
        return *text ? 0 : -1;
    }
    *text = NULL;
    return pickle_input_skip(in, *n + 1);
}

int pickle_input_peek(const input *in, uint64_t at, unsigned char *c)
{
    if (in->source->read(in->source->context, c, 1, at) == 1)
        return 0;
    in->error->what = PICKLE_CANNOT_READ;
    in->error->at = at;
    return -1;
}

/* ---- literals ---- */

static int hex(const char *s, size_t n, uint32_t *u)
{
    *u = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = s[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return -1;
        *u = *u << 4 | (uint32_t)digit;
    }
    return 0;
}

static size_t utf8(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | c >> (6 * more));
    for (size_t i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    return more + 1;
}

/* Latin-1 with \uHHHH and \UHHHHHHHH. */
static long unescape_unicode(const char *s, size_t n, char *out)
{
    size_t to = 0;
    for (size_t i = 0; i < n;) {
        const size_t digits = s[i] != '\\' || i + 1 == n ? 0 : s[i + 1] == 'u' ? 4 : s[i + 1] == 'U' ? 8 : 0;
        uint32_t c = (unsigned char)s[i];
        if (digits && (n - i - 2 < digits || hex(s + i + 2, digits, &c) || c > 0x10ffff))
            return -1;
        to += utf8(c, out + to);
        i += digits ? 2 + digits : 1;
    }
    return (long)to;
}

/* Digits of an octal escape. */
static size_t octal(const char *s, size_t n, unsigned char *c)
{
    size_t k = 0;
    for (*c = 0; k < 3 && k < n && s[k] >= '0' && s[k] <= '7'; k++)
        *c = (unsigned char)(*c * 8 + (s[k] - '0'));
    return k;
}

int pickle_input_quoted(const char *s, size_t n, int last, unsigned char *c)
{
    static const char plain[] = "\\\\''\"\"n\nr\rt\ta\ab\bf\fv\v";
    uint32_t code;
    *c = (unsigned char)s[0];
    if (s[0] != '\\')
        return 1;
    if (n < 2)
        return 0;
    for (const char *row = plain; *row; row += 2)
        if (*row == s[1]) {
            *c = (unsigned char)row[1];
            return 2;
        }
    if (n < 4 && !last && (s[1] == 'x' || (s[1] >= '0' && s[1] <= '7')))
        return 0;
    if (s[1] == 'x' && n > 3 && hex(s + 2, 2, &code) == 0) {
        *c = (unsigned char)code;
        return 4;
    }
    const size_t digits = octal(s + 1, n - 1, c);
    if (!digits)
        *c = '\\'; /* Python leaves what it does not know */
    return 1 + (int)digits;
}

/* A string literal of Python 2: 'it\'s' or "so\n". */
static long unquote(const char *s, size_t n, char *out)
{
    size_t to = 0;
    unsigned char c;
    int k;
    if (n < 2 || (s[0] != '\'' && s[0] != '"') || s[n - 1] != s[0])
        return -1;
    for (size_t i = 1; i < n - 1; i += (size_t)k) {
        if (!(k = pickle_input_quoted(s + i, n - 1 - i, 1, &c)))
            return -1;
        out[to++] = (char)c;
    }
    return (long)to;
}

long pickle_input_unescape(pickle_coding coding, const char *s, size_t n, char *out)
{
    return coding == PICKLE_ESCAPED ? unescape_unicode(s, n, out) : unquote(s, n, out);
}

int pickle_input_is_text(const char *s, size_t n)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < n;) {
        const unsigned char lead = (unsigned char)s[i++];
        const size_t more = lead < 0x80                   ? 0
                            : lead >= 0xc2 && lead < 0xe0 ? 1
                            : lead >= 0xe0 && lead < 0xf0 ? 2
                            : lead >= 0xf0 && lead < 0xf5 ? 3
                                                          : 4;
        if (more > 3 || more > n - i)
            return 0;
        uint32_t c = more ? lead & (0x3fu >> more) : lead;
        for (size_t k = 0; k < more; k++, i++) {
            if (((unsigned char)s[i] & 0xc0) != 0x80)
                return 0;
            c = c << 6 | ((unsigned char)s[i] & 0x3f);
        }
        if (c < least[more] || c > 0x10ffff)
            return 0;
    }
    return 1;
}

size_t pickle_input_decimal(const char *s, size_t n, unsigned char *out, size_t size)
{
    const int negative = n && s[0] == '-';
    size_t used = 0;
    const size_t sign = negative || (n && s[0] == '+');
    if (n == sign)
        return 0;
    for (size_t i = sign; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return 0;
        unsigned carry = (unsigned)(s[i] - '0');
        for (size_t k = 0; k < used; k++) {
            carry += out[k] * 10u;
            out[k] = (unsigned char)carry;
            carry >>= 8;
        }
        if (carry && used + 1 >= size) /* a byte is left for the sign */
            return 0;
        if (carry)
            out[used++] = (unsigned char)carry;
    }
    if (used == 0 || out[used - 1] & 0x80)
        out[used++] = 0;
    for (size_t k = 0, carry = 1; negative && k < used; k++) {
        carry += (unsigned char)~out[k];
        out[k] = (unsigned char)carry;
        carry >>= 8;
    }
    return used;
}
