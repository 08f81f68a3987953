/* share.c -- see share.h. */
#include "share.h"

#include "../cli/options.h"

#include <stdio.h>
#include <string.h>

int stat_share_parse(uint64_t *k, uint64_t *n, const char *text)
{
    char word[32];
    const size_t length = strcspn(text, "/");
    if (text[length] != '/' || length >= sizeof word)
        return -1;
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    if (parse_count(k, word) || parse_count(n, text + length + 1))
        return -1;
    return *k >= 1 && *k <= *n && *n <= SHARDS_MOST ? 0 : -1;
}

/* floor(a b / c), a <= c, 0 < c < 2^63 */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t q = 0, r = 0;
    for (int bit = 63; bit >= 0; bit--) {
        r *= 2;
        q = 2 * q + (r >= c);
        r -= r >= c ? c : 0;
        r += b >> bit & 1 ? a : 0;
        q += r >= c;
        r -= r >= c ? c : 0;
    }
    return q;
}

void stat_share_make(share *s, uint64_t k, uint64_t n, const uint64_t *starts, size_t files)
{
    *s = (share){.k = k, .n = n, .starts = starts, .files = files};
    s->begin = scale(k - 1, starts[files], n);
    s->end = scale(k, starts[files], n);
    while (s->first < files && !(starts[s->first + 1] > s->begin || stat_share_owns(s, s->first)))
        s->first++;
    s->last = s->first;
    while (s->last < files && (starts[s->last] < s->end || stat_share_owns(s, s->last)))
        s->last++;
    if (s->begin == s->end && !stat_share_owns(s, s->first)) /* no bytes */
        s->last = s->first;
}

int stat_share_owns(const share *s, uint64_t i)
{
    if (i >= s->files)
        return 0;
    const uint64_t at = s->starts[i];
    return at >= s->begin && (at < s->end || s->k == s->n);
}

void stat_share_cut_file(const share *s, size_t i, uint64_t bytes, share_cut *cut)
{
    const uint64_t at = s->starts[i], size = s->starts[i + 1] - at;
    const uint64_t low = s->begin > at ? s->begin - at : 0;
    const uint64_t high = s->end - at < size ? s->end - at : size;
    cut->low = size ? scale(low, bytes, size) : 0;
    cut->high = size ? scale(high, bytes, size) : bytes;
    cut->rest = high == size;
}

int stat_share_cut_tensor(const share_cut *cut, uint64_t at, uint64_t count, uint64_t width, int whole, uint64_t *first,
                          uint64_t *n)
{
    const uint64_t bytes = count * width;
    *first = 0;
    *n = count;
    if (whole || bytes == 0)
        return at >= cut->low && (at < cut->high || cut->rest);
    if (at + bytes <= cut->low || at >= cut->high)
        return 0;
    if (cut->low > at)
        *first = (cut->low - at + width - 1) / width;
    if (cut->high < at + bytes)
        *n = (cut->high - at + width - 1) / width;
    *n -= *first;
    return *n > 0;
}
