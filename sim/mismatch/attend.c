/* attend.c -- see attend.h. */
#include "attend.h"

#include "../array/need.h"
#include "../cli/options.h"

#include <threads/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- caches ---- */

float mismatch_keep_scale(const double *x, size_t n, const mpsim_format *f)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most == 0 ? 1 : (float)(most / mpsim_format_max(f));
}

void mismatch_keep(double *to, const double *x, size_t n, const mpsim_format *f, float scale)
{
    const double largest = mpsim_format_max(f);
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n; i++) {
        float y = (float)x[i] / scale;
        y = (float)fmax(-largest, fmin(largest, (double)y));
        (void)mpsim_round_array_f32(f, &nearest, NULL, &y, &y, 1, NULL);
        to[i] = (double)(y * scale);
    }
}

static size_t row_of(const heads_part *p, size_t batch, size_t head, size_t token)
{
    return p->tokens_first ? (batch * p->tokens + token) * p->heads + head
                           : (batch * p->heads + head) * p->tokens + token;
}

static size_t numbers(const heads_part *p)
{
    return p->of.rows * p->of.depth;
}

/* Scales of the heads: each is the largest of the head's tokens in all batches. */
static void head_scales(float *scale, const heads_part *p, const mpsim_format *f)
{
    for (size_t h = 0; h < p->heads; h++) {
        double most = 0;
        for (size_t i = 0; i < p->batch * p->tokens; i++) {
            const double *x = p->of.x + row_of(p, i / p->tokens, h, i % p->tokens) * p->size;
            for (size_t c = 0; c < p->size; c++)
                most = fmax(most, fabs(x[c]));
        }
        scale[h] = mismatch_keep_scale(&most, 1, f);
    }
}

/* K or V of all batches and heads as the cache gives them back. */
static void keep_part(double *to, const heads_part *p, const arithmetic *a)
{
    float *scale = need_memory(p->heads, sizeof *scale);
    const float whole = a->kv_scale == ARITHMETIC_KV_TENSOR ? mismatch_keep_scale(p->of.x, numbers(p), &a->kv) : 1;
    for (size_t h = 0; h < p->heads; h++)
        scale[h] = whole;
    if (a->kv_scale == ARITHMETIC_KV_HEAD)
        head_scales(scale, p, &a->kv);
    for (size_t h = 0; h < p->heads; h++)
        for (size_t i = 0; i < p->batch * p->tokens; i++) {
            const size_t at = row_of(p, i / p->tokens, h, i % p->tokens) * p->size;
            const double *x = p->of.x + at;
            mismatch_keep(to + at, x, p->size, &a->kv,
                          a->kv_scale == ARITHMETIC_KV_TOKEN ? mismatch_keep_scale(x, p->size, &a->kv) : scale[h]);
        }
    free(scale);
}

/* ---- attention ---- */

static int failed(mpsim_status s, const char *side)
{
    return fail(s == MPSIM_ERANGE ? EXIT_USAGE : EXIT_IO, "mismatch: side %s: attention: %s", side,
                mpsim_status_string(s));
}

static mpsim_attention_shape shape_of(const attention_heads *h)
{
    return (mpsim_attention_shape){h->q.tokens, h->k.tokens, h->q.size, h->v.size};
}

/* The results of a head, added to the columns of the head. */
static void place(double *x, const attention_heads *h, size_t i, const double *y)
{
    const size_t size = h->v.size, batch = i / h->q.heads, head = i % h->q.heads;
    for (size_t t = 0; t < h->q.tokens; t++)
        for (size_t c = 0; c < size; c++)
            x[((batch * h->q.tokens + t) * h->q.heads + head) * size + c] += y[t * size + c];
}

static mpsim_status attend_head(double *y, float *narrow, const mpsim_attention *a, const attention_heads *h, size_t i)
{
    const mpsim_attention_shape shape = shape_of(h);
    const mpsim_matrix q = attention_heads_query(h, i), k = attention_heads_key(h, i), v = attention_heads_value(h, i);
    if (!narrow)
        return mpsim_attention_exact(a, &shape, &q, &k, &v, y, &parallel_pool);
    const mpsim_status s = mpsim_attention_forward(a, &shape, &q, &k, &v, narrow, NULL, NULL, NULL, NULL,
                                                   &parallel_pool);
    for (size_t c = 0; c < shape.queries * shape.size && s == MPSIM_OK; c++)
        y[c] = (double)narrow[c];
    return s;
}

/* dim: numbers of a token of Q, of which h may have several parts. */
static int attend(double *x, const attention_heads *h, size_t dim, int exact, const char *side)
{
    const size_t n = h->q.tokens * h->v.size;
    double *y = need_memory(n, sizeof *y);
    float *narrow = exact ? NULL : need_memory(n, sizeof *narrow);
    mpsim_model sums;
    mpsim_attention a;
    mpsim_status s = mpsim_model_parse(&sums, "exact");
    mpsim_attention_init(&a, dim);
    a.scores = a.context = &sums;
    a.causal = 1;
    for (size_t i = 0; i < attention_heads_count(h) && s == MPSIM_OK; i++) {
        s = attend_head(y, narrow, &a, h, i);
        if (s == MPSIM_OK)
            place(x, h, i, y);
    }
    free(narrow);
    free(y);
    return s == MPSIM_OK ? 0 : failed(s, side);
}

/* The operands of a side in h, which shares only the queries' numbers with o. */
static int round_heads(attention_heads *h, const arithmetic *a, const char *side)
{
    heads_part *const parts[] = {&h->q, &h->k, &h->v};
    int code = 0;
    for (size_t i = 0; i < 3 && !code; i++) {
        char what[64];
        snprintf(what, sizeof what, "side %s: %s", side, (const char *const[]){"--query", "--key", "--value"}[i]);
        code = dot_operand_encode(&parts[i]->of, &a->operands, MPSIM_ROUND_NEAREST_EVEN, 1);
        code = code ? code : dot_operand_overflow(&parts[i]->of, "mismatch", what, "");
    }
    return code;
}

static int attend_rounded(double *x, const mismatch_operands *o, const arithmetic *a, const char *side)
{
    attention_heads h = o->heads;
    heads_part *const kept[] = {&h.k, &h.v};
    for (size_t i = 0; i < 2; i++) {
        const heads_part from = *kept[i];
        double *const x_kept = kept[i]->of.x = need_memory(numbers(&from), sizeof *x_kept);
        if (a->kv_cached)
            keep_part(x_kept, &from, a);
        else
            memcpy(x_kept, from.of.x, numbers(&from) * sizeof *x_kept);
    }
    const int code = round_heads(&h, a, side);
    const int end = code ? code : attend(x, &h, h.q.size, 0, side);
    free(h.q.of.codes);
    dot_operand_clear(&h.k.of);
    dot_operand_clear(&h.v.of);
    return end;
}

static int attend_exactly(double *x, const mismatch_operands *o, const char *side)
{
    attention_heads h = o->heads;
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    pieces p;
    int code = attention_heads_round(&h, "mismatch", binary32, binary32);
    if (!code && attention_heads_exact(&h)) {
        code = attend(x, &h, h.q.size, 1, side);
    } else if (!code) {
        const attention_heads given = attention_heads_given(&h, &p);
        code = attend(x, &given, h.q.size, 1, side);
        dot_pieces_clear(&p);
    }
    free(h.q.of.codes);
    free(h.k.of.codes);
    free(h.v.of.codes);
    return code;
}

/* ---- behind attention ---- */

static void normalise(double *x, size_t n, int narrow)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    const double root = sqrt(squares / (double)n);
    for (size_t i = 0; i < n && root > 0; i++)
        x[i] = narrow ? (double)(float)(x[i] / root) : x[i] / root;
}

int mismatch_attend(double *x, const mismatch_operands *o, const arithmetic *a, const char *side)
{
    memcpy(x, o->hidden.x, o->count * o->size * sizeof *x);
    const int code = a ? attend_rounded(x, o, a, side) : attend_exactly(x, o, side);
    for (size_t i = 0; i < o->count && !code; i++)
        normalise(x + i * o->size, o->size, a != NULL);
    return code;
}
