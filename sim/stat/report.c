/* report.c -- see report.h. */
#include "report.h"

#include <inttypes.h>

/* ---- the document ---- */

static const record_kind *const lines[] = {&stat_config_record, &stat_tensor_record, &stat_kind_record,
                                           &stat_step_record,   &stat_total_record,  NULL};

#define AT(member) offsetof(stat_document, member)
#define ROWS(KEY, RECORD_OF) FIELD(LIST, KEY, IN_JSON | FIELD_STREAM, 0, NULL, .record = &RECORD_OF)
static const record_field document_fields[] = {
    FIELD(RECORD, "config", IN_JSON | FIELD_POINTER, AT(config), NULL, .record = &stat_config_record),
    FIELD(LIST, "formats", IN_JSON, AT(formats), "What the names of formats mean.", .of = AT(n_formats),
          .record = &stat_format_record),
    FIELD(LIST, "recipes", IN_JSON | FIELD_IF | FIELD_OPTIONAL, AT(recipes), "What the names of recipes mean.",
          .of = AT(n_recipes), .record = &recipe_record),
    FIELD(LIST, "tensors", IN_JSON | FIELD_STREAM, 0, NULL, .record = &stat_tensor_record, .rows = &stat_csv_record,
          .lines = lines),
    ROWS("kinds", stat_kind_record),
    ROWS("steps", stat_step_record),
    FIELD(RECORD, "total", IN_JSON | FIELD_POINTER, AT(total), NULL, .record = &stat_total_record),
    FIELD(BOOLEAN, "partial", IN_JSON | FIELD_OPTIONAL, AT(partial),
          "A signal ended the command before all files were read."),
    {0}};
#undef AT
static const record_kind document = {"document", NULL, sizeof(stat_document), document_fields};

const report_kind stat_kind = {
    "mpsim.stat/1", "mpsim stat: statistics of tensors",
    "What tensors hold and what casts to other formats would lose, by tensor, kind of tensor, training step, and in total. $defs/line is "
    "a line of --ndjson; only its first line names the schema.",
    &document};

/* ---- tables for people ---- */

/* The first cells of a row. */
static stat_shown shown(const stat_row *row)
{
    stat_shown s = {"", ""};
    if (row->step >= 0)
        snprintf(s.step, sizeof s.step, "%" PRId64, row->step);
    const char *const names[] = {
        [STAT_KIND] = row->kind, [STAT_STEP] = *s.step ? s.step : NULL, [STAT_TOTAL] = "total"};
    if (row->level == STAT_TENSOR)
        escape_text(s.name, sizeof s.name, row->name[0] ? row->name : row->file);
    else
        snprintf(s.name, sizeof s.name, "%s", names[row->level] ? names[row->level] : "(none)");
    return s;
}

int stat_report_is_broken(const group *g)
{
    return g->stats.nan > 0 || g->stats.inf > 0;
}

/* What is lost, a line each; the first one says of what. */
static void put_losses(statreport *r, int which, table *t, const record_kind *record, const stat_shown *label,
                       const stat_loss *losses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const stat_line line = {.label = i ? NULL : label, .loss = &losses[i]};
        record_cells(t, record, &line, r->titles | (which == STAT_LOSES ? SHOW_CASTS : SHOW_RECIPES));
        r->marked[which] |= losses[i].sums && losses[i].left_out && (which == STAT_BLOCKS || losses[i].compared);
    }
}

static void put_text(statreport *r, const stat_row *row)
{
    table *const *const to = row->tensor && stat_report_is_broken(row->group) ? r->first : r->tables;
    const stat_shown label = shown(row);
    const stat_line holds = {.label = &label, .row = row};
    record_cells(to[STAT_HOLDS], &stat_holds_record, &holds, r->titles);
    put_losses(r, STAT_LOSES, to[STAT_LOSES], &stat_loses_record, &label, row->casts, row->n_casts);
    put_losses(r, STAT_BLOCKS, to[STAT_BLOCKS], &stat_blocks_record, &label, row->recipes, row->n_recipes);
}

static void make_tables(const statreport *r, table *to[STAT_TABLES])
{
    to[STAT_HOLDS] = record_table(&stat_holds_record, r->titles);
    to[STAT_LOSES] = record_table(&stat_loses_record, r->titles | SHOW_CASTS);
    to[STAT_BLOCKS] = record_table(&stat_blocks_record, r->titles | SHOW_RECIPES);
}

/* ---- CSV: one line for each group and cast ---- */

static void put_csv(statreport *r, const stat_row *row)
{
    for (size_t i = 0; i < row->n_casts + row->n_recipes; i++) {
        const stat_line line = {.row = row,
                                .loss = i < row->n_casts ? &row->casts[i] : &row->recipes[i - row->n_casts]};
        record_row_of(&r->w, &stat_csv_record, &line);
    }
}

/* ---- the report ---- */

/* What is shown but for titles of labels: scales where there are some, axes where recipes have several. */
static unsigned shows_of(const target_list *l, int counts)
{
    unsigned shows = counts ? 0 : SHOW_SUMS;
    for (size_t i = 0; i < l->count; i++)
        shows |= l->items[i].rounding.scale != 1 ? SHOW_SCALES : 0;
    for (size_t i = 0; i < l->blocks.count; i++)
        shows |= l->blocks.items[i].axis != BLOCK_ROWS ? SHOW_AXES : 0;
    return shows;
}

void stat_report_begin(statreport *r, FILE *to, const record_sink *sink, report_style style, const target_list *targets,
                       const stat_config *config)
{
    *r = (statreport){.document = {.config = config,
                                   .formats = config->formats,
                                   .recipes = config->recipes,
                                   .n_formats = config->n_formats,
                                   .n_recipes = config->n_recipes,
                                   .partial = -1},
                      .targets = targets};
    r->shows = shows_of(targets, config->counts > 0);
    r->w = (record_writer){.kind = &stat_kind, .to = to, .sink = sink, .style = style, .version = config->version};
    r->w.shows = r->shows | SHOW_CASTS | SHOW_SCALES | (targets->blocks.count ? SHOW_RECIPES : 0);
    if (style == REPORT_NDJSON)
        record_row_of(&r->w, &stat_config_record, config);
    if (style != REPORT_TEXT) {
        r->w.document = &r->document;
        record_begin(&r->w);
    }
}

void stat_report_list(statreport *r, stat_level level, const char *title)
{
    static const unsigned labels[STAT_LEVELS] = {SHOW_TENSORS, SHOW_KINDS, SHOW_STEPS, SHOW_TOTAL};
    if (r->w.style != REPORT_TEXT && level != STAT_TENSOR)
        record_next(&r->w);
    if (r->w.style != REPORT_TEXT)
        return;
    r->title = title;
    r->titles = r->shows | labels[level];
    make_tables(r, r->tables);
    make_tables(r, r->first);
}

void stat_report_entry(statreport *r, const stat_row *row)
{
    if (r->w.style == REPORT_CSV)
        put_csv(r, row);
    else if (r->w.style == REPORT_TEXT)
        put_text(r, row);
    else
        record_row_of(&r->w, stat_level_records[row->level], row);
}

void stat_report_list_end(statreport *r)
{
    const size_t there[STAT_TABLES] = {1, r->targets->count, r->targets->blocks.count};
    if (r->w.style != REPORT_TEXT)
        return;
    fprintf(r->w.to, "\n%s\n", r->title);
    for (int i = 0; i < STAT_TABLES; i++) {
        table_move(r->first[i], r->tables[i]);
        if (there[i]) {
            fputc('\n', r->w.to);
            table_print(r->first[i], r->w.to, "  ");
        }
    }
    stat_report_list_drop(r);
}

void stat_report_list_drop(statreport *r)
{
    for (int i = 0; i < STAT_TABLES; i++) {
        table_free(r->tables[i]);
        table_free(r->first[i]);
        r->tables[i] = r->first[i] = NULL;
    }
}

void stat_report_list_broken(statreport *r, uint64_t left_out)
{
    char n[32];
    if (table_rows(r->first[STAT_HOLDS])) {
        fputs("\nTensors with NaN or Inf\n\n", r->w.to);
        table_print(r->first[STAT_HOLDS], r->w.to, "  ");
        if (left_out)
            fprintf(r->w.to, "  and %s more: -t lists all\n", text_count(n, left_out));
    }
    stat_report_list_drop(r);
}

void stat_report_total(statreport *r, const stat_row *row)
{
    r->document.total = row;
    if (r->w.style != REPORT_JSON)
        stat_report_entry(r, row);
}

void stat_report_end(statreport *r, int partial)
{
    const stat_row none = {.word = "partial", .step = -1};
    const stat_line line = {.row = &none};
    if (r->marked[STAT_LOSES])
        fputs("\n* without the elements that became Inf or NaN (counted as overflow)\n", r->w.to);
    if (r->marked[STAT_BLOCKS])
        fputs("\n+ without finite elements that their block made Inf or NaN (spoilt)\n", r->w.to);
    if (partial && r->w.style == REPORT_CSV)
        record_row_of(&r->w, &stat_csv_record, &line);
    r->document.partial = partial ? 1 : -1;
    if (r->w.style == REPORT_JSON)
        record_end(&r->w);
    stat_report_list_drop(r);
}
