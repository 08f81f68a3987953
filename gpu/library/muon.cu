/* muon.cu -- mpsim_cuda_muon: Newton and Schulz's iteration as products and what lies between them (kernels/muon.cuh). A matrix with more
 * rows than columns is multiplied as it lies, by strides. */
#include "../include/mpsim/cudamuon.h"

#include "../include/mpsim/cudagemm.h"
#include "../kernels/muon.cuh"
#include "call.cuh"

namespace library
{
namespace muon
{

static const char NAME[] = "mpsim_cuda_muon";

/* A matrix of floats on the device. */
struct matrix {
    float *x;
    size_t rows, cols;
    int64_t row, col; /* strides */
};

static matrix turned(const matrix &x)
{
    return {x.x, x.cols, x.rows, x.col, x.row};
}

struct iteration {
    gpu_muon k;
    mpsim_muon o; /* of this library's table */
    matrix x, a, b, small, large;
    unsigned char *products; /* workspace of products */
    size_t bytes;
};

static mpsim_stack stack_of(const matrix &x)
{
    mpsim_stack s;
    memset(&s, 0, sizeof s);
    s.format = mpsim_format_find("binary32");
    s.codes = x.x;
    s.rank = 2;
    s.shape[0] = x.rows;
    s.shape[1] = x.cols;
    s.strides[0] = x.row;
    s.strides[1] = x.col;
    return s;
}

/* d = the product of x and the rows of y. */
struct product {
    mpsim_cuda_operand a, b;
    mpsim_stack d;
    mpsim_product p;

    product(const mpsim_muon &o, const matrix &to, const matrix &x, const matrix &y) : d(stack_of(to))
    {
        const mpsim_stack left = stack_of(x), right = stack_of(y);
        a.inverse = b.inverse = NULL;
        mpsim_operand_init(&a.of, &left, &o.format, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_operand_init(&b.of, &right, &o.format, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_product_init(&p);
        p.model = &o.model;
        p.d = &d;
        p.numbers = &o.model.result.format;
    }
};

static mpsim_status multiply(const iteration &t, const matrix &to, const matrix &x, const matrix &y,
                             const mpsim_cuda_call *call)
{
    const product p(t.o, to, x, y);
    const mpsim_cuda_call own = {call->stream, t.products, t.bytes, call->why, call->why_size};
    return mpsim_cuda_gemm(&p.p, &p.a, &p.b, &own);
}

static size_t room_of(const iteration &t, const matrix &to, const matrix &x, const matrix &y)
{
    const product p(t.o, to, x, y);
    return mpsim_cuda_gemm_room(&p.p, &p.a, &p.b);
}

static unsigned blocks_over(size_t n)
{
    const size_t blocks = (n + GPU_MUON_THREADS - 1) / GPU_MUON_THREADS;
    return unsigned(blocks < (1u << 16) ? blocks : 1u << 16);
}

/* ---- arguments ---- */

static int is_stochastic(const mpsim_model &m)
{
    for (const mpsim_rounded *each : {&m.product, &m.accumulator, &m.outer, &m.result})
        if (each->rounding.mode >= MPSIM_ROUND_STOCHASTIC_A)
            return 1;
    return 0;
}

static mpsim_status check(iteration *t, const mpsim_muon *o, const mpsim_cuda_matrix *x, const mpsim_cuda_call *call)
{
    if (!o || !x || !o->variant)
        return refuse(call, MPSIM_EINVAL, "%s: no settings, no variant or no matrix is given", NAME);
    t->o = *o;
    t->o.variant = mpsim_optim_variant_find(o->variant->name); /* the caller's libmpsim has a table of its own */
    const mpsim_status s = mpsim_muon_check(&t->o);
    if (s)
        return refuse(call, s, "%s: the settings, the model or the formats of variant %s are not those of a step", NAME,
                      o->variant->name);
    if (o->products || is_stochastic(o->model))
        return refuse(call, MPSIM_EUNAVAILABLE, "%s: the device has no products of %s", NAME,
                      o->products ? "torch's own on a CPU" : "stochastic models");
    if (x->cols && x->rows > SIZE_MAX / sizeof(double) / x->cols)
        return refuse(call, MPSIM_EINVAL, "%s: the matrix is too large", NAME);
    if (x->rows && x->cols && (!x->param || !x->m || !x->grad))
        return refuse(call, MPSIM_EINVAL, "%s: param, m or grad is NULL", NAME);
    return MPSIM_OK;
}

static mpsim_status set(iteration *t, const mpsim_muon *o, const mpsim_cuda_matrix *x, const mpsim_cuda_call *call)
{
    memset(static_cast<void *>(t), 0, sizeof *t);
    const mpsim_status s = check(t, o, x, call);
    if (s)
        return s;
    gpu_muon &k = t->k;
    if (gpu_format_set(&k.param, &o->param) || gpu_format_set(&k.format, &o->format))
        return refuse(call, MPSIM_EUNAVAILABLE, "%s: the device has no numbers in a format of these settings", NAME);
    mpsim_muon_plan_of(&k.plan, &t->o, x->rows, x->cols);
    k.p = x->param;
    k.m = x->m;
    k.grad = x->grad;
    k.n = x->rows * x->cols;
    k.grad_scale = float(x->grad_scale);
    k.nesterov = o->nesterov;
    k.keller = o->form == MPSIM_MUON_KELLER;
    return MPSIM_OK;
}

/* Matrices in a workspace. With NULL only their bytes: products have places that are aligned as theirs will be. */
static size_t place(iteration *t, const mpsim_cuda_matrix *x, void *memory)
{
    room r(memory ? memory : reinterpret_cast<void *>(size_t(MPSIM_CUDA_ALIGNMENT)));
    const int tall = x->rows > x->cols;
    const size_t m = tall ? x->cols : x->rows, n = tall ? x->rows : x->cols;
    const int64_t row = tall ? 1 : int64_t(n), col = tall ? int64_t(m) : 1;
    t->k.squares = r.take<gpu_squares>(1);
    t->k.norm = r.take<float>(1);
    t->x = {r.take<float>(m * n), m, n, row, col};
    float *const results = r.take<float>(m * n); /* of all products */
    t->large = {results, m, n, row, col};
    t->small = {results, m, m, int64_t(m), 1};
    t->a = {r.take<float>(m * m), m, m, int64_t(m), 1};
    t->b = {r.take<float>(m * m), m, m, int64_t(m), 1};
    t->k.x = t->x.x;
    t->bytes = 0;
    for (size_t each : {room_of(*t, t->small, t->x, t->x), room_of(*t, t->small, t->b, turned(t->a)),
                        room_of(*t, t->large, t->b, turned(t->x))})
        t->bytes = each > t->bytes ? each : t->bytes;
    t->products = r.take<unsigned char>(t->bytes);
    return r.used;
}

/* ---- launches ---- */

static void normalise(const iteration &t, cudaStream_t on)
{
    gpu_pairs list;
    gpu_format binary32;
    memset(static_cast<void *>(&list), 0, sizeof list);
    (void)gpu_format_set(&binary32, mpsim_format_find("binary32"));
    list.n = 1;
    list.end[0] = gpu_list_blocks(t.k.n);
    list.item[0] = {NULL, t.k.x, t.k.n, t.k.squares};
    GPU_LAUNCH_ON(on, squares_kernel, list.end[0], GPU_LIST_THREADS, 0, binary32, list);
    GPU_LAUNCH_ON(on, muon_norm_kernel, 1, 1, 0, t.k);
    GPU_LAUNCH_ON(on, muon_divide_kernel, blocks_over(t.k.n), GPU_MUON_THREADS, 0, t.k);
}

static mpsim_status iterate(const iteration &t, const mpsim_cuda_call *call)
{
    const cudaStream_t on = stream_of(call);
    const mpsim_muon_plan &p = t.k.plan;
    const int keller = t.k.keller;
    const size_t small = t.a.rows * t.a.rows;
    mpsim_status s = multiply(t, t.small, t.x, t.x, call);
    if (s)
        return s;
    GPU_LAUNCH_ON(on, muon_hold_kernel, blocks_over(small), GPU_MUON_THREADS, 0, t.k.format, t.a.x,
                  keller ? t.b.x : nullptr, t.small.x, p.c, small);
    s = multiply(t, t.small, keller ? t.b : t.a, turned(t.a), call);
    if (s)
        return s;
    GPU_LAUNCH_ON(on, muon_combine_kernel, blocks_over(small), GPU_MUON_THREADS, 0, t.k.format, t.b.x, t.small.x, p.c,
                  t.a.x, p.b, keller, small);
    s = multiply(t, t.large, t.b, turned(t.x), call);
    if (s)
        return s;
    GPU_LAUNCH_ON(on, muon_combine_kernel, blocks_over(t.k.n), GPU_MUON_THREADS, 0, t.k.format, t.x.x, t.large.x, 1.0f,
                  t.x.x, p.a, keller, t.k.n);
    return MPSIM_OK;
}

} // namespace muon
} // namespace library

extern "C" size_t mpsim_cuda_muon_room(const mpsim_muon *o, const mpsim_cuda_matrix *t)
{
    using namespace library::muon;
    iteration x;
    return set(&x, o, t, NULL) || x.k.n == 0 ? 0 : place(&x, t, NULL);
}

extern "C" mpsim_status mpsim_cuda_muon(const mpsim_muon *o, const mpsim_cuda_matrix *t, const mpsim_cuda_call *call)
{
    using namespace library::muon;
    iteration x;
    if (!call)
        return MPSIM_EINVAL;
    mpsim_status s = set(&x, o, t, call);
    if (s || x.k.n == 0)
        return s;
    s = library::has_room(call, NAME, place(&x, t, NULL));
    if (s)
        return s;
    (void)place(&x, t, call->room);
    const cudaStream_t on = library::stream_of(call);
    GPU_LAUNCH_ON(on, muon_momentum_kernel, blocks_over(x.k.n), GPU_MUON_THREADS, 0, x.k);
    normalise(x, on);
    for (unsigned i = 0; i < o->steps && !s; i++)
        s = iterate(x, call);
    if (s)
        return s;
    GPU_LAUNCH_ON(on, muon_apply_kernel, blocks_over(x.k.n), GPU_MUON_THREADS, 0, x.k);
    return library::launched(call, NAME);
}
