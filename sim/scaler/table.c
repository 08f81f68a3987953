/* table.c -- see table.h. */
#include "table.h"

#include "../cli/options.h"
#include "../text/escape.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const growth_rules[] = {"counter", "interval", "multiple", NULL};
static const char *const arithmetics[] = {"f32-f64", "f32", "f64", NULL};
static const char *const floor_rules[] = {"clamp", "raise", "stop", NULL};
static const char *const orders[] = {"after-step", "before-step", "before-unscale", NULL};
static const char *const unscales[] = {"reciprocal", "divide", "rounded", NULL};
static const char *const unscaling[] = {"the reciprocal", "division",
                                        "the reciprocal, rounded to the gradient's dtype"};
static const char *const checks[] = {"elements", "norm", NULL};
/* by sets of MPSIM_REFILL_* */
static const char *const refills[] = {"never",   "clean",         "growth",         "clean+growth",
                                      "backoff", "clean+backoff", "growth+backoff", "clean+growth+backoff",
                                      NULL};
static const char *const digits[] = {"0", "1", NULL};

/* ---- fields ---- */

#define AT(member) offsetof(mpsim_scaler_config, member)
static const record_field config_fields[] = {
    FIELD(CHARS, "row", IN_TREE, AT(name), "The row of the table that the configuration comes from."),
    FIELD(REAL, "init", IN_TREE, AT(init), "The first scale."),
    FIELD(REAL, "growth", IN_TREE, AT(growth), "The factor of growth."),
    FIELD(REAL, "backoff", IN_TREE, AT(backoff), "The factor of backing off."),
    FIELD(COUNT, "window", IN_TREE, AT(window), "Clean steps until growth."),
    FIELD(COUNT32, "hysteresis", IN_TREE, AT(hysteresis),
          "The overflow that backs off, counted from 1; overflows before it are tolerated."),
    FIELD(REAL, "floor", IN_TREE, AT(floor), "The smallest scale; 0: none."),
    FIELD(REAL, "ceiling", IN_TREE, AT(ceiling), "The largest scale; Infinity: none."),
    FIELD(
        REAL, "tolerance", IN_TREE, AT(tolerance),
        "Share of overflows among the steps since the last change of the scale at which the scale backs off; 0: always "
        "(fairseq)."),
    FIELD(REAL, "threshold", IN_TREE, AT(threshold), "The scale at which backing off stops; 0: none (fairseq)."),
    FIELD(FLAG, "dynamic", IN_TREE, AT(dynamic), "Whether the scale ever changes."),
    FIELD(FLAG, "skip", IN_TREE, AT(skip),
          "Whether a step that overflows is skipped; otherwise the step is taken with Inf and NaN."),
    FIELD(FLAG, "guard", IN_TREE, AT(guard), "Whether growth to infinity is refused."),
    FIELD(WORD8, "refill", IN_TREE, AT(refill),
          "When the number of tolerated overflows is full again: after each clean step, growth or backing off.",
          .words = refills),
    FIELD(WORD8, "growth-rule", IN_TREE, AT(growth_rule), "How clean steps are counted.", .words = growth_rules),
    FIELD(WORD8, "floor-rule", IN_TREE, AT(floor_rule), "What happens at the floor.", .words = floor_rules),
    FIELD(WORD8, "order", IN_TREE, AT(order), "Where in a step the scale is updated.", .words = orders),
    FIELD(WORD8, "unscale", IN_TREE, AT(unscale), "How gradients are unscaled.", .words = unscales),
    FIELD(WORD8, "arithmetic", IN_TREE, AT(arithmetic), "The numbers in which the scale is kept.",
          .words = arithmetics),
    FIELD(WORD8, "check", IN_TREE, AT(check), "What is tested for overflow.", .words = checks),
    {0}};
#undef AT
const record_kind scaler_config_record = {"config", "The rules of a loss scaler.", sizeof(mpsim_scaler_config),
                                          config_fields};

/* A row of the table, with cells for people. */
typedef struct scaler_row {
    mpsim_scaler_type type;
    char start[32], window[32], floor[40], cap[32], hysteresis[64];
} scaler_row;

#define AT(member) offsetof(scaler_row, type.member)
#define CELL(member) offsetof(scaler_row, member)
static const record_field row_fields[] = {
    FIELD(CHARS, "name", IN_ALL, AT(config.name), NULL, .title = "<scaler"),
    FIELD(REAL, "init", IN_CSV, AT(config.init), NULL),
    FIELD(CHARS, NULL, 0, CELL(start), NULL, .title = ">start"),
    FIELD(REAL, "growth", IN_CSV, AT(config.growth), NULL),
    FIELD(REAL, "backoff", IN_CSV, AT(config.backoff), NULL),
    FIELD(COUNT, "window", IN_CSV, AT(config.window), NULL),
    FIELD(CHARS, NULL, 0, CELL(window), NULL, .title = ">window"),
    FIELD(WORD8, "growth_rule", IN_CSV, AT(config.growth_rule), NULL, .words = growth_rules),
    FIELD(REAL, "floor", IN_CSV, AT(config.floor), NULL),
    FIELD(CHARS, NULL, 0, CELL(floor), NULL, .title = ">floor"),
    FIELD(WORD8, "floor_rule", IN_CSV, AT(config.floor_rule), NULL, .words = floor_rules),
    FIELD(REAL, "ceiling", IN_CSV, AT(config.ceiling), NULL),
    FIELD(CHARS, NULL, 0, CELL(cap), NULL, .title = ">cap"),
    FIELD(WORD8, "guard", IN_CSV, AT(config.guard), NULL, .words = digits),
    FIELD(COUNT32, "hysteresis", IN_CSV, AT(config.hysteresis), NULL),
    FIELD(CHARS, NULL, 0, CELL(hysteresis), NULL, .title = "<hysteresis"),
    FIELD(WORD8, "refill", IN_CSV, AT(config.refill), NULL, .words = refills),
    FIELD(TEXT, "framework", IN_ALL, AT(framework), "What has the scaler.", .title = "<what it is"),
    FIELD(TEXT, "source", IN_ALL, AT(source), "The file that the rules are from."),
    FIELD(TEXT, "note", IN_TREE | FIELD_NULL, AT(note), "What a user should know; null: nothing."),
    FIELD(RECORD, "config", IN_TREE, AT(config), NULL, .record = &scaler_config_record),
    {0}};
#undef AT
#undef CELL
static const record_kind row_record = {"scaler", NULL, sizeof(scaler_row), row_fields};
const report_kind scaler_scalers_kind = {
    "mpsim.scalers/1", "mpsim scaler --list: loss scalers",
    "The table of loss scalers. $defs/line is a line of --ndjson, which names no schema.",
    REPORT_ROWS("scalers", &row_record)};

/* ---- a configuration in words ---- */

/* When the scale grows, in words. */
static void growth_text(char *out, size_t size, const mpsim_scaler_config *c)
{
    char factor[32], window[32];
    text_add(out, size, "x %s %s %s clean steps%s", text_scale(factor, c->growth),
             c->growth_rule == MPSIM_GROWTH_INTERVAL ? "on the clean step after" : "after",
             text_count(window, c->window), c->growth_rule == MPSIM_GROWTH_MULTIPLE ? " since the last overflow" : "");
}

static void bounds_text(char *out, size_t size, const mpsim_scaler_config *c)
{
    static const char *const at_floor[] = {"", ", an overflow there is an error", ", backing off to it is an error"};
    char a[32], b[32];
    if (c->floor > 0)
        text_add(out, size, "; floor %s%s", text_scale(a, c->floor), at_floor[c->floor_rule]);
    else
        text_add(out, size, "; no floor");
    if (isfinite(c->ceiling))
        text_add(out, size, ", ceiling %s", text_scale(b, c->ceiling));
    else if (c->guard)
        text_add(out, size, ", never infinite");
}

const char *scaler_config_text(char *out, size_t size, const mpsim_scaler_config *c)
{
    char a[32], b[32];
    if (!c->dynamic) {
        snprintf(out, size, "%s, constant; steps that overflow are %s", text_scale(a, c->init),
                 c->skip ? "skipped" : "taken");
        return out;
    }
    snprintf(out, size, "starts at %s, ", text_scale(a, c->init));
    growth_text(out, size, c);
    text_add(out, size, ", x %s on an overflow", text_scale(b, c->backoff));
    bounds_text(out, size, c);
    if (c->hysteresis > 1)
        text_add(out, size, "; overflow %" PRIu32 " backs off, those before are tolerated (refilled: %s)",
                 c->hysteresis, refills[c->refill]);
    if (c->tolerance > 0)
        text_add(out, size, "; tolerates a share below %s of overflows", text_number(a, c->tolerance));
    if (c->check == MPSIM_CHECK_NORM)
        text_add(out, size, "; tests the norm");
    if (c->order == MPSIM_UPDATE_BEFORE_UNSCALE)
        text_add(out, size, "; unscales with the new scale");
    return out;
}

void scaler_print_wrapped(FILE *to, const char *first, const char *text)
{
    fputs(first, to);
    text_wrap(to, (int)strlen(first), screen_width(to, 96), " ", text);
}

/* ---- the table ---- */

static scaler_row row_of(const mpsim_scaler_type *t)
{
    const mpsim_scaler_config *c = &t->config;
    scaler_row row = {.type = *t};
    char a[32];
    text_scale(row.start, c->init);
    if (!c->dynamic)
        return row;
    snprintf(row.window, sizeof row.window, "%" PRIu64 "%s", c->window,
             c->growth_rule == MPSIM_GROWTH_INTERVAL ? "+1" : "");
    if (c->floor > 0)
        snprintf(row.floor, sizeof row.floor, "%s%s", text_scale(a, c->floor), c->floor_rule ? "!" : "");
    if (isfinite(c->ceiling) || c->guard)
        snprintf(row.cap, sizeof row.cap, "%s", isfinite(c->ceiling) ? text_scale(a, c->ceiling) : "finite");
    if (c->hysteresis > 1)
        snprintf(row.hysteresis, sizeof row.hysteresis, "%" PRIu32 " %s", c->hysteresis, refills[c->refill]);
    return row;
}

static void list_row(FILE *to, const mpsim_scaler_type *t)
{
    char text[512];
    fprintf(to, "%s: %s\n", t->config.name, t->framework);
    scaler_print_wrapped(to, "  rules   ", scaler_config_text(text, sizeof text, &t->config));
    fprintf(to, "  update  %s; unscales by %s; kept in %s\n", orders[t->config.order], unscaling[t->config.unscale],
            arithmetics[t->config.arithmetic]);
    if (t->note)
        scaler_print_wrapped(to, "  note    ", t->note);
    scaler_print_wrapped(to, "  source  ", t->source);
}

static int list_named(FILE *to, char **names, int n)
{
    char shown[256];
    for (int i = 0; i < n; i++) {
        const mpsim_scaler_type *t = mpsim_scaler_find(names[i]);
        if (!t)
            return fail(EXIT_USAGE, "scaler: --list: '%s' is not a scaler of the table",
                        escape_text(shown, sizeof shown, names[i]));
        if (i > 0)
            fputc('\n', to);
        list_row(to, t);
    }
    return 0;
}

static const char legend[] = "\nwindow: clean steps until growth (+1: on the clean step after them)\n"
                             "floor: with ! the framework stops there with an error\n"
                             "cap: the largest scale; finite: growth to infinity is refused\n"
                             "hysteresis: the overflow that backs off, and when those tolerated before it come back\n"
                             "All grow by 2 and back off by 0.5.\n"
                             "\nSources and details: mpsim scaler --list NAME\n";

int scaler_list(FILE *to, report_style style, char **names, int n)
{
    record_writer w = {.kind = &scaler_scalers_kind, .to = to, .style = style};
    if (n > 0 && style == REPORT_TEXT)
        return list_named(to, names, n);
    record_begin(&w);
    for (size_t i = 0; i < mpsim_scaler_count(); i++) {
        const scaler_row row = row_of(mpsim_scaler_at(i));
        record_row(&w, &row);
    }
    table_print(w.rows, to, "");
    fputs(style == REPORT_TEXT ? legend : "", to);
    record_end(&w);
    return 0;
}
