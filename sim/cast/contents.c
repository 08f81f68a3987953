/* contents.c -- see contents.h. */
#include "cast.h"

#include "../array/need.h"
#include "../record/cells.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Whether the file lists a tensor and does not hold its data. */
static int is_nowhere(const trace *t, size_t i)
{
    trace_copy copies[TRACE_COPIES];
    return trace_at(t, i)->unread && trace_stored_as(t, i, copies) == 0;
}

/* A tensor that the output lacks, and should have. */
static void see_unwritten(contents *c, const trace *t, size_t i, int nowhere)
{
    const trace_tensor *x = trace_at(t, i);
    if (c->unwritten[nowhere]++ == 0)
        c->first_unwritten[nowhere] = x;
    if (x->unseen && c->lacks)
        (void)unread_add(c->lacks, trace_path(t), x); /* which ends the program without memory */
}

static void copy_all(contents *c, const trace *t, size_t i)
{
    trace_copy copies[TRACE_COPIES];
    const size_t n = trace_copies(t, i, copies);
    const trace_tensor *x = trace_at(t, i);
    if (n == 0) {
        see_unwritten(c, t, i, is_nowhere(t, i));
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

void cast_contents_of(contents *c, unread_list *lacks, const input *in, const trace *t, const char *file, int only)
{
    *c = (contents){.items = need_memory(TRACE_COPIES * trace_count(t), sizeof *c->items), .lacks = lacks};
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        const int selected = input_selects(in, x);
        if (file && strcmp(file, trace_file_of(t, i)) != 0)
            continue;
        if (selected && x->format)
            c->items[c->n++] = (content){.index = i};
        else if (only && selected && x->unseen && is_nowhere(t, i))
            see_unwritten(c, t, i, 1);
        else if (only)
            leave_out(c, x, selected);
        else
            copy_all(c, t, i);
    }
}

void cast_contents_clear(contents *c)
{
    free(c->items);
    *c = (contents){.n = 0};
}

void cast_contents_note(const contents *c)
{
    char name[512];
    if (c->no_numbers)
        note("%" PRIu64 " tensor%s without floating-point numbers left out", c->no_numbers, text_plural(c->no_numbers));
    for (int nowhere = 0; nowhere < 2; nowhere++) {
        const uint64_t n = c->unwritten[nowhere];
        const trace_tensor *x = c->first_unwritten[nowhere];
        if (n)
            note("%" PRIu64 " tensor%s left out, for which %s, as '%s' of dtype %s%s%s", n, text_plural(n),
                 nowhere ? "there are no data" : "safetensors has no dtype", escape_text(name, sizeof name, x->name),
                 x->dtype, nowhere ? ": " : "", nowhere ? x->unread : "");
    }
}

static void say_some(char *to, size_t size, uint64_t tensors, uint64_t elements, const char *what)
{
    char a[32], b[32];
    if (tensors)
        text_add(to, size, "; %s tensor%s of %s element%s %s", text_count(a, tensors), text_plural(tensors),
                 text_count(b, elements), text_plural(elements), what);
}

void cast_contents_say(char *to, size_t size, const contents *c)
{
    say_some(to, size, c->copies, c->copied_elements, "copied");
    say_some(to, size, c->unselected, c->unselected_elements, "left out");
}
