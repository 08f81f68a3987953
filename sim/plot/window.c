/* window.c -- data and variables of the figure sweep: underflow, overflow and SQNR over the loss
 * scale, and the safe scales. */
#include "impl.h"

#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FORMAT_LABEL = 24, TEXT = 160 };

/* Characters of the name of a curve: what a line of the key holds. */
static size_t curve_label(const plot_request *r)
{
    return plot_fit(r->width - 0.5, PLOT_LABEL_MAX);
}

/* ---- safe scales ---- */

/* Per cent of all elements. */
static double underflow(const plot_groups *s, size_t curve, size_t format, size_t scale)
{
    const uint64_t count = s->groups[curve].count;
    return count ? 100 * (double)plot_effect_of(s, curve, format, scale)->underflow / (double)count : 0;
}

static double overflow(const plot_groups *s, size_t curve, size_t format, size_t scale)
{
    const uint64_t count = s->groups[curve].count;
    return count ? 100 * (double)plot_effect_of(s, curve, format, scale)->overflow / (double)count : 0;
}

/* The safe scales of a format: those at which no element of any curve overflows and of no curve more
 * than `limit` per cent of the elements underflow. */
typedef struct window {
    scale_run run; /* last < first: there are none                             */
    size_t best;   /* then: the largest scale at which nothing overflows,      */
    double lost;   /* and the per cent of the curve of which most underflows there; < 0: something
                           overflows at every scale */
} window;

/* The largest share of underflow at a scale; < 0 if something overflows. */
static double judge(const plot_groups *s, size_t format, size_t scale)
{
    double most = 0;
    for (size_t i = 0; i < s->n_groups; i++) {
        if (plot_effect_of(s, i, format, scale)->overflow)
            return -1;
        most = fmax(most, underflow(s, i, format, scale));
    }
    return most;
}

static window find_window(const plot_groups *s, size_t format)
{
    window w = {.run = {.first = 1}, .lost = -1};
    for (size_t k = 0; k < s->scales.count; k++) {
        const double lost = judge(s, format, k);
        if (lost >= 0) {
            w.lost = lost;
            w.best = k;
        }
        scale_run_see(&w.run, k, lost >= 0 && lost <= s->limit);
    }
    return w;
}

/* ---- words ---- */

/* "2¹⁶", "1000" */
static void scale_name(char text[64], double scale)
{
    static const char *const digits[] = {"\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",
                                         "\xe2\x81\xb4", "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7",
                                         "\xe2\x81\xb8", "\xe2\x81\xb9"};
    int power;
    char plain[16];
    if (frexp(scale, &power) > 0.5) {
        snprintf(text, 64, "%.6g", scale);
        return;
    }
    snprintf(plain, sizeof plain, "%d", power - 1);
    strcpy(text, "2");
    for (const char *p = plain; *p; p++)
        text_add(text, 64, "%s", *p == '-' ? "\xe2\x81\xbb" : digits[*p - '0']); /* ⁻ */
}

/* What the figure says of the scales of a format. */
static void window_text(char text[TEXT], const plot_groups *s, size_t format)
{
    const window found = find_window(s, format), *w = &found;
    const size_t end = s->scales.count - 1;
    char first[64], last[64];
    if (w->run.last < w->run.first && w->lost < 0) {
        snprintf(text, TEXT, "none safe: overflow at every scale");
        return;
    }
    if (w->run.last < w->run.first) {
        scale_name(last, s->scales.items[w->best]);
        snprintf(text, TEXT, "none safe: %.3g %% underflow at %s", w->lost, last);
        return;
    }
    scale_name(first, s->scales.items[w->run.first]);
    scale_name(last, s->scales.items[w->run.last]);
    if (w->run.first == 0 && w->run.last == end)
        snprintf(text, TEXT, "safe: %s to %s, all shown", first, last);
    else if (w->run.first == w->run.last)
        snprintf(text, TEXT, "safe: %s", first);
    else
        snprintf(text, TEXT, "safe: %s to %s", first, last);
}

/* ---- data ---- */

static void put_value(FILE *to, double x)
{
    if (isnan(x) || isinf(x))
        fputs(isnan(x) || x < 0 ? " NaN" : " exact", to);
    else
        fprintf(to, " %.7g", x);
}

static void put_casts(FILE *to, const plot_groups *s, size_t f)
{
    fprintf(to, "\n\n# casts %zu\n# ", f + 1);
    plot_put_comment(to, s->formats.items[f].name);
    fputs("\n# 1 log2 of the loss scale  then for each curve: underflow, overflow in per cent of all\n"
          "# elements, SQNR in decibels of those that do not overflow (exact: no error)\n",
          to);
    for (size_t k = 0; k < s->scales.count; k++) {
        fprintf(to, "%.10g", log2(s->scales.items[k]));
        for (size_t i = 0; i < s->n_groups; i++) {
            put_value(to, underflow(s, i, f, k));
            put_value(to, overflow(s, i, f, k));
            put_value(to, plot_noise_decibels(&plot_effect_of(s, i, f, k)->noise));
        }
        fputc('\n', to);
    }
}

void plot_put_window(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_groups *s = &in->groups;
    char text[TEXT];
    fprintf(to, "# safe: no element of any curve overflows, of none underflow more than %.6g %%\n", s->limit);
    fputs("\n\n# windows\n# 1 format  2 log2 of the first and 3 of the last safe scale (NaN: there is none)\n"
          "# 4 label  5 what the figure says  6 name\n",
          to);
    for (size_t f = 0; f < s->formats.count; f++) {
        const window found = find_window(s, f), *w = &found;
        fprintf(to, "%zu", f + 1);
        put_value(to, w->run.first <= w->run.last ? log2(s->scales.items[w->run.first]) : (double)NAN);
        put_value(to, w->run.first <= w->run.last ? log2(s->scales.items[w->run.last]) : (double)NAN);
        fputc(' ', to);
        plot_put_label(to, s->formats.items[f].name, FORMAT_LABEL);
        window_text(text, s, f);
        fputc(' ', to);
        plot_put_data(to, text);
        fputc(' ', to);
        plot_put_data(to, s->formats.items[f].name);
        fputc('\n', to);
    }
    fputs("\n\n# curves\n# 1 curve  2 elements  3 of them zero  4 Inf or NaN  5 label  6 name\n", to);
    for (size_t i = 0; i < s->n_groups; i++) {
        const plot_group *c = &s->groups[i];
        fprintf(to, "%zu %" PRIu64 " %" PRIu64 " %" PRIu64 " ", i + 1, c->count, c->zero, c->nan + c->inf);
        plot_put_label(to, c->name, curve_label(r));
        fputc(' ', to);
        plot_put_data(to, c->name);
        fputc('\n', to);
    }
    for (size_t f = 0; f < s->formats.count; f++)
        put_casts(to, s, f);
}

/* ---- variables ---- */

/* Of shares above zero, and of SQNR. */
static void find_ranges(const plot_groups *s, range *shares, range *sqnr, int *exact)
{
    *shares = *sqnr = (range){HUGE_VAL, -HUGE_VAL};
    *exact = 0;
    for (size_t i = 0; i < s->n_groups; i++)
        for (size_t f = 0; f < s->formats.count; f++)
            for (size_t k = 0; k < s->scales.count; k++) {
                const double both[] = {underflow(s, i, f, k), overflow(s, i, f, k)};
                const double db = plot_noise_decibels(&plot_effect_of(s, i, f, k)->noise);
                for (size_t j = 0; j < 2; j++)
                    plot_widen(shares, both[j] > 0 ? both[j] : (double)NAN);
                plot_widen(sqnr, db);
                *exact |= isinf(db) && db > 0;
            }
}

/* What the report's scales are: of gradients that hold a loss scale, a factor beside it. */
static void put_axis(FILE *to, const plot_groups *s)
{
    fprintf(to, "axis = '%s'\n",
            s->settings.scaled > 0 ? "factor on gradients that hold the loss scale" : "loss scale");
}

void plot_put_window_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    enum { DECADES = 6 };
    const plot_groups *s = &in->groups;
    range shares, sqnr;
    int exact;
    size_t text_length = 0;
    char text[TEXT];
    (void)r;
    find_ranges(s, &shares, &sqnr, &exact);
    if (s->limit > 0)
        plot_widen(&shares, s->limit);
    for (size_t f = 0; f < s->formats.count; f++) {
        const size_t name = plot_characters(s->formats.items[f].name);
        window_text(text, s, f);
        const size_t n = plot_characters(text) + (name < FORMAT_LABEL ? name : FORMAT_LABEL);
        text_length = n > text_length ? n : text_length;
    }
    const double y_low = shares.high > 0 ? fmax(floor(log10(shares.low)), 2 - DECADES) : -1;
    const int has_sqnr = sqnr.low <= sqnr.high;
    if (!has_sqnr)
        sqnr = (range){0, 10};
    const double margin = fmax(2, 0.08 * (sqnr.high - sqnr.low));
    fprintf(to, "n_formats = %zu; n_curves = %zu\n", s->formats.count, s->n_groups);
    fprintf(to, "x_low = %.10g; x_high = %.10g # log2 of the loss scale\n", log2(s->scales.items[0]),
            log2(s->scales.items[s->scales.count - 1]));
    fprintf(to, "n_scales = %zu\n", s->scales.count);
    fprintf(to, "y_low = %g # power of ten of per cent; 100 %% is the end\n", fmin(y_low, 1));
    fprintf(to, "sqnr_low = %g; sqnr_high = %g # decibels\n", floor(sqnr.low - margin), ceil(sqnr.high + margin));
    fprintf(to, "has_sqnr = %d; exact = %d # 1: some have an error, some have none\n", has_sqnr, exact);
    fprintf(to, "limit = %.6g # per cent of underflow in the safe window\n", s->limit);
    plot_groups_put_note(to, s);
    put_axis(to, s);
    fprintf(to, "heading_length = %zu # characters\n", text_length);
}
