/* reader.c -- see reader.h. */
#include "reader.h"

#include <string.h>

enum { PLAIN, AFTER_ESC, CSI, STRING, STRING_ESC };

/* Whether the byte belongs to an escape sequence: ESC [ ... letter, ESC ] ... BEL, ESC x. */
static int in_escape(log_reader *r, unsigned char c)
{
    switch (r->escape) {
    case AFTER_ESC:
        r->escape = c == '[' ? CSI : c == ']' ? STRING : PLAIN;
        return 1;
    case CSI:
        if (c >= 0x40 && c <= 0x7e)
            r->escape = PLAIN;
        return 1;
    case STRING:
        r->escape = c == 7 ? PLAIN : c == 27 ? STRING_ESC : STRING;
        return 1;
    case STRING_ESC:
        r->escape = PLAIN;
        return 1;
    default:
        if (c == 27)
            r->escape = AFTER_ESC;
        return c == 27;
    }
}

static int end_line(log_reader *r, int (*visit)(const char *line, void *context), void *context)
{
    r->escape = PLAIN; /* a sequence does not go over the end of a line */
    if (r->n == 0)
        return 0;
    r->line[r->n] = 0;
    r->n = 0;
    r->lines++;
    r->cut += (uint64_t)r->is_cut;
    r->is_cut = 0;
    r->window = 0;
    return visit(r->line, context);
}

/* Eight bytes at most as a number, and which of its bits they are. */
static uint64_t packed(const char *word, uint64_t *mask)
{
    uint64_t n = 0;
    *mask = 0;
    for (; *word; word++) {
        n = n << 8 | (unsigned char)*word;
        *mask = *mask << 8 | 0xff;
    }
    return n;
}

/* Whether what is left out would have counted. */
static void look_through(log_reader *r, const char *bytes, size_t n)
{
    static const char *const words[] = {"overflow", "scale", " nan", "=nan"};
    enum { WORDS = sizeof words / sizeof words[0] };
    uint64_t word[WORDS], mask[WORDS];
    for (int k = 0; k < WORDS; k++)
        word[k] = packed(words[k], &mask[k]);
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        r->window = r->window << 8 | (c >= 'A' && c <= 'Z' ? c + 32u : c);
        for (int k = 0; k < WORDS; k++)
            r->hidden += (r->window & mask[k]) == word[k];
    }
}

int traininglog_reader_bytes(log_reader *r, const char *bytes, size_t n, int (*visit)(const char *line, void *context),
                             void *context)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        r->since++;
        if (c == '\n' || c == '\r') {
            const int stop = end_line(r, visit, context);
            r->ends += c == '\n';
            r->since = 0;
            if (stop)
                return stop;
        } else if (c == 0 || in_escape(r, c)) {
            continue;
        } else if (r->n < LOG_WIDTH) {
            r->line[r->n++] = c < ' ' || c >= 0x7f ? ' ' : (char)c;
        } else { /* the rest of a line that is too long */
            const char *end = memchr(bytes + i, '\n', n - i);
            const size_t left = end ? (size_t)(end - bytes) - i : n - i;
            const char *carriage = memchr(bytes + i, '\r', left);
            const size_t rest = carriage ? (size_t)(carriage - bytes) - i : left;
            look_through(r, bytes + i, rest);
            i += rest - 1;
            r->since += rest - 1;
            r->is_cut = 1;
        }
    }
    return 0;
}

int traininglog_reader_end(log_reader *r, int (*visit)(const char *line, void *context), void *context)
{
    return end_line(r, visit, context);
}
