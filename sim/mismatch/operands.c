/* operands.c -- see operands.h. */
#include "operands.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../text/words.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- generated ---- */

static void normal(operand *o, size_t rows, size_t size, double deviation, const mismatch_source *from, uint64_t stream)
{
    int distribution = 0;
    (void)dot_distribution_find(&distribution, "normal");
    dot_operand_generate(o, rows, size, distribution, from->seed, stream);
    for (size_t i = 0; i < rows * size; i++)
        o->x[i] = (double)(float)(deviation * o->x[i]);
}

/* No hidden states beside those of attention. */
static void empty(mismatch_operands *o)
{
    o->hidden = (operand){
        .x = need_memory((uint64_t)o->count * o->size, sizeof *o->hidden.x), .rows = o->count, .depth = o->size};
    for (size_t i = 0; i < o->count * o->size; i++)
        o->hidden.x[i] = 0;
}

static int generate(mismatch_operands *o, const mismatch_source *from)
{
    enum { DIM = 64 };
    const size_t dim = from->size % DIM ? from->size : DIM, heads = from->size / dim;
    const heads_source qkv = {.values = "normal",
                              .heads = heads,
                              .kv_heads = heads,
                              .queries = from->count,
                              .keys = from->count,
                              .dim = dim,
                              .seed = from->seed + 1,
                              .verb = "mismatch"};
    o->count = o->length = from->count;
    o->vocabulary = from->vocabulary;
    o->size = from->size;
    o->attends = from->attends;
    if (o->attends)
        empty(o);
    else
        normal(&o->hidden, o->count, o->size, 1, from, 0);
    normal(&o->head, o->vocabulary, o->size, from->spread / sqrt((double)o->size), from, 1);
    return o->attends ? attention_heads_make(&o->heads, &qkv) : 0;
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
    int code = pass_chosen_read_from(&c, t, "mismatch", glob);
    for (size_t i = 0; i < o->count && !code; i++) {
        if (c.x[i] >= 0 && c.x[i] < (double)o->vocabulary && c.x[i] == floor(c.x[i])) {
            o->tokens[i] = (uint32_t)c.x[i];
            continue;
        }
        snprintf(text, sizeof text, "%g", c.x[i]);
        code = bad_token(trace_path(t), i, text, o->vocabulary);
    }
    pass_chosen_clear(&c);
    return code;
}

/* The integer that a code of so many bytes is. */
static int64_t integer(uint64_t code, size_t width, int is_signed)
{
    if (is_signed && width - 1 < 7 && code >> (8 * width - 1)) /* of 1 to 7 bytes */
        code -= (uint64_t)1 << 8 * width;
    return (int64_t)code;
}

static int take_integers(mismatch_operands *o, const uint64_t *codes, const trace_copy *c, const char *path)
{
    const int is_signed = c->tensor.dtype[0] == 'I';
    char text[32];
    for (size_t i = 0; i < o->count; i++) {
        const int64_t x = integer(codes[i], c->width, is_signed);
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
    uint64_t *codes;
    if (trace_copies(t, at, c) != 1 || (c->tensor.dtype[0] != 'I' && c->tensor.dtype[0] != 'U') || c->units != o->count)
        return fail(EXIT_DATA, "mismatch: %s: tokens must be integers, not %s", trace_path(t), trace_at(t, at)->dtype);
    int code = pass_chosen_codes(&codes, t, c);
    if (!code)
        code = take_integers(o, codes, c, trace_path(t));
    free(codes);
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
        code = fail(EXIT_DATA, "mismatch: %s: tokens are column-major: save them in C order", trace_path(t));
    if (!code) {
        o->tokens = need_memory(o->count, sizeof *o->tokens);
        escape_text(o->label, sizeof o->label, x->name[0] ? x->name : from->tokens);
        code = x->format ? read_whole(o, t, from->tokens_name) : read_integers(o, t, at);
    }
    trace_close(t);
    return code;
}

/* ---- from files ---- */

static int read_heads(mismatch_operands *o, const mismatch_source *from)
{
    char *files[3];
    for (size_t i = 0; i < 3; i++)
        files[i] = from->qkv[i] ? from->qkv[i] : from->qkv[0];
    const heads_source qkv = {.files = files,
                              .n = 3,
                              .names = {from->qkv_names[0], from->qkv_names[1], from->qkv_names[2]},
                              .tokens_first = from->tokens_first,
                              .raw = from->raw,
                              .verb = "mismatch"};
    const int code = attention_heads_make(&o->heads, &qkv);
    o->attends = 1;
    o->length = o->heads.q.tokens;
    o->count = o->heads.q.batch * o->length;
    o->size = o->heads.q.heads * o->heads.v.size;
    return code;
}

static int bad_shape(const char *what, const char *expected, const chosen *c)
{
    char shape[128];
    return fail(EXIT_DATA, "mismatch: %s (%s) has the shape %s; expected %s", what, c->label,
                text_shape(shape, sizeof shape, c->shape, c->rank), expected);
}

static int read_hidden(mismatch_operands *o, const mismatch_source *from)
{
    chosen c;
    int code = pass_chosen_read(&c, "mismatch", from->hidden, from->raw, from->hidden_name);
    if (!code && c.rank < 2)
        code = bad_shape("--hidden", "[tokens, size] or [sequences, tokens, size]", &c);
    if (!code && o->attends && (c.n != o->count * o->size || c.shape[c.rank - 1] != o->size))
        code = fail(EXIT_DATA,
                    "mismatch: --hidden (%s) has %zu rows of %" PRIu64
                    " numbers and attention %zu rows of %zu, which must be the same",
                    c.label, c.n / (size_t)c.shape[c.rank - 1], c.shape[c.rank - 1], o->count, o->size);
    if (!code) {
        o->length = (size_t)c.shape[c.rank - 2];
        dot_operand_take(&o->hidden, &c);
        o->size = o->hidden.depth;
        o->count = o->hidden.rows;
    }
    pass_chosen_clear(&c);
    return code;
}

static int read_head(mismatch_operands *o, const mismatch_source *from)
{
    chosen c;
    int code = pass_chosen_read(&c, "mismatch", from->head, from->raw, from->head_name);
    if (!code && c.rank != 2)
        code = bad_shape("--head", "[vocabulary, size]", &c);
    if (!code && c.shape[1] != o->size)
        code = fail(EXIT_DATA,
                    "mismatch: rows of %s (%s) have %zu numbers and rows of --head (%s) %" PRIu64
                    ", which must be the same",
                    o->hidden.label[0] ? "--hidden" : "attention",
                    o->hidden.label[0] ? o->hidden.label : o->heads.q.of.label, o->size, c.label, c.shape[1]);
    if (!code && c.shape[0] > UINT32_MAX)
        code = fail(EXIT_DATA, "mismatch: --head (%s) has more than 2^32 rows", c.label);
    if (!code) {
        dot_operand_take(&o->head, &c);
        o->vocabulary = o->head.rows;
    }
    pass_chosen_clear(&c);
    return code;
}

int mismatch_operands_make(mismatch_operands *o, const mismatch_source *from)
{
    int code = 0;
    memset(o, 0, sizeof *o);
    if (!from->hidden && !from->qkv[0]) {
        code = generate(o, from);
    } else {
        code = from->qkv[0] ? read_heads(o, from) : 0;
        if (!code && from->hidden)
            code = read_hidden(o, from);
        else if (!code)
            empty(o);
        code = code ? code : read_head(o, from);
    }
    return code || !from->tokens ? code : read_tokens(o, from);
}

void mismatch_operands_clear(mismatch_operands *o)
{
    attention_heads_clear(&o->heads);
    dot_operand_clear(&o->hidden);
    dot_operand_clear(&o->head);
    free(o->tokens);
    memset(o, 0, sizeof *o);
}
