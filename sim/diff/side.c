/* side.c -- see side.h. */
#include "side.h"

#include "../array/need.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN_MOST = 64 }; /* files of a side, but for those that are in use */

/* ---- files ---- */

static const char *below(const char *operand, const char *path)
{
    const size_t n = strlen(operand);
    if (strncmp(operand, path, n) != 0)
        return path;
    path += n;
    return path + strspn(path, "/");
}

/* Close what was used longest ago, of what may be closed. */
static void make_room(side *s)
{
    side_file *oldest = NULL;
    for (size_t i = 0; i < s->n_files; i++) {
        side_file *f = &s->files[i];
        if (f->t && !f->once && f->used < s->pinned && (!oldest || f->used < oldest->used))
            oldest = f;
    }
    if (!oldest)
        return;
    trace_close(oldest->t);
    oldest->t = NULL;
    s->n_open--;
}

trace *diff_side_trace(side *s, side_file *f, trace_error *error)
{
    if (!f->t) {
        if (s->n_open >= OPEN_MOST)
            make_room(s);
        f->t = input_trace_open(&s->in, f->path, error);
        s->n_open += f->t != NULL;
        if (f->t && f->once)
            f->said.step = trace_step(f->t);
    }
    f->used = ++s->clock;
    return f->t;
}

static char *series(const char *path)
{
    const char *digits, *end;
    if (trace_step_in_path(path, &digits, &end) < 0)
        return need_text(path);
    return need_format("%.*s%s", (int)(digits - path), path, end);
}

/* What can be read only once is opened now: only so is its step known, and whether it is there. */
static int take_file(side *s, size_t i, const input_step *said, const char *operand)
{
    side_file *f = &s->files[i];
    trace_error error;
    f->path = s->in.tree.paths[i];
    f->below = below(operand, f->path);
    f->series = series(f->below);
    f->said = *said;
    f->once = !input_is_file(f->path);
    s->n_files++;
    return f->once && !diff_side_trace(s, f, &error) ? input_failed(&s->in, &error) : 0;
}

static int take_files(side *s, const input_step *steps, const char *operand)
{
    const size_t n = s->in.tree.count;
    int code = 0;
    s->files = need_memory(n + 1, sizeof *s->files);
    s->steps = need_memory(n + 1, sizeof *s->steps);
    for (size_t i = 0; i < n && !code; i++) {
        code = take_file(s, i, &steps[i], operand);
        const int64_t step = s->files[i].said.step;
        if (i == 0 || step != s->steps[s->n_steps - 1].step)
            s->steps[s->n_steps++] = (side_step){.step = step, .first = i};
        s->steps[s->n_steps - 1].n++;
    }
    s->single = n == 1 && !s->files[0].below[0];
    return code;
}

int diff_side_open(side *s, const char *verb, const input_options *o, char *operand)
{
    input_step *steps = NULL;
    memset(s, 0, sizeof *s);
    int code = input_open(&s->in, verb, o, &operand, 1);
    if (!code)
        code = input_order_steps(&s->in, &steps);
    if (!code)
        code = take_files(s, steps, operand);
    free(steps);
    return code;
}

void diff_side_close(side *s)
{
    for (size_t i = 0; i < s->n_files; i++) {
        trace_close(s->files[i].t);
        free(s->files[i].series);
    }
    for (side_format *f = s->formats; f;) {
        side_format *next = f->next;
        free(f);
        f = next;
    }
    free(s->files);
    free(s->steps);
    input_close(&s->in);
    memset(s, 0, sizeof *s);
}

void diff_side_pin(side *s)
{
    s->pinned = s->clock + 1;
}

/* ---- tensors ---- */

/* A format of a file, to keep: a row of the table, or a copy. NULL without memory. */
static const mpsim_format *keep_format(side *s, const mpsim_format *f)
{
    if (mpsim_format_find(f->name) == f)
        return f;
    side_format *own = s->formats;
    while (own && !(strcmp(own->format.name, f->name) == 0 && mpsim_format_same(&own->format, f)))
        own = own->next;
    if (!own) {
        own = need_memory(1, sizeof *own);
        *own = (side_format){*f, s->formats};
        s->formats = own;
    }
    return &own->format;
}

static char *put_text(char **at, const char *text)
{
    const size_t n = strlen(text) + 1;
    char *here = memcpy(*at, text, n);
    *at += n;
    return here;
}

static void copy_tensor(side *s, side_tensor *to, side_file *f, const trace_tensor *x)
{
    const mpsim_format *format = x->format ? keep_format(s, x->format) : NULL;
    const char *name = x->name[0] ? x->name : f->below, *kind = x->kind, *fqn = kind ? x->fqn : name;
    const size_t shape = x->rank * sizeof *x->shape;
    unsigned char *memory = need_memory(shape + strlen(name) + strlen(fqn) + strlen(x->dtype) + 3, 1);
    *to = (side_tensor){.file = f,
                        .kind = kind,
                        .format = format,
                        .fortran = x->fortran,
                        .quantised = x->quantised != NULL,
                        .count = x->count,
                        .rank = x->rank,
                        .memory = memory};
    char *text = (char *)memory + shape;
    to->shape = (uint64_t *)memory;
    if (x->rank)
        memcpy(to->shape, x->shape, shape);
    to->name = put_text(&text, name);
    to->fqn = put_text(&text, fqn);
    to->dtype = put_text(&text, x->dtype);
    to->series = x->name[0] ? to->name : f->series;
}

static void add_tensor(side_group *g, side_file *f, size_t index, const trace_tensor *x)
{
    need_room(&g->tensors, g->n, sizeof *g->tensors);
    copy_tensor(g->of, &g->tensors[g->n], f, x);
    g->tensors[g->n].index = index;
    g->tensors[g->n].place = g->n;
    g->n++;
}

/* Parts of quantised tensors that no number is read from: their bytes are compared. */
static void add_loose(side_group *g, side_file *f, const trace *t)
{
    const trace_tensor *x;
    for (size_t i = 0; (x = trace_loose(t, i, &i)); i++) {
        char *name = need_format("%s (stored)", x->name);
        const trace_tensor part = {
            .name = name, .dtype = x->dtype, .shape = x->shape, .rank = x->rank, .count = x->count, .fqn = name};
        if (input_selects(&g->of->in, &part))
            add_tensor(g, f, i, &part);
        free(name);
    }
}

static int load_file(side_group *g, side_file *f)
{
    trace_error error;
    trace *t = diff_side_trace(g->of, f, &error);
    if (!t)
        return input_failed(&g->of->in, &error);
    const char *modules = trace_metadata(t, "mpsim.order");
    if (modules && modules[0] && !g->modules)
        g->modules = need_text(modules);
    for (size_t i = 0; i < trace_count(t); i++)
        if (input_selects(&g->of->in, trace_at(t, i)))
            add_tensor(g, f, i, trace_at(t, i));
    add_loose(g, f, t);
    return 0;
}

int diff_side_load(side_group *g, side *s, size_t k)
{
    const side_step *step = &s->steps[k];
    int code = 0;
    memset(g, 0, sizeof *g);
    g->of = s;
    for (size_t i = step->first; i < step->first + step->n && !code; i++) {
        diff_side_pin(s);
        code = load_file(g, &s->files[i]);
        g->several |= s->files[i].said.rank != s->files[step->first].said.rank;
    }
    g->step = step->n ? s->files[step->first].said.step : step->step;
    return code;
}

void diff_side_clear(side_group *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->tensors[i].memory);
    free(g->tensors);
    free(g->modules);
    memset(g, 0, sizeof *g);
}
