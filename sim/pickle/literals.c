/* literals.c -- instructions of the pickle machine that push numbers, texts and bytes. */
#include "machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BIG_BYTES = 256 };

int pickle_op_none(machine *m, uint64_t u, int arg)
{
    (void)u;
    return pickle_machine_push(m, arg == 'N' ? m->none : arg ? m->yes : m->no);
}

static int push_int(machine *m, int64_t i)
{
    if (i < 0 || i >= SMALL)
        return pickle_machine_push(m, pickle_tree_value(m->p, PICKLE_INT, (uint64_t)i));
    if (!m->small[i])
        m->small[i] = pickle_tree_value(m->p, PICKLE_INT, (uint64_t)i);
    return pickle_machine_push(m, m->small[i]);
}

int pickle_op_int(machine *m, uint64_t u, int arg)
{
    return push_int(m, arg ? (int64_t)(int32_t)(uint32_t)u : (int64_t)u); /* arg: BININT is signed */
}

static int push_bytes_int(machine *m, const unsigned char *b, size_t n)
{
    if (n > 8)
        return pickle_machine_push(m, pickle_tree_text(m->p, PICKLE_BIG, (const char *)b, n));
    uint64_t u = n && b[n - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = n; i-- > 0;)
        u = u << 8 | b[i];
    return push_int(m, (int64_t)u);
}

int pickle_op_long(machine *m, uint64_t u, int arg)
{
    (void)arg;
    if (u > BIG_BYTES)
        return pickle_input_fail(&m->in, m->op_at, "the pickle has an integer of %" PRIu64 " bytes, more than %d", u,
                                 BIG_BYTES);
    const unsigned char *b = pickle_input_take(&m->in, (size_t)u);
    return b ? push_bytes_int(m, b, (size_t)u) : -1;
}

int pickle_op_float(machine *m, uint64_t u, int arg)
{
    (void)arg;
    uint64_t swapped = 0; /* big-endian in the pickle */
    for (int i = 0; i < 8; i++)
        swapped |= (u >> (8 * i) & 0xff) << (8 * (7 - i));
    return pickle_machine_push(m, pickle_tree_value(m->p, PICKLE_FLOAT, swapped));
}

/* INT, LONG and FLOAT of protocol 0. */
int pickle_op_number_line(machine *m, uint64_t u, int arg)
{
    (void)u;
    const char *s;
    char copy[1024], *end;
    unsigned char b[BIG_BYTES];
    uint64_t at, n;
    if (pickle_input_line(&m->in, &s, &at, &n))
        return -1;
    if (!s || n == 0 || n >= sizeof copy)
        return pickle_machine_bad(m, "a line is not a number");
    memcpy(copy, s, (size_t)n);
    copy[n] = 0;
    if (arg == 'F') {
        union {
            double d;
            uint64_t u;
        } x = {.d = strtod(copy, &end)};
        if (*end || strpbrk(copy, "xX( ") || strlen(copy) != n)
            return pickle_machine_bad(m, "a line is not a number");
        return pickle_machine_push(m, pickle_tree_value(m->p, PICKLE_FLOAT, x.u));
    }
    if (arg == 'I' && (strcmp(copy, "01") == 0 || strcmp(copy, "00") == 0))
        return pickle_machine_push(m, copy[1] == '1' ? m->yes : m->no);
    const size_t bytes = pickle_input_decimal(copy, (size_t)n - (copy[n - 1] == 'L'), b, sizeof b);
    if (bytes == 0)
        return pickle_machine_bad(m, "a line is not an integer, or a very long one");
    return push_bytes_int(m, b, bytes);
}

/* Texts with their length in front; arg: PICKLE_TEXT, or TEXT_BYTES of Python 2. */
int pickle_op_text(machine *m, uint64_t u, int arg)
{
    if (u > PICKLE_TEXT_MAX) {
        const uint64_t at = m->in.at;
        const pickle_coding coding = arg == PICKLE_TEXT ? PICKLE_UTF8 : PICKLE_PLAIN;
        return pickle_input_skip(&m->in, u) ||
                       pickle_machine_push(m, pickle_tree_value(m->p, (TEXT_AT + coding) | at << 8, u))
                   ? -1
                   : 0;
    }
    const char *s = (const char *)pickle_input_take(&m->in, (size_t)u);
    if (!s)
        return -1;
    if (arg == PICKLE_TEXT && !pickle_input_is_text(s, (size_t)u))
        return pickle_machine_bad(m, "a text that is not UTF-8");
    return pickle_machine_push(m, pickle_tree_text(m->p, arg, s, (size_t)u));
}

int pickle_op_bytes(machine *m, uint64_t u, int arg)
{
    (void)arg;
    const uint64_t at = m->in.at;
    return pickle_input_skip(&m->in, u) || pickle_machine_push(m, pickle_tree_value(m->p, PICKLE_BYTES | at << 8, u))
               ? -1
               : 0;
}

/* A long line that stays where it is: of a literal what is between its quotes. */
static int push_long_line(machine *m, pickle_coding coding, uint64_t at, uint64_t n)
{
    unsigned char first = 0, end = 1;
    const int quoted = coding == PICKLE_QUOTED;
    if (quoted && (pickle_input_peek(&m->in, at, &first) || pickle_input_peek(&m->in, at + n - 1, &end)))
        return -1;
    if (quoted && (first != end || (first != '\'' && first != '"')))
        return pickle_machine_bad(m, "a line is not a string");
    at += (uint64_t)quoted;
    n -= 2 * (uint64_t)quoted;
    return pickle_machine_push(m, pickle_tree_value(m->p, (uint64_t)(TEXT_AT + coding) | at << 8, n));
}

/* UNICODE and STRING of protocol 0; arg: their coding. */
int pickle_op_text_line(machine *m, uint64_t u, int arg)
{
    (void)u;
    char few[1024];
    const char *s;
    uint64_t at, n;
    if (pickle_input_line(&m->in, &s, &at, &n))
        return -1;
    if (!s)
        return push_long_line(m, (pickle_coding)arg, at, n);
    char *const out = 2 * n < sizeof few ? few : malloc(2 * (size_t)n + 1);
    if (!out)
        return pickle_machine_push(m, PICKLE_ABSENT); /* that there is no memory */
    const long length = pickle_input_unescape((pickle_coding)arg, s, (size_t)n, out);
    const int bad = length < 0
                        ? pickle_machine_bad(m, "a line is not a string")
                        : pickle_machine_push(m, pickle_tree_text(m->p, arg == PICKLE_QUOTED ? TEXT_BYTES : PICKLE_TEXT,
                                                                  out, (size_t)length));
    if (out != few)
        free(out);
    return bad;
}
