/* form.c -- the table of layouts of quantised tensors: see quant.h.
 *
 * What each row says is read from the source that it names, not from files alone; "unconfirmed" marks the rest. Scales
 * that the sources call reciprocals (scale_inv) are what codes are multiplied by all the same. */
#include "quant.h"

#include "../text/words.h"

#include <stdio.h>
#include <string.h>

#define TORCHAO "torchao 0.18, prototype/safetensors and "
#define MX TORCHAO "prototype/mx_formats/mx_tensor.py"
#define TE "TransformerEngine 2.20, get_metadata and get_scale_shape of pytorch/tensor/"
#define COMPRESSED "compressed-tensors 0.20, compressors/"
#define MODELOPT "nvidia-modelopt 0.47, torch/export and torch/quantization/qtensor/"

#define TRANSFORMERS \
    "transformers 5.23, quantizers/quantizer_finegrained_fp8.py, integrations/finegrained_fp8.py (Fp8Dequantize)"

#define MPSIM(...)                                                                                      \
    .layout = "plain", .type = "mpsim", .scale = "*", .block_rows = QUANT_ANY, .block_cols = QUANT_ANY, \
    .swizzle = QUANT_TILES, .tensor_scale = QUANT_MAYBE, .multiple_rows = 1, .multiple_cols = 1,        \
    .rank = QUANT_RANK_MAX, .suffix = {"", ".scale", ".tensor_scale"}, .source = "mpsim's own", __VA_ARGS__
#define TORCHAO_NAMES .prefix = 1, .suffix = {"qdata", "scale", "per_tensor_scale"}
#define TE_ROWS \
    .layout = "te", .rank = QUANT_RANK_MAX, .suffix = {".rowwise_data", ".rowwise_scale_inv", ".amax_rowwise"}
#define TE_COLUMNS \
    .layout = "te", .rank = QUANT_RANK_MAX, .suffix = {".columnwise_data", ".columnwise_scale_inv", ".amax_columnwise"}
#define MX_BLOCK .scale = "e8m0", .block_rows = 1, .block_cols = 32
#define NVFP4 .elements = "e2m1", .scale = "e4m3", .packing = QUANT_NIBBLES

/* clang-format off */
static const quant_form forms[] = {
    {MPSIM(.elements = "e4m3 e5m2", .dtypes = {"", "", "F32"})},
    {MPSIM(.elements = "e2m1", .packing = QUANT_NIBBLES, .dtypes = {"U8", "", "F32"})},
    {MPSIM(.elements = "e3m2 e2m3", .packing = QUANT_SIXES, .dtypes = {"U8", "", "F32"})},
    {MPSIM(.elements = "*", .dtypes = {"", "", "F32"})},

    {.layout = "torchao", .type = "MXTensor", .elements = "e4m3 e5m2", MX_BLOCK, .swizzle = QUANT_TILES,
     .multiple_rows = 1, .rank = 3, TORCHAO_NAMES, .dtypes = {"", "F8_E8M0"}, .source = MX},
    /* a transposed tensor: codes and scales are views with their dimensions exchanged */
    {.layout = "torchao", .type = "MXTensor", .elements = "e4m3 e5m2", .scale = "e8m0", .block_rows = 32,
     .block_cols = 1, .multiple_cols = 1, .rank = 2, .view = 1, TORCHAO_NAMES, .dtypes = {"", "F8_E8M0"}, .source = MX},
    {.layout = "torchao", .type = "MXTensor", .elements = "e2m1", MX_BLOCK, .packing = QUANT_NIBBLES,
     .swizzle = QUANT_TILES, .multiple_rows = 1, .rank = 3, TORCHAO_NAMES, .dtypes = {"U8 F4", "F8_E8M0"}, .source = MX},
    {.layout = "torchao", .type = "MXTensor", .elements = "e3m2 e2m3", MX_BLOCK, .swizzle = QUANT_TILES,
     .multiple_rows = 1, .rank = 3, TORCHAO_NAMES, .dtypes = {"U8", "F8_E8M0"}, .source = MX},
    {.layout = "torchao", .type = "MXTensor", .elements = "e3m2 e2m3", MX_BLOCK, .packing = QUANT_SIXES_TORCHAO,
     .multiple_rows = 1, .rank = 3, TORCHAO_NAMES, .dtypes = {"U8", "F8_E8M0"},
     .source = "torchao 0.13, prototype/mx_formats/kernels.py (pack_uint6_pytorch); 0.18 does not pack"},
    {.layout = "torchao", .type = "NVFP4Tensor", NVFP4, .block_rows = 1, .block_cols = 16, .swizzle = QUANT_TILES,
     .tensor_scale = QUANT_MAYBE, .multiple_rows = 1, .rank = 3, TORCHAO_NAMES,
     .dtypes = {"U8 F4", "F8_E4M3", "F32"}, .source = TORCHAO "prototype/mx_formats/nvfp4_tensor.py"},
    {.layout = "torchao", .type = "Float8Tensor", .elements = "e4m3 e5m2", .scale = "binary32", .block_rows = 1,
     .block_cols = QUANT_ANY, .multiple_rows = 1, .rank = 3, TORCHAO_NAMES, .dtypes = {"", "F32"},
     .source = TORCHAO "quantization/quantize_/workflows/float8/float8_tensor.py"},
    {.layout = "torchao", .type = "Float8Tensor", .elements = "e4m3 e5m2", .scale = "binary32",
     .block_rows = QUANT_ANY, .block_cols = QUANT_ANY, .rank = 2, TORCHAO_NAMES, .dtypes = {"", "F32"},
     .source = TORCHAO "quantization/quantize_/workflows/float8/float8_tensor.py"},

    /* Padding, which TransformerEngine leaves as it finds it, is 0 here. The swizzled order of columnwise scales is
     * unconfirmed: here that of rowwise ones of the transposed grid. */
    {TE_ROWS, .type = "MXFP8Tensor", .elements = "e4m3 e5m2", MX_BLOCK, .arrangement = QUANT_PADDED, .pad_rows = 128,
     .pad_cols = 4, .swizzle = QUANT_AS_PLAIN, .multiple_rows = 32, .multiple_cols = 32,
     .dtypes = {"U8", "U8"}, .source = TE "mxfp8_tensor.py"},
    {TE_COLUMNS, .type = "MXFP8Tensor", .elements = "e4m3 e5m2", .scale = "e8m0", .block_rows = 32, .block_cols = 1,
     .arrangement = QUANT_PADDED, .pad_rows = 4, .pad_cols = 128, .swizzle = QUANT_AS_PLAIN, .multiple_rows = 32,
     .multiple_cols = 32, .dtypes = {"U8", "U8"}, .source = TE "mxfp8_tensor.py"},
    {TE_ROWS, .type = "NVFP4Tensor", NVFP4, .block_rows = 1, .block_cols = 16, .arrangement = QUANT_PADDED,
     .pad_rows = 128, .pad_cols = 4, .swizzle = QUANT_AS_PLAIN, .tensor_scale = QUANT_AMAX, .tensor_rank = 1,
     .multiple_rows = 16, .multiple_cols = 16, .dtypes = {"U8", "U8", "F32"}, .source = TE "nvfp4_tensor.py"},
    {TE_COLUMNS, .type = "NVFP4Tensor", NVFP4, .block_rows = 16, .block_cols = 1, .code_shape = QUANT_TRANSPOSED,
     .arrangement = QUANT_PADDED_TRANSPOSED, .pad_rows = 128, .pad_cols = 4, .swizzle = QUANT_AS_PLAIN,
     .tensor_scale = QUANT_AMAX, .tensor_rank = 1, .multiple_rows = 16, .multiple_cols = 16,
     .dtypes = {"U8", "U8", "F32"}, .source = TE "nvfp4_tensor.py"},
    {TE_ROWS, .type = "Float8BlockwiseQTensor", .elements = "e4m3 e5m2", .scale = "binary32", .block_rows = 1,
     .block_cols = 128, .arrangement = QUANT_PADDED_TRANSPOSED, .pad_rows = 1, .pad_cols = 4, .multiple_rows = 128,
     .multiple_cols = 128, .dtypes = {"U8", "F32"}, .source = TE "float8_blockwise_tensor.py"},
    {TE_COLUMNS, .type = "Float8BlockwiseQTensor", .elements = "e4m3 e5m2", .scale = "binary32", .block_rows = 128,
     .block_cols = 1, .code_shape = QUANT_TRANSPOSED, .arrangement = QUANT_PADDED, .pad_rows = 1, .pad_cols = 4,
     .multiple_rows = 128, .multiple_cols = 128, .dtypes = {"U8", "F32"}, .source = TE "float8_blockwise_tensor.py"},
    {TE_ROWS, .type = "Float8BlockwiseQTensor", .elements = "e4m3 e5m2", .scale = "binary32", .block_rows = 128,
     .block_cols = 128, .arrangement = QUANT_PADDED, .pad_rows = 1, .pad_cols = 4, .multiple_rows = 128,
     .multiple_cols = 128, .dtypes = {"U8", "F32"}, .source = TE "float8_blockwise_tensor.py"},
    {.layout = "te", .type = "Float8Tensor", .elements = "e4m3 e5m2", .scale = "binary32", .block_rows = QUANT_WHOLE,
     .block_cols = QUANT_WHOLE, .arrangement = QUANT_ONE, .multiple_rows = 1, .multiple_cols = 1,
     .rank = QUANT_RANK_MAX, .suffix = {".data", ".fp8_scale_inv"}, .dtypes = {"U8", "F32"},
     .source = TE "float8_tensor.py"},

    {.layout = "compressed-tensors", .type = "nvfp4-pack-quantized", NVFP4, .block_rows = 1, .block_cols = 16,
     .tensor_scale = QUANT_DIVIDE, .tensor_rank = 1, .multiple_rows = 1, .rank = 3,
     .suffix = {"_packed", "_scale", "_global_scale"}, .dtypes = {"U8", "F8_E4M3", "F32"},
     .source = COMPRESSED "nvfp4"},
    {.layout = "compressed-tensors", .type = "mxfp4-pack-quantized", .elements = "e2m1", MX_BLOCK,
     .packing = QUANT_NIBBLES, .multiple_rows = 1, .rank = 3, .suffix = {"_packed", "_scale"},
     .dtypes = {"U8", "U8 F8_E8M0"}, .source = COMPRESSED "mxfp4"},
    {.layout = "compressed-tensors", .type = "mxfp6-pack-quantized", .elements = "e2m3", MX_BLOCK,
     .packing = QUANT_SIXES, .multiple_rows = 1, .rank = 3, .suffix = {"_packed", "_scale"},
     .dtypes = {"U8", "U8 F8_E8M0"}, .source = COMPRESSED "mxfp6"},
    {.layout = "compressed-tensors", .type = "mxfp8-quantized", .elements = "e4m3", MX_BLOCK, .multiple_rows = 1,
     .rank = 3, .suffix = {"", "_scale"}, .dtypes = {"", "U8 F8_E8M0"}, .source = COMPRESSED "mxfp8"},
    {.layout = "compressed-tensors", .type = "float-quantized", .elements = "e4m3", .scale = "binary32",
     .block_rows = QUANT_WHOLE, .block_cols = QUANT_WHOLE, .arrangement = QUANT_ONE, .multiple_rows = 1,
     .multiple_cols = 1, .rank = 3, .suffix = {"", "_scale"}, .dtypes = {"", "F32 BF16 F16"},
     .source = COMPRESSED "naive_quantized"},
    {.layout = "compressed-tensors", .type = "float-quantized", .elements = "e4m3", .scale = "binary32",
     .block_rows = 1, .block_cols = QUANT_ANY, .multiple_rows = 1, .multiple_cols = 1, .rank = 3,
     .suffix = {"", "_scale"}, .dtypes = {"", "F32 BF16 F16"}, .source = COMPRESSED "naive_quantized"},
    {.layout = "compressed-tensors", .type = "float-quantized", .elements = "e4m3", .scale = "binary32",
     .block_rows = QUANT_ANY, .block_cols = QUANT_ANY, .multiple_rows = 1, .multiple_cols = 1, .rank = 2,
     .suffix = {"", "_scale"}, .dtypes = {"", "F32 BF16 F16"}, .source = COMPRESSED "naive_quantized"},

    {.layout = "modelopt", .type = "NVFP4", NVFP4, .block_rows = 1, .block_cols = 16,
     .tensor_scale = QUANT_MULTIPLY, .multiple_rows = 1, .rank = 3, .suffix = {"", "_scale", "_scale_2"},
     .dtypes = {"U8", "F8_E4M3", "F32"}, .source = MODELOPT "nvfp4_tensor.py"},
    {.layout = "modelopt", .type = "MXFP8", .elements = "e4m3", MX_BLOCK, .multiple_rows = 1, .rank = 3,
     .suffix = {"", "_scale"}, .dtypes = {"", "U8"}, .source = MODELOPT "mxfp8_tensor.py"},
    {.layout = "modelopt", .type = "FP8", .elements = "e4m3", .scale = "binary32", .block_rows = QUANT_WHOLE,
     .block_cols = QUANT_WHOLE, .arrangement = QUANT_SCALAR, .multiple_rows = 1, .multiple_cols = 1, .rank = 3,
     .suffix = {"", "_scale"}, .dtypes = {"", "F32"}, .source = MODELOPT "fp8_tensor.py"},

    {.layout = "deepseek", .type = "DeepSeek-V3", .elements = "e4m3", .scale = "binary32", .block_rows = 128,
     .block_cols = 128, .multiple_rows = 1, .multiple_cols = 1, .rank = 2, .suffix = {"", "_scale_inv"},
     .dtypes = {"", "F32"}, .source = "DeepSeek-V3, README_WEIGHTS.md and inference/kernel.py (weight_dequant)"},

    {.layout = "deepseek", .type = "DeepSeek-V4", .elements = "e4m3", .scale = "e8m0", .block_rows = 128,
     .block_cols = 128, .multiple_rows = 1, .multiple_cols = 1, .rank = 2, .sibling = 1, .suffix = {"", "scale"},
     .dtypes = {"", "F8_E8M0 F32"}, .source = TRANSFORMERS},
    {.layout = "deepseek", .type = "DeepSeek-V4 experts", .elements = "e2m1", MX_BLOCK, .packing = QUANT_NIBBLES,
     .multiple_rows = 1, .rank = 2, .sibling = 1, .suffix = {"", "scale"}, .dtypes = {"I8 F4", "F8_E8M0"},
     .source = TRANSFORMERS},

    {.layout = "gpt-oss", .type = "MXFP4", .elements = "e2m1", MX_BLOCK, .packing = QUANT_NIBBLES,
     .code_shape = QUANT_SPLIT, .multiple_rows = 1, .rank = 3, .suffix = {"_blocks", "_scales"},
     .dtypes = {"U8", "U8"}, .source = "gpt-oss, gpt_oss/torch/weights.py, under Hugging Face's names"},
    {.layout = "gpt-oss", .type = "MXFP4", .elements = "e2m1", MX_BLOCK, .packing = QUANT_NIBBLES,
     .code_shape = QUANT_SPLIT, .multiple_rows = 1, .rank = 3, .suffix = {".blocks", ".scales"},
     .dtypes = {"U8", "U8"}, .source = "gpt-oss, gpt_oss/torch/weights.py, under its own names"},
};
/* clang-format on */

enum { FORMS = sizeof forms / sizeof forms[0] };

const quant_form *quant_form_at(size_t i)
{
    return i < FORMS ? &forms[i] : NULL;
}

const quant_form *quant_layout_at(size_t i)
{
    for (size_t k = 0; k < FORMS; k++)
        if ((k == 0 || strcmp(forms[k].layout, forms[k - 1].layout) != 0) && i-- == 0)
            return &forms[k];
    return NULL;
}

const quant_form *quant_layout_find(const char *layout)
{
    for (size_t k = 0; k < FORMS; k++)
        if (strcmp(forms[k].layout, layout) == 0)
            return &forms[k];
    return NULL;
}

int quant_form_has(const char *list, const char *word)
{
    const size_t n = strlen(word);
    if (strcmp(list, "*") == 0)
        return 1;
    for (const char *p = list; *p; p += strspn(p, " ")) {
        const size_t m = strcspn(p, " ");
        if (m == n && memcmp(p, word, n) == 0)
            return 1;
        p += m;
    }
    return 0;
}

/* ---- which row ---- */

/* Whether a side of blocks is one of the form, or `several` of it. */
static int holds_side(uint32_t own, uint32_t side, int several)
{
    return own == QUANT_ANY || own == side || (several && own != QUANT_WHOLE && side != QUANT_WHOLE && side % own == 0);
}

static int holds_scale(const quant_form *f, const char *scale)
{
    return quant_form_has(f->scale, scale) || (strcmp(f->scale, "binary32") == 0 && strcmp(scale, "e8m0") == 0);
}

static void side_name(char *to, size_t size, uint32_t side)
{
    if (side == QUANT_ANY || side == QUANT_WHOLE)
        snprintf(to, size, "%s", side == QUANT_ANY ? "any" : "all");
    else
        snprintf(to, size, "%u", (unsigned)side);
}

/* Whether two rows differ in how the same numbers lie. */
static int same_numbers(const quant_form *a, const quant_form *b)
{
    return strcmp(a->elements, b->elements) == 0 && strcmp(a->scale, b->scale) == 0 && a->block_rows == b->block_rows &&
           a->block_cols == b->block_cols;
}

/* "deepseek holds e4m3 with binary32 scales in blocks of 128x128" */
static void say_what(const quant_form *f, char *why, size_t size)
{
    const char *layout = f->layout;
    char rows[16], cols[16];
    snprintf(why, size, "%s holds", layout);
    for (int first = 1; f < forms + FORMS && strcmp(f->layout, layout) == 0; f++, first = 0) {
        if (f->view || (!first && same_numbers(f, f - 1)))
            continue;
        side_name(rows, sizeof rows, f->block_rows);
        side_name(cols, sizeof cols, f->block_cols);
        text_add(why, size, "%s %s with %s scales in blocks of %sx%s", first ? "" : ",",
                 strcmp(f->elements, "*") == 0 ? "any" : f->elements, strcmp(f->scale, "*") == 0 ? "any" : f->scale,
                 rows, cols);
    }
}

const quant_form *quant_form_find(const char *layout, const char *element, const char *scale, uint32_t block_rows,
                                  uint32_t block_cols, int tensor_scale, char *why, size_t size)
{
    const quant_form *begin = quant_layout_find(layout);
    if (!begin) {
        snprintf(why, size, "the layout '%s' is not known", layout);
        return NULL;
    }
    for (int several = 0; several <= 1; several++)
        for (const quant_form *f = begin; f < forms + FORMS && strcmp(f->layout, layout) == 0; f++)
            if (!f->view && quant_form_has(f->elements, element) && holds_scale(f, scale) &&
                holds_side(f->block_rows, block_rows, several) && holds_side(f->block_cols, block_cols, several) &&
                (!tensor_scale || f->tensor_scale != QUANT_NONE))
                return f;
    say_what(begin, why, size);
    return NULL;
}

/* ---- names ---- */

/* Where the last component of a name begins; NULL if it is the only one. */
static const char *last_component(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : NULL;
}

static const char *suffix_of(const quant_form *f, quant_part p)
{
    return p == QUANT_TENSOR_SCALE && f->tensor_scale == QUANT_NONE ? NULL : f->suffix[p];
}

/* Bytes of a name before its last component, which is this one; 0: it is another. */
static size_t before(const char *name, const char *component)
{
    const char *last = last_component(name);
    return last && strcmp(last, component) == 0 ? (size_t)(last - name) : 0;
}

int quant_part_name(const quant_form *f, quant_part p, const char *name, char *to, size_t size)
{
    const char *suffix = suffix_of(f, p), *last = f->prefix ? last_component(name) : NULL;
    if (!suffix || (f->prefix && !last) || (f->sibling && !before(name, "weight")))
        return -1;
    if (f->sibling && p != QUANT_CODES)
        return snprintf(to, size, "%.*s%s", (int)before(name, "weight"), name, suffix);
    if (!f->prefix)
        return snprintf(to, size, "%s%s", name, suffix);
    return snprintf(to, size, "%.*s_%s_%s", (int)(last - name), name, last, suffix);
}

int quant_part_of(const quant_form *f, quant_part p, const char *stored, char *name, size_t size)
{
    const char *suffix = suffix_of(f, p), *last = f->prefix ? last_component(stored) : NULL;
    if (!suffix || (f->prefix && (!last || *last != '_')) ||
        (f->sibling && p == QUANT_CODES && !before(stored, "weight")))
        return 0;
    if (f->sibling && p != QUANT_CODES) {
        const int length = snprintf(name, size, "%.*sweight", (int)before(stored, suffix), stored);
        return before(stored, suffix) && (size_t)length < size;
    }
    const size_t n = strlen(stored), m = strlen(suffix), joint = f->prefix ? 1 : 0;
    const size_t head = f->prefix ? (size_t)(last - stored) : 0, skipped = head + joint;
    if (n <= skipped + m + joint || strcmp(stored + n - m, suffix) != 0 || (joint && stored[n - m - 1] != '_'))
        return 0;
    const int written = snprintf(name, size, "%.*s%.*s", (int)head, stored, (int)(n - m - joint - skipped),
                                 stored + skipped);
    return written >= 0 && (size_t)written < size;
}
