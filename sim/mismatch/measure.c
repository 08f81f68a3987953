/* measure.c -- see measure.h. */
#include "measure.h"

#include "attend.h"
#include "logsoftmax.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../process/progress.h"

#include <threads/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, LOGITS_AT_ONCE = 1 << 21, ROWS_AT_LEAST = 16 };

static const uint64_t draws = 3ull << 32; /* the stream of what is drawn */
static const char *const side_names[] = {"A", "B", "exact"};

/* H and W in the format of a side. */
typedef struct rounded {
    operand hidden, head;
} rounded;

/* Some tokens: their logits. */
typedef struct part {
    mismatch *m;
    size_t first, n;
    double *logits[SIDES + 1]; /* the last are exact */
    float *x[SIDES];           /* the same numbers   */
} part;

/* ---- operands ---- */

static int all_binary32(const operand *o)
{
    for (size_t i = 0; i < o->rows * o->depth; i++)
        if ((double)(float)o->x[i] != o->x[i])
            return 0;
    return 1;
}

static int round_operand(operand *to, const operand *o, const mpsim_format *f, const char *side, const char *option)
{
    char what[64];
    snprintf(what, sizeof what, "side %s: %s", side, option);
    *to = *o;
    const int code = dot_operand_encode(to, f, MPSIM_ROUND_NEAREST_EVEN, 1);
    return code ? code : dot_operand_overflow(to, "mismatch", what, "");
}

/* Hidden states as a cache gives them back. */
static void through_cache(double *to, const arithmetic *a, const operand *o)
{
    const size_t n = o->rows * o->depth;
    const float whole = a->scale == ARITHMETIC_TENSOR ? mismatch_keep_scale(o->x, n, &a->cache) : 1;
    for (size_t at = 0; at < n; at += o->depth)
        mismatch_keep(to + at, o->x + at, o->depth, &a->cache,
                      a->scale == ARITHMETIC_TOKEN ? mismatch_keep_scale(o->x + at, o->depth, &a->cache) : whole);
}

static int round_cached(operand *to, const operand *o, const arithmetic *a, const char *name)
{
    operand cached = *o;
    cached.x = need_memory(o->rows * o->depth, sizeof *cached.x);
    through_cache(cached.x, a, o);
    const int code = round_operand(to, &cached, &a->operands, name, "--hidden");
    to->x = o->x;
    free(cached.x);
    return code;
}

static int round_side(rounded *r, const operand *hidden, const operand *head, const arithmetic *a, const char *name)
{
    const int code = a->cached ? round_cached(&r->hidden, hidden, a, name)
                               : round_operand(&r->hidden, hidden, &a->operands, name, "--hidden");
    return code ? code : round_operand(&r->head, head, &a->operands, name, "--head");
}

/* Nothing is rounded: binary64, or binary32 where that has all numbers. */
static int keep_both(rounded *r, const operand *hidden, const operand *head, const char *name)
{
    const int narrow = all_binary32(hidden) && all_binary32(head);
    const mpsim_format *f = mpsim_format_find(narrow ? "binary32" : "binary64");
    const int code = round_operand(&r->hidden, hidden, f, name, "--hidden");
    return code ? code : round_operand(&r->head, head, f, name, "--head");
}

/* The operands of side s, or of SIDES: exact. */
static int make_side(rounded *r, const mismatch *m, int s)
{
    const mismatch_operands *o = m->o;
    const arithmetic *a = s < SIDES ? &m->sides[s] : NULL;
    operand hidden = o->hidden;
    double *x = o->attends ? need_memory((uint64_t)o->count * o->size, sizeof *x) : NULL;
    int code = 0;
    if (x) {
        hidden.x = x;
        code = mismatch_attend(x, o, a, side_names[s]);
    }
    if (!code)
        code = a ? round_side(r, &hidden, &o->head, a, side_names[s]) : keep_both(r, &hidden, &o->head, side_names[s]);
    free(x);
    r->hidden.x = NULL;
    return code;
}

/* ---- logits ---- */

static int multiply(part *p, const rounded *r, int side, const mpsim_model *m, const dot_split *split)
{
    operand some = r->hidden;
    some.rows = p->n;
    some.codes += p->first * some.depth * mpsim_format_code_bytes(&some.format);
    const mpsim_status s = dot_results(p->logits[side], m, split, &some, &r->head, some.depth);
    progress_add(p->n);
    return s == MPSIM_OK ? 0
                         : fail(s == MPSIM_ERANGE ? EXIT_USAGE : EXIT_IO, "mismatch: side %s: model '%s' of %s: %s",
                                side_names[side], m->name, some.format.name, mpsim_status_string(s));
}

static int multiply_side(part *p, const rounded *r, int side)
{
    const arithmetic *a = &p->m->sides[side];
    const size_t n = p->n * p->m->o->vocabulary;
    double *const x = p->logits[side];
    mpsim_rounding nearest;
    const int code = multiply(p, r, side, &a->model, &a->split);
    if (code)
        return code;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_round_array_f64(&a->logits, &nearest, NULL, x, x, n, NULL);
    return 0;
}

static int multiply_exactly(part *p, const rounded *r)
{
    mpsim_model exact;
    const dot_split whole = {.parts = 1};
    (void)mpsim_model_parse(&exact, "exact:binary64");
    return multiply(p, r, SIDES, &exact, &whole);
}

/* ---- a token ---- */

/* The log-softmax of a row: log p of word i is (x[i] - x[at]) - rest. */
typedef struct distribution {
    const double *x;
    size_t n, at; /* the first largest                                   */
    double rest;  /* log of the sum of exp(x[i] - x[at]): of 1 and others */
} distribution;

static distribution normalise(const double *x, size_t n)
{
    distribution s = {x, n, 0, 0};
    double others = 0;
    for (size_t i = 1; i < n; i++)
        s.at = x[i] > x[s.at] ? i : s.at;
    for (size_t i = 0; i < n; i++)
        others += i == s.at ? 0 : exp(x[i] - x[s.at]);
    s.rest = log1p(others);
    return s;
}

static double log_of(const distribution *s, size_t i)
{
    return s->x[i] - s->x[s->at] - s->rest;
}

static int is_finite(const distribution *s)
{
    return isfinite(s->x[s->at]) && isfinite(s->rest);
}

/* A word, for u in (0, 1). */
static uint32_t draw(const distribution *s, double u)
{
    double sum = 0;
    size_t last = s->n - 1;
    for (size_t i = 0; i < s->n; i++) {
        if (s->x[i] == -HUGE_VAL)
            continue;
        last = i;
        sum += exp(log_of(s, i));
        if (u < sum)
            break;
    }
    return (uint32_t)last;
}

/* KL(A || B), the sum of p (e^d - 1 - d) with d = log q - log p: e^d - 1 adds up to nothing, and no term is below 0, so that
 * nothing cancels where A and B are near. */
static double divergence(const distribution *a, const distribution *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->n; i++) {
        const double log_a = log_of(a, i), d = log_of(b, i) - log_a;
        if (log_a == -HUGE_VAL) { /* the limit of p (e^d - 1 - d) */
            sum += exp(log_of(b, i));
            continue;
        }
        const double term = expm1(d) - d;
        sum += exp(log_a) * (term < 0 ? 0 : term); /* below 0 by its own rounding alone */
    }
    return sum;
}

static int tempers(const arithmetic *a)
{
    return a->temperature != 1 || a->top_k || a->top_p < 1;
}

static int is_tempered_alike(const arithmetic *a)
{
    return a[0].temperature == a[1].temperature && a[0].top_k == a[1].top_k && a[0].top_p == a[1].top_p;
}

/* The logits of a token as each side has them at last, and the exact ones. */
static void temper(const part *p, size_t from, size_t n)
{
    const arithmetic *a = p->m->sides;
    double *sorted = tempers(&a[0]) || tempers(&a[1]) ? need_memory(n, sizeof *sorted) : NULL;
    for (int i = 0; i < SIDES && sorted; i++)
        mismatch_temper(&a[i], p->logits[i] + from, sorted, n, 1);
    if (sorted && is_tempered_alike(a))
        mismatch_temper(&a[0], p->logits[SIDES] + from, sorted, n, 0);
    free(sorted);
    for (int i = 0; i < SIDES; i++)
        for (size_t k = 0; k < n; k++)
            p->x[i][from + k] = (float)p->logits[i][from + k];
}

static double log_probability(const arithmetic *a, const float *x, size_t n, uint32_t word)
{
    float *room = a->chunk || a->ranks > 1 ? need_memory(2 * (uint64_t)n, sizeof *room) : NULL;
    const double log_p = mismatch_log_probability(a, x, room, n, word);
    free(room);
    return log_p;
}

static void measure_token(int at, void *context)
{
    const part *p = context;
    const mismatch *m = p->m;
    const size_t n = m->o->vocabulary, from = (size_t)at * n, place = p->first + (size_t)at;
    mismatch_token *const t = &m->tokens[place];
    distribution s[SIDES + 1];
    temper(p, from, n);
    for (int i = 0; i <= SIDES; i++)
        s[i] = normalise(p->logits[i] + from, n);
    const double u = ((double)mpsim_rng_word(m->seed, draws, place) + 0.5) * 0x1p-32;
    t->id = m->o->tokens ? m->o->tokens[place] : draw(&s[0], u);
    t->differs = s[0].at != s[1].at;
    for (int i = 0; i < SIDES; i++)
        t->lp[i] = log_probability(&m->sides[i], p->x[i] + from, n, t->id);
    t->exact = log_of(&s[SIDES], t->id);
    t->kl = is_finite(&s[0]) && is_finite(&s[1]) ? divergence(&s[0], &s[1]) : (double)NAN;
}

/* ---- all of them ---- */

static void add_up(mismatch *m)
{
    double sums[SIDES][2] = {{0}}, kl = 0;
    for (size_t i = 0; i < m->o->count; i++) {
        const mismatch_token *t = &m->tokens[i];
        for (int s = 0; s < SIDES; s++) {
            const double error = t->lp[s] - t->exact;
            if (!isfinite(error))
                continue;
            m->errors[s].count++;
            sums[s][0] += error;
            sums[s][1] += fabs(error);
            m->errors[s].largest = fmax(m->errors[s].largest, fabs(error));
        }
        m->differing += (uint64_t)t->differs;
        if (isfinite(t->kl)) {
            m->kl_count++;
            kl += t->kl;
            m->largest_kl = fmax(m->largest_kl, t->kl);
        }
    }
    for (int s = 0; s < SIDES; s++) {
        m->errors[s].mean = sums[s][0] / (double)m->errors[s].count;
        m->errors[s].mean_magnitude = sums[s][1] / (double)m->errors[s].count;
    }
    m->mean_kl = kl / (double)m->kl_count;
}

static int measure_part(part *p, const rounded *r)
{
    int code = multiply_exactly(p, &r[SIDES]);
    for (int s = 0; s < SIDES && !code; s++)
        code = multiply_side(p, &r[s], s);
    if (!code)
        parallel_for((int)p->n, measure_token, p);
    return code;
}

static int measure_parts(mismatch *m, const rounded *r)
{
    const size_t words = m->o->vocabulary, fit = LOGITS_AT_ONCE / words;
    size_t most = fit > ROWS_AT_LEAST ? fit : ROWS_AT_LEAST;
    int code = 0;
    most = most < m->o->count ? most : m->o->count;
    part p = {.m = m};
    for (int s = 0; s <= SIDES; s++)
        p.logits[s] = need_memory((uint64_t)most * words, sizeof *p.logits[s]);
    for (int s = 0; s < SIDES; s++)
        p.x[s] = need_memory((uint64_t)most * words, sizeof *p.x[s]);
    progress_steps("logits of tokens", (uint64_t)m->o->count * (SIDES + 1));
    for (; p.first < m->o->count && !code; p.first += p.n) {
        p.n = m->o->count - p.first < most ? m->o->count - p.first : most;
        code = measure_part(&p, r);
    }
    for (int s = 0; s <= SIDES; s++)
        free(p.logits[s]);
    for (int s = 0; s < SIDES; s++)
        free(p.x[s]);
    return code;
}

int mismatch_measure(mismatch *m)
{
    const mismatch_operands *o = m->o;
    rounded r[SIDES + 1] = {{.hidden = {.x = NULL}}};
    int code = 0;
    m->tokens = need_memory(o->count, sizeof *m->tokens);
    for (int s = 0; s <= SIDES && !code; s++)
        code = make_side(&r[s], m, s);
    if (!code && !(code = measure_parts(m, r)))
        add_up(m);
    for (int s = 0; s <= SIDES; s++) {
        free(r[s].hidden.codes);
        free(r[s].head.codes);
    }
    return code;
}

void mismatch_clear(mismatch *m)
{
    free(m->tokens);
    m->tokens = NULL;
}
