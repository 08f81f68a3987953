/* match.c -- see match.h. */
#include "match.h"

#include "../array/need.h"
#include "../input/names.h"
#include "walk.h"

#include <mpsim/digest.h>
#include <stdlib.h>
#include <string.h>

const char *const diff_match_words[] = {"name", "kind", "prefix", "content", "shape", NULL};

/* One side while it is matched. */
typedef struct party {
    const side_group *g;
    char **keys;     /* of all tensors: what must be equal        */
    size_t *partner; /* of all tensors: of the other side, or NONE */
    match_how *how;
} party;

static const size_t NONE = SIZE_MAX;

static void begin(party *p, const side_group *g)
{
    p->g = g;
    p->keys = need_memory(g->n, sizeof *p->keys);
    p->partner = need_memory(g->n, sizeof *p->partner);
    p->how = need_memory(g->n, sizeof *p->how);
    for (size_t i = 0; i < g->n; i++)
        p->partner[i] = NONE;
}

static void clear_keys(party *p)
{
    for (size_t i = 0; p->keys && i < p->g->n; i++) {
        free(p->keys[i]);
        p->keys[i] = NULL;
    }
}

static void end(party *p)
{
    clear_keys(p);
    free(p->keys);
    free(p->partner);
    free(p->how);
}

static void pair(party *a, party *b, size_t i, size_t k, match_how how)
{
    a->partner[i] = k;
    b->partner[k] = i;
    a->how[i] = b->how[k] = how;
}

/* ---- by keys ---- */

typedef char *key_of(const side_tensor *t, int several);

static char *name_key(const side_tensor *t, int several)
{
    return several ? need_format("%lld\x1f%s", (long long)t->file->said.rank, t->name) : need_text(t->name);
}

static char *place_key(const side_tensor *t, int several)
{
    (void)several;
    return need_format("%s\x1f%s", t->file->below, t->name);
}

/* Tensors without a kind have no key: nothing. */
static char *kind_key(const side_tensor *t, int several)
{
    if (!t->kind)
        return need_text("");
    return need_format("%lld\x1f%s:%s", several ? (long long)t->file->said.rank : -1LL, t->kind, t->fqn);
}

/* The keys of tensors without a partner. *twice: a key occurs more than once. */
static void make_keys(party *p, nameindex *x, key_of *of, int several, int *twice)
{
    clear_keys(p);
    for (size_t i = 0; i < p->g->n; i++) {
        if (p->partner[i] != NONE)
            continue;
        p->keys[i] = of(&p->g->tensors[i], several);
        if (!p->keys[i][0] && of == kind_key)
            continue;
        if (nameindex_find(x, p->keys[i]) >= 0)
            *twice = 1;
        else
            nameindex_add(x, p->keys[i], i);
    }
}

/* Pair what has the same key; not if any key is there twice, and `unique` wants none. */
static void by_key(party *a, party *b, key_of *of, match_how how, int unique, int *twice)
{
    const int several = a->g->several && b->g->several;
    nameindex x = {NULL}, y = {NULL};
    *twice = 0;
    make_keys(a, &x, of, several, twice);
    make_keys(b, &y, of, several, twice);
    for (size_t i = 0; !(*twice && unique) && i < a->g->n; i++) {
        const ptrdiff_t k = a->keys[i] && (a->keys[i][0] || of == name_key) ? nameindex_find(&y, a->keys[i]) : -1;
        if (k >= 0 && b->partner[k] == NONE && nameindex_find(&x, a->keys[i]) == (ptrdiff_t)i)
            pair(a, b, i, (size_t)k, how);
    }
    nameindex_clear(&x);
    nameindex_clear(&y);
}

/* ---- by what is in front of all names ---- */

/* The prefix that leads from a name of `longer` to one of `other`; NULL if no name has one. */
static char *find_prefix(const party *longer, const nameindex *other)
{
    for (size_t i = 0; i < longer->g->n; i++) {
        const char *name = longer->g->tensors[i].name;
        for (const char *p = name; longer->partner[i] == NONE && *p; p++)
            if ((*p == '.' || *p == '/') && nameindex_find(other, p + 1) >= 0)
                return need_part(name, (size_t)(p + 1 - name));
    }
    return NULL;
}

static void by_prefix(party *longer, party *other)
{
    nameindex x = {NULL};
    int twice = 0;
    make_keys(other, &x, name_key, 0, &twice);
    char *prefix = twice ? NULL : find_prefix(longer, &x);
    const size_t n = prefix ? strlen(prefix) : 0;
    for (size_t i = 0; prefix && i < longer->g->n; i++) {
        const char *name = longer->g->tensors[i].name;
        if (longer->partner[i] != NONE || strncmp(name, prefix, n) != 0)
            continue;
        const ptrdiff_t k = nameindex_find(&x, name + n);
        if (k >= 0 && other->partner[k] == NONE)
            pair(longer, other, i, (size_t)k, MATCH_PREFIX);
    }
    free(prefix);
    nameindex_clear(&x);
}

/* ---- by content, and by shape ---- */

typedef struct looked {
    const side_tensor *t;
    uint64_t digest;
    size_t i;
} looked;

/* What elements are read into, for one tensor after the other. */
enum { AT_ONCE = 16 << 10 };
typedef struct digesting {
    double values[AT_ONCE];
    unsigned char codes[AT_ONCE * sizeof(double)];
} digesting;

/* A tensor's numbers, whatever their format. */
static int digest_of(digesting *d, side *s, const side_tensor *t, uint64_t *digest, trace_error *error)
{
    const mpsim_format *wide = mpsim_format_find("binary64");
    source from = {.tensor = NULL};
    *digest = 0;
    int bad = diff_source_open(&from, s, t, error);
    for (uint64_t at = 0; at < t->count && !bad; at += AT_ONCE) {
        const size_t n = t->count - at < AT_ONCE ? (size_t)(t->count - at) : AT_ONCE;
        bad = pass_elements_codes(&from.from, at, d->codes, n, error);
        if (!bad && mpsim_decode_array(t->format, d->values, d->codes, n) == MPSIM_OK)
            *digest += mpsim_digest(wide, d->values, n, at);
    }
    pass_elements_close(&from.from);
    return bad;
}

static int compare_shapes(const side_tensor *x, const side_tensor *y)
{
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    for (size_t i = 0; i < x->rank; i++)
        if (x->shape[i] != y->shape[i])
            return x->shape[i] < y->shape[i] ? -1 : 1;
    return (x->format != NULL) - (y->format != NULL);
}

static int compare_content(const looked *x, const looked *y)
{
    if (x->t->count != y->t->count)
        return x->t->count < y->t->count ? -1 : 1;
    return (x->digest > y->digest) - (x->digest < y->digest);
}

static int by_content_order(const void *a, const void *b)
{
    const looked *x = a, *y = b;
    const int c = compare_content(x, y);
    return c ? c : (x->i > y->i) - (x->i < y->i);
}

static int by_shape_order(const void *a, const void *b)
{
    const looked *x = a, *y = b;
    const int c = compare_shapes(x->t, y->t);
    return c ? c : (x->i > y->i) - (x->i < y->i);
}

static int look_at(const party *p, digesting *d, looked **list, size_t *n)
{
    for (size_t i = 0; i < p->g->n; i++) {
        trace_error error;
        looked l = {.t = &p->g->tensors[i], .i = i};
        if (p->partner[i] != NONE || (d && (!l.t->format || l.t->count == 0)))
            continue;
        diff_side_pin(p->g->of);
        if (d && digest_of(d, p->g->of, l.t, &l.digest, &error)) {
            const int code = input_failed(&p->g->of->in, &error);
            if (code)
                return code;
            continue;
        }
        (*list)[(*n)++] = l;
    }
    return 0;
}

/* Those without a partner; with `content` also what is in them. */
static int look(const party *p, looked **list, size_t *n, int content)
{
    digesting *d = content ? need_memory(1, sizeof *d) : NULL;
    *n = 0;
    *list = need_memory(p->g->n, sizeof **list);
    const int code = look_at(p, d, list, n);
    free(d);
    return code;
}

/* Pair equal ones of two sorted lists, the first with the first; of a shape only if both have as many. */
static void pair_runs(party *a, party *b, const looked *x, size_t nx, const looked *y, size_t ny, int content)
{
    for (size_t i = 0, k = 0; i < nx && k < ny;) {
        const int c = content ? compare_content(&x[i], &y[k]) : compare_shapes(x[i].t, y[k].t);
        if (c) {
            i += c < 0;
            k += c > 0;
            continue;
        }
        size_t p = 1, q = 1;
        while (i + p < nx && (content ? compare_content(&x[i], &x[i + p]) : compare_shapes(x[i].t, x[i + p].t)) == 0)
            p++;
        while (k + q < ny && (content ? compare_content(&y[k], &y[k + q]) : compare_shapes(y[k].t, y[k + q].t)) == 0)
            q++;
        for (size_t j = 0; j < p && j < q && (content || p == q); j++)
            pair(a, b, x[i + j].i, y[k + j].i, content ? MATCH_CONTENT : MATCH_SHAPE);
        i += p;
        k += q;
    }
}

static int is_done(const party *p)
{
    for (size_t i = 0; i < p->g->n; i++)
        if (p->partner[i] == NONE)
            return 0;
    return 1;
}

static int by_looks(party *a, party *b, int content)
{
    looked *x = NULL, *y = NULL;
    size_t nx = 0, ny = 0;
    if (is_done(a) || is_done(b))
        return 0;
    int code = look(a, &x, &nx, content);
    if (!code)
        code = look(b, &y, &ny, content);
    if (!code) {
        if (nx)
            qsort(x, nx, sizeof *x, content ? by_content_order : by_shape_order);
        if (ny)
            qsort(y, ny, sizeof *y, content ? by_content_order : by_shape_order);
        pair_runs(a, b, x, nx, y, ny, content);
    }
    free(x);
    free(y);
    return code;
}

/* ---- all of it ---- */

static void list_pairs(match_list *l, const party *a, const party *b)
{
    l->pairs = need_memory(a->g->n + b->g->n, sizeof *l->pairs);
    for (size_t i = 0; i < a->g->n; i++)
        l->pairs[l->n++] = (match_pair){i, a->partner[i], a->how[i]};
    for (size_t k = 0; k < b->g->n; k++)
        if (b->partner[k] == NONE)
            l->pairs[l->n++] = (match_pair){NONE, k, MATCH_NONE};
}

static void match_names(party *a, party *b)
{
    int twice;
    by_key(a, b, name_key, MATCH_NAME, 1, &twice);
    if (twice)
        by_key(a, b, place_key, MATCH_NAME, 0, &twice);
    by_key(a, b, kind_key, MATCH_KIND, 0, &twice);
    by_prefix(a, b);
    by_prefix(b, a);
}

int diff_match_groups(match_list *l, const side_group *a, const side_group *b)
{
    party x = {.g = a}, y = {.g = b};
    memset(l, 0, sizeof *l);
    begin(&x, a);
    begin(&y, b);
    match_names(&x, &y);
    if (a->of->single && b->of->single && a->n == 1 && b->n == 1 && x.partner[0] == NONE)
        pair(&x, &y, 0, 0, MATCH_SHAPE); /* nothing else can be meant */
    int code = by_looks(&x, &y, 1);
    if (!code)
        code = by_looks(&x, &y, 0);
    if (!code)
        list_pairs(l, &x, &y);
    end(&x);
    end(&y);
    return code;
}

void diff_match_clear(match_list *l)
{
    free(l->pairs);
    memset(l, 0, sizeof *l);
}
