/* operands.c -- see operands.h. */
#include "operands.h"

#include "../array/array.h"
#include "../array/need.h"
#include "../cli/options.h"
#include "../pass/chosen.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- generated ---- */

static double *normal(size_t rows, size_t size, double deviation, uint64_t seed, uint64_t which)
{
    int distribution = 0;
    double *x = need_memory((uint64_t)rows * size, sizeof *x);
    (void)distribution_find(&distribution, "normal");
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; c < size; c++)
            x[i * size + c] = (double)(float)(deviation * distribution_draw(distribution, seed, (which << 32) + i, c));
    return x;
}

static void generate(mismatch_operands *o, const mismatch_source *from)
{
    o->count = o->length = from->count;
    o->vocabulary = from->vocabulary;
    o->size = from->size;
    o->hidden = normal(o->count, o->size, 1, from->seed, 0);
    o->head = normal(o->vocabulary, o->size, from->spread / sqrt((double)o->size), from->seed, 1);
    strcpy(o->labels[0], "normal");
    strcpy(o->labels[1], "normal");
}

/* ---- tokens: integers, or whole numbers ---- */

static int bad_token(const char *path, uint64_t i, const char *text, size_t vocabulary)
{
    return fail(EXIT_DATA, "mismatch: %s: token %" PRIu64 " is %s: expected 0 to %zu, a row of the head", path, i, text,
                vocabulary - 1);
}

static int read_whole(mismatch_operands *o, trace *t, const char *glob)
{
    chosen c;
    char text[32];
    int code = chosen_read_from(&c, t, "mismatch", glob);
    for (size_t i = 0; i < o->count && !code; i++) {
        if (c.x[i] >= 0 && c.x[i] < (double)o->vocabulary && c.x[i] == floor(c.x[i])) {
            o->tokens[i] = (uint32_t)c.x[i];
            continue;
        }
        snprintf(text, sizeof text, "%g", c.x[i]);
        code = bad_token(trace_path(t), i, text, o->vocabulary);
    }
    chosen_clear(&c);
    return code;
}

/* A little-endian integer of so many bytes. */
static int64_t integer(const unsigned char *p, size_t width, int is_signed)
{
    uint64_t x = 0;
    for (size_t i = 0; i < width; i++)
        x |= (uint64_t)p[i] << 8 * i;
    if (is_signed && width - 1 < 7 && x >> (8 * width - 1)) /* of 1 to 7 bytes */
        x -= (uint64_t)1 << 8 * width;
    return (int64_t)x;
}

static int take_integers(mismatch_operands *o, const unsigned char *bytes, const trace_copy *c, const char *path)
{
    const int is_signed = c->tensor.dtype[0] == 'I';
    char text[32];
    for (size_t i = 0; i < o->count; i++) {
        const int64_t x = integer(bytes + i * c->width, c->width, is_signed);
        if (x < 0 || (uint64_t)x >= o->vocabulary) {
            snprintf(text, sizeof text, is_signed ? "%" PRId64 : "%" PRIu64, x);
            return bad_token(path, i, text, o->vocabulary);
        }
        o->tokens[i] = (uint32_t)x;
    }
    return 0;
}

static int read_integers(mismatch_operands *o, trace *t, size_t at)
{
    trace_copy c[TRACE_COPIES];
    trace_error error;
    if (trace_copies(t, at, c) != 1 || (c->tensor.dtype[0] != 'I' && c->tensor.dtype[0] != 'U') || c->units != o->count)
        return fail(EXIT_DATA, "mismatch: %s: the tokens are not integers but %s", trace_path(t),
                    trace_at(t, at)->dtype);
    unsigned char *bytes = array_memory(c->units, c->width);
    int code = 0;
    if (!bytes || trace_copy_units(t, c, 0, bytes, o->count, &error)) {
        if (!bytes)
            (void)trace_no_memory(t, &error);
        code = fail(error.exit, "%s", error.text);
    } else {
        code = take_integers(o, bytes, c, trace_path(t));
    }
    free(bytes);
    return code;
}

/* The tensor of the file that the name chooses, or the only one. */
static int find_tokens(size_t *at, trace *t, const char *glob)
{
    size_t found = 0;
    for (size_t i = 0; i < trace_count(t); i++)
        if ((!glob || fnmatch(glob, trace_at(t, i)->name, 0) == 0) && found++ == 0)
            *at = i;
    return found == 1 ? 0
                      : fail(found ? EXIT_USAGE : EXIT_DATA,
                             "mismatch: %s: %zu tensors%s%s: the tokens are one (--tokens-name; mpsim info lists them)",
                             trace_path(t), found, glob ? " match " : "", glob ? glob : "");
}

static int read_tokens(mismatch_operands *o, const mismatch_source *from)
{
    trace_error error;
    size_t at = 0;
    trace *t = trace_open(from->tokens, NULL, &error);
    if (!t)
        return fail(error.exit, "%s", error.text);
    int code = find_tokens(&at, t, from->tokens_name);
    const trace_tensor *x = code ? NULL : trace_at(t, at);
    if (!code && x->count != o->count)
        code = fail(EXIT_DATA, "mismatch: %s: %" PRIu64 " tokens; the hidden states are of %zu", trace_path(t),
                    x->count, o->count);
    else if (!code && x->fortran && x->rank > 1)
        code = fail(EXIT_DATA, "mismatch: %s: column-major tokens are not read: save them in C order", trace_path(t));
    if (!code) {
        o->tokens = need_memory(o->count, sizeof *o->tokens);
        escape_text(o->labels[2], sizeof o->labels[2], x->name[0] ? x->name : from->tokens);
        code = x->format ? read_whole(o, t, from->tokens_name) : read_integers(o, t, at);
    }
    trace_close(t);
    return code;
}

/* ---- from files ---- */

static double *take(chosen *c, char label[256])
{
    double *x = c->x;
    memcpy(label, c->label, sizeof c->label);
    c->x = NULL;
    return x;
}

static int bad_shape(const char *what, const char *expected, const chosen *c)
{
    char shape[128];
    return fail(EXIT_DATA, "mismatch: %s (%s) has the shape %s; expected %s", what, c->label,
                chosen_shape(shape, sizeof shape, c), expected);
}

static int read_hidden(mismatch_operands *o, const mismatch_source *from)
{
    chosen c;
    int code = chosen_read(&c, "mismatch", from->hidden, from->raw, from->hidden_name);
    if (!code && c.rank < 2)
        code = bad_shape("--hidden", "[tokens, size] or [sequences, tokens, size]", &c);
    if (!code) {
        o->size = (size_t)c.shape[c.rank - 1];
        o->length = (size_t)c.shape[c.rank - 2];
        o->count = c.n / o->size;
        o->hidden = take(&c, o->labels[0]);
    }
    chosen_clear(&c);
    return code;
}

static int read_head(mismatch_operands *o, const mismatch_source *from)
{
    chosen c;
    int code = chosen_read(&c, "mismatch", from->head, from->raw, from->head_name);
    if (!code && c.rank != 2)
        code = bad_shape("--head", "[vocabulary, size]", &c);
    if (!code && c.shape[1] != o->size)
        code = fail(EXIT_DATA,
                    "mismatch: rows of --hidden (%s) have %zu numbers and rows of --head (%s) %" PRIu64
                    ", which must be the same",
                    o->labels[0], o->size, c.label, c.shape[1]);
    if (!code && c.shape[0] > UINT32_MAX)
        code = fail(EXIT_DATA, "mismatch: --head (%s) has more than 2^32 rows", c.label);
    if (!code) {
        o->vocabulary = (size_t)c.shape[0];
        o->head = take(&c, o->labels[1]);
    }
    chosen_clear(&c);
    return code;
}

int mismatch_operands_make(mismatch_operands *o, const mismatch_source *from)
{
    int code = 0;
    memset(o, 0, sizeof *o);
    if (!from->hidden)
        generate(o, from);
    else if (!(code = read_hidden(o, from)))
        code = read_head(o, from);
    return code || !from->tokens ? code : read_tokens(o, from);
}

void mismatch_operands_clear(mismatch_operands *o)
{
    free(o->hidden);
    free(o->head);
    free(o->tokens);
    memset(o, 0, sizeof *o);
}
