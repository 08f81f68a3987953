/* course.c -- see course.h. */
#include "course.h"

#include <math.h>
#include <stdlib.h>

/* BEFORE: lines that a jump is seen from. MANY: lines from which on the large steps count for the noise, too: fewer may be a
 * rise alone; so many make a noise of their own, NEAR a level. MONOTONE: lines that rise one after another, in a quarter of all at least.
 * SHORTER: fewer lines are compared one by one. BLOCKS: so many have a noise of their own, where lines that are near are alike. */
enum { BEFORE = 9, MANY = 16, NEAR = 32, MONOTONE = 4, BLOCKS = 16, SHORTER = 12 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- noise ---- */

/* Numbers that are all above 0 are compared by their logarithms: where a loss is small, its noise is. */
static double measure(const course *c, double x)
{
    return c->least > 0 ? log(x) : x;
}

static double gap(const course *c, double from, double to)
{
    return measure(c, to) - measure(c, from);
}

/* The size of a step between neighbours: by the steps, or by how much they differ, which a trend does not count in. Where
 * lines are of two kinds, most steps are small and some are not: the fifth of them that is large counts, as it does in normal
 * noise. */
static double noise_of_steps(const double *x, size_t n)
{
    enum { MOST = 2 * BLOCKS * BLOCKS };
    const double large = 1.9,
                 twice = 1.155; /* |step|: the 80th percentile by the median; |x - mean of neighbours| by that */
    double steps[MOST], bends[MOST];
    size_t k = 0;
    for (; k + 1 < n && k < MOST; k++) {
        steps[k] = fabs(x[k + 1] - x[k]);
        bends[k] = k && n > LEVEL ? twice * fabs(x[k] - (x[k - 1] + x[k + 1]) / 2) : (double)INFINITY;
    }
    if (k == 0)
        return 0;
    bends[0] = k > 2 ? bends[k - 1] : (double)INFINITY;
    qsort(steps, k, sizeof *steps, by_value);
    qsort(bends, k, sizeof *bends, by_value);
    const double middle = fmin(steps[(k - 1) / 2], bends[(k - 1) / 2]);
    const double most = fmin(steps[4 * (k - 1) / 5], bends[4 * (k - 1) / 5]) / large;
    return k + 1 < MANY ? middle : fmax(middle, most);
}

/* How far the lines of a block lie from their middle, as the step between two that have nothing to do with each other. */
static double spread_of(const course *c, const series *s, size_t a, size_t b)
{
    enum { MOST = 2 * BLOCKS * BLOCKS };
    const double root = 1.414, middle = measure(c, traininglog_series_median(s, a, b).value);
    double off[MOST];
    size_t n = 0;
    for (size_t i = a, every = (b - a) / MOST + 1; i < b && n < MOST; i += every)
        off[n++] = fabs(measure(c, s->at[i].value) - middle);
    qsort(off, n, sizeof *off, by_value);
    return root * off[(n - 1) / 2];
}

/* The noise of the lines from a up to b: that of neighbours, or of what is alike over more of them. */
static double noise_of(const course *c, const series *s, size_t a, size_t b)
{
    enum { MOST = 2 * BLOCKS * BLOCKS };
    double x[MOST + 1];
    const size_t n = b - a, parts = n < MOST ? 1 : BLOCKS;
    size_t k = 0;
    for (size_t part = 0; part < parts; part++) /* pieces of neighbours, from all over */
        for (size_t i = a + part * (n / parts), m = 0; m < MOST / parts && i < b && k <= MOST; i++, m++)
            x[k++] = measure(c, s->at[i].value);
    const double near = noise_of_steps(x, k);
    if (n < (size_t)BLOCKS * 4)
        return near;
    for (k = 0; k < BLOCKS; k++)
        x[k] = spread_of(c, s, a + n * k / BLOCKS, a + n * (k + 1) / BLOCKS);
    qsort(x, BLOCKS, sizeof *x, by_value);
    return fmax(near, x[BLOCKS / 2]);
}

/* ---- levels ---- */

static size_t width_of(const series *s)
{
    return s->n < 4 ? 1 : s->n < SHORT ? 2 : LEVEL;
}

/* Of two the upper one, where a level is to be low; traininglog_series_median takes the lower one. */
static sample low_level(const series *s, size_t i, size_t width)
{
    return width == 2 && s->at[i + 1].value > s->at[i].value ? s->at[i + 1]
                                                             : traininglog_series_median(s, i, i + width);
}

/* The lowest level and the one at the end. A best level of 0 is no loss that was reached. */
static void find_levels(course *c, const series *s)
{
    const size_t width = width_of(s);
    double before = c->first.value;
    c->best = c->end = traininglog_series_median(s, s->n - width, s->n);
    c->best_at = s->n - 1;
    for (size_t i = 0; i + width <= s->n; i++) {
        const sample x = low_level(s, i, width);
        if ((i == 0 || x.value < c->best.value) && x.value != 0) {
            c->best = x;
            c->best_at = i + width - 1;
        }
    }
    for (size_t i = 0; i < c->best_at; i++)
        before = fmax(before, s->at[i].value);
    c->learned = gap(c, c->best.value, before) > NOISY * c->noise && before - c->best.value > 0.2 * fabs(c->best.value);
}

/* Whether a single number is a dip: two lines before and two behind it are as high as the end. */
static int is_single(const series *s, size_t i, double end)
{
    const double near = (end - s->at[i].value) / 2;
    for (size_t k = i < 2 ? i : i - 2; k <= i + 2; k++)
        if (i < 2 || k >= s->n || (k != i && fabs(s->at[k].value - end) >= near))
            return 0;
    return 1;
}

/* A series that rises line by line to its end, from its smallest line on: it has no noise but its own rise. */
static int is_monotone(course *c, const series *s)
{
    size_t i = s->n - 1;
    while (i > 0 && s->at[i - 1].value < s->at[i].value)
        i--;
    for (size_t k = 0; k < i; k++)
        if (s->at[k].value < s->at[i].value)
            return 0;
    if (s->n - i < MONOTONE || 4 * (s->n - i) < s->n || is_single(s, i, s->at[s->n - 1].value))
        return 0;
    c->best = s->at[i];
    c->end = s->at[s->n - 1];
    c->stays = s->n - i - 1;
    c->rise = fmax(2 * NOISY, c->noise > 0 ? gap(c, c->best.value, c->end.value) / c->noise : 0);
    return 1;
}

/* The most of the last lines, `most` or fewer, of which four of five are above a number. */
static size_t stays_above(const series *s, size_t most, double middle)
{
    size_t above = 0, stays = 0;
    for (size_t n = 1; n <= most; n++) {
        above += s->at[s->n - n].value > middle;
        stays = 5 * above >= 4 * n ? n : stays;
    }
    return stays;
}

/* A dip that is less deep than that may be how the lines vary. */
static const double deep = 1.5;

/* Whether the lines before the best level are as high as those at the end: then it is no level that was held. */
static int is_dip(const series *s, size_t best, double middle)
{
    const size_t near = s->n / 8 > MANY ? s->n / 8 : MANY;
    return best >= near && traininglog_series_median(s, best - near, best).value > middle;
}

/* The change from the best level to that of the lines that stay above it, in the noise of those around it. */
static void find_rise(course *c, const series *s)
{
    const double middle = c->best.value + (c->end.value - c->best.value) / 2;
    if (is_monotone(c, s) || !(c->end.value > c->best.value))
        return;
    const size_t near = s->n / 8 > NEAR ? s->n / 8 : NEAR, at = c->best_at;
    c->stays = stays_above(s, s->n - at - 1, middle);
    if (c->stays == 0)
        return;
    const size_t before = s->n - c->stays;
    const size_t from = at > near ? at - near : 0, to = at + near < before ? at + near : before;
    const double noise = to >= from + MANY ? noise_of(c, s, from, to) : c->noise;
    const double rise = gap(c, c->best.value, traininglog_series_median(s, before, s->n).value);
    const double error = (2 + sqrt((double)LEVEL / (double)c->stays)) /
                         LEVEL; /* of a level of so many lines, and of the best */
    c->rise = !(rise > 0) ? 0 : noise > 0 ? rise / (noise * error) : (double)INFINITY;
    if (c->stays < width_of(s) ||
        ((c->rise < 3 * NOISY || c->end.value < deep * c->best.value) && is_dip(s, at, middle)))
        c->rise = fmin(c->rise, NOISY);
}

/* The lowest and the last of the numbers, and how often what lies between them was crossed: of few lines no noise is known. */
static void find_ends(course *c, const series *s)
{
    const int few = s->n < SHORTER;
    c->high = few ? c->last : c->end;
    c->low = few || c->first.value < c->best.value ? c->first : c->best;
    for (size_t i = 0; i < s->n && few; i++)
        if (s->at[i].value < c->low.value && s->at[i].value != 0 && !is_single(s, i, c->high.value))
            c->low = s->at[i];
    const double middle = c->low.value + (c->high.value - c->low.value) / 2;
    for (size_t i = 1; i < s->n; i++)
        c->returns += s->at[i - 1].value > middle && s->at[i].value <= middle;
}

/* By the pairs of its last lines: most of them fall. */
static int falls_at_end(const series *s)
{
    enum { LEAST = 4, MOST = 64 };
    const size_t quarter = s->n / 4, n = quarter < LEAST ? LEAST : quarter < MOST ? quarter : MOST;
    int down = 0, pairs = 0;
    if (s->n < LEAST)
        return 0;
    for (size_t i = s->n - n; i < s->n; i++)
        for (size_t k = i + 1; k < s->n; k++, pairs++)
            down += (s->at[k].value < s->at[i].value) - (s->at[k].value > s->at[i].value);
    return 5 * down > 3 * pairs;
}

/* The noise that a line is compared with: of few lines that of the others, where it is the largest so far and the series
 * comes back. */
static double noise_beside(const course *c, const series *s, size_t i, double usual)
{
    const double top = s->at[i].value;
    double x[MANY];
    size_t n = 0;
    int back = 0;
    for (size_t k = 0; k < s->n && s->n < MANY; k++) {
        if (k < i && s->at[k].value >= top)
            return c->noise;
        back |= k > i && s->at[k].value < (usual + top) / 2;
        if (k != i)
            x[n++] = measure(c, s->at[k].value);
    }
    return back && n > 2 ? fmin(c->noise, noise_of_steps(x, n)) : c->noise;
}

static void find_jumps(course *c, const series *s, double factor)
{
    for (size_t i = 2; i < s->n; i++) {
        const sample before = traininglog_series_median(s, i > BEFORE ? i - BEFORE : 0, i), x = s->at[i];
        if (!(before.value > 0) || !(x.value > factor * before.value) ||
            !(gap(c, before.value, x.value) > JUMPY * noise_beside(c, s, i, before.value)))
            continue;
        if (!c->jumps++) {
            c->jump = c->highest = x;
            c->usual = before;
        }
        c->highest = x.value > c->highest.value ? x : c->highest;
    }
    c->open = c->jumps && fmax(c->last.value, c->end.value) > factor * c->usual.value;
}

void traininglog_course_find(course *c, const series *s, double jump)
{
    *c = (course){.n = s->n};
    if (s->n == 0)
        return;
    c->first = c->most = s->at[0];
    c->last = s->at[s->n - 1];
    c->least = c->first.value;
    c->flat = 1;
    for (size_t i = 0; i < s->n; i++) {
        c->most = s->at[i].value > c->most.value ? s->at[i] : c->most;
        c->least = fmin(c->least, s->at[i].value);
        c->flat &= s->at[i].value == c->first.value;
        c->zeros = s->at[i].value == 0 ? c->zeros + 1 : 0;
    }
    c->noise = noise_of(c, s, 0, s->n);
    find_levels(c, s);
    find_rise(c, s);
    find_ends(c, s);
    for (size_t i = 1; i < s->n; i++)
        c->steep |= 2 * (s->at[i].value - s->at[i - 1].value) > c->most.value - c->best.value;
    c->falls = falls_at_end(s);
    find_jumps(c, s, jump);
}

/* How far apart two numbers are, in units of the noise. */
static double gap_in_noise(const course *c, double from, double to)
{
    const double x = gap(c, from, to);
    return c->noise > 0 ? x / c->noise : x > 0 ? (double)INFINITY : 0;
}

int traininglog_course_rises(const course *c, double factor)
{
    return c->n >= 4 && c->rise > NOISY && c->end.value > c->best.value + (factor - 1) * fabs(c->best.value);
}

int traininglog_course_may_rise(const course *c, double little, double factor, double much)
{
    const double rise = (c->high.value - c->low.value) / fabs(c->low.value);
    const int in_noise = !(gap_in_noise(c, c->low.value, c->high.value) > 2);
    const double least = c->n < SHORT ? factor : in_noise ? much : little;
    return c->n > 1 && c->returns < (rise > factor - 1 ? 2 : 1) && rise > least - 1;
}
