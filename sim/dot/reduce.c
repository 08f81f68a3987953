/* reduce.c -- see reduce.h. */
#include "reduce.h"

#include "../array/need.h"
#include "../array/array.h"
#include "../cli/options.h"
#include "../cli/output.h"
#include "../cli/progress.h"
#include "../pass/elements.h"
#include "../text/words.h"
#include "error.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What all ranks have, one tensor behind the other; elements that are finite on every rank. */
typedef struct ranks {
    float **x;
    size_t n, elements, tensors, left_out;
    double *exact;
} ranks;

static const struct {
    const char *word;
    mpsim_reduce_order order;
} orders[] = {{"sequential", MPSIM_REDUCE_SEQUENTIAL}, {"ring", MPSIM_REDUCE_RING}, {"tree", MPSIM_REDUCE_TREE}};

/* ---- reading ---- */

static int is_chosen(const trace_tensor *t, const char *glob)
{
    return t->format && (!glob || fnmatch(glob, t->name, 0) == 0);
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

static int read_tensor(float *to, trace *t, size_t index, trace_error *error)
{
    const trace_tensor *x = trace_at(t, index);
    elements e = {0};
    unsigned char *codes = array_memory(x->count, mpsim_format_code_bytes(x->format));
    double *values = array_memory(x->count, sizeof *values);
    int bad = !codes || !values ? trace_no_memory(t, error) : elements_open(&e, t, index, ELEMENTS_ROWS, NULL, error);
    const size_t n = (size_t)x->count; /* there is memory for them */
    if (!bad && !(bad = elements_codes(&e, 0, codes, n, error))) {
        mpsim_decode_array(x->format, values, codes, n);
        for (size_t i = 0; i < n; i++)
            to[i] = (float)values[i];
    }
    elements_close(&e);
    free(codes);
    free(values);
    return bad;
}

/* The tensors of the first file, from another one, or from itself. */
static int read_rank(ranks *r, const trace *names, trace *t, const char *glob, float *to)
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
    r->n++;
    return 0;
}

static int count_elements(ranks *r, const trace *t, const char *glob)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace_count(t); i++)
        if (is_chosen(trace_at(t, i), glob)) {
            n += trace_at(t, i)->count;
            r->tensors++;
        }
    if (n >= SIZE_MAX / sizeof *r->exact)
        return fail(EXIT_IO, "dot: --reduce: out of memory for %" PRIu64 " numbers", n);
    r->elements = (size_t)n;
    return n ? 0 : fail(EXIT_DATA, "dot: --reduce: the first file has no such tensor of floating-point numbers");
}

static int read_files(ranks *r, char **files, size_t n, const char *glob)
{
    trace_error error;
    r->x = need_memory(n, sizeof *r->x);
    trace *first = trace_open(files[0], NULL, &error);
    int code = first ? count_elements(r, first, glob) : fail(error.exit, "%s", error.text);
    for (size_t k = 0; k < n && !code; k++) {
        trace *t = k ? trace_open(files[k], NULL, &error) : first;
        if (!t) {
            code = fail(error.exit, "%s", error.text);
            break;
        }
        r->x[k] = need_memory(r->elements, sizeof **r->x);
        code = read_rank(r, first, t, glob, r->x[k]);
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

/* Keep the elements that are finite everywhere, and add them exactly. */
static int add_exactly(ranks *r)
{
    size_t kept = 0;
    r->exact = need_memory(r->elements + 1, sizeof *r->exact);
    for (size_t i = 0; i < r->elements; i++) {
        mpsim_sum sum;
        if (!is_finite(r, i))
            continue;
        mpsim_sum_init(&sum);
        for (size_t k = 0; k < r->n; k++) {
            r->x[k][kept] = r->x[k][i];
            mpsim_sum_add(&sum, (double)r->x[k][i]);
        }
        r->exact[kept++] = mpsim_sum_value(&sum);
    }
    r->left_out = r->elements - kept;
    r->elements = kept;
    return kept ? 0 : fail(EXIT_DATA, "dot: --reduce: no element is finite on every rank");
}

/* One row of the report. */
typedef struct sum_row {
    mpsim_format wire, accumulator;
    size_t order;
    dot_error error;
} sum_row;

static int measure_row(const ranks *r, sum_row *row, float *y, double *d)
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
    dot_error_compare(&row->error, d, r->exact, r->elements, row->wire.mbits + 1);
    return 0;
}

/* ---- the report ---- */

typedef struct reduce_output {
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
        fputs("\n\n", o->to);
    } else if (o->style == REPORT_CSV) {
        fputs("ranks,wire,accumulate,order,count,not_finite,max_rel_err,rel_err,bias,bits_lost\n", o->to);
    } else if (o->style == REPORT_JSON) {
        json_begin(o->to, "mpsim.reduce/1");
        fprintf(o->to, "\"ranks\": %zu,\n\"elements\": %zu,\n\"left_out\": %zu,\n\"sums\": [", r->n, r->elements,
                r->left_out);
    }
}

static json_t *sum_json(const ranks *r, const sum_row *s)
{
    const dot_error *e = &s->error;
    return json_pack("{s:o,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "ranks", json_of_count(r->n), "wire", s->wire.name,
                     "accumulate", s->accumulator.name, "order", orders[s->order].word, "count",
                     json_of_count(e->count), "not_finite", json_of_count(e->not_finite), "max_rel_err",
                     json_of_double(e->max_rel), "rel_err", json_of_double(e->rel), "bias", json_of_double(e->bias),
                     "bits_lost", json_of_double(e->bits_lost));
}

static void tell_text(table *t, const sum_row *s)
{
    const dot_error *e = &s->error;
    const int none = e->not_finite == e->count;
    char text[32];
    table_cell(t, "%s", s->wire.name);
    table_cell(t, "%s", s->accumulator.name);
    table_cell(t, "%s", orders[s->order].word);
    table_cell(t, none ? "nan" : "%.2e", e->rel);
    table_cell(t, none ? "nan" : "%.2e", e->max_rel);
    table_cell(t, none ? "nan" : "%+.1e", e->bias);
    table_cell(t, none ? "nan" : "%.1f", e->bits_lost);
    table_cell(t, "%s", e->not_finite ? text_count(text, e->not_finite) : "");
}

static void tell_csv(FILE *to, const ranks *r, const sum_row *s)
{
    const dot_error *e = &s->error;
    const double numbers[] = {e->max_rel, e->rel, e->bias, e->bits_lost};
    fprintf(to, "%zu,", r->n);
    csv_text(to, s->wire.name);
    fputc(',', to);
    csv_text(to, s->accumulator.name);
    fprintf(to, ",%s,%" PRIu64 ",%" PRIu64, orders[s->order].word, e->count, e->not_finite);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        fputc(',', to);
        csv_double(to, numbers[i]);
    }
    fputc('\n', to);
}

static void tell(reduce_output *o, const ranks *r, const sum_row *s)
{
    if (o->style == REPORT_TEXT)
        tell_text(o->t, s);
    else if (o->style == REPORT_CSV)
        tell_csv(o->to, r, s);
    else
        json_item(o->to, o->style, o->written, sum_json(r, s));
    o->written++;
}

static void end(reduce_output *o)
{
    if (o->style == REPORT_TEXT) {
        table_print(o->t, o->to, "");
        fputs("\nrel. error and bits lost, of the wire's format, are of all elements together; largest is of a single "
              "one, which\nmay cancel. A ring begins at another rank in every chunk.\n",
              o->to);
    }
    if (o->style == REPORT_JSON)
        fputs("]}\n", o->to);
}

/* All orders of one wire, in one accumulator. */
static int report_sums(reduce_output *o, const ranks *r, const mpsim_format *wire, const mpsim_format *accumulator)
{
    float *y = need_memory(r->elements, sizeof *y);
    double *d = need_memory(r->elements, sizeof *d);
    int code = 0;
    for (size_t k = 0; k < sizeof orders / sizeof orders[0] && !code; k++) {
        sum_row row = {*wire, *accumulator, k, {0}};
        code = measure_row(r, &row, y, d);
        if (!code)
            tell(o, r, &row);
        progress_add(1);
    }
    free(y);
    free(d);
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
        if (mpsim_format_parse(&wire, name) != MPSIM_OK)
            code = fail(EXIT_USAGE, "dot: --wire: '%s' is not a format", name);
        free(name);
        if (!code)
            code = report_sums(o, r, &wire, &wire);
        if (!code && !mpsim_format_same(&wire, single))
            code = report_sums(o, r, &wire, single);
        wires += n + (wires[n] == ',');
    }
    return code;
}

int reduce_report(char **files, size_t n, const char *glob, const char *wires, report_style style, const char *path)
{
    ranks r = {0};
    output out;
    int code = output_open(&out, path);
    if (code)
        return code;
    reduce_output o = {.style = style,
                       .to = out.file,
                       .t = table_new("<wire|<accumulate|<order|>rel. error|>largest|>bias|>bits lost|>not finite")};
    if (!(code = read_files(&r, files, n, glob)) && !(code = add_exactly(&r))) {
        begin(&o, &r);
        code = report_wires(&o, &r, wires);
        if (!code)
            end(&o);
    }
    if (code)
        output_abandon(&out);
    else
        code = output_close(&out);
    table_free(o.t);
    for (size_t k = 0; r.x && k < n; k++)
        free(r.x[k]);
    free(r.x);
    free(r.exact);
    return code;
}
