/* attention.cu -- mpsim_cuda_attention_forward and _backward: settings are checked here, tiles are products and the kernels of
 * attention.cuh; see mpsim/cudaattention.h. */
#include "../include/mpsim/cudaattention.h"

#include "../include/mpsim/cudagemm.h"
#include "attention.cuh"
#include "call.cuh"

#include "../../lib/layer/seen.h"

#include <math.h>

namespace library
{
namespace attention
{

static const char NAME[] = "mpsim_cuda_attention";

/* A call, or with `counts` only the bytes of its workspace. */
struct work {
    const mpsim_attention *a;
    const mpsim_attention_gradient *g; /* or NULL */
    const mpsim_attention_shape *shape;
    const mpsim_matrix *q, *k, *v, *dy;
    gpu_format f_p, f_o, f_ds, f_dy;
    attention_tile t;
    /* workspace */
    void *p, *o, *part, *ds;
    float *s, *dp, *max, *sum, *d;
    int counts;
    size_t products; /* bytes of the largest product's workspace */
    const mpsim_cuda_call *call;
    mpsim_cuda_call inner; /* of products */
};

static unsigned blocks_over(size_t n, size_t each)
{
    const size_t blocks = (n + each - 1) / each;
    return unsigned(blocks < (1u << 20) ? blocks : 1u << 20);
}

#define ATTENTION_EACH(n, kernel, ...)                                                                         \
    do {                                                                                                       \
        if ((n) > 0)                                                                                           \
            GPU_LAUNCH_ON(stream_of(w->call), kernel, blocks_over(n, ATTENTION_THREADS), ATTENTION_THREADS, 0, \
                          __VA_ARGS__);                                                                        \
    } while (0)
#define ATTENTION_ROWS(n, kernel, ...)                                                                                 \
    do {                                                                                                               \
        if ((n) > 0)                                                                                                   \
            GPU_LAUNCH_ON(stream_of(w->call), kernel, blocks_over(n, GPU_ROW_WARPS), GPU_ROW_THREADS, 0, __VA_ARGS__); \
    } while (0)

/* ---- products ---- */

static mpsim_stack stack_of(const mpsim_format *f, const void *codes, size_t rows, size_t cols, size_t row, size_t col)
{
    mpsim_stack x;
    memset(&x, 0, sizeof x);
    x.format = f;
    x.codes = const_cast<void *>(codes);
    x.rank = 2;
    x.shape[0] = rows;
    x.shape[1] = cols;
    x.strides[0] = int64_t(row);
    x.strides[1] = int64_t(col);
    return x;
}

/* Rows first to first + rows - 1 of a matrix; turned: its columns as rows. */
static mpsim_stack rows_of(const mpsim_matrix *x, size_t first, size_t rows, size_t cols, int turned)
{
    const size_t row = x->transposed ? 1 : x->stride, col = x->transposed ? x->stride : 1;
    const unsigned char *const codes = static_cast<const unsigned char *>(x->codes);
    const void *const at = codes ? codes + first * row * mpsim_format_code_bytes(x->format) : codes;
    return turned ? stack_of(x->format, at, cols, rows, col, row) : stack_of(x->format, at, rows, cols, row, col);
}

static mpsim_status multiply(work *w, const mpsim_model *m, const mpsim_stack &a, const mpsim_stack &b,
                             const mpsim_stack &d, const mpsim_stack *start)
{
    mpsim_cuda_operand x, y;
    mpsim_product p;
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    mpsim_operand_init(&x.of, &a, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&y.of, &b, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_product_init(&p);
    p.model = m;
    p.d = &d;
    p.start = start;
    if (!w->counts)
        return mpsim_cuda_gemm(&p, &x, &y, &w->inner);
    const size_t bytes = mpsim_cuda_gemm_room(&p, &x, &y);
    w->products = bytes > w->products ? bytes : w->products;
    return MPSIM_OK;
}

static mpsim_stack floats(float *x, size_t rows, size_t cols)
{
    return stack_of(mpsim_format_find("binary32"), x, rows, cols, cols, 1);
}

/* ---- tiles ---- */

static mpsim_status multiply_scores(work *w)
{
    const attention_tile &t = w->t;
    const size_t rows = t.to - t.from, dim = w->shape->dim;
    return multiply(w, w->a->scores, rows_of(w->q, t.from, rows, dim, 0), rows_of(w->k, t.first, t.n, dim, 0),
                    floats(w->s, rows, t.n), NULL);
}

static mpsim_status forward_tile(work *w)
{
    const attention_tile &t = w->t;
    const size_t rows = t.to - t.from, size = t.size;
    const mpsim_format *const f = &w->a->context->result.format;
    unsigned char *const o = static_cast<unsigned char *>(w->o) + t.from * size * mpsim_format_code_bytes(f);
    const mpsim_stack start = stack_of(f, o, rows, size, size, 1);
    mpsim_status s = multiply_scores(w);
    if (s)
        return s;
    if (!w->counts)
        ATTENTION_ROWS(rows, attention_row_kernel, t, w->f_p, w->f_o, w->p, w->o, w->max, w->sum, w->s);
    s = multiply(w, w->a->context, stack_of(&w->a->p.format, w->p, rows, t.n, t.n, 1),
                 rows_of(w->v, t.first, t.n, size, 1), stack_of(f, w->part, rows, size, size, 1),
                 w->a->separate ? NULL : &start);
    if (!s && !w->counts)
        ATTENTION_EACH(rows * size, attention_take_kernel, t, w->f_o, w->o, w->part);
    return s;
}

static mpsim_status backward_tile(work *w, float *dq, float *dk, float *dv)
{
    const attention_tile &t = w->t;
    const mpsim_attention_gradient *const g = w->g;
    const size_t rows = t.to - t.from, size = t.size, dim = w->shape->dim;
    float *const part = static_cast<float *>(w->part);
    mpsim_status s = multiply_scores(w);
    if (!s)
        s = multiply(w, g->dp, rows_of(w->dy, t.from, rows, size, 0), rows_of(w->v, t.first, t.n, size, 0),
                     floats(w->dp, rows, t.n), NULL);
    if (s)
        return s;
    if (!w->counts)
        ATTENTION_EACH(rows * t.n, attention_again_kernel, t, w->f_p, w->f_ds, w->p, w->ds, w->s, w->dp, w->max, w->d,
                       g->scale_last ? 1.0f : t.scale);
    if (dv)
        s = multiply(w, g->dvalue, stack_of(&g->p.format, w->p, t.n, rows, 1, t.n),
                     rows_of(w->dy, t.from, rows, size, 1), floats(dv + t.first * size, t.n, size), NULL);
    if (!s && dk)
        s = multiply(w, g->dkey, stack_of(&g->ds.format, w->ds, t.n, rows, 1, t.n), rows_of(w->q, t.from, rows, dim, 1),
                     floats(dk + t.first * dim, t.n, dim), NULL);
    if (s || !dq)
        return s;
    s = multiply(w, g->dquery, stack_of(&g->ds.format, w->ds, rows, t.n, t.n, 1), rows_of(w->k, t.first, t.n, dim, 1),
                 floats(part, rows, dim), NULL);
    if (!s && !w->counts)
        ATTENTION_EACH(rows * dim, attention_add_kernel, dq + t.from * dim, part, rows * dim);
    return s;
}

static mpsim_status tiles(work *w, float *dq, float *dk, float *dv)
{
    mpsim_status s = MPSIM_OK;
    for (size_t i = 0; i < mpsim_key_tiles(w->a, w->shape) && !s; i++) {
        const mpsim_key_tile t = mpsim_key_tile_at(w->a, w->shape, i);
        w->t.first = t.first;
        w->t.n = t.n;
        w->t.from = t.from;
        w->t.to = t.to;
        if (t.from < t.to)
            s = w->g ? backward_tile(w, dq, dk, dv) : forward_tile(w);
    }
    return s;
}

/* ---- checks ---- */

static int is_plain(const mpsim_rounded &r, gpu_format *f)
{
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    return memcmp(&r.rounding, &nearest, sizeof nearest) == 0 && !gpu_format_set(f, &r.format);
}

/* A model whose results the kernels hold, and its operands. */
static mpsim_status check_product(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    gpu_format unused;
    uint64_t code;
    const mpsim_matrix a = {fa, "", 1, 0}, b = {fb, "", 1, 0};
    if (!m)
        return MPSIM_EINVAL;
    const mpsim_status s = mpsim_gemm(m, 1, 1, 0, &a, &b, NULL, &code, 1, NULL, NULL); /* EINVAL without random bits */
    return s ? s : m->result.format.inf && !gpu_format_set(&unused, &m->result.format) ? MPSIM_OK : MPSIM_ERANGE;
}

static int is_matrix(const mpsim_matrix *x, size_t rows, size_t cols)
{
    return x && x->format && (x->codes || !rows || !cols) && x->stride >= (x->transposed ? rows : cols);
}

static mpsim_status check(work *w)
{
    const mpsim_attention *const a = w->a;
    const mpsim_attention_shape *const s = w->shape;
    if (!a || !s || !is_matrix(w->q, s->queries, s->dim) || !is_matrix(w->k, s->keys, s->dim) ||
        !is_matrix(w->v, s->keys, s->size) || !isfinite(a->scale) || (a->exp2 && !(a->scale > 0)))
        return MPSIM_EINVAL;
    if (a->mask || a->softmax)
        return MPSIM_ERANGE;
    memset(static_cast<void *>(&w->t), 0, sizeof w->t);
    w->t.queries = s->queries;
    w->t.keys = s->keys;
    w->t.size = s->size;
    w->t.left = a->left;
    w->t.right = a->causal ? 0 : a->right;
    w->t.scale = a->scale;
    w->t.log2e = float(double(a->scale) * 0x1.71547652b82fep+0);
    w->t.p_scale = a->p_scale;
    w->t.back = 1.0f / a->p_scale;
    w->t.exp2 = a->exp2;
    w->t.rounded = a->sum_rounded;
    w->t.separate = a->separate;
    w->t.reciprocal = a->reciprocal;
    return check_product(a->scores, w->q->format, w->k->format);
}

static mpsim_status check_forward(work *w)
{
    const mpsim_status s = check(w);
    if (s)
        return s;
    if (!(w->a->p_scale > 0) || !isfinite(w->a->p_scale))
        return MPSIM_EINVAL;
    if (w->a->beta != 0 || w->a->f || !is_plain(w->a->p, &w->f_p))
        return MPSIM_ERANGE;
    const mpsim_status of = check_product(w->a->context, &w->a->p.format, w->v->format);
    return of ? of : gpu_format_set(&w->f_o, &w->a->context->result.format) ? MPSIM_ERANGE : MPSIM_OK;
}

static mpsim_status check_backward(work *w)
{
    const mpsim_attention_gradient *const g = w->g;
    mpsim_status s = g ? check(w) : MPSIM_EINVAL;
    if (!s && !is_matrix(w->dy, w->shape->queries, w->shape->size))
        s = MPSIM_EINVAL;
    if (!s &&
        (g->f || !is_plain(g->p, &w->f_p) || !is_plain(g->ds, &w->f_ds) || gpu_format_set(&w->f_dy, w->dy->format)))
        s = MPSIM_ERANGE;
    if (!s)
        s = check_product(g->dp, w->dy->format, w->v->format);
    if (!s)
        s = check_product(g->dvalue, &g->p.format, w->dy->format);
    if (!s)
        s = check_product(g->dkey, &g->ds.format, w->q->format);
    return s ? s : check_product(g->dquery, &g->ds.format, w->k->format);
}

/* ---- the workspace ---- */

/* Its parts. Products are counted with places that are aligned as theirs will be. */
static size_t place(work *w, void *memory)
{
    room r(memory ? memory : reinterpret_cast<void *>(size_t(MPSIM_CUDA_ALIGNMENT)));
    const mpsim_attention_shape *const s = w->shape;
    const size_t n = s->queries, width = mpsim_key_tile_width(w->a, s), dim = s->dim, size = s->size;
    w->s = r.take<float>(n * width);
    w->p = r.take<uint32_t>(n * width);
    w->part = r.take<float>(n * (dim > size ? dim : size));
    if (w->g) {
        w->dp = r.take<float>(n * width);
        w->ds = r.take<uint32_t>(n * width);
        w->d = r.take<float>(n);
    } else {
        w->o = r.take<uint32_t>(n * size);
        w->max = r.take<float>(n);
        w->sum = r.take<float>(n);
    }
    float *const some = w->s;
    w->counts = 1;
    (void)tiles(w, some, some, some);
    w->counts = 0;
    unsigned char *const products = r.take<unsigned char>(w->products);
    if (memory) {
        w->inner = *w->call;
        w->inner.room = w->products ? products : NULL;
        w->inner.bytes = w->products;
    }
    return r.used;
}

static size_t room_of(work *w, mpsim_status s)
{
    return s || !w->shape->queries ? 0 : place(w, NULL);
}

static mpsim_status begin(work *w, mpsim_status s, int arrays)
{
    if (!w->call)
        return MPSIM_EINVAL;
    if (!s && !arrays)
        s = MPSIM_EINVAL;
    if (s)
        return refuse(w->call, s, "%s: %s", NAME,
                      s == MPSIM_ERANGE ? "the device has no kernel for these settings"
                                        : "settings, shapes or arrays do not fit together");
    s = has_room(w->call, NAME, room_of(w, MPSIM_OK));
    if (!s && w->shape->queries)
        (void)place(w, w->call->room);
    return s;
}

} // namespace attention
} // namespace library

extern "C" size_t mpsim_cuda_attention_forward_room(const mpsim_attention *a, const mpsim_attention_shape *shape,
                                                    const mpsim_matrix *q, const mpsim_matrix *k, const mpsim_matrix *v)
{
    library::attention::work w = {};
    w.a = a, w.shape = shape, w.q = q, w.k = k, w.v = v;
    return room_of(&w, check_forward(&w));
}

extern "C" mpsim_status mpsim_cuda_attention_forward(const mpsim_attention *a, const mpsim_attention_shape *shape,
                                                     const mpsim_matrix *q, const mpsim_matrix *k,
                                                     const mpsim_matrix *v, float *y, float *lse,
                                                     const mpsim_cuda_call *call)
{
    using namespace library;
    attention::work of = {}, *const w = &of;
    w->a = a, w->shape = shape, w->q = q, w->k = k, w->v = v, w->call = call;
    const mpsim_status checked = attention::check_forward(w);
    mpsim_status s = attention::begin(w, checked, checked || y || !shape->queries || !shape->size);
    if (s || !shape->queries)
        return s;
    const size_t n = shape->queries, all = n * shape->size;
    using attention::blocks_over;
    ATTENTION_EACH(n, attention_fill_kernel, w->max, n, -INFINITY);
    ATTENTION_EACH(n, attention_fill_kernel, w->sum, n, 0.0f);
    ATTENTION_EACH(all, attention_zero_kernel, w->f_o, w->o, all);
    s = attention::tiles(w, NULL, NULL, NULL);
    if (s)
        return s;
    ATTENTION_EACH(all > n ? all : n, attention_end_kernel, w->t, w->f_o, y, lse, w->o, w->max, w->sum);
    return launched(call, attention::NAME);
}

extern "C" size_t mpsim_cuda_attention_backward_room(const mpsim_attention_gradient *g,
                                                     const mpsim_attention_shape *shape, const mpsim_matrix *q,
                                                     const mpsim_matrix *k, const mpsim_matrix *v,
                                                     const mpsim_matrix *dy)
{
    library::attention::work w = {};
    w.g = g, w.a = g ? g->a : NULL, w.shape = shape, w.q = q, w.k = k, w.v = v, w.dy = dy;
    return room_of(&w, check_backward(&w));
}

extern "C" mpsim_status mpsim_cuda_attention_backward(const mpsim_attention_gradient *g,
                                                      const mpsim_attention_shape *shape, const mpsim_matrix *q,
                                                      const mpsim_matrix *k, const mpsim_matrix *v,
                                                      const mpsim_matrix *dy, const float *y, const float *lse,
                                                      float *dq, float *dk, float *dv, const mpsim_cuda_call *call)
{
    using namespace library;
    attention::work of = {}, *const w = &of;
    w->g = g, w->a = g ? g->a : NULL, w->shape = shape, w->q = q, w->k = k, w->v = v, w->dy = dy, w->call = call;
    const mpsim_status checked = attention::check_backward(w);
    mpsim_status s = attention::begin(w, checked, checked || !shape->queries || (y && lse));
    if (s)
        return s;
    using attention::blocks_over;
    const size_t n = shape->queries, dim = shape->dim, of_q = n * dim, of_k = shape->keys * dim;
    if (n == 0)
        return MPSIM_OK;
    w->max = const_cast<float *>(lse);
    if (dq)
        ATTENTION_EACH(of_q, attention_fill_kernel, dq, of_q, 0.0f);
    if (dk)
        ATTENTION_EACH(of_k, attention_fill_kernel, dk, of_k, 0.0f);
    if (dv)
        ATTENTION_EACH(shape->keys * shape->size, attention_fill_kernel, dv, shape->keys * shape->size, 0.0f);
    ATTENTION_ROWS(n, attention_dots_kernel, w->t, w->f_dy, w->d, dy->codes, dy->transposed ? 1 : dy->stride,
                   dy->transposed ? dy->stride : 1, y);
    s = attention::tiles(w, dq, dk, dv);
    if (s)
        return s;
    if (g->scale_last && dq)
        ATTENTION_EACH(of_q, attention_scale_kernel, dq, of_q, w->t.scale);
    if (g->scale_last && dk)
        ATTENTION_EACH(of_k, attention_scale_kernel, dk, of_k, w->t.scale);
    return launched(call, attention::NAME);
}
