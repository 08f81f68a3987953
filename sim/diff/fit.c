/* fit.c -- see fit.h. */
#include "fit.h"

#include <math.h>

static void round_all(const fit_question *q, mpsim_round_mode mode, double *to, const double *x, size_t n)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, mode);
    r.scale = q->scale;
    mpsim_round_array_f64(&q->format, &r, NULL, to, x, n, NULL);
}

/* What y was before it was divided by the scale: a number of the format, but for the rounding of y. NaN if it
 * was none. */
static double undivided(const fit_question *q, double y)
{
    mpsim_rounding r;
    if (!isfinite(y) || y == 0)
        return y;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.scale = q->scale;
    const double code = mpsim_decode(&q->format, mpsim_encode_f64(&q->format, &r, y, 0, NULL));
    return fabs(code - y * q->scale) <= fabs(code) * q->slack ? code : (double)NAN;
}

int diff_fit_may_hold(const fit_question *q, double y)
{
    return !q->back || isnan(y) || !isnan(undivided(q, y));
}

static void add_overflow(fit *f, const fit_question *q, double y, int sign)
{
    if (isnan(y))
        f->nan++;
    else if (isinf(y) && signbit(y) == sign)
        f->infinite++;
    else if (fabs(y) == mpsim_format_max(&q->format) && signbit(y) == sign)
        f->saturated++;
    else
        f->missed++;
}

static int was_flushed(const fit_question *q, double nearest, double y)
{
    return y == 0 && nearest != 0 && fabs(nearest) < mpsim_format_min_normal(&q->format);
}

static void add_special(fit *f, const fit_question *q, double x, double y)
{
    const int same = isnan(x) ? isnan(y) : y == x || isnan(y) || fabs(y) == mpsim_format_max(&q->format);
    f->exact += same != 0;
    f->missed += !same;
}

static double ties_away(double x, double down, double up, double nearest)
{
    return x - down == up - x ? (x > 0 ? up : down) : nearest;
}

static void add_element(fit *f, const fit_question *q, double x, double y, double down, double up, double nearest)
{
    const int beside = y == down || y == up || (isnan(y) && (isnan(up) || isnan(down)));
    if (!isfinite(x)) {
        add_special(f, q, x, y);
    } else if (!beside && was_flushed(q, nearest, y)) {
        f->flushed++;
    } else if (!isfinite(nearest)) {
        add_overflow(f, q, y, signbit(x) != 0);
    } else if (!beside) {
        f->missed++;
    } else if (down == up) {
        f->exact++;
    } else {
        f->inexact++;
        if (isfinite(up) && isfinite(down))
            f->farthest = fmax(f->farthest, fabs(x * q->scale - y) / (up - down));
        f->kept += y != 0;
        f->nearest += y == nearest;
        f->away += y == ties_away(x * q->scale, down, up, nearest);
        f->to_zero += y == (x > 0 ? down : up);
        f->up += y == up;
        f->down += y == down;
    }
}

void diff_fit_add(fit *f, const fit_question *q, const double *x, const double *y, size_t n)
{
    double down[FIT_MOST], up[FIT_MOST], nearest[FIT_MOST];
    if (n > FIT_MOST)
        n = FIT_MOST;
    round_all(q, MPSIM_ROUND_DOWN, down, x, n);
    round_all(q, MPSIM_ROUND_UP, up, x, n);
    round_all(q, MPSIM_ROUND_NEAREST_EVEN, nearest, x, n);
    for (size_t i = 0; i < n; i++) {
        const double was = q->back ? undivided(q, y[i]) : y[i];
        if (q->back && isnan(was) && !isnan(y[i]))
            f->missed++;
        else
            add_element(f, q, x[i], was, down[i], up[i], nearest[i]);
    }
}

void diff_fit_merge(fit *to, const fit *from)
{
    to->exact += from->exact;
    to->missed += from->missed;
    to->inexact += from->inexact;
    to->nearest += from->nearest;
    to->away += from->away;
    to->to_zero += from->to_zero;
    to->up += from->up;
    to->down += from->down;
    to->kept += from->kept;
    to->farthest = fmax(to->farthest, from->farthest);
    to->infinite += from->infinite;
    to->nan += from->nan;
    to->saturated += from->saturated;
    to->flushed += from->flushed;
}

const char *diff_fit_mode(const fit *f)
{
    if (f->missed || f->inexact + f->infinite + f->nan + f->saturated + f->flushed == 0)
        return NULL;
    return f->nearest == f->inexact   ? "nearest-even"
           : f->away == f->inexact    ? "nearest-away"
           : f->to_zero == f->inexact ? "toward-zero"
           : f->up == f->inexact      ? "up"
           : f->down == f->inexact    ? "down"
                                      : "stochastic";
}

const char *diff_fit_overflow(const fit *f)
{
    const int kinds = (f->infinite > 0) + (f->nan > 0) + (f->saturated > 0);
    return kinds > 1 ? "several" : f->infinite ? "inf" : f->nan ? "nan" : f->saturated ? "saturated" : NULL;
}
