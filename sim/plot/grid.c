/* grid.c -- see grid.h. A report is untrusted: every member is checked. */
#include "impl.h"

#include "../array/need.h"
#include "../text/words.h"
#include "noise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is asked for ---- */

/* The first of a command is the usual one. */
static const plot_measure measures[] = {
    {"diff", "ulp", "largest ULPs", NULL, "equal", "one has it", PLOT_BINADES, 0},
    {"diff", "sqnr", "SQNR, dB", NULL, "equal", "one has it", PLOT_DECIBELS, 1},
    {"stat", "underflow", "underflow in ", " (%)", "none", "some overflow, too", PLOT_DECADES, 0},
    {"stat", "sqnr", "SQNR in ", " (dB)", "exact", "over 1 % are lost", PLOT_DECIBELS, 1},
    {"stat", "amax", "largest magnitude", NULL, "all zero", "", PLOT_BINADES, 0},
};
enum { MEASURES = sizeof measures / sizeof measures[0] };
static const double LOST_MARKED = 0.01;

static int choose_measure(plot_grid *g, const plot_selection *s)
{
    char known[96] = "";
    for (size_t i = 0; i < MEASURES; i++)
        if (strcmp(measures[i].command, g->report->command) == 0) {
            if (!s->column || strcmp(measures[i].name, s->column) == 0) {
                g->measure = &measures[i];
                return 0;
            }
            text_add(known, sizeof known, "%s%s", *known ? ", " : "", measures[i].name);
        }
    return fail(EXIT_USAGE, "plot: --column: '%s' is not one of %s", s->column, known);
}

/* The format and the scale of the casts that are shown. */
static int choose_cast(plot_grid *g, const plot_selection *s)
{
    scale_list scales;
    int code = plot_settings_read(&g->settings, g->report);
    code = code ? code : plot_choose_scales(&scales, g->report, &g->settings, &s->scales);
    if (code || !g->measure->of_format)
        return code;
    g->format = plot_choose_target(g->report, &g->settings, &s->formats, &code);
    g->scale = scales.count ? scales.items[0] : 1;
    for (size_t i = 0; i < scales.count && !s->scales.count; i++)
        if (scales.items[i] == 1)
            g->scale = 1;
    return code;
}

static int choose(plot_grid *g, const plot_selection *s, uint64_t *step)
{
    int code = choose_measure(g, s);
    if (!code && s->by && strcmp(s->by, "tensor") != 0 && strcmp(s->by, "layer") != 0)
        code = fail(EXIT_USAGE, "plot: --by: '%s' is not one of tensor, layer", s->by);
    if (!code && s->step && parse_count(step, s->step) != 0)
        code = fail(EXIT_USAGE, "plot: --step: '%s' is not a number of a step", s->step);
    g->by_layer = s->by && strcmp(s->by, "layer") == 0;
    return code || strcmp(g->measure->command, "stat") != 0 ? code : choose_cast(g, s);
}

/* ---- one item of diff ---- */

/* What mpsim diff tells of a tensor; `differ`: -1 where nothing was counted. */
typedef struct difference {
    const char *verdict;
    int64_t differ;
    double ulp, sqnr;
    const uint64_t *nan, *inf; /* of A, of B */
    size_t n_nan, n_inf;
} difference;

#define AT(member) offsetof(difference, member)
static const record_field difference_fields[] = {FIELD(TEXT, "verdict", IN_JSON, AT(verdict), NULL),
                                                 FIELD(STEP, "differ", IN_JSON, AT(differ), NULL),
                                                 FIELD(REAL, "max_ulp", IN_JSON, AT(ulp), NULL),
                                                 FIELD(REAL, "sqnr_db", IN_JSON, AT(sqnr), NULL),
                                                 FIELD(COUNTS, "nan", IN_JSON, AT(nan), NULL, .of = AT(n_nan)),
                                                 FIELD(COUNTS, "inf", IN_JSON, AT(inf), NULL, .of = AT(n_inf)),
                                                 {0}};
#undef AT
static const record_kind difference_record = {"difference", NULL, sizeof(difference), difference_fields};

static int is_uneven(const uint64_t *counts, size_t n)
{
    return n == 2 && counts[0] != counts[1];
}

/* What no decibels and no exponents of binary64 reach stands for infinity. */
static double bounded(double x)
{
    const double beyond = 4000;
    return fmax(-beyond, fmin(beyond, x));
}

static void take_difference(const plot_grid *g, const difference *d, plot_cell *cell)
{
    const double x = g->measure->unit == PLOT_DECIBELS ? d->sqnr : d->ulp >= 1 ? log2(d->ulp) : 0;
    if (strcmp(d->verdict, "not-compared") == 0 || strcmp(d->verdict, "unreadable") == 0)
        return;
    if (d->differ >= 0) {
        const int broken = is_uneven(d->nan, d->n_nan) || is_uneven(d->inf, d->n_inf);
        cell->state = broken ? PLOT_CELL_BROKEN : PLOT_CELL_APART;
        cell->value = bounded(x);
    } else {
        cell->marked = strcmp(d->verdict, "equal") != 0 && strcmp(d->verdict, "dtype") != 0 &&
                       strcmp(d->verdict, "reshaped") != 0;
        cell->state = cell->marked ? PLOT_CELL_NONE : PLOT_CELL_EQUAL;
    }
}

/* A tensor whose elements were compared has errors, too. */
static int get_difference(const plot_grid *g, record_source item, plot_cell *cell)
{
    difference d;
    const char *needs = !record_has(item, "differ")         ? "verdict"
                        : g->measure->unit == PLOT_DECIBELS ? "verdict sqnr_db"
                                                            : "verdict max_ulp";
    const int code = plot_read(g->report, &difference_record, item, &d, needs);
    if (!code)
        take_difference(g, &d, cell);
    record_forget(&difference_record, &d);
    return code;
}

/* ---- one item of stat ---- */

static int get_underflow(const plot_grid *g, const plot_cast *cast, const plot_item *of, plot_cell *cell)
{
    if (cast->underflow > of->count)
        return plot_malformed(g->report, "counts contradict each other");
    cell->state = cast->underflow ? PLOT_CELL_APART : PLOT_CELL_EQUAL;
    cell->value = cast->underflow ? log10(100 * (double)cast->underflow / (double)of->count) : 0;
    cell->marked = cast->overflow > 0;
    return 0;
}

static int get_sqnr(const plot_grid *g, const plot_cast *cast, const plot_item *of, plot_cell *cell)
{
    const double x = cast->sqnr;
    uint64_t lost;
    const int code = plot_lost(&lost, g->report, cast, of);
    cell->state = isnan(x) ? PLOT_CELL_NONE : isinf(x) && x > 0 ? PLOT_CELL_EQUAL : PLOT_CELL_APART;
    cell->value = isfinite(x) ? bounded(x) : 0;
    cell->marked = !code && (double)lost > LOST_MARKED * (double)of->count;
    return code;
}

static int get_amax(const plot_item *item, plot_cell *cell)
{
    cell->state = item->amax > 0 ? PLOT_CELL_APART : PLOT_CELL_EQUAL;
    cell->value = item->amax > 0 ? log2(item->amax) : 0;
    return 0;
}

static int get_measured(const plot_grid *g, const plot_item *of, int scaled, plot_cell *cell)
{
    const plot_cast *cast = g->format ? plot_item_cast(of, scaled, g->format, g->scale) : NULL;
    if (of->count == 0 || (g->format && !cast)) /* a recipe that does not take this tensor */
        return 0;
    const int code = !g->format                         ? get_amax(of, cell)
                     : g->measure->unit == PLOT_DECADES ? get_underflow(g, cast, of, cell)
                                                        : get_sqnr(g, cast, of, cell);
    if (!code && of->finite < of->count)
        cell->state = PLOT_CELL_BROKEN;
    return code;
}

static int get_statistics(const plot_grid *g, record_source v, plot_cell *cell)
{
    static const char *const needs[] = {
        [PLOT_BINADES] = "count zero nan inf amax",
        [PLOT_DECADES] = "count zero nan inf formats.underflow formats.overflow blocks.underflow blocks.overflow",
        [PLOT_DECIBELS] = "count zero nan inf formats.underflow formats.sqnr_db blocks.underflow blocks.sqnr_db"};
    plot_item item;
    int code = plot_item_read(&item, g->report, v, needs[g->measure->unit]);
    code = code ? code : get_measured(g, &item, plot_item_scaled(&g->settings, item.kind), cell);
    plot_item_clear(&item);
    return code;
}

static int get_cell(const plot_grid *g, record_source item, plot_cell *cell)
{
    *cell = (plot_cell){.state = PLOT_CELL_NONE};
    return strcmp(g->measure->command, "diff") == 0 ? get_difference(g, item, cell) : get_statistics(g, item, cell);
}

/* ---- reading: steps, then rows that differ, then cells ---- */

typedef struct reading {
    plot_grid *g;
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

static plot_grid_row *find_row(plot_grid *g, const char *name)
{
    for (size_t i = 0; i < g->n_rows; i++)
        if (strcmp(g->rows[i].name, name) == 0)
            return &g->rows[i];
    return NULL;
}

static int add_row(plot_grid *g, const char *name)
{
    if (find_row(g, name))
        return 0;
    if (g->n_rows == PLOT_ROWS_MAX)
        return fail(EXIT_USAGE, "plot: more than %d %s%s: select fewer with --match GLOB or --kind%s", PLOT_ROWS_MAX,
                    g->by_layer ? "layers" : "tensors", strcmp(g->measure->command, "diff") == 0 ? " differ" : "",
                    g->by_layer ? "" : ", or take them together with --by layer");
    plot_grid_row *row = &g->rows[g->n_rows];
    row->name = need_text(name);
    g->n_rows++;
    return 0;
}

static void add_cell(plot_grid *g, plot_cell *to, const plot_cell *from)
{
    const int worse = g->measure->less_is_worse ? from->value < to->value : from->value > to->value;
    const int marked = from->marked || to->marked;
    if (from->state > to->state || (from->state == to->state && worse))
        *to = *from;
    to->marked = marked;
}

/* The values that are shown. */
static void find_range(plot_grid *g)
{
    g->least = HUGE_VAL;
    g->most = -HUGE_VAL;
    for (size_t i = 0; i < g->n_rows; i++)
        for (size_t c = 0; c < g->n_columns; c++)
            if (g->rows[i].cells[c].state == PLOT_CELL_APART) {
                g->least = fmin(g->least, g->rows[i].cells[c].value);
                g->most = fmax(g->most, g->rows[i].cells[c].value);
            }
}

/* The column of a step. */
static size_t column_of(const plot_grid *g, int64_t step)
{
    size_t i = 0;
    while (i + 1 < g->n_columns && g->last[i] < step)
        i++;
    return i;
}

static int read_item(void *context, record_source item)
{
    reading *p = context;
    plot_grid *g = p->g;
    plot_cell cell;
    const int shown = strcmp(g->measure->command, "diff") != 0; /* whatever it holds */
    const plot_label l = plot_label_of(item);
    if (!plot_item_selected(&l, p->selection, p->step))
        return 0;
    if (p->pass == 0) {
        add_step(p, l.step);
        return 0;
    }
    int code = get_cell(g, item, &cell);
    if (code || !l.name) /* a whole step that is missing has no name */
        return code;
    char *row = g->by_layer ? plot_layer_name(l.name, l.kind) : need_text(l.name);
    if (p->pass == 1) {
        code = shown || cell.state > PLOT_CELL_EQUAL || cell.marked ? add_row(g, row) : 0;
    } else {
        plot_grid_row *r = find_row(g, row);
        if (r)
            add_cell(g, &r->cells[column_of(g, l.step)], &cell);
    }
    free(row);
    return code;
}

/* Steps as columns; of too many, several in one. */
static void make_columns(plot_grid *g, const reading *p)
{
    const size_t each = (p->n + PLOT_STEPS_MAX - 1) / PLOT_STEPS_MAX;
    g->n_steps = p->n;
    for (size_t i = 0; i < p->n; i++) {
        if (i % each == 0)
            g->first[g->n_columns++] = p->steps[i];
        g->last[g->n_columns - 1] = p->steps[i];
    }
}

#define AT(member) offsetof(plot_first, member)
static const record_field first_fields[] = {FIELD(TEXT, "name", IN_JSON, AT(name), NULL),
                                            FIELD(TEXT, "title", IN_JSON, AT(title), NULL),
                                            FIELD(STEP, "step", IN_JSON, AT(step), NULL),
                                            {0}};
#undef AT
static const record_kind first_record = {"first", NULL, sizeof(plot_first), first_fields};

int plot_grid_read(plot_input *in, const plot_selection *selection)
{
    plot_grid *g = &in->grid;
    const plot_report *report = &in->report;
    reading p = {.g = g, .selection = selection};
    memset(g, 0, sizeof *g);
    g->report = report;
    g->rows = need_memory(PLOT_ROWS_MAX, sizeof *g->rows);
    int code = choose(g, selection, &p.step);
    for (; p.pass < 3 && !code; p.pass++) {
        code = plot_each(report, report->root, "tensors", read_item, &p);
        if (!code && p.pass == 0)
            make_columns(g, &p);
    }
    free(p.steps);
    if (!code && g->n_columns == 0)
        code = fail(EXIT_DATA, "%s: no tensor is selected", report->path);
    find_range(g);
    if (!code)
        code = plot_read(report, &first_record, record_part(report->root, "first"), &g->begin, "");
    return code;
}

void plot_grid_clear(plot_grid *g)
{
    for (size_t i = 0; i < g->n_rows; i++)
        free(g->rows[i].name);
    free(g->rows);
    free(g->format);
    plot_settings_clear(&g->settings);
    memset(g, 0, sizeof *g);
}
