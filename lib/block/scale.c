/* scale.c -- the table of scale rules; scalar.h has the rules themselves. */
#include "scale.h"

_Static_assert(FLT_EVAL_METHOD == 0, "scales need operations in their own type");

#define E8M0(how)                                            \
    {                                                        \
        .cast = (how), .scale_bytes = 1, .largest_code = 254 \
    }
#define BINARY32(...)                 \
    {                                 \
        .scale_bytes = 4, __VA_ARGS__ \
    }

static const mpsim_scale_rule_row rules[] = {
    [MPSIM_SCALE_E8M0_FLOOR] = E8M0(MPSIM_CAST_TORCH),
    [MPSIM_SCALE_E8M0_EVEN] = E8M0(MPSIM_CAST_TORCH),
    [MPSIM_SCALE_E8M0_CEIL] = E8M0(MPSIM_CAST_TORCH),
    [MPSIM_SCALE_E8M0_RCEIL] = E8M0(MPSIM_CAST_TORCH),
    [MPSIM_SCALE_E8M0_TE] = {.cast = MPSIM_CAST_CUDA, .drops_nan = 1, .scale_bytes = 1, .largest_code = 254},
    [MPSIM_SCALE_E8M0_MICROX] = E8M0(MPSIM_CAST_MICROX),
    [MPSIM_SCALE_AMAX_TE] = BINARY32(.drops_nan = 1),
    [MPSIM_SCALE_AMAX_TORCHAO] = BINARY32(.cast = MPSIM_CAST_TORCH, .dequantize = MPSIM_OVER_FACTOR),
    [MPSIM_SCALE_MSAMP] = BINARY32(.takes_given = 1),
    [MPSIM_SCALE_NVFP4_TE] = {.has_tensor = 1,
                              .cast = MPSIM_CAST_CUDA,
                              .drops_nan = 1,
                              .scale_bytes = 1,
                              .fp4_only = 1,
                              .least_code = 1,
                              .largest_code = 0x7e},
    [MPSIM_SCALE_NVFP4_TORCHAO] = {.has_tensor = 1,
                                   .cast = MPSIM_CAST_TORCH,
                                   .scale_bytes = 1,
                                   .fp4_only = 1,
                                   .least_code = 8,
                                   .largest_code = 0x7e},
    [MPSIM_SCALE_GIVEN] = BINARY32(.drops_nan = 1, .takes_given = 1),
    [MPSIM_SCALE_TORCHAO_018_FLOOR] = E8M0(MPSIM_CAST_TORCH),
    [MPSIM_SCALE_TORCHAO_018_EVEN] = E8M0(MPSIM_CAST_TORCH),
    [MPSIM_SCALE_TORCHAO_018_CEIL] = E8M0(MPSIM_CAST_TORCH),
    [MPSIM_SCALE_TORCHAO_018_RCEIL] = E8M0(MPSIM_CAST_TORCH),
    [MPSIM_SCALE_NVFP4_1LEVEL] =
        {.cast = MPSIM_CAST_TORCH, .scale_bytes = 1, .fp4_only = 1, .least_code = 8, .largest_code = 0x7e},
    [MPSIM_SCALE_AMAX_DEEPSEEK] = BINARY32(.drops_nan = 1, .divides = 1),
    [MPSIM_SCALE_E8M0_DEEPGEMM] = {.cast = MPSIM_CAST_TORCH, .scale_bytes = 1, .least_code = 1, .largest_code = 254},
};

const mpsim_scale_rule_row *mpsim_scale_rule_at(unsigned rule)
{
    return rule < sizeof rules / sizeof rules[0] ? &rules[rule] : NULL;
}

void mpsim_scale_env_set(mpsim_scale_env *env, const mpsim_block_recipe *b, const mpsim_format *f, float given)
{
    const mpsim_scale_env e = {.rule = b->rule,
                               .max = (float)mpsim_format_max(f),
                               .emax = (int)(f->max_finite >> f->mbits) - f->bias,
                               .mbits = f->mbits,
                               .given = given,
                               .epsilon = b->amax_epsilon,
                               .for_inf = (float)b->scale_for_inf,
                               .power_of_two = b->power_of_two,
                               .margin = (int)b->margin,
                               .encode = 1,
                               .decode = 1};
    *env = e;
}

void mpsim_element_rounding(mpsim_rounding *r, const mpsim_block_recipe *b)
{
    mpsim_rounding_init(r, (mpsim_round_mode)b->element_mode);
    r->sr_bits = b->sr_bits;
    r->overflow = MPSIM_OVERFLOW_MAX;
    r->infinity = MPSIM_INFINITY_MAX;
    r->nan = mpsim_scale_rule_at(b->rule)->cast == MPSIM_CAST_TORCH ? MPSIM_NANS_ONES_SIGNED : MPSIM_NANS_ONES;
}

uint32_t mpsim_below_half(const mpsim_format *f)
{
    return mpsim_bits_f32((float)mpsim_format_min_positive(f) / 2) - 1;
}
