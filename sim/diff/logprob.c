/* logprob.c -- see logprob.h. */
#include "logprob.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../text/words.h"
#include "logjudge.h"
#include "match.h"
#include "ratiosreport.h"
#include "walk.h"

#include <inttypes.h>
#include <mpsim/mpsim.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct logprob_row {
    int64_t step;
    const char *name;
    ratios_summary x;
} logprob_row;

typedef struct logprob_document {
    const char *a, *b;
    const double *clip;
    size_t clips; /* 2 */
    double dual, truncated;
    ratios_summary total;
    log_finding found;
    const char *title, *evidence;
} logprob_document;

/* The numbers of a tensor at the step before. */
typedef struct earlier {
    char *name;
    double *x[2];
    size_t n;
} earlier;

typedef struct logprob {
    record_writer w;
    const logprob_options *o;
    side *sides[2];
    ratios all;
    log_tokens tokens;
    earlier *earlier; /* growing */
    size_t n_earlier;
} logprob;

/* ---- the record ---- */

#define AT(member) offsetof(logprob_row, member)
static const record_field row_fields[] = {
    FIELD(STEP, "step", IN_ALL | FIELD_NULL, AT(step), NULL, .title = ">step"),
    FIELD(TEXT, "name", IN_ALL, AT(name), NULL, .title = "<tensor"),
    FIELD(RECORD, "x", IN_ALL | FIELD_INLINE, AT(x), NULL, .title = "", .record = &diff_ratios_record),
    {0}};
static const record_kind row_record = {"tensor", NULL, sizeof(logprob_row), row_fields};
#undef AT

#define AT(member) offsetof(logprob_document, member)
static const record_field config_fields[] = {
    FIELD(TEXT, "a", IN_JSON, AT(a), NULL),
    FIELD(TEXT, "b", IN_JSON, AT(b), NULL),
    FIELD(REALS, "clip", IN_JSON, AT(clip), "The band of ratios: two numbers.", .of = AT(clips)),
    FIELD(REAL, "dual_clip", IN_JSON, AT(dual), NULL),
    FIELD(REAL, "truncate", IN_JSON, AT(truncated), NULL),
    {0}};
static const record_kind config_record = {"config", NULL, sizeof(logprob_document), config_fields};

static const record_field document_fields[] = {
    FIELD(RECORD, "config", IN_JSON, 0, NULL, .record = &config_record),
    FIELD(LIST, "tensors", IN_JSON | FIELD_STREAM, 0, NULL, .record = &row_record),
    FIELD(RECORD, "total", IN_JSON, AT(total), NULL, .record = &diff_ratios_record),
    FIELD(WORD, "verdict", IN_JSON, AT(found.verdict), "What the differences are taken for.", .words = diff_log_words),
    FIELD(TEXT, "title", IN_JSON, AT(title), "The verdict in words."),
    FIELD(TEXT, "evidence", IN_JSON, AT(evidence), "Why."),
    FIELD(REAL, "scale", IN_JSON | FIELD_OPTIONAL, AT(found.said.scale),
          "base and scaled: B / A. tempered: the temperature of A that gives B."),
    {0}};
static const record_kind document_record = {"document", NULL, sizeof(logprob_document), document_fields};
#undef AT
const report_kind diff_logprob_kind = {
    "mpsim.logprob/1", "mpsim diff --logprob: log-probabilities",
    "Log-probabilities of the same tokens by two engines. $defs/line is a line of --ndjson, which names no schema.",
    &document_record};

/* ---- tensors ---- */

/* All values of a tensor; NULL with *error. */
static double *values_of(side *s, const side_tensor *t, trace_error *error)
{
    source from;
    double *x = need_memory(t->count, sizeof *x); /* there is memory for them */
    int bad = diff_source_open(&from, s, t, error);
    if (!bad)
        bad = pass_elements_values(&from.from, 0, x, (size_t)t->count, error);
    pass_elements_close(&from.from);
    if (!bad)
        return x;
    free(x);
    return NULL;
}

static void tell(logprob *l, int64_t step, const char *name, ratios *r)
{
    diff_ratios_sort(r);
    const logprob_row row = {.step = step, .name = name, .x = diff_ratios_summarise(r)};
    record_row(&l->w, &row);
}

/* Whether x is nearer to the other side's numbers of the step before, y, than to those of its own step, by far. */
static int is_behind(const double *x, const double *y, const double *own, size_t n)
{
    double before = 0, now = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]) && isfinite(y[i]) && isfinite(own[i])) {
            before += fabs(x[i] - y[i]);
            now += fabs(x[i] - own[i]);
        }
    return now > 0 && before <= now / 4;
}

static void compare_earlier(logprob *l, const char *name, double *const x[2], size_t n)
{
    size_t i = 0;
    while (i < l->n_earlier && strcmp(l->earlier[i].name, name) != 0)
        i++;
    if (i == l->n_earlier) {
        need_room(&l->earlier, l->n_earlier, sizeof *l->earlier);
        l->earlier[l->n_earlier++] = (earlier){.name = need_text(name)};
    }
    earlier *e = &l->earlier[i];
    if (e->n == n) {
        l->tokens.tensors++;
        for (int which = 0; which < 2; which++)
            l->tokens.behind[which] += (size_t)is_behind(x[which], e->x[1 - which], x[1 - which], n);
    }
    for (int which = 0; which < 2; which++) {
        free(e->x[which]);
        e->x[which] = x[which];
    }
    e->n = n;
}

static void clear_tokens(logprob *l)
{
    for (size_t i = 0; i < l->n_earlier; i++) {
        free(l->earlier[i].name);
        free(l->earlier[i].x[0]);
        free(l->earlier[i].x[1]);
    }
    free(l->earlier);
    diff_log_clear(&l->tokens);
}

static void add_rows(logprob *l, ratios *one, int64_t step, const double *a, const double *b, const side_tensor *t)
{
    const size_t length = t->rank ? (size_t)t->shape[t->rank - 1] : 1, n = (size_t)t->count; /* all are in memory */
    for (size_t at = 0; at < n; at += length) {
        diff_ratios_add(one, a + at, b + at, length);
        diff_ratios_add(&l->all, a + at, b + at, length);
        diff_log_add(&l->tokens, step, a + at, b + at, length);
    }
}

static int compare(logprob *l, int64_t step, const side_tensor *x, const side_tensor *y)
{
    ratios one = {.low = l->o->band[0], .high = l->o->band[1], .dual = l->o->dual, .truncated = l->o->truncated};
    trace_error error;
    double *a = values_of(l->sides[0], x, &error), *b = a ? values_of(l->sides[1], y, &error) : NULL;
    const int code = b ? 0 : input_failed(&l->sides[a != NULL]->in, &error);
    if (b) {
        add_rows(l, &one, step, a, b, x);
        tell(l, step, x->name, &one);
        compare_earlier(l, x->name, (double *const[]){a, b}, (size_t)x->count); /* which keeps them */
    } else
        free(a);
    diff_ratios_clear(&one);
    return code;
}

static int has_same_shape(const side_tensor *x, const side_tensor *y)
{
    return x->format && y->format && x->count && x->rank == y->rank &&
           (x->rank == 0 || memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0);
}

static int compare_step(logprob *l, size_t i, size_t k)
{
    side_group a = {0}, b = {0};
    match_list pairs = {0};
    int code = diff_side_load(&a, l->sides[0], i);
    if (!code)
        code = diff_side_load(&b, l->sides[1], k);
    if (!code)
        code = diff_match_groups(&pairs, &a, &b);
    for (size_t p = 0; p < pairs.n && !code; p++) {
        const match_pair *m = &pairs.pairs[p];
        if (m->a != SIZE_MAX && m->b != SIZE_MAX && has_same_shape(&a.tensors[m->a], &b.tensors[m->b]))
            code = compare(l, a.step, &a.tensors[m->a], &b.tensors[m->b]);
    }
    diff_match_clear(&pairs);
    diff_side_clear(&a);
    diff_side_clear(&b);
    return code;
}

static int compare_steps(logprob *l)
{
    const side *a = l->sides[0], *b = l->sides[1];
    int code = 0;
    if (a->n_steps == 1 && b->n_steps == 1)
        return compare_step(l, 0, 0);
    for (size_t i = 0, k = 0; i < a->n_steps && k < b->n_steps && !code;) {
        const int64_t x = a->steps[i].step, y = b->steps[k].step;
        code = x == y ? compare_step(l, i, k) : 0;
        i += x <= y;
        k += y <= x;
    }
    return code;
}

/* ---- the report ---- */

static void print_head(FILE *to, const logprob_options *o, const ratios *r)
{
    char a[32], b[32], d[32], path[512];
    fprintf(to, "A  %s\n", escape_text(path, sizeof path, o->paths[0]));
    fprintf(to, "B  %s\n", escape_text(path, sizeof path, o->paths[1]));
    fprintf(to, "%s token%s in %s sequence%s", text_count(a, r->tokens), text_plural(r->tokens),
            text_count(b, r->sequences), text_plural(r->sequences));
    if (r->padding)
        fprintf(to, "; %s of padding left out", text_count(d, r->padding));
    if (r->one_sided)
        fprintf(to, "; %s that only one side has a finite number for left out", text_count(d, r->one_sided));
    fputc('\n', to);
    if (r->above_zero)
        fprintf(to, "%s above 0, which no logarithm of a probability is: --match chooses tensors\n",
                text_count(d, r->above_zero));
}

static void print_verdict(FILE *to, const logprob_document *d)
{
    char text[640];
    snprintf(text, sizeof text, "%s%s%s", d->title, d->evidence[0] ? ": " : "", d->evidence);
    fputc('\n', to);
    text_wrapped(to, "verdict           ", text);
}

static void print_end(const logprob *l)
{
    print_head(l->w.to, l->o, &l->all);
    print_verdict(l->w.to, l->w.document);
    if (l->all.tokens)
        diff_ratios_print(l->w.to, &l->all, l->w.written == 1);
    if (l->w.written > 1) {
        fprintf(l->w.to, "\nBy tensor:\n");
        table_print(l->w.rows, l->w.to, "  ");
    }
}

int diff_logprob_run(FILE *to, report_style style, const logprob_options *o, side *a, side *b, int *differ)
{
    logprob_document d = {
        .a = o->paths[0], .b = o->paths[1], .clip = o->band, .clips = 2, .dual = o->dual, .truncated = o->truncated};
    logprob l = {.w = {.kind = &diff_logprob_kind, .to = to, .style = style, .document = &d},
                 .o = o,
                 .sides = {a, b},
                 .all = {.low = o->band[0], .high = o->band[1], .dual = o->dual, .truncated = o->truncated}};
    record_begin(&l.w);
    int code = compare_steps(&l);
    if (!code && l.w.written == 0)
        code = fail(EXIT_DATA, "diff: --logprob: A and B have no tensor of floating-point numbers of one name and "
                               "shape");
    diff_ratios_sort(&l.all);
    d.total = diff_ratios_summarise(&l.all);
    diff_log_judge(&d.found, &l.tokens);
    d.title = diff_log_titles[d.found.verdict];
    d.evidence = d.found.said.evidence;
    if (!code && style == REPORT_TEXT)
        print_end(&l);
    record_end(&l.w);
    *differ = l.all.equal < l.all.tokens || l.all.one_sided;
    diff_ratios_clear(&l.all);
    clear_tokens(&l);
    return code;
}
