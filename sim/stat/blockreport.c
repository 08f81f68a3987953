/* blockreport.c -- see blockreport.h. */
#include "blockreport.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- numbers ---- */

double block_sqnr_db(const block_sums *b, const group *g)
{
    return mpsim_cast_stats_sqnr_db(&b->stats.casts, &g->stats);
}

double block_mse(const block_sums *b)
{
    return mpsim_cast_stats_mse(&b->stats.casts);
}

double block_max_rel_err(const block_sums *b)
{
    return b->stats.casts.compared ? b->stats.casts.max_rel_err : (double)NAN;
}

int block_shows(const block_list *l, const group *g, size_t i)
{
    return g->blocks[i].elements || !g->stats.count || l->items[i].axis == BLOCK_ROWS;
}

int block_left_out(const block_sums *b, const group *g)
{
    return b->stats.casts.compared + g->stats.nan + g->stats.inf < b->elements;
}

/* The bins of scales from the first that is not empty to the last. */
static void scale_range(const mpsim_block_stats *s, int *first, int *end)
{
    *first = 0;
    *end = MPSIM_SCALE_BINS;
    while (*first < *end && s->scales[*first] == 0)
        ++*first;
    while (*end > *first && s->scales[*end - 1] == 0)
        --*end;
}

/* ---- JSON ---- */

json_t *block_recipes_json(const block_list *l)
{
    json_t *all = json_array();
    for (size_t i = 0; i < l->count; i++) {
        if (block_is_first(l, i))
            json_array_append_new(all, target_recipe_json(&l->items[i]));
    }
    return all;
}

static json_t *scales_json(const mpsim_block_stats *s)
{
    json_t *v = json_object(), *counts = json_array();
    int first, end;
    scale_range(s, &first, &end);
    for (int i = first; i < end; i++)
        json_array_append_new(counts, json_of_count(s->scales[i]));
    json_object_set_new(v, "zero", json_of_count(s->scale_zero));
    json_object_set_new(v, "nonfinite", json_of_count(s->scale_nonfinite));
    json_object_set_new(v, "first", json_integer(first == end ? 0 : first + MPSIM_SCALE_MIN));
    json_object_set_new(v, "counts", counts);
    return v;
}

static json_t *recipe_json(const block_target *t, const block_sums *b, const group *g, int counts)
{
    const mpsim_block_stats *s = &b->stats;
    json_t *v = json_object();
    json_object_set_new(v, "recipe", json_string(t->label));
    json_object_set_new(v, "axis", json_string(block_axis_name(t->axis)));
    json_object_set_new(v, "elements", json_of_count(b->elements));
    json_object_set_new(v, "underflow", json_of_count(s->underflow));
    json_object_set_new(v, "subnormal", json_of_count(s->casts.counts.subnormal));
    json_object_set_new(v, "overflow", json_of_count(s->saturated));
    json_object_set_new(v, "spoilt", json_of_count(s->spoilt));
    json_object_set_new(v, "inexact", json_of_count(s->casts.counts.inexact));
    if (!counts) {
        json_object_set_new(v, "sqnr_db", json_of_double(block_sqnr_db(b, g)));
        json_object_set_new(v, "mse", json_of_double(block_mse(b)));
        json_object_set_new(v, "max_rel_err", json_of_double(block_max_rel_err(b)));
        json_object_set_new(v, "compared", json_of_count(s->casts.compared));
    }
    json_object_set_new(v, "blocks", json_of_count(s->blocks));
    json_object_set_new(v, "zero_blocks", json_of_count(s->zero_blocks));
    json_object_set_new(v, "saturated_blocks", json_of_count(s->saturated_blocks));
    json_object_set_new(v, "lost_blocks", json_of_count(s->lost_blocks));
    json_object_set_new(v, "nonfinite_blocks", json_of_count(s->nonfinite_blocks));
    json_object_set_new(v, "least_scales", json_of_count(s->least_scales));
    json_object_set_new(v, "largest_scales", json_of_count(s->largest_scales));
    json_object_set_new(v, "scales", scales_json(s));
    return v;
}

json_t *block_group_json(const block_list *l, const group *g, int counts)
{
    json_t *all = json_array();
    for (size_t i = 0; i < g->n_blocks; i++)
        if (block_shows(l, g, i))
            json_array_append_new(all, recipe_json(&l->items[i], &g->blocks[i], g, counts));
    return all;
}

/* ---- CSV ---- */

static const char csv_titles[] =
    ",axis,spoilt,blocks,zero_blocks,saturated_blocks,lost_blocks,nonfinite_blocks,least_scales,"
    "largest_scales,zero_scales,nonfinite_scales,scale_min_log2,scale_max_log2";

void block_csv_titles(FILE *to)
{
    fputs(csv_titles, to);
}

void block_csv_cells(FILE *to, const block_list *l, const group *g, int i)
{
    if (i < 0) {
        for (const char *c = csv_titles; *c; c++)
            if (*c == ',')
                fputc(',', to);
        return;
    }
    const mpsim_block_stats *s = &g->blocks[i].stats;
    const uint64_t counts[] = {s->spoilt,      s->blocks,           s->zero_blocks,  s->saturated_blocks,
                               s->lost_blocks, s->nonfinite_blocks, s->least_scales, s->largest_scales,
                               s->scale_zero,  s->scale_nonfinite};
    int first, end;
    fprintf(to, ",%s", block_axis_name(l->items[i].axis));
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++)
        fprintf(to, ",%" PRIu64, counts[k]);
    scale_range(s, &first, &end);
    if (first == end)
        fputs(",,", to);
    else
        fprintf(to, ",%d,%d", first + MPSIM_SCALE_MIN, end - 1 + MPSIM_SCALE_MIN);
}

/* ---- text ---- */

const char *block_text_titles(int counts)
{
    return counts ? "|<recipe|<axis|>underflow|>saturated|>sat. blocks|>spoilt|>lost blocks|>scales"
                  : "|<recipe|<axis|>underflow|>saturated|>sat. blocks|>spoilt|>lost blocks|>scales|>SQNR dB";
}

/* A share, "0" without any. */
static void text_part(table *t, uint64_t part, uint64_t whole)
{
    char a[32];
    table_cell(t, "%s", part ? text_share(a, part, whole) : "0");
}

/* From the smallest to the largest, as powers of two. */
static void text_scales(table *t, const mpsim_block_stats *s)
{
    int first, end;
    scale_range(s, &first, &end);
    if (first == end)
        table_cell(t, "-");
    else if (first + 1 == end)
        table_cell(t, "2^%d", first + MPSIM_SCALE_MIN);
    else
        table_cell(t, "2^%d..2^%d", first + MPSIM_SCALE_MIN, end - 1 + MPSIM_SCALE_MIN);
}

static void text_sqnr(table *t, const block_sums *b, const group *g)
{
    const double sqnr = block_sqnr_db(b, g);
    const char *mark = block_left_out(b, g) ? "+" : "";
    if (b->stats.casts.compared == 0)
        table_cell(t, "-");
    else if (isfinite(sqnr))
        table_cell(t, "%.1f%s", sqnr, mark);
    else
        table_cell(t, "%s%s", sqnr > 0 ? "exact" : "-inf", mark);
}

void block_text_cells(table *t, const block_list *l, const group *g, size_t i, int counts)
{
    const block_sums *b = &g->blocks[i];
    const mpsim_block_stats *s = &b->stats;
    char a[32];
    int rows_alone = 1;
    for (size_t k = 0; k < l->count; k++)
        rows_alone &= l->items[k].axis == BLOCK_ROWS;
    table_cell(t, "%s", l->items[i].label);
    table_cell(t, "%s", rows_alone ? "" : block_axis_name(l->items[i].axis));
    text_part(t, s->underflow, b->elements);
    text_part(t, s->saturated, b->elements);
    text_part(t, s->saturated_blocks, s->blocks);
    table_cell(t, "%s", s->spoilt ? text_share(a, s->spoilt, b->elements) : "");
    table_cell(t, "%s", s->lost_blocks ? text_share(a, s->lost_blocks, s->blocks) : "");
    text_scales(t, s);
    if (!counts)
        text_sqnr(t, b, g);
}
