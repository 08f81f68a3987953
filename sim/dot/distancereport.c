/* distancereport.c -- see distancereport.h. */
#include "distancereport.h"

#include "../cli/options.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

/* All measures, in the order of CSV, with their columns in tables for people. */
static const struct {
    const char *key, *title, *format;
    size_t at;
    int table; /* 0: of relative measures, 1: of absolute ones, -1: of neither */
} measures[] = {
    {"rel_err", "rel. error", "%.2e", offsetof(dot_distance, rel), 0},
    {"max_rel_err", "largest", "%.2e", offsetof(dot_distance, max_rel), 0},
    {"mean_rel_err", "", "", offsetof(dot_distance, mean_rel), -1},
    {"bias", "bias", "%+.1e", offsetof(dot_distance, bias), 0},
    {"max_abs_err", "largest", "%.2e", offsetof(dot_distance, max_abs), 1},
    {"rmse", "RMSE", "%.2e", offsetof(dot_distance, rmse), 1},
    {"mean_abs_err", "mean abs.", "%.2e", offsetof(dot_distance, mean_abs), 1},
    {"mean_err", "mean", "%+.1e", offsetof(dot_distance, mean), 1},
};
enum { MEASURES = sizeof measures / sizeof measures[0] };

static double value(const dot_distance *d, size_t i)
{
    return *(const double *)(const void *)((const char *)d + measures[i].at);
}

/* ---- options ---- */

int distance_above(double *bound, const char *of, const char *text)
{
    *bound = -1;
    if (text && (parse_number(bound, text) || *bound < 0))
        return fail(EXIT_USAGE, "%s: --above: '%s' is not a number of at least 0", of, text);
    return 0;
}

/* ---- tables ---- */

const char *distance_columns(char *out, size_t size, int absolute, const char *title)
{
    *out = '\0';
    for (size_t i = 0; i < MEASURES; i++)
        if (measures[i].table == absolute) {
            text_add(out, size, "|>%s%s%s", title ? title : "", title ? "\n" : "", measures[i].title);
            title = NULL;
        }
    return out;
}

void distance_cells(table *t, const dot_distance *d, int absolute)
{
    for (size_t i = 0; i < MEASURES; i++) {
        if (measures[i].table != absolute)
            continue;
        if (!d)
            table_cell(t, "%s", "");
        else
            table_cell(t, isnan(value(d, i)) ? "nan" : measures[i].format, value(d, i));
    }
}

void distance_compared(table *t, const dot_distance *d, double above)
{
    char text[32];
    table_cell(t, "%s", above >= 0 ? text_count(text, d->compared) : "");
}

/* ---- JSON and CSV ---- */

static json_t *distance_json(const dot_distance *d)
{
    json_t *v = json_object();
    json_object_set_new(v, "compared", json_of_count(d->compared));
    for (size_t i = 0; i < MEASURES; i++)
        json_object_set_new(v, measures[i].key, json_of_double(value(d, i)));
    return v;
}

void distance_put(json_t *result, const dot_error *e)
{
    json_object_set_new(result, "given", distance_json(&e->given));
    json_object_set_new(result, "rounded", distance_json(&e->rounded));
}

void distance_csv_head(FILE *to)
{
    fputs(",compared", to);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < MEASURES; i++)
            fprintf(to, ",%s_%s", side ? "rounded" : "given", measures[i].key);
}

void distance_csv(FILE *to, const dot_error *e)
{
    fprintf(to, ",%" PRIu64, e->given.compared);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < MEASURES; i++) {
            fputc(',', to);
            csv_double(to, value(side ? &e->rounded : &e->given, i));
        }
}

json_t *distance_bound_json(double above)
{
    return above >= 0 ? json_of_double(above) : json_null();
}

/* ---- a large error of a result that cancels ---- */

void distance_worse(dot_distance *worst, const dot_distance *d)
{
    if (d->max_rel >= 0.25 && d->max_rel > worst->max_rel)
        *worst = *d;
}

void distance_note(FILE *to, const dot_distance *worst, const char *begin, const char *end)
{
    if (worst->max_rel > 0 && worst->cancelled < 0.1)
        fprintf(
            to,
            "\n%s largest error of %.2e is of a result that cancels to %.1e of the typical one (root mean square)%s.\n",
            begin, worst->max_rel, worst->cancelled, end);
}
