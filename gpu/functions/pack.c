/* pack.c -- see pack.h. The range coder carries as that of LZMA does: 32 bits of range, a byte held back. */
#include "pack.h"

#include "cases.h"

#include <string.h>

enum { PROBABILITY_BITS = 15, RATE = 6, CONTEXTS = 25, LENGTHS = 34, LEADING = 3 };

/* Probabilities that a bit is 0: how long a number is, in unary, by what was before; its first bits below the top one. */
typedef struct model {
    uint16_t length[CONTEXTS][LENGTHS], leading[LENGTHS][1 << LEADING];
    int before[2]; /* classes of the last two numbers */
} model;

typedef struct coder {
    uint64_t low;
    uint32_t range, code;
    uint8_t held;
    uint64_t run; /* bytes held back: `held`, then as many less one of 0xff */
    uint8_t *to;
    const uint8_t *from;
    size_t at, room;
    int is_full; /* also: the bytes have ended too early */
    int decodes;
} coder;

static void model_init(model *m)
{
    uint16_t *p = &m->length[0][0];
    for (size_t i = 0; i < sizeof m->length / sizeof *p; i++)
        p[i] = 1 << (PROBABILITY_BITS - 1);
    p = &m->leading[0][0];
    for (size_t i = 0; i < sizeof m->leading / sizeof *p; i++)
        p[i] = 1 << (PROBABILITY_BITS - 1);
    m->before[0] = m->before[1] = 0;
}

static void put(coder *c, uint8_t byte)
{
    if (c->at < c->room)
        c->to[c->at++] = byte;
    else
        c->is_full = 1;
}

static void shift_out(coder *c)
{
    if (c->low < 0xff000000u || c->low >> 32) {
        const uint8_t carry = (uint8_t)(c->low >> 32);
        for (; c->run; c->run--) {
            put(c, (uint8_t)(c->held + carry));
            c->held = 0xff;
        }
        c->held = (uint8_t)(c->low >> 24);
    }
    c->run++;
    c->low = (c->low & 0xffffff) << 8;
}

static uint8_t get(coder *c)
{
    if (c->at < c->room)
        return c->from[c->at++];
    c->is_full = 1;
    return 0;
}

/* A bit, coded or read: 0 takes the lower part of the range. */
static int bit(coder *c, uint16_t *zero, int value)
{
    const uint32_t bound = (c->range >> PROBABILITY_BITS) * *zero;
    if (c->decodes)
        value = c->code - (uint32_t)c->low >= bound;
    if (value) {
        c->low += bound;
        c->range -= bound;
        *zero = (uint16_t)(*zero - (*zero >> RATE));
    } else {
        c->range = bound;
        *zero = (uint16_t)(*zero + (((1 << PROBABILITY_BITS) - *zero) >> RATE));
    }
    if (c->decodes)
        c->low &= 0xffffffff;
    while (c->range < 1u << 24) {
        c->range <<= 8;
        if (c->decodes) {
            c->code = c->code << 8 | get(c);
            c->low = c->low << 8 & 0xffffffff;
        } else {
            shift_out(c);
        }
    }
    return value;
}

static int class_of(uint32_t u)
{
    return u == 0 ? 0 : u < 3 ? (int)u : u < 7 ? 3 : 4;
}

static int length_of(uint32_t u)
{
    int n = 0;
    for (; u; u >>= 1)
        n++;
    return n;
}

/* A number without a sign: its length in bits, then the bits below its top one. */
static uint32_t number(coder *c, model *m, uint32_t u)
{
    uint16_t *const unary = m->length[m->before[0] * 5 + m->before[1]], even;
    const int length = length_of(u);
    int n = 0;
    while (n < 32 && bit(c, &unary[n], n < length))
        n++;
    uint32_t value = n > 0, prefix = 1;
    for (int i = n - 2; i >= 0; i--) {
        even = 1 << (PROBABILITY_BITS - 1);
        const int leads = n - 2 - i < LEADING;
        const int b = bit(c, leads ? &m->leading[n][prefix] : &even, (int)(u >> i & 1));
        value = value << 1 | (uint32_t)b;
        prefix = leads ? (prefix << 1 | (uint32_t)b) & ((1 << LEADING) - 1) : prefix;
    }
    m->before[1] = m->before[0];
    m->before[0] = class_of(value);
    return value;
}

/* ---- differences ---- */

enum { OF_EXACT, OF_GROWTH_OF_EXACT, OF_BEFORE, OF_GROWTH_BEFORE, WAYS };

static uint32_t code_of(uint32_t ordered, int bits)
{
    const uint32_t sign = (uint32_t)1 << (bits - 1), mask = sign - 1;
    return ordered >> 31 ? (~ordered & mask) | sign : ordered & mask;
}

/* What is expected of result i, from those before. */
static uint32_t expected(int way, const uint32_t *results, const uint32_t *exact, size_t i, int bits)
{
    const uint32_t now = gpu_ordered(exact[i], bits), last = i ? gpu_ordered(results[i - 1], bits) : 0;
    const uint32_t earlier = i > 1 ? gpu_ordered(results[i - 2], bits) : last;
    if (way == OF_EXACT || i == 0)
        return now;
    if (way == OF_GROWTH_OF_EXACT)
        return last + now - gpu_ordered(exact[i - 1], bits);
    return way == OF_BEFORE ? last : 2 * last - earlier;
}

static void begin(coder *c, uint8_t *to, const uint8_t *from, size_t room)
{
    memset(c, 0, sizeof *c);
    c->range = 0xffffffff;
    c->to = to;
    c->from = from;
    c->room = room;
    c->decodes = from != NULL;
    for (int i = 0; c->decodes && i < 5; i++)
        c->code = c->code << 8 | get(c);
}

static size_t pack_by(int way, const uint32_t *results, const uint32_t *exact, size_t n, int bits, uint8_t *to,
                      size_t room)
{
    static _Thread_local model m;
    coder c;
    model_init(&m);
    begin(&c, to, NULL, room);
    put(&c, (uint8_t)way);
    c.run = 1; /* a first byte of 0, as LZMA's */
    for (size_t i = 0; i < n && !c.is_full; i++) {
        const uint32_t d = gpu_ordered(results[i], bits) - expected(way, results, exact, i, bits);
        number(&c, &m, d << 1 ^ (0 - (d >> 31)));
    }
    for (int i = 0; i < 5; i++)
        shift_out(&c);
    return c.is_full ? 0 : c.at;
}

/* The way that takes fewest bytes, of the middle of the table. */
static int best_way(const uint32_t *results, const uint32_t *exact, size_t n, int bits, uint8_t *to, size_t room)
{
    enum { PART = 1 << 16 };
    const size_t part = n < PART ? n : PART, first = (n - part) / 2;
    size_t fewest = 0;
    int best = 0;
    for (int way = 0; way < WAYS; way++) {
        const size_t bytes = pack_by(way, results + first, exact + first, part, bits, to, room);
        if (bytes && (!fewest || bytes < fewest)) {
            fewest = bytes;
            best = way;
        }
    }
    return best;
}

size_t gpu_pack(const uint32_t *results, const uint32_t *exact, size_t n, int bits, uint8_t *to, size_t room)
{
    return pack_by(best_way(results, exact, n, bits, to, room), results, exact, n, bits, to, room);
}

int gpu_unpack(uint32_t *results, const uint32_t *exact, size_t n, int bits, const uint8_t *from, size_t size)
{
    static _Thread_local model m;
    coder c;
    if (size < 6 || from[0] >= WAYS)
        return -1;
    model_init(&m);
    begin(&c, NULL, from + 1, size - 1);
    for (size_t i = 0; i < n && !c.is_full; i++) {
        const uint32_t u = number(&c, &m, 0), d = u >> 1 ^ (0 - (u & 1));
        results[i] = code_of(expected(from[0], results, exact, i, bits) + d, bits);
    }
    return c.is_full || c.at != c.room ? -1 : 0;
}
