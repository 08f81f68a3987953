/* table.c -- see table.h.
 *
 * Sources: accelerate PrecisionType; NeMo MegatronMixedPrecision @8cfedd72; Keras mixed_precision
 * @3422977a; Apex frontend.py @e13873de; ATen/autocast_mode.h; TransformerEngine
 * common/recipe/__init__.py @d0067d0d; torchao float8/config.py @36027d82. */
#include "table.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

/* ---- precision ---- */

#define FP32 "binary32"

static const precision_row precisions[] = {
    /* word, compute, params, grads, autocast, scaler, recipe, opt level, master */
    {"no", FP32, FP32, FP32, "none", "none", NULL, NULL, TRAIN_NO_MASTER},
    {"fp32", FP32, FP32, FP32, "none", "none", NULL, NULL, TRAIN_NO_MASTER},
    {"32", FP32, FP32, FP32, "none", "none", NULL, NULL, TRAIN_NO_MASTER},
    {"float32", FP32, FP32, FP32, "none", "none", NULL, NULL, TRAIN_NO_MASTER},
    {"fp16", "fp16", FP32, "fp16", "torch", "torch", NULL, NULL, TRAIN_NO_MASTER},
    {"float16", "fp16", FP32, "fp16", "torch", "torch", NULL, NULL, TRAIN_NO_MASTER},
    {"16-mixed", "fp16", FP32, "fp16", "torch", "torch", NULL, NULL, TRAIN_NO_MASTER},
    {"fp16-mixed", "fp16", FP32, "fp16", "torch", "torch", NULL, NULL, TRAIN_NO_MASTER}, /* NeMo's guide */
    {"mixed_float16", "fp16", FP32, "fp16", "norms-fp32", "keras", NULL, NULL, TRAIN_NO_MASTER},
    {"bf16", "bf16", FP32, "bf16", "torch", "none", NULL, NULL, TRAIN_NO_MASTER},
    {"bfloat16", "bf16", FP32, "bf16", "torch", "none", NULL, NULL, TRAIN_NO_MASTER},
    {"bf16-mixed", "bf16", FP32, "bf16", "torch", "none", NULL, NULL, TRAIN_NO_MASTER},
    {"mixed_bfloat16", "bf16", FP32, "bf16", "norms-fp32", "none", NULL, NULL, TRAIN_NO_MASTER},
    {"fp8", "bf16", FP32, "bf16", "torch", "none", "delayed", NULL, TRAIN_NO_MASTER},
    {"mxfp8", "bf16", FP32, "bf16", "torch", "none", "mxfp8", NULL, TRAIN_NO_MASTER},
    {"mxfp6", "bf16", FP32, "bf16", "torch", "none", "mxfp6", NULL, TRAIN_NO_MASTER},
    {"mxfp4", "bf16", FP32, "bf16", "torch", "none", "mxfp4", NULL, TRAIN_NO_MASTER},
    {"nvfp4", "bf16", FP32, "bf16", "torch", "none", "nvfp4", NULL, TRAIN_NO_MASTER},
    {NULL, FP32, FP32, FP32, "none", "static", NULL, "O0", TRAIN_NO_MASTER},
    {NULL, "fp16", FP32, "fp16", "torch", "apex", NULL, "O1", TRAIN_NO_MASTER},
    {NULL, "fp16", "fp16", "fp16", "batchnorm-fp32", "apex", NULL, "O2", TRAIN_MASTER},
    {NULL, "fp16", "fp16", "fp16", "all", "static", NULL, "O3", TRAIN_NO_MASTER},
};

enum { N_PRECISIONS = sizeof precisions / sizeof *precisions };

const precision_row *policy_precision_find(const char *word, int opt_level)
{
    for (size_t i = 0; i < N_PRECISIONS; i++) {
        const char *name = opt_level ? precisions[i].opt_level : precisions[i].word;
        if (name && strcasecmp(name, word) == 0)
            return &precisions[i];
    }
    return NULL;
}

const char *policy_precision_words(int opt_level)
{
    return opt_level ? "O0, O1, O2, O3"
                     : "no, fp32, fp16, bf16, fp8, mxfp8, mxfp6, mxfp4, nvfp4, 32, 16-mixed, "
                       "fp16-mixed, bf16-mixed, float32, float16, bfloat16, mixed_float16, mixed_bfloat16";
}

/* ---- autocast ---- */

enum {
    ACTS = 1 << TRAIN_ACT | 1 << TRAIN_OUT | 1 << TRAIN_AGRAD | 1 << TRAIN_DGRAD,
    ALL = ACTS | 1 << TRAIN_WEIGHT | 1 << TRAIN_WGRAD
};

/* In the order linear, conv, batchnorm, norm, softmax, embedding, loss, other. Batch norm is on
 * none of ATen's lists: it takes what comes, its parameters and their gradients stay in fp32. */
static const autocast_row autocasts[] = {
    /* nothing is cast */
    {"none", {0, 0, 0, 0, 0, 0, 0, 0}},
    /* every layer but the loss */
    {"all", {ALL, ALL, ALL, ALL, ALL, ALL, 0, ALL}},
    /* ATen's lists: matrix products in low precision */
    {"torch", {ALL, ALL, ACTS, 0, 0, 0, 0, ACTS}},
    /* every layer; the parameters of norms stay in fp32 (Keras: autocast=False) */
    {"norms-fp32", {ALL, ALL, ACTS, ACTS, ALL, ALL, 0, ALL}},
    /* every layer; the parameters of batch norm stay in fp32 (Apex O2 keep_batchnorm_fp32) */
    {"batchnorm-fp32", {ALL, ALL, ACTS, ALL, ALL, ALL, 0, ALL}},
    /* every layer; softmax and loss in fp32 */
    {"megatron", {ALL, ALL, ALL, ALL, 0, ALL, 0, ALL}},
};

const autocast_row *policy_autocast_find(const char *name)
{
    for (size_t i = 0; i < sizeof autocasts / sizeof *autocasts; i++)
        if (strcasecmp(autocasts[i].name, name) == 0)
            return &autocasts[i];
    return NULL;
}

/* ---- FP8 and other block recipes ---- */

/* Act, weight, agrad as e4m3, agrad as hybrid (E5M2); the default; delayed, hadamard, promote, columns. */
static const recipe_row recipes[] = {
    /* TransformerEngine DelayedScaling */
    {"delayed", "te-current", "te-current", "te-current", "te-current-e5m2", 0, 1, 0, 0, 0},
    /* TransformerEngine Float8CurrentScaling */
    {"current", "te-current", "te-current", "te-current", "te-current-e5m2", 0, 0, 0, 0, 0},
    /* the same, in NeMo's word */
    {"tensorwise", "te-current", "te-current", "te-current", "te-current-e5m2", 0, 0, 0, 0, 0},
    /* TransformerEngine Float8BlockScaling: what code and scale stand for is multiplied */
    {"blockwise", "te-block-1x128", "te-block-128x128", "te-block-1x128", "te-block-1x128-e5m2", 1, 0, 0, 0, 0},
    /* the same, multiplied as DeepSeek-V3 and DeepGEMM do: codes, sums moved every 128 */
    {"deepseek", "te-block-1x128", "te-block-128x128", "te-block-1x128", NULL, 1, 0, 0, 128, 0},
    /* with the binary32 scales of its act_quant; with the powers of two of DeepGEMM */
    {"deepseek:f32", "deepseek-1x128", "deepseek-128x128", "deepseek-1x128", NULL, 1, 0, 0, 128, 0},
    {"deepseek:ue8m0", "deepgemm-1x128", "deepgemm-128x128", "deepgemm-1x128", NULL, 1, 0, 0, 128, 0},
    /* TransformerEngine MXFP8BlockScaling, also by the rule's word; the other rules are torchao's */
    {"mxfp8", "mxfp8", "mxfp8", "mxfp8", "mxfp8-e5m2", 1, 0, 0, 0, 0},
    {"mxfp8:te", "mxfp8", "mxfp8", "mxfp8", "mxfp8-e5m2", 1, 0, 0, 0, 0},
    {"mxfp8:floor", "mxfp8-floor", "mxfp8-floor", "mxfp8-floor", NULL, 1, 0, 0, 0, 0},
    {"mxfp8:even", "mxfp8-even", "mxfp8-even", "mxfp8-even", NULL, 1, 0, 0, 0, 0},
    {"mxfp8:ceil", "mxfp8-ceil", "mxfp8-ceil", "mxfp8-ceil", NULL, 1, 0, 0, 0, 0},
    {"mxfp8:rceil", "mxfp8-rceil", "mxfp8-rceil", "mxfp8-rceil", NULL, 1, 0, 0, 0, 0},
    /* OCP MXFP6 */
    {"mxfp6", "mxfp6-e2m3", "mxfp6-e2m3", "mxfp6-e3m2", NULL, 1, 0, 0, 0, 0},
    /* OCP MXFP4 */
    {"mxfp4", "mxfp4", "mxfp4", "mxfp4", NULL, 1, 0, 0, 0, 0},
    /* TransformerEngine NVFP4BlockScaling */
    {"nvfp4", "nvfp4", "nvfp4-2d", "nvfp4-sr", NULL, 1, 0, 16, 0, 1},
    /* torchao's NVFP4 quantiser for all three, to nearest, in blocks of 16 along the depth */
    {"nvfp4:torchao", "nvfp4-torchao", "nvfp4-torchao", "nvfp4-torchao", NULL, 1, 0, 0, 0, 1},
    /* torchao float8 tensorwise */
    {"torchao-tensorwise", "torchao-tensorwise", "torchao-tensorwise", "torchao-tensorwise", "torchao-tensorwise-e5m2",
     0, 0, 0, 0, 0},
    /* torchao float8 rowwise */
    {"torchao-rowwise", "torchao-rowwise", "torchao-rowwise", "torchao-rowwise", NULL, 1, 0, 0, 0, 0},
    /* MS-AMP */
    {"ms-amp", "ms-amp", "ms-amp", "ms-amp", NULL, 1, 0, 0, 0, 0},
};

const char *policy_recipe_words(void)
{
    return "delayed, current, tensorwise, blockwise, deepseek, deepseek:f32, deepseek:ue8m0, mxfp8, mxfp8:te, "
           "mxfp8:floor, mxfp8:even, mxfp8:ceil, mxfp8:rceil, mxfp6, mxfp4, nvfp4, nvfp4:torchao, torchao-tensorwise, "
           "torchao-rowwise, ms-amp";
}

const recipe_row *policy_recipe_find(const char *name)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (strcasecmp(recipes[i].name, name) == 0)
            return &recipes[i];
    return NULL;
}

/* ---- layers ---- */

const char *const policy_layer_kind_words[] = {"linear",    "conv", "batchnorm", "norm", "softmax",
                                               "embedding", "loss", "other",     NULL};

const char *policy_layer_kind_name(layer_kind k)
{
    return policy_layer_kind_words[k];
}

int policy_layer_kind_find(layer_kind *k, const char *word)
{
    for (int i = 0; i < LAYER_KINDS; i++)
        if (strcasecmp(policy_layer_kind_words[i], word) == 0) {
            *k = (layer_kind)i;
            return 0;
        }
    return -1;
}

/* Names that modules usually have, matched with the last component of the layer's name. The first
 * row that fits counts. */
static const struct pattern {
    const char *glob;
    layer_kind kind;
} patterns[] = {
    {"*relu*", LAYER_OTHER},      {"*gelu*", LAYER_OTHER},
    {"*pool*", LAYER_OTHER},      {"*dropout*", LAYER_OTHER},
    {"bn", LAYER_BATCHNORM},      {"bn[0-9_]*", LAYER_BATCHNORM},
    {"*_bn", LAYER_BATCHNORM},    {"*batch*norm*", LAYER_BATCHNORM},
    {"*norm*", LAYER_NORM},       {"ln", LAYER_NORM},
    {"ln[0-9_f]*", LAYER_NORM},   {"*softmax*", LAYER_SOFTMAX},
    {"embed_out", LAYER_LINEAR},  {"unembed*", LAYER_LINEAR},
    {"*embed*", LAYER_EMBEDDING}, {"*_emb", LAYER_EMBEDDING},
    {"emb", LAYER_EMBEDDING},     {"tok", LAYER_EMBEDDING},
    {"pos", LAYER_EMBEDDING},     {"wte", LAYER_EMBEDDING},
    {"wpe", LAYER_EMBEDDING},     {"*loss*", LAYER_LOSS},
    {"conv*", LAYER_CONV},
};

const char *policy_layer_kind_of_name(const char *layer, layer_kind *kind)
{
    const char *dot = strrchr(layer, '.'), *last = dot ? dot + 1 : layer;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (fnmatch(patterns[i].glob, last, FNM_CASEFOLD) == 0) {
            *kind = patterns[i].kind;
            return patterns[i].glob;
        }
    return NULL;
}
