/* differences.c -- see differences.h. A report is untrusted: every member is checked. */
#include "differences.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is asked for ---- */

static int choose(plot_differences *d, const plot_selection *s, uint64_t *step)
{
    if (s->column && strcmp(s->column, "ulp") != 0 && strcmp(s->column, "sqnr") != 0)
        return fail(EXIT_USAGE, "plot: --column: '%s' is not one of ulp, sqnr", s->column);
    if (s->by && strcmp(s->by, "tensor") != 0 && strcmp(s->by, "layer") != 0)
        return fail(EXIT_USAGE, "plot: --by: '%s' is not one of tensor, layer", s->by);
    if (s->step && parse_count(step, s->step) != 0)
        return fail(EXIT_USAGE, "plot: --step: '%s' is not a number of a step", s->step);
    d->by_sqnr = s->column && strcmp(s->column, "sqnr") == 0;
    d->by_layer = s->by && strcmp(s->by, "layer") == 0;
    return 0;
}

/* ---- one item ---- */

/* Whether one of two counts, of A and B, is larger. */
static int is_uneven(const json_t *item, const char *key)
{
    const json_t *v = json_object_get(item, key);
    return json_array_size(v) == 2 &&
           json_integer_value(json_array_get(v, 0)) != json_integer_value(json_array_get(v, 1));
}

static int get_cell(const plot_differences *d, const json_t *item, plot_cell *cell)
{
    const char *verdict = NULL;
    double x = 0;
    int code = plot_get_string(d->report, item, "verdict", &verdict);
    if (code)
        return code;
    cell->value = 0;
    cell->state = strcmp(verdict, "equal") == 0                                               ? PLOT_CELL_EQUAL
                  : strcmp(verdict, "not-numbers") == 0 || strcmp(verdict, "unreadable") == 0 ? PLOT_CELL_NONE
                  : json_object_get(item, "differ")                                           ? PLOT_CELL_APART
                  : strcmp(verdict, "dtype") == 0 || strcmp(verdict, "reshaped") == 0         ? PLOT_CELL_EQUAL
                                                                                              : PLOT_CELL_ABSENT;
    if (cell->state != PLOT_CELL_APART)
        return 0;
    if (is_uneven(item, "nan") || is_uneven(item, "inf"))
        cell->state = PLOT_CELL_BROKEN;
    const char *key = d->by_sqnr ? "sqnr_db" : "max_ulp";
    if (!plot_is_number(json_object_get(item, key), &x))
        code = plot_wrong_member(d->report, key, "a number");
    cell->value = d->by_sqnr ? x : x >= 1 ? log2(x) : 0;
    if (!isfinite(cell->value))
        cell->value = cell->value > 0 ? 400 : -400; /* beyond what decibels of binary64 can be */
    return code;
}

/* ---- reading: steps, then rows that differ, then cells ---- */

typedef struct reading {
    plot_differences *d;
    const plot_selection *selection;
    uint64_t step;
    int64_t *steps; /* all, growing */
    size_t n;
    int pass;
} reading;

static void add_step(reading *p, int64_t step)
{
    if (p->n && p->steps[p->n - 1] >= step)
        return; /* reports are in the order of steps */
    need_room(&p->steps, p->n, sizeof *p->steps);
    p->steps[p->n++] = step;
}

static plot_difference_row *find_row(plot_differences *d, const char *name)
{
    for (size_t i = 0; i < d->n_rows; i++)
        if (strcmp(d->rows[i].name, name) == 0)
            return &d->rows[i];
    return NULL;
}

static int add_row(plot_differences *d, const char *name)
{
    if (find_row(d, name))
        return 0;
    if (d->n_rows == PLOT_ROWS_MAX)
        return fail(EXIT_USAGE, "plot: more than %d %s differ: select fewer with --match GLOB or --kind%s",
                    PLOT_ROWS_MAX, d->by_layer ? "layers" : "tensors",
                    d->by_layer ? "" : ", or take them together with --by layer");
    plot_difference_row *row = &d->rows[d->n_rows];
    row->name = need_text(name);
    d->n_rows++;
    return 0;
}

static void add_cell(plot_differences *d, plot_cell *to, const plot_cell *from)
{
    const int worse = d->by_sqnr ? from->value < to->value : from->value > to->value;
    if (from->state > to->state || (from->state == to->state && worse))
        *to = *from;
    if (from->state == PLOT_CELL_APART) {
        d->least = fmin(d->least, from->value);
        d->most = fmax(d->most, from->value);
    }
}

/* The column of a step. */
static size_t column_of(const plot_differences *d, int64_t step)
{
    size_t i = 0;
    while (i + 1 < d->n_columns && d->last[i] < step)
        i++;
    return i;
}

static int read_item(void *context, const json_t *item)
{
    reading *p = context;
    plot_differences *d = p->d;
    uint64_t at;
    plot_cell cell;
    const int64_t step = plot_item_step(item, &at) && at <= INT64_MAX ? (int64_t)at : -1;
    const char *name = json_string_value(json_object_get(item, "name"));
    if (!plot_item_selected(item, p->selection, p->step))
        return 0;
    if (p->pass == 0) {
        add_step(p, step);
        return 0;
    }
    int code = get_cell(d, item, &cell);
    if (code || !name) /* a whole step that is missing has no name */
        return code;
    char *row = d->by_layer ? plot_layer_name(name, json_string_value(json_object_get(item, "kind"))) : need_text(name);
    if (p->pass == 1) {
        code = cell.state > PLOT_CELL_EQUAL ? add_row(d, row) : 0;
    } else {
        plot_difference_row *r = find_row(d, row);
        if (r)
            add_cell(d, &r->cells[column_of(d, step)], &cell);
    }
    free(row);
    return code;
}

/* Steps as columns; of too many, several in one. */
static void make_columns(plot_differences *d, const reading *p)
{
    const size_t each = (p->n + PLOT_STEPS_MAX - 1) / PLOT_STEPS_MAX;
    d->n_steps = p->n;
    for (size_t i = 0; i < p->n; i++) {
        if (i % each == 0)
            d->first[d->n_columns++] = p->steps[i];
        d->last[d->n_columns - 1] = p->steps[i];
    }
}

static void read_first(plot_differences *d)
{
    const json_t *first = json_object_get(d->report->json, "first");
    uint64_t step;
    d->first_name = json_string_value(json_object_get(first, "name"));
    d->first_title = json_string_value(json_object_get(first, "title"));
    d->first_step = plot_item_step(first, &step) && step <= INT64_MAX ? (int64_t)step : -1;
}

int plot_differences_read(plot_differences *d, const plot_report *report, const plot_selection *selection)
{
    reading p = {.d = d, .selection = selection};
    const json_t *tensors = json_object_get(report->json, "tensors");
    memset(d, 0, sizeof *d);
    d->report = report;
    d->least = HUGE_VAL;
    d->most = -HUGE_VAL;
    d->rows = need_memory(PLOT_ROWS_MAX, sizeof *d->rows);
    int code = choose(d, selection, &p.step);
    for (; p.pass < 3 && !code; p.pass++) {
        code = plot_each(report, tensors, "tensors", read_item, &p);
        if (!code && p.pass == 0)
            make_columns(d, &p);
    }
    free(p.steps);
    if (!code && d->n_columns == 0)
        code = fail(EXIT_DATA, "%s: no tensor is selected", report->path);
    if (!code)
        read_first(d);
    return code;
}

void plot_differences_clear(plot_differences *d)
{
    for (size_t i = 0; i < d->n_rows; i++)
        free(d->rows[i].name);
    free(d->rows);
    memset(d, 0, sizeof *d);
}
