/* reduce.c -- see reduce.h. */
#include "reduce.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../process/output.h"
#include "../process/progress.h"
#include "../operand/target.h"
#include "../input/unread.h"
#include "../pass/elements.h"
#include "../text/screen.h"
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

static const char *const words[] = {"sequential", "ring", "tree", NULL};

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
        if (pass_elements_read(to, t, at, (size_t)x->count, &error))
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

/* ---- records ---- */

#define AT(member) offsetof(ranks, member)
static const record_field rank_fields[] = {FIELD(SIZE, "ranks", IN_ALL, AT(n), NULL), {0}};
static const record_kind rank_record = {"ranks", NULL, sizeof(ranks), rank_fields};
#undef AT

/* One row of the report. */
typedef struct sum_row {
    const ranks *r;
    mpsim_format wire, accumulator;
    size_t order;
    const char *word; /* of the order */
    dot_error error;
    const dot_distance *apart; /* error.rounded, where it is not error.given; else NULL */
    double bits_lost;          /* of the wire's format, by the error of the numbers as given */
    const double *above;       /* the bound, or NULL */
} sum_row;

#define AT(member) offsetof(sum_row, member)
static const record_field row_fields[] = {
    FIELD(RECORD, "ranks", IN_ALL | FIELD_INLINE | FIELD_POINTER, AT(r), NULL, .record = &rank_record),
    FIELD(CHARS, "wire", IN_ALL, AT(wire.name), "The format in which gradients are sent.", .title = "<wire"),
    FIELD(CHARS, "accumulate", IN_ALL, AT(accumulator.name), "The format of sums.", .title = "<accumulate"),
    FIELD(TEXT, "order", IN_ALL, AT(word), NULL, .title = "<order", .words = words),
    FIELD(COUNT, "count", IN_ALL, AT(error.count), "Results."),
    ERROR_FIELDS(error, given, 5),
    FIELD(
        REAL, "bits_lost", IN_ALL, AT(bits_lost),
        "p + log2(||d - e|| / ||e||) of the numbers as given, from 0 to p: the significand bits of the wire's format.",
        .title = ">bits lost", .format = "%.1f", .column = 3),
    FIELD(COUNT, "compared", IN_CSV, AT(error.given.compared), NULL, .title = ">compared", .column = 1,
          .when = SHOW_BOUND),
    FIELD(RECORD, "given", IN_ALL, AT(error.given), "Against the exact sums of the numbers as given.",
          .title = "numbers as given", .record = &dot_distance_record, .column = 2),
    FIELD(RECORD, "rounded", IN_ALL, AT(error.rounded), "Against the exact sums of the numbers as sent.",
          .record = &dot_distance_record),
    FIELD(RECORD, NULL, FIELD_POINTER, AT(apart), NULL, .title = "numbers as sent", .record = &dot_distance_record,
          .column = 4),
    FIELD(REAL, "above", IN_TREE | FIELD_POINTER | FIELD_NULL, AT(above), "The bound of --above; null: none."),
    {0}};
static const record_kind row_record = {"sum", "Sums in an order.", sizeof(sum_row), row_fields};
#undef AT

/* The report. */
typedef struct reduce_document {
    size_t ranks, elements, left_out;
    const double *above;
    unread_list unread;
} reduce_document;

#define AT(member) offsetof(reduce_document, member)
static const record_field document_fields[] = {
    FIELD(SIZE, "ranks", IN_JSON, AT(ranks), NULL),
    FIELD(SIZE, "elements", IN_JSON, AT(elements), "Elements of a rank."),
    FIELD(SIZE, "left_out", IN_JSON, AT(left_out), "Elements that are not finite on every rank."),
    FIELD(REAL, "above", IN_JSON | FIELD_POINTER | FIELD_NULL, AT(above), "The bound of --above; null: none."),
    FIELD(LIST, "unread", IN_JSON, AT(unread.items),
          "Tensors of the first file that --a names and whose numbers were not read.", .of = AT(unread.count),
          .record = &unread_record),
    FIELD(LIST, "sums", IN_JSON | FIELD_STREAM, 0, NULL, .record = &row_record),
    {0}};
#undef AT
static const record_kind document = {"document", NULL, sizeof(reduce_document), document_fields};
const report_kind dot_reduce_kind = {
    "mpsim.reduce/1", "mpsim dot --reduce: sums over ranks",
    "Errors of sums of gradients over ranks. $defs/line is a line of --ndjson, which names no schema.", &document};

/* ---- a row ---- */

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

static void begin(record_writer *w, const ranks *r)
{
    char a[32], b[32], c[32];
    record_begin(w);
    if (w->style != REPORT_TEXT)
        return;
    fprintf(w->to, "%zu ranks, %s element%s of %s tensor%s", r->n, text_count(a, r->elements), text_plural(r->elements),
            text_count(b, r->tensors), text_plural(r->tensors));
    if (r->left_out)
        fprintf(w->to, "; %s that are not finite on every rank are left out", text_count(c, r->left_out));
    fputc('\n', w->to);
    unread_print(w->to, &r->unread);
    fputc('\n', w->to);
}

static void print_rows(const record_writer *w)
{
    table_print(w->rows, w->to, "");
    screen_text(
        w->to, screen_columns(w->to),
        "\nrel. error and bits lost, of the wire's format, are of all elements together; largest is of a single "
        "one, which\nmay cancel. A ring begins at another rank in every chunk. Numbers as sent are rounded to the wire.\n");
}

/* All orders of one wire, in one accumulator. */
static int report_sums(record_writer *w, const reduce_options *o, const ranks *r, const mpsim_format *wire,
                       const mpsim_format *accumulator)
{
    float *y = need_memory(r->elements, sizeof *y);
    double *d = need_memory(r->elements, sizeof *d), *sent = add_sent(r, wire);
    const dot_truth truth = {r->exact, sent ? sent : r->exact, {1, 1}, o->above};
    int code = 0;
    for (size_t k = 0; k < sizeof orders / sizeof orders[0] && !code; k++) {
        sum_row row = {.r = r,
                       .wire = *wire,
                       .accumulator = *accumulator,
                       .order = k,
                       .word = words[k],
                       .above = o->above >= 0 ? &o->above : NULL};
        code = measure_row(r, &row, &truth, y, d);
        row.apart = row.error.same ? NULL : &row.error.rounded;
        if (!code)
            record_row(w, &row);
        progress_add(1);
    }
    free(y);
    free(d);
    free(sent);
    return code;
}

static int report_wires(record_writer *w, const reduce_options *o, const ranks *r)
{
    const char *wires = o->wires;
    const mpsim_format *single = mpsim_format_find("binary32");
    int code = 0;
    while (*wires && !code) {
        const size_t n = strcspn(wires, ",");
        char *name = need_part(wires, n);
        mpsim_format wire;
        code = format_read(&wire, "dot: --wire", name);
        free(name);
        if (!code)
            code = report_sums(w, o, r, &wire, &wire);
        if (!code && !mpsim_format_same(&wire, single))
            code = report_sums(w, o, r, &wire, single);
        wires += n + (wires[n] == ',');
    }
    return code;
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

static int report(ranks *r, const reduce_options *o, FILE *to)
{
    const reduce_document all = {.ranks = r->n,
                                 .elements = r->elements,
                                 .left_out = r->left_out,
                                 .above = o->above >= 0 ? &o->above : NULL,
                                 .unread = r->unread};
    record_writer w = {.kind = &dot_reduce_kind,
                       .to = to,
                       .style = o->style,
                       .shows = dot_distance_shows(o->style, o->absolute, o->above),
                       .document = &all};
    begin(&w, r);
    const int code = report_wires(&w, o, r);
    if (!code && o->style == REPORT_TEXT)
        print_rows(&w);
    record_end(&w);
    return code;
}

int dot_reduce_report(const reduce_options *o)
{
    ranks r = {0};
    output out;
    int code = output_open_report(&out, o->path, o->style);
    if (code)
        return code;
    if (!(code = read_files(&r, o->files, o->ranks, o->glob)) && !(code = add_exactly(&r)))
        code = report(&r, o, out.file);
    code = output_end(&out, code);
    clear(&r, o->ranks);
    return code;
}
