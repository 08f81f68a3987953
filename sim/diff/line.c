/* line.c -- see line.h. */
#include "impl.h"

#include "../array/need.h"
#include "../record/cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_LEVELS = 3 }; /* so few different numbers lie on some line by accident */

static int tells_nothing(const verdict_case *c)
{
    const measure *m = &c->all;
    return m->broke + m->mended || m->levels[0].n < FEW_LEVELS || m->levels[1].n < FEW_LEVELS;
}

/* The shortest decimal number within two limits. */
static double short_number(double low, double high)
{
    const double middle = low + (high - low) / 2;
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, middle);
        const double x = strtod(text, NULL);
        if (x >= low && x <= high)
            return x;
    }
    return middle;
}

int diff_line_offset(verdict_case *c, finding *f, trace_error *error)
{
    enum { FEWEST = 3, SPREAD = 64 };
    const measure *m = &c->part;
    char text[96];
    (void)error;
    const double c_small = fmin(fabs(m->offset_min), fabs(m->offset_max));
    if (tells_nothing(c) || m->finite < FEWEST || !(m->offset_min <= m->offset_max) ||
        m->high[0] - m->low[0] < SPREAD * m->offset_unit || c_small < 4 * m->offset_unit)
        return 0;
    diff_finding_init(f, VERDICT_OFFSET);
    const double offset = short_number(m->offset_min, m->offset_max);
    diff_finding_say(f, "B = A %c %.9g, within a rounding, for %s", offset < 0 ? '-' : '+', fabs(offset),
                     diff_verdict_range(text, c));
    if (fabs(offset) == 1)
        diff_finding_say(f, ": a norm whose weights are stored less 1?");
    return 1;
}

/* ---- the best line ---- */

typedef struct along {
    measure_fit line;
    double unit;    /* in the last place, of 1 */
    uint64_t *near; /* of each lane: elements of which the line explains nine tenths of the difference */
} along;

static int look_near(void *context, int lane, const walk_piece *p)
{
    const along *x = context;
    for (size_t i = 0; i < p->n; i++) {
        const double a = p->values[0][i], b = p->values[1][i];
        x->near[lane] += fabs(b - (x->line.slope * a + x->line.offset)) <= fabs(b - a) / 10 + x->unit * fabs(b);
    }
    return 0;
}

/* How many elements the line explains: large elements alone make a good fit. */
static int count_near(verdict_case *c, const measure_fit *line, uint64_t *n, trace_error *error)
{
    along x = {*line, ldexp(1, -c->measurer.narrow.mbits), need_memory((uint64_t)c->walk.lanes, sizeof *x.near)};
    const int bad = diff_walk_range(&c->walk, 0, c->all.count, 0, 1, look_near, &x, error);
    *n = 0;
    for (int i = 0; i < c->walk.lanes; i++)
        *n += x.near[i];
    free(x.near);
    return bad;
}

static void say_cause(const verdict_case *c, finding *f, const measure_fit *line)
{
    const char *kind = c->tensors[0]->kind;
    const double n = line->slope < 1 ? 1 / line->slope : line->slope;
    if (line->slope < 1 && line->slope > 0.9 && kind && (strcmp(kind, "weight") == 0 || strcmp(kind, "master") == 0))
        diff_finding_say(f, ": weight decay?");
    else if (n > 1.5 && fabs(n - round(n)) < 1e-3 * n)
        diff_finding_say(f, ": a %s instead of a %s over %.0f?", line->slope > 1 ? "sum" : "mean",
                         line->slope > 1 ? "mean" : "sum", round(n));
    else if (line->slope < 0)
        diff_finding_say(f, ": the sign of a loss?");
}

/* A number in as many digits as its error leaves it. */
static const char *known_digits(char out[32], double x, double error)
{
    const double digits = x != 0 && error > 0 ? ceil(log10(fabs(x) / error)) : 9;
    snprintf(out, 32, "%.*g", digits < 2 ? 2 : digits > 9 ? 9 : (int)digits, x);
    return out;
}

static void say_line(const verdict_case *c, finding *f, const measure_fit *line, double of, uint64_t near)
{
    char slope[32], offset[32] = "", left[32], share[32];
    known_digits(slope, line->slope, line->share);
    if (line->offset != 0)
        known_digits(offset, fabs(line->offset), line->left);
    f->scale = line->slope;
    diff_finding_say(f, "B is ");
    if (f->verdict != VERDICT_OFFSET)
        diff_finding_say(f, "%s times ", slope);
    diff_finding_say(f, "A%s%s but for an error of %s of B (root mean squares), nearly everywhere (%s of the elements)",
                     line->offset == 0  ? ""
                     : line->offset < 0 ? " - "
                                        : " + ",
                     offset, text_number(left, line->left / of), text_share(share, near, c->all.count));
    if (f->verdict == VERDICT_SCALED)
        say_cause(c, f, line);
}

static double root_mean_square(const mpsim_sum *s, uint64_t n)
{
    return sqrt(mpsim_sum_value(s) / (double)n);
}

int diff_line_fitted(verdict_case *c, finding *f, trace_error *error)
{
    enum { FEWEST = 12, CLEAR = 16 };
    const double most = 1.0 / 64, floor_of_sums = 1e-7;
    measure_fit line;
    uint64_t near = 0;
    if (tells_nothing(c) || c->all.finite < FEWEST || diff_measure_line(&c->all, &line) || line.share > most)
        return 0;
    const double unsure = fmax(line.share, floor_of_sums);
    const int scaled = fabs(line.slope - 1) > CLEAR * unsure;
    const int moved = fabs(line.offset) > CLEAR * unsure * line.deviation;
    if (!scaled && !moved)
        return 0;
    if (!moved)
        line.offset = 0;
    if (!scaled)
        line.slope = 1;
    if (count_near(c, &line, &near, error))
        return -1;
    if (near < c->all.count - c->all.count / 10)
        return 0;
    diff_finding_init(f, scaled && moved ? VERDICT_AFFINE : scaled ? VERDICT_SCALED : VERDICT_OFFSET);
    say_line(c, f, &line, root_mean_square(&c->all.signal[1], c->all.finite), near);
    return 1;
}
