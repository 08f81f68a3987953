/* reduce.c -- see reduce.h. */
#include "reduce.h"

#include "../array/need.h"
#include "../array/array.h"
#include "../cli/options.h"
#include "../cli/output.h"
#include "../cli/progress.h"
#include "../cli/target.h"
#include "../cli/unread.h"
#include "../pass/elements.h"
#include "../text/words.h"
#include "distancereport.h"

#include <mpsim/gradient.h>

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What all ranks have, one tensor behind the other; elements that are finite on every rank. */
typedef struct ranks {
    float **x;
    double **wide; /* of a rank with numbers that binary32 has not: as they were given; else NULL */
    size_t n, elements, tensors, left_out;
    double *exact;      /* sums of the numbers as given */
    unread_list unread; /* of the first file: named, and no numbers */
} ranks;

static const struct {
    const char *word;
    mpsim_reduce_order order;
} orders[] = {{"sequential", MPSIM_REDUCE_SEQUENTIAL}, {"ring", MPSIM_REDUCE_RING}, {"tree", MPSIM_REDUCE_TREE}};

/* ---- reading ---- */

static int is_named(const trace_tensor *t, const char *glob)
{
    return !glob || fnmatch(glob, t->name, 0) == 0;
}

static int is_chosen(const trace_tensor *t, const char *glob)
{
    return t->format && is_named(t, glob);
}

static const trace_tensor *find(const trace *t, const char *name, size_t *index)
{
    for (size_t i = 0; i < trace_count(t); i++)
        if (strcmp(trace_at(t, i)->name, name) == 0) {
            *index = i;
            return trace_at(t, i);
        }
    return NULL;
}

static int read_tensor(double *to, trace *t, size_t index, trace_error *error)
{
    const trace_tensor *x = trace_at(t, index);
    elements e = {0};
    unsigned char *codes = array_memory(x->count, mpsim_format_code_bytes(x->format));
    int bad = !codes ? trace_no_memory(t, error) : elements_open(&e, t, index, ELEMENTS_ROWS, NULL, error);
    const size_t n = (size_t)x->count; /* there is memory for them */
    if (!bad && !(bad = elements_codes(&e, 0, codes, n, error)))
        mpsim_decode_array(x->format, to, codes, n);
    elements_close(&e);
    free(codes);
    return bad;
}

/* The tensors of the first file, from another one, or from itself. */
static int read_rank(const trace *names, trace *t, const char *glob, double *to)
{
    trace_error error;
    char name[256], path[512];
    size_t at;
    for (size_t i = 0; i < trace_count(names); i++) {
        const trace_tensor *x = trace_at(names, i);
        if (!is_chosen(x, glob))
            continue;
        const trace_tensor *y = find(t, x->name, &at);
        if (!y || !y->format || y->count != x->count)
            return fail(EXIT_DATA,
                        "dot: --reduce: %s: no tensor '%s' of %" PRIu64 " floating-point numbers, which the "
                        "first file has",
                        escape_text(path, sizeof path, trace_path(t)), escape_text(name, sizeof name, x->name),
                        x->count);
        if (read_tensor(to, t, at, &error))
            return fail(error.exit, "%s", error.text);
        to += x->count;
    }
    return 0;
}

/* The numbers of rank k, read into wide[k]: that stays where binary32 has not all of them. */
static void take_rank(ranks *r, size_t k)
{
    int same = 1;
    r->x[k] = need_memory(r->elements, sizeof **r->x);
    for (size_t i = 0; i < r->elements; i++) {
        r->x[k][i] = (float)r->wide[k][i];
        same &= (double)r->x[k][i] == r->wide[k][i] || !isfinite(r->x[k][i]);
    }
    if (same) {
        free(r->wide[k]);
        r->wide[k] = NULL;
    }
    r->n++;
}

static int count_elements(ranks *r, const trace *t, const char *glob)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace_count(t); i++)
        if (is_chosen(trace_at(t, i), glob)) {
            n += trace_at(t, i)->count;
            r->tensors++;
        } else if (is_named(trace_at(t, i), glob) && unread_add(&r->unread, trace_path(t), trace_at(t, i)))
            return EXIT_IO;
    unread_settle(&r->unread);
    if (n >= SIZE_MAX / sizeof *r->exact)
        return fail(EXIT_IO, "dot: --reduce: out of memory for %" PRIu64 " numbers", n);
    r->elements = (size_t)n;
    return n ? 0 : fail(EXIT_DATA, "dot: --reduce: the first file has no such tensor of floating-point numbers");
}

static int read_files(ranks *r, char **files, size_t n, const char *glob)
{
    trace_error error;
    r->x = need_memory(n, sizeof *r->x);
    r->wide = need_memory(n, sizeof *r->wide);
    trace *first = trace_open(files[0], NULL, &error);
    int code = first ? count_elements(r, first, glob) : fail(error.exit, "%s", error.text);
    for (size_t k = 0; k < n && !code; k++) {
        trace *t = k ? trace_open(files[k], NULL, &error) : first;
        if (!t) {
            code = fail(error.exit, "%s", error.text);
            break;
        }
        r->wide[k] = need_memory(r->elements, sizeof **r->wide);
        code = read_rank(first, t, glob, r->wide[k]);
        if (!code)
            take_rank(r, k);
        if (k)
            trace_close(t);
    }
    trace_close(first);
    return code;
}

/* ---- sums ---- */

static int is_finite(const ranks *r, size_t i)
{
    for (size_t k = 0; k < r->n; k++)
        if (!isfinite(r->x[k][i]))
            return 0;
    return 1;
}

/* Element i of rank k as it was given. */
static double given(const ranks *r, size_t k, size_t i)
{
    return r->wide[k] ? r->wide[k][i] : (double)r->x[k][i];
}

static void keep(ranks *r, size_t kept, size_t i)
{
    for (size_t k = 0; k < r->n; k++) {
        r->x[k][kept] = r->x[k][i];
        if (r->wide[k])
            r->wide[k][kept] = r->wide[k][i];
    }
}

static double exact_sum(const double *x, size_t n)
{
    mpsim_sum sum;
    mpsim_sum_init(&sum);
    for (size_t k = 0; k < n; k++) {
        if (!isfinite(x[k]))
            return (double)NAN;
        mpsim_sum_add(&sum, x[k]);
    }
    return mpsim_sum_value(&sum);
}

/* Keep the elements that are finite everywhere, and add them exactly. */
static int add_exactly(ranks *r)
{
    size_t kept = 0;
    double *x = need_memory(r->n, sizeof *x);
    r->exact = need_memory(r->elements + 1, sizeof *r->exact);
    for (size_t i = 0; i < r->elements; i++) {
        if (!is_finite(r, i))
            continue;
        for (size_t k = 0; k < r->n; k++)
            x[k] = given(r, k, i);
        r->exact[kept] = exact_sum(x, r->n);
        keep(r, kept++, i);
    }
    free(x);
    r->left_out = r->elements - kept;
    r->elements = kept;
    return kept ? 0 : fail(EXIT_DATA, "dot: --reduce: no element is finite on every rank");
}

/* Exact sums of the contributions as the wire has them, NaN where one is beyond it; NULL: it has all numbers as they were given. */
static double *add_sent(const ranks *r, const mpsim_format *wire)
{
    double *exact = need_memory(r->elements, sizeof *exact), *x = need_memory(2 * r->n, sizeof *x), *sent = x + r->n;
    mpsim_rounding nearest;
    int same = 1;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < r->elements; i++) {
        for (size_t k = 0; k < r->n; k++)
            x[k] = (double)r->x[k][i];
        (void)mpsim_round_array_f64(wire, &nearest, NULL, sent, x, r->n, NULL);
        for (size_t k = 0; k < r->n; k++)
            same &= sent[k] == given(r, k, i);
        exact[i] = exact_sum(sent, r->n);
    }
    free(x);
    if (!same)
        return exact;
    free(exact);
    return NULL;
}

/* One row of the report. */
typedef struct sum_row {
    mpsim_format wire, accumulator;
    size_t order;
    dot_error error;
    double bits_lost; /* of the wire's format, by the error of the numbers as given */
} sum_row;

static int measure_row(const ranks *r, sum_row *row, const dot_truth *truth, float *y, double *d)
{
    const mpsim_reduce how = {.wire = row->wire,
                              .accumulator = row->accumulator,
                              .order = (uint8_t)orders[row->order].order,
                              .result = *mpsim_format_find("binary32"),
                              .average = MPSIM_AVERAGE_NONE};
    const mpsim_status s = mpsim_reduce_array(&how, y, (const float *const *)r->x, r->n, r->elements);
    if (s != MPSIM_OK)
        return fail(EXIT_USAGE, "dot: --wire: %s: %s", row->wire.name, mpsim_status_string(s));
    for (size_t i = 0; i < r->elements; i++)
        d[i] = (double)y[i];
    dot_error_compare(&row->error, d, truth, r->elements, row->wire.mbits + 1);
    row->bits_lost = dot_bits_lost(row->error.given.rel, row->wire.mbits + 1);
    return 0;
}

/* ---- the report ---- */

typedef struct reduce_output {
    const reduce_options *how;
    report_style style;
    FILE *to;
    table *t;
    size_t written;
} reduce_output;

static void begin(const reduce_output *o, const ranks *r)
{
    char a[32], b[32], c[32];
    if (o->style == REPORT_TEXT) {
        fprintf(o->to, "%zu ranks, %s element%s of %s tensor%s", r->n, text_count(a, r->elements),
                text_plural(r->elements), text_count(b, r->tensors), text_plural(r->tensors));
        if (r->left_out)
            fprintf(o->to, "; %s that are not finite on every rank are left out", text_count(c, r->left_out));
        fputc('\n', o->to);
        unread_print(o->to, &r->unread);
        fputc('\n', o->to);
    } else if (o->style == REPORT_CSV) {
        fputs("ranks,wire,accumulate,order,count,not_finite,max_rel_err,rel_err,bias,bits_lost", o->to);
        distance_csv_head(o->to);
        fputc('\n', o->to);
    } else if (o->style == REPORT_JSON) {
        json_begin(o->to, "mpsim.reduce/1");
        fprintf(o->to, "\"ranks\": %zu,\n\"elements\": %zu,\n\"left_out\": %zu,\n\"above\": ", r->n, r->elements,
                r->left_out);
        json_write(o->to, distance_bound_json(o->how->above));
        fputs(",\n\"unread\": ", o->to);
        json_write(o->to, unread_list_json(&r->unread));
        fputs(",\n\"sums\": [", o->to);
    }
}

static json_t *sum_json(const ranks *r, const sum_row *s, double above)
{
    const dot_error *e = &s->error;
    json_t *v = json_pack("{s:o,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "ranks", json_of_count(r->n), "wire",
                          s->wire.name, "accumulate", s->accumulator.name, "order", orders[s->order].word, "count",
                          json_of_count(e->count), "not_finite", json_of_count(e->not_finite), "max_rel_err",
                          json_of_double(e->given.max_rel), "rel_err", json_of_double(e->given.rel), "bias",
                          json_of_double(e->given.bias), "bits_lost", json_of_double(s->bits_lost));
    distance_put(v, e);
    json_object_set_new(v, "above", distance_bound_json(above));
    return v;
}

static void tell_text(const reduce_output *o, const sum_row *s)
{
    const dot_error *e = &s->error;
    char text[32];
    table_cell(o->t, "%s", s->wire.name);
    table_cell(o->t, "%s", s->accumulator.name);
    table_cell(o->t, "%s", orders[s->order].word);
    distance_compared(o->t, &e->given, o->how->above);
    distance_cells(o->t, &e->given, o->how->absolute);
    table_cell(o->t, isnan(s->bits_lost) ? "nan" : "%.1f", s->bits_lost);
    distance_cells(o->t, e->same ? NULL : &e->rounded, o->how->absolute);
    table_cell(o->t, "%s", e->not_finite ? text_count(text, e->not_finite) : "");
}

static void tell_csv(FILE *to, const ranks *r, const sum_row *s)
{
    const dot_error *e = &s->error;
    const double numbers[] = {e->given.max_rel, e->given.rel, e->given.bias, s->bits_lost};
    fprintf(to, "%zu,", r->n);
    csv_text(to, s->wire.name);
    fputc(',', to);
    csv_text(to, s->accumulator.name);
    fprintf(to, ",%s,%" PRIu64 ",%" PRIu64, orders[s->order].word, e->count, e->not_finite);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        fputc(',', to);
        csv_double(to, numbers[i]);
    }
    distance_csv(to, e);
    fputc('\n', to);
}

static void tell(reduce_output *o, const ranks *r, const sum_row *s)
{
    if (o->style == REPORT_TEXT)
        tell_text(o, s);
    else if (o->style == REPORT_CSV)
        tell_csv(o->to, r, s);
    else
        json_item(o->to, o->style, o->written, sum_json(r, s, o->how->above));
    o->written++;
}

static void end(reduce_output *o)
{
    if (o->style == REPORT_TEXT) {
        table_print(o->t, o->to, "");
        fputs(
            "\nrel. error and bits lost, of the wire's format, are of all elements together; largest is of a single "
            "one, which\nmay cancel. A ring begins at another rank in every chunk. Numbers as sent are rounded to the wire.\n",
            o->to);
    }
    if (o->style == REPORT_JSON)
        fputs("]}\n", o->to);
}

/* All orders of one wire, in one accumulator. */
static int report_sums(reduce_output *o, const ranks *r, const mpsim_format *wire, const mpsim_format *accumulator)
{
    float *y = need_memory(r->elements, sizeof *y);
    double *d = need_memory(r->elements, sizeof *d), *sent = add_sent(r, wire);
    const dot_truth truth = {r->exact, sent ? sent : r->exact, {1, 1}, o->how->above};
    int code = 0;
    for (size_t k = 0; k < sizeof orders / sizeof orders[0] && !code; k++) {
        sum_row row = {.wire = *wire, .accumulator = *accumulator, .order = k};
        code = measure_row(r, &row, &truth, y, d);
        if (!code)
            tell(o, r, &row);
        progress_add(1);
    }
    free(y);
    free(d);
    free(sent);
    return code;
}

static int report_wires(reduce_output *o, const ranks *r, const char *wires)
{
    const mpsim_format *single = mpsim_format_find("binary32");
    int code = 0;
    while (*wires && !code) {
        const size_t n = strcspn(wires, ",");
        char *name = need_part(wires, n);
        mpsim_format wire;
        code = format_read(&wire, "dot: --wire", name);
        free(name);
        if (!code)
            code = report_sums(o, r, &wire, &wire);
        if (!code && !mpsim_format_same(&wire, single))
            code = report_sums(o, r, &wire, single);
        wires += n + (wires[n] == ',');
    }
    return code;
}

static table *new_table(int absolute)
{
    char given[160], sent[160], columns[512];
    snprintf(columns, sizeof columns, "<wire|<accumulate|<order|>compared%s|>bits lost%s|>not finite",
             distance_columns(given, sizeof given, absolute, "numbers as given"),
             distance_columns(sent, sizeof sent, absolute, "numbers as sent"));
    return table_new(columns);
}

static void clear(ranks *r, size_t n)
{
    for (size_t k = 0; r->x && k < n; k++) {
        free(r->x[k]);
        free(r->wide[k]);
    }
    free(r->x);
    free(r->wide);
    free(r->exact);
    unread_clear(&r->unread);
}

int reduce_report(const reduce_options *how)
{
    ranks r = {0};
    output out;
    int code = output_open(&out, how->path);
    if (code)
        return code;
    reduce_output o = {.how = how, .style = how->style, .to = out.file, .t = new_table(how->absolute)};
    if (!(code = read_files(&r, how->files, how->ranks, how->glob)) && !(code = add_exactly(&r))) {
        begin(&o, &r);
        code = report_wires(&o, &r, how->wires);
        if (!code)
            end(&o);
    }
    if (code)
        output_abandon(&out);
    else
        code = output_close(&out);
    table_free(o.t);
    clear(&r, how->ranks);
    return code;
}
