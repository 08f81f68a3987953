/* compare.c -- digests of a step; two engines in step; see train.h. */
#include "trainer.h"

#include <math.h>
#include <stdlib.h>

/* ---- digests ---- */

/* Bits, with one NaN. */
static uint32_t bits32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return isnan(x) ? 0x7fffffffu : u;
}

static uint64_t bits64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return isnan(x) ? UINT64_MAX >> 1 : u;
}

typedef struct digesting {
    train *t;
    uint64_t all;
    void (*each)(const char *name, uint64_t digest, void *context);
    void *context;
    char *error;
} digesting;

static int digest_item(const train_item *x, void *context)
{
    digesting *d = context;
    uint64_t digest;
    if (d->t->e->ops->digest(d->t->e, x->tensor, &digest))
        return train_engine_failed(d->t, x->name, d->error);
    d->all = train_hash(train_hash(d->all, digest), bits32(x->tensor->inverse));
    if (d->each)
        d->each(x->name, digest, d->context);
    return 0;
}

int train_digest_step(train *t, const train_step *s, uint64_t *all,
                      void (*each)(const char *name, uint64_t digest, void *context), void *context, char *error)
{
    digesting d = {t, TRAIN_HASH, each, context, error};
    const uint64_t flags = (uint64_t)s->events << 8 | (s->skipped ? 1u : 0u) | (s->stopped ? 2u : 0u) |
                           (s->clipped ? 4u : 0u);
    if (train_visit(t, digest_item, &d))
        return -1;
    d.all = train_hash(d.all, bits32(s->loss));
    d.all = train_hash(d.all, bits64(s->scale));
    d.all = train_hash(d.all, bits64(s->next_scale));
    *all = train_hash(d.all, flags);
    return 0;
}

/* ---- two engines ---- */

typedef struct items {
    train_item *list;
    size_t n, room;
} items;

static int collect(const train_item *x, void *context)
{
    items *l = context;
    if (l->n == l->room) {
        const size_t room = l->room ? 2 * l->room : 128;
        train_item *list = realloc(l->list, room * sizeof *list);
        if (!list)
            return -1;
        l->list = list;
        l->room = room;
    }
    l->list[l->n++] = *x;
    return 0;
}

typedef struct pair {
    train *a, *b;
    const train_item *x, *y; /* of a, of b */
    size_t at;               /* the first element that differs */
    float va, vb;
    char *error;
} pair;

static int get_both(const pair *p, const train_tensor *x, const train_tensor *y, float *u, float *v)
{
    if (p->a->e->ops->get(p->a->e, x, u))
        return train_engine_failed(p->a, p->x->name, p->error);
    if (p->b->e->ops->get(p->b->e, y, v))
        return train_engine_failed(p->b, p->y->name, p->error);
    return 0;
}

/* 1 if an element differs, 0 if none does (or only factors beside the tensor), -1. */
static int find_element(pair *p)
{
    const size_t n = p->x->tensor->rows * p->x->tensor->cols;
    float *u = malloc((n ? n : 1) * sizeof *u), *v = malloc((n ? n : 1) * sizeof *v);
    int code = u && v ? get_both(p, p->x->tensor, p->y->tensor, u, v) : train_fail(p->error, "out of memory");
    for (size_t i = 0; !code && i < n; i++)
        if (bits32(u[i]) != bits32(v[i])) {
            p->at = i;
            p->va = u[i];
            p->vb = v[i];
            code = 1;
        }
    free(u);
    free(v);
    return code;
}

/* ---- where two products part ---- */

/* The first products of both anew, in binary32, without bias. */
typedef struct anew {
    train_tensor d[2];
    float *values[2];
} anew;

static int differ_after(const pair *p, anew *s, size_t limit)
{
    const train_item *item[2] = {p->x, p->y};
    train *t[2] = {p->a, p->b};
    for (int i = 0; i < 2; i++) {
        train_gemm g = *item[i]->product;
        g.depth_limit = limit;
        g.bias = NULL;
        if (t[i]->e->ops->gemm(t[i]->e, &s->d[i], &g, NULL) || t[i]->e->ops->get(t[i]->e, &s->d[i], s->values[i]))
            return train_engine_failed(t[i], item[i]->name, p->error);
    }
    return bits32(s->values[0][p->at]) != bits32(s->values[1][p->at]);
}

static size_t products_at_once(const mpsim_model *m)
{
    return m->chunk ? m->chunk : m->addition == MPSIM_ADDITION_FUSED ? m->length : 1;
}

/* The first limit that differs after one that does not, among at most 64 that are far apart, then
 * among all between: *to, or 0 if the whole products are equal. */
static int search(const pair *p, anew *s, size_t depth, size_t chunk, size_t *to)
{
    const size_t n = (depth + chunk - 1) / chunk, stride = (n + 63) / 64;
    size_t last = 0;
    int code = 0;
    *to = 0;
    for (size_t i = stride; !code && last < n; i += stride) {
        i = i < n ? i : n;
        code = differ_after(p, s, i * chunk < depth ? i * chunk : depth);
        if (code < 0)
            return -1;
        last = code ? last : i;
    }
    for (size_t i = last + 1; code && i <= n; i++) {
        code = differ_after(p, s, i * chunk < depth ? i * chunk : depth);
        if (code) {
            *to = i;
            return code < 0 ? -1 : 0;
        }
        code = 1;
    }
    return 0;
}

static int bisect(const pair *p, size_t *from, size_t *to)
{
    const train_gemm *g = p->x->product;
    const size_t depth = g->a_transposed ? g->a->rows : g->a->cols;
    const size_t chunk = products_at_once(g->model);
    train *t[2] = {p->a, p->b};
    anew s = {0};
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) {
        s.d[i] = (train_tensor){
            .format = mpsim_format_find("binary32"), .rows = p->x->tensor->rows, .cols = p->x->tensor->cols};
        s.values[i] = malloc(s.d[i].rows * s.d[i].cols * sizeof(float) + 1);
        if (!s.values[i] || t[i]->e->ops->alloc(t[i]->e, &s.d[i]))
            code = train_fail(p->error, "out of memory");
    }
    if (!code)
        code = search(p, &s, depth, chunk, to);
    if (!code && *to) {
        *from = (*to - 1) * chunk;
        *to = (*to * chunk < depth ? *to * chunk : depth) - 1;
    }
    for (int i = 0; i < 2; i++) {
        if (s.d[i].data)
            t[i]->e->ops->release(t[i]->e, &s.d[i]);
        free(s.values[i]);
    }
    return code;
}

/* ---- the report ---- */

static int report_item(pair *p, const train_step *step, char *report, size_t size)
{
    char where[96] = "";
    size_t from = 0, to = 0;
    const int code = find_element(p);
    if (code < 0)
        return -1;
    if (code == 0) {
        snprintf(report, size, "step %llu: %s: equal numbers, but not equal digests", (unsigned long long)step->step,
                 p->x->name);
        return 1;
    }
    if (p->x->product && bisect(p, &from, &to))
        return -1;
    if (to)
        snprintf(where, sizeof where, "; they part at products k = %zu..%zu", from, to);
    else if (p->x->product)
        snprintf(where, sizeof where, "; computed anew they are equal before bias and rounding");
    snprintf(report, size, "step %llu: %s[%zu][%zu]: 0x%08x (%.9g) by %s, 0x%08x (%.9g) by %s%s",
             (unsigned long long)step->step, p->x->name, p->at / p->x->tensor->cols, p->at % p->x->tensor->cols,
             (unsigned)bits32(p->va), (double)p->va, p->a->e->ops->name, (unsigned)bits32(p->vb), (double)p->vb,
             p->b->e->ops->name, where);
    return 1;
}

static int same_tensor(const pair *p, int *same)
{
    uint64_t u, v;
    if (p->a->e->ops->digest(p->a->e, p->x->tensor, &u))
        return train_engine_failed(p->a, p->x->name, p->error);
    if (p->b->e->ops->digest(p->b->e, p->y->tensor, &v))
        return train_engine_failed(p->b, p->y->name, p->error);
    *same = u == v;
    return 0;
}

static int compare_items(train *a, train *b, const items *x, const items *y, const train_step *step, char *report,
                         size_t size, char *error)
{
    if (x->n != y->n)
        return train_fail(error, "the two runs do not have the same tensors");
    for (size_t i = 0; i < x->n; i++) {
        pair p = {.a = a, .b = b, .x = &x->list[i], .y = &y->list[i], .error = error};
        int same = 0;
        if (strcmp(p.x->name, p.y->name) != 0 || p.x->tensor->rows != p.y->tensor->rows ||
            p.x->tensor->cols != p.y->tensor->cols)
            return train_fail(error, "the two runs do not have the same tensors");
        if (same_tensor(&p, &same))
            return -1;
        if (!same)
            return report_item(&p, step, report, size);
        if (bits32(p.x->tensor->inverse) != bits32(p.y->tensor->inverse)) {
            snprintf(report, size, "step %llu: %s: inverse scale %a by %s, %a by %s", (unsigned long long)step->step,
                     p.x->name, (double)p.x->tensor->inverse, a->e->ops->name, (double)p.y->tensor->inverse,
                     b->e->ops->name);
            return 1;
        }
    }
    return 0;
}

static int compare_steps(const train_step *a, const train_step *b, char *report, size_t size)
{
    const struct {
        const char *name;
        double a, b;
    } all[] = {{"loss", (double)a->loss, (double)b->loss},
               {"accuracy", a->accuracy, b->accuracy},
               {"scale", a->scale, b->scale},
               {"next scale", a->next_scale, b->next_scale},
               {"events", (double)a->events, (double)b->events},
               {"skipped", (double)a->skipped, (double)b->skipped},
               {"stopped", (double)a->stopped, (double)b->stopped},
               {"norm", a->norm, b->norm},
               {"clipped", (double)a->clipped, (double)b->clipped}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (bits64(all[i].a) != bits64(all[i].b)) {
            snprintf(report, size, "step %llu: %s: %.17g and %.17g", (unsigned long long)a->step, all[i].name, all[i].a,
                     all[i].b);
            return 1;
        }
    return 0;
}

int train_compare_step(train *a, train *b, train_step *step_a, train_step *step_b, char *report, size_t size,
                       char *error)
{
    items x = {0}, y = {0};
    int code = train_next(a, step_a, error) || train_next(b, step_b, error) ? -1 : 0;
    if (size)
        report[0] = 0;
    if (!code && (train_visit(a, collect, &x) || train_visit(b, collect, &y)))
        code = train_fail(error, "out of memory");
    if (!code)
        code = compare_items(a, b, &x, &y, step_a, report, size, error);
    if (!code)
        code = compare_steps(step_a, step_b, report, size);
    free(x.list);
    free(y.list);
    return code;
}
