/* table.c -- see table.h. Rows are tried on some units; those that fit are computed whole. */
#include "table.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../text/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 1 << 13, UNITS_LEAST = 4, UNITS_MOST = 512, ENDINGS = 8, PIECE = 1 << 16 };

/* ---- the end of a row ---- */

static int take_word(judge_ending *e, const char *word)
{
    mpsim_round_mode mode;
    uint8_t bits;
    if (strncmp(word, "result=", 7) == 0)
        return mpsim_format_parse(&e->format, word + 7) == MPSIM_OK ? 0 : -1;
    if (strncmp(word, "round=", 6) != 0 || mpsim_round_mode_parse(&mode, &bits, word + 6) != MPSIM_OK ||
        mode >= MPSIM_ROUND_STOCHASTIC_A)
        return -1;
    e->mode = (uint8_t)mode;
    return 0;
}

int judge_ending_take(judge_ending *e, char *text)
{
    char *next;
    memset(e, 0, sizeof *e);
    e->mode = MPSIM_ROUND_NEAREST_EVEN;
    if (!strtok_r(text, "+", &next))
        return -1;
    for (const char *word = strtok_r(NULL, "+", &next); word; word = strtok_r(NULL, "+", &next))
        if (take_word(e, word))
            return -1;
    return 0;
}

static void full_name(char out[MPSIM_JUDGE_ROW], const judge_table *t, size_t row, const judge_ending *e)
{
    *out = '\0';
    (void)text_add(out, MPSIM_JUDGE_ROW, "%s", t->name(t->self, row));
    if (*e->format.name)
        (void)text_add(out, MPSIM_JUDGE_ROW, "+result=%s", e->format.name);
    if (e->mode != MPSIM_ROUND_NEAREST_EVEN)
        (void)text_add(out, MPSIM_JUDGE_ROW, "+round=%s", mpsim_round_mode_name((mpsim_round_mode)e->mode));
}

/* ---- results of a row ---- */

/* Elements of a unit of an output, but for a short last one; of an output; of units together. */
static size_t unit_of(const judge_table *t, size_t output)
{
    return t->units[output] ? t->units[output] : t->unit;
}

static size_t count_of(const judge_table *t, size_t output)
{
    return t->found[output]->rows * t->found[output]->columns;
}

static size_t length_of(const judge_table *t, size_t output, size_t unit)
{
    const size_t first = unit * unit_of(t, output), all = count_of(t, output);
    return all - first < unit_of(t, output) ? all - first : unit_of(t, output);
}

static size_t elements_of(const judge_table *t, size_t output, const judge_units *u)
{
    size_t n = 0;
    if (!u->at)
        return u->n ? (u->n - 1) * unit_of(t, output) + length_of(t, output, u->first + u->n - 1) : 0;
    for (size_t i = 0; i < u->n; i++)
        n += length_of(t, output, u->at[i]);
    return n;
}

typedef struct results {
    float *y[TABLE_OUTPUTS];
    void *codes;
    size_t n[TABLE_OUTPUTS];
} results;

static void results_clear(results *r)
{
    for (size_t o = 0; o < TABLE_OUTPUTS; o++)
        free(r->y[o]);
    free(r->codes);
}

/* Bytes of a result of an output where it is computed. */
static size_t bytes_of(const judge_table *t, size_t output)
{
    return t->coded ? mpsim_format_code_bytes(t->found[output]->format) : sizeof(float);
}

static int results_room(results *r, const judge_table *t, const judge_units *u)
{
    size_t most = 1;
    memset(r, 0, sizeof *r);
    for (size_t o = 0; o < t->outputs; o++)
        if (t->found[o]) {
            const size_t bytes = mpsim_format_code_bytes(t->found[o]->format);
            r->n[o] = elements_of(t, o, u);
            if (!(r->y[o] = want_memory(r->n[o] + 1, bytes_of(t, o))))
                return -1;
            most = most > r->n[o] * (bytes > 4 ? bytes : 4) ? most : r->n[o] * (bytes > 4 ? bytes : 4);
        }
    r->codes = want_memory(most + 1, 1);
    return r->codes ? 0 : -1;
}

typedef struct compute_job {
    const judge_table *t;
    size_t row, step;
    const judge_units *u;
    const results *to;
    mpsim_status *status; /* of each piece */
} compute_job;

static void compute_piece(size_t piece, void *job)
{
    const compute_job *c = job;
    const size_t first = piece * c->step, left = c->u->n - first;
    const judge_units u = {c->u->at ? c->u->at + first : NULL, c->u->first + first, left < c->step ? left : c->step};
    float *y[TABLE_OUTPUTS];
    for (size_t o = 0; o < TABLE_OUTPUTS; o++)
        y[o] = c->to->y[o] ? (float *)((char *)c->to->y[o] + first * unit_of(c->t, o) * bytes_of(c->t, o)) : NULL;
    c->status[piece] = c->t->compute(c->t->self, c->row, &u, y);
}

/* The numbers of some units; the room is to be cleared in any case. */
static mpsim_status compute(results *to, const judge_table *t, size_t row, const judge_units *u)
{
    const size_t step = t->whole ? u->n + !u->n : t->work >= PIECE ? 1 : PIECE / t->work;
    const size_t pieces = (u->n + step - 1) / step;
    mpsim_status s = results_room(to, t, u) ? MPSIM_ENOMEM : MPSIM_OK;
    compute_job job = {t, row, step, u, to, want_memory(pieces + 1, sizeof *job.status)};
    if (!job.status)
        return MPSIM_ENOMEM;
    if (s == MPSIM_OK)
        judge_in_pieces(t->w->pool, pieces, compute_piece, &job);
    for (size_t i = 0; i < pieces && s == MPSIM_OK; i++)
        s = job.status[i];
    free(job.status);
    return s;
}

/* Numbers as codes of the results' format, in to->codes. */
static void finish(results *to, const judge_table *t, const judge_ending *e, size_t output)
{
    const mpsim_format *f = t->found[output]->format;
    mpsim_rounding r, exact;
    if (t->coded) {
        memcpy(to->codes, to->y[output], to->n[output] * bytes_of(t, output));
        return;
    }
    mpsim_rounding_init(&r, t->plain[output] ? MPSIM_ROUND_NEAREST_EVEN : (mpsim_round_mode)e->mode);
    mpsim_rounding_init(&exact, MPSIM_ROUND_NEAREST_EVEN);
    if (!*e->format.name || t->plain[output]) {
        (void)mpsim_encode_array_f32(f, &r, NULL, to->codes, to->y[output], to->n[output], NULL);
        return;
    }
    const size_t bytes = mpsim_format_code_bytes(f);
    for (size_t i = 0; i < to->n[output]; i++) {
        const double x = mpsim_decode(&e->format, mpsim_encode_f32(&e->format, &r, to->y[output][i], 0, NULL));
        element_put_code(to->codes, bytes, i, mpsim_encode_f64(f, &exact, x, 0, NULL));
    }
}

/* How many results of these units differ. */
static uint64_t count_units(results *r, const judge_table *t, const judge_ending *e, const judge_units *u)
{
    uint64_t n = 0;
    for (size_t o = 0; o < t->outputs; o++) {
        if (!t->found[o])
            continue;
        const mpsim_format *f = t->found[o]->format;
        const size_t bytes = mpsim_format_code_bytes(f);
        finish(r, t, e, o);
        for (size_t i = 0, at = 0; i < u->n; i++) {
            const size_t unit = judge_unit(u, i), length = length_of(t, o, unit);
            const char *found = (const char *)t->found[o]->codes + unit * unit_of(t, o) * bytes;
            const judge_pair p = {f, found, (char *)r->codes + at * bytes, 1, length, !t->coded};
            at += length;
            if (memcmp(p.found, p.expected, length * bytes) == 0)
                continue;
            for (size_t k = 0; k < length; k++)
                n += !judge_pair_same(&p, k);
        }
    }
    return n;
}

static judge_units all_units(const judge_table *t)
{
    size_t o = 0;
    while (o + 1 < t->outputs && !t->found[o])
        o++;
    if (!t->found[o])
        return (judge_units){NULL, 0, 0};
    return (judge_units){NULL, 0, (count_of(t, o) + unit_of(t, o) - 1) / unit_of(t, o)};
}

/* ---- the search ---- */

typedef struct search {
    const judge_table *t;
    size_t sample[UNITS_MOST];
    judge_units some, all;
    judge_ending ending[ENDINGS];
    size_t endings;
    size_t best;
    judge_ending best_ending;
    uint64_t differ; /* of the best; UINT64_MAX: there is none */
    int no_memory;
} search;

static void take_sample(search *s)
{
    const size_t units = s->all.n, want = s->t->sample ? s->t->sample : SAMPLE / s->t->unit;
    size_t n = want < UNITS_LEAST ? UNITS_LEAST : want > UNITS_MOST ? UNITS_MOST : want;
    n = n < units ? n : units;
    for (size_t i = 0; i < n; i++)
        s->sample[i] = s->t->last ? units - n + i
                       : n < 2    ? 0
                                  : (size_t)((double)i * ((double)(units - 1) / (double)(n - 1)));
    s->some = (judge_units){s->sample, 0, n};
}

/* Whether all results of the sample are numbers of a format. */
static int holds(const search *s, const mpsim_format *f)
{
    const judge_table *t = s->t;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_TOWARD_ZERO);
    for (size_t o = 0; o < t->outputs; o++)
        for (size_t i = 0; t->found[o] && !t->plain[o] && i < s->some.n; i++)
            for (size_t k = 0; k < length_of(t, o, s->sample[i]); k++) {
                const mpsim_format *own = t->found[o]->format;
                const double y = mpsim_decode(own, element_code(t->found[o]->codes, mpsim_format_code_bytes(own),
                                                                s->sample[i] * unit_of(t, o) + k));
                unsigned flags = 0;
                if (isfinite(y) &&
                    (mpsim_encode_f64(f, &r, y, 0, &flags), flags & (MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW)))
                    return 0;
            }
    return 1;
}

static int is_narrow(const judge_table *t)
{
    for (size_t o = 0; o < t->outputs; o++)
        if (t->found[o] && !t->plain[o] && t->found[o]->format->mbits >= 23)
            return 0;
    return 1;
}

static void add_ending(search *s, const mpsim_format *f, mpsim_round_mode mode)
{
    judge_ending *e = &s->ending[s->endings++];
    memset(e, 0, sizeof *e);
    if (f)
        e->format = *f;
    e->mode = (uint8_t)mode;
}

/* The last rounding: what the results can be of. */
static void add_endings(search *s)
{
    static const char *const narrow[] = {"bf16", "fp16", "tf32"};
    add_ending(s, s->t->narrow, MPSIM_ROUND_NEAREST_EVEN);
    if (s->t->stored || s->t->coded)
        return;
    if (is_narrow(s->t))
        add_ending(s, NULL, MPSIM_ROUND_TOWARD_ZERO);
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0] && !is_narrow(s->t); i++)
        if (holds(s, mpsim_format_find(narrow[i]))) {
            add_ending(s, mpsim_format_find(narrow[i]), MPSIM_ROUND_NEAREST_EVEN);
            add_ending(s, mpsim_format_find(narrow[i]), MPSIM_ROUND_TOWARD_ZERO);
        }
}

/* How many of all results a row gives otherwise. */
static uint64_t count_all(search *s, size_t row, const judge_ending *e)
{
    results r;
    const mpsim_status status = compute(&r, s->t, row, &s->all);
    const uint64_t n = status == MPSIM_OK ? count_units(&r, s->t, e, &s->all) : UINT64_MAX;
    s->no_memory |= status == MPSIM_ENOMEM;
    results_clear(&r);
    return n;
}

/* each(s, row, ending, differ of the sample), of all rows that can be computed, until it returns 1. An end behind one that fits the sample
 * rounds nothing. */
static void each_row(search *s, int (*each)(search *s, size_t row, const judge_ending *e, uint64_t differ))
{
    int end = 0;
    for (size_t i = 0; i < s->t->rows && !end && !s->no_memory; i++) {
        results r;
        const mpsim_status status = compute(&r, s->t, i, &s->some);
        s->no_memory |= status == MPSIM_ENOMEM;
        uint64_t differ = 1;
        for (size_t e = 0; e < s->endings && status == MPSIM_OK && differ && !end; e++) {
            differ = count_units(&r, s->t, &s->ending[e], &s->some);
            end = each(s, i, &s->ending[e], differ);
        }
        results_clear(&r);
    }
}

static int keep_best(search *s, size_t row, const judge_ending *e, uint64_t differ)
{
    const uint64_t behind = (uint64_t)1 << 62; /* what does not fit the sample comes behind what does */
    const uint64_t n = differ ? differ + behind : count_all(s, row, e);
    if (n < s->differ) {
        s->differ = n;
        s->best = row;
        s->best_ending = *e;
    }
    return s->differ == 0;
}

static void find_best(search *s)
{
    s->differ = UINT64_MAX;
    each_row(s, keep_best);
    if (s->differ != UINT64_MAX && s->differ >> 62 && !s->t->w->sink)
        s->differ = count_all(s, s->best, &s->best_ending);
}

static int keep_same(search *s, size_t row, const judge_ending *e, uint64_t differ)
{
    mpsim_judgement *j = s->t->w->j;
    char name[MPSIM_JUDGE_ROW];
    if (differ)
        return 0;
    full_name(name, s->t, row, e);
    if (strcmp(name, j->row) == 0 || count_all(s, row, e))
        return 0;
    if (j->same < MPSIM_JUDGE_ROWS)
        memcpy(j->class_rows[j->same], name, sizeof name);
    j->same++;
    return 0;
}

/* The row itself, and then the others. */
static void find_class(search *s)
{
    mpsim_judgement *j = s->t->w->j;
    memcpy(j->class_rows[j->same++], j->row, sizeof j->row);
    each_row(s, keep_same);
}

/* ---- what is said ---- */

typedef struct answer {
    const judge_table *t;
    size_t row, output;
} answer;

static judge_exact value_of(const void *self, size_t formula, size_t at)
{
    const answer *a = self;
    return a->t->exact(a->t->self, a->row, formula, a->output, at);
}

static double origin_of(const void *self, size_t at)
{
    const answer *a = self;
    return a->t->origin(a->t->self, a->output, at);
}

/* The output of which most results differ. */
static size_t worst_output(uint64_t differ[TABLE_OUTPUTS], results *r, const judge_table *t, const judge_ending *e)
{
    size_t worst = t->outputs;
    for (size_t o = 0; o < t->outputs; o++) {
        judge_table one = *t;
        const judge_units all = all_units(t);
        for (size_t k = 0; k < t->outputs; k++)
            one.found[k] = k == o ? t->found[k] : NULL;
        differ[o] = t->found[o] ? count_units(r, &one, e, &all) : 0;
        if (t->found[o] && (worst == t->outputs || differ[o] > differ[worst]))
            worst = o;
    }
    return worst;
}

static double last_unit(const mpsim_format *f, const judge_ending *e)
{
    const unsigned bits = *e->format.name && e->format.mbits < f->mbits ? e->format.mbits : f->mbits;
    return ldexp(1, -(int)(bits < 23 ? bits : 23)); /* of a rounding that is not to nearest */
}

static void explain(const judge_table *t, const answer *a, const judge_pair *p, const judge_ending *e, int formulas)
{
    mpsim_judgement *j = t->w->j;
    static const judge_ending none = {.mode = MPSIM_ROUND_NEAREST_EVEN};
    if (t->plain[a->output])
        e = &none;
    const judge_formulas f = {
        t->formulas, t->formulas_n, last_unit(p->format, e),     e->mode <= MPSIM_ROUND_NEAREST_AWAY && !t->stored,
        a,           value_of,      t->origin ? origin_of : NULL};
    for (size_t i = 0; i < j->places; i++)
        j->place[i].exact = value_of(a, 0, j->place[i].row * p->columns + j->place[i].column).value;
    if (j->differ && formulas)
        judge_formulas_explain(j, p, &f);
}

/* All results of a row, for judge_count. */
static void take(const judge_table *t, results *r, const judge_ending *e)
{
    for (size_t o = 0; o < t->outputs; o++) {
        const mpsim_judge_array *found = t->found[o];
        if (!found)
            continue;
        finish(r, t, e, o);
        const judge_pair p = {found->format, found->codes, r->codes, found->rows, found->columns, 1};
        judge_take(t->w, found->role, &p);
    }
}

/* Whether rounding is found, and nothing else but signs of zeros. */
static int is_rounding(const mpsim_judgement *j)
{
    size_t rounding = 0, zero = 0;
    for (size_t i = 0; i < j->findings; i++) {
        rounding += strcmp(j->finding[i].cause, "rounding") == 0;
        zero += strcmp(j->finding[i].cause, "zero") == 0;
    }
    return rounding && rounding + zero == j->findings;
}

/* What is said of one output; formulas: whether they explain what differs. */
static void say_output(const judge_table *t, size_t row, const judge_ending *e, int formulas, results *r, size_t output)
{
    mpsim_judgement *j = t->w->j;
    const mpsim_judge_array *found = t->found[output];
    const answer a = {t, row, output};
    finish(r, t, e, output);
    const judge_pair p = {found->format, found->codes, r->codes, found->rows, found->columns, !t->coded};
    j->role = found->role;
    j->format = *found->format;
    j->rows = found->rows;
    j->columns = found->columns;
    judge_places(j, &p, JUDGE_ALL);
    explain(t, &a, &p, e, formulas);
    if (t->besides && is_rounding(j))
        t->besides(t->self, row, &p, j);
}

/* Where only rounding is found in the output of which most results differ, another one may have a fault. */
static void say_others(const judge_table *t, size_t row, const judge_ending *e, results *r,
                       const uint64_t differ[TABLE_OUTPUTS], size_t worst)
{
    mpsim_judgement *j = t->w->j;
    const mpsim_judgement kept = *j;
    for (size_t o = 0; o < t->outputs && is_rounding(j); o++) {
        if (o == worst || !t->found[o] || !differ[o])
            continue;
        memset(j, 0, sizeof *j);
        say_output(t, row, e, 1, r, o);
        if (is_rounding(j))
            *j = kept;
    }
}

/* formulas: whether they explain what differs. */
static mpsim_status say(const judge_table *t, size_t row, const judge_ending *e, int formulas)
{
    mpsim_judgement *j = t->w->j;
    results r;
    uint64_t differ[TABLE_OUTPUTS], all = 0;
    const judge_units units = all_units(t);
    const mpsim_status s = compute(&r, t, row, &units);
    if (s == MPSIM_OK && t->w->sink) {
        full_name(j->row, t, row, e);
        take(t, &r, e);
    } else if (s == MPSIM_OK) {
        const size_t worst = worst_output(differ, &r, t, e);
        say_output(t, row, e, formulas, &r, worst);
        if (formulas)
            say_others(t, row, e, &r, differ, worst);
        full_name(j->row, t, row, e);
        for (size_t o = 0; o < t->outputs; o++) {
            j->results += r.n[o];
            all += differ[o];
        }
        j->differ = j->differ == UINT64_MAX ? j->differ : all;
    }
    results_clear(&r);
    return s == MPSIM_ERANGE ? judge_fail(t->w, s, "'%s' does not take these arrays", t->name(t->self, row)) : s;
}

/* Another format of operations, where the nearest row explains nearly all that differs. */
static void compare_math(search *s)
{
    const judge_table *t = s->t;
    mpsim_judgement *j = t->w->j;
    if (!t->math || s->differ > j->differ / 100)
        return;
    const mpsim_format *like = t->math(t->self, t->rows), *nearest = t->math(t->self, s->best);
    if (!mpsim_format_same(like, nearest))
        judge_find(j, "format", j->differ - s->differ, "results between operations are kept in %s, not in %s",
                   nearest->name, like->name);
}

static void start(search *s, const judge_table *t)
{
    memset(s, 0, sizeof *s);
    s->t = t;
    s->all = all_units(t);
    take_sample(s);
    add_endings(s);
}

/* The row that is asked for, beside the nearest one; formulas only where the nearest does not explain nearly all. */
static mpsim_status compare_nearest(search *s)
{
    const judge_table *t = s->t;
    mpsim_judgement *j = t->w->j;
    const int half = s->differ <= j->differ / 2;
    if (t->differs && s->differ > j->differ / 100) {
        memset(j, 0, sizeof *j);
        const mpsim_status status = say(t, t->rows, &t->ending, 1);
        if (status != MPSIM_OK)
            return status;
    }
    if (!half)
        return MPSIM_OK;
    if (s->differ == 0)
        judge_forget(j);
    full_name(j->nearest, t, s->best, &s->best_ending);
    j->nearest_differ = s->differ;
    compare_math(s);
    if (t->differs)
        t->differs(t->self, s->best, j->differ - s->differ);
    return MPSIM_OK;
}

/* Whether some results of the sample are neither zero nor without a value. */
static int has_numbers(const search *s)
{
    const judge_table *t = s->t;
    size_t n = 0;
    for (size_t o = 0; o < t->outputs; o++)
        for (size_t i = 0; t->found[o] && !t->plain[o] && i < s->some.n; i++)
            for (size_t k = 0; k < length_of(t, o, s->sample[i]); k++) {
                const mpsim_format *f = t->found[o]->format;
                const double y = mpsim_decode(
                    f, element_code(t->found[o]->codes, mpsim_format_code_bytes(f), s->sample[i] * unit_of(t, o) + k));
                n += y != 0 && isfinite(y);
            }
    return n > 8;
}

/* A row that is asked for without a format of its results: where all of them are numbers of bf16 or fp16, so are the row's. */
static void narrow_like(const search *s, judge_table *t)
{
    if (!t->like || *t->ending.format.name || t->ending.mode != MPSIM_ROUND_NEAREST_EVEN || !has_numbers(s))
        return;
    for (size_t i = 0; i < s->endings; i++)
        if (s->ending[i].format.bits == 16 && *s->ending[i].format.name) {
            t->ending.format = s->ending[i].format;
            return;
        }
}

mpsim_status judge_table_answer(const judge_table *given)
{
    search *s = want_memory(1, sizeof *s);
    judge_table own = *given, *t = &own;
    mpsim_judgement *j = t->w->j;
    mpsim_status status = s ? MPSIM_OK : MPSIM_ENOMEM;
    if (status == MPSIM_OK) {
        start(s, t);
        narrow_like(s, t);
    }
    if (status == MPSIM_OK && t->like)
        status = say(t, t->rows, &t->ending, !t->differs);
    else if (status == MPSIM_OK) {
        find_best(s);
        j->differ = t->w->sink && s->differ ? s->differ : 0; /* none gives all */
        status = s->no_memory              ? MPSIM_ENOMEM
                 : s->differ == UINT64_MAX ? judge_fail(t->w, MPSIM_ERANGE, "no row takes these arrays")
                 : j->differ               ? MPSIM_OK
                                           : say(t, s->best, &s->best_ending, 1);
    }
    const int searches = status == MPSIM_OK && !t->w->sink;
    if (searches && j->differ == 0)
        find_class(s);
    else if (searches && t->like) {
        find_best(s);
        status = compare_nearest(s);
    }
    status = s && s->no_memory ? MPSIM_ENOMEM : status;
    free(s);
    return status;
}

/* ---- for kinds ---- */

int judge_words(char *text, int (*each)(void *row, const char *word, const char *value), void *row)
{
    char *next;
    strtok_r(text, ":", &next);
    for (char *word = strtok_r(NULL, ":", &next); word; word = strtok_r(NULL, ":", &next)) {
        char *equals = strchr(word, '=');
        if (equals)
            *equals++ = '\0';
        if (each(row, word, equals))
            return -1;
    }
    return 0;
}

mpsim_status judge_has_numbers(const judge_case *c, const mpsim_judge_array *a)
{
    float y;
    if (!a || (a->format && mpsim_decode_array_f32(a->format, &y, NULL, 0) != MPSIM_ERANGE))
        return MPSIM_OK;
    if (!a->format)
        return judge_fail(c, MPSIM_EINVAL, "%s: expected numbers, found bytes", a->role);
    return judge_fail(c, MPSIM_ERANGE, "%s: expected numbers of binary32 or a narrower format, found %s", a->role,
                      a->format->name);
}

float *judge_numbers(const mpsim_judge_array *a)
{
    float *y = want_memory(a->rows * a->columns + 1, sizeof *y);
    if (y)
        (void)mpsim_decode_array_f32(a->format, y, a->codes, a->rows * a->columns);
    return y;
}

void judge_lines(float *to, const mpsim_judge_array *a, const judge_units *u, size_t columns)
{
    const size_t bytes = mpsim_format_code_bytes(a->format);
    if (!u->at) {
        (void)mpsim_decode_array_f32(a->format, to, (const char *)a->codes + u->first * columns * bytes,
                                     u->n * columns);
        return;
    }
    for (size_t i = 0; i < u->n; i++)
        (void)mpsim_decode_array_f32(a->format, to + i * columns, (const char *)a->codes + u->at[i] * columns * bytes,
                                     columns);
}

const mpsim_format *judge_math_at(size_t i)
{
    static const char *const names[] = {"binary32", "bf16", "fp16"};
    return i < sizeof names / sizeof names[0] ? mpsim_format_find(names[i]) : NULL;
}

const mpsim_format *judge_math(const mpsim_format *f)
{
    return f->mbits == 23 && f->ebits == 8 ? NULL : f;
}

const char *judge_math_word(char out[48], const mpsim_format *f)
{
    *out = '\0';
    if (judge_math(f))
        (void)text_add(out, 48, ":math=%s", f->name);
    return out;
}

double judge_unit_of(const mpsim_format *f)
{
    return ldexp(1, -(int)f->mbits - 1);
}
