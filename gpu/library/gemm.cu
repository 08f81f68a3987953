/* gemm.cu -- mpsim_cuda_gemm: what is asked of a product, the choice of a kernel, launches; see mpsim/cudagemm.h. */
#include "../include/mpsim/cudagemm.h"

#include "call.cuh"
#include "chain.cuh"
#include "core.cuh"
#include "exact.h"
#include "fused.h"

namespace library
{

/* ---- a product that can be launched ---- */

struct planned {
    product_arguments p;
    core_product core;
    fused_product fused;
    chain_product chain;
    exact_product exact;
    int by_core, by_fused, by_chain, by_exact, sm;
};

static int is_f32(const mpsim_format *f)
{
    return f->bits == 32 && f->ebits == 8 && f->mbits == 23 && f->inf;
}

static int in_binary32(const mpsim_format *f)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL) == MPSIM_OK;
}

static strided strided_of(const mpsim_steps &s, int rank)
{
    strided x = {{0}, s.row, s.col};
    for (int k = 0; k < rank; k++)
        x.outer[k] = s.outer[k];
    return x;
}

static product_addend addend_of(const mpsim_stack *x, const mpsim_steps &s, int rank)
{
    product_addend a;
    memset(static_cast<void *>(&a), 0, sizeof a);
    if (!x)
        return a;
    a.format = *x->format;
    a.codes = static_cast<const unsigned char *>(x->codes);
    a.bytes = static_cast<int>(mpsim_format_code_bytes(x->format));
    a.at = strided_of(s, rank);
    return a;
}

static mpsim_status operand_of(product_operand *o, const mpsim_cuda_operand &from, const mpsim_outer &outer)
{
    const mpsim_operand &x = from.of;
    mpsim_steps steps;
    if (!mpsim_steps_in(&steps, &x.stack, &outer))
        return MPSIM_EINVAL;
    o->stored = *x.stack.format;
    o->multiplied = *x.format;
    mpsim_rounding_init(&o->rounding, static_cast<mpsim_round_mode>(x.mode));
    o->enters = !mpsim_format_same(x.format, x.stack.format);
    o->bytes = static_cast<int>(mpsim_format_code_bytes(x.stack.format));
    o->codes = static_cast<const unsigned char *>(x.stack.codes);
    o->at = strided_of(steps, static_cast<int>(outer.rank));
    o->factors = x.factors;
    o->block_rows = static_cast<int64_t>(x.block_rows);
    o->block_cols = static_cast<int64_t>(x.block_cols);
    o->grid_rows = static_cast<int64_t>(x.grid_rows);
    o->grid_cols = static_cast<int64_t>(x.grid_cols);
    o->matrix = static_cast<int64_t>(mpsim_stack_rows(&x.stack) * mpsim_stack_cols(&x.stack));
    if (x.scales)
        o->scales = *x.scales;
    o->inverse = from.inverse;
    o->own_inverse = x.inverse;
    return MPSIM_OK;
}

static product_shape shape_of(const mpsim_product_shape &s)
{
    product_shape x = {static_cast<int>(s.outer.rank), {0},
                       static_cast<int64_t>(s.rows),   static_cast<int64_t>(s.columns),
                       static_cast<int64_t>(s.depth),  static_cast<int64_t>(s.matrices)};
    for (uint32_t k = 0; k < s.outer.rank; k++)
        x.outer[k] = static_cast<int64_t>(s.outer.shape[k]);
    return x;
}

static void ending_of(product_ending *e, const mpsim_product &p, const mpsim_product_shape &s)
{
    const int rank = static_cast<int>(s.outer.rank);
    const mpsim_format *sums = &p.model->result.format;
    e->bias = addend_of(p.bias, s.bias, rank);
    e->add = addend_of(p.add, s.add, rank);
    e->numbers = *s.numbers;
    e->lies = *p.d->format;
    e->d = static_cast<unsigned char *>(p.d->codes);
    e->at = strided_of(s.d, rank);
    e->bytes = static_cast<int>(mpsim_format_code_bytes(p.d->format));
    e->wide = s.wide;
    e->narrow = in_binary32(s.numbers);
    e->same = mpsim_format_same(s.numbers, p.d->format);
    e->lies_f32 = is_f32(p.d->format);
    e->plain = is_f32(sums) && is_f32(s.numbers) && is_f32(p.d->format);
    e->direct = mpsim_format_same(sums, s.numbers) && e->same && !p.counts && p.factor == 1 && !p.bias && !p.add &&
                s.d.col == 1 && s.d.row >= static_cast<int64_t>(s.columns);
    e->factor = p.factor;
    e->add_factor = p.add_factor;
    e->counts = reinterpret_cast<unsigned long long *>(p.counts);
}

static int is_joined(const product_arguments &p, int k)
{
    const int64_t rows = p.shape.rows;
    const product_ending &e = p.end;
    return p.b.at.outer[k] == 0 && p.a.at.outer[k] == rows * p.a.at.row && e.at.outer[k] == rows * e.at.row &&
           (!e.bias.codes || e.bias.at.outer[k] == rows * e.bias.at.row) &&
           (!e.add.codes || e.add.at.outer[k] == rows * e.add.at.row) &&
           (!p.start.codes || p.start.at.outer[k] == rows * p.start.at.row);
}

/* Where b serves all matrices of the last dimension, and those of a and d lie below one another, they are one matrix. */
static void join(product_arguments *p)
{
    product_shape *s = &p->shape;
    while (s->matrices && s->rank && !p->a.factors && is_joined(*p, s->rank - 1)) {
        const int64_t n = s->outer[--s->rank];
        s->rows *= n;
        s->matrices /= n;
    }
}

static mpsim_status plan(planned *x, const mpsim_product *p, const mpsim_cuda_operand *a, const mpsim_cuda_operand *b)
{
    mpsim_product_shape s;
    memset(static_cast<void *>(x), 0, sizeof *x);
    if (!p || !a || !b)
        return MPSIM_EINVAL;
    mpsim_product whole = *p;
    whole.a = &a->of;
    whole.b = &b->of;
    mpsim_status status = mpsim_product_shape_of(&s, &whole);
    if (!status)
        status = operand_of(&x->p.a, *a, s.outer);
    if (!status)
        status = operand_of(&x->p.b, *b, s.outer);
    if (status)
        return status;
    x->p.model = *p->model;
    x->p.shape = shape_of(s);
    x->p.start = addend_of(p->start, s.start, static_cast<int>(s.outer.rank));
    ending_of(&x->p.end, *p, s);
    if (p->rng) {
        x->p.seed = p->rng->seed;
        x->p.stream = p->rng->stream;
        x->p.index = p->rng->index;
    }
    join(&x->p);
    x->sm = capability();
    x->by_core = core_of(&x->core, x->p, x->sm);
    x->by_fused = !x->by_core && fused_of(&x->fused, x->p);
    x->by_chain = !x->by_core && !x->by_fused && chain_of(&x->chain, x->p);
    x->by_exact = !x->by_core && exact_of(&x->exact, x->p);
    return MPSIM_OK;
}

/* ---- the workspace ---- */

struct places {
    unsigned char *a, *b; /* codes that have entered, or NULL */
    float *sums;          /* or NULL */
    unsigned char *left;  /* results that tiles leave to the reference, or NULL */
    fused_places fused;
    size_t bytes;
};

static places places_in(void *room_of_call, const planned &x)
{
    const product_shape &s = x.p.shape;
    room r(room_of_call);
    places at;
    memset(static_cast<void *>(&at), 0, sizeof at);
    if (x.p.a.enters)
        at.a = r.take<unsigned char>(static_cast<size_t>(s.matrices * s.rows * s.depth) *
                                     mpsim_format_code_bytes(&x.p.a.multiplied));
    if (x.p.b.enters)
        at.b = r.take<unsigned char>(static_cast<size_t>(s.matrices * s.columns * s.depth) *
                                     mpsim_format_code_bytes(&x.p.b.multiplied));
    if (x.by_core && x.core.to_sums)
        at.sums = r.take<float>(static_cast<size_t>(s.matrices * s.rows * s.columns));
    if (x.by_chain || x.by_exact)
        at.left = r.take<unsigned char>(static_cast<size_t>(s.matrices * s.rows * s.columns));
    if (x.by_fused) {
        size_t more = 0;
        (void)fused_in(nullptr, &more, x.fused, x.p);
        at.fused = fused_in(r.take<unsigned char>(more), &more, x.fused, x.p);
    }
    at.bytes = r.used;
    return at;
}

/* ---- launches ---- */

static unsigned blocks_for(int64_t threads, int each)
{
    const int64_t n = (threads + each - 1) / each;
    return static_cast<unsigned>(n < 1 << 20 ? n : 1 << 20);
}

static void enter(const product_operand &o, const product_shape &s, int64_t lines, unsigned char *to, cudaStream_t on)
{
    const int64_t n = s.matrices * lines * s.depth;
    if (to && n)
        GPU_LAUNCH_ON(on, enter_kernel, blocks_for(n, 256), 256, 0, o, s, lines, to);
}

typedef void walk_function(GPU_CONSTANT_TYPE(product_arguments) p, const unsigned char *a, const unsigned char *b,
                           walk_filter only);

static void launch_walk(const planned &x, const places &at, cudaStream_t on)
{
    static walk_function *const kernels[WALK_KINDS] = {walk_kernel<WALK_CHAINS>, walk_kernel<WALK_TREES>,
                                                       walk_kernel<WALK_EXACT>, walk_kernel<WALK_ADDITIONS>};
    const product_shape &s = x.p.shape;
    const fused_places &f = at.fused;
    const walk_filter only = {at.left, f.any, f.a.special, f.b.special, x.fused.rows, x.fused.columns};
    const unsigned blocks = blocks_for(s.matrices * s.rows * s.columns, WALK_THREADS);
    GPU_LAUNCH_ON(on, kernels[walk_kind_of(&x.p.model)], at.left && blocks > 1 << 13 ? 1 << 13 : blocks, WALK_THREADS,
                  0, x.p, at.a, at.b, only);
}

static mpsim_status launch_all(const planned &x, const places &at, const mpsim_cuda_call *call)
{
    const product_shape &s = x.p.shape;
    const cudaStream_t on = stream_of(call);
    char why[128] = "";
    enter(x.p.a, s, s.rows, at.a, on);
    enter(x.p.b, s, s.columns, at.b, on);
    if (x.by_fused)
        fused_launch(x.fused, x.p, at.fused, at.a, at.b, on);
    if (x.by_chain)
        launch_chain(x.chain, x.p, at.a, at.b, at.left, on);
    if (x.by_exact)
        exact_launch(x.exact, x.p, at.a, at.b, at.left, on);
    if (!x.by_core) /* behind other kernels what these leave */
        launch_walk(x, at, on);
    else if (launch_core(x.core, x.p, mpsim_format_find("binary32"), at.a, at.b, at.sums, x.sm, on, why, sizeof why))
        return refuse(call, MPSIM_EIO, "mpsim_cuda_gemm: %s", why);
    if (at.sums && x.p.a.factors)
        GPU_LAUNCH_ON(on, settle_kernel, blocks_for(s.matrices * s.rows * s.columns, WALK_THREADS), WALK_THREADS, 0,
                      x.p, at.a, at.b, at.sums);
    if (at.sums)
        GPU_LAUNCH_ON(on, finish_kernel, blocks_for(s.matrices * s.rows * s.columns, 256), 256, 0, x.p, at.sums);
    return launched(call, "mpsim_cuda_gemm");
}

static int is_empty(const product_shape &s)
{
    return s.matrices == 0 || s.rows == 0 || s.columns == 0;
}

} // namespace library

extern "C" size_t mpsim_cuda_gemm_room(const mpsim_product *p, const mpsim_cuda_operand *a, const mpsim_cuda_operand *b)
{
    library::planned x;
    return library::plan(&x, p, a, b) || library::is_empty(x.p.shape) ? 0 : library::places_in(nullptr, x).bytes;
}

extern "C" const char *mpsim_cuda_gemm_kernel(const mpsim_product *p, const mpsim_cuda_operand *a,
                                              const mpsim_cuda_operand *b)
{
    library::planned x;
    return library::plan(&x, p, a, b) ? NULL
           : x.by_core                ? "tensor cores"
           : x.by_fused || x.by_exact ? "binary64"
           : x.by_chain               ? "binary32"
                                      : "one thread a result";
}

extern "C" mpsim_status mpsim_cuda_gemm(const mpsim_product *p, const mpsim_cuda_operand *a,
                                        const mpsim_cuda_operand *b, const mpsim_cuda_call *call)
{
    using namespace library;
    planned x;
    if (!call)
        return MPSIM_EINVAL;
    mpsim_status s = plan(&x, p, a, b);
    if (s)
        return refuse(call, s, "mpsim_cuda_gemm: %s",
                      s == MPSIM_ERANGE ? "the model or d cannot take a format"
                                        : "shapes, strides, formats or factors do not fit together");
    if (is_empty(x.p.shape))
        return MPSIM_OK;
    const places at = places_in(call->room, x);
    s = has_room(call, "mpsim_cuda_gemm", at.bytes);
    if (s)
        return s;
    return launch_all(x, at, call);
}
