/* parameters.c -- what other tensors of a file, and its metadata, tell of the name of a parameter. */
#include "kinds.h"

#include "order.h"

#include "../array/array.h"

#include <stdlib.h>
#include <string.h>

static int is_kind(const trace_tensor *x, const char *kind)
{
    return x->kind && strcmp(x->kind, kind) == 0;
}

/* A gradient, a state or a master: a parameter has them, and no module. */
static int is_of_parameter(const trace_tensor *x)
{
    static const char *const kinds[] = {"wgrad", "opt.m", "opt.v", "opt.vmax", "master"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (is_kind(x, kinds[i]))
            return 1;
    return 0;
}

/* ---- numbers of parameters ---- */

/* An item of param_groups: PREFIXparam_groups/GROUP/params/PLACE = NUMBER, or .../param_names/PLACE = NAME
 * (PyTorch 2.6 and later, where the optimizer was given named parameters). */
typedef struct group_item {
    uint64_t group, place;
    const char *value;
} group_item;

typedef struct group_items {
    group_item *items;
    size_t count;
} group_items;

/* Digits and what follows them, which is `after`; NULL if it is not so. */
static const char *number(uint64_t *n, const char *s, const char *after)
{
    *n = 0;
    const char *p = s;
    for (; *p >= '0' && *p <= '9' && *n < UINT32_MAX; p++)
        *n = *n * 10 + (uint64_t)(*p - '0');
    const size_t length = strlen(after);
    return p > s && strncmp(p, after, length) == 0 && (*after || !*p) ? p + length : NULL;
}

static int add_item(group_items *l, group_item item)
{
    if (array_room(&l->items, l->count, sizeof *l->items))
        return -1;
    l->items[l->count++] = item;
    return 0;
}

static int by_place(const void *pa, const void *pb)
{
    const group_item *a = pa, *b = pb;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* The items of one word, in the order of groups and places. */
static int read_items(const trace *t, const char *prefix, size_t n, const char *word, group_items *l)
{
    static const char groups[] = "param_groups/";
    for (size_t i = 0; i < t->n_metadata; i++) {
        const char *key = t->metadata[2 * i], *p;
        group_item item = {.value = t->metadata[2 * i + 1]};
        if (strncmp(key, prefix, n) != 0 || strncmp(key + n, groups, sizeof groups - 1) != 0 ||
            !(p = number(&item.group, key + n + sizeof groups - 1, word)) || !number(&item.place, p, ""))
            continue;
        if (add_item(l, item))
            return -1;
    }
    if (l->count)
        qsort(l->items, l->count, sizeof *l->items, by_place);
    return 0;
}

static int by_directory(const void *pa, const void *pb)
{
    const trace_entry *const *a = pa, *const *b = pb;
    return ((*a)->at > (*b)->at) - ((*a)->at < (*b)->at);
}

/* The weights of a file in the order of its tree. */
static size_t list_weights(const trace *t, const kinds_source *from, const trace_entry **weights)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++)
        if (from[i].row && is_kind(&t->entries[i].tensor, "weight"))
            weights[n++] = &t->entries[i];
    if (n)
        qsort(weights, n, sizeof *weights, by_directory);
    return n;
}

/* What stands before "state/" in the name of the first state of a numbered parameter; -1: there is none. */
static ptrdiff_t prefix_of(const trace *t, const kinds_source *from, const char **name)
{
    for (size_t i = 0; i < t->count; i++) {
        const trace_tensor *x = &t->entries[i].tensor;
        const char *state = from[i].row && (from[i].row->flags & CONVENTION_INDEX) && trace_kinds_is_number(x->fqn)
                                ? strstr(x->name, "state/")
                                : NULL;
        while (state && state > x->name && state[-1] != '/')
            state = strstr(state + 1, "state/");
        if (!state)
            continue;
        *name = x->name;
        return state - x->name;
    }
    return -1;
}

/* The number of a parameter, as param_groups has it: 0, 1, 2, ..., or an address of before PyTorch 1.0. */
static int by_value(const void *pa, const void *pb)
{
    const parameter *a = pa, *b = pb;
    return strcmp(a->number, b->number);
}

static parameter *find_parameter(parameter *all, size_t n, const char *number)
{
    const parameter key = {.number = number};
    return n ? bsearch(&key, all, n, sizeof *all, by_value) : NULL;
}

/* Whether a tensor is the state of a numbered parameter of this optimizer. */
static int is_state(const trace *t, const kinds_source *from, size_t i, const char *prefix, size_t n)
{
    const trace_tensor *x = &t->entries[i].tensor;
    return from[i].row && (from[i].row->flags & CONVENTION_INDEX) && strncmp(x->name, prefix, n) == 0 &&
           trace_kinds_is_number(x->fqn);
}

/* The parameters in the order of their numbers as texts. 0, or -1 where two have the same, or states are of none. */
static int sort_parameters(parameter *all, size_t n, const group_items *numbers)
{
    for (size_t i = 0; i < n; i++)
        all[i] = (parameter){.number = numbers->items[i].value, .group = numbers->items[i].group, .place = i};
    if (n)
        qsort(all, n, sizeof *all, by_value);
    for (size_t i = 1; i < n; i++)
        if (strcmp(all[i].number, all[i - 1].number) == 0)
            return -1;
    return 0;
}

/* What the states tell of shapes. -1 where they contradict each other. */
static int find_shapes(const trace *t, const kinds_source *from, const char *prefix, size_t n_prefix, parameter *all,
                       size_t n)
{
    for (size_t i = 0; i < t->count; i++) {
        parameter *p = is_state(t, from, i, prefix, n_prefix) ? find_parameter(all, n, t->entries[i].tensor.fqn) : NULL;
        if (!p)
            continue;
        if (p->state && !trace_order_same_shape(p->state, &t->entries[i].tensor))
            return -1;
        p->state = &t->entries[i].tensor;
    }
    return 0;
}

static void take_names(trace *t, kinds_source *from, const char *prefix, size_t n_prefix, parameter *all, size_t n)
{
    for (size_t i = 0; i < t->count; i++) {
        const parameter *p = is_state(t, from, i, prefix, n_prefix) ? find_parameter(all, n, t->entries[i].tensor.fqn)
                                                                    : NULL;
        if (!p || !p->name)
            continue;
        t->entries[i].tensor.fqn = p->name;
        from[i].numbered = 1;
    }
}

/* Names of the parameters by those of named groups. 0 if the two lists do not fit together. */
static int names_of_groups(const group_items *numbers, const group_items *named, parameter *all, size_t n)
{
    if (!named->count || named->count != numbers->count)
        return 0;
    for (size_t i = 0; i < named->count; i++)
        if (by_place(&named->items[i], &numbers->items[i]) != 0)
            return 0;
    for (size_t i = 0; i < named->count; i++)
        find_parameter(all, n, numbers->items[i].value)->name = named->items[i].value;
    return 1;
}

int trace_kinds_number_parameters(trace *t, kinds_source *from)
{
    const char *name = NULL;
    const ptrdiff_t before = prefix_of(t, from, &name);
    group_items numbers = {0}, named = {0};
    if (before < 0)
        return 0;
    const size_t n_prefix = (size_t)before;
    int bad = read_items(t, name, n_prefix, "/params/", &numbers) ||
              read_items(t, name, n_prefix, "/param_names/", &named);
    const size_t n = numbers.count;
    parameter *all = calloc(n ? n : 1, sizeof *all);
    const trace_entry **weights = calloc(t->count, sizeof *weights);
    bad |= !all || !weights;
    if (!bad && n && sort_parameters(all, n, &numbers) == 0 && find_shapes(t, from, name, n_prefix, all, n) == 0) {
        if (!names_of_groups(&numbers, &named, all, n))
            bad = trace_order_names(all, n, weights, list_weights(t, from, weights));
        take_names(t, from, name, n_prefix, all, n);
    }
    free(weights);
    free(all);
    free(named.items);
    free(numbers.items);
    return bad ? -1 : 0;
}

/* ---- partners ---- */

typedef struct partner {
    const trace_tensor *tensor;
    int packed;
} partner;

static int by_fqn(const void *pa, const void *pb)
{
    const partner *a = pa, *b = pb;
    return strcmp(a->tensor->fqn, b->tensor->fqn);
}

/* A tensor of the parameter whose shape is `of`'s, or any where shapes are those of partitions. */
static const partner *find_partner(const partner *all, size_t n, const char *fqn, const trace_tensor *of)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (strcmp(all[mid].tensor->fqn, fqn) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < n && strcmp(all[low].tensor->fqn, fqn) == 0 &&
        (all[low].packed || trace_order_same_shape(all[low].tensor, of)))
        return &all[low];
    return NULL;
}

/* The bare name, or without what stands before the names of a model in a tree. */
static const char *find_bare(const partner *all, size_t n, const trace_tensor *x)
{
    static const char *const before[] = {"", "module.", "module.module.", "model."};
    char text[1024];
    const char *bare = trace_kinds_bare_fqn(x->name, text, sizeof text);
    for (size_t i = 0; bare && i < sizeof before / sizeof before[0]; i++) {
        const size_t length = strlen(before[i]);
        if (strncmp(bare, before[i], length) != 0)
            continue;
        const partner *p = find_partner(all, n, bare + length, x);
        if (p)
            return p->tensor->fqn;
    }
    return NULL;
}

int trace_kinds_find_partners(trace *t, const kinds_source *from)
{
    partner *all = malloc((t->count ? t->count : 1) * sizeof *all);
    size_t n = 0, bare = 0;
    if (!all)
        return -1;
    for (size_t i = 0; i < t->count; i++) {
        const trace_tensor *x = &t->entries[i].tensor;
        bare += !x->kind && !from[i].mapped;
        if (from[i].row && is_of_parameter(x) && !trace_kinds_is_number(x->fqn))
            all[n++] = (partner){x, (from[i].row->flags & CONVENTION_PACKED) != 0};
    }
    if (n && bare)
        qsort(all, n, sizeof *all, by_fqn);
    for (size_t i = 0; n && bare && i < t->count; i++) {
        trace_tensor *x = &t->entries[i].tensor;
        const char *fqn = x->kind || from[i].mapped ? NULL : find_bare(all, n, x);
        if (!fqn)
            continue;
        x->kind = trace_kind_named("weight", 6);
        x->fqn = fqn;
    }
    free(all);
    return 0;
}
