/* lines.c -- see lines.h. Rows are along the last dimension. */
#include "impl.h"

#include "../array/need.h"
#include "../record/cells.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 1 << 16, FEWEST = 8, LEAST_LINES = 2 }; /* lines; elements of each that are not zero, on average */

/* The numbers that fit all elements of a line so far. */
typedef struct limits {
    double low, high;
} limits;

typedef struct way {
    int columns, offset;
    const char *words;
} way;

static const way ways[] = {
    {0, 0, "each of the %s rows of B is A's times a number of its own"},
    {1, 0, "each of the %s columns of B is A's times a number of its own"},
    {0, 1, "each of the %s rows of B is A's plus a number of its own"},
};

typedef struct looking {
    const way *by;
    uint64_t length, lines; /* elements of a row; of the lines */
    double unit;
    limits *found;  /* lines of each lane */
    uint64_t *used; /* of each lane: elements that said something */
} looking;

static int add(limits *l, double low, double high)
{
    l->low = fmax(l->low, low);
    l->high = fmin(l->high, high);
    return l->low > l->high;
}

/* Whether an element does not fit the others of its line; *used: it says something. */
static int contradicts(const looking *x, limits *l, double a, double b, uint64_t *used)
{
    const double slack = 4 * x->unit;
    if (!isfinite(a) || !isfinite(b) || (!x->by->offset && (a == 0) != (b == 0)))
        return add(l, HUGE_VAL, -HUGE_VAL);
    if (!x->by->offset && a == 0)
        return 0;
    ++*used;
    const double at = x->by->offset ? b - a : b / a, off = slack * (x->by->offset ? fmax(fabs(a), fabs(b)) : fabs(at));
    return add(l, at - off, at + off);
}

static int look_lines(void *context, int lane, const walk_piece *p)
{
    looking *x = context;
    for (size_t i = 0; i < p->n; i++) {
        const uint64_t at = p->first + i, line = x->by->columns ? at % x->length : at / x->length;
        limits *l = &x->found[(uint64_t)lane * x->lines + line];
        if (contradicts(x, l, p->values[0][i], p->values[1][i], &x->used[lane]))
            return 1;
    }
    return 0;
}

/* What the lanes found, in the first: whether all fits. */
static int joined(looking *x, int lanes, limits *all)
{
    *all = (limits){HUGE_VAL, -HUGE_VAL};
    for (int i = 1; i < lanes; i++)
        x->used[0] += x->used[i];
    for (uint64_t k = 0; k < x->lines; k++) {
        limits *l = &x->found[k];
        for (int i = 1; i < lanes; i++)
            add(l, x->found[(uint64_t)i * x->lines + k].low, x->found[(uint64_t)i * x->lines + k].high);
        if (!(l->low <= l->high))
            return 0;
        if (isinf(l->low))
            continue; /* a line of zeros */
        const double middle = l->low + (l->high - l->low) / 2;
        all->low = fmin(all->low, middle);
        all->high = fmax(all->high, middle);
    }
    return x->used[0] >= FEWEST * x->lines && all->low < all->high;
}

static int say(const verdict_case *c, finding *f, const looking *x, const limits *all)
{
    const double spread = c->all.high[0] - c->all.low[0];
    char a[32];
    if (x->by->offset && !(spread > 256 * x->unit * fmax(c->all.amax[0], c->all.amax[1])))
        return 0; /* any row is A's plus something, if its elements hardly differ */
    diff_finding_init(f, x->by->offset ? VERDICT_OFFSET : VERDICT_SCALED);
    diff_finding_say(f, x->by->words, text_count(a, x->lines));
    diff_finding_say(f, ", %.4g to %.4g, within some ULPs%s", all->low, all->high,
                     x->by->offset ? ": logits and their log-softmax?" : ": a mean over each, or a scale folded in?");
    return 1;
}

static int try_way(verdict_case *c, finding *f, const way *by, trace_error *error)
{
    const side_tensor *t = c->tensors[1];
    const uint64_t length = t->shape[t->rank - 1], rows = t->count / length;
    looking x = {
        .by = by, .length = length, .lines = by->columns ? length : rows, .unit = ldexp(1, -c->measurer.narrow.mbits)};
    const size_t lanes = (size_t)c->walk.lanes;
    limits all;
    if (x.lines < LEAST_LINES || x.lines > MOST || t->count / x.lines < FEWEST)
        return 0;
    x.found = need_memory(lanes * x.lines, sizeof *x.found);
    x.used = need_memory(lanes, sizeof *x.used);
    for (uint64_t i = 0; i < lanes * x.lines; i++)
        x.found[i] = (limits){-HUGE_VAL, HUGE_VAL};
    int result = diff_walk_range(&c->walk, 0, t->count, 0, 1, look_lines, &x, error);
    if (!result && joined(&x, (int)lanes, &all))
        result = say(c, f, &x, &all);
    free(x.found);
    free(x.used);
    return result;
}

int diff_lines_own(verdict_case *c, finding *f, trace_error *error)
{
    const side_tensor *t = c->tensors[1];
    int result = 0;
    if (t->rank < 2 || c->tensors[0]->rank != t->rank || t->shape[t->rank - 1] != c->tensors[0]->shape[t->rank - 1])
        return 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !result; i++)
        result = try_way(c, f, &ways[i], error);
    return result;
}
