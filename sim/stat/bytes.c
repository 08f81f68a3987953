/* bytes.c -- see bytes.h. */
#include "bytes.h"

#include <stdlib.h>
#include <string.h>

void stat_bytes_put_count(array_bytes *b, uint64_t x)
{
    unsigned char text[10];
    size_t n = 0;
    for (; x > 0x7f; x >>= 7)
        text[n++] = (unsigned char)(x | 0x80);
    text[n++] = (unsigned char)x;
    array_put(b, text, n);
}

void stat_bytes_put_signed(array_bytes *b, int64_t x)
{
    stat_bytes_put_count(b, (uint64_t)x << 1 ^ (x < 0 ? UINT64_MAX : 0));
}

static void put_fixed(array_bytes *b, uint64_t x, size_t n)
{
    unsigned char text[8];
    for (size_t i = 0; i < n; i++)
        text[i] = (unsigned char)(x >> 8 * i);
    array_put(b, text, n);
}

void stat_bytes_put_word(array_bytes *b, uint32_t x)
{
    put_fixed(b, x, 4);
}

void stat_bytes_put_digest(array_bytes *b, uint64_t x)
{
    put_fixed(b, x, 8);
}

void stat_bytes_put_double(array_bytes *b, double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    put_fixed(b, u, 8);
}

void stat_bytes_put_text(array_bytes *b, const char *text)
{
    const size_t n = strlen(text);
    stat_bytes_put_count(b, n);
    array_put(b, text, n + 1);
}

void stat_bytes_clear(array_bytes *b)
{
    free(b->p);
    memset(b, 0, sizeof *b);
}

uint64_t stat_take_count(taker *t)
{
    uint64_t x = 0;
    for (int shift = 0; t->p < t->end && shift < 64; shift += 7) {
        const unsigned char c = *t->p++;
        if (shift == 63 && c > 1)
            break;
        x |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            return x;
    }
    t->bad = 1;
    return 0;
}

int64_t stat_take_signed(taker *t)
{
    const uint64_t x = stat_take_count(t);
    return (int64_t)(x >> 1) ^ -(int64_t)(x & 1);
}

static uint64_t take_fixed(taker *t, size_t n)
{
    uint64_t x = 0;
    if ((size_t)(t->end - t->p) < n) {
        t->bad = 1;
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        x |= (uint64_t)*t->p++ << 8 * i;
    return x;
}

uint32_t stat_take_word(taker *t)
{
    return (uint32_t)take_fixed(t, 4);
}

uint64_t stat_take_digest(taker *t)
{
    return take_fixed(t, 8);
}

double stat_take_double(taker *t)
{
    const uint64_t u = take_fixed(t, 8);
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

const char *stat_take_text(taker *t)
{
    const uint64_t n = stat_take_count(t);
    const char *text = (const char *)t->p;
    if (t->bad || n >= (uint64_t)(t->end - t->p) || memchr(text, 0, (size_t)n + 1) != text + n) {
        t->bad = 1;
        return "";
    }
    t->p += n + 1;
    return text;
}

uint64_t stat_take_number(taker *t, uint64_t most)
{
    const uint64_t n = stat_take_count(t);
    t->bad |= n > most;
    return t->bad ? 0 : n;
}

int stat_take_end(const taker *t)
{
    return t->bad || t->p != t->end ? -1 : 0;
}
