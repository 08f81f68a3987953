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

static double decibels(const plot_groups *g, size_t row, size_t item)
{
    return decibels_of(&g->groups[row].effects[item].noise);
}

/* All that is selected. */
static double total(const plot_groups *g, size_t item)
{
    plot_noise all = {0};
    for (size_t i = 0; i < g->n_groups; i++)
        plot_noise_merge(&all, &g->groups[i].effects[item].noise);
    return decibels_of(&all);
}

/* Per cent of the elements. */
static double lost_share(const plot_groups *g, size_t row, size_t item)
{
    const plot_effect *e = &g->groups[row].effects[item];
    return e->elements ? 100 * (double)e->lost / (double)e->elements : 0;
}

static double total_lost(const plot_groups *g, size_t item)
{
    double lost = 0, of = 0;
    for (size_t i = 0; i < g->n_groups; i++) {
        lost += (double)g->groups[i].effects[item].lost;
        of += (double)g->groups[i].effects[item].elements;
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
    const plot_groups *g = &in->groups;
    plot_common targets = {0}, groups = {0};
    for (size_t k = 0; k < g->n_targets; k++)
        plot_common_add(&targets, g->targets[k].label);
    for (size_t i = 0; i < g->n_groups; i++)
        plot_common_add(&groups, g->groups[i].name);
    fputs("\n\n# targets\n# 1 target  2 1: a block recipe, 0: a format  3 SQNR in decibels of all that is selected\n"
          "# 4 per cent of all that become zero, Inf or NaN  5 label  6 name\n",
          to);
    for (size_t k = 0; k < g->n_targets; k++) {
        fprintf(to, "%zu %d", k, *g->targets[k].axis != '\0');
        put_decibels(to, total(g, k));
        fprintf(to, " %.6g", total_lost(g, k));
        put_name(to, g->targets[k].label, name_label(r), &targets);
    }
    fputs("\n\n# groups\n# 1 group  2 label  3 name\n", to);
    for (size_t i = 0; i < g->n_groups; i++) {
        fprintf(to, "%zu", i);
        put_name(to, g->groups[i].name, name_label(r), &groups);
    }
    fputs("\n\n# decibels\n# 1 target  2 group  3 SQNR in decibels, exact: no error, NaN: nothing to compare\n"
          "# 4 per cent of the elements that become zero, Inf or NaN\n",
          to);
    for (size_t i = 0; i < g->n_groups; i++)
        for (size_t k = 0; k < g->n_targets; k++)
            if (g->groups[i].effects[k].noise.items) {
                fprintf(to, "%zu %zu", k, i);
                put_decibels(to, decibels(g, i, k));
                fprintf(to, " %.6g\n", lost_share(g, i, k));
            }
}

/* Where block recipes begin, behind formats. */
static size_t first_recipe(const plot_groups *g)
{
    size_t n = 0;
    while (n < g->n_targets && !*g->targets[n].axis)
        n++;
    return n;
}

void plot_put_comparison_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_groups *g = &in->groups;
    double low = HUGE_VAL, high = -HUGE_VAL, lost = 0;
    size_t longest = 0, longest_group = 0;
    for (size_t k = 0; k < g->n_targets; k++) {
        const size_t n = plot_characters(g->targets[k].label);
        longest = n > longest ? n : longest;
        for (size_t i = 0; i < g->n_groups; i++) {
            const double x = decibels(g, i, k);
            lost = fmax(lost, lost_share(g, i, k));
            low = isfinite(x) ? fmin(low, x) : low;
            high = isfinite(x) ? fmax(high, x) : high;
        }
    }
    for (size_t i = 0; i < g->n_groups; i++) {
        const size_t n = plot_characters(g->groups[i].name);
        longest_group = n > longest_group ? n : longest_group;
    }
    if (!(low <= high))
        low = high = 0;
    fprintf(to, "v_low = %g; v_high = %g # decibels\n", floor(low) - 1, ceil(high) + 1);
    fprintf(to, "most_lost = %.3g # per cent of a cell's elements\n", lost);
    fprintf(to, "n_targets = %zu; n_formats = %zu; n_groups = %zu\n", g->n_targets, first_recipe(g), g->n_groups);
    fprintf(to, "name_length = %zu; group_length = %zu # characters\n",
            longest < name_label(r) ? longest : name_label(r),
            longest_group < name_label(r) ? longest_group : name_label(r));
    plot_groups_put_note(to, g);
    plot_groups_put_axes(to, g);
}
