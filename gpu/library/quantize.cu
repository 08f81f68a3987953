/* quantize.cu -- mpsim_cuda_quantize; see mpsim/cudaquantize.h. */
#include "../include/mpsim/cudaquantize.h"

#include "recipes.cuh"

namespace library
{

static gpu_recipe matrix_recipe(const mpsim_block_recipe *b, size_t rows, size_t cols, const mpsim_rng *rng)
{
    const mpsim_rng none = {0, 0, 0};
    return gpu_recipe_of(b, rows, rows, cols, 1, rng ? rng : &none);
}

static mpsim_status check_quantize(const mpsim_block_recipe *b, const mpsim_stack *x, const float *given,
                                   const mpsim_rng *rng, const mpsim_cuda_blocks *out, const mpsim_cuda_call *call)
{
    if (!call)
        return MPSIM_EINVAL;
    if (mpsim_block_check(b) != MPSIM_OK)
        return refuse(call, MPSIM_EINVAL, "quantize: the recipe is invalid");
    if (!out || !mpsim_is_stack(x, 0))
        return refuse(call, MPSIM_EINVAL, "quantize: expected a stack of numbers and a place for results");
    if (!is_within_binary32(x->format))
        return refuse(call, MPSIM_ERANGE, "quantize: numbers of %s are not all numbers of binary32", x->format->name);
    if (mpsim_is_stochastic(b->element_mode) && !rng)
        return refuse(call, MPSIM_EINVAL, "quantize: recipe %s needs random bits", b->name);
    if (mpsim_scale_rule_at(b->rule)->takes_given && !given)
        return refuse(call, MPSIM_EINVAL, "quantize: recipe %s needs a given scale", b->name);
    return MPSIM_OK;
}

} // namespace library

using namespace library;

extern "C" size_t mpsim_cuda_quantize_room(const mpsim_block_recipe *b, size_t rows, size_t cols)
{
    if (mpsim_block_check(b) != MPSIM_OK)
        return 0;
    room r(NULL);
    gpu_results to;
    scratch_of(&r, matrix_recipe(b, rows, cols, NULL), &to);
    return r.used;
}

extern "C" mpsim_status mpsim_cuda_quantize(const mpsim_block_recipe *b, const mpsim_stack *x, const float *given,
                                            const mpsim_rng *rng, const mpsim_cuda_blocks *out,
                                            const mpsim_cuda_call *call)
{
    mpsim_status s = check_quantize(b, x, given, rng, out, call);
    if (s)
        return s;
    const mpsim_outer outer = mpsim_outer_of(x);
    const gpu_stack of = stack_of(x, &outer);
    const size_t rows = mpsim_outer_count(&outer) * of.rows;
    gpu_recipe q = matrix_recipe(b, rows, of.cols, rng);
    gpu_results to;
    memset(&to, 0, sizeof to);
    s = has_room(call, "quantize", mpsim_cuda_quantize_room(b, rows, of.cols));
    if (s)
        return s;
    room r(call->room);
    scratch_of(&r, q, &to);
    q.given = mpsim_scale_rule_at(b->rule)->takes_given ? given : NULL;
    to.codes = out->codes;
    to.values = out->values;
    to.scale_codes = out->scale_codes;
    to.scales = out->scales;
    to.inverses = out->inverses;
    to.amax = out->amax;
    to.tensor_amax = out->tensor_amax;
    to.tensor_scale = out->tensor_scale;
    to.counts = reinterpret_cast<gpu_word *>(out->counts);
    launch_recipe(of, q, to, gpu_in_one_block(b), stream_of(call));
    return launched(call, "quantize");
}
