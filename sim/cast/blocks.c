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

/* ---- the records ---- */

/* An element. */
typedef struct item {
    size_t i;
    const char *typed, *remark;
    char shown[40], code[24]; /* x for people; * where it was rounded first */
    double x, scaled, element, value, error, relative;
    size_t has_relative;
} item;

/* A block. */
typedef struct block {
    double amax, factor, inverse, stored;
    const char *scale_format, *scale_code; /* NULL: the scale is no number of a format */
    const double *scale;
    char digits[24];
    item *items;
    size_t count;
} block;

/* Numbers under a recipe. */
typedef struct row {
    const char *recipe, *from, *element;
    uint64_t transform;
    size_t has_transform;
    double tensor;
    block *blocks;
    size_t count;
} row;

#define AT(member) offsetof(item, member)
static const record_field item_fields[] = {
    FIELD(SIZE, NULL, FIELD_PLAIN, AT(i), NULL, .title = ">i"),
    FIELD(TEXT, "typed", IN_TREE, AT(typed), "The number or code as it was typed."),
    FIELD(CHARS, NULL, 0, AT(shown), NULL, .title = ">x"),
    FIELD(REAL, "x", IN_TREE, AT(x), "What is cast, behind the transform."),
    FIELD(REAL, "scaled", IN_TREE, AT(scaled),
          "What is rounded: x over `inverse`, or times `factor`, as the recipe has it.", .title = ">scaled",
          .format = "%.9g"),
    FIELD(CODE, "code", IN_TREE, AT(code), NULL, .title = "<code"),
    FIELD(REAL, "element", IN_TREE, AT(element), "What the code stands for.", .title = ">value", .format = "%.9g"),
    FIELD(REAL, "value", IN_TREE, AT(value), "Times the scale.", .title = ">stands for", .format = "%.9g"),
    FIELD(REAL, "error", IN_TREE, AT(error), "value - x.", .title = ">error", .format = "%.3g"),
    FIELD(REAL, NULL, FIELD_IF, AT(relative), NULL, .title = ">relative", .format = "%.3g", .of = AT(has_relative)),
    FIELD(TEXT, NULL, 0, AT(remark), NULL, .title = "<"),
    {0}};
static const record_kind item_record = {"element", "An element.", sizeof(item), item_fields};
#undef AT

#define AT(member) offsetof(block, member)
static const record_field block_fields[] = {
    FIELD(REAL, "amax", IN_TREE, AT(amax), "The largest magnitude, as the rule of the scale sees it."),
    FIELD(TEXT, "scale_format", IN_TREE | FIELD_NULL, AT(scale_format), "Null: the scale is no number of a format."),
    FIELD(CODE, "scale_code", IN_TREE | FIELD_POINTER | FIELD_NULL, AT(scale_code), NULL),
    FIELD(REAL, "scale", IN_TREE | FIELD_POINTER | FIELD_NULL, AT(scale), "The number that `scale_code` stands for."),
    FIELD(REAL, "factor", IN_TREE, AT(factor),
          "What elements are multiplied by; where they are divided, 1 over the divisor."),
    FIELD(REAL, "inverse", IN_TREE, AT(inverse), "What codes are multiplied by, the scale of the tensor included."),
    FIELD(LIST, "elements", IN_TREE, AT(items), NULL, .of = AT(count), .record = &item_record),
    {0}};
static const record_kind block_record = {"block", "A block.", sizeof(block), block_fields};
#undef AT

#define AT(member) offsetof(row, member)
static const record_field row_fields[] = {
    FIELD(TEXT, "recipe", IN_TREE, AT(recipe), NULL),
    FIELD(TEXT, "from", IN_TREE, AT(from),
          "The format that numbers are rounded to first, and of codes: of --from, else binary32."),
    FIELD(TEXT, "element_format", IN_TREE, AT(element), NULL),
    FIELD(COUNT, "transform", IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(transform), "Size of the Hadamard transform.",
          .of = AT(has_transform)),
    FIELD(REAL, "tensor_scale", IN_TREE, AT(tensor), NULL),
    FIELD(LIST, "blocks", IN_TREE, AT(blocks), NULL, .of = AT(count), .record = &block_record),
    {0}};
const record_kind cast_explain_blocks_record = {"blocks", "Numbers under a block recipe.", sizeof(row), row_fields};
#undef AT

/* ---- the blocks ---- */

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

static item item_of(const quantised *q, size_t i)
{
    const element *typed = &q->b->x[i];
    const double x = (double)q->x[i], value = (double)q->values[i];
    item e = {.i = i,
              .typed = typed->typed,
              .remark = remark(q, i),
              .x = x,
              .scaled = scaled_element(q, i),
              .element = mpsim_decode(q->f, q->codes[i]),
              .value = value,
              .error = value - x,
              .relative = (value - x) / x + 0.0,
              .has_relative = x != 0 && isfinite(x)};
    snprintf(e.shown, sizeof e.shown, "%.9g%s", isnan(x) ? (double)NAN : x, typed->rounded ? "*" : "");
    element_code_text(e.code, q->f, q->codes[i]);
    return e;
}

static void fill_block(block *b, const quantised *q, size_t k)
{
    const size_t first = k * q->width, end = first + q->width < q->b->n ? first + q->width : q->b->n;
    const mpsim_format *s = q->scale_format ? mpsim_format_find(q->scale_format) : NULL;
    *b = (block){.amax = (double)q->amax[k],
                 .factor = (double)q->scales[k],
                 .inverse = (double)q->inverses[k],
                 .count = end - first,
                 .items = need_memory(end - first, sizeof *b->items)};
    if (s) {
        b->stored = mpsim_decode(s, q->scale_codes[k]);
        b->scale = &b->stored;
        b->scale_format = s->name;
        b->scale_code = element_code_text(b->digits, s, q->scale_codes[k]);
    }
    for (size_t i = first; i < end; i++)
        b->items[i - first] = item_of(q, i);
}

static row row_of(const quantised *q)
{
    const explain_blocks *b = q->b;
    row r = {.recipe = b->recipe->block.name,
             .from = b->from->name,
             .element = b->recipe->block.element,
             .transform = b->recipe->transform,
             .has_transform = b->recipe->transform,
             .tensor = (double)q->tensor,
             .blocks = need_memory(q->blocks, sizeof *r.blocks),
             .count = q->blocks};
    for (size_t k = 0; k < q->blocks; k++)
        fill_block(&r.blocks[k], q, k);
    return r;
}

static void row_clear(row *r)
{
    for (size_t k = 0; k < r->count; k++)
        free(r->blocks[k].items);
    free(r->blocks);
}

/* ---- text ---- */

static void block_text(const quantised *q, const row *r, size_t k, FILE *to)
{
    const block *b = &r->blocks[k];
    const int divides = mpsim_block_divides(&q->b->recipe->block);
    fprintf(to, "\n");
    if (r->count > 1)
        fprintf(to, "block %zu\n", k);
    fprintf(to, "  amax       %.9g\n", b->amax);
    if (b->scale)
        fprintf(to, "  scale      %s %s = %.9g\n", b->scale_format, b->scale_code, b->stored);
    fprintf(to, "  elements   %s %.9g; codes stand for their value times %.9g\n\n", divides ? "over" : "times",
            divides ? b->inverse : b->factor, b->inverse);
    table *t = record_table(&item_record, 0);
    for (size_t i = 0; i < b->count; i++)
        record_cells(t, &item_record, &b->items[i], 0);
    table_print(t, to, "  ");
    table_free(t);
}

void cast_explain_blocks_text(const explain_blocks *b, FILE *to)
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
    row all = row_of(&q);
    for (size_t k = 0; k < all.count; k++)
        block_text(&q, &all, k, to);
    row_clear(&all);
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

/* ---- JSON ---- */

void cast_explain_blocks_row(const explain_blocks *b, record_writer *to)
{
    quantised q;
    quantise(&q, b);
    row r = row_of(&q);
    record_row_of(to, &cast_explain_blocks_record, &r);
    row_clear(&r);
    clear(&q);
}
