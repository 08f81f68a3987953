/* heatmap.c -- data and variables of the figures diff and heatmap: tensors or layers by step. */
#include "impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NAME_MAX_SHOWN = 36 };

/* Characters of a row's name: what leaves room for the cells. */
static size_t row_label(const plot_request *r)
{
    return plot_fit(0.40 * r->width - 0.14, NAME_MAX_SHOWN);
}

/* "7", "7-12", or "" of files without a step */
static void step_text(char text[64], const plot_grid *g, size_t column)
{
    *text = '\0';
    if (g->first[column] >= 0 && g->first[column] < g->last[column])
        snprintf(text, 64, "%" PRId64 "\xe2\x80\x93%" PRId64, g->first[column], g->last[column]); /* – */
    else if (g->last[column] >= 0)
        snprintf(text, 64, "%" PRId64, g->last[column]);
}

void plot_put_heatmap(FILE *to, const plot_input *in, const plot_request *r)
{
    static const char *const units[] = {
        [PLOT_DECIBELS] = "decibels", [PLOT_BINADES] = "log2", [PLOT_DECADES] = "log10"};
    static const char *const states[] = {[PLOT_CELL_NONE] = "none",
                                         [PLOT_CELL_EQUAL] = "equal",
                                         [PLOT_CELL_APART] = "apart",
                                         [PLOT_CELL_BROKEN] = "broken"};
    const plot_grid *g = &in->grid;
    plot_common common = {0};
    char text[64];
    fputs("\n\n# steps\n# 1 column  2 step\n", to);
    for (size_t c = 0; c < g->n_columns; c++) {
        step_text(text, g, c);
        fprintf(to, "%zu ", c);
        plot_put_data(to, text);
        fputc('\n', to);
    }
    fputs("\n\n# rows\n# 1 row  2 label  3 name\n", to);
    for (size_t i = 0; i < g->n_rows; i++)
        plot_common_add(&common, g->rows[i].name);
    for (size_t i = 0; i < g->n_rows; i++) {
        fprintf(to, "%zu ", i);
        plot_put_label_of(to, g->rows[i].name, row_label(r), &common);
        fputc(' ', to);
        plot_put_data(to, g->rows[i].name);
        fputc('\n', to);
    }
    fprintf(to,
            "\n\n# cells\n# 1 column  2 row  3 %s, in %s  4 none, equal (%s), apart or broken (NaN, Inf)\n# 5 1: %s\n",
            g->measure->name, units[g->measure->unit], g->measure->pale, g->measure->mark);
    for (size_t i = 0; i < g->n_rows; i++)
        for (size_t c = 0; c < g->n_columns; c++) {
            const plot_cell *cell = &g->rows[i].cells[c];
            if (cell->state != PLOT_CELL_NONE || cell->marked || (i == 0 && c == 0)) /* one cell at least */
                fprintf(to, "%zu %zu %.6g %s %d\n", c, i, cell->value, states[cell->state], cell->marked);
        }
}

/* The cell of the first difference, if it is shown. */
static void put_first(FILE *to, const plot_grid *g, const plot_request *r)
{
    char text[512] = "", step[40] = "";
    int column = -1, row = -1;
    for (size_t i = 0; i < g->n_rows && !g->by_layer; i++)
        if (g->begin.name && strcmp(g->rows[i].name, g->begin.name) == 0)
            row = (int)i;
    for (size_t c = 0; c < g->n_columns && row >= 0; c++)
        if (g->first[c] <= g->begin.step && g->begin.step <= g->last[c])
            column = (int)c;
    if (g->begin.step >= 0)
        snprintf(step, sizeof step, " of step %" PRId64, g->begin.step);
    if (g->begin.name && g->begin.title)
        snprintf(text, sizeof text, "first: %.300s%s: %s", g->begin.name, step, g->begin.title);
    fprintf(to, "first_column = %d; first_row = %d # the first difference; -1: not shown\n", column, row);
    (void)r;
    plot_put_variable(to, "first", text);
}

/* What the colours mean, and the other signs that occur. */
static void put_words(FILE *to, const plot_grid *g)
{
    const plot_measure *m = g->measure;
    char bar[128];
    int equal = 0, broken = 0, marked = 0;
    for (size_t i = 0; i < g->n_rows; i++)
        for (size_t c = 0; c < g->n_columns; c++) {
            const plot_cell *cell = &g->rows[i].cells[c];
            equal |= cell->state == PLOT_CELL_EQUAL;
            broken |= cell->state == PLOT_CELL_BROKEN;
            marked |= cell->marked;
        }
    snprintf(bar, sizeof bar, "%s%.40s%s", m->bar, m->of_format ? g->format : "", m->of_format ? m->of_format : "");
    plot_put_variable(to, "bar_words", bar);
    plot_put_variable(to, "pale_words", equal ? m->pale : "");
    plot_put_variable(to, "red_words", broken ? "NaN, Inf" : "");
    plot_put_variable(to, "mark_words", marked ? m->mark : "");
}

void plot_put_heatmap_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_grid *g = &in->grid;
    size_t longest = 0, step_length = 0;
    for (size_t c = 0; c < g->n_columns; c++) {
        char text[64];
        step_text(text, g, c);
        step_length = plot_characters(text) > step_length ? plot_characters(text) : step_length;
    }
    for (size_t i = 0; i < g->n_rows; i++) {
        const size_t n = plot_characters(g->rows[i].name);
        longest = n > longest ? n : longest;
    }
    const int from_one = g->measure->unit == PLOT_BINADES && strcmp(g->measure->command, "diff") == 0;
    const double least = g->least <= g->most ? floor(g->least) : 0, most = g->least <= g->most ? ceil(g->most) : 1;
    fprintf(to, "n_rows = %zu; n_columns = %zu\n", g->n_rows, g->n_columns);
    fprintf(to, "unit = %d # of values: 0 decibels, 1 log2, 2 log10 of per cent\n", (int)g->measure->unit);
    fprintf(to, "less_is_worse = %d\n", g->measure->less_is_worse);
    fprintf(to, "v_low = %g; v_high = %g # values\n", from_one ? 0 : least, most > least ? most : least + 1);
    put_words(to, g);
    fprintf(to, "several = %d # 1: a column is several steps\n", g->n_steps > g->n_columns);
    fprintf(to, "step_length = %zu\n", step_length);
    fprintf(to, "name_length = %zu\n", longest < row_label(r) ? longest : row_label(r));
    put_first(to, g, r);
}
