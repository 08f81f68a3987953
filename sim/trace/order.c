/* order.c -- see order.h.
 *
 * The parameters of a group are a part of the model's weights, in its order: all of them, those that are not frozen,
 * the matrices that decay. A weight can be of a group if a parameter there has its shape. The earliest weights that fit
 * a group's parameters one after another, and the latest, are the same where there is no choice. Where two groups
 * have parameters of one shape, a group is not known by shapes: then all of the model is in the two groups of
 * transformers' Trainer, biases and norms apart from the rest, or nothing is found. */
#include "order.h"

#include <stdlib.h>
#include <string.h>

int trace_order_same_shape(const trace_tensor *a, const trace_tensor *b)
{
    if (a->rank != b->rank)
        return 0;
    for (size_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return 0;
    return 1;
}

/* Parameters of one group, in their order, and the weights that may be theirs. */
typedef struct matching {
    parameter **p;
    size_t n;
    const trace_entry **w;
    size_t n_weights;
    size_t *first; /* of each parameter: the earliest weight */
} matching;

static int by_place(const void *pa, const void *pb)
{
    const parameter *const *a = pa, *const *b = pb;
    return ((*a)->place > (*b)->place) - ((*a)->place < (*b)->place);
}

/* A parameter without a state may be of any shape. */
static int fits(const parameter *p, const trace_entry *w)
{
    return !p->state || trace_order_same_shape(p->state, &w->tensor);
}

/* 0 if the parameters are not in this order among the weights. */
static int match(const matching *m)
{
    size_t at = 0;
    for (size_t i = 0; i < m->n; i++, at++) {
        while (at < m->n_weights && !fits(m->p[i], m->w[at]))
            at++;
        if (at == m->n_weights)
            return 0;
        m->first[i] = at;
    }
    return 1;
}

/* Those get a name whose earliest and latest weight are one. */
static void match_names(const matching *m)
{
    size_t at = m->n_weights;
    if (!match(m))
        return;
    for (size_t i = m->n; i-- > 0;) {
        do
            at--;
        while (!fits(m->p[i], m->w[at]));
        if (at == m->first[i])
            m->p[i]->name = m->w[at]->tensor.fqn;
    }
}

/* ---- groups ---- */

/* A shape of a parameter, and its group. */
typedef struct shape_group {
    const trace_tensor *shape;
    uint64_t group;
} shape_group;

static int compare_shapes(const trace_tensor *a, const trace_tensor *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    for (size_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return a->shape[i] < b->shape[i] ? -1 : 1;
    return 0;
}

static int by_shape(const void *pa, const void *pb)
{
    const shape_group *a = pa, *b = pb;
    const int c = compare_shapes(a->shape, b->shape);
    return c ? c : (a->group > b->group) - (a->group < b->group);
}

/* The shapes of all parameters with their groups, sorted: how many; 0 where a shape is in two groups, or in several
 * groups a parameter has none. */
static size_t list_shapes(shape_group *list, const parameter *all, size_t n)
{
    size_t shapes = 0, unknown = 0, several = 0;
    for (size_t i = 0; i < n; i++) {
        several |= all[i].group != all[0].group;
        unknown += !all[i].state;
        if (all[i].state)
            list[shapes++] = (shape_group){all[i].state, all[i].group};
    }
    if (shapes)
        qsort(list, shapes, sizeof *list, by_shape);
    for (size_t i = 1; i < shapes; i++)
        if (list[i].group != list[i - 1].group && compare_shapes(list[i].shape, list[i - 1].shape) == 0)
            return 0;
    return several && unknown ? 0 : shapes;
}

/* The group of a weight's shape; -1: no parameter has it. */
static int64_t group_of(const shape_group *list, size_t n, const trace_tensor *x)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_shapes(list[middle].shape, x) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && compare_shapes(list[low].shape, x) == 0 ? (int64_t)list[low].group : -1;
}

/* ---- groups by names ---- */

static int has_word(const char *name, const char *word)
{
    const size_t n = strlen(word);
    for (; *name; name++) {
        size_t i = 0;
        while (i < n && (name[i] | 32) == word[i])
            i++;
        if (i == n)
            return 1;
    }
    return 0;
}

/* Biases, and what belongs to norms: transformers 5.23, trainer.py (get_decay_parameter_names). A vector named `weight`
 * is a norm's, whatever the norm is called (ln_1). */
static int is_undecayed(const trace_tensor *x)
{
    return has_word(x->fqn, "bias") || has_word(x->fqn, "norm") || (x->rank == 1 && has_word(x->fqn, ".weight"));
}

/* ---- all ---- */

typedef struct ordering {
    parameter **p;
    size_t n;
    const trace_entry *const *weights;
    size_t n_weights;
    const shape_group *shapes;
    size_t n_shapes;
    const trace_entry **w;
    size_t *first;
} ordering;

/* A group, whose parameters are p[begin] to before p[end], by the shapes of weights. */
static void name_group(const ordering *o, size_t begin, size_t end)
{
    matching m = {o->p + begin, end - begin, o->w, 0, o->first};
    const int64_t group = (int64_t)o->p[begin]->group;
    const int alone = o->p[0]->group == o->p[o->n - 1]->group;
    for (size_t i = 0; i < o->n_weights; i++)
        if (alone || group_of(o->shapes, o->n_shapes, &o->weights[i]->tensor) == group)
            m.w[m.n_weights++] = o->weights[i];
    match_names(&m);
}

/* The two groups of a Trainer, by the names of weights; undecayed: those without decay come first. Holds only if it is
 * true of all weights and parameters: 0 if not. */
static int name_two(const ordering *o, size_t middle, int undecayed)
{
    size_t at[2] = {0, middle};
    for (int pass = 0; pass < 2; pass++) {
        at[0] = 0, at[1] = middle;
        for (size_t i = 0; i < o->n_weights; i++) {
            const int g = is_undecayed(&o->weights[i]->tensor) != undecayed; /* the second group */
            parameter *p = at[g] < (g ? o->n : middle) ? o->p[at[g]++] : NULL;
            if (!p || !fits(p, o->weights[i]))
                return 0;
            if (pass)
                p->name = o->weights[i]->tensor.fqn;
        }
        if (at[0] != middle || at[1] != o->n)
            return 0;
    }
    return 1;
}

/* Each group looks at all weights: a crafted file of very many groups keeps its numbers from some group on. */
enum { WORK_MOST = 1 << 24 };

static void name_all(const ordering *o)
{
    size_t groups = 0, middle = 0;
    for (size_t begin = 0, end; begin < o->n; begin = end, groups++) {
        for (end = begin + 1; end < o->n && o->p[end]->group == o->p[begin]->group; end++)
            ;
        middle = groups == 0 ? end : middle;
        if (o->n_shapes && groups < WORK_MOST / o->n_weights)
            name_group(o, begin, end);
    }
    if (!o->n_shapes && groups == 2 && !name_two(o, middle, 0))
        name_two(o, middle, 1);
}

int trace_order_names(parameter *all, size_t n, const trace_entry *const *weights, size_t n_weights)
{
    parameter **p = calloc(n ? n : 1, sizeof *p);
    shape_group *shapes = calloc(n ? n : 1, sizeof *shapes);
    const trace_entry **w = calloc(n_weights ? n_weights : 1, sizeof *w);
    size_t *first = calloc(n ? n : 1, sizeof *first);
    const int bad = !p || !shapes || !w || !first;
    if (!bad && n && n_weights) {
        for (size_t i = 0; i < n; i++)
            p[i] = &all[i];
        qsort(p, n, sizeof *p, by_place);
        const ordering o = {p, n, weights, n_weights, shapes, list_shapes(shapes, all, n), w, first};
        name_all(&o);
    }
    free(p);
    free(shapes);
    free(w);
    free(first);
    return bad ? -1 : 0;
}
