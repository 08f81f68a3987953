/* heatmap.c -- data and variables of the figure diff: tensors or layers by step, how far they are apart. */
#include "heatmap.h"

#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NAME_MAX_SHOWN = 36 };

/* Characters of a row's name: what leaves room for the cells. */
static size_t row_label(const plot_request *r)
{
    const double characters = (0.40 * r->width - 0.10) / 0.0525;
    return characters < NAME_MAX_SHOWN ? (size_t)characters : NAME_MAX_SHOWN;
}

/* "7", "7-12", or "" of files without a step */
static void put_step(FILE *to, const plot_differences *d, size_t column)
{
    char text[64] = "";
    if (d->first[column] >= 0 && d->first[column] < d->last[column])
        snprintf(text, sizeof text, "%" PRId64 "\xe2\x80\x93%" PRId64, d->first[column], d->last[column]); /* – */
    else if (d->last[column] >= 0)
        snprintf(text, sizeof text, "%" PRId64, d->last[column]);
    plot_put_data(to, text);
}

void plot_put_heatmap(FILE *to, const plot_input *in, const plot_request *r)
{
    static const char *const states[] = {[PLOT_CELL_EQUAL] = "equal",
                                         [PLOT_CELL_APART] = "apart",
                                         [PLOT_CELL_BROKEN] = "broken",
                                         [PLOT_CELL_ABSENT] = "absent"};
    const plot_differences *d = &in->differences;
    fputs("\n\n# steps\n# 1 column  2 step\n", to);
    for (size_t c = 0; c < d->n_columns; c++) {
        fprintf(to, "%zu ", c);
        put_step(to, d, c);
        fputc('\n', to);
    }
    fputs("\n\n# rows\n# 1 row  2 label  3 name\n", to);
    for (size_t i = 0; i < d->n_rows; i++) {
        fprintf(to, "%zu ", i);
        plot_put_label(to, d->rows[i].name, row_label(r));
        fputc(' ', to);
        plot_put_data(to, d->rows[i].name);
        fputc('\n', to);
    }
    fprintf(to, "\n\n# cells\n# 1 column  2 row  3 %s  4 equal, apart, broken (NaN or Inf on one side) or absent\n",
            d->by_sqnr ? "SQNR in decibels" : "log2 of the largest number of ULPs");
    for (size_t i = 0; i < d->n_rows; i++)
        for (size_t c = 0; c < d->n_columns; c++) {
            const plot_cell *cell = &d->rows[i].cells[c];
            if (cell->state != PLOT_CELL_NONE)
                fprintf(to, "%zu %zu %.6g %s\n", c, i, cell->value, states[cell->state]);
        }
}

/* The cell of the first difference, if it is shown. */
static void put_first(FILE *to, const plot_differences *d, const plot_request *r)
{
    char text[512] = "", step[40] = "";
    int column = -1, row = -1;
    for (size_t i = 0; i < d->n_rows && !d->by_layer; i++)
        if (d->first_name && strcmp(d->rows[i].name, d->first_name) == 0)
            row = (int)i;
    for (size_t c = 0; c < d->n_columns && row >= 0; c++)
        if (d->first[c] <= d->first_step && d->first_step <= d->last[c])
            column = (int)c;
    if (d->first_step >= 0)
        snprintf(step, sizeof step, " of step %" PRId64, d->first_step);
    if (d->first_name && d->first_title)
        snprintf(text, sizeof text, "first: %.300s%s: %s", d->first_name, step, d->first_title);
    fprintf(to, "first_column = %d; first_row = %d # the first difference; -1: not shown\n", column, row);
    (void)r;
    fputs("first = '", to);
    for (const char *p = text; *p; p++) /* in single quotes: what a script cannot misread */
        if ((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f && !strchr("'`\\", *p))
            fputc(*p, to);
        else
            fputc('?', to);
    fputs("'\n", to);
}

void plot_put_heatmap_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_differences *d = &in->differences;
    size_t longest = 0;
    for (size_t i = 0; i < d->n_rows; i++) {
        const size_t n = plot_characters(d->rows[i].name);
        longest = n > longest ? n : longest;
    }
    const double least = d->least <= d->most ? floor(d->least) : 0, most = d->least <= d->most ? ceil(d->most) : 1;
    fprintf(to, "n_rows = %zu; n_columns = %zu\n", d->n_rows, d->n_columns);
    fprintf(to, "by_sqnr = %d # 1: decibels, less is worse; 0: log2 of ULPs\n", d->by_sqnr);
    fprintf(to, "v_low = %g; v_high = %g # values\n", d->by_sqnr ? least : 0, most > least ? most : least + 1);
    fprintf(to, "several = %d # 1: a column is several steps\n", d->n_steps > d->n_columns);
    fprintf(to, "name_length = %zu\n", longest < row_label(r) ? longest : row_label(r));
    put_first(to, d, r);
}
