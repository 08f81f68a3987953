/* blocks.c -- numbers under a block recipe: amax, scale, elements, codes; see explain.h. */
#include "explain.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How the scale comes about, in the words of mpsim/block.h. */
static const char *const rules[] = {
    [MPSIM_SCALE_E8M0_FLOOR] = "2^(floor(log2 amax) - emax)",
    [MPSIM_SCALE_E8M0_EVEN] = "2^(floor(log2 amax) - emax), amax rounded to the element's significand first",
    [MPSIM_SCALE_E8M0_CEIL] = "2^(ceil(log2 amax) - emax)",
    [MPSIM_SCALE_E8M0_RCEIL] = "amax / max, rounded up to a power of two",
    [MPSIM_SCALE_E8M0_TE] = "amax / max, rounded up to a power of two",
    [MPSIM_SCALE_E8M0_MICROX] = "2^(floor(log2 amax) - emax), log2 rounded to binary32",
    [MPSIM_SCALE_AMAX_TE] = "elements times max / amax",
    [MPSIM_SCALE_AMAX_TORCHAO] = "elements times max / amax, in binary64",
    [MPSIM_SCALE_MSAMP] = "elements times the power of two below max / amax, times 2^-margin",
    [MPSIM_SCALE_NVFP4_TE] = "amax / 6 in E4M3, under the scale of the tensor",
    [MPSIM_SCALE_NVFP4_TORCHAO] = "amax / 6 in E4M3, under the scale of the tensor",
    [MPSIM_SCALE_GIVEN] = "the caller's",
    [MPSIM_SCALE_TORCHAO_018_FLOOR] = "2^(floor(log2 amax) - emax)",
    [MPSIM_SCALE_TORCHAO_018_EVEN] = "2^(floor(log2 amax) - emax), amax rounded to the element's significand first",
    [MPSIM_SCALE_TORCHAO_018_CEIL] = "2^(ceil(log2 amax) - emax)",
    [MPSIM_SCALE_TORCHAO_018_RCEIL] = "amax / max, rounded up to a power of two",
    [MPSIM_SCALE_NVFP4_1LEVEL] = "amax / 6 in E4M3",
    [MPSIM_SCALE_AMAX_DEEPSEEK] = "elements over amax / max",
    [MPSIM_SCALE_E8M0_DEEPGEMM] = "amax / max, rounded up to a power of two",
};

typedef struct quantised {
    const explain_blocks *b;
    const mpsim_format *f; /* of the elements */
    const char *scale_format;
    size_t width, blocks;
    float *x, *values, *scales, *inverses, *amax, tensor;
    uint8_t *codes, *scale_codes;
    void *memory;
} quantised;

static void quantise(quantised *q, const explain_blocks *b)
{
    size_t grid_rows, grid_cols;
    const size_t n = b->n;
    const mpsim_rng rng = {.seed = b->seed};
    const mpsim_block_recipe *r = &b->recipe->block;
    mpsim_block_grid(r, 1, n, &grid_rows, &grid_cols);
    *q = (quantised){.b = b, .f = mpsim_format_find(r->element), .blocks = grid_cols};
    q->scale_format = strcmp(b->recipe->scale, "binary32") == 0 ? NULL : b->recipe->scale;
    q->width = r->block_cols ? r->block_cols : n;
    float *numbers = need_memory(5 * n, sizeof *numbers);
    uint8_t *codes = need_memory(2 * n, 1);
    q->memory = numbers;
    q->codes = codes;
    q->x = numbers;
    q->values = numbers + n;
    q->scales = numbers + 2 * n;
    q->inverses = numbers + 3 * n;
    q->amax = numbers + 4 * n;
    q->scale_codes = codes + n;
    for (size_t i = 0; i < n; i++)
        q->x[i] = (float)b->x[i].value;
    const mpsim_blocks out = {.codes = q->codes,
                              .values = q->values,
                              .scale_codes = q->scale_codes,
                              .scales = q->scales,
                              .inverses = q->inverses,
                              .amax = q->amax};
    if (b->recipe->transform)
        (void)mpsim_hadamard_groups(q->x, n, b->recipe->transform, b->seed);
    if (mpsim_block_quantize(r, q->x, 1, n, b->amax, b->recipe->given, &rng, &out, &q->tensor) != MPSIM_OK)
        (void)need(NULL);
}

static void clear(quantised *q)
{
    free(q->memory);
    free(q->codes);
}

/* The element as it is cast: a quotient or a product of binary32. */
static double scaled_element(const quantised *q, size_t i)
{
    const size_t k = i / q->width;
    const int divides = mpsim_block_divides(&q->b->recipe->block);
    const float y = divides ? q->x[i] / q->inverses[k] : q->x[i] * q->scales[k];
    return (double)y;
}

/* Beyond the largest number after rounding, as stat counts it. */
static int saturates(const quantised *q, double scaled)
{
    mpsim_rounding r;
    unsigned flags = 0;
    if (q->b->recipe->block.element_mode >= MPSIM_ROUND_STOCHASTIC_A)
        return fabs(scaled) > mpsim_format_max(q->f);
    mpsim_rounding_init(&r, (mpsim_round_mode)q->b->recipe->block.element_mode);
    r.overflow = MPSIM_OVERFLOW_MAX;
    (void)mpsim_encode_f64(q->f, &r, scaled, 0, &flags);
    return (flags & MPSIM_FLAG_OVERFLOW) != 0;
}

/* What of it a reader may want to see: why the value is far from x. */
static const char *remark(const quantised *q, size_t i)
{
    const double scaled = scaled_element(q, i);
    const double value = mpsim_decode(q->f, q->codes[i]);
    return isfinite(scaled) && isfinite(value) && saturates(q, scaled) ? "saturates"
           : value == 0 && q->x[i] != 0                                ? "becomes zero"
                                                                       : "";
}

static void block_text(const quantised *q, size_t k, FILE *to)
{
    char code[24];
    const size_t first = k * q->width, end = first + q->width < q->b->n ? first + q->width : q->b->n;
    fprintf(to, "\n");
    if (q->blocks > 1)
        fprintf(to, "block %zu\n", k);
    fprintf(to, "  amax       %.9g\n", (double)q->amax[k]);
    if (q->scale_format) {
        const mpsim_format *s = mpsim_format_find(q->scale_format);
        fprintf(to, "  scale      %s %s = %.9g\n", s->name, element_code_text(code, s, q->scale_codes[k]),
                mpsim_decode(s, q->scale_codes[k]));
    }
    const int divides = mpsim_block_divides(&q->b->recipe->block);
    fprintf(to, "  elements   %s %.9g; codes stand for their value times %.9g\n\n", divides ? "over" : "times",
            (double)(divides ? q->inverses : q->scales)[k], (double)q->inverses[k]);
    table *t = table_new(">i|>x|>scaled|<code|>value|>stands for|>error|>relative|<");
    for (size_t i = first; i < end; i++) {
        const double x = (double)q->x[i], error = (double)q->values[i] - x;
        table_cell(t, "%zu", i);
        table_cell(t, "%.9g%s", x, q->b->x[i].rounded ? "*" : "");
        table_cell(t, "%.9g", scaled_element(q, i));
        table_cell(t, "%s", element_code_text(code, q->f, q->codes[i]));
        table_cell(t, "%.9g", mpsim_decode(q->f, q->codes[i]));
        table_cell(t, "%.9g", (double)q->values[i]);
        table_cell(t, "%.3g", error);
        if (x != 0 && isfinite(x))
            table_cell(t, "%.3g", error / x + 0.0);
        else
            table_cell(t, "%s", "");
        table_cell(t, "%s", remark(q, i));
    }
    table_print(t, to, "  ");
    table_free(t);
}

void explain_blocks_text(const explain_blocks *b, FILE *to)
{
    const mpsim_block_recipe *r = &b->recipe->block;
    quantised q;
    int rounded = 0, codes = 0;
    quantise(&q, b);
    fprintf(to, "%s: %s ", r->name, r->element);
    if (r->block_rows && r->block_cols)
        fprintf(to, "in blocks of %u x %u\n", (unsigned)r->block_rows, (unsigned)r->block_cols);
    else
        fputs(r->block_rows ? "with a scale for each row\n" : "with a scale for the tensor\n", to);
    fprintf(to, "  source     %s\n  scale      %s%s\n", r->source, rules[r->rule],
            r->power_of_two ? ", cut down to a power of two" : "");
    if (b->recipe->transform)
        fprintf(to, "  transform  Hadamard, of groups of %u: x is what it gives\n", b->recipe->transform);
    if (q.tensor != 1)
        fprintf(to, "  tensor     scale %.9g, beside those of the blocks\n", (double)q.tensor);
    for (size_t k = 0; k < q.blocks; k++)
        block_text(&q, k, to);
    for (size_t i = 0; i < b->n; i++) {
        rounded |= b->x[i].rounded;
        codes |= b->x[i].is_code;
    }
    if (rounded)
        fprintf(to, "\n  * was no number of %s, and was rounded to it first\n", b->from->name);
    if (codes)
        fprintf(to, "\n  codes were taken for codes of %s\n", b->from->name);
    clear(&q);
}

static json_t *block_json(const quantised *q, size_t k)
{
    char code[24];
    json_t *v = json_object(), *elements = json_array();
    const size_t first = k * q->width, end = first + q->width < q->b->n ? first + q->width : q->b->n;
    for (size_t i = first; i < end; i++) {
        json_t *e = json_object();
        json_object_set_new(e, "typed", json_string(q->b->x[i].typed));
        json_object_set_new(e, "x", json_of_double((double)q->x[i]));
        json_object_set_new(e, "scaled", json_of_double(scaled_element(q, i)));
        json_object_set_new(e, "code", json_string(element_code_text(code, q->f, q->codes[i])));
        json_object_set_new(e, "element", json_of_double(mpsim_decode(q->f, q->codes[i])));
        json_object_set_new(e, "value", json_of_double((double)q->values[i]));
        json_object_set_new(e, "error", json_of_double((double)q->values[i] - (double)q->x[i]));
        json_array_append_new(elements, e);
    }
    const mpsim_format *s = q->scale_format ? mpsim_format_find(q->scale_format) : NULL;
    json_object_set_new(v, "amax", json_of_double((double)q->amax[k]));
    json_object_set_new(v, "scale_format", s ? json_string(s->name) : json_null());
    json_object_set_new(v, "scale_code", s ? json_string(element_code_text(code, s, q->scale_codes[k])) : json_null());
    json_object_set_new(v, "scale", s ? json_of_double(mpsim_decode(s, q->scale_codes[k])) : json_null());
    json_object_set_new(v, "factor", json_of_double((double)q->scales[k]));
    json_object_set_new(v, "inverse", json_of_double((double)q->inverses[k]));
    json_object_set_new(v, "elements", elements);
    return v;
}

json_t *explain_blocks_json(const explain_blocks *b)
{
    quantised q;
    quantise(&q, b);
    json_t *v = json_object(), *blocks = json_array();
    for (size_t k = 0; k < q.blocks; k++)
        json_array_append_new(blocks, block_json(&q, k));
    json_object_set_new(v, "recipe", json_string(b->recipe->block.name));
    json_object_set_new(v, "from", json_string(b->from->name));
    json_object_set_new(v, "element_format", json_string(b->recipe->block.element));
    if (b->recipe->transform)
        json_object_set_new(v, "transform", json_integer(b->recipe->transform));
    json_object_set_new(v, "tensor_scale", json_of_double((double)q.tensor));
    json_object_set_new(v, "blocks", blocks);
    clear(&q);
    return v;
}
