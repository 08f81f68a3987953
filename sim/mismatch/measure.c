/* measure.c -- see measure.h. */
#include "measure.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../cli/progress.h"

#include <train/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, LOGITS_AT_ONCE = 1 << 22, ROWS_AT_LEAST = 16 };

static const char *const side_names[] = {"A", "B", "exact"};

/* H and W in the format of a side. */
typedef struct rounded {
    operand hidden, head;
} rounded;

/* Some tokens: their logits. */
typedef struct part {
    mismatch *m;
    size_t first, n;
    double *y;       /* what a product gives            */
    float *x[SIDES]; /* logits of the sides             */
    double *exact;
} part;

/* ---- operands ---- */

static int all_binary32(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((double)(float)x[i] != x[i])
            return 0;
    return 1;
}

static int round_operand(operand *to, double *x, size_t rows, size_t size, const mpsim_format *f, const char *what,
                         const char *side)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    *to = (operand){.x = x, .rows = rows, .depth = size, .all_rows = rows, .format = *f, .scale = 1};
    to->codes = need_memory((uint64_t)rows * size, mpsim_format_code_bytes(f));
    mpsim_encode_array_f64(f, &r, NULL, to->codes, x, rows * size, &to->counts);
    return to->counts.overflow
               ? fail(EXIT_DATA, "mismatch: side %s: %llu elements of %s are beyond %s, whose largest number is %g",
                      side, (unsigned long long)to->counts.overflow, what, f->name, mpsim_format_max(f))
               : 0;
}

static int round_both(rounded *r, const mismatch_operands *o, const mpsim_format *f, const char *side)
{
    memset(r, 0, sizeof *r);
    const int code = round_operand(&r->hidden, o->hidden, o->count, o->size, f, "--hidden", side);
    return code ? code : round_operand(&r->head, o->head, o->vocabulary, o->size, f, "--head", side);
}

/* ---- logits ---- */

static int multiply(part *p, const rounded *r, const mpsim_model *m, const dot_split *split, const char *side)
{
    operand some = r->hidden;
    some.rows = p->n;
    some.codes += p->first * some.depth * mpsim_format_code_bytes(&some.format);
    const mpsim_status s = dot_results(p->y, m, split, &some, &r->head, some.depth);
    progress_add(p->n);
    return s == MPSIM_OK ? 0
                         : fail(s == MPSIM_ERANGE ? EXIT_USAGE : EXIT_IO, "mismatch: side %s: model '%s' of %s: %s",
                                side, m->name, some.format.name, mpsim_status_string(s));
}

static int multiply_side(part *p, const rounded *r, int side)
{
    const arithmetic *a = &p->m->sides[side];
    const size_t n = p->n * p->m->o->vocabulary;
    mpsim_rounding nearest;
    const int code = multiply(p, r, &a->model, &a->split, side_names[side]);
    if (code)
        return code;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_round_array_f64(&a->logits, &nearest, NULL, p->y, p->y, n, NULL);
    for (size_t i = 0; i < n; i++)
        p->x[side][i] = (float)p->y[i];
    return 0;
}

static int multiply_exactly(part *p, const rounded *r)
{
    mpsim_model exact;
    const dot_split whole = {.parts = 1};
    (void)mpsim_model_parse(&exact, "exact:binary64");
    const int code = multiply(p, r, &exact, &whole, side_names[SIDES]);
    memcpy(p->exact, p->y, p->n * p->m->o->vocabulary * sizeof *p->exact);
    return code;
}

/* ---- a token ---- */

/* max + log(sum of exp(x - max)) in binary64; *at: the first largest. */
static double log_sum(const float *x, size_t n, size_t *at)
{
    double sum = 0;
    *at = 0;
    for (size_t i = 1; i < n; i++)
        *at = x[i] > x[*at] ? i : *at;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i] - (double)x[*at]);
    return (double)x[*at] + log(sum);
}

static double log_sum_exact(const double *x, size_t n)
{
    double sum = 0, most = x[0];
    for (size_t i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

/* A word of the distribution of logits x. */
static uint32_t draw(const float *x, size_t n, double lse, double u)
{
    double sum = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        sum += exp((double)x[i] - lse);
        if (u < sum)
            return (uint32_t)i;
    }
    return (uint32_t)(n - 1);
}

/* KL(A || B), the sum of p (e^d - 1 - d) with d = log q - log p: e^d - 1 adds up to nothing, and no term is below 0, so that
 * nothing cancels where A and B are near. */
static double divergence(const float *a, const float *b, double lse_a, double lse_b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double log_a = (double)a[i] - lse_a, d = (double)b[i] - lse_b - log_a;
        sum += exp(log_a) * (expm1(d) - d);
    }
    return sum;
}

static void measure_token(int at, void *context)
{
    const part *p = context;
    const mismatch *m = p->m;
    const size_t n = m->o->vocabulary, from = (size_t)at * n, place = p->first + (size_t)at;
    mismatch_token *const t = &m->tokens[place];
    double lse[SIDES];
    size_t most[SIDES];
    for (int s = 0; s < SIDES; s++)
        lse[s] = log_sum(p->x[s] + from, n, &most[s]);
    t->id = m->o->tokens
                ? m->o->tokens[place]
                : draw(p->x[0] + from, n, lse[0], ((double)mpsim_rng_word(m->seed, 3ull << 32, place) + 0.5) * 0x1p-32);
    t->differs = most[0] != most[1];
    for (int s = 0; s < SIDES; s++) {
        float loss = NAN;
        (void)mpsim_softmax_xent(&m->sides[s].softmax, NULL, 1, n, p->x[s] + from, &t->id, 1, &loss, NULL, NULL);
        t->lp[s] = -(double)loss;
    }
    t->exact = p->exact[from + t->id] - log_sum_exact(p->exact + from, n);
    t->kl = isfinite(lse[0]) && isfinite(lse[1]) ? divergence(p->x[0] + from, p->x[1] + from, lse[0], lse[1], n)
                                                 : (double)NAN;
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
    part p = {.m = m, .y = need_memory((uint64_t)most * words, sizeof *p.y)};
    p.exact = need_memory((uint64_t)most * words, sizeof *p.exact);
    for (int s = 0; s < SIDES; s++)
        p.x[s] = need_memory((uint64_t)most * words, sizeof *p.x[s]);
    progress_steps("logits of tokens", (uint64_t)m->o->count * (SIDES + 1));
    for (; p.first < m->o->count && !code; p.first += p.n) {
        p.n = m->o->count - p.first < most ? m->o->count - p.first : most;
        code = measure_part(&p, r);
    }
    free(p.y);
    free(p.exact);
    free(p.x[0]);
    free(p.x[1]);
    return code;
}

int mismatch_measure(mismatch *m)
{
    const mismatch_operands *o = m->o;
    const int narrow = all_binary32(o->hidden, o->count * o->size) && all_binary32(o->head, o->vocabulary * o->size);
    rounded r[SIDES + 1] = {{.hidden = {.x = NULL}}};
    m->tokens = need_memory(o->count, sizeof *m->tokens);
    int code = round_both(&r[SIDES], o, mpsim_format_find(narrow ? "binary32" : "binary64"), side_names[SIDES]);
    for (int s = 0; s < SIDES && !code; s++)
        code = round_both(&r[s], o, &m->sides[s].operands, side_names[s]);
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
