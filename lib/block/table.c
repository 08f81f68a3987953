/* table.c -- the table of recipes of scaled quantisation, and what a valid recipe is. */
#include <mpsim/block.h>

#include "../base/words.h"
#include "../round/scalar.h"
#include "scale.h"

#include <float.h>
#include <math.h>

#define TE "TransformerEngine @d0067d0d, "
#define AO "torchao @36027d82, "
#define DS "DeepSeek-V3 @06231633, inference/kernel.py "
#define DG "DeepGEMM @38939a4c, "
#define OCP AO "to_mx FLOOR: the rule of OCP MX 1.0, 6.3"
#define MX(n, e, r, s)                                                                             \
    {                                                                                              \
        .name = (n), .element = (e), .rule = (r), .block_rows = 1, .block_cols = 32, .source = (s) \
    }
#define DEEP(n, r, h, eps, s)                                                                                     \
    {                                                                                                             \
        .name = (n), .element = "e4m3", .rule = (r), .block_rows = (h), .block_cols = 128, .amax_epsilon = (eps), \
        .source = (s)                                                                                             \
    }
#define MICROX(n, e)                                                                                            \
    {                                                                                                           \
        .name = (n), .element = (e), .rule = MPSIM_SCALE_E8M0_MICROX, .element_mode = MPSIM_ROUND_NEAREST_AWAY, \
        .block_rows = 1, .block_cols = 32, .source = "microxcaling @7bc41952, round \"nearest\""                \
    }
#define AMAX_TE(n, e, r, c, p, s)                                                                         \
    {                                                                                                     \
        .name = (n), .element = (e), .rule = MPSIM_SCALE_AMAX_TE, .power_of_two = (p), .block_rows = (r), \
        .block_cols = (c), .scale_for_inf = (double)FLT_MAX, .source = (s)                                \
    }
#define FLOAT8(n, e, r, p, s)                                                                                  \
    {                                                                                                          \
        .name = (n), .element = (e), .rule = MPSIM_SCALE_AMAX_TORCHAO, .power_of_two = (p), .block_rows = (r), \
        .amax_epsilon = 1e-12, .source = (s)                                                                   \
    }
#define NVFP4(n, r, h, ...)                                                                           \
    {                                                                                                 \
        .name = (n), .element = "e2m1", .rule = (r), .block_rows = (h), .block_cols = 16, __VA_ARGS__ \
    }

static const mpsim_block_recipe recipes[] = {
    AMAX_TE("te-current", "e4m3", 0, 0, 0, TE "Float8CurrentScaling, forward"),
    AMAX_TE("te-current-e5m2", "e5m2", 0, 0, 0, TE "Float8CurrentScaling, gradients"),
    AMAX_TE("te-current-pow2", "e4m3", 0, 0, 1, TE "Float8CurrentScaling, NVTE_FP8_CURRENT_SCALING_POWER_2_SCALES=1"),
    AMAX_TE("te-block-1x128", "e4m3", 1, 128, 1, TE "Float8BlockScaling, activations, gradients"),
    AMAX_TE("te-block-1x128-e5m2", "e5m2", 1, 128, 1, TE "Float8BlockScaling, gradients of its hybrid form"),
    AMAX_TE("te-block-128x128", "e4m3", 128, 128, 1, TE "Float8BlockScaling, weights"),
    MX("mxfp8", "e4m3", MPSIM_SCALE_E8M0_TE, TE "MXFP8BlockScaling"),
    MX("mxfp8-e5m2", "e5m2", MPSIM_SCALE_E8M0_TE, TE "MXFP8BlockScaling"),
    MX("mxfp8-floor", "e4m3", MPSIM_SCALE_E8M0_FLOOR, OCP),
    MX("mxfp8-even", "e4m3", MPSIM_SCALE_E8M0_EVEN, AO "to_mx EVEN"),
    MX("mxfp8-ceil", "e4m3", MPSIM_SCALE_E8M0_CEIL, AO "to_mx CEIL"),
    MX("mxfp8-rceil", "e4m3", MPSIM_SCALE_E8M0_RCEIL, AO "to_mx RCEIL"),
    MX("mxfp6-e3m2", "e3m2", MPSIM_SCALE_E8M0_FLOOR, OCP),
    MX("mxfp6-e2m3", "e2m3", MPSIM_SCALE_E8M0_FLOOR, OCP),
    MX("mxfp4", "e2m1", MPSIM_SCALE_E8M0_FLOOR, OCP),
    NVFP4("nvfp4", MPSIM_SCALE_NVFP4_TE, 1, .source = TE "NVFP4BlockScaling, 1 x 16"),
    NVFP4("nvfp4-2d", MPSIM_SCALE_NVFP4_TE, 16, .source = TE "NVFP4BlockScaling, weights"),
    NVFP4("nvfp4-sr", MPSIM_SCALE_NVFP4_TE, 1, .element_mode = MPSIM_ROUND_STOCHASTIC_A, .sr_bits = 8,
          .source = TE "NVFP4BlockScaling, gradients, without the transform"),
    NVFP4("nvfp4-torchao", MPSIM_SCALE_NVFP4_TORCHAO, 1, .source = AO "nvfp4_quantize"),
    MICROX("microx-e4m3", "e4m3"),
    MICROX("microx-e5m2", "e5m2"),
    MICROX("microx-e3m2", "e3m2"),
    MICROX("microx-e2m3", "e2m3"),
    MICROX("microx-e2m1", "e2m1"),
    FLOAT8("torchao-tensorwise", "e4m3", 0, 0, AO "float8 \"tensorwise\", inputs and weights"),
    FLOAT8("torchao-tensorwise-e5m2", "e5m2", 0, 0, AO "float8 \"tensorwise\", gradients"),
    FLOAT8("torchao-rowwise", "e4m3", 1, 1, AO "float8 \"rowwise\""),
    {.name = "ms-amp", .element = "e4m3", .rule = MPSIM_SCALE_MSAMP, .source = "MS-AMP @9746ea85, ScalingMeta"},
    MX("torchao-0.18-floor", "e4m3", MPSIM_SCALE_TORCHAO_018_FLOOR, "torchao 0.18, to_mx FLOOR"),
    MX("torchao-0.18-even", "e4m3", MPSIM_SCALE_TORCHAO_018_EVEN, "torchao 0.18, to_mx EVEN"),
    MX("torchao-0.18-ceil", "e4m3", MPSIM_SCALE_TORCHAO_018_CEIL, "torchao 0.18, to_mx CEIL"),
    MX("torchao-0.18-rceil", "e4m3", MPSIM_SCALE_TORCHAO_018_RCEIL, "torchao 0.18, to_mx RCEIL"),
    NVFP4("nvfp4-1level", MPSIM_SCALE_NVFP4_1LEVEL, 1,
          .source = "torchao 0.18, nvfp4_quantize without per_tensor_scale"),
    DEEP("deepseek-1x128", MPSIM_SCALE_AMAX_DEEPSEEK, 1, 0, DS "act_quant"),
    DEEP("deepseek-128x128", MPSIM_SCALE_AMAX_DEEPSEEK, 128, 0, DS "act_quant, blocks of weight_dequant"),
    DEEP("deepgemm-1x128", MPSIM_SCALE_E8M0_DEEPGEMM, 1, 1e-4, DG "per_token_cast_to_fp8, ue8m0"),
    DEEP("deepgemm-128x128", MPSIM_SCALE_E8M0_DEEPGEMM, 128, 1e-4, DG "per_block_cast_to_fp8, ue8m0"),
};

enum { RECIPES = sizeof recipes / sizeof recipes[0] };

size_t mpsim_block_count(void)
{
    return RECIPES;
}

const mpsim_block_recipe *mpsim_block_at(size_t i)
{
    return i < RECIPES ? &recipes[i] : NULL;
}

const mpsim_block_recipe *mpsim_block_find(const char *name)
{
    if (name)
        for (size_t i = 0; i < RECIPES; i++)
            if (mpsim_same_word(name, strlen(name), recipes[i].name))
                return &recipes[i];
    return NULL;
}

/* Elements have a sign, a significand field and at most 8 bits. */
static int element_fits(const mpsim_block_recipe *b, const mpsim_scale_rule_row *rule)
{
    if (!memchr(b->name, 0, sizeof b->name) || !memchr(b->element, 0, sizeof b->element))
        return 0;
    const mpsim_format *f = mpsim_format_find(b->element);
    if (!f || f->bits > 8 || f->mbits == 0 || !mpsim_has_sign(f))
        return 0;
    return !rule->fp4_only || strcmp(f->name, "e2m1") == 0;
}

/* AMAX_TE needs a number to stand for an infinite scale. */
static int numbers_fit(const mpsim_block_recipe *b)
{
    if (!(b->amax_epsilon >= 0 && b->amax_epsilon <= (double)FLT_MAX))
        return 0;
    if (b->rule == MPSIM_SCALE_AMAX_TE && !(b->scale_for_inf > 0 && b->scale_for_inf <= (double)FLT_MAX))
        return 0;
    return fabs(b->margin) <= 126 && floor(b->margin) == b->margin;
}

mpsim_status mpsim_block_check(const mpsim_block_recipe *b)
{
    const mpsim_scale_rule_row *rule = b ? mpsim_scale_rule_at(b->rule) : NULL;
    if (!rule || !element_fits(b, rule) || !numbers_fit(b))
        return MPSIM_EINVAL;
    if (b->power_of_two > 1 || b->element_mode >= MPSIM_ROUND_MODES)
        return MPSIM_EINVAL;
    if (!mpsim_is_stochastic(b->element_mode))
        return MPSIM_OK;
    if (b->rule == MPSIM_SCALE_NVFP4_TE)
        return b->sr_bits == 8 ? MPSIM_OK : MPSIM_EINVAL;
    return b->sr_bits >= 1 && b->sr_bits <= 32 ? MPSIM_OK : MPSIM_EINVAL;
}

const mpsim_format *mpsim_block_scale_format(const mpsim_block_recipe *b)
{
    switch (b->rule) {
    case MPSIM_SCALE_E8M0_FLOOR:
    case MPSIM_SCALE_E8M0_EVEN:
    case MPSIM_SCALE_E8M0_CEIL:
    case MPSIM_SCALE_E8M0_RCEIL:
    case MPSIM_SCALE_E8M0_TE:
    case MPSIM_SCALE_E8M0_MICROX:
    case MPSIM_SCALE_TORCHAO_018_FLOOR:
    case MPSIM_SCALE_TORCHAO_018_EVEN:
    case MPSIM_SCALE_TORCHAO_018_CEIL:
    case MPSIM_SCALE_TORCHAO_018_RCEIL:
        return mpsim_format_find("e8m0");
    case MPSIM_SCALE_NVFP4_TE:
    case MPSIM_SCALE_NVFP4_TORCHAO:
    case MPSIM_SCALE_NVFP4_1LEVEL:
        return mpsim_format_find("e4m3");
    default:
        return NULL;
    }
}
