/* quantised.c -- see quantised.h. */
#include "quantised.h"

#include "../text/escape.h"
#include "../text/words.h"

#include <inttypes.h>
#include <string.h>

enum { WAYS_MAX = 16 };

/* "4,096 zero", " NaN", ... behind what stands there already. */
static void add_odd(char *text, size_t size, uint64_t count, const char *what)
{
    char number[32];
    if (count)
        text_add(text, size, "%s%s %s", *text ? ", " : "", text_count(number, count), what);
}

static void add_ends(char *text, size_t size, const trace_scale_stats *s)
{
    add_odd(text, size, s->least_codes, "least");
    add_odd(text, size, s->largest_codes, "largest");
    add_odd(text, size, s->zeros, "zero");
    add_odd(text, size, s->nonfinite, "not finite");
    add_odd(text, size, s->negative, "negative");
    if (!*text)
        text_add(text, size, "-");
}

void info_quantised_fill(info_quantised *to, const trace_quantised *q, const trace_scale_stats *scales)
{
    *to = (info_quantised){.q = q, .block = {q->block_rows, q->block_cols}, .sides = to->block, .two = 2};
    snprintf(to->shown, sizeof to->shown, "%s %s: %s in %" PRIu64 "x%" PRIu64 ", %s%s scales%s", q->layout, q->type,
             q->codes, q->block_rows, q->block_cols, q->order[0] == 's' ? "swizzled " : "", q->scales,
             q->tensor_scale ? ", tensor scale" : "");
    if (q->transform)
        text_add(to->shown, sizeof to->shown, ", behind a Hadamard transform of %u", q->transform);
    if (scales && q->scale) {
        to->scales = scales;
        add_ends(to->ends, sizeof to->ends, scales);
    }
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

void info_quantised_line(FILE *to, const trace *t)
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
