/* kinds.c -- the kinds of the tensors of a file: by their own names (mpsim-trace/1), by rules of the user, by the
 * conventions of other programs. Other conventions are not asked where names are mpsim's. */
#include "kinds.h"

#include "namemap.h"

#include "../text/words.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMEWORKS = 8 };

/* Whose names they are: each once, in the order of the file. */
typedef struct frameworks {
    const char *names[FRAMEWORKS];
    size_t count;
} frameworks;

static void see_framework(frameworks *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->names[i], name) == 0)
            return;
    if (f->count < FRAMEWORKS)
        f->names[f->count++] = name;
}

static int say_frameworks(trace *t, const frameworks *f)
{
    size_t n = 1;
    for (size_t i = 0; i < f->count; i++)
        n += strlen(f->names[i]) + 2;
    char *text = f->count ? trace_alloc(t, n) : NULL, *at = text;
    if (f->count && !text)
        return -1;
    for (size_t i = 0; i < f->count; i++)
        at = stpcpy(stpcpy(at, i ? ", " : ""), f->names[i]);
    t->convention = text;
    return 0;
}

/* ---- one tensor ---- */

/* mpsim's own names. */
static int find_own(trace *t)
{
    int found = 0;
    for (size_t i = 0; i < t->count; i++) {
        trace_tensor *x = &t->entries[i].tensor;
        x->kind = trace_kind(x->name);
        x->fqn = x->kind ? x->name + strlen(x->kind) + 1 : x->name;
        found |= x->kind != NULL;
    }
    return found;
}

/* By the rules of the user, which come before all others. */
static int map_all(trace *t, const trace_options *o, kinds_source *from, frameworks *seen)
{
    int used = 0;
    for (size_t i = 0; o->map && i < t->count; i++) {
        trace_tensor *x = &t->entries[i].tensor;
        const char *kind, *fqn;
        const int found = trace_namemap_find(o->map, t, x->name, &kind, &fqn);
        if (found < 0)
            return -1;
        if (!found)
            continue;
        x->kind = kind;
        x->fqn = fqn;
        from[i].mapped = 1;
        used = 1;
    }
    if (used)
        see_framework(seen, trace_namemap_label(o->map));
    return 0;
}

/* The counter of an optimizer's state. */
static int is_step(const trace_tensor *x)
{
    return x->count == 1 && text_ends_with(x->name, "/step");
}

/* By the rule that is a kind alone: what has none yet, of numbers. */
static void map_rest(trace *t, const trace_options *o, const kinds_source *from, frameworks *seen)
{
    const char *kind = trace_namemap_rest(o->map);
    int used = 0;
    for (size_t i = 0; kind && i < t->count; i++) {
        trace_tensor *x = &t->entries[i].tensor;
        if (x->kind || !x->format || from[i].mapped || is_step(x))
            continue;
        x->kind = kind;
        x->fqn = x->name;
        used = 1;
    }
    if (used)
        see_framework(seen, trace_namemap_label(o->map));
}

static int find_conventions(trace *t, kinds_source *from, frameworks *seen)
{
    convention_scope scope;
    trace_convention_scope_init(&scope, t->path);
    const int saved = trace_metadata(t, "format") != NULL;
    for (size_t i = 0; i < t->count; i++) {
        trace_tensor *x = &t->entries[i].tensor;
        convention_match m;
        const convention_query q = {.scope = &scope,
                                    .name = x->name,
                                    .rank = x->rank,
                                    .first_is_one = x->rank && x->shape[0] == 1,
                                    .saved = saved,
                                    .numbers = x->format != NULL,
                                    .dtype = x->dtype};
        if (from[i].mapped || !trace_convention_find(&m, &q))
            continue;
        from[i].row = m.row;
        x->kind = trace_kind_named(m.kind, strlen(m.kind));
        x->fqn = trace_kinds_fqn(t, x->name, &m);
        if (!x->fqn)
            return -1;
        see_framework(seen, m.row->framework);
    }
    return 0;
}

/* A layout that holds the weights of a model and nothing else. */
static int find_weights(trace *t, const kinds_source *from, frameworks *seen)
{
    static const char gguf[] = "gguf";
    if (strcmp(t->type->name, gguf) != 0)
        return 0;
    for (size_t i = 0; i < t->count; i++)
        if (!from[i].mapped)
            t->entries[i].tensor.kind = trace_kind_named("weight", 6);
    if (t->count)
        see_framework(seen, "GGUF");
    return 1;
}

/* What wrappers call the model. */
static const char module[] = "module.";
enum { MODULE = sizeof module - 1 };

static int has_module(const char *fqn)
{
    return strncmp(fqn, module, MODULE) == 0 && fqn[MODULE];
}

/* DistributedDataParallel and Megatron call the model `module`: not a part of names where all of a file have it. */
static void unwrap_module(trace *t, const kinds_source *from)
{
    for (;;) {
        size_t having = 0, all = 0;
        for (size_t i = 0; i < t->count; i++) {
            const char *fqn = t->entries[i].tensor.fqn;
            if (!from[i].row || from[i].numbered || trace_kinds_is_number(fqn))
                continue;
            all++;
            having += (size_t)has_module(fqn);
        }
        if (!all || having < all)
            return;
        for (size_t i = 0; i < t->count; i++)
            if (from[i].row && has_module(t->entries[i].tensor.fqn))
                t->entries[i].tensor.fqn += MODULE;
    }
}

/* ---- two of the same kind and fqn ---- */

static int compare_meaning(const void *pa, const void *pb)
{
    const trace_tensor *const *a = pa, *const *b = pb;
    const int ra = trace_kind_rank((*a)->kind), rb = trace_kind_rank((*b)->kind);
    const int c = ra != rb ? ra - rb : strcmp((*a)->fqn, (*b)->fqn);
    return c ? c : (*a > *b) - (*a < *b);
}

static int same_meaning(const trace_tensor *a, const trace_tensor *b)
{
    return a->kind && a->kind == b->kind && strcmp(a->fqn, b->fqn) == 0;
}

/* The first is told; a convention that makes two the same is not followed for them. */
static int find_clashes(trace *t, trace_error *error)
{
    trace_tensor **all = malloc((t->count ? t->count : 1) * sizeof *all);
    if (!all)
        return trace_no_memory(t, error);
    for (size_t i = 0; i < t->count; i++)
        all[i] = &t->entries[i].tensor;
    if (t->count)
        qsort(all, t->count, sizeof *all, compare_meaning);
    for (size_t i = 0, next; i < t->count; i = next) {
        for (next = i + 1; next < t->count && same_meaning(all[i], all[next]); next++)
            ;
        if (next == i + 1)
            continue;
        if (!t->clash[0])
            snprintf(t->clash, sizeof t->clash, "'%.150s' and '%.150s' would both be %s:%.100s", all[i]->name,
                     all[i + 1]->name, all[i]->kind, all[i]->fqn);
        for (size_t k = next; k-- > i;) {
            all[k]->kind = NULL;
            all[k]->fqn = all[k]->name;
        }
    }
    free(all);
    return 0;
}

int trace_find_kinds(trace *t, const trace_options *o, trace_error *error)
{
    frameworks seen = {.count = 0};
    kinds_source *from = calloc(t->count ? t->count : 1, sizeof *from);
    const int own = find_own(t);
    int bad = !from;
    if (own)
        see_framework(&seen, "mpsim-trace/1");
    if (!bad && !(bad = map_all(t, o, from, &seen)) && !own && !find_weights(t, from, &seen) &&
        !(bad = find_conventions(t, from, &seen))) {
        bad = trace_kinds_number_parameters(t, from);
        unwrap_module(t, from);
        bad = bad || trace_kinds_find_partners(t, from);
    }
    if (!bad && o->map)
        map_rest(t, o, from, &seen);
    bad = bad || say_frameworks(t, &seen);
    free(from);
    if (bad)
        return trace_no_memory(t, error);
    if (t->convention && (!own || o->map) && find_clashes(t, error))
        return -1;
    return t->clash[0] && o->map
               ? trace_fail(t, error, TRACE_NO_OFFSET, "%s: %s", trace_namemap_label(o->map), t->clash)
               : 0;
}
