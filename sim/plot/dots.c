/* dots.c -- data and variables of the figures ranking and attention: a row for each recipe or model, in panels. */
#include "impl.h"

#include <math.h>

enum { NAME_SHOWN = 36, DECADES = 8 };

static size_t name_label(const plot_request *r)
{
    return plot_fit(0.38 * r->width - 0.14, NAME_SHOWN);
}

/* On the panel's axis; infinite: no error, minus infinite: 0 on a logarithmic one. */
static double on_axis(const plot_ranges *s, size_t panel, double x)
{
    return s->logarithmic >> panel & 1 ? (x > 0 ? log10(x) : isnan(x) ? x : -HUGE_VAL) : x;
}

typedef struct axis {
    double low, high;
    int zero, infinite; /* 1: some value is 0 (of a logarithmic axis), or infinite */
    int any;            /* 0: no row has a value */
} axis;

static axis find_axis(const plot_ranges *s, size_t panel)
{
    axis a = {.low = HUGE_VAL, .high = -HUGE_VAL};
    for (size_t i = 0; i < s->n_rows; i++) {
        const plot_spread *p = &s->rows[i].panels[panel];
        const double ends[] = {p->low, p->middle, p->high};
        for (int k = 0; k < 3; k++) {
            const double x = on_axis(s, panel, ends[k]);
            a.low = isfinite(x) ? fmin(a.low, x) : a.low;
            a.high = isfinite(x) ? fmax(a.high, x) : a.high;
            a.any |= !isnan(x);
            a.zero |= isinf(x) && x < 0;
            a.infinite |= isinf(x) && x > 0;
        }
    }
    if (!(a.low <= a.high))
        a.low = a.high = 0;
    const int logarithmic = s->logarithmic >> panel & 1;
    a.low = floor(a.low);
    a.high = ceil(a.high);
    if (a.high <= a.low && logarithmic)
        a.low = a.high - 1; /* 10 to 100 %, not 100 to 1000 */
    else if (a.high <= a.low)
        a.high = a.low + 1;
    if (logarithmic && a.high - a.low > DECADES) {
        a.low = a.high - DECADES;
        a.zero = 1;
    }
    return a;
}

/* As the axis has it: what lies below its first decade with 0. */
static void put_value(FILE *to, const axis *a, double x)
{
    if (isnan(x))
        fputs(" NaN", to);
    else
        fprintf(to, " %.7g", x > a->high ? a->high + 1e3 : x < a->low ? a->low - 1e3 : x);
}

void plot_put_dots(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_ranges *s = &in->ranges;
    fputs("\n\n# rows\n# 1 row  2 label  3 name\n", to);
    plot_common common = {0};
    for (size_t i = 0; i < s->n_rows; i++)
        plot_common_add(&common, s->rows[i].name);
    for (size_t i = 0; i < s->n_rows; i++) {
        fprintf(to, "%zu ", i);
        plot_put_label_of(to, s->rows[i].name, name_label(r), &common);
        fputc(' ', to);
        plot_put_data(to, s->rows[i].name);
        fputc('\n', to);
    }
    for (size_t p = 0; p < s->n_panels; p++) {
        const axis a = find_axis(s, p);
        fprintf(
            to,
            "\n\n# panel %zu: %s%s\n# 1 row  2 least  3 lower quartile  4 median  5 upper quartile  6 largest  7 1: "
            "below 0\n# beyond the axis by 1000: no error, or 0\n",
            p + 1, s->headings[p], s->logarithmic >> p & 1 ? ", log10" : "");
        for (size_t i = 0; i < s->n_rows; i++) {
            const plot_spread *v = &s->rows[i].panels[p];
            const double values[] = {v->low, v->quarter, v->middle, v->three_quarters, v->high};
            fprintf(to, "%zu", i);
            for (int k = 0; k < 5; k++)
                put_value(to, &a, on_axis(s, p, values[k]));
            fprintf(to, " %d\n", v->negative);
        }
    }
}

void plot_put_dots_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_ranges *s = &in->ranges;
    size_t longest = 0, negative = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        const size_t n = plot_characters(s->rows[i].name);
        longest = n > longest ? n : longest;
        for (size_t p = 0; p < s->n_panels; p++)
            negative += s->rows[i].panels[p].negative > 0;
    }
    fprintf(to, "n_rows = %zu; n_panels = %zu\n", s->n_rows, s->n_panels);
    fprintf(to,
            "array heading[%zu]; array low[%zu]; array high[%zu]; array logarithmic[%zu]; array zero[%zu]; array "
            "infinite[%zu]; array any[%zu]\n",
            s->n_panels, s->n_panels, s->n_panels, s->n_panels, s->n_panels, s->n_panels, s->n_panels);
    for (size_t p = 0; p < s->n_panels; p++) {
        const axis a = find_axis(s, p);
        fprintf(to, "heading[%zu] = '%s'; low[%zu] = %.7g; high[%zu] = %.7g; logarithmic[%zu] = %d; zero[%zu] = %d; ",
                p + 1, s->headings[p], p + 1, a.low, p + 1, a.high, p + 1, s->logarithmic >> p & 1, p + 1, a.zero);
        fprintf(to, "infinite[%zu] = %d; any[%zu] = %d\n", p + 1, a.infinite, p + 1, a.any);
    }
    fprintf(to, "spread = %d; n_values = %zu # 1: ranges of at most so many values\n", s->spread, s->values);
    fprintf(to, "negatives = %d # 1: some magnitude is of a number below 0\n", negative > 0);
    fprintf(to, "name_length = %zu\n", longest < name_label(r) ? longest : name_label(r));
    if (s->spread) {
        plot_groups_put_note(to, &in->groups);
        plot_groups_put_axes(to, &in->groups);
    } else {
        fputs("note = ''; axes = ''\n", to);
    }
}
