/* attend.c -- the judge of attention (mpsim/judge.h). */
#include "attendformula.h"
#include "attendsearch.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_attend_roles[] = {"q",    "k",     "v",    NULL,     "o",     "lse",
                                          "mask", "heads", "bias", "slopes", "sinks", NULL};
enum { Q, K, V, O, LSE, MASK, HEADS, BIAS, SLOPES, SINKS };

enum { ROWS_MOST = 3200 };

typedef struct question {
    judge_list list;
    attend_shape s;
    attend_arrays x;
    uint8_t *mask;
    float *bias, *heads[2]; /* heads: slopes and sinks */
    attend_numbers *numbers;
} question;

/* ---- shapes ---- */

static double number(const mpsim_judge_array *x, size_t i)
{
    return mpsim_decode(x->format, element_code(x->codes, mpsim_format_code_bytes(x->format), i));
}

static mpsim_status take_heads(question *q)
{
    const judge_case *w = q->list.w;
    const mpsim_judge_array *h = w->of[HEADS];
    const size_t n = h ? h->rows * h->columns : 0;
    double count[3] = {1, 1, 1};
    if (h && (!h->format || n < 1 || n > 3))
        return judge_fail(w, MPSIM_EINVAL,
                          "heads: expected one to three numbers: heads of q, heads of k and v, batches");
    for (size_t i = 0; i < n; i++)
        count[i] = number(h, i);
    count[1] = n == 1 ? count[0] : count[1];
    for (size_t i = 0; i < 3; i++)
        if (!(count[i] >= 1) || count[i] > 0x1p30 || count[i] != floor(count[i]))
            return judge_fail(w, MPSIM_EINVAL, "heads: expected numbers of heads, found %g", count[i]);
    q->s.heads = (size_t)count[0];
    q->s.kv_heads = (size_t)count[1];
    q->s.batches = (size_t)count[2];
    if (q->s.heads % q->s.batches || q->s.kv_heads % q->s.batches || q->s.heads % q->s.kv_heads ||
        w->of[Q]->rows % q->s.heads || w->of[K]->rows % q->s.kv_heads)
        return judge_fail(w, MPSIM_EINVAL, "heads: q of %zu rows and k of %zu do not have %zu and %zu heads",
                          w->of[Q]->rows, w->of[K]->rows, q->s.heads, q->s.kv_heads);
    return MPSIM_OK;
}

/* Whether o and lse are there, and have a line or a number for each query. */
static mpsim_status take_results(const question *q)
{
    const judge_case *w = q->list.w;
    const mpsim_judge_array *o = w->of[O], *lse = w->of[LSE];
    const size_t lines = w->of[Q]->rows;
    if (!o && !lse)
        return judge_fail(w, MPSIM_EINVAL, "expected an array 'o' or 'lse', found none");
    if (o && (o->rows != lines || o->columns != q->s.size))
        return judge_fail(w, MPSIM_EINVAL, "o: expected %zu x %zu numbers, found %zu x %zu", lines, q->s.size, o->rows,
                          o->columns);
    if (lse && lse->rows * lse->columns != lines)
        return judge_fail(w, MPSIM_EINVAL, "lse: expected %zu numbers, one for each query, found %zu x %zu", lines,
                          lse->rows, lse->columns);
    return MPSIM_OK;
}

static mpsim_status take_shape(question *q)
{
    const judge_case *w = q->list.w;
    const mpsim_judge_array *of_q = w->of[Q], *k = w->of[K], *v = w->of[V];
    mpsim_status s = take_heads(q);
    for (int i = Q; i <= SINKS && s == MPSIM_OK; i++)
        s = i == MASK || i == HEADS ? MPSIM_OK : judge_has_numbers(w, w->of[i]);
    if (s != MPSIM_OK)
        return s;
    q->s.queries = of_q->rows / q->s.heads;
    q->s.keys = k->rows / q->s.kv_heads;
    q->s.dim = of_q->columns;
    q->s.size = v->columns;
    if (k->columns != q->s.dim || v->rows != k->rows || of_q->rows * v->columns == 0 || q->s.dim == 0 || q->s.keys == 0)
        return judge_fail(w, MPSIM_EINVAL,
                          "expected k as wide as q and v as high as k: q is %zu x %zu, k is %zu x %zu, v is %zu x %zu",
                          of_q->rows, of_q->columns, k->rows, k->columns, v->rows, v->columns);
    return take_results(q);
}

/* A byte that is not 0, or the number 0, is a key that is seen; -infinity and numbers below -1e4 are masked. */
static int mask_byte(uint8_t *to, const mpsim_judge_array *m, size_t i)
{
    if (!m->format) {
        *to = ((const uint8_t *)m->codes)[i] != 0;
        return 0;
    }
    const double x = number(m, i);
    *to = x == 0;
    return x == 0 || x < -1e4 ? 0 : -1;
}

/* How many matrices of queries x keys an array has; 0: another shape. */
static size_t matrices_of(const question *q, const mpsim_judge_array *m)
{
    const size_t n = m->rows / q->s.queries;
    return m->columns != q->s.keys || m->rows % q->s.queries || n == 0 || q->s.heads % n ? 0 : n;
}

static mpsim_status fail_matrices(const question *q, const mpsim_judge_array *m)
{
    return judge_fail(q->list.w, MPSIM_EINVAL,
                      "%s: expected %zu x %zu elements, for all heads or for each, found %zu x %zu", m->role,
                      q->s.queries, q->s.keys, m->rows, m->columns);
}

static mpsim_status take_mask(question *q)
{
    const mpsim_judge_array *m = q->list.w->of[MASK];
    if (!m)
        return MPSIM_OK;
    const size_t n = m->rows * m->columns;
    if (!(q->x.masks = matrices_of(q, m)))
        return fail_matrices(q, m);
    q->x.mask = q->mask = want_memory(n + 1, 1);
    for (size_t i = 0; i < n && q->mask; i++)
        if (mask_byte(&q->mask[i], m, i))
            return judge_fail(q->list.w, MPSIM_EINVAL,
                              "mask: expected bytes, or numbers 0 and -infinity, found %g; a bias has the role 'bias'",
                              number(m, i));
    return q->mask ? MPSIM_OK : MPSIM_ENOMEM;
}

static mpsim_status take_bias(question *q)
{
    const mpsim_judge_array *b = q->list.w->of[BIAS];
    if (!b)
        return MPSIM_OK;
    if (!(q->x.biases = matrices_of(q, b)))
        return fail_matrices(q, b);
    q->x.bias = q->bias = judge_numbers(b);
    return q->bias ? MPSIM_OK : MPSIM_ENOMEM;
}

/* A number for each head; the heads of all batches have the same ones. */
static mpsim_status take_of_heads(question *q, int role, const float **to)
{
    const mpsim_judge_array *x = q->list.w->of[role];
    const size_t n = x ? x->rows * x->columns : 0, own = q->s.heads / q->s.batches;
    if (!x)
        return MPSIM_OK;
    if (n != own && n != q->s.heads)
        return judge_fail(q->list.w, MPSIM_EINVAL, "%s: expected %zu numbers, one for each head, found %zu", x->role,
                          own, n);
    float *numbers = q->heads[role - SLOPES] = want_memory(q->s.heads + 1, sizeof *numbers);
    for (size_t i = 0; i < q->s.heads && numbers; i++)
        numbers[i] = (float)number(x, i % n);
    *to = numbers;
    return numbers ? MPSIM_OK : MPSIM_ENOMEM;
}

static mpsim_status take_numbers(question *q)
{
    attend_numbers *n = q->numbers;
    n->s = q->s;
    n->x = q->x;
    n->q = judge_numbers(q->x.q);
    n->k = judge_numbers(q->x.k);
    n->v = judge_numbers(q->x.v);
    n->weight = want_memory(q->s.keys + 1, sizeof *n->weight);
    return n->q && n->k && n->v && n->weight ? MPSIM_OK : MPSIM_ENOMEM;
}

/* ---- which rows there are ---- */

/* How far some results are from the exact ones of a row. */
static double distance(const question *q, const attend_row *row)
{
    const size_t output = q->list.w->of[O] ? 0 : 1;
    const mpsim_judge_array *o = q->list.w->of[output ? LSE : O];
    const size_t lines = q->s.heads * q->s.queries, columns = output ? 1 : o->columns;
    double sum = 0;
    for (size_t i = 0; i < 8; i++) {
        const size_t line = (size_t)((double)i * (double)(lines - 1) / 7), c = i * (columns - 1) / 7;
        const double y = judge_attend_exact(q->numbers, row, 0, output, line, c).value,
                     found = number(o, line * columns + c);
        sum += isfinite(found) ? fabs(found - y) : 0;
        q->numbers->of = NULL;
    }
    return sum;
}

/* Which keys the queries see, and the soft cap, one of those that models have: those whose exact values are nearest. */
static attend_row guess(const question *q)
{
    static const double caps[] = {0, 50, 30, 20};
    attend_row best = {.causal = ATTEND_ALL};
    double least = distance(q, &best);
    for (int c = ATTEND_ALL; c < ATTEND_CAUSALS - (q->s.queries == q->s.keys); c++)
        for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
            const attend_row row = {.causal = (uint8_t)c, .softcap = caps[i]};
            const double d = distance(q, &row);
            if (d < 0.5 * least) {
                least = d;
                best = row;
            }
        }
    return best;
}

static void add_one(void *list, const char *text)
{
    judge_list_add(list, "%s", text);
}

static mpsim_status add(void *question_, void *like)
{
    question *q = question_;
    const attend_row *row = like, known = row ? *row : guess(q);
    const attend_search search = {&q->x, q->s.keys, &known, add_one, &q->list};
    if (row && !judge_attend_takes(row, &q->x))
        return judge_fail(q->list.w, MPSIM_ERANGE, "'%s' does not take %s", q->list.w->like, q->x.q->format->name);
    judge_attend_search(&search);
    return MPSIM_OK;
}

/* ---- results of a row ---- */

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const attend_row *row = judge_list_at(q, which);
    float *own = y[0] ? NULL : want_memory(u->n * q->s.size + 1, sizeof *own), *o = y[0] ? y[0] : own;
    mpsim_status s = o ? MPSIM_OK : MPSIM_ENOMEM;
    for (size_t i = 0, n; i < u->n && s == MPSIM_OK; i += n) {
        const size_t line = judge_unit(u, i), query = line % q->s.queries, left = q->s.queries - query;
        n = u->at ? 1 : left < u->n - i ? left : u->n - i;
        s = judge_attend_compute(row, &q->s, &q->x, line / q->s.queries, query, n, o + i * q->s.size,
                                 y[1] ? y[1] + i : NULL);
    }
    free(own);
    return s;
}

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t at)
{
    const question *q = self;
    const size_t columns = output ? 1 : q->s.size;
    return judge_attend_exact(q->numbers, judge_list_at(q, which), formula, output, at / columns, at % columns);
}

/* ---- the answer ---- */

static mpsim_status answer(question *q)
{
    const size_t cost = q->s.keys * (q->s.dim + q->s.size), rows = ((size_t)1 << 21) / (cost + 1);
    judge_table t = {.found = {q->list.w->of[O], q->list.w->of[LSE]},
                     .outputs = 2,
                     .unit = q->s.size,
                     .units = {0, 1},
                     .plain = {0, 1},
                     .work = 512,
                     .sample = rows < 4 ? 4 : rows,
                     .compute = compute,
                     .formulas = judge_attend_formulas,
                     .formulas_n = judge_attend_formula_count(),
                     .exact = exact};
    return judge_list_answer(&q->list, &t, add);
}

mpsim_status judge_attend(judge_case *c)
{
    attend_numbers numbers = {.of = NULL};
    question q = {
        .list =
            {.w = c,
             .size = sizeof(attend_row),
             .most = ROWS_MOST,
             .read = judge_attend_read,
             .texts =
                 "attention: eager or flash, :model=NAME, :s=FORMAT, :p=FORMAT, :scale=X, :scale-on=queries or both, "
                 ":causal, :causal-first, :window=N, :softcap=X, :upcast, and of flash :tile=N, :exp2, :reciprocal, "
                 ":sum-rounded, :sink-first"},
        .x = {.q = c->of[Q], .k = c->of[K], .v = c->of[V], .masks = 1, .biases = 1},
        .numbers = &numbers};
    mpsim_status s = take_shape(&q);
    s = s == MPSIM_OK ? take_mask(&q) : s;
    s = s == MPSIM_OK ? take_bias(&q) : s;
    s = s == MPSIM_OK ? take_of_heads(&q, SLOPES, &q.x.slopes) : s;
    s = s == MPSIM_OK ? take_of_heads(&q, SINKS, &q.x.sinks) : s;
    s = s == MPSIM_OK ? take_numbers(&q) : s;
    s = s == MPSIM_OK ? answer(&q) : s;
    free(q.mask);
    free(q.bias);
    free(q.heads[0]);
    free(q.heads[1]);
    free(numbers.q);
    free(numbers.k);
    free(numbers.v);
    free(numbers.weight);
    return s;
}
