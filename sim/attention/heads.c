/* heads.c -- see heads.h. */
#include "heads.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../text/words.h"
#include "../pass/chosen.h"
#include "attention.h"

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
    int code = pass_chosen_read_from(&c, t, from->verb, from->names[which]);
    p->tokens_first = from->tokens_first;
    if (!code && take_shape(p, &c))
        code = fail(EXIT_DATA,
                    "%s: %c (%s) has the shape %s; expected [tokens, size], [heads, tokens, size] or "
                    "[batch, heads, tokens, size]",
                    from->verb, "QKV"[which], c.label, text_shape(shape, sizeof shape, c.shape, c.rank));
    if (!code)
        dot_operand_take(&p->of, &c);
    pass_chosen_clear(&c);
    return code;
}

static int differs(const char *verb, const char *what, const char *a, size_t of_a, const char *b, size_t of_b)
{
    return of_a == of_b
               ? 0
               : fail(EXIT_DATA, "%s: %s has %zu %s and %s %zu, which must be the same", verb, a, of_a, what, b, of_b);
}

static int check_shapes(const attention_heads *h, const char *verb)
{
    const heads_part *q = &h->q, *k = &h->k, *v = &h->v;
    int code;
    if ((code = differs(verb, "batches", "Q", q->batch, "K", k->batch)) ||
        (code = differs(verb, "batches", "Q", q->batch, "V", v->batch)) ||
        (code = differs(verb, "heads", "K", k->heads, "V", v->heads)) ||
        (code = differs(verb, "tokens", "K", k->tokens, "V", v->tokens)) ||
        (code = differs(verb, "numbers a token", "Q", q->size, "K", k->size)))
        return code;
    if (q->heads % k->heads)
        return fail(EXIT_DATA, "%s: Q has %zu heads and K %zu: not a multiple%s", verb, q->heads, k->heads,
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
    return code ? code : check_shapes(h, from->verb);
}

/* ---- generated ---- */

static void generate_part(heads_part *p, const heads_source *from, uint64_t stream, size_t heads, size_t tokens)
{
    int normal = 0;
    (void)dot_distribution_find(&normal, "normal");
    *p = (heads_part){.batch = 1, .heads = heads, .tokens = tokens, .size = from->dim};
    dot_operand_generate(&p->of, heads * tokens, from->dim, normal, from->seed, stream);
    strcpy(p->of.label, from->values);
}

static int generate(attention_heads *h, const heads_source *from)
{
    const generated_values *how = attention_generate_find(from->values);
    if (!how)
        return fail(EXIT_USAGE, "%s: --values: '%s' is not one of normal, sink, repeated", from->verb, from->values);
    generate_part(&h->q, from, 0, from->heads, from->queries);
    generate_part(&h->k, from, 1, from->kv_heads, from->keys);
    generate_part(&h->v, from, 2, from->kv_heads, from->keys);
    attention_generate_operands(h, how, from->seed);
    return 0;
}

int attention_heads_make(attention_heads *h, const heads_source *from)
{
    memset(h, 0, sizeof *h);
    const int code = from->n ? read_files(h, from) : generate(h, from);
    h->groups = code ? 1 : h->q.heads / h->k.heads;
    return code;
}

/* ---- rounded ---- */

static size_t numbers_of(const heads_part *p)
{
    return p->of.rows * p->of.depth;
}

int attention_heads_round(attention_heads *h, const char *verb, const mpsim_format *qk, const mpsim_format *v)
{
    heads_part *const parts[] = {&h->q, &h->k, &h->v};
    int code = 0;
    for (size_t i = 0; i < 3 && !code; i++) {
        operand *o = &parts[i]->of;
        code = dot_operand_encode(o, i < 2 ? qk : v, MPSIM_ROUND_NEAREST_EVEN, 1);
        code = code ? code : dot_operand_overflow(o, verb, o->label, "");
    }
    return code;
}

int attention_heads_exact(const attention_heads *h)
{
    return h->q.of.exact && h->k.of.exact && h->v.of.exact;
}

attention_heads attention_heads_given(const attention_heads *h, pieces *p)
{
    attention_heads given = *h;
    dot_pieces_make(p, h->q.of.x, numbers_of(&h->q), h->k.of.x, numbers_of(&h->k));
    given.q.of.format = given.k.of.format = p->format;
    given.q.size = given.k.size = h->q.size * p->each;
    given.q.of.codes = p->a;
    given.k.of.codes = p->b;
    given.v.of.format = *mpsim_format_find("binary64");
    given.v.of.codes = (unsigned char *)h->v.of.x;
    return given;
}

void attention_heads_clear(attention_heads *h)
{
    dot_operand_clear(&h->q.of);
    dot_operand_clear(&h->k.of);
    dot_operand_clear(&h->v.of);
    memset(h, 0, sizeof *h);
}

/* ---- as matrices ---- */

static mpsim_matrix matrix(const heads_part *p, size_t batch, size_t head)
{
    const size_t rows_before = p->tokens_first ? batch * p->tokens * p->heads + head
                                               : (batch * p->heads + head) * p->tokens;
    return (mpsim_matrix){&p->of.format, p->of.codes + rows_before * p->size * mpsim_format_code_bytes(&p->of.format),
                          p->tokens_first ? p->heads * p->size : p->size, 0};
}

size_t attention_heads_count(const attention_heads *h)
{
    return h->q.batch * h->q.heads;
}

mpsim_matrix attention_heads_query(const attention_heads *h, size_t i)
{
    return matrix(&h->q, i / h->q.heads, i % h->q.heads);
}

mpsim_matrix attention_heads_key(const attention_heads *h, size_t i)
{
    return matrix(&h->k, i / h->q.heads, i % h->q.heads / h->groups);
}

mpsim_matrix attention_heads_value(const attention_heads *h, size_t i)
{
    return matrix(&h->v, i / h->q.heads, i % h->q.heads / h->groups);
}
