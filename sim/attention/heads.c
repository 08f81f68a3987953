/* heads.c -- see heads.h. */
#include "heads.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../pass/chosen.h"
#include "generate.h"

#include <stdlib.h>
#include <string.h>

/* ---- from files ---- */

/* Sizes of [tokens, size], [heads, tokens, size] or [batch, heads, tokens, size]; -1 for other shapes. */
static int take_shape(heads_part *p, const chosen *c)
{
    if (c->rank < 2 || c->rank > 4)
        return -1;
    size_t n[4] = {1, 1, 1, 1};
    for (size_t i = 0; i < c->rank; i++)
        n[4 - c->rank + i] = (size_t)c->shape[i]; /* all are in memory */
    if (c->rank == 2) {                           /* one head: tokens first and last are the same */
        n[1] = p->tokens_first ? n[2] : 1;
        n[2] = p->tokens_first ? 1 : n[2];
    }
    p->batch = n[0];
    p->heads = n[p->tokens_first ? 2 : 1];
    p->tokens = n[p->tokens_first ? 1 : 2];
    p->size = n[3];
    return 0;
}

static int read_part(heads_part *p, trace *t, const heads_source *from, size_t which)
{
    chosen c;
    char shape[128];
    int code = chosen_read_from(&c, t, "attention", from->names[which]);
    p->tokens_first = from->tokens_first;
    if (!code && take_shape(p, &c))
        code = fail(EXIT_DATA,
                    "attention: %c (%s) has the shape %s; expected [tokens, size], [heads, tokens, size] or "
                    "[batch, heads, tokens, size]",
                    "QKV"[which], c.label, chosen_shape(shape, sizeof shape, &c));
    if (!code) {
        memcpy(p->label, c.label, sizeof p->label);
        p->x = c.x;
        c.x = NULL;
    }
    chosen_clear(&c);
    return code;
}

static int differs(const char *what, const char *a, size_t of_a, const char *b, size_t of_b)
{
    return of_a == of_b
               ? 0
               : fail(EXIT_DATA, "attention: %s has %zu %s and %s %zu, which must be the same", a, of_a, what, b, of_b);
}

static int check_shapes(const attention_heads *h)
{
    const heads_part *q = &h->q, *k = &h->k, *v = &h->v;
    int code;
    if ((code = differs("batches", "Q", q->batch, "K", k->batch)) ||
        (code = differs("batches", "Q", q->batch, "V", v->batch)) ||
        (code = differs("heads", "K", k->heads, "V", v->heads)) ||
        (code = differs("tokens", "K", k->tokens, "V", v->tokens)) ||
        (code = differs("numbers a token", "Q", q->size, "K", k->size)))
        return code;
    if (q->heads % k->heads)
        return fail(EXIT_DATA, "attention: Q has %zu heads and K %zu: not a multiple%s", q->heads, k->heads,
                    q->tokens_first ? "" : " (tokens may come first: --tokens-first)");
    return 0;
}

static int read_files(attention_heads *h, const heads_source *from)
{
    heads_part *const parts[] = {&h->q, &h->k, &h->v};
    trace_error error;
    trace *t = NULL;
    int code = 0;
    for (size_t i = 0; i < 3 && !code; i++) {
        if (i < from->n) { /* a file of its own, or the first of all three */
            trace_close(t);
            t = trace_open(from->files[i], from->raw, &error);
            code = t ? 0 : fail(error.exit, "%s", error.text);
        }
        code = code ? code : read_part(parts[i], t, from, i);
    }
    trace_close(t);
    return code ? code : check_shapes(h);
}

/* ---- generated ---- */

static void size_part(heads_part *p, const char *label, size_t heads, size_t tokens, size_t size)
{
    p->batch = 1;
    p->heads = heads;
    p->tokens = tokens;
    p->size = size;
    p->x = need_memory((uint64_t)heads * tokens * size, sizeof *p->x);
    strcpy(p->label, label);
}

static int generate(attention_heads *h, const heads_source *from)
{
    const generated_values *how = generate_find(from->values);
    if (!how)
        return fail(EXIT_USAGE, "attention: --values: '%s' is not one of normal, sink, repeated", from->values);
    size_part(&h->q, how->word, from->heads, from->queries, from->dim);
    size_part(&h->k, how->word, from->kv_heads, from->keys, from->dim);
    size_part(&h->v, how->word, from->kv_heads, from->keys, from->dim);
    generate_operands(h, how, from->seed);
    return 0;
}

int heads_make(attention_heads *h, const heads_source *from)
{
    memset(h, 0, sizeof *h);
    const int code = from->n ? read_files(h, from) : generate(h, from);
    h->groups = code ? 1 : h->q.heads / h->k.heads;
    return code;
}

/* ---- rounded ---- */

static size_t numbers_of(const heads_part *p)
{
    return p->batch * p->heads * p->tokens * p->size;
}

static int round_part(heads_part *p, const mpsim_format *f)
{
    mpsim_rounding r;
    const size_t n = numbers_of(p);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    p->format = *f;
    p->codes = need_memory(n, mpsim_format_code_bytes(f));
    mpsim_encode_array_f64(f, &r, NULL, p->codes, p->x, n, &p->counts);
    p->exact = p->counts.inexact == 0 && p->counts.underflow == 0;
    if (p->counts.overflow)
        return fail(EXIT_DATA, "attention: %s: %llu of %zu elements are beyond %s, whose largest number is %g",
                    p->label, (unsigned long long)p->counts.overflow, n, f->name, mpsim_format_max(f));
    return 0;
}

int heads_round(attention_heads *h, const mpsim_format *qk, const mpsim_format *v)
{
    int code;
    if ((code = round_part(&h->q, qk)) || (code = round_part(&h->k, qk)))
        return code;
    return round_part(&h->v, v);
}

int heads_exact(const attention_heads *h)
{
    return h->q.exact && h->k.exact && h->v.exact;
}

attention_heads heads_given(const attention_heads *h, pieces *p)
{
    attention_heads given = *h;
    pieces_make(p, h->q.x, numbers_of(&h->q), h->k.x, numbers_of(&h->k));
    given.q.format = given.k.format = p->format;
    given.q.size = given.k.size = h->q.size * p->each;
    given.q.codes = p->a;
    given.k.codes = p->b;
    given.v.format = *mpsim_format_find("binary64");
    given.v.codes = (unsigned char *)h->v.x;
    return given;
}

static void clear_part(heads_part *p)
{
    free(p->x);
    free(p->codes);
}

void heads_clear(attention_heads *h)
{
    clear_part(&h->q);
    clear_part(&h->k);
    clear_part(&h->v);
    memset(h, 0, sizeof *h);
}

/* ---- as matrices ---- */

static mpsim_matrix matrix(const heads_part *p, size_t batch, size_t head)
{
    const size_t rows_before = p->tokens_first ? batch * p->tokens * p->heads + head
                                               : (batch * p->heads + head) * p->tokens;
    return (mpsim_matrix){&p->format, p->codes + rows_before * p->size * mpsim_format_code_bytes(&p->format),
                          p->tokens_first ? p->heads * p->size : p->size, 0};
}

size_t heads_count(const attention_heads *h)
{
    return h->q.batch * h->q.heads;
}

mpsim_matrix heads_query(const attention_heads *h, size_t i)
{
    return matrix(&h->q, i / h->q.heads, i % h->q.heads);
}

mpsim_matrix heads_key(const attention_heads *h, size_t i)
{
    return matrix(&h->k, i / h->q.heads, i % h->q.heads / h->groups);
}

mpsim_matrix heads_value(const attention_heads *h, size_t i)
{
    return matrix(&h->v, i / h->q.heads, i % h->q.heads / h->groups);
}
