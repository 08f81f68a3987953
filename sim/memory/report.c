/* report.c -- see report.h. */
#include "report.h"

#include "../text/words.h"

#include <inttypes.h>
#include <string.h>

static const char *const recompute_words[] = {
    [COUNT_RECOMPUTE_NONE] = "none", [COUNT_RECOMPUTE_SELECTIVE] = "selective", [COUNT_RECOMPUTE_FULL] = "full"};

/* ---- text ---- */

static const char *giga(char out[32], uint64_t bytes, double unit)
{
    const double x = (double)bytes / unit;
    snprintf(out, 32, x < 0.0005 ? "%.1e" : x < 10 ? "%.3f" : "%.2f", x);
    return out;
}

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
                r->transformer->heads, recompute_words[h->recompute], h->flash ? ", FlashAttention" : "");
}

static void bytes_cells(table *t, uint64_t bytes, uint64_t parameters)
{
    char count[32], text[32];
    table_cell(t, "%s", text_count(count, bytes));
    table_cell(t, "%s", giga(text, bytes, 1e9));
    table_cell(t, "%s", giga(text, bytes, 0x1p30));
    table_cell(t, "%.4g", (double)bytes / (double)parameters);
}

static void component_rows(table *t, const memory_report *r, const ledger *l, ledger_component c)
{
    char formula[160], count[32];
    const size_t n = l->count[c];
    if (n == 0)
        return;
    table_cell(t, "%s", ledger_name(c));
    bytes_cells(t, ledger_bytes(l, c), r->shape->parameters);
    table_cell(t, "%s", n == 1 ? ledger_formula(formula, sizeof formula, &l->terms[c][0]) : "");
    for (size_t i = 0; n > 1 && i < n; i++) {
        table_cell(t, "%s", "");
        table_cell(t, "%s", text_count(count, l->terms[c][i].bytes));
        for (int k = 0; k < 3; k++)
            table_cell(t, "%s", "");
        table_cell(t, "%s", ledger_formula(formula, sizeof formula, &l->terms[c][i]));
    }
}

static const char *of_fp32(char out[32], const memory_case *c)
{
    snprintf(out, 32, "%.4g %%", 100 * (double)ledger_total(&c->bytes) / (double)c->fp32);
    return out;
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

static void print_case(const memory_report *r, FILE *to)
{
    const memory_case *c = &r->cases[0];
    char line[1024];
    fprintf(to, "policy     %s\n", escape_text(line, sizeof line, c->policy));
    text_wrapped(to, "plan       ", c->plan);
    if (c->scheduled)
        fprintf(to, "           of the schedule, the plan that needs most: from step %" PRIu64 "\n", c->from);
    snprintf(line, sizeof line, "%s, %s%s%s", c->optimizer.name, c->optimizer.what, c->optimizer.source ? ", " : "",
             c->optimizer.source ? c->optimizer.source : "");
    text_wrapped(to, "optimizer  ", line);
    fputc('\n', to);
    table *t = table_new("<component|>bytes|>GB|>GiB|>a parameter|<formula");
    for (int k = 0; k < LEDGER_COMPONENTS; k++)
        component_rows(t, r, &c->bytes, (ledger_component)k);
    table_cell(t, "total");
    bytes_cells(t, ledger_total(&c->bytes), r->shape->parameters);
    table_cell(t, "%s of what fp32 takes", of_fp32(line, c));
    table_print(t, to, "");
    table_free(t);
}

static void print_cases(const memory_report *r, FILE *to)
{
    table *t = table_new("<policy|<optimizer|>weights|>copies|>master|>gradients|>state|>activations|"
                         ">all, GB|>GiB|>a parameter|>of fp32");
    char text[32];
    int copies = 0; // whether there are any
    fputc('\n', to);
    for (size_t i = 0; i < r->count; i++) {
        const ledger *l = &r->cases[i].bytes;
        const uint64_t cells[] = {ledger_bytes(l, LEDGER_WEIGHTS),
                                  ledger_bytes(l, LEDGER_COPIES) + ledger_bytes(l, LEDGER_GATHERED),
                                  ledger_bytes(l, LEDGER_MASTER),
                                  ledger_bytes(l, LEDGER_GRADIENTS) + ledger_bytes(l, LEDGER_MASTER_GRADIENTS),
                                  ledger_bytes(l, LEDGER_STATE) + ledger_bytes(l, LEDGER_SCALING),
                                  ledger_bytes(l, LEDGER_ACTIVATIONS)};
        copies |= cells[1] != 0;
        table_cell(t, "%s", r->cases[i].policy);
        table_cell(t, "%s", r->cases[i].optimizer.name);
        for (size_t k = 0; k < sizeof cells / sizeof cells[0]; k++)
            table_cell(t, "%s", cells[k] ? giga(text, cells[k], 1e9) : "");
        table_cell(t, "%s", giga(text, ledger_total(l), 1e9));
        table_cell(t, "%s", giga(text, ledger_total(l), 0x1p30));
        table_cell(t, "%.4g", (double)ledger_total(l) / (double)r->shape->parameters);
        table_cell(t, "%s", of_fp32(text, &r->cases[i]));
    }
    table_print(t, to, "");
    table_free(t);
    fputs("in GB (10^9 bytes), all also in GiB (2^30 bytes); formulas: with one policy, or --json\n", to);
    if (copies)
        fputs("copies: of weights, gathered ones too\n", to);
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
    (r->count == 1 ? print_case : print_cases)(r, to);
    print_notes(r, to);
}

/* ---- JSON, CSV ---- */

static json_t *term_json(const ledger_term *t)
{
    char formula[160];
    json_t *v = json_object();
    json_object_set_new(v, "what", json_string(t->what));
    json_object_set_new(v, "formula", json_string(ledger_formula(formula, sizeof formula, t)));
    json_object_set_new(v, "bytes", json_of_count(t->bytes));
    json_object_set_new(v, "bytes_each", t->each ? json_of_count(t->each) : json_null());
    json_object_set_new(v, "elements", t->each ? json_of_count(t->n) : json_null());
    return v;
}

static json_t *case_json(const memory_case *c)
{
    json_t *v = json_object(), *components = json_array();
    for (int k = 0; k < LEDGER_COMPONENTS; k++) {
        json_t *component = json_object(), *terms = json_array();
        for (size_t i = 0; i < c->bytes.count[k]; i++)
            json_array_append_new(terms, term_json(&c->bytes.terms[k][i]));
        json_object_set_new(component, "component", json_string(ledger_name((ledger_component)k)));
        json_object_set_new(component, "bytes", json_of_count(ledger_bytes(&c->bytes, (ledger_component)k)));
        json_object_set_new(component, "terms", terms);
        json_array_append_new(components, component);
    }
    json_object_set_new(v, "policy", json_string(c->policy));
    json_object_set_new(v, "from_step", json_of_count(c->from));
    json_object_set_new(v, "optimizer", json_string(c->optimizer.name));
    json_object_set_new(v, "components", components);
    json_object_set_new(v, "total", json_of_count(ledger_total(&c->bytes)));
    json_object_set_new(v, "of_fp32", json_real((double)ledger_total(&c->bytes) / (double)c->fp32));
    json_object_set_new(v, "unmatched_patterns", json_string(c->unmatched));
    return v;
}

static void print_json(const memory_report *r, FILE *to)
{
    const count_setting *h = r->how;
    json_t *v = json_object();
    json_object_set_new(v, "parameters", json_of_count(r->shape->parameters));
    json_object_set_new(v, "source", json_string(r->source));
    json_object_set_new(v, "ranks", json_of_count(h->ranks));
    json_object_set_new(v, "zero", json_of_count(h->zero));
    json_object_set_new(v, "tensor_parallel", json_of_count(h->tensor_parallel));
    json_object_set_new(v, "sequence_parallel", json_boolean(h->sequence_parallel));
    json_object_set_new(v, "recompute", json_string(recompute_words[h->recompute]));
    json_object_set_new(v, "activations", json_boolean(r->transformer != NULL));
    json_object_set_new(v, "not_counted", json_string(r->shape->uncounted));
    json_begin(to, "mpsim.memory/1");
    fputs("\"model\": ", to);
    json_write(to, v);
    fputs(",\n\"policies\": [", to);
    for (size_t i = 0; i < r->count; i++) {
        json_item(to, REPORT_JSON, i, case_json(&r->cases[i]));
    }
    fputs("],\n", to);
    unread_put(&(jsonout){.to = to}, &r->shape->unread);
    fputs("}\n", to);
}

static void csv_row(FILE *to, const memory_case *c, const char *component, const char *formula, uint64_t bytes)
{
    csv_text(to, c->policy);
    fprintf(to, ",%s,%s,%" PRIu64 ",", c->optimizer.name, component, bytes);
    csv_text(to, formula);
    fputc('\n', to);
}

static void print_csv(const memory_report *r, FILE *to)
{
    char formula[160];
    fputs("policy,optimizer,component,bytes,formula\n", to);
    for (size_t i = 0; i < r->count; i++) {
        const memory_case *c = &r->cases[i];
        for (int k = 0; k < LEDGER_COMPONENTS; k++)
            for (size_t j = 0; j < c->bytes.count[k]; j++)
                csv_row(to, c, ledger_name((ledger_component)k),
                        ledger_formula(formula, sizeof formula, &c->bytes.terms[k][j]), c->bytes.terms[k][j].bytes);
        csv_row(to, c, "total", "", ledger_total(&c->bytes));
    }
}

void memory_print(const memory_report *r, report_style style, FILE *to)
{
    (style == REPORT_JSON ? print_json : style == REPORT_CSV ? print_csv : print_text)(r, to);
}
