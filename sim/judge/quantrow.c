/* quantrow.c -- see quantrow.h. */
#include "quantrow.h"

#include "../quant/quant.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Names, and what follows each of them: a rule of E8M0 scales, or the shape of a block. */
typedef struct family {
    const char *names[8], *ends[12];
} family;

static const family families[] = {
    {{"mxfp8", "mxfp8-e5m2", "mxfp6-e3m2", "mxfp6-e2m3", "mxfp4"},
     {":floor", ":even", ":ceil", ":rceil", ":te", ":microx"}},
    {{"mxfp8-e5m2", "mxfp6-e3m2", "mxfp6-e2m3", "mxfp4"},
     {":torchao-0.18-floor", ":torchao-0.18-even", ":torchao-0.18-ceil", ":torchao-0.18-rceil"}},
    {{"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz"}, {"/tensor", "/row", "/1x128", "/128x128"}},
    {{"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz"},
     {"/tensor:scale=bf16", "/row:scale=bf16", "/1x128:scale=bf16", "/128x128:scale=bf16", "/tensor:scale=fp16",
      "/row:scale=fp16", "/1x128:scale=fp16", "/128x128:scale=fp16"}}};

mpsim_status judge_quantise_row_parse(quantise_row *row, const char *text, char *why, size_t size)
{
    static const char word[] = ":scale=";
    char base[sizeof row->of.name];
    unsigned transform;
    const char *end = strstr(text, word);
    row->kept = NULL;
    if (!end)
        return mpsim_block_parse(&row->of, &transform, text, why, size);
    if (strcmp(end + sizeof word - 1, "bf16") != 0 && strcmp(end + sizeof word - 1, "fp16") != 0)
        return MPSIM_ENOTFOUND;
    snprintf(base, sizeof base, "%.*s", (int)(end - text), text);
    const mpsim_status s = mpsim_block_parse(&row->of, &transform, base, why, size);
    if (s != MPSIM_OK)
        return s;
    if (strchr(base, ':') || !strchr(base, '/') || strlen(row->of.name) + strlen(end) >= sizeof row->of.name)
        return MPSIM_ENOTFOUND;
    strcat(row->of.name, end);
    row->kept = mpsim_format_find(end + sizeof word - 1);
    return MPSIM_OK;
}

int judge_quantise_row_at(quantise_row *row, size_t i)
{
    size_t n = mpsim_block_count();
    char text[64];
    if (i < n) {
        *row = (quantise_row){*mpsim_block_at(i), NULL};
        return 0;
    }
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (size_t name = 0; families[f].names[name]; name++)
            for (size_t end = 0; families[f].ends[end]; end++)
                if (n++ == i) {
                    snprintf(text, sizeof text, "%s%s", families[f].names[name], families[f].ends[end]);
                    return judge_quantise_row_parse(row, text, NULL, 0) == MPSIM_OK ? 0 : -1;
                }
    return -1;
}

int judge_quantise_is_random(const mpsim_block_recipe *b)
{
    return b->element_mode >= MPSIM_ROUND_STOCHASTIC_A || b->rule == MPSIM_SCALE_GIVEN;
}

/* ---- scales in 16 bits ---- */

static float rounded(const mpsim_format *f, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return (float)mpsim_decode(f, mpsim_encode_f64(f, &r, x, 0, NULL));
}

/* The elements of a block under its scale. */
static void elements(const quantise_kept *k, const quantise_row *row, size_t first, size_t n, float scale)
{
    const mpsim_format *f = mpsim_format_find(row->of.element);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    r.infinity = MPSIM_INFINITY_MAX;
    r.nan = MPSIM_NANS_ONES_SIGNED;
    for (size_t i = first; i < first + n; i++) {
        k->codes[i] = (uint8_t)mpsim_encode_f32(f, &r, rounded(row->kept, (double)k->x[i] / (double)scale), 0, NULL);
        k->values[i] = rounded(row->kept, mpsim_decode(f, k->codes[i]) * (double)scale);
    }
}

void judge_quantise_kept(const quantise_kept *k, const quantise_row *row)
{
    const double most = mpsim_format_max(mpsim_format_find(row->of.element));
    const size_t down = quant_up(k->rows, k->grid_rows), across = quant_up(k->columns, k->grid_columns);
    for (size_t b = 0; b < k->grid_rows * k->grid_columns; b++) {
        const size_t top = b / k->grid_columns * down, left = b % k->grid_columns * across;
        const size_t bottom = top + down < k->rows ? top + down : k->rows,
                     n = left + across < k->columns ? across : k->columns - left;
        float amax = 0;
        for (size_t i = top; i < bottom; i++)
            for (size_t c = left; c < left + n; c++) {
                const float size = fabsf(k->x[i * k->columns + c]);
                amax = isnan(amax) || size <= amax ? amax : size;
            }
        const float s = rounded(row->kept, (double)amax / most), scale = s == 0 ? 1 : s;
        k->inverses[b] = scale;
        k->scales[b] = 1 / scale;
        for (size_t i = top; i < bottom; i++)
            elements(k, row, i * k->columns + left, n, scale);
    }
}
