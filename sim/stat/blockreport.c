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

/* The bins from the first that is not empty to the last. */
static void range_of(const uint64_t *bins, int n, int *first, int *end)
{
    *first = 0;
    *end = n;
    while (*first < *end && bins[*first] == 0)
        ++*first;
    while (*end > *first && bins[*end - 1] == 0)
        --*end;
}

/* ---- JSON ---- */

void bins_put(jsonout *o, const uint64_t *bins, int n, int least)
{
    int first, end;
    range_of(bins, n, &first, &end);
    jsonout_integer(o, "first", first == end ? 0 : first + least);
    jsonout_begin(o, "counts", '[');
    for (int i = first; i < end; i++)
        jsonout_count(o, NULL, bins[i]);
    jsonout_end(o, ']');
}

static void put_scales(jsonout *o, const mpsim_block_stats *s)
{
    jsonout_begin(o, "scales", '{');
    jsonout_count(o, "zero", s->scale_zero);
    jsonout_count(o, "nonfinite", s->scale_nonfinite);
    bins_put(o, s->scales, MPSIM_SCALE_BINS, MPSIM_SCALE_MIN);
    jsonout_end(o, '}');
}

static void put_recipe(jsonout *o, const block_target *t, const block_sums *b, const group *g, int counts)
{
    const mpsim_block_stats *s = &b->stats;
    jsonout_begin(o, NULL, '{');
    jsonout_text(o, "recipe", t->label);
    jsonout_text(o, "axis", block_axis_name(t->axis));
    jsonout_count(o, "elements", b->elements);
    jsonout_count(o, "underflow", s->underflow);
    jsonout_count(o, "subnormal", s->casts.counts.subnormal);
    jsonout_count(o, "overflow", s->saturated);
    jsonout_count(o, "spoilt", s->spoilt);
    jsonout_count(o, "inexact", s->casts.counts.inexact);
    if (!counts) {
        jsonout_real(o, "sqnr_db", block_sqnr_db(b, g));
        jsonout_real(o, "mse", block_mse(b));
        jsonout_real(o, "max_rel_err", block_max_rel_err(b));
        jsonout_count(o, "compared", s->casts.compared);
    }
    jsonout_count(o, "blocks", s->blocks);
    jsonout_count(o, "zero_blocks", s->zero_blocks);
    jsonout_count(o, "saturated_blocks", s->saturated_blocks);
    jsonout_count(o, "lost_blocks", s->lost_blocks);
    jsonout_count(o, "nonfinite_blocks", s->nonfinite_blocks);
    jsonout_count(o, "least_scales", s->least_scales);
    jsonout_count(o, "largest_scales", s->largest_scales);
    put_scales(o, s);
    jsonout_end(o, '}');
}

void block_group_put(jsonout *o, const block_list *l, const group *g, int counts)
{
    jsonout_begin(o, "blocks", '[');
    for (size_t i = 0; i < g->n_blocks; i++)
        if (block_shows(l, g, i))
            put_recipe(o, &l->items[i], &g->blocks[i], g, counts);
    jsonout_end(o, ']');
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
    range_of(s->scales, MPSIM_SCALE_BINS, &first, &end);
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
    range_of(s->scales, MPSIM_SCALE_BINS, &first, &end);
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
