/* mutate.c -- mutations that keep what plain ones break: the CRCs and sizes of a zip archive, in which they change a
 * member, and the length of a safetensors header. Pieces are also repeated many times: depth and length that compress
 * well. Linked with libFuzzer only. */
#include "members.h"

#include "input.h"

#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

enum { HEADER = 8 };

/* ---- chance: splitmix64 ---- */

static uint64_t state;

static size_t below(size_t n)
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (size_t)((z ^ z >> 31) % n);
}

/* ---- bytes ---- */

/* A piece of them once more, or a great many times. */
static size_t repeat(uint8_t *p, size_t n, size_t most)
{
    if (n == 0 || n >= most)
        return n;
    const size_t at = below(n), behind = n - at;
    const size_t piece = 1 + below(behind < 64 ? behind : 64), room = (most - n) / piece;
    const size_t bits = below(20), times = bits < 16 && (size_t)1 << bits < room ? (size_t)1 << bits : room;
    memmove(p + at + times * piece, p + at, behind);
    for (size_t i = 1; i <= times; i++)
        memmove(p + at + i * piece - piece, p + at + times * piece, piece);
    return n + times * piece;
}

static size_t plain(uint8_t *p, size_t n, size_t most)
{
    return below(16) ? LLVMFuzzerMutate(p, n, most) : repeat(p, n, most);
}

static uint64_t header_length(const uint8_t *p)
{
    uint64_t u = 0;
    for (int i = HEADER; i-- > 0;)
        u = u << 8 | p[i];
    return u;
}

/* A safetensors file: its header or its data, the length corrected. */
static size_t safetensors(uint8_t *p, size_t n, size_t most)
{
    const size_t length = (size_t)header_length(p), data = n - HEADER - length, room = most - HEADER - data;
    uint8_t *behind = malloc(data + 1);
    must(behind != NULL);
    memcpy(behind, p + HEADER + length, data);
    const size_t changed = room ? plain(p + HEADER, length, room)
                                : 0; /* libFuzzer writes a byte even where there is no room */
    memcpy(p + HEADER + changed, behind, data);
    free(behind);
    for (int i = 0; i < HEADER; i++)
        p[i] = (uint8_t)((uint64_t)changed >> 8 * i);
    return HEADER + changed + data;
}

static size_t bytes(uint8_t *p, size_t n, size_t most)
{
    const int has_header = n > HEADER + 1 && p[HEADER] == '{' && header_length(p) <= n - HEADER;
    return has_header && below(4) ? safetensors(p, n, most) : plain(p, n, most);
}

/* ---- members ---- */

static void change_bytes(member *m)
{
    const size_t most = below(64) || !m->deflated ? 2 * m->n + 256 : MEMBER_MOST;
    uint8_t *p = malloc(most < MEMBER_MOST ? most : MEMBER_MOST);
    must(p != NULL);
    if (m->n)
        memcpy(p, m->bytes, m->n);
    m->n = bytes(p, m->n, most < MEMBER_MOST ? most : MEMBER_MOST);
    free(m->bytes);
    m->bytes = p;
}

static void change_name(member *m)
{
    uint8_t name[MEMBER_NAME] = {0};
    memcpy(name, m->name, strlen(m->name));
    memset(name + LLVMFuzzerMutate(name, strlen(m->name), MEMBER_NAME - 1), 0, 1);
    memcpy(m->name, name, MEMBER_NAME);
}

static void copy_member(members *m, size_t from)
{
    member *x = &m->of[m->count];
    if (m->count == MEMBERS_MAX)
        return;
    *x = m->of[from];
    x->bytes = malloc(x->n + 1);
    must(x->bytes != NULL);
    if (x->n)
        memcpy(x->bytes, m->of[from].bytes, x->n);
    m->count++;
}

static void swap_names(member *a, member *b)
{
    char name[MEMBER_NAME];
    memcpy(name, a->name, MEMBER_NAME);
    memmove(a->name, b->name, MEMBER_NAME);
    memcpy(b->name, name, MEMBER_NAME);
}

static void change(members *m)
{
    const size_t i = below(m->count);
    switch (below(20)) {
    case 0:
        change_name(&m->of[i]);
        break;
    case 1:
        m->of[i].deflated ^= 1;
        break;
    case 2:
        free(m->of[i].bytes);
        m->of[i] = m->of[--m->count];
        break;
    case 3:
        copy_member(m, i);
        break;
    case 4:
        swap_names(&m->of[i], &m->of[below(m->count)]);
        break;
    default:
        change_bytes(&m->of[i]);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static members m;
    size_t n;
    state = seed;
    if (below(8) == 0 || members_read(&m, data, size) || m.count == 0)
        return bytes(data, size, most);
    change(&m);
    uint8_t *p = members_write(&m, &n);
    members_clear(&m);
    if (n <= most)
        memcpy(data, p, n);
    free(p);
    return n <= most ? n : bytes(data, size, most);
}
