/* coding.c -- bytes that are written as text, a piece at a time. */
#include "impl.h"

#include <string.h>

/* The next byte of Latin-1 in UTF-8; how long it is, 0: more is needed, -1: it is not Latin-1 in UTF-8. */
static int from_utf8(const unsigned char *s, size_t n, unsigned char *c)
{
    if (s[0] < 0x80) {
        *c = s[0];
        return 1;
    }
    if (s[0] != 0xc2 && s[0] != 0xc3)
        return -1;
    if (n < 2)
        return 0;
    *c = (unsigned char)(s[0] << 6 | (s[1] & 0x3f));
    return (s[1] & 0xc0) == 0x80 ? 2 : -1;
}

/* Likewise of a raw Unicode escape, \uHHHH; a character of Latin-1 stands for itself. */
static int from_escape(const unsigned char *s, size_t n, unsigned char *c)
{
    char out[21];
    *c = s[0];
    if (s[0] != '\\')
        return 1;
    if (n < 2)
        return 0;
    if (s[1] != 'u')
        return s[1] == 'U' ? -1 : 1;
    if (n < 6)
        return 0;
    const long k = pickle_input_unescape(PICKLE_ESCAPED, (const char *)s, 6, out);
    return k > 0 && from_utf8((const unsigned char *)out, (size_t)k, c) == k ? 6 : -1;
}

long pickle_decode(pickle_coding coding, const char *s, size_t n, int last, char *out, size_t *used)
{
    size_t to = 0;
    *used = 0;
    if (coding == PICKLE_PLAIN) {
        memcpy(out, s, n);
        *used = n;
        return (long)n;
    }
    while (*used < n) {
        const unsigned char *from = (const unsigned char *)s + *used;
        unsigned char c;
        const int k = coding == PICKLE_UTF8     ? from_utf8(from, n - *used, &c)
                      : coding == PICKLE_QUOTED ? pickle_input_quoted((const char *)from, n - *used, last, &c)
                                                : from_escape(from, n - *used, &c);
        if (k < 0 || (k == 0 && last && (coding != PICKLE_ESCAPED || n - *used > 1)))
            return -1;
        if (k == 0 && !last)
            break;
        out[to++] = (char)c;
        *used += k ? (size_t)k : 1;
    }
    return (long)to;
}
