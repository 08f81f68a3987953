/* steps.c -- data and variables of the figures lossscale, updates and amax: curves over the steps.
 *
 * Where there are more steps than a figure can show, several share a point: their mean, or the largest, as the kind of curve
 * says. Where marks lie too close, the first of them is drawn. */
#include "impl.h"

#include <math.h>

enum { CURVE_LABEL = 48, POINTS_PER_INCH = 24, MARKS_PER_INCH = 12 };

static range find_steps(const plot_courses *c)
{
    range steps = {HUGE_VAL, -HUGE_VAL};
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->items[i].n; k++)
            plot_widen(&steps, c->items[i].moments[k].step);
    return steps;
}

/* Steps to a point: 1, 2, 5, 10, 20, ... */
static double joined_steps(const plot_courses *c, double width)
{
    double block = 1;
    size_t longest = 0;
    const range steps = find_steps(c);
    for (size_t i = 0; i < c->n; i++)
        longest = c->items[i].n > longest ? c->items[i].n : longest;
    if (!c->kind->joined || (double)longest <= POINTS_PER_INCH * width)
        return 1;
    for (int i = 0; (steps.high - steps.low) / block >= POINTS_PER_INCH * width; i++)
        block *= i % 3 == 1 ? 2.5 : 2;
    return block;
}

/* The moments from *at on that share a point, as one. */
static plot_moment next_point(const plot_courses *c, const plot_curve_of_steps *curve, double block, size_t *at)
{
    plot_moment point = curve->moments[*at];
    const double place = floor(point.step / block);
    double sums[PLOT_PANELS], n[PLOT_PANELS] = {0, 0};
    for (int p = 0; p < PLOT_PANELS; p++)
        sums[p] = 0;
    const double first = point.step;
    point.marked = 0;
    for (; *at < curve->n; ++*at) {
        const plot_moment *m = &curve->moments[*at];
        if (block > 1 ? floor(m->step / block) > place : m->step < first || m->step > first)
            break;
        point.step = (first + m->step) / 2;
        point.marked |= m->marked;
        for (int p = 0; p < PLOT_PANELS; p++)
            if (!isnan(m->values[p])) {
                sums[p] = n[p] < 1               ? m->values[p]
                          : c->kind->joined == 1 ? sums[p] + m->values[p]
                                                 : fmax(sums[p], m->values[p]);
                n[p]++;
            }
    }
    for (int p = 0; p < PLOT_PANELS; p++)
        point.values[p] = n[p] < 1 ? (double)NAN : c->kind->joined == 1 ? sums[p] / n[p] : sums[p];
    return point;
}

static void put_value(FILE *to, double x)
{
    if (isnan(x))
        fputs(" NaN", to);
    else
        fprintf(to, " %.7g", x);
}

static void put_curve(FILE *to, const plot_courses *c, size_t i, double block)
{
    fprintf(to, "\n\n# curve %zu\n# 1 step  2, 3 %s of each panel\n", i + 1, c->kind->percent ? "per cent" : "log2");
    for (size_t at = 0; at < c->items[i].n;) {
        const plot_moment m = next_point(c, &c->items[i], block, &at);
        fprintf(to, "%.10g", m.step);
        for (int p = 0; p < PLOT_PANELS; p++)
            put_value(to, m.values[p]);
        fputc('\n', to);
    }
}

/* How many there are; written where `to` is not NULL. */
static size_t put_marks(FILE *to, const plot_courses *c, double width)
{
    const range steps = find_steps(c);
    const double apart = (steps.high - steps.low) / (MARKS_PER_INCH * width);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        double last = -HUGE_VAL;
        for (size_t k = 0; k < c->items[i].n; k++) {
            const plot_moment *m = &c->items[i].moments[k];
            if (!m->marked || m->step - last < apart || isnan(m->values[0]))
                continue;
            last = m->step;
            n++;
            if (to)
                fprintf(to, "%zu %.10g %.7g\n", i + 1, m->step, m->values[0]);
        }
    }
    return n;
}

void plot_put_courses(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_courses *c = &in->courses;
    const double block = joined_steps(c, r->width);
    const size_t label = plot_fit(r->width - 0.56, CURVE_LABEL);
    fputs("\n\n# names\n# 1 curve  2 label  3 name\n", to);
    plot_common common = {0};
    for (size_t i = 0; i < c->n; i++)
        plot_common_add(&common, c->items[i].name);
    for (size_t i = 0; i < c->n; i++) {
        fprintf(to, "%zu ", i + 1);
        plot_put_label_of(to, c->items[i].name, label, &common);
        fputc(' ', to);
        plot_put_data(to, c->items[i].name);
        fputc('\n', to);
    }
    for (size_t i = 0; i < c->n; i++)
        put_curve(to, c, i, block);
    fprintf(to, "\n\n# marks\n# 1 curve  2 step  3 value in the first panel: %s\n", c->kind->mark);
    put_marks(to, c, r->width);
}

/* Of the values of a panel as they are drawn. */
static range find_values(const plot_courses *c, int panel, double block)
{
    range values = {HUGE_VAL, -HUGE_VAL};
    for (size_t i = 0; i < c->n; i++)
        for (size_t at = 0; at < c->items[i].n;)
            plot_widen(&values, next_point(c, &c->items[i], block, &at).values[panel]);
    return values;
}

void plot_put_courses_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_courses *c = &in->courses;
    const double block = joined_steps(c, r->width);
    const range steps = find_steps(c);
    size_t longest = 0;
    for (size_t i = 0; i < c->n; i++) {
        const size_t n = plot_characters(c->items[i].name);
        longest = n > longest ? n : longest;
    }
    fprintf(to, "n_curves = %zu; n_panels = %d\n", c->n, c->panels);
    fprintf(to, "axis = '%s'; block = %.10g; joined = '%s'\n", c->axis, block,
            c->kind->joined == 1 ? "mean" : "largest");
    fprintf(to, "x_low = %.10g; x_high = %.10g\n", steps.low, steps.high > steps.low ? steps.high : steps.low + 1);
    fprintf(to, "percent_axis = %d # 1: per cent, 0: log2\n", c->kind->percent);
    for (int p = 0; p < PLOT_PANELS; p++) {
        range v = find_values(c, p, block);
        if (!(v.low <= v.high))
            v = (range){0, 0};
        v = c->kind->percent ? (range){0, v.high > 0 ? v.high : 1} : (range){floor(v.low), ceil(v.high)};
        if (v.high - v.low < 1 && !c->kind->percent)
            v = (range){v.low - 1, v.high + 1};
        fprintf(to, "heading_%d = '%s'; low_%d = %.10g; high_%d = %.10g; stairs_%d = %d\n", p + 1,
                c->kind->panels[p] ? c->kind->panels[p] : "", p + 1, v.low, p + 1, v.high, p + 1,
                c->kind->stairs >> p & 1);
    }
    fprintf(to, "mark = '%s' # of marks; none: ''\n", put_marks(NULL, c, r->width) ? c->kind->mark : "");
    const size_t label = plot_fit(r->width - 0.56, CURVE_LABEL);
    fprintf(to, "name_length = %zu # characters\n", longest < label ? longest : label);
}
