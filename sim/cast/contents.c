/* contents.c -- see contents.h. */
#include "contents.h"

#include "../array/need.h"
#include "../report/report.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void copy_all(contents *c, const trace *t, size_t i)
{
    trace_copy copies[TRACE_COPIES];
    const size_t n = trace_copies(t, i, copies);
    const trace_tensor *x = trace_at(t, i);
    if (n == 0) {
        c->first_unwritten = c->unwritten++ ? c->first_unwritten : x;
        return;
    }
    c->copies++;
    c->copied_elements += x->count;
    for (size_t k = 0; k < n; k++)
        c->items[c->n++] = (content){i, 1, copies[k]};
}

static void leave_out(contents *c, const trace_tensor *x, int selected)
{
    c->no_numbers += (uint64_t)selected;
    c->unselected += (uint64_t)!selected;
    c->unselected_elements += selected ? 0 : x->count;
}

void contents_of(contents *c, const input *in, const trace *t, const char *file, int only)
{
    *c = (contents){.items = need_memory(TRACE_COPIES * trace_count(t), sizeof *c->items)};
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        const int selected = input_selects(in, x);
        if (file && strcmp(file, trace_file_of(t, i)) != 0)
            continue;
        if (selected && x->format)
            c->items[c->n++] = (content){.index = i};
        else if (only)
            leave_out(c, x, selected);
        else
            copy_all(c, t, i);
    }
}

void contents_clear(contents *c)
{
    free(c->items);
    *c = (contents){.n = 0};
}

void contents_note(const contents *c)
{
    char name[512];
    if (c->no_numbers)
        note("%" PRIu64 " tensor%s without floating-point numbers left out", c->no_numbers, text_plural(c->no_numbers));
    if (c->unwritten)
        note("%" PRIu64 " tensor%s left out, for which safetensors has no dtype, as '%s' of dtype %s", c->unwritten,
             text_plural(c->unwritten), escape_text(name, sizeof name, c->first_unwritten->name),
             c->first_unwritten->dtype);
}

static void print_some(uint64_t tensors, uint64_t elements, const char *what)
{
    char a[32], b[32];
    if (tensors)
        printf("; %s tensor%s of %s element%s %s", text_count(a, tensors), text_plural(tensors),
               text_count(b, elements), text_plural(elements), what);
}

void contents_print(const contents *c)
{
    print_some(c->copies, c->copied_elements, "copied");
    print_some(c->unselected, c->unselected_elements, "left out");
}
