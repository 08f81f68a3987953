/* quantised.c -- see quantised.h. */
#include "quantised.h"

#include "../text/escape.h"
#include "../text/words.h"

#include <inttypes.h>
#include <string.h>

enum { CELLS = 6, SCALE_CELLS = 4, WAYS_MAX = 16 };

int quantised_is(const trace *t)
{
    for (size_t i = 0; i < trace_count(t); i++)
        if (trace_at(t, i)->quantised)
            return 1;
    return 0;
}

static void no_cells(table *rows, int n)
{
    while (n--)
        table_cell(rows, "%s", "");
}

/* "4,096 zero", " NaN", ... behind what stands there already. */
static void add_odd(char *text, size_t size, uint64_t count, const char *what)
{
    char number[32];
    if (count)
        text_add(text, size, "%s%s %s", *text ? ", " : "", text_count(number, count), what);
}

void quantised_cells(table *rows, const trace_quantised *q, const trace_scale_stats *scales)
{
    char text[128] = "", number[32];
    if (!q) {
        no_cells(rows, CELLS);
        return;
    }
    if (q->transform)
        snprintf(text, sizeof text, ", behind a Hadamard transform of %u", q->transform);
    table_cell(rows, "%s %s: %s in %" PRIu64 "x%" PRIu64 ", %s%s scales%s%s", q->layout, q->type, q->codes,
               q->block_rows, q->block_cols, q->order[0] == 's' ? "swizzled " : "", q->scales,
               q->tensor_scale ? ", tensor scale" : "", text);
    text[0] = '\0';
    table_bytes(rows, q->bytes);
    if (!scales || !q->scale) {
        no_cells(rows, SCALE_CELLS);
        return;
    }
    table_cell(rows, "%s", text_count(number, scales->count));
    table_cell(rows, "%s", text_number(number, scales->least));
    table_cell(rows, "%s", text_number(number, scales->largest));
    add_odd(text, sizeof text, scales->least_codes, "least");
    add_odd(text, sizeof text, scales->largest_codes, "largest");
    add_odd(text, sizeof text, scales->zeros, "zero");
    add_odd(text, sizeof text, scales->nonfinite, "not finite");
    add_odd(text, sizeof text, scales->negative, "negative");
    table_cell(rows, "%s", *text ? text : "-");
}

/* "torchao by metadata, ...": each pair once. */
static void print_ways(FILE *to, const trace *t)
{
    const trace_quantised *seen[WAYS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < trace_count(t) && n < WAYS_MAX; i++) {
        const trace_quantised *q = trace_at(t, i)->quantised;
        size_t k = 0;
        while (q && k < n && (strcmp(q->layout, seen[k]->layout) != 0 || strcmp(q->evidence, seen[k]->evidence) != 0))
            k++;
        if (!q || k < n)
            continue;
        seen[n++] = q;
        fprintf(to, "%s %s by %s", n > 1 ? "," : ";", q->layout, q->evidence);
    }
}

void quantised_line(FILE *to, const trace *t)
{
    char n[32], text[1024];
    uint64_t all = 0, bytes = 0;
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_quantised *q = trace_at(t, i)->quantised;
        all += q != NULL;
        bytes += q ? q->bytes : 0;
    }
    if (all) {
        fprintf(to, "  quantised: %s tensor%s", text_count(n, all), text_plural(all));
        fprintf(to, ", %s of codes and scales", text_bytes(n, bytes));
        print_ways(to, t);
        fputc('\n', to);
    }
    if (trace_quantised_note(t))
        fprintf(to, "  not quantised: %s\n", escape_text(text, sizeof text, trace_quantised_note(t)));
}

static json_t *scales_json(const trace_scale_stats *s)
{
    json_t *v = json_object();
    json_object_set_new(v, "count", json_of_count(s->count));
    json_object_set_new(v, "least", json_of_double(s->least));
    json_object_set_new(v, "largest", json_of_double(s->largest));
    json_object_set_new(v, "least_codes", json_of_count(s->least_codes));
    json_object_set_new(v, "largest_codes", json_of_count(s->largest_codes));
    json_object_set_new(v, "zeros", json_of_count(s->zeros));
    json_object_set_new(v, "nonfinite", json_of_count(s->nonfinite));
    json_object_set_new(v, "negative", json_of_count(s->negative));
    return v;
}

json_t *quantised_json(const trace_quantised *q, const trace_scale_stats *scales)
{
    json_t *v = json_object(), *block = json_array();
    json_array_append_new(block, json_of_count(q->block_rows));
    json_array_append_new(block, json_of_count(q->block_cols));
    json_object_set_new(v, "layout", json_string(q->layout));
    json_object_set_new(v, "type", json_string(q->type));
    json_object_set_new(v, "element", json_string(q->codes));
    json_object_set_new(v, "scale", json_string(q->scales));
    json_object_set_new(v, "block", block);
    json_object_set_new(v, "order", json_string(q->order));
    json_object_set_new(v, "tensor_scale", q->tensor_scale ? json_string(q->tensor_scale) : json_null());
    json_object_set_new(v, "transform", json_integer(q->transform));
    json_object_set_new(v, "bytes", json_of_count(q->bytes));
    json_object_set_new(v, "evidence", json_string(q->evidence));
    if (scales && q->scale)
        json_object_set_new(v, "scales", scales_json(scales));
    return v;
}
