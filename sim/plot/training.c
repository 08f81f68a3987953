/* training.c -- data and variables of the figure training: loss, loss scale and what rounding
 * loses, over the steps of trainings.
 *
 * Where there are more steps than a figure can show, blocks of steps share a point: the mean of
 * their finite losses, the share of all that they lose. A scale is
 * drawn where it changes; where skipped steps lie too close, the first of them is marked. */
#include "impl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { RUN_LABEL = 40, POINTS_PER_INCH = 24, MARKS_PER_INCH = 12 };

/* ---- blocks ---- */

/* Steps of a block: 1, 2, 5, 10, 20, ... */
static uint64_t block_steps(const plot_runs *s, double width)
{
    const double most = POINTS_PER_INCH * width;
    double block = 1;
    for (int i = 0; (double)(s->last - s->first) / block >= most; i++)
        block *= i % 3 == 1 ? 2.5 : 2;
    return (uint64_t)block;
}

/* A block of a run: the points from..to-1. Called with growing `block`, *from beginning at 0. */
typedef struct part {
    size_t from, to;
} part;

static part next_part(const plot_runs *s, const plot_training *r, uint64_t steps, uint64_t block, size_t *from)
{
    part p = {*from, *from};
    while (p.to < r->n && (r->points[p.to].step - s->first) / steps <= block)
        p.to++;
    *from = p.to;
    return p;
}

/* NaN: no finite loss. */
static double mean_loss(const plot_training *r, part p)
{
    double sum = 0, n = 0;
    for (size_t i = p.from; i < p.to; i++)
        if (isfinite(r->points[i].loss)) {
            sum += r->points[i].loss;
            n++;
        }
    return n > 0 ? sum / n : (double)NAN;
}

/* Per cent; NaN: of nothing. */
static double lost_share(const plot_training *r, part p)
{
    double lost = 0, of = 0;
    for (size_t i = p.from; i < p.to; i++) {
        lost += (double)r->points[i].lost;
        of += (double)r->points[i].of;
    }
    return of > 0 ? 100 * lost / of : (double)NAN;
}

static uint64_t n_blocks(const plot_runs *s, uint64_t steps)
{
    return (s->last - s->first) / steps + 1;
}

static double middle(const plot_runs *s, uint64_t steps, uint64_t block)
{
    const uint64_t first = s->first + block * steps;
    const uint64_t last = s->last - first < steps ? s->last : first + steps - 1;
    return ((double)first + (double)last) / 2;
}

/* ---- data ---- */

static void put_value(FILE *to, double x)
{
    if (isnan(x))
        fputs(" NaN", to);
    else
        fprintf(to, " %.7g", x);
}

/* A line for each block: its step, then for each run what `value` says. */
static void put_blocks(FILE *to, const plot_runs *s, uint64_t steps, double (*value)(const plot_training *r, part p))
{
    size_t from[PLOT_RUNS_MAX] = {0};
    for (uint64_t b = 0; b < n_blocks(s, steps); b++) {
        fprintf(to, "%.10g", middle(s, steps, b));
        for (size_t i = 0; i < s->n_runs; i++)
            put_value(to, value(&s->runs[i], next_part(s, &s->runs[i], steps, b, &from[i])));
        fputc('\n', to);
    }
}

/* The last block with a finite loss; the first step and 0 if there is none. */
static void find_end(const plot_runs *s, const plot_training *r, uint64_t steps, double *step, double *loss)
{
    size_t from = 0;
    const uint64_t last = r->finite ? (r->points[r->finite - 1].step - s->first) / steps : 0;
    part p = {0, 0};
    for (uint64_t b = 0; r->finite && b <= last; b++)
        p = next_part(s, r, steps, b, &from);
    *step = r->finite ? middle(s, steps, last) : (double)s->first;
    *loss = r->finite ? mean_loss(r, p) : 0;
}

static void put_ends(FILE *to, const plot_runs *s, uint64_t steps)
{
    fputs("\n\n# ends\n# 1 run  2 step and 3 loss of its last point with a finite loss\n"
          "# 4 1: no loss after it is finite, 2: none at all is  5 label  6 name\n",
          to);
    for (size_t i = 0; i < s->n_runs; i++) {
        const plot_training *r = &s->runs[i];
        double step, loss;
        find_end(s, r, steps, &step, &loss);
        fprintf(to, "%zu %.10g %.7g %d ", i + 1, step, loss, r->finite ? r->finite < r->n : 2);
        plot_put_label(to, r->name, RUN_LABEL);
        fputc(' ', to);
        plot_put_data(to, r->name);
        fprintf(to, " %" PRIu64 " %.7g\n", r->points[r->n - 1].step, log2(r->points[r->n - 1].scale));
    }
}

/* A block of the data for each run with a scaler: where its scale changes, and at its end. */
static void put_scales(FILE *to, const plot_runs *s)
{
    for (size_t i = 0; i < s->n_runs; i++) {
        const plot_training *r = &s->runs[i];
        if (!r->scaled)
            continue;
        fprintf(to, "\n\n# scale %zu\n# 1 step  2 log2 of the loss scale from there on\n", i + 1);
        for (size_t k = 0; k < r->n; k++)
            if (k == 0 || k + 1 == r->n || r->points[k].scale < r->points[k - 1].scale ||
                r->points[k].scale > r->points[k - 1].scale)
                fprintf(to, "%" PRIu64 " %.7g\n", r->points[k].step, log2(r->points[k].scale));
    }
}

/* Marks are wider than points. */
static size_t put_skipped(FILE *to, const plot_runs *s, double width)
{
    const double room = (double)(s->last - s->first) / (MARKS_PER_INCH * width);
    const uint64_t steps = room > 1 ? (uint64_t)ceil(room) : 1;
    size_t n = 0;
    for (size_t i = 0; i < s->n_runs; i++) {
        uint64_t before = UINT64_MAX;
        for (size_t k = 0; k < s->runs[i].n; k++) {
            const plot_point *p = &s->runs[i].points[k];
            const uint64_t block = (p->step - s->first) / steps;
            if (!p->skipped || block == before)
                continue;
            before = block;
            n++;
            if (to)
                fprintf(to, "%zu %" PRIu64 " %.7g\n", i + 1, p->step, log2(p->scale));
        }
    }
    return n;
}

static void put_steps(FILE *to, const plot_runs *s, uint64_t steps)
{
    fprintf(to, "# steps %" PRIu64 " to %" PRIu64 ", %s%" PRIu64 " to a point\n", s->first, s->last,
            steps > 1 ? "the mean of " : "", steps);
}

void plot_put_training(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_runs *s = &in->runs;
    const uint64_t steps = block_steps(s, r->width);
    put_steps(to, s, steps);
    fprintf(to,
            "\n\n# loss\n# 1 step%s  then for each run its training loss%s\n"
            "# (NaN: no step, or none with a finite loss)\n",
            steps > 1 ? ", the middle of a block" : "", steps > 1 ? ", the mean of the finite ones of a block" : "");
    put_blocks(to, s, steps, mean_loss);
    fprintf(to, "\n\n# lost\n# 1 step%s  then for each run %s, %s\n", steps > 1 ? ", the middle of a block" : "",
            s->column, s->axis);
    put_blocks(to, s, steps, lost_share);
    put_ends(to, s, steps);
    put_scales(to, s);
    fputs("\n\n# skipped\n# 1 run  2 step that was skipped  3 log2 of its loss scale\n", to);
    put_skipped(to, s, r->width);
}

/* ---- variables ---- */

static range find_range(const plot_runs *s, uint64_t steps, double (*value)(const plot_training *r, part p))
{
    range found = {HUGE_VAL, -HUGE_VAL};
    for (size_t i = 0; i < s->n_runs; i++) {
        size_t from = 0;
        for (uint64_t b = 0; b < n_blocks(s, steps); b++)
            plot_widen(&found, value(&s->runs[i], next_part(s, &s->runs[i], steps, b, &from)));
    }
    return found;
}

static double positive_loss(const plot_training *r, part p)
{
    const double x = mean_loss(r, p);
    return x > 0 ? x : (double)NAN;
}

/* What a run begins with; NaN: no finite loss. */
static double first_loss(const plot_training *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (isfinite(r->points[i].loss))
            return r->points[i].loss;
    return (double)NAN;
}

/* The axis of the loss: logarithmic where losses differ by more than a factor of LOG_FROM, and none is below 0; from 0
 * on where 0 is not far. What explodes to more than CUT times the largest loss at the beginning
 * leaves the figure. */
enum { LOG_FROM = 8, CUT = 1000 };

/* Losses of which some are below 0. */
static void put_signed_axis(FILE *to, range loss, range first)
{
    const double most = CUT * fmax(fabs(first.low), fabs(first.high));
    if (most > 0)
        loss = (range){fmax(loss.low, -most), fmin(loss.high, most)};
    const double margin = 0.05 * fmax(loss.high - loss.low, 0.01 * fmax(fabs(loss.low), fabs(loss.high)));
    fprintf(to, "loss_log = 0 # 1: logarithmic, y_low and y_high are powers of ten\n");
    fprintf(to, "y_low = %.6g; y_high = %.6g\n", loss.low - margin, loss.high + margin);
}

static void put_loss_axis(FILE *to, const plot_runs *s, uint64_t steps)
{
    range loss = find_range(s, steps, positive_loss), first = {HUGE_VAL, -HUGE_VAL};
    const range all = find_range(s, steps, mean_loss);
    for (size_t i = 0; i < s->n_runs; i++)
        plot_widen(&first, first_loss(&s->runs[i]));
    if (all.low < 0) {
        put_signed_axis(to, all, first);
        return;
    }
    if (first.high > 0)
        loss.high = fmin(loss.high, CUT * first.high);
    if (!(loss.low <= loss.high))
        loss = (range){1, 10};
    const int logarithmic = loss.high > LOG_FROM * loss.low;
    fprintf(to, "loss_log = %d # 1: logarithmic, y_low and y_high are powers of ten\n", logarithmic);
    if (logarithmic) {
        fprintf(to, "y_low = %.6g; y_high = %.6g\n", log10(loss.low) - 0.03, log10(loss.high) + 0.03);
    } else {
        const double margin = 0.05 * fmax(loss.high - loss.low, 0.01 * loss.high);
        const double low = loss.low > 0.4 * loss.high ? loss.low - margin : 0;
        fprintf(to, "y_low = %.6g; y_high = %.6g\n", low, loss.high + margin);
    }
}

static void put_scale_axis(FILE *to, const plot_runs *s)
{
    range scale = {HUGE_VAL, -HUGE_VAL};
    fputs("scaled = '", to);
    const char *space = "";
    for (size_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].scaled) {
            fprintf(to, "%s%zu", space, i + 1);
            space = " ";
            for (size_t k = 0; k < s->runs[i].n; k++)
                plot_widen(&scale, log2(s->runs[i].points[k].scale));
        }
    if (!*space)
        scale = (range){0, 0};
    scale = (range){floor(scale.low), ceil(scale.high)};
    if (scale.high - scale.low < 1)
        scale = (range){scale.low - 1, scale.high + 1};
    fprintf(to, "' # runs with a loss scale\nscale_low = %g; scale_high = %g # powers of two\n", scale.low, scale.high);
}

void plot_put_training_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_runs *s = &in->runs;
    const uint64_t steps = block_steps(s, r->width);
    size_t longest = 0, ended = 0;
    for (size_t i = 0; i < s->n_runs; i++) {
        const size_t length = plot_characters(s->runs[i].name);
        longest = length > longest ? length : longest;
        ended += s->runs[i].finite < s->runs[i].n;
    }
    const range lost = find_range(s, steps, lost_share);
    const int shown = s->matters || r->selection->column;
    put_steps(to, s, steps);
    fprintf(to, "n_runs = %zu; x_low = %" PRIu64 ".; x_high = %" PRIu64 ".; block = %" PRIu64 "\n", s->n_runs, s->first,
            s->last > s->first ? s->last : s->first + 1, steps);
    fprintf(to, "n_points = %" PRIu64 "; n_skipped = %zu; n_ended = %zu\n", n_blocks(s, steps),
            put_skipped(NULL, s, r->width), ended);
    put_loss_axis(to, s, steps);
    put_scale_axis(to, s);
    fprintf(to, "lost_high = %.6g # per cent; 0: not shown\n", !shown ? 0 : lost.high > 0 ? lost.high : 1);
    fprintf(to, "lost_label = '%s'\n", s->axis);
    fprintf(to, "name_length = %zu # characters\n", longest < RUN_LABEL ? longest : RUN_LABEL);
}
