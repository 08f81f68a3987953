/* report.c -- see report.h. */
#include "report.h"

#include "blockreport.h"
#include "reportconfig.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- JSON ---- */

/* Nothing compared: nothing is known, which is not the error 0. */
static double max_rel_err(const mpsim_cast_stats *c)
{
    return c->compared ? c->max_rel_err : (double)NAN;
}

/* The errors of a cast. */
static void put_errors(jsonout *o, const mpsim_cast_stats *c, const mpsim_stats *s)
{
    jsonout_real(o, "sqnr_db", mpsim_cast_stats_sqnr_db(c, s));
    jsonout_real(o, "mse", mpsim_cast_stats_mse(c));
    jsonout_real(o, "max_rel_err", max_rel_err(c));
    jsonout_count(o, "compared", c->compared);
}

static void put_cast(jsonout *o, const group_cast *k)
{
    const mpsim_cast_stats *c = &k->stats;
    jsonout_text(o, "format", k->to->label);
    jsonout_real(o, "scale", k->scale);
    jsonout_count(o, "underflow", c->counts.underflow);
    jsonout_count(o, "subnormal", c->counts.subnormal);
    jsonout_count(o, "overflow", c->counts.overflow);
    jsonout_count(o, "inexact", c->counts.inexact);
}

/* Bins from the first to the last that is not empty. */
static void put_histogram(jsonout *o, const mpsim_histogram *h)
{
    jsonout_begin(o, "histogram", '{');
    jsonout_count(o, "zero", h->zero);
    jsonout_count(o, "inf", h->inf);
    jsonout_count(o, "nan", h->nan);
    bins_put(o, h->bin, MPSIM_HISTOGRAM_BINS, MPSIM_HISTOGRAM_MIN);
    jsonout_end(o, '}');
}

static void put_label(jsonout *o, const group_label *l)
{
    if (strcmp(l->level, "tensor") == 0) {
        jsonout_text(o, "file", l->file);
        jsonout_text(o, "name", l->name);
    }
    if (strcmp(l->level, "tensor") == 0 || strcmp(l->level, "kind") == 0)
        jsonout_text(o, "kind", l->kind);
    if ((strcmp(l->level, "tensor") == 0 || strcmp(l->level, "step") == 0) && l->step >= 0)
        jsonout_integer(o, "step", l->step);
    else if (strcmp(l->level, "tensor") == 0 || strcmp(l->level, "step") == 0)
        jsonout_null(o, "step");
    if (l->tensor) {
        jsonout_text(o, "dtype", l->tensor->dtype);
        jsonout_begin(o, "shape", '[');
        for (size_t i = 0; i < l->tensor->rank; i++)
            jsonout_count(o, NULL, l->tensor->shape[i]);
        jsonout_end(o, ']');
    }
}

static void put_group(jsonout *o, const statreport *r, const group_label *l, const group *g)
{
    const mpsim_stats *s = &g->stats;
    put_label(o, l);
    if (!l->tensor)
        jsonout_count(o, "tensors", g->tensors);
    jsonout_count(o, "count", s->count);
    jsonout_count(o, "zero", s->zero);
    jsonout_count(o, "nan", s->nan);
    jsonout_count(o, "inf", s->inf);
    if (r->roundoff)
        jsonout_count(o, "roundoff", g->roundoff);
    jsonout_real(o, "amax", s->amax);
    jsonout_real(o, "amin", s->amin);
    if (!r->counts) {
        jsonout_real(o, "mean", mpsim_stats_mean(s));
        jsonout_real(o, "l2", mpsim_stats_l2(s));
    }
    jsonout_begin(o, "formats", '[');
    for (size_t i = 0; i < group_casts(g); i++) {
        group_cast c;
        group_cast_at(g, r->targets, i, &c);
        jsonout_begin(o, NULL, '{');
        put_cast(o, &c);
        if (!r->counts)
            put_errors(o, &c.stats, s);
        jsonout_end(o, '}');
    }
    jsonout_end(o, ']');
    if (g->n_blocks)
        block_group_put(o, &r->targets->blocks, g, r->counts);
    if (g->histogram)
        put_histogram(o, g->histogram);
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

/* The head: what was asked for, and what its words mean. */
static void put_head(const statreport *r, const stat_settings *settings, const char *version)
{
    const target_list *targets = r->targets;
    jsonout o = {r->file, 0, 0};
    if (r->style == REPORT_NDJSON) {
        jsonout_begin(&o, NULL, '{');
        jsonout_text(&o, "schema", "mpsim.stat/1");
        jsonout_text(&o, "level", "config");
        jsonout_text(&o, "mpsim", version);
        config_settings(&o, settings, targets, 1);
        jsonout_end(&o, '}');
        fputc('\n', r->file);
        return;
    }
    fprintf(r->file, "{\"schema\": \"mpsim.stat/1\",\n\"mpsim\": \"%s\",\n\"config\": ", version);
    jsonout_begin(&o, NULL, '{');
    config_settings(&o, settings, targets, 0);
    jsonout_end(&o, '}');
    fputs(",\n\"formats\": ", r->file);
    config_formats(&o, NULL, targets);
    fputs(",\n", r->file);
    if (targets->blocks.count) {
        fputs("\"recipes\": ", r->file);
        config_recipes(&o, NULL, &targets->blocks);
        fputs(",\n", r->file);
    }
}

void statreport_begin(statreport *r, FILE *to, report_style style, const target_list *targets,
                      const stat_settings *settings, const char *version)
{
    const int counts = settings->counts;
    memset(r, 0, sizeof *r);
    r->file = to;
    r->style = style;
    r->targets = targets;
    r->counts = counts;
    r->roundoff = settings->without_roundoff;
    if (style == REPORT_CSV) {
        fputs(counts ? csv_header_of_counts : csv_header, to);
        if (targets->blocks.count)
            block_csv_titles(to);
        fputc('\n', to);
    }
    if (style == REPORT_JSON || style == REPORT_NDJSON)
        put_head(r, settings, version);
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
    jsonout o = {r->file, 0, 0};
    switch (r->style) {
    case REPORT_JSON:
    case REPORT_NDJSON:
        if (r->style == REPORT_JSON)
            fputs(r->in_list++ ? ",\n " : "\n ", r->file);
        jsonout_begin(&o, NULL, '{');
        if (r->style == REPORT_NDJSON)
            jsonout_text(&o, "level", l->level);
        put_group(&o, r, l, g);
        jsonout_end(&o, '}');
        if (r->style == REPORT_NDJSON)
            fputc('\n', r->file);
        break;
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

void statreport_total(statreport *r, const group *g, int failed, const unread_list *unread)
{
    const group_label l = {.level = "total", .step = -1};
    if (r->style == REPORT_TEXT || r->style == REPORT_CSV) {
        statreport_entry(r, &l, g);
        return;
    }
    const int lines = r->style == REPORT_NDJSON;
    jsonout o = {r->file, 0, 0};
    fputs(lines ? "" : "\"total\": ", r->file);
    jsonout_begin(&o, NULL, '{');
    if (lines)
        jsonout_text(&o, "level", "total");
    put_group(&o, r, &l, g);
    jsonout_integer(&o, "failed_files", failed);
    unread_put(&o, unread);
    if (r->partial && lines)
        jsonout_boolean(&o, "partial", 1);
    jsonout_end(&o, '}');
    fputs(lines ? "\n" : r->partial ? ",\n\"partial\": true}\n" : "}\n", r->file);
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
