/* report.c -- see report.h. */
#include "record.h"

#include "../array/need.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines: of CSV, and of the table of one policy ---- */

/* Of a term, of a component or of all; t: of the formula, or NULL. */
static memory_line line_of(const memory_report *r, const memory_case *c, const char *component, uint64_t bytes,
                           const ledger_term *t)
{
    memory_line line = {.policy = c->policy,
                        .optimizer = c->optimizer.name,
                        .component = component,
                        .bytes = bytes,
                        .whole = component[0] != '\0',
                        .a_parameter = (double)bytes / (double)r->shape->parameters};
    if (t)
        memory_ledger_formula(line.formula, sizeof line.formula, t);
    return line;
}

static void print_line(FILE *to, const memory_line *line)
{
    record_csv(to, &memory_line_record, line, 0);
    fputc('\n', to);
}

static void print_csv(const memory_report *r, FILE *to)
{
    record_csv_head(to, &memory_line_record, 0);
    fputc('\n', to);
    for (size_t i = 0; i < r->count; i++) {
        const memory_case *c = &r->cases[i];
        for (int k = 0; k < LEDGER_COMPONENTS; k++)
            for (size_t j = 0; j < c->bytes.count[k]; j++) {
                const ledger_term *t = &c->bytes.terms[k][j];
                const memory_line line = line_of(r, c, memory_ledger_names[k], t->bytes, t);
                print_line(to, &line);
            }
        const memory_line total = line_of(r, c, "total", memory_ledger_total(&c->bytes), NULL);
        print_line(to, &total);
    }
}

/* A component and, if it has several terms, each of them below. */
static void component_lines(table *t, const memory_report *r, const memory_case *c, ledger_component k)
{
    const ledger *l = &c->bytes;
    const size_t n = l->count[k];
    if (n == 0)
        return;
    memory_line line = line_of(r, c, memory_ledger_names[k], memory_ledger_bytes(l, k), n == 1 ? l->terms[k] : NULL);
    record_cells(t, &memory_line_record, &line, 0);
    for (size_t i = 0; n > 1 && i < n; i++) {
        line = line_of(r, c, "", l->terms[k][i].bytes, &l->terms[k][i]);
        record_cells(t, &memory_line_record, &line, 0);
    }
}

static double percent_of(const memory_case *c)
{
    return 100 * (double)memory_ledger_total(&c->bytes) / (double)c->fp32;
}

static void print_lines(const memory_report *r, FILE *to)
{
    const memory_case *c = &r->cases[0];
    table *t = record_table(&memory_line_record, 0);
    for (int k = 0; k < LEDGER_COMPONENTS; k++)
        component_lines(t, r, c, (ledger_component)k);
    memory_line total = line_of(r, c, "total", memory_ledger_total(&c->bytes), NULL);
    snprintf(total.formula, sizeof total.formula, "%.4g %% of what fp32 takes", percent_of(c));
    record_cells(t, &memory_line_record, &total, 0);
    table_print(t, to, "");
    table_free(t);
}

/* ---- rows: a policy each ---- */

typedef struct parts {
    memory_component components[LEDGER_COMPONENTS];
    memory_term terms[LEDGER_COMPONENTS][LEDGER_TERMS];
} parts;

static void fill_component(parts *p, const ledger *l, ledger_component k)
{
    for (size_t i = 0; i < l->count[k]; i++) {
        memory_term *t = &p->terms[k][i];
        t->t = l->terms[k][i];
        t->is_product = t->t.each != 0;
        memory_ledger_formula(t->formula, sizeof t->formula, &t->t);
    }
    p->components[k] = (memory_component){memory_ledger_names[k], memory_ledger_bytes(l, k), p->terms[k], l->count[k]};
}

static uint64_t copies_of(const ledger *l)
{
    return memory_ledger_bytes(l, LEDGER_COPIES) + memory_ledger_bytes(l, LEDGER_GATHERED);
}

static void add_row(record_writer *w, const memory_report *r, const memory_case *c)
{
    parts *p = need_memory(1, sizeof *p);
    for (int k = 0; k < LEDGER_COMPONENTS; k++)
        fill_component(p, &c->bytes, (ledger_component)k);
    const ledger *l = &c->bytes;
    const uint64_t total = memory_ledger_total(l);
    const memory_row row = {
        .policy = c->policy,
        .optimizer = c->optimizer.name,
        .unmatched = c->unmatched,
        .from = c->from,
        .total = total,
        .of_fp32 = (double)total / (double)c->fp32,
        .percent = percent_of(c),
        .a_parameter = (double)total / (double)r->shape->parameters,
        .components = p->components,
        .count = LEDGER_COMPONENTS,
        .columns = {memory_ledger_bytes(l, LEDGER_WEIGHTS), copies_of(l), memory_ledger_bytes(l, LEDGER_MASTER),
                    memory_ledger_bytes(l, LEDGER_GRADIENTS) + memory_ledger_bytes(l, LEDGER_MASTER_GRADIENTS),
                    memory_ledger_bytes(l, LEDGER_STATE) + memory_ledger_bytes(l, LEDGER_SCALING),
                    memory_ledger_bytes(l, LEDGER_ACTIVATIONS)}};
    record_row(w, &row);
    free(p);
}

static void print_rows(const memory_report *r, report_style style, FILE *to)
{
    const count_setting *h = r->how;
    const memory_document document = {.model = {.parameters = r->shape->parameters,
                                                .source = r->source,
                                                .ranks = h->ranks,
                                                .zero = h->zero,
                                                .tensor_parallel = h->tensor_parallel,
                                                .sequence_parallel = h->sequence_parallel,
                                                .recompute = memory_recomputation[h->recompute],
                                                .activations = r->transformer != NULL,
                                                .not_counted = r->shape->uncounted},
                                      .unread = &r->shape->unread};
    record_writer w = {.kind = &memory_kind, .to = to, .style = style, .document = &document};
    record_begin(&w);
    for (size_t i = 0; i < r->count; i++)
        add_row(&w, r, &r->cases[i]);
    table_print(w.rows, to, "");
    record_end(&w);
}

/* ---- text ---- */

static void print_head(const memory_report *r, FILE *to)
{
    static const char *const stages[] = {"", "masters and optimizer state are cut",
                                         "masters, optimizer state and gradients are cut",
                                         "masters, optimizer state, gradients and weights are cut"};
    const count_setting *h = r->how;
    char text[1024], number[32], buffers[32], elements[32];
    const shape *m = r->shape;
    snprintf(text, sizeof text, "%s parameters, %s", text_count(number, m->parameters), r->source);
    if (m->buffers)
        text_add(text, sizeof text, ", %s tensor%s of %s element%s left out, which %s not parameters",
                 text_count(buffers, m->buffers), text_plural(m->buffers), text_count(elements, m->left_out),
                 text_plural(m->left_out), m->buffers == 1 ? "is" : "are");
    if (m->packed)
        text_add(text, sizeof text, " or, %s of them, packed codes, whose parameters are not counted",
                 text_count(buffers, m->packed));
    text_wrapped(to, "model      ", text);
    if (h->tensor_parallel > 1)
        fprintf(to, "tensors    cut into %" PRIu64 "%s\n", h->tensor_parallel,
                h->sequence_parallel ? ", sequences too" : "");
    if (h->ranks > 1)
        fprintf(to, "ranks      %" PRIu64 ", ZeRO %u%s%s; the bytes are those of one\n", h->ranks, h->zero,
                h->zero ? ": " : "", stages[h->zero]);
    if (r->transformer)
        fprintf(to,
                "batch      %" PRIu64 " of %" PRIu64 ", %" PRIu64 " layers, hidden size %" PRIu64 ", %" PRIu64
                " heads; recomputation %s%s\n",
                r->transformer->batch, r->transformer->seq, r->transformer->layers, r->transformer->hidden,
                r->transformer->heads, memory_recomputation[h->recompute], h->flash ? ", FlashAttention" : "");
}

static void print_policy(const memory_case *c, FILE *to)
{
    char line[1024];
    fprintf(to, "policy     %s\n", escape_text(line, sizeof line, c->policy));
    text_wrapped(to, "plan       ", c->plan);
    if (c->scheduled)
        fprintf(to, "           of the schedule, the plan that needs most: from step %" PRIu64 "\n", c->from);
    snprintf(line, sizeof line, "%s, %s%s%s", c->optimizer.name, c->optimizer.what, c->optimizer.source ? ", " : "",
             c->optimizer.source ? c->optimizer.source : "");
    text_wrapped(to, "optimizer  ", line);
}

/* Whether a policy has copies of weights. */
static int some_copies(const memory_report *r)
{
    int some = 0;
    for (size_t i = 0; i < r->count; i++)
        some |= copies_of(&r->cases[i].bytes) != 0;
    return some;
}

static void print_units(const memory_report *r, FILE *to)
{
    fputs("in GB (10^9 bytes), all also in GiB (2^30 bytes); formulas: with one policy, or --json\n", to);
    if (some_copies(r))
        fputs("copies: of weights, gathered ones too\n", to);
}

static void print_unmatched(const memory_report *r, FILE *to)
{
    char line[700];
    for (size_t i = 0; i < r->count; i++) {
        if (!r->cases[i].unmatched[0])
            continue;
        snprintf(line, sizeof line, "%s%s%s", r->count > 1 ? r->cases[i].policy : "", r->count > 1 ? ": " : "",
                 r->cases[i].unmatched);
        text_wrapped(to, "patterns   fit no layer here: ", line);
    }
}

/* What is not in the table, and why. */
static void print_notes(const memory_report *r, FILE *to)
{
    fputc('\n', to);
    print_unmatched(r, to);
    if (r->shape->uncounted[0])
        text_wrapped(to, "not counted: ", r->shape->uncounted);
    if (!r->transformer)
        fputs("without activations: --layers --hidden --heads --seq --batch --vocab describe a transformer\n", to);
    if (r->how->zero >= 3 && r->shape->counted_only)
        fputs("without the layer that ZeRO 3 gathers, whose size --params does not tell\n", to);
    fputs("not counted: buffers of communication, workspaces, fragments, the CUDA context\n", to);
}

static void print_text(const memory_report *r, FILE *to)
{
    print_head(r, to);
    if (r->count == 1)
        print_policy(&r->cases[0], to);
    fputc('\n', to);
    if (r->count == 1) {
        print_lines(r, to);
    } else {
        print_rows(r, REPORT_TEXT, to);
        print_units(r, to);
    }
    print_notes(r, to);
}

void memory_print(const memory_report *r, report_style style, FILE *to)
{
    if (style == REPORT_TEXT)
        print_text(r, to);
    else if (style == REPORT_CSV)
        print_csv(r, to);
    else
        print_rows(r, style, to);
}
