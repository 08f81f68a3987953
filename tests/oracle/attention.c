/* attention.c -- see attention.h. */
#include "attention.h"

#include "core.h"

#include <math.h>
#include <mpsim/layer.h>
#include <string.h>

/* A product of the oracle: a tensor core or a chain of binary32, and its result's format. */
typedef struct product {
    const oracle_core *core;
    const oracle_format *result;
} product;

static const oracle_core chain = {NULL, 0, 0, 1};

static product product_of(const oracle_products *s)
{
    char architecture[16] = {0};
    memcpy(architecture, s->model, strcspn(s->model, "-:"));
    return (product){strcmp(s->model, "fma") == 0 ? &chain : oracle_core_of(architecture, s->operand),
                     oracle_format_find(s->result)};
}

static const oracle_format *f32(void)
{
    return oracle_format_find(NULL);
}

static float dot(const product *by, float from, const char *fa, const float *a, size_t stride_a, const char *fb,
                 const float *b, size_t stride_b, size_t n)
{
    oracle_part pa[ORACLE_KEYS], pb[ORACLE_KEYS];
    const oracle_format *oa = oracle_format_find(fa), *ob = oracle_format_find(fb);
    for (size_t i = 0; i < n; i++) {
        pa[i] = oracle_take_apart(oa, a[i * stride_a]);
        pb[i] = oracle_take_apart(ob, b[i * stride_b]);
    }
    return oracle_to(by->result, (double)core_dot_from(by->core, from, oa->precision, pa, 1, ob->precision, pb, 1, n));
}

/* A row of the oracle on its way. */
typedef struct walk {
    float max, sum, o[ORACLE_SIZE], all[ORACLE_KEYS];
    size_t seen;
    int moved;
} walk;

static float larger(float a, float b)
{
    return a > b ? a : b;
}

int oracle_sees(const mpsim_attention *a, const mpsim_attention_shape *shape, size_t i, size_t j)
{
    const long at = (long)j - ((long)i + (long)shape->keys - (long)shape->queries);
    if (at > 0 && (a->causal || (a->right != SIZE_MAX && at > (long)a->right)))
        return 0;
    if (at < 0 && a->left != SIZE_MAX && -at > (long)a->left)
        return 0;
    return !a->mask || a->mask[i * shape->keys + j] != 0;
}

static int sees_tile(const oracle_head *h, size_t i, size_t first, size_t width)
{
    int any = 0;
    for (size_t j = first; j < first + width; j++)
        any |= oracle_sees(h->a, &h->shape, i, j);
    return any;
}

/* Whether a query at i or before, and one at i or behind see a key of the tile. */
static int takes_part(const oracle_head *h, size_t i, size_t first, size_t width)
{
    int before = 0, behind = 0;
    for (size_t r = 0; r <= i; r++)
        before |= sees_tile(h, r, first, width);
    for (size_t r = i; r < h->shape.queries; r++)
        behind |= sees_tile(h, r, first, width);
    return before && behind;
}

/* The largest of n numbers x, moved where it repeats. */
static float largest(const oracle_head *h, const oracle_format *sf, const float *x, size_t n, walk *w)
{
    float most = -INFINITY;
    size_t near = 0;
    for (size_t j = 0; j < n; j++)
        most = larger(most, x[j]);
    const float least = oracle_sub(sf, most, h->a->margin);
    for (size_t j = 0; j < n; j++)
        near += x[j] >= least;
    if (h->a->beta == 0 || near < 2 || most == 0)
        return most;
    w->moved = 1;
    return most > 0 ? oracle_mul(sf, h->a->beta, most) : 0;
}

/* exp(x - r), or by powers of two. */
static float exponential(const oracle_head *h, const oracle_format *sf, float x, float r, int of_max)
{
    const float l = (float)((double)h->a->scale * 1.4426950408889634);
    if (!h->a->exp2)
        return oracle_to(sf, (double)mpsim_exp(oracle_sub(sf, x, r)));
    const float fused = oracle_to(sf, (double)fmaf(x, l, -oracle_mul(sf, r, l)));
    return oracle_to(sf, (double)mpsim_exp2(of_max ? oracle_mul(sf, oracle_sub(sf, x, r), l) : fused));
}

static void want_tile(const oracle_head *h, walk *w, oracle_outcome *to, size_t i, size_t first, size_t width)
{
    const product by = product_of(h->by);
    const oracle_format *of = by.result, *pf = oracle_format_find(h->by->p),
                        *sf = oracle_format_find(h->a->softmax ? h->a->softmax->name : NULL);
    const size_t dim = h->shape.dim, size = h->shape.size;
    float x[ORACLE_KEYS], seen[ORACLE_KEYS], p[ORACLE_KEYS], term[ORACLE_KEYS];
    size_t n = 0;
    if (!takes_part(h, i, first, width))
        return;
    for (size_t j = 0; j < width; j++) {
        const float s = dot(&by, 0, h->by->operand, h->q + i * dim, 1, h->by->operand, h->k + (first + j) * dim, 1,
                            dim);
        x[j] = h->a->exp2 ? oracle_to(sf, (double)s) : oracle_mul(sf, h->a->scale, s);
        if (oracle_sees(h->a, &h->shape, i, first + j))
            w->all[w->seen++] = seen[n++] = x[j];
    }
    const float m = larger(w->max, largest(h, sf, seen, n, w)), r = m == -INFINITY ? 0 : m;
    const float a = exponential(h, sf, w->max, r, 1), back = oracle_div(f32(), 1, h->a->p_scale);
    for (size_t j = 0; j < width; j++) {
        const int there = oracle_sees(h->a, &h->shape, i, first + j);
        const float e = there ? exponential(h, sf, x[j], r, 0) : 0;
        p[j] = oracle_to(pf, (double)oracle_mul(f32(), e, h->a->p_scale));
        term[j] = h->a->sum_rounded ? oracle_mul(sf, p[j], back) : e;
        to->counts.p_zero += there && p[j] == 0;
        to->counts.p_one += there && p[j] == h->a->p_scale;
    }
    to->counts.elements += n;
    w->sum = oracle_add(sf, oracle_mul(sf, w->sum, a), oracle_sum(sf, term, width, 1, 32));
    w->max = m;
    for (size_t c = 0; c < size; c++) {
        const float o = oracle_to(of, (double)oracle_mul(f32(), w->o[c], a));
        const float got = dot(&by, h->a->separate ? 0 : o, h->by->p, p, 1, h->by->operand, h->v + first * size + c,
                              size, width);
        w->o[c] = h->a->separate ? oracle_to(of, (double)oracle_add(f32(), o, got)) : got;
    }
}

static void want_row(const oracle_head *h, oracle_outcome *to, size_t i)
{
    const size_t keys = h->shape.keys, width = h->a->tile && h->a->tile < keys ? h->a->tile : keys;
    const size_t tiles = keys ? (keys - 1) / width + 1 : 0, size = h->shape.size;
    walk w = {.max = -INFINITY};
    for (size_t t = 0; t < tiles; t++) {
        const size_t first = (h->a->reverse ? tiles - 1 - t : t) * width;
        want_tile(h, &w, to, i, first, keys - first < width ? keys - first : width);
    }
    const float back = oracle_div(f32(), 1, h->a->p_scale);
    const oracle_format *f = oracle_format_find(h->a->f ? h->a->f->name : NULL);
    for (size_t c = 0; c < size; c++) {
        const float o = oracle_mul(f32(), w.o[c], back);
        const float y = h->a->reciprocal ? oracle_mul(f32(), o, oracle_div(f32(), 1, w.sum))
                                         : oracle_div(f32(), o, w.sum);
        to->y[i * size + c] = w.sum == 0 ? 0 : oracle_to(f, (double)y);
    }
    to->lse[i] = oracle_add(f32(), h->a->exp2 ? oracle_mul(f32(), w.max, h->a->scale) : w.max, mpsim_log(w.sum));
    float top = -INFINITY;
    size_t ties = 0;
    for (size_t j = 0; j < w.seen; j++)
        top = larger(top, w.all[j]);
    for (size_t j = 0; j < w.seen; j++)
        ties += w.all[j] == top;
    to->flags[i] = ties > 1;
    to->counts.rows++;
    to->counts.masked += w.seen == 0;
    to->counts.repeated += ties > 1;
    to->counts.moved += (uint64_t)w.moved;
    to->counts.vanished += w.seen > 0 && w.sum == 0;
}

void oracle_attention(const oracle_head *h, oracle_outcome *to)
{
    memset(to, 0, sizeof *to);
    for (size_t i = 0; i < h->shape.queries; i++)
        want_row(h, to, i);
}

/* ---- back ---- */

/* P and dS of a tile, whose rows are all queries. */
typedef struct square {
    float p[ORACLE_QUERIES * ORACLE_KEYS], ds[ORACLE_QUERIES * ORACLE_KEYS];
} square;

static const oracle_format *softmax_format(const oracle_head *h)
{
    return oracle_format_find(h->a->softmax ? h->a->softmax->name : NULL);
}

static void one_element(const oracle_head *h, const mpsim_attention_gradient *g, const float *dy, float lse, float d,
                        size_t i, size_t j, float *p, float *ds)
{
    const product by = product_of(h->by);
    const oracle_format *sf = softmax_format(h), *pf = oracle_format_find(h->by->p);
    const size_t dim = h->shape.dim, size = h->shape.size;
    const float s = dot(&by, 0, h->by->operand, h->q + i * dim, 1, h->by->operand, h->k + j * dim, 1, dim);
    const float l = (float)((double)h->a->scale * 1.4426950408889634), far = oracle_mul(sf, lse, 0x1.715476p+0f);
    float e;
    if (h->a->exp2)
        e = mpsim_exp2(oracle_to(sf, (double)fmaf(oracle_to(sf, (double)s), l, -far)));
    else
        e = mpsim_exp(oracle_sub(sf, oracle_mul(sf, h->a->scale, s), lse));
    e = oracle_to(sf, (double)e);
    const float dp = dot(&by, 0, h->by->operand, dy + i * size, 1, h->by->operand, h->v + j * size, 1, size);
    const float less = oracle_sub(sf, oracle_to(sf, (double)dp), oracle_to(sf, (double)d)), t = oracle_mul(sf, e, less);
    *p = oracle_to(pf, (double)e);
    *ds = oracle_to(pf, (double)(g->scale_last ? t : oracle_mul(sf, t, h->a->scale)));
}

static float last(const oracle_head *h, const mpsim_attention_gradient *g, float x, int scaled)
{
    const float y = scaled && g->scale_last ? oracle_mul(f32(), x, h->a->scale) : x;
    return oracle_to(oracle_format_find(g->f ? g->f->name : NULL), (double)y);
}

static void back_tile(const oracle_head *h, const mpsim_attention_gradient *g, const float *dy, const float *lse,
                      const float *d, size_t first, size_t width, square *t, oracle_gradients *to)
{
    const product by = product_of(h->by);
    const size_t dim = h->shape.dim, size = h->shape.size;
    size_t from = 0, n = 0;
    for (size_t i = 0; i < h->shape.queries; i++) {
        from = takes_part(h, i, first, width) && n == 0 ? i : from;
        n += (size_t)takes_part(h, i, first, width);
    }
    for (size_t i = from; i < from + n; i++)
        for (size_t j = 0; j < width; j++) {
            float *const p = &t->p[i * width + j], *const ds = &t->ds[i * width + j];
            *p = *ds = 0;
            if (oracle_sees(h->a, &h->shape, i, first + j))
                one_element(h, g, dy, lse[i], d[i], i, first + j, p, ds);
        }
    for (size_t j = 0; n > 0 && j < width; j++) {
        for (size_t c = 0; c < size; c++)
            to->dv[(first + j) * size + c] = dot(&by, 0, h->by->p, t->p + from * width + j, width, h->by->operand,
                                                 dy + from * size + c, size, n);
        for (size_t c = 0; c < dim; c++)
            to->dk[(first + j) * dim + c] = dot(&by, 0, h->by->p, t->ds + from * width + j, width, h->by->operand,
                                                h->q + from * dim + c, dim, n);
    }
    for (size_t i = from; i < from + n; i++)
        for (size_t c = 0; c < dim; c++) {
            float *const sum = &to->dq[i * dim + c];
            *sum = oracle_add(
                f32(), *sum,
                dot(&by, 0, h->by->p, t->ds + i * width, 1, h->by->operand, h->k + first * dim + c, dim, width));
        }
}

void oracle_attention_backward(const oracle_head *h, const mpsim_attention_gradient *g, const float *dy,
                               const float *lse, const float *d, oracle_gradients *to)
{
    static square t;
    const size_t keys = h->shape.keys, width = h->a->tile && h->a->tile < keys ? h->a->tile : keys;
    const size_t tiles = keys ? (keys - 1) / width + 1 : 0;
    memset(to, 0, sizeof *to);
    for (size_t k = 0; k < tiles; k++) {
        const size_t first = (h->a->reverse ? tiles - 1 - k : k) * width;
        back_tile(h, g, dy, lse, d, first, keys - first < width ? keys - first : width, &t, to);
    }
    for (size_t i = 0; i < h->shape.queries * h->shape.dim; i++)
        to->dq[i] = last(h, g, to->dq[i], 1);
    for (size_t i = 0; i < keys * h->shape.dim; i++)
        to->dk[i] = last(h, g, to->dk[i], 1);
    for (size_t i = 0; i < keys * h->shape.size; i++)
        to->dv[i] = last(h, g, to->dv[i], 0);
}
