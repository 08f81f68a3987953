/* comparison.c -- see comparison.h. */
#include "impl.h"

#include <inttypes.h>
#include <math.h>

enum { NAME_SHOWN = 30 };

/* Characters of a name beside the plot. */
static size_t name_label(const plot_request *r)
{
    return plot_fit(0.40 * r->width - 0.14, NAME_SHOWN);
}

/* Finite ones as far as a figure goes: a report may say anything. */
static double decibels_of(const plot_noise *n)
{
    const double most = 1e5, x = n->items ? plot_noise_decibels(n) : (double)NAN;
    return isfinite(x) ? fmax(-most, fmin(most, x)) : x;
}

static double decibels(const plot_targets *t, size_t row, size_t item)
{
    return decibels_of(&t->rows[row].effects[item].noise);
}

/* All that is selected. */
static double total(const plot_targets *t, size_t item)
{
    plot_noise all = {0};
    for (size_t i = 0; i < t->n_rows; i++)
        plot_noise_merge(&all, &t->rows[i].effects[item].noise);
    return decibels_of(&all);
}

/* Per cent of the elements. */
static double lost_share(const plot_targets *t, size_t row, size_t item)
{
    const plot_effect *e = &t->rows[row].effects[item];
    return e->elements ? 100 * (double)e->lost / (double)e->elements : 0;
}

static double total_lost(const plot_targets *t, size_t item)
{
    double lost = 0, of = 0;
    for (size_t i = 0; i < t->n_rows; i++) {
        lost += (double)t->rows[i].effects[item].lost;
        of += (double)t->rows[i].effects[item].elements;
    }
    return of > 0 ? 100 * lost / of : 0;
}

static void put_decibels(FILE *to, double x)
{
    if (isinf(x) || isnan(x))
        fputs(isnan(x) || x < 0 ? " NaN" : " exact", to);
    else
        fprintf(to, " %.6g", x);
}

static void put_name(FILE *to, const char *name, size_t characters, const plot_common *common)
{
    fputc(' ', to);
    plot_put_label_of(to, name, characters, common);
    fputc(' ', to);
    plot_put_data(to, name);
    fputc('\n', to);
}

void plot_put_comparison(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_targets *t = &in->targets;
    plot_common targets = {0}, groups = {0};
    for (size_t k = 0; k < t->n_items; k++)
        plot_common_add(&targets, t->items[k].label);
    for (size_t i = 0; i < t->n_rows; i++)
        plot_common_add(&groups, t->rows[i].name);
    fputs("\n\n# targets\n# 1 target  2 1: a block recipe, 0: a format  3 SQNR in decibels of all that is selected\n"
          "# 4 per cent of all that become zero, Inf or NaN  5 label  6 name\n",
          to);
    for (size_t k = 0; k < t->n_items; k++) {
        fprintf(to, "%zu %d", k, *t->items[k].axis != '\0');
        put_decibels(to, total(t, k));
        fprintf(to, " %.6g", total_lost(t, k));
        put_name(to, t->items[k].label, name_label(r), &targets);
    }
    fputs("\n\n# groups\n# 1 group  2 label  3 name\n", to);
    for (size_t i = 0; i < t->n_rows; i++) {
        fprintf(to, "%zu", i);
        put_name(to, t->rows[i].name, name_label(r), &groups);
    }
    fputs("\n\n# decibels\n# 1 target  2 group  3 SQNR in decibels, exact: no error, NaN: nothing to compare\n"
          "# 4 per cent of the elements that become zero, Inf or NaN\n",
          to);
    for (size_t i = 0; i < t->n_rows; i++)
        for (size_t k = 0; k < t->n_items; k++)
            if (t->rows[i].effects[k].noise.items) {
                fprintf(to, "%zu %zu", k, i);
                put_decibels(to, decibels(t, i, k));
                fprintf(to, " %.6g\n", lost_share(t, i, k));
            }
}

/* Where block recipes begin, behind formats. */
static size_t first_recipe(const plot_targets *t)
{
    size_t n = 0;
    while (n < t->n_items && !*t->items[n].axis)
        n++;
    return n;
}

void plot_put_comparison_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_targets *t = &in->targets;
    double low = HUGE_VAL, high = -HUGE_VAL, lost = 0;
    size_t longest = 0, longest_group = 0;
    for (size_t k = 0; k < t->n_items; k++) {
        const size_t n = plot_characters(t->items[k].label);
        longest = n > longest ? n : longest;
        for (size_t i = 0; i < t->n_rows; i++) {
            const double x = decibels(t, i, k);
            lost = fmax(lost, lost_share(t, i, k));
            low = isfinite(x) ? fmin(low, x) : low;
            high = isfinite(x) ? fmax(high, x) : high;
        }
    }
    for (size_t i = 0; i < t->n_rows; i++) {
        const size_t n = plot_characters(t->rows[i].name);
        longest_group = n > longest_group ? n : longest_group;
    }
    if (!(low <= high))
        low = high = 0;
    fprintf(to, "v_low = %g; v_high = %g # decibels\n", floor(low) - 1, ceil(high) + 1);
    fprintf(to, "most_lost = %.3g # per cent of a cell's elements\n", lost);
    fprintf(to, "n_targets = %zu; n_formats = %zu; n_groups = %zu\n", t->n_items, first_recipe(t), t->n_rows);
    fprintf(to, "name_length = %zu; group_length = %zu # characters\n",
            longest < name_label(r) ? longest : name_label(r),
            longest_group < name_label(r) ? longest_group : name_label(r));
    plot_targets_put_note(to, t);
}
