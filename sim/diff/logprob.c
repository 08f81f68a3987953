/* logprob.c -- see logprob.h. */
#include "logprob.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../text/words.h"
#include "match.h"
#include "ratiosreport.h"
#include "walk.h"

#include <inttypes.h>
#include <mpsim/mpsim.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct logprob {
    FILE *to;
    report_style style;
    const logprob_options *o;
    side *sides[2];
    ratios all;
    table *rows;
    uint64_t tensors;
} logprob;

/* ---- tensors ---- */

/* All values of a tensor; NULL with *error. */
static double *values_of(side *s, const side_tensor *t, trace_error *error)
{
    source from = {.tensor = NULL};
    const size_t width = mpsim_format_code_bytes(t->format);
    double *x = need_memory(t->count, sizeof *x);
    unsigned char *codes = need_memory(t->count, width);
    int bad = source_open(&from, s, t, error);
    const size_t n = (size_t)t->count; /* there is memory for them */
    if (!bad && !(bad = elements_codes(&from.from, 0, codes, n, error)))
        mpsim_decode_array(t->format, x, codes, n);
    elements_close(&from.from);
    free(codes);
    if (bad)
        free(x);
    return bad ? NULL : x;
}

static void tell(logprob *l, int64_t step, const char *name, ratios *r)
{
    char a[32], b[32], d[32];
    ratios_sort(r);
    if (l->style == REPORT_JSON) {
        jsonout o = {.to = l->to};
        const ratios_summary s = ratios_summarise(r);
        fputs(l->tensors ? ",\n  " : "\n  ", l->to);
        jsonout_begin(&o, NULL, '{');
        record_members(&o, &ratios_record, &s, IN_JSON);
        if (step < 0)
            jsonout_null(&o, "step");
        else
            jsonout_integer(&o, "step", step);
        jsonout_text(&o, "name", name);
        jsonout_end(&o, '}');
    } else {
        table_cell(l->rows, step < 0 ? "%s" : "%s%" PRId64, "", step);
        table_cell(l->rows, "%s", name);
        table_cell(l->rows, "%s", text_count(a, r->tokens));
        table_cell(l->rows, "%s", r->tokens ? text_number(b, r->sum_of_magnitudes / (double)r->tokens) : "");
        table_cell(l->rows, "%s", r->tokens ? text_number(d, ratios_magnitude(r, 1)) : "");
        table_share(l->rows, r->outside, r->tokens);
        table_share(l->rows, r->outside_sequences, r->sequences);
    }
    l->tensors++;
}

static void add_rows(ratios *one, ratios *all, const double *a, const double *b, const side_tensor *t)
{
    const size_t length = t->rank ? (size_t)t->shape[t->rank - 1] : 1, n = (size_t)t->count; /* all are in memory */
    for (size_t at = 0; at < n; at += length) {
        ratios_add(one, a + at, b + at, length);
        ratios_add(all, a + at, b + at, length);
    }
}

static int compare(logprob *l, int64_t step, const side_tensor *x, const side_tensor *y)
{
    ratios one = {.low = l->o->low, .high = l->o->high};
    trace_error error;
    double *a = values_of(l->sides[0], x, &error), *b = a ? values_of(l->sides[1], y, &error) : NULL;
    const int code = b ? 0 : input_failed(&l->sides[a != NULL]->in, &error);
    if (b) {
        add_rows(&one, &l->all, a, b, x);
        tell(l, step, x->name, &one);
    }
    ratios_clear(&one);
    free(a);
    free(b);
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
    int code = side_load(&a, l->sides[0], i);
    if (!code)
        code = side_load(&b, l->sides[1], k);
    if (!code)
        code = match_groups(&pairs, &a, &b);
    for (size_t p = 0; p < pairs.n && !code; p++) {
        const match_pair *m = &pairs.pairs[p];
        if (m->a != SIZE_MAX && m->b != SIZE_MAX && has_same_shape(&a.tensors[m->a], &b.tensors[m->b]))
            code = compare(l, a.step, &a.tensors[m->a], &b.tensors[m->b]);
    }
    match_clear(&pairs);
    side_clear(&a);
    side_clear(&b);
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

static void print_head(const logprob *l)
{
    const ratios *r = &l->all;
    char a[32], b[32], d[32], path[512];
    fprintf(l->to, "A  %s\n", escape_text(path, sizeof path, l->o->paths[0]));
    fprintf(l->to, "B  %s\n", escape_text(path, sizeof path, l->o->paths[1]));
    fprintf(l->to, "%s token%s in %s sequence%s", text_count(a, r->tokens), text_plural(r->tokens),
            text_count(b, r->sequences), text_plural(r->sequences));
    if (r->padding)
        fprintf(l->to, "; %s of padding left out", text_count(d, r->padding));
    if (r->one_sided)
        fprintf(l->to, "; %s that only one side has a finite number for left out", text_count(d, r->one_sided));
    fputc('\n', l->to);
    if (r->above_zero)
        fprintf(l->to, "%s above 0, which no logarithm of a probability is: --match chooses tensors\n",
                text_count(d, r->above_zero));
}

static void print_end(const logprob *l)
{
    print_head(l);
    if (l->all.tokens) {
        ratios_print(l->to, &l->all, l->tensors == 1);
    }
    if (l->tensors > 1) {
        fprintf(l->to, "\nBy tensor:\n");
        table_print(l->rows, l->to, "  ");
    }
}

static void write_end(const logprob *l)
{
    jsonout o = {.to = l->to};
    const ratios_summary s = ratios_summarise(&l->all);
    fputs("\n],\n", l->to);
    record_json(&o, "total", &ratios_record, &s, IN_JSON);
    fputs("\n}\n", l->to);
}

static void write_head(const logprob *l)
{
    fprintf(l->to, "{\"schema\": \"mpsim.logprob/1\", \"mpsim\": \"%s\", \"config\": ", mpsim_version());
    json_write(l->to,
               json_pack("{s:o,s:o,s:[o,o]}", "a", json_of_path(l->o->paths[0]), "b", json_of_path(l->o->paths[1]),
                         "clip", json_of_double(l->o->low), json_of_double(l->o->high)));
    fputs(",\n\"tensors\": [", l->to);
}

int logprob_run(FILE *to, report_style style, const logprob_options *o, side *a, side *b, int *differ)
{
    logprob l = {.to = to, .style = style, .o = o, .sides = {a, b}, .all = {.low = o->low, .high = o->high}};
    l.rows = table_new(">step|<tensor|>tokens|>mean magnitude|>largest|>tokens outside|>sequences outside");
    if (style == REPORT_JSON)
        write_head(&l);
    int code = compare_steps(&l);
    if (!code && l.tensors == 0)
        code = fail(EXIT_DATA, "diff: --logprob: A and B have no tensor of floating-point numbers of one name and "
                               "shape");
    ratios_sort(&l.all);
    if (!code)
        (style == REPORT_JSON ? write_end : print_end)(&l);
    *differ = l.all.equal < l.all.tokens || l.all.one_sided;
    ratios_clear(&l.all);
    table_free(l.rows);
    return code;
}
