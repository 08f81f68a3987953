/* figures.c -- the figures: which blocks of data and variables each template gets.
 *
 * A block is named by the comment in front of it (gnuplot: index 'name'), and blocks are two
 * blank lines apart. Columns are described in the data. */
#include "figures.h"

#include "impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- common ---- */

static double percent(uint64_t n, uint64_t of)
{
    return of ? 100 * (double)n / (double)of : 0;
}

/* A few digits for people: 65504, 0.0156, 6.1e-5. */
static const char *short_number(char text[32], double x)
{
    int exponent = 0;
    if (x >= 1e-3 && x < 1e6) {
        snprintf(text, 32, x >= 100 ? "%.0f" : "%.3g", x);
        return text;
    }
    snprintf(text, 32, "%.1e", x);
    char *e = strchr(text, 'e');
    if (e && sscanf(e + 1, "%d", &exponent) == 1)
        snprintf(e, 16, "e%s%d", exponent < 0 ? "\xe2\x88\x92" : "", abs(exponent)); /* − */
    return text;
}

/* Characters of a label: what fits beside the plot, as the templates lay it out. */
enum { LABEL_MAX = 30, HISTOGRAM_LABEL = 16 };

static size_t ruler_label(const plot_request *r)
{
    return plot_fit(0.42 * r->width - 0.14, LABEL_MAX);
}

static size_t longest_format(const plot_groups *d)
{
    size_t longest = 0;
    for (size_t f = 0; f < d->formats.count; f++)
        if (plot_characters(d->formats.items[f].name) > longest)
            longest = plot_characters(d->formats.items[f].name);
    return longest;
}

static void put_formats(FILE *to, const plot_groups *d, size_t characters)
{
    char a[32], b[32], c[32];
    fputs("\n\n# formats\n"
          "# 1 row  2 log2 of the smallest positive number  3 log2 of the smallest normal one\n"
          "# 4 log2 of the largest one  5 these three numbers  6 name\n",
          to);
    for (size_t f = 0; f < d->formats.count; f++) {
        const plot_format *p = &d->formats.items[f];
        fprintf(to, "%zu %.10g %.10g %.10g \"%s | %s | %s\" ", f, log2(p->min_positive), log2(p->min_normal),
                log2(p->max), short_number(a, p->min_positive), short_number(b, p->min_normal),
                short_number(c, p->max));
        plot_put_label(to, p->name, characters);
        fputc('\n', to);
    }
}

/* That a figure adds up several steps is not to be seen in it: it has to say so. */
static void put_note(FILE *to, const plot_groups *d)
{
    fputs("note = '", to);
    (void)plot_put_steps(to, &d->steps);
    fputs("'\n", to);
}

/* ---- histogram ---- */

enum { SPAN_SHOWN = 48 };       /* formats of at most so many binades are shown to both ends */
static const double TAIL = 0.2; /* per cent */

/* The first and the last exponent that occurs; 0 if there is none. */
static int exponents(const plot_group *g, int *first, int *last)
{
    int found = 0;
    for (int i = 0; i < PLOT_BINS; i++)
        if (g->bins[i]) {
            if (!found)
                *first = i + PLOT_EXPONENT_MIN;
            *last = i + PLOT_EXPONENT_MIN;
            found = 1;
        }
    return found;
}

static void put_histogram(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_groups *d = &in->groups;
    const plot_group *g = &d->groups[0];
    const struct {
        int side;
        const char *name;
        uint64_t n;
    } special[] = {{-1, "x = 0", g->zero}, {1, "Inf", g->inf}, {2, "NaN", g->nan}};
    int first = 0, last = 0, side = 0;
    (void)r;

    fprintf(to, "# elements: %" PRIu64 "\n", g->count);
    fputs("\n\n# bins\n"
          "# 1 binary exponent e: 2^e <= |x| < 2^(e+1)  2 elements  3 per cent of all\n"
          "# 4 per cent of all that are of scaled tensors\n",
          to);
    exponents(g, &first, &last);
    for (int e = first - 1; e <= last + 1; e++) {
        const int i = e - PLOT_EXPONENT_MIN;
        const uint64_t n = i >= 0 && i < PLOT_BINS ? g->bins[i] : 0;
        const uint64_t scaled = i >= 0 && i < PLOT_BINS ? g->scaled_bins[i] : 0;
        fprintf(to, "%d %" PRIu64 " %.6g %.6g\n", e, n, percent(n, g->count), percent(scaled, g->count));
    }
    fputs("\n\n# special\n"
          "# 1 side: -1 left, 1 and 2 right  2 elements  3 per cent of all elements  4 name\n",
          to);
    for (size_t i = 0; i < 3; i++)
        if (special[i].n || i == 0) {
            side = i == 0 ? -1 : side < 1 ? 1 : 2;
            fprintf(to, "%d %" PRIu64 " %.6g ", side, special[i].n, percent(special[i].n, g->count));
            plot_put_data(to, special[i].name);
            fputc('\n', to);
        }
    put_formats(to, d, HISTOGRAM_LABEL);
    fputs("\n\n# scales\n"
          "# 1 row  2 scale  3 log2 of it  then for each format, in per cent of all elements:\n"
          "# underflow, overflow (NaN: not in the report)\n",
          to);
    for (size_t s = 0; s < d->scales.count; s++) {
        fprintf(to, "%zu %.10g %.10g", s, d->scales.items[s], log2(d->scales.items[s]));
        for (size_t f = 0; f < d->formats.count; f++) {
            const plot_effect *c = plot_effect_of(d, 0, f, s);
            if (c->noise.items == g->items)
                fprintf(to, " %.6g %.6g", percent(c->underflow, g->count), percent(c->overflow, g->count));
            else
                fputs(" NaN NaN", to);
        }
        fputc('\n', to);
    }
}

/* The exponents to show: on a linear axis without the lowest TAIL of the elements, which would
 * be an empty stretch. The largest are always shown: they overflow. */
static int visible_exponents(const plot_group *g, int log, int *first, int *last)
{
    uint64_t below = 0;
    if (!exponents(g, first, last))
        return 0;
    for (; !log && *first < *last; (*first)++)
        if (percent(below += g->bins[*first - PLOT_EXPONENT_MIN], g->count) >= TAIL)
            break;
    return 1;
}

/* Per cent of the elements with an exponent below `limit`. */
static double share_below(const plot_group *g, double limit)
{
    uint64_t n = 0;
    for (int i = 0; i < PLOT_BINS && i + PLOT_EXPONENT_MIN < limit; i++)
        n += g->bins[i];
    return percent(n, g->count);
}

static void put_histogram_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_groups *d = &in->groups;
    const plot_group *g = &d->groups[0];
    double low = HUGE_VAL, high = -HUGE_VAL, most = 0, least = 100;
    int first, last, overflow = 0;
    if (visible_exponents(g, r->log, &first, &last))
        for (size_t s = 0; s < d->scales.count; s++) {
            low = fmin(low, first + floor(log2(d->scales.items[s])));
            high = fmax(high, last + 1 + ceil(log2(d->scales.items[s])));
        }
    for (size_t f = 0; f < d->formats.count; f++) {
        const double from = floor(log2(d->formats.items[f].min_positive));
        const double up_to = ceil(log2(d->formats.items[f].max));
        if (up_to - from <= SPAN_SHOWN || low > high) {
            low = fmin(low, from);
            high = fmax(high, up_to);
        }
        for (size_t s = 0; s < d->scales.count; s++)
            overflow |= plot_effect_of(d, 0, f, s)->overflow > 0;
    }
    for (int i = 0; i < PLOT_BINS; i++) {
        const double share = percent(g->bins[i], g->count);
        most = fmax(most, share);
        if (share > 0)
            least = fmin(least, share);
    }
    const double special = fmax(percent(g->zero, g->count), fmax(percent(g->inf, g->count), percent(g->nan, g->count)));
    if (special > most && (special <= 1.5 * most || r->log || most == 0))
        most = special;
    fprintf(to, "logscale = %d # 1: logarithmic y axis\n", r->log);
    low -= 1;
    high += 1;
    fprintf(to, "x_low = %g; x_high = %g # binary exponents\n", low, high);
    fprintf(to, "tail = %.3g # per cent recorded below x_low\n", share_below(g, low));
    const double y_low = r->log ? pow(10, ceil(log10(least)) - 1) : 0;
    const double above = r->log ? fmax(2, pow(most / y_low, 0.12)) : 1.12; /* for a number */
    fprintf(to, "y_low = %g; y_high = %.4g # per cent; higher bins are cut off\n", y_low,
            most > 0 ? most * above : 100.0);
    fprintf(to, "n_formats = %zu; n_scales = %zu; n_right = %d\n", d->formats.count, d->scales.count,
            (g->inf > 0) + (g->nan > 0));
    fprintf(to, "overflows = %d # 1: show overflow beside underflow\n", overflow);
    fprintf(to, "cast_unscaled = %d # 0: the report has no casts of the recorded data\n", d->cast_unscaled);
    put_note(to, d);
    const size_t longest = longest_format(d);
    fprintf(to, "name_length = %zu\n", longest < HISTOGRAM_LABEL ? longest : HISTOGRAM_LABEL);
}

/* ---- ruler ---- */

static void put_ruler(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_groups *d = &in->groups;
    put_formats(to, d, ruler_label(r));
    fputs("\n\n# ranges\n"
          "# 1 row  of the non-zero finite elements, log2 of: 2 the smallest magnitude\n"
          "# 3 the root mean square  4 the largest magnitude  5 elements\n"
          "# 6 of them zero, Inf or NaN  7 label  8 name\n",
          to);
    plot_common common = {0};
    for (size_t i = 0; i < d->n_groups; i++)
        plot_common_add(&common, d->groups[i].name);
    for (size_t i = 0; i < d->n_groups; i++) {
        const plot_group *g = &d->groups[i];
        const uint64_t others = g->zero + g->inf + g->nan;
        fprintf(to, "%zu", i);
        if (g->amax > 0 && g->amin > 0 && others < g->count) {
            const double rms = g->l2 / sqrt((double)(g->count - others));
            fprintf(to, " %.6g", log2(g->amin));
            if (isfinite(rms) && rms > 0)
                fprintf(to, " %.6g", log2(rms));
            else
                fputs(" NaN", to);
            fprintf(to, " %.6g", log2(g->amax));
        } else
            fputs(" NaN NaN NaN", to);
        fprintf(to, " %" PRIu64 " %" PRIu64 " ", g->count, others);
        plot_put_label_of(to, g->name, ruler_label(r), &common);
        fputc(' ', to);
        plot_put_data(to, g->name);
        fputc('\n', to);
    }
}

static void put_ruler_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_groups *d = &in->groups;
    double low = HUGE_VAL, high = -HUGE_VAL;
    size_t longest = longest_format(d);
    for (size_t f = 0; f < d->formats.count; f++) {
        low = fmin(low, log2(d->formats.items[f].min_positive));
        high = fmax(high, log2(d->formats.items[f].max));
    }
    for (size_t i = 0; i < d->n_groups; i++) {
        const plot_group *g = &d->groups[i];
        if (g->amin > 0 && g->amax > 0) {
            low = fmin(low, log2(g->amin));
            high = fmax(high, log2(g->amax));
        }
        if (plot_characters(g->name) > longest)
            longest = plot_characters(g->name);
    }
    const double margin = 0.02 * (high - low) + 1;
    fprintf(to, "x_low = %g; x_high = %g # binary exponents\n", floor(low - margin), ceil(high + margin));
    fprintf(to, "n_formats = %zu; n_ranges = %zu\n", d->formats.count, d->n_groups);
    put_note(to, d);
    fprintf(to, "name_length = %zu\n", longest < ruler_label(r) ? longest : ruler_label(r));
}

/* ---- the figures ---- */

int plot_figure_read(const plot_figure *f, plot_input *in, const plot_selection *selection)
{
    const int code = f->plan ? plot_groups_read(&in->groups, &in->report, selection, f->plan) : 0;
    return code || !f->read ? code : f->read(in, selection);
}

/* New ones stand at the end: tests/fuzz/corpus/report chooses by their numbers. */
/* clang-format off */
const plot_figure plot_figures[] = {
    {"histogram", NULL, "stat", 0, "kind match step format scale log", &plot_of_histogram, NULL, put_histogram, put_histogram_variables},
    {"ruler", NULL, "stat", 0, "kind match step format scale log", &plot_of_ruler, NULL, put_ruler, put_ruler_variables},
    {"sweep", NULL, "stat", 0, "kind match step format scale by underflow", &plot_of_sweep, NULL, plot_put_window, plot_put_window_variables},
    {"scales", NULL, "stat", 0, "kind match step format by", &plot_of_scales, NULL, plot_put_distribution, plot_put_distribution_variables},
    {"sqnr", NULL, "stat", 0, "kind match step format scale by", &plot_of_sqnr, NULL, plot_put_comparison, plot_put_comparison_variables},
    {"accumulation", NULL, "dot", 0, "match column", NULL, plot_sweep_read, plot_put_accumulation, plot_put_accumulation_variables},
    {"training", NULL, "train", 1, "match column", NULL, plot_runs_read, plot_put_training, plot_put_training_variables},
    {"diff", "heatmap", "diff", 0, "kind match step column by", NULL, plot_grid_read, plot_put_heatmap, plot_put_heatmap_variables},
    {"heatmap", NULL, "stat", 0, "kind match step format scale column by", NULL, plot_grid_read, plot_put_heatmap, plot_put_heatmap_variables},
    {"lossscale", "steps", "scaler train replay", 0, "match", NULL, plot_lossscale_read, plot_put_courses, plot_put_courses_variables},
    {"updates", "steps", "train replay", 0, "match", NULL, plot_updates_read, plot_put_courses, plot_put_courses_variables},
    {"amax", "steps", "stat replay", 0, "kind match", NULL, plot_amax_read, plot_put_courses, plot_put_courses_variables},
    {"memory", NULL, "memory", 0, "match", NULL, plot_ledger_read, plot_put_bars, plot_put_bars_variables},
    {"ranking", "ranges", "stat", 0, "kind match step format scale", &plot_of_ranking, plot_ranking_make, plot_put_dots, plot_put_dots_variables},
    {"attention", "ranges", "attention", 1, "match", NULL, plot_attention_read, plot_put_dots, plot_put_dots_variables},
    {NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL},
};
/* clang-format on */
