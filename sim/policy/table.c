/* table.c -- see table.h.
 *
 * Sources: accelerate PrecisionType; NeMo MegatronMixedPrecision @8cfedd72; Keras mixed_precision
 * @3422977a; Apex frontend.py @e13873de; ATen/autocast_mode.h; TransformerEngine
 * common/recipe/__init__.py @d0067d0d; torchao float8/config.py @36027d82. */
#include "table.h"

#include "../text/words.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

/* ---- words ---- */

const char *policy_words_at(const policy_words *words, size_t i)
{
    return *(const char *const *)(const void *)((const char *)words->rows + i * words->size);
}

int policy_words_find(const policy_words *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcasecmp(policy_words_at(words, i), word) == 0)
            return (int)i;
    return -1;
}

const char *policy_words_text(const policy_words *words, char *out, size_t size)
{
    *out = '\0';
    for (size_t i = 0; i < words->count; i++)
        text_add(out, size, "%s%s", i ? ", " : "", policy_words_at(words, i));
    return out;
}

/* ---- precision ---- */

#define FP32 "binary32"

/* In the order of error lines: word, compute, params, grads, autocast, scaler, recipe, master. */
static const precision_row precisions[] = {
    {"no", FP32, FP32, FP32, "none", "none", NULL, TRAIN_NO_MASTER},
    {"fp32", FP32, FP32, FP32, "none", "none", NULL, TRAIN_NO_MASTER},
    {"fp16", "fp16", FP32, "fp16", "torch", "torch", NULL, TRAIN_NO_MASTER},
    {"bf16", "bf16", FP32, "bf16", "torch", "none", NULL, TRAIN_NO_MASTER},
    {"fp8", "bf16", FP32, "bf16", "torch", "none", "delayed", TRAIN_NO_MASTER},
    {"mxfp8", "bf16", FP32, "bf16", "torch", "none", "mxfp8", TRAIN_NO_MASTER},
    {"mxfp6", "bf16", FP32, "bf16", "torch", "none", "mxfp6", TRAIN_NO_MASTER},
    {"mxfp4", "bf16", FP32, "bf16", "torch", "none", "mxfp4", TRAIN_NO_MASTER},
    {"nvfp4", "bf16", FP32, "bf16", "torch", "none", "nvfp4", TRAIN_NO_MASTER},
    {"32", FP32, FP32, FP32, "none", "none", NULL, TRAIN_NO_MASTER},
    {"16-mixed", "fp16", FP32, "fp16", "torch", "torch", NULL, TRAIN_NO_MASTER},
    {"fp16-mixed", "fp16", FP32, "fp16", "torch", "torch", NULL, TRAIN_NO_MASTER},
    {"bf16-mixed", "bf16", FP32, "bf16", "torch", "none", NULL, TRAIN_NO_MASTER},
    {"float32", FP32, FP32, FP32, "none", "none", NULL, TRAIN_NO_MASTER},
    {"float16", "fp16", FP32, "fp16", "torch", "torch", NULL, TRAIN_NO_MASTER},
    {"bfloat16", "bf16", FP32, "bf16", "torch", "none", NULL, TRAIN_NO_MASTER},
    {"mixed_float16", "fp16", FP32, "fp16", "norms-fp32", "keras", NULL, TRAIN_NO_MASTER},
    {"mixed_bfloat16", "bf16", FP32, "bf16", "norms-fp32", "none", NULL, TRAIN_NO_MASTER},
};

static const precision_row levels[] = {
    {"O0", FP32, FP32, FP32, "none", "static", NULL, TRAIN_NO_MASTER},
    {"O1", "fp16", FP32, "fp16", "torch", "apex", NULL, TRAIN_NO_MASTER},
    {"O2", "fp16", "fp16", "fp16", "batchnorm-fp32", "apex", NULL, TRAIN_MASTER},
    {"O3", "fp16", "fp16", "fp16", "all", "static", NULL, TRAIN_NO_MASTER},
};

const policy_words policy_precisions = POLICY_WORDS(precisions), policy_levels = POLICY_WORDS(levels);

const precision_row *policy_precision_at(const policy_words *words, int i)
{
    return (const precision_row *)words->rows + i;
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

const policy_words policy_autocasts = POLICY_WORDS(autocasts);

const autocast_row *policy_autocast_find(const char *name)
{
    const int i = policy_words_find(&policy_autocasts, name);
    return i < 0 ? NULL : &autocasts[i];
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

const policy_words policy_recipes = POLICY_WORDS(recipes);

const recipe_row *policy_recipe_find(const char *name)
{
    const int i = policy_words_find(&policy_recipes, name);
    return i < 0 ? NULL : &recipes[i];
}

/* ---- layers ---- */

const char *const policy_layer_kind_words[] = {"linear",    "conv", "batchnorm", "norm", "softmax",
                                               "embedding", "loss", "other",     NULL};

const policy_words policy_layer_kinds = {policy_layer_kind_words, sizeof *policy_layer_kind_words, LAYER_KINDS};

const char *policy_layer_kind_name(layer_kind k)
{
    return policy_layer_kind_words[k];
}

int policy_layer_kind_find(layer_kind *k, const char *word)
{
    const int i = policy_words_find(&policy_layer_kinds, word);
    if (i >= 0)
        *k = (layer_kind)i;
    return i < 0 ? -1 : 0;
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
