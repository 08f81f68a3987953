/* report.c -- see report.h. */
#include "report.h"

#include "../cli/input.h"
#include "blockreport.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- JSON ---- */

static json_t *text_or_null(const char *s)
{
    return s ? json_string(s) : json_null();
}

/* Nothing compared: nothing is known, which is not the error 0. */
static double max_rel_err(const mpsim_cast_stats *c)
{
    return c->compared ? c->max_rel_err : (double)NAN;
}

/* The errors of a cast. */
static void put_errors(json_t *v, const mpsim_cast_stats *c, const mpsim_stats *s)
{
    json_object_set_new(v, "sqnr_db", json_of_double(mpsim_cast_stats_sqnr_db(c, s)));
    json_object_set_new(v, "mse", json_of_double(mpsim_cast_stats_mse(c)));
    json_object_set_new(v, "max_rel_err", json_of_double(max_rel_err(c)));
    json_object_set_new(v, "compared", json_of_count(c->compared));
}

static json_t *cast_json(const target *t, double scale, const mpsim_cast_stats *c)
{
    json_t *v = json_object();
    json_object_set_new(v, "format", json_string(t->label));
    json_object_set_new(v, "scale", json_of_double(scale));
    json_object_set_new(v, "underflow", json_of_count(c->counts.underflow));
    json_object_set_new(v, "subnormal", json_of_count(c->counts.subnormal));
    json_object_set_new(v, "overflow", json_of_count(c->counts.overflow));
    json_object_set_new(v, "inexact", json_of_count(c->counts.inexact));
    return v;
}

/* Bins from the first to the last that is not empty. */
static json_t *histogram_json(const mpsim_histogram *h)
{
    int first = 0, end = MPSIM_HISTOGRAM_BINS;
    while (first < end && h->bin[first] == 0)
        first++;
    while (end > first && h->bin[end - 1] == 0)
        end--;
    json_t *v = json_object(), *counts = json_array();
    for (int i = first; i < end; i++)
        json_array_append_new(counts, json_of_count(h->bin[i]));
    json_object_set_new(v, "zero", json_of_count(h->zero));
    json_object_set_new(v, "inf", json_of_count(h->inf));
    json_object_set_new(v, "nan", json_of_count(h->nan));
    json_object_set_new(v, "first", json_integer(first == end ? 0 : first + MPSIM_HISTOGRAM_MIN));
    json_object_set_new(v, "counts", counts);
    return v;
}

static json_t *label_json(const group_label *l)
{
    json_t *v = json_object();
    if (strcmp(l->level, "tensor") == 0) {
        json_object_set_new(v, "file", json_of_path(l->file));
        json_object_set_new(v, "name", json_string(l->name));
    }
    if (strcmp(l->level, "tensor") == 0 || strcmp(l->level, "kind") == 0)
        json_object_set_new(v, "kind", text_or_null(l->kind));
    if (strcmp(l->level, "tensor") == 0 || strcmp(l->level, "step") == 0)
        json_object_set_new(v, "step", l->step >= 0 ? json_integer(l->step) : json_null());
    if (l->tensor) {
        json_t *shape = json_array();
        for (size_t i = 0; i < l->tensor->rank; i++)
            json_array_append_new(shape, json_of_count(l->tensor->shape[i]));
        json_object_set_new(v, "dtype", json_string(l->tensor->dtype));
        json_object_set_new(v, "shape", shape);
    }
    return v;
}

static json_t *group_json(const statreport *r, const group_label *l, const group *g)
{
    const mpsim_stats *s = &g->stats;
    json_t *v = label_json(l), *casts = json_array();
    group_cast c;
    if (!l->tensor)
        json_object_set_new(v, "tensors", json_of_count(g->tensors));
    json_object_set_new(v, "count", json_of_count(s->count));
    json_object_set_new(v, "zero", json_of_count(s->zero));
    json_object_set_new(v, "nan", json_of_count(s->nan));
    json_object_set_new(v, "inf", json_of_count(s->inf));
    json_object_set_new(v, "amax", json_of_double(s->amax));
    json_object_set_new(v, "amin", json_of_double(s->amin));
    if (!r->counts) {
        json_object_set_new(v, "mean", json_of_double(mpsim_stats_mean(s)));
        json_object_set_new(v, "l2", json_of_double(mpsim_stats_l2(s)));
    }
    for (size_t i = 0; i < group_casts(g); i++) {
        group_cast_at(g, r->targets, i, &c);
        json_t *cast = cast_json(c.to, c.scale, &c.stats);
        if (!r->counts)
            put_errors(cast, &c.stats, s);
        json_array_append_new(casts, cast);
    }
    json_object_set_new(v, "formats", casts);
    if (g->n_blocks)
        json_object_set_new(v, "blocks", block_group_json(&r->targets->blocks, g, r->counts));
    if (g->histogram)
        json_object_set_new(v, "histogram", histogram_json(g->histogram));
    return v;
}

/* What the format names of the report mean, so that it can be read without mpsim. */
static json_t *formats_json(const target_list *l)
{
    json_t *all = json_array();
    for (size_t i = 0; i < l->formats; i++) {
        const target *t = target_of_format(l, i);
        const mpsim_format *f = &t->format;
        json_t *v = json_object();
        json_object_set_new(v, "name", json_string(t->label));
        json_object_set_new(v, "bits", json_integer(f->bits));
        json_object_set_new(v, "exponent_bits", json_integer(f->ebits));
        json_object_set_new(v, "significand_bits", json_integer(f->mbits));
        json_object_set_new(v, "bias", json_integer(f->bias));
        json_object_set_new(v, "max", json_of_double(mpsim_format_max(f)));
        json_object_set_new(v, "min_normal", json_of_double(mpsim_format_min_normal(f)));
        json_object_set_new(v, "min_positive", json_of_double(mpsim_format_min_positive(f)));
        json_object_set_new(v, "epsilon", json_of_double(mpsim_format_epsilon(f)));
        json_object_set_new(v, "preset", json_string(t->preset));
        json_array_append_new(all, v);
    }
    return all;
}

/* ---- CSV: one line for each group and cast ---- */

static const char csv_header[] =
    "level,file,name,kind,step,dtype,shape,count,zero,nan,inf,amax,amin,mean,l2,format,scale,"
    "underflow,subnormal,overflow,inexact,sqnr_db,mse,max_rel_err,compared";
static const char csv_header_of_counts[] =
    "level,file,name,kind,step,dtype,shape,count,zero,nan,inf,amax,amin,format,scale,"
    "underflow,subnormal,overflow,inexact";

static void csv_optional(FILE *to, const char *s)
{
    fputc(',', to);
    csv_text(to, s ? s : "");
}

static void csv_number(FILE *to, double x)
{
    fputc(',', to);
    csv_double(to, x);
}

/* The cells of a group, which all its lines begin with. */
static void csv_group(const statreport *r, const group_label *l, const group *g)
{
    FILE *to = r->file;
    const mpsim_stats *s = &g->stats;
    csv_text(to, l->level);
    csv_optional(to, l->file);
    csv_optional(to, l->name);
    csv_optional(to, l->kind);
    if (l->step >= 0)
        fprintf(to, ",%" PRId64, l->step);
    else
        fputc(',', to);
    csv_optional(to, l->dtype);
    csv_optional(to, l->shape);
    fprintf(to, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, s->count, s->zero, s->nan, s->inf);
    csv_number(to, s->amax);
    csv_number(to, s->amin);
    if (!r->counts) {
        csv_number(to, mpsim_stats_mean(s));
        csv_number(to, mpsim_stats_l2(s));
    }
}

/* What a cast, or a recipe, loses. */
static void csv_losses(const statreport *r, uint64_t underflow, uint64_t overflow, const mpsim_cast_stats *c,
                       const mpsim_stats *s)
{
    FILE *to = r->file;
    fprintf(to, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, underflow, c->counts.subnormal, overflow,
            c->counts.inexact);
    if (r->counts)
        return;
    csv_number(to, mpsim_cast_stats_sqnr_db(c, s));
    csv_number(to, mpsim_cast_stats_mse(c));
    csv_number(to, max_rel_err(c));
    fprintf(to, ",%" PRIu64, c->compared);
}

static void group_csv(const statreport *r, const group_label *l, const group *g)
{
    const block_list *blocks = &r->targets->blocks;
    group_cast c;
    for (size_t i = 0; i < group_casts(g); i++) {
        group_cast_at(g, r->targets, i, &c);
        csv_group(r, l, g);
        csv_optional(r->file, c.to->label);
        csv_number(r->file, c.scale);
        csv_losses(r, c.stats.counts.underflow, c.stats.counts.overflow, &c.stats, &g->stats);
        if (blocks->count)
            block_csv_cells(r->file, blocks, g, -1);
        fputc('\n', r->file);
    }
    for (size_t i = 0; i < g->n_blocks; i++) {
        if (!block_shows(blocks, g, i))
            continue;
        csv_group(r, l, g);
        csv_optional(r->file, blocks->items[i].label);
        fputc(',', r->file);
        const mpsim_block_stats *b = &g->blocks[i].stats;
        csv_losses(r, b->underflow, b->saturated, &b->casts, &g->stats);
        block_csv_cells(r->file, blocks, g, (int)i);
        fputc('\n', r->file);
    }
}

/* ---- text: what the tensors hold, and what each cast loses of it ---- */

/* The first cells of a row: two for a tensor, else one. Empty unless `show`. */
static void text_label(table *t, const group_label *l, int show)
{
    char step[32] = "(none)", name[512] = "";
    if (l->step >= 0)
        snprintf(step, sizeof step, "%" PRId64, l->step);
    if (strcmp(l->level, "tensor") == 0) {
        escape_text(name, sizeof name, l->name[0] ? l->name : l->file);
        table_cell(t, "%s", show ? name : "");
        table_cell(t, "%s", show && l->step >= 0 ? step : "");
    } else {
        table_cell(t, "%s",
                   !show                           ? ""
                   : strcmp(l->level, "kind") == 0 ? (l->kind ? l->kind : "(none)")
                   : strcmp(l->level, "step") == 0 ? step
                                                   : "total");
    }
}

/* A count and its share; both empty if it is zero. */
static void text_counted(table *t, uint64_t part, uint64_t whole)
{
    char count[32], share[32];
    table_cell(t, "%s", part ? text_count(count, part) : "0");
    table_cell(t, "%s", part ? text_share(share, part, whole) : "");
}

/* A count that is rarely there: empty if it is zero, so that the column may vanish. */
static void text_rare(table *t, uint64_t n)
{
    char count[32];
    table_cell(t, "%s", n ? text_count(count, n) : "");
}

/* SQNR; with a star where it leaves out elements that became Inf or NaN. */
static void text_sqnr(statreport *r, table *t, const mpsim_cast_stats *c, const mpsim_stats *s)
{
    const double sqnr = mpsim_cast_stats_sqnr_db(c, s);
    const int left_out = c->compared < s->count - s->nan - s->inf;
    const char *mark = left_out ? "*" : "";
    r->marked |= left_out && c->compared;
    if (c->compared == 0)
        table_cell(t, "-");
    else if (isfinite(sqnr))
        table_cell(t, "%.1f%s", sqnr, mark);
    else
        table_cell(t, "%s%s", sqnr > 0 ? "exact" : "-inf", mark);
}

int statreport_is_broken(const group *g)
{
    return g->stats.nan > 0 || g->stats.inf > 0;
}

static void blocks_text(statreport *r, const group_label *l, const group *g, table *t)
{
    const block_list *blocks = &r->targets->blocks;
    int shown = 0;
    for (size_t i = 0; i < g->n_blocks; i++) {
        if (!block_shows(blocks, g, i))
            continue;
        text_label(t, l, shown++ == 0);
        block_text_cells(t, blocks, g, i, r->counts);
        r->marked_blocks |= !r->counts && block_left_out(&g->blocks[i], g);
    }
}

static void group_text(statreport *r, const group_label *l, const group *g)
{
    char a[32];
    const mpsim_stats *s = &g->stats;
    const int first = l->tensor && statreport_is_broken(g);
    table *const holds = first ? r->first_holds : r->holds;
    table *const t = first ? r->first_loses : r->loses;
    int scaled = 0;
    text_label(holds, l, 1);
    table_cell(holds, "%s", l->tensor ? "" : text_count(a, g->tensors));
    table_cell(holds, "%s", text_count(a, s->count));
    table_cell(holds, "%s", text_share(a, s->zero, s->count));
    text_rare(holds, s->nan);
    text_rare(holds, s->inf);
    table_cell(holds, "%s", text_number(a, s->amin));
    table_cell(holds, "%s", text_number(a, s->amax));
    if (!r->counts) {
        table_cell(holds, "%s", text_number(a, mpsim_stats_mean(s)));
        table_cell(holds, "%s", text_number(a, mpsim_stats_l2(s)));
    }
    for (size_t i = 0; i < r->targets->count; i++)
        scaled |= r->targets->items[i].rounding.scale != 1;
    for (size_t i = 0; i < group_casts(g); i++) {
        group_cast k;
        const mpsim_cast_stats *c = &k.stats;
        group_cast_at(g, r->targets, i, &k);
        text_label(t, l, i == 0);
        table_cell(t, "%s", k.to->label);
        table_cell(t, "%s", scaled ? text_scale(a, k.scale) : "");
        text_counted(t, c->counts.underflow, s->count);
        text_counted(t, c->counts.subnormal, s->count);
        text_counted(t, c->counts.overflow, s->count);
        table_cell(t, "%s", text_share(a, c->counts.inexact, s->count));
        if (!r->counts) {
            text_sqnr(r, t, c, s);
            table_cell(t, "%s", c->compared ? text_number(a, c->max_rel_err) : "-");
        }
    }
    blocks_text(r, l, g, first ? r->first_blocks : r->blocks);
}

/* ---- the report ---- */

void statreport_begin(statreport *r, FILE *to, report_style style, const target_list *targets, int counts,
                      json_t *config)
{
    memset(r, 0, sizeof *r);
    r->file = to;
    r->style = style;
    r->targets = targets;
    r->counts = counts;
    if (style == REPORT_CSV) {
        fputs(counts ? csv_header_of_counts : csv_header, to);
        if (targets->blocks.count)
            block_csv_titles(to);
        fputc('\n', to);
    }
    if (style == REPORT_TEXT || style == REPORT_CSV) {
        json_decref(config);
        return;
    }
    json_t *formats = formats_json(targets), *recipes = block_recipes_json(&targets->blocks);
    if (style == REPORT_NDJSON) {
        json_t *v = json_object();
        json_object_set_new(v, "schema", json_string("mpsim.stat/1"));
        json_object_set_new(v, "level", json_string("config"));
        json_object_update(v, config);
        json_object_set_new(v, "formats", formats);
        if (targets->blocks.count)
            json_object_set(v, "recipes", recipes);
        json_decref(recipes);
        json_decref(config);
        json_write(to, v);
        fputc('\n', to);
    } else {
        fputs("{\"schema\": \"mpsim.stat/1\",\n\"config\": ", to);
        json_write(to, config);
        fputs(",\n\"formats\": ", to);
        json_write(to, formats);
        fputs(",\n", to);
        if (targets->blocks.count) {
            fputs("\"recipes\": ", to);
            json_write(to, json_incref(recipes));
            fputs(",\n", to);
        }
        json_decref(recipes);
    }
}

void statreport_list(statreport *r, const char *name, const char *title)
{
    r->in_list = 0;
    if (r->style == REPORT_JSON) {
        fprintf(r->file, "\"%s\": [", name);
    } else if (r->style == REPORT_TEXT) {
        const char *key = strcmp(name, "tensors") == 0 ? "tensor|>step"
                          : strcmp(name, "kinds") == 0 ? "kind"
                          : strcmp(name, "steps") == 0 ? "step"
                                                       : "";
        char columns[256];
        r->title = title;
        snprintf(columns, sizeof columns, "<%s|>tensors|>elements|>zero|>NaN|>Inf|>amin|>amax%s", key,
                 r->counts ? "" : "|>mean|>l2");
        r->holds = table_new(columns);
        r->first_holds = table_new(columns);
        snprintf(columns, sizeof columns, "<%s|<format|>scale|>underflow|>|>subnormal|>|>overflow|>|>inexact%s", key,
                 r->counts ? "" : "|>SQNR dB|>max rel err");
        r->loses = table_new(columns);
        r->first_loses = table_new(columns);
        snprintf(columns, sizeof columns, "<%s%s", key, block_text_titles(r->counts));
        r->blocks = table_new(columns);
        r->first_blocks = table_new(columns);
    }
}

void statreport_entry(statreport *r, const group_label *l, const group *g)
{
    switch (r->style) {
    case REPORT_JSON:
        json_item(r->file, REPORT_JSON, r->in_list++, group_json(r, l, g));
        break;
    case REPORT_NDJSON: {
        json_t *v = json_object();
        json_object_set_new(v, "level", json_string(l->level));
        json_t *entry = group_json(r, l, g);
        json_object_update(v, entry);
        json_decref(entry);
        json_write(r->file, v);
        fputc('\n', r->file);
        break;
    }
    case REPORT_CSV:
        group_csv(r, l, g);
        break;
    case REPORT_TEXT:
        group_text(r, l, g);
        break;
    }
}

void statreport_list_end(statreport *r)
{
    if (r->style == REPORT_JSON)
        fputs("],\n", r->file);
    if (r->style == REPORT_TEXT) {
        fprintf(r->file, "\n%s\n\n", r->title);
        table_move(r->first_holds, r->holds);
        table_move(r->first_loses, r->loses);
        table_print(r->first_holds, r->file, "  ");
        if (r->targets->count) {
            fputc('\n', r->file);
            table_print(r->first_loses, r->file, "  ");
        }
        if (r->targets->blocks.count) {
            table_move(r->first_blocks, r->blocks);
            fputc('\n', r->file);
            table_print(r->first_blocks, r->file, "  ");
        }
        statreport_list_drop(r);
    }
}

void statreport_list_drop(statreport *r)
{
    table_free(r->holds);
    table_free(r->loses);
    table_free(r->first_holds);
    table_free(r->first_loses);
    table_free(r->blocks);
    table_free(r->first_blocks);
    r->holds = r->loses = r->blocks = r->first_holds = r->first_loses = r->first_blocks = NULL;
}

void statreport_list_broken(statreport *r, uint64_t left_out)
{
    char n[32];
    if (table_rows(r->first_holds)) {
        fputs("\nTensors with NaN or Inf\n\n", r->file);
        table_print(r->first_holds, r->file, "  ");
        if (left_out)
            fprintf(r->file, "  and %s more: -t lists all\n", text_count(n, left_out));
    }
    statreport_list_drop(r);
}

void statreport_total(statreport *r, const group *g, int failed)
{
    const group_label l = {.level = "total", .step = -1};
    if (r->style == REPORT_TEXT || r->style == REPORT_CSV) {
        statreport_entry(r, &l, g);
        return;
    }
    json_t *v = r->style == REPORT_JSON ? json_object() : json_pack("{s:s}", "level", "total");
    json_t *entry = group_json(r, &l, g);
    json_object_update(v, entry);
    json_decref(entry);
    json_object_set_new(v, "failed_files", json_integer(failed));
    if (r->partial && r->style == REPORT_NDJSON)
        json_object_set_new(v, "partial", json_true());
    fputs(r->style == REPORT_JSON ? "\"total\": " : "", r->file);
    json_write(r->file, v);
    fputs(r->style != REPORT_JSON ? "\n" : r->partial ? ",\n\"partial\": true}\n" : "}\n", r->file);
}

void statreport_end(statreport *r)
{
    if (r->marked)
        fputs("\n* without the elements that became Inf or NaN (counted as overflow)\n", r->file);
    if (r->marked_blocks)
        fputs("\n+ without finite elements that their block made Inf or NaN (spoilt)\n", r->file);
    if (r->partial && r->style == REPORT_CSV) {
        fputs("partial", r->file);
        for (const char *c = r->counts ? csv_header_of_counts : csv_header; *c; c++)
            if (*c == ',')
                fputc(',', r->file);
        if (r->targets->blocks.count)
            block_csv_cells(r->file, &r->targets->blocks, NULL, -1);
        fputc('\n', r->file);
    }
    statreport_list_drop(r);
}
