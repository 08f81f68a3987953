/* shift.c -- see shift.h. A's files are opened anew: those of the comparisons that wait stay as they are. */
#include "impl.h"

#include "../array/need.h"

#include <stdlib.h>
#include <string.h>

static void close_step(diff_shift *s)
{
    for (size_t i = 0; i < s->n; i++) {
        nameindex_clear(&s->names[i]);
        trace_close(s->traces[i]);
    }
    free(s->traces);
    free(s->names);
    s->traces = NULL;
    s->names = NULL;
    s->n = 0;
}

static int open_file(diff_shift *s, const side_file *f, trace_error *error)
{
    trace *t = input_trace_open(&s->a->in, f->path, error);
    if (!t)
        return -1;
    s->traces[s->n++] = t;
    for (size_t i = 0; i < trace_count(t); i++)
        nameindex_add(&s->names[s->n - 1], trace_at(t, i)->name, i);
    return 0;
}

static int open_step(diff_shift *s, size_t step, trace_error *error)
{
    const side_step *of = &s->a->steps[step];
    if (s->n && s->step == step)
        return 0;
    close_step(s);
    s->step = step;
    s->traces = need_memory(of->n, sizeof *s->traces);
    s->names = need_memory(of->n, sizeof *s->names);
    for (size_t i = 0; i < of->n; i++)
        if (open_file(s, &s->a->files[of->first + i], error))
            return -1;
    return 0;
}

/* Whether tensor i of a file has the codes of B's. */
static int compare(trace *t, size_t i, verdict_case *c, int *same, trace_error *error)
{
    const side_tensor *y = c->tensors[1];
    const trace_tensor *x = trace_at(t, i);
    walk w = {.lanes = 0};
    if (!x->format || x->count != y->count || !mpsim_format_same(x->format, y->format))
        return 0;
    w.of[0].tensor = y; /* as many elements of one format */
    int bad = pass_elements_open(&w.of[0].from, t, i, ELEMENTS_ROWS, NULL, error) ||
              diff_source_open(&w.of[1], c->sides[1], y, error);
    if (!bad) {
        diff_walk_open(&w, c->walk.lanes);
        bad = diff_walk_equal(&w, same, error);
    }
    diff_walk_close(&w);
    return bad;
}

/* Where a step of A has A's tensor of this step: in file k. -1: not there. */
static ptrdiff_t find(const diff_shift *s, const side_file *f, size_t k, const side_tensor *t)
{
    if (f->said.rank != t->file->said.rank)
        return -1;
    return t->series == t->name ? nameindex_find(&s->names[k], t->name) : strcmp(f->series, t->series) ? -1 : 0;
}

static int is_at(diff_shift *s, size_t step, verdict_case *c, int *same, trace_error *error)
{
    *same = 0;
    if (open_step(s, step, error))
        return -1;
    const side_file *files = &s->a->files[s->a->steps[step].first];
    for (size_t k = 0; k < s->n && !*same; k++) {
        const ptrdiff_t i = find(s, &files[k], k, c->tensors[0]);
        if (i >= 0 && compare(s->traces[k], (size_t)i, c, same, error))
            return -1;
    }
    return 0;
}

static int try_step(diff_shift *s, size_t step, int64_t by, verdict_case *c, trace_error *error)
{
    int same;
    if ((by < 0 && step < (uint64_t)-by) || step + (uint64_t)by >= s->a->n_steps)
        return 0;
    const size_t other = step + (size_t)by;
    if (is_at(s, other, c, &same, error))
        return -1;
    if (same) {
        s->by = by;
        c->elsewhere = 1;
        c->step_elsewhere = s->a->steps[other].step;
    }
    return 0;
}

/* Numbers that other tensors do not have by accident, and that B did not have at the step before. */
static int is_worth(verdict_case *c, int *worth, trace_error *error)
{
    enum { FEWEST = 8, LEVELS = 4 };
    int stays = 0;
    *worth = c->all.count >= FEWEST && c->all.levels[1].n >= LEVELS;
    if (*worth && c->before[1] &&
        diff_walk_same(c->sides[1], c->before[1], c->sides[1], c->tensors[1], c->walk.lanes, &stays, error))
        return -1;
    *worth &= !stays;
    return 0;
}

int diff_shift_look(diff_shift *s, size_t step, verdict_case *c, trace_error *error)
{
    enum { TENSORS = 4, STEPS = 64 };
    int worth;
    c->elsewhere = 0;
    if (s->a->n_steps < 2 || (!s->by && s->tried == TENSORS))
        return 0;
    if (s->by)
        return try_step(s, step, s->by, c, error);
    s->tried++;
    if (is_worth(c, &worth, error))
        return -1;
    for (int64_t by = 1; worth && by <= STEPS && !s->by; by++)
        if (try_step(s, step, by, c, error) || (!s->by && try_step(s, step, -by, c, error)))
            return -1;
    return 0;
}

void diff_shift_clear(diff_shift *s)
{
    close_step(s);
}
