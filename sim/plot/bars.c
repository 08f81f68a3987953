/* bars.c -- data and variables of the figure memory: a bar for each policy, of its components. */
#include "impl.h"

#include <math.h>

enum { NAME_SHOWN = 34 };

static size_t name_label(const plot_request *r)
{
    return plot_fit(0.38 * r->width - 0.14, NAME_SHOWN);
}

static double most_bytes(const plot_ledger *l)
{
    double most = 0;
    for (size_t i = 0; i < l->n_policies; i++)
        most = fmax(most, l->policies[i].total);
    return most;
}

/* A component that no eye would find is left out of the key. */
static int is_shown(const plot_ledger *l, size_t component)
{
    return l->sums[component] > most_bytes(l) / 2000;
}

typedef struct unit {
    double bytes;
    const char *name;
} unit;

/* In which the largest bar is at least 1. */
static unit unit_of(double most)
{
    static const unit units[] = {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "bytes"}};
    size_t i = 0;
    while (units[i].bytes > 1 && most < units[i].bytes)
        i++;
    return units[i];
}

void plot_put_bars(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_ledger *l = &in->ledger;
    const unit u = unit_of(most_bytes(l));
    fprintf(to, "\n\n# policies\n# 1 row  2 all, in %s  3 label  4 name\n", u.name);
    plot_common common = {0};
    for (size_t i = 0; i < l->n_policies; i++)
        plot_common_add(&common, l->policies[i].name);
    for (size_t i = 0; i < l->n_policies; i++) {
        fprintf(to, "%zu %.7g ", i, l->policies[i].total / u.bytes);
        plot_put_label_of(to, l->policies[i].name, name_label(r), &common);
        fputc(' ', to);
        plot_put_data(to, l->policies[i].name);
        fputc('\n', to);
    }
    fputs("\n\n# components: those that can be seen\n# 1 number of its colour  2 name\n", to);
    for (size_t k = 0; k < l->n_components; k++)
        if (is_shown(l, k)) {
            fprintf(to, "%zu ", k);
            plot_put_label(to, l->components[k], NAME_SHOWN);
            fputc('\n', to);
        }
    fprintf(to, "\n\n# parts\n# 1 row  2 number of the component  3 from  4 to, in %s\n0 0 0 0\n", u.name);
    for (size_t i = 0; i < l->n_policies; i++) {
        double at = 0;
        for (size_t k = 0; k < l->n_components; k++) {
            const double next = at + l->policies[i].bytes[k];
            if (next > at)
                fprintf(to, "%zu %zu %.7g %.7g\n", i, k, at / u.bytes, next / u.bytes);
            at = next;
        }
    }
}

void plot_put_bars_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_ledger *l = &in->ledger;
    size_t longest = 0, longest_component = 0, shown = 0;
    for (size_t i = 0; i < l->n_policies; i++) {
        const size_t n = plot_characters(l->policies[i].name);
        longest = n > longest ? n : longest;
    }
    for (size_t k = 0; k < l->n_components; k++)
        if (is_shown(l, k)) {
            const size_t n = plot_characters(l->components[k]);
            longest_component = n > longest_component ? n : longest_component;
            shown++;
        }
    const double most = most_bytes(l);
    const unit u = unit_of(most);
    fprintf(to, "n_rows = %zu; n_components = %zu\n", l->n_policies, shown);
    fprintf(to, "x_high = %.7g; unit = '%s'\n", most > 0 ? most / u.bytes : 1, u.name);
    fprintf(to, "name_length = %zu; component_length = %zu # characters\n",
            longest < name_label(r) ? longest : name_label(r),
            longest_component < NAME_SHOWN ? longest_component : (size_t)NAME_SHOWN);
}
