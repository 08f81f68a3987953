/* order.c -- see order.h. */
#include "order.h"

#include "../cli/names.h"

#include <stdlib.h>
#include <string.h>

/* What a kind is part of, and its place there among the tensors of a module. */
enum { STATE, FORWARD, BACKWARD };

static const struct {
    const char *kind;
    int phase, place;
    int of_module; /* its name is a module's; else a parameter's: a module's and one part more */
} parts[] = {
    {"opt.m", STATE, 0, 0},    {"opt.v", STATE, 1, 0},     {"opt.vmax", STATE, 2, 0},
    {"master", STATE, 3, 0},   {"weight", STATE, 4, 0},    {"act", FORWARD, 0, 1},
    {"out", FORWARD, 1, 1},    {"agrad", BACKWARD, 0, 1},  {"dgrad", BACKWARD, 1, 1},
    {"wgrad", BACKWARD, 2, 0}, {NULL, FORWARD, 2, 0},
};

static size_t part_of(const char *kind)
{
    size_t i = 0;
    while (parts[i].kind && !(kind && strcmp(parts[i].kind, kind) == 0))
        i++;
    return i;
}

/* Modules and their places. */
typedef struct modules {
    char **names;
    size_t n;
    nameindex index;
} modules;

static int add_module(modules *m, const char *name, size_t length)
{
    char *own = strndup(name, length);
    if (!own)
        return -1;
    if (nameindex_find(&m->index, own) >= 0) {
        free(own);
        return 0;
    }
    m->names[m->n++] = own;
    return nameindex_add(&m->index, own, m->n - 1);
}

static void clear_modules(modules *m)
{
    nameindex_clear(&m->index);
    for (size_t i = 0; i < m->n; i++)
        free(m->names[i]);
    free(m->names);
}

/* How much of a tensor's name is the module's. */
static size_t module_length(const side_tensor *t)
{
    const char *dot = strrchr(t->fqn, '.'), *slash = strrchr(t->fqn, '/');
    if (parts[part_of(t->kind)].of_module || (!dot && !slash))
        return strlen(t->fqn);
    return (size_t)((dot > slash ? dot : slash) - t->fqn);
}

static int split_modules(modules *m, const char *list)
{
    size_t room = 1;
    for (const char *p = list; *p; p++)
        room += *p == ',';
    m->names = calloc(room, sizeof *m->names);
    int bad = !m->names;
    for (const char *p = list; *p && !bad;) {
        const size_t n = strcspn(p, ",");
        bad = add_module(m, p, n);
        p += n + (p[n] == ',');
    }
    return bad ? -1 : 0;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Whether the names of each file are in alphabetical order, as some writers sort them. */
static int is_alphabetical(const side_group *g)
{
    for (size_t i = 1; i < g->n; i++)
        if (g->tensors[i].file == g->tensors[i - 1].file &&
            strcmp(g->tensors[i - 1].name, g->tensors[i].name) > 0)
            return 0;
    return 1;
}

/* Modules as the names of the tensors tell them. */
static int find_modules(modules *m, const side_group *g)
{
    m->names = calloc(g->n + 1, sizeof *m->names);
    int bad = !m->names;
    for (size_t i = 0; i < g->n && !bad; i++)
        bad = add_module(m, g->tensors[i].fqn, module_length(&g->tensors[i]));
    if (bad || !is_alphabetical(g))
        return bad ? -1 : 0;
    qsort(m->names, m->n, sizeof *m->names, by_name);
    nameindex_clear(&m->index);
    for (size_t i = 0; i < m->n && !bad; i++)
        bad = nameindex_add(&m->index, m->names[i], i);
    return bad ? -1 : 0;
}

/* The place of a module or, if it has none, of what it is part of: blocks.0 for blocks.0.attn. */
static size_t module_place(const modules *m, const side_tensor *t)
{
    size_t n = module_length(t);
    char *name = strndup(t->fqn, n);
    ptrdiff_t found = -1;
    while (name && n && (found = nameindex_find(&m->index, name)) < 0) {
        while (n && name[n - 1] != '.' && name[n - 1] != '/')
            n--;
        n -= n > 0;
        name[n] = '\0';
    }
    free(name);
    return found < 0 ? m->n : (size_t)found;
}

static int by_order(const void *a, const void *b)
{
    const side_tensor *x = a, *y = b;
    for (size_t i = 0; i < sizeof x->at / sizeof x->at[0]; i++)
        if (x->at[i] != y->at[i])
            return x->at[i] < y->at[i] ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

int order_group(side_group *g)
{
    modules m = {0};
    if (g->modules ? split_modules(&m, g->modules) : find_modules(&m, g)) {
        clear_modules(&m);
        return -1;
    }
    for (size_t i = 0; i < g->n; i++) {
        side_tensor *t = &g->tensors[i];
        const size_t part = part_of(t->kind), place = module_place(&m, t);
        const int phase = parts[part].phase;
        t->at[0] = (size_t)phase;
        t->at[1] = phase == STATE ? (size_t)parts[part].place : phase == FORWARD ? place : m.n - place;
        t->at[2] = phase == STATE ? place : (size_t)parts[part].place;
    }
    clear_modules(&m);
    if (g->n)
        qsort(g->tensors, g->n, sizeof *g->tensors, by_order);
    return 0;
}
