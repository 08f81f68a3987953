/* members.c -- see members.h. Offsets of fields are those of APPNOTE.TXT. */
#include "members.h"

#include "input.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LOCAL = 30, CENTRAL = 46, END = 22, RAW = -15 };

static uint32_t get(const uint8_t *p, size_t bytes)
{
    uint32_t u = 0;
    while (bytes-- > 0)
        u = u << 8 | p[bytes];
    return u;
}

static size_t put(uint8_t *p, uint64_t u, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = i < 8 ? (uint8_t)(u >> (8 * i)) : 0;
    return bytes;
}

/* ---- reading ---- */

static int inflate_all(uint8_t *to, size_t n, const uint8_t *from, size_t packed)
{
    uint8_t none[1];
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)from,
                  .avail_in = (uInt)packed,
                  .next_out = n ? to : none,
                  .avail_out = (uInt)n};
    if (inflateInit2(&z, RAW) != Z_OK)
        return -1;
    const int ended = inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == n;
    inflateEnd(&z);
    return ended ? 0 : -1;
}

/* A member from its entry in the directory, with `left` bytes behind. What the entry takes; 0: it is none. */
static size_t read_member(member *m, const uint8_t *data, size_t n, const uint8_t *entry, size_t left)
{
    if (left < CENTRAL || get(entry, 4) != 0x02014b50)
        return 0;
    const uint32_t method = get(entry + 10, 2), packed = get(entry + 20, 4), size = get(entry + 24, 4);
    const uint32_t name = get(entry + 28, 2), at = get(entry + 42, 4);
    const size_t all = CENTRAL + name + get(entry + 30, 2) + get(entry + 32, 2);
    if (all > left || name >= MEMBER_NAME || size > MEMBER_MOST || (method != 0 && method != 8) || at > n ||
        n - at < LOCAL || get(data + at, 4) != 0x04034b50)
        return 0;
    const size_t start = at + LOCAL + get(data + at + 26, 2) + get(data + at + 28, 2);
    if (start > n || packed > n - start || (method == 0 && packed != size))
        return 0;
    memset(m->name, 0, sizeof m->name);
    memcpy(m->name, entry + CENTRAL, name);
    m->n = size;
    m->deflated = method == 8;
    m->bytes = size ? malloc(size) : NULL;
    must(m->bytes || size == 0);
    if (!m->deflated && size)
        memcpy(m->bytes, data + start, size);
    if (m->deflated && inflate_all(m->bytes, size, data + start, packed)) {
        free(m->bytes);
        return 0;
    }
    return all;
}

int members_read(members *m, const uint8_t *data, size_t n)
{
    m->count = 0;
    if (n < END || get(data, 2) != 0x4b50)
        return -1;
    size_t end = n - END;
    while (end > 0 && get(data + end, 4) != 0x06054b50)
        end--;
    const size_t count = get(data + end + 10, 2), directory = get(data + end + 16, 4);
    if (get(data + end, 4) != 0x06054b50 || count > MEMBERS_MAX || directory > end)
        return -1;
    for (size_t at = directory, took; m->count < count; at += took) {
        took = read_member(&m->of[m->count], data, n, data + at, end - at);
        if (took == 0) {
            members_clear(m);
            return -1;
        }
        m->count++;
    }
    return 0;
}

void members_clear(members *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->of[i].bytes);
    m->count = 0;
}

/* ---- writing ---- */

static size_t deflate_all(uint8_t *to, size_t room, const member *m)
{
    uint8_t none[1] = {0};
    z_stream z = {.next_in = m->n ? m->bytes : none, .avail_in = (uInt)m->n, .next_out = to, .avail_out = (uInt)room};
    must(deflateInit2(&z, 6, Z_DEFLATED, RAW, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    must(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

/* What both headers of a member say, from "version needed" to the length of the name. */
static size_t put_common(uint8_t *p, const member *m, size_t packed)
{
    const uint32_t crc = m->n ? (uint32_t)crc32(0, m->bytes, (uInt)m->n) : 0;
    size_t n = put(p, 20, 4); /* and no flags */
    n += put(p + n, m->deflated ? 8 : 0, 2);
    n += put(p + n, 0, 4); /* time, date */
    n += put(p + n, crc, 4);
    n += put(p + n, packed, 4);
    n += put(p + n, m->n, 4);
    return n + put(p + n, strlen(m->name), 2);
}

uint8_t *members_write(const members *m, size_t *size)
{
    size_t room = END, at[MEMBERS_MAX], packed[MEMBERS_MAX], n = 0;
    for (size_t i = 0; i < m->count; i++)
        room += LOCAL + CENTRAL + 2 * MEMBER_NAME + compressBound((uLong)m->of[i].n);
    uint8_t *p = malloc(room);
    must(p != NULL);
    for (size_t i = 0; i < m->count; i++) {
        const member *x = &m->of[i];
        const size_t name = strlen(x->name), data = n + LOCAL + name;
        at[i] = n;
        packed[i] = x->deflated ? deflate_all(p + data, room - data, x) : x->n;
        if (!x->deflated && x->n)
            memcpy(p + data, x->bytes, x->n);
        n += put(p + n, 0x04034b50, 4);
        n += put_common(p + n, x, packed[i]);
        n += put(p + n, 0, 2);
        memcpy(p + n, x->name, name);
        n = data + packed[i];
    }
    const size_t directory = n;
    for (size_t i = 0; i < m->count; i++) {
        n += put(p + n, 0x02014b50, 4);
        n += put(p + n, 20, 2);
        n += put_common(p + n, &m->of[i], packed[i]);
        n += put(p + n, 0, 12);
        n += put(p + n, at[i], 4);
        memcpy(p + n, m->of[i].name, strlen(m->of[i].name));
        n += strlen(m->of[i].name);
    }
    const size_t end = n;
    n += put(p + n, 0x06054b50, 8);
    n += put(p + n, m->count, 2);
    n += put(p + n, m->count, 2);
    n += put(p + n, end - directory, 4);
    n += put(p + n, directory, 4);
    n += put(p + n, 0, 2);
    *size = n;
    return p;
}
