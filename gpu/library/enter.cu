/* enter.cu -- mpsim_cuda_enter; see mpsim/cudaenter.h. */
#include "../include/mpsim/cudaenter.h"

#include "recipes.cuh"

namespace library
{

/* What enters, and where what is made of it lies. */
struct entering {
    const mpsim_entering *how;
    const mpsim_format *format;     /* rounded to                                */
    const mpsim_format *multiplied; /* of the codes                              */
    int rounds, stays;              /* 0: they are such numbers; 1: nothing is written */
    gpu_stack x;
    mpsim_outer outer;
    size_t n;
    gpu_recipe recipe;
    /* memory */
    unsigned char *codes;
    float *factors, *inverse, *values;
    gpu_results to;
};

static int enters_as_codes(const mpsim_entering *how)
{
    return how->use != MPSIM_BLOCKS_AS_NUMBERS && (gpu_in_one_block(how->recipe) || how->use != MPSIM_BLOCKS_AS_VALUES);
}

static mpsim_status check_recipe(const mpsim_entering *how)
{
    const mpsim_block_recipe *b = how->recipe;
    if (mpsim_block_check(b) != MPSIM_OK || how->use > MPSIM_BLOCKS_AS_NUMBERS)
        return MPSIM_EINVAL;
    if (how->use == MPSIM_BLOCKS_SCALED && !gpu_in_one_block(b) && !mpsim_block_scale_format(b))
        return MPSIM_EINVAL;
    if (mpsim_scale_rule_at(b->rule)->takes_given && !(how->given >= 0))
        return MPSIM_EINVAL;
    return MPSIM_OK;
}

static mpsim_status check_entering(const mpsim_stack *x, const mpsim_entering *how)
{
    if (!how || !mpsim_is_stack(x, 0) || how->mode >= MPSIM_ROUND_STOCHASTIC_A ||
        (how->format && mpsim_format_check(how->format) != MPSIM_OK))
        return MPSIM_EINVAL;
    const uint32_t h = how->hadamard;
    if (h && h != 16 && h != 32 && h != 64 && h != 128)
        return MPSIM_EINVAL;
    return how->recipe ? check_recipe(how) : MPSIM_OK;
}

static const mpsim_format *multiplied_of(const mpsim_entering *how, const mpsim_format *rounded)
{
    if (!how->recipe)
        return rounded;
    if (enters_as_codes(how))
        return mpsim_format_find(how->recipe->element);
    return mpsim_format_find(how->use == MPSIM_BLOCKS_AS_NUMBERS ? "binary32" : "bf16");
}

static mpsim_outer collapsed(const mpsim_stack *x)
{
    mpsim_outer o = mpsim_outer_of(x);
    for (uint32_t i = 0; i < o.rank; i++)
        if (x->strides[i] == 0 && x->shape[i])
            o.shape[i] = 1;
    return o;
}

/* Whether the recipe, or the transform, is given values of their own. */
static int has_values(const entering &e)
{
    return e.how->hadamard || (e.how->recipe && e.rounds);
}

/* All but memory. */
static void begin(entering *e, const mpsim_stack *x, const mpsim_entering *how, float *amax, mpsim_entered *counts)
{
    memset(static_cast<void *>(e), 0, sizeof *e);
    e->how = how;
    e->format = how->format ? how->format : x->format;
    e->rounds = !mpsim_format_same(e->format, x->format);
    e->multiplied = multiplied_of(how, e->format);
    e->outer = collapsed(x);
    e->x = stack_of(x, &e->outer);
    e->n = e->x.lines * e->x.cols;
    e->to.counts = reinterpret_cast<gpu_word *>(counts);
    e->to.most = reinterpret_cast<int *>(amax);
    e->stays = !how->recipe && !how->hadamard && !e->rounds;
    if (how->recipe)
        e->recipe = gpu_recipe_of(how->recipe, e->x.lines, e->x.rows, e->x.cols, how->given, &how->rng);
}

static size_t place(entering *e, void *memory)
{
    room r(memory);
    const mpsim_block_recipe *b = e->how->recipe;
    if (e->stays)
        return 0;
    e->codes = r.take<unsigned char>(e->n * mpsim_format_code_bytes(e->multiplied));
    if (b && !gpu_in_one_block(b) && enters_as_codes(e->how))
        e->factors = r.take<float>(e->recipe.blocks);
    if (b)
        e->inverse = r.take<float>(1);
    if (b)
        scratch_of(&r, e->recipe, &e->to);
    if (has_values(*e))
        e->values = r.take<float>(e->n);
    return r.used;
}

/* The operand, as `fill` of lib/dot/enter.c has it. */
static void fill(mpsim_cuda_operand *o, const entering &e, const mpsim_stack *x)
{
    const mpsim_block_recipe *b = e.how->recipe;
    int64_t step = int64_t(e.x.rows * e.x.cols);
    mpsim_operand *of = &o->of;
    memset(static_cast<void *>(o), 0, sizeof *o);
    of->stack = *x;
    of->stack.format = of->format = e.multiplied;
    of->inverse = 1;
    if (e.stays)
        return;
    of->stack.codes = e.codes;
    of->stack.strides[x->rank - 1] = 1;
    of->stack.strides[x->rank - 2] = int64_t(e.x.cols);
    for (uint32_t i = e.outer.rank; i-- > 0; step *= int64_t(e.outer.shape[i]))
        of->stack.strides[i] = e.outer.shape[i] == 1 ? 0 : step;
    if (e.factors && e.recipe.blocks) {
        of->factors = e.factors;
        of->block_rows = b->block_rows ? b->block_rows : e.x.rows;
        of->block_cols = b->block_cols ? b->block_cols : e.x.cols;
        of->grid_rows = e.recipe.grid_rows;
        of->grid_cols = e.recipe.grid_cols;
        of->scales = e.how->use == MPSIM_BLOCKS_SCALED ? mpsim_block_scale_format(b) : NULL;
    }
    if (e.n && b && enters_as_codes(e.how) &&
        (gpu_in_one_block(b) || (e.recipe.has_tensor && e.how->use == MPSIM_BLOCKS_SCALED)))
        o->inverse = e.inverse;
}

static void set_rounding(mpsim_rounding *r, const mpsim_entering *how)
{
    mpsim_rounding_init(r, mpsim_round_mode(how->mode));
}

static gpu_reading reading_of(const entering &e, const gpu_stack &from)
{
    gpu_reading r;
    memset(&r, 0, sizeof r);
    r.from = from;
    r.to = *e.format;
    r.rounds = e.rounds;
    r.bytes = int(mpsim_format_code_bytes(e.format));
    set_rounding(&r.rounding, e.how);
    r.values = e.values;
    r.codes = e.values ? NULL : e.codes;
    r.counts = e.how->recipe ? NULL : e.to.counts;
    r.most = e.how->recipe || e.how->hadamard ? NULL : e.to.most;
    return r;
}

static void launch_hadamard(const entering &e, cudaStream_t stream)
{
    static const uint32_t norms[] = {0x3e800000u, 0x3e3504f3u, 0x3e000000u,
                                     0x3db504f3u}; /* nearest to 1 / sqrt(size) */
    const unsigned size = e.how->hadamard;
    gpu_hadamard h;
    memset(&h, 0, sizeof h);
    h.values = e.values;
    h.lines = e.x.lines;
    h.cols = e.x.cols;
    h.size = size;
    for (unsigned i = 0; i < size; i++)
        h.signs[i / 32] |= (size == 16 ? 0xd7e8u >> i & 1 : mpsim_rng_word(0, 0, i) & 1) << i % 32;
    for (unsigned k = 0; k < 4; k++)
        if (size == 16u << k)
            memcpy(&h.norm, &norms[k], sizeof h.norm);
    h.to = *e.format;
    h.rounds = !mpsim_is_f32(e.format);
    set_rounding(&h.rounding, e.how);
    const size_t groups = e.x.lines * (e.x.cols / size);
    if (groups)
        GPU_LAUNCH_ON(stream, hadamard_groups_kernel, blocks_for(32 * groups), THREADS, 0, h, groups);
}

/* Numbers that no recipe takes. */
static void launch_numbers(const entering &e, cudaStream_t stream)
{
    gpu_reading r = reading_of(e, e.x);
    if (!e.stays || e.to.most || e.to.counts)
        GPU_LAUNCH_ON(stream, read_kernel, blocks_for(e.n), THREADS, 0, r, e.n);
    if (!e.values)
        return;
    launch_hadamard(e, stream);
    r.codes = e.codes;
    GPU_LAUNCH_ON(stream, write_kernel, blocks_for(e.n), THREADS, 0, r, (const float *)e.values, e.to.most, e.n);
}

static void launch_with_recipe(entering *e, cudaStream_t stream)
{
    const int as_codes = enters_as_codes(e->how), scaled = as_codes && e->how->use == MPSIM_BLOCKS_SCALED;
    gpu_stack from = e->x;
    if (e->values) {
        const gpu_reading r = reading_of(*e, e->x);
        GPU_LAUNCH_ON(stream, read_kernel, blocks_for(e->n), THREADS, 0, r, e->n);
        from = values_of(e->x, e->values);
    }
    if (e->how->hadamard)
        launch_hadamard(*e, stream);
    e->to.codes = as_codes ? e->codes : NULL;
    e->to.halves = !as_codes && e->how->use != MPSIM_BLOCKS_AS_NUMBERS ? reinterpret_cast<uint16_t *>(e->codes) : NULL;
    e->to.values = e->how->use == MPSIM_BLOCKS_AS_NUMBERS ? reinterpret_cast<float *>(e->codes) : NULL;
    e->to.factors = e->factors;
    e->to.factors_are_codes = scaled;
    if (gpu_in_one_block(e->how->recipe))
        e->to.inverses = e->inverse;
    else
        e->to.tensor_scale = e->inverse;
    launch_recipe(from, e->recipe, e->to, gpu_in_one_block(e->how->recipe), stream);
}

} // namespace library

using namespace library;

extern "C" size_t mpsim_cuda_enter_room(const mpsim_stack *x, const mpsim_entering *how)
{
    entering e;
    if (check_entering(x, how) != MPSIM_OK)
        return 0;
    begin(&e, x, how, NULL, NULL);
    return place(&e, NULL);
}

extern "C" mpsim_status mpsim_cuda_enter(mpsim_cuda_operand *o, const mpsim_stack *x, const mpsim_entering *how,
                                         float *amax, mpsim_entered *counts, const mpsim_cuda_call *call)
{
    entering e;
    if (!call)
        return MPSIM_EINVAL;
    if (!o || check_entering(x, how) != MPSIM_OK)
        return refuse(call, MPSIM_EINVAL, "enter: the stack, its formats or the recipe are inconsistent");
    begin(&e, x, how, amax, counts);
    if ((how->recipe || how->hadamard || amax || counts) && !is_within_binary32(e.format))
        return refuse(call, MPSIM_ERANGE, "enter: numbers of %s are not all numbers of binary32", e.format->name);
    const mpsim_status s = has_room(call, "enter", place(&e, NULL));
    if (s)
        return s;
    place(&e, call->room);
    if (e.n && how->recipe)
        launch_with_recipe(&e, stream_of(call));
    else if (e.n)
        launch_numbers(e, stream_of(call));
    fill(o, e, x);
    return launched(call, "enter");
}
