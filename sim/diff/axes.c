/* axes.c -- B is A with its axes in another order, or with some run through backwards: with the same codes, or after a rounding. */
#include "impl.h"

#include "../operand/element.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 4096 };

static int code_at(source *s, uint64_t at, uint64_t *code, trace_error *error)
{
    unsigned char bytes[8];
    if (pass_elements_codes(&s->from, at, bytes, 1, error))
        return -1;
    *code = element_code(bytes, s->from.width, 0);
    return 0;
}

/* A's element that stands at place `at` of B, whose axis k is A's axis axes[k], or runs backwards. */
static uint64_t place_in_a(const side_tensor *a, int flip, const int *axes, uint64_t at)
{
    uint64_t step[REARRANGE_RANK], place = 0, n = 1;
    const int rank = (int)a->rank;
    for (int k = rank - 1; k >= 0; k--) {
        step[k] = n;
        n *= a->shape[k];
    }
    for (int k = rank - 1; k >= 0; k--) {
        const int axis = flip ? k : axes[k];
        const uint64_t i = at % a->shape[axis];
        at /= a->shape[axis];
        place += step[axis] * (flip && axes[k] ? a->shape[axis] - 1 - i : i);
    }
    return place;
}

/* A place of B, at random. */
static uint64_t some_place(uint64_t *random, uint64_t n)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*random >> 11) % n;
}

/* `all` elements, or some. */
static int try_axes(walk *w, int all, int flip, const int *axes, uint64_t *looked, trace_error *error)
{
    const side_tensor *a = w->of[0].tensor;
    const uint64_t n = a->count, samples = all || n < SAMPLES ? n : SAMPLES;
    uint64_t x, y, random = 1;
    for (uint64_t i = 0; i < samples; i++) {
        const uint64_t at = samples == n ? i : some_place(&random, n);
        if (code_at(&w->of[0], place_in_a(a, flip, axes, at), &x, error) || code_at(&w->of[1], at, &y, error))
            return -1;
        if (x != y)
            return 0;
    }
    *looked = samples;
    return 1;
}

static int next_permutation(int *p, int n)
{
    int i = n - 2, k = n - 1;
    while (i >= 0 && p[i] > p[i + 1])
        i--;
    if (i < 0)
        return 0;
    while (p[k] < p[i])
        k--;
    const int t = p[i];
    p[i] = p[k];
    p[k] = t;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        const int u = p[a];
        p[a] = p[b];
        p[b] = u;
    }
    return 1;
}

/* The next set of axes that run backwards. */
static int next_flip(int *p, int n)
{
    int k = n - 1;
    while (k >= 0 && p[k])
        p[k--] = 0;
    if (k >= 0)
        p[k] = 1;
    return k >= 0;
}

/* ---- all orders of axes ---- */

static int has_axes(const walk *w, int flip)
{
    const side_tensor *a = w->of[0].tensor;
    return a->rank >= (flip ? 1 : 2) && a->rank <= REARRANGE_RANK && a->count == w->of[1].tensor->count && a->count;
}

static void first_axes(int *axes, int rank, int flip)
{
    for (int k = 0; k < rank; k++)
        axes[k] = flip ? 0 : k;
}

static int next_axes(int *axes, int rank, int flip)
{
    return flip ? next_flip(axes, rank) : next_permutation(axes, rank);
}

int diff_rearrange_axes(walk *w, int flip, int axes[REARRANGE_RANK], uint64_t *looked, trace_error *error)
{
    const int rank = (int)w->of[0].tensor->rank;
    if (!has_axes(w, flip))
        return 0;
    const int loaded[] = {pass_elements_load(&w->of[0].from, error), pass_elements_load(&w->of[1].from, error)};
    if (loaded[0] < 0 || loaded[1] < 0)
        return -1;
    first_axes(axes, rank, flip);
    while (next_axes(axes, rank, flip)) {
        const int found = try_axes(w, loaded[0] && loaded[1], flip, axes, looked, error);
        if (found)
            return found;
    }
    return 0;
}

/* ---- rounded, too ---- */

enum { FIRST_LOOK = 64, SECOND_LOOK = 4096, LAST_LOOK = 65536 };

/* Sums over pairs of elements. */
typedef struct pairs {
    double n, a, b, aa, bb, ab;
} pairs;

/* The square of the correlation; negative correlation counts as none. */
static double correlation2(const pairs *p)
{
    const double ab = p->n * p->ab - p->a * p->b, aa = p->n * p->aa - p->a * p->a, bb = p->n * p->bb - p->b * p->b;
    return ab > 0 && aa > 0 && bb > 0 ? ab / aa * (ab / bb) : 0;
}

/* Some elements of B and A's in their places: finite ones. */
static int look(walk *w, int flip, const int *axes, size_t looks, pairs *p, remains *r, trace_error *error)
{
    double x[FIT_MOST], y[FIT_MOST];
    uint64_t random = 2;
    size_t n = 0;
    for (size_t i = 0; i < looks; i++) {
        const uint64_t at = some_place(&random, w->of[1].tensor->count);
        if (pass_elements_values(&w->of[0].from, place_in_a(w->of[0].tensor, flip, axes, at), &x[n], 1, error) ||
            pass_elements_values(&w->of[1].from, at, &y[n], 1, error))
            return -1;
        if (!isfinite(x[n]) || !isfinite(y[n]))
            continue;
        *p = (pairs){p->n + 1, p->a + x[n], p->b + y[n], p->aa + x[n] * x[n], p->bb + y[n] * y[n], p->ab + x[n] * y[n]};
        if (++n == FIT_MOST && r) {
            diff_remains_add(r, x, y, n);
            n = 0;
        }
        n = r ? n : 0;
    }
    if (r)
        diff_remains_add(r, x, y, n);
    return 0;
}

/* Whether A's elements in these places go with B's: `apart` is what the places as they are leave, of 1. */
static int goes_together(walk *w, int flip, const int *axes, double apart, trace_error *error)
{
    pairs p = {0};
    if (look(w, flip, axes, FIRST_LOOK, &p, NULL, error))
        return -1;
    if (correlation2(&p) < 0.6)
        return 0;
    p = (pairs){0};
    if (look(w, flip, axes, SECOND_LOOK, &p, NULL, error))
        return -1;
    return 1 - correlation2(&p) < fmin(0.0625, apart / 4);
}

void diff_axes_say(finding *f, int flip, const int *axes, size_t rank)
{
    diff_finding_say(f, flip ? "B is A, backwards along axis" : "B is A with the axes (");
    for (size_t k = 0, n = 0; k < rank; k++)
        if (!flip)
            diff_finding_say(f, "%s%d", k ? ", " : "", axes[k]);
        else if (axes[k])
            diff_finding_say(f, "%s%zu", n++ ? ", " : " ", k);
    diff_finding_say(f, "%s", flip ? "" : ")");
}

static int say_axes(finding *f, const walk *w, int flip, const int *axes, const remains *r)
{
    diff_finding_init(f, VERDICT_REARRANGED);
    diff_axes_say(f, flip, axes, w->of[0].tensor->rank);
    diff_remains_say(f, r);
    return 1;
}

static int try_near(walk *w, finding *f, int flip, double apart, trace_error *error)
{
    const int rank = (int)w->of[0].tensor->rank;
    int axes[REARRANGE_RANK];
    if (!has_axes(w, flip))
        return 0;
    first_axes(axes, rank, flip);
    while (next_axes(axes, rank, flip)) {
        const int found = goes_together(w, flip, axes, apart, error);
        remains r = {0};
        pairs p = {0};
        if (found < 0 || (found && look(w, flip, axes, LAST_LOOK, &p, &r, error)))
            return -1;
        if (found && diff_remains_explain(&r))
            return say_axes(f, w, flip, axes, &r);
    }
    return 0;
}

int diff_axes_near(verdict_case *c, finding *f, trace_error *error)
{
    walk *w = &c->walk;
    const measure *m = &c->all;
    int axes[REARRANGE_RANK];
    pairs p = {0};
    if (!has_axes(w, 1) || m->levels[0].n <= MEASURE_LEVELS || m->levels[1].n <= MEASURE_LEVELS)
        return 0;
    for (int i = 0; i < 2; i++)
        if (pass_elements_load(&w->of[i].from, error) < 0)
            return -1;
    first_axes(axes, (int)w->of[0].tensor->rank, 0);
    if (look(w, 0, axes, SECOND_LOOK, &p, NULL, error))
        return -1;
    const double apart = 1 - correlation2(&p);
    const int found = try_near(w, f, 0, apart, error);
    return found ? found : try_near(w, f, 1, apart, error);
}
