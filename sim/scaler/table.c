/* table.c -- see table.h. */
#include "table.h"

#include "../cli/options.h"
#include "../text/words.h"
#include "../trace/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const growth_rules[] = {"counter", "interval", "multiple"};
static const char *const arithmetics[] = {"f32-f64", "f32", "f64"};
static const char *const floor_rules[] = {"clamp", "raise", "stop"};
static const char *const orders[] = {"after-step", "before-step", "before-unscale"};
static const char *const unscales[] = {"reciprocal", "divide", "rounded"};
static const char *const unscaling[] = {"the reciprocal", "division",
                                        "the reciprocal, rounded to the gradient's dtype"};
static const char *const checks[] = {"elements", "norm"};

static const char *refill_text(char out[32], const mpsim_scaler_config *c)
{
    snprintf(out, 32, "%s%s%s", c->refill & MPSIM_REFILL_CLEAN ? "+clean" : "",
             c->refill & MPSIM_REFILL_GROWTH ? "+growth" : "", c->refill & MPSIM_REFILL_BACKOFF ? "+backoff" : "");
    return c->refill ? out + 1 : "never";
}

json_t *scaler_config_json(const mpsim_scaler_config *c)
{
    char refill[32];
    json_t *v = json_object();
    json_object_set_new(v, "row", json_string(c->name));
    json_object_set_new(v, "init", json_of_double(c->init));
    json_object_set_new(v, "growth", json_of_double(c->growth));
    json_object_set_new(v, "backoff", json_of_double(c->backoff));
    json_object_set_new(v, "window", json_of_count(c->window));
    json_object_set_new(v, "hysteresis", json_of_count(c->hysteresis));
    json_object_set_new(v, "floor", json_of_double(c->floor));
    json_object_set_new(v, "ceiling", json_of_double(c->ceiling));
    json_object_set_new(v, "tolerance", json_of_double(c->tolerance));
    json_object_set_new(v, "threshold", json_of_double(c->threshold));
    json_object_set_new(v, "dynamic", json_boolean(c->dynamic));
    json_object_set_new(v, "skip", json_boolean(c->skip));
    json_object_set_new(v, "guard", json_boolean(c->guard));
    json_object_set_new(v, "refill", json_string(refill_text(refill, c)));
    json_object_set_new(v, "growth-rule", json_string(growth_rules[c->growth_rule]));
    json_object_set_new(v, "floor-rule", json_string(floor_rules[c->floor_rule]));
    json_object_set_new(v, "order", json_string(orders[c->order]));
    json_object_set_new(v, "unscale", json_string(unscales[c->unscale]));
    json_object_set_new(v, "arithmetic", json_string(arithmetics[c->arithmetic]));
    json_object_set_new(v, "check", json_string(checks[c->check]));
    return v;
}

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
    char a[32], b[32], refill[32];
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
                 c->hysteresis, refill_text(refill, c));
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
    text_wrap(to, (int)strlen(first), 96, " ", text);
}

/* ---- the table ---- */

static json_t *row_json(const mpsim_scaler_type *t)
{
    json_t *v = json_object();
    json_object_set_new(v, "name", json_string(t->config.name));
    json_object_set_new(v, "framework", json_string(t->framework));
    json_object_set_new(v, "source", json_string(t->source));
    json_object_set_new(v, "note", t->note ? json_string(t->note) : json_null());
    json_object_set_new(v, "config", scaler_config_json(&t->config));
    return v;
}

static void table_row(table *all, const mpsim_scaler_type *t)
{
    const mpsim_scaler_config *c = &t->config;
    char a[32], refill[32];
    table_cell(all, "%s", c->name);
    table_cell(all, "%s", text_scale(a, c->init));
    if (!c->dynamic) {
        for (int i = 0; i < 4; i++)
            table_cell(all, "%s", "");
    } else {
        table_cell(all, "%" PRIu64 "%s", c->window, c->growth_rule == MPSIM_GROWTH_INTERVAL ? "+1" : "");
        table_cell(all, "%s%s", c->floor > 0 ? text_scale(a, c->floor) : "", c->floor_rule && c->floor > 0 ? "!" : "");
        table_cell(all, "%s", isfinite(c->ceiling) ? text_scale(a, c->ceiling) : c->guard ? "finite" : "");
        if (c->hysteresis > 1)
            table_cell(all, "%" PRIu32 " %s", c->hysteresis, refill_text(refill, c));
        else
            table_cell(all, "%s", "");
    }
    table_cell(all, "%s", t->framework);
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

static void list_csv(FILE *to)
{
    fputs("name,init,growth,backoff,window,growth_rule,floor,floor_rule,ceiling,guard,hysteresis,"
          "refill,framework,source\n",
          to);
    for (size_t i = 0; i < mpsim_scaler_count(); i++) {
        const mpsim_scaler_type *t = mpsim_scaler_at(i);
        const mpsim_scaler_config *c = &t->config;
        char refill[32];
        fprintf(to, "%s,", c->name);
        csv_double(to, c->init);
        fputc(',', to);
        csv_double(to, c->growth);
        fputc(',', to);
        csv_double(to, c->backoff);
        fprintf(to, ",%" PRIu64 ",%s,", c->window, growth_rules[c->growth_rule]);
        csv_double(to, c->floor);
        fprintf(to, ",%s,", floor_rules[c->floor_rule]);
        csv_double(to, c->ceiling);
        fprintf(to, ",%d,%" PRIu32 ",%s,", c->guard, c->hysteresis, refill_text(refill, c));
        csv_text(to, t->framework);
        fputc(',', to);
        csv_text(to, t->source);
        fputc('\n', to);
    }
}

static void list_json(FILE *to)
{
    json_t *rows = json_array(), *v = json_report("mpsim.scalers/1");
    for (size_t i = 0; i < mpsim_scaler_count(); i++)
        json_array_append_new(rows, row_json(mpsim_scaler_at(i)));
    json_object_set_new(v, "scalers", rows);
    json_write(to, v);
    fputc('\n', to);
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

int scaler_list(FILE *to, report_style style, char **names, int n)
{
    if (style == REPORT_JSON || style == REPORT_CSV) {
        (style == REPORT_JSON ? list_json : list_csv)(to);
        return 0;
    }
    if (n > 0)
        return list_named(to, names, n);
    table *all = table_new("<scaler|>start|>window|>floor|>cap|<hysteresis|<what it is");
    for (size_t i = 0; i < mpsim_scaler_count(); i++)
        table_row(all, mpsim_scaler_at(i));
    table_print(all, to, "");
    table_free(all);
    fputs("\nwindow: clean steps until growth (+1: on the clean step after them)\n"
          "floor: with ! the framework stops there with an error\n"
          "cap: the largest scale; finite: growth to infinity is refused\n"
          "hysteresis: the overflow that backs off, and when those tolerated before it come back\n"
          "All grow by 2 and back off by 0.5.\n"
          "\nSources and details: mpsim scaler --list NAME\n",
          to);
    return 0;
}
