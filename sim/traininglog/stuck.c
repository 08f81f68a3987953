/* stuck.c -- see stuck.h. */
#include "impl.h"

#include <math.h>

/* ENDLESS: overflows in a row that no search explains. FLOORED: overflows at a floor. */
enum { ENDLESS = 10, FLOORED = 3 };

/* Ten powers of two: what is lost below is all that the mantissa of fp16 has. */
static const double far_below = 0x1p-10;

double traininglog_stuck_wanted(const track *t)
{
    return isfinite(t->clean_fits) && t->clean_fits > 0 ? t->clean_fits : t->begin;
}

double traininglog_stuck_fits(const track *t)
{
    return t->run > 0 && t->run_fits > 0 && t->run_fits < t->last ? t->run_fits : 0;
}

static stuck how(const track *t)
{
    if (isinf(t->last))
        return STUCK_INFINITE;
    if (!t->scaler.config.dynamic)
        return t->run >= ENDLESS || 2 * t->overflows > t->steps ? STUCK_CONSTANT : STUCK_NOT;
    if (t->run_floored >= FLOORED && traininglog_stuck_fits(t) > 0)
        return STUCK_FLOOR;
    if (t->growths && 2 * t->overflows > t->steps && t->all_fit > 0)
        return STUCK_HIGH;
    return t->run == 0 && t->last > 0 && t->last <= far_below * traininglog_stuck_wanted(t) &&
                   (t->last < t->begin || t->last < 1)
               ? STUCK_LOW
               : STUCK_NOT;
}

/* All scales overflow: the gradients hold Inf or NaN. Not where it is known that a scale fits. */
static int runs_away(const track *t)
{
    const int all = t->run == t->steps, low = t->last < 1 || t->run_floored >= FLOORED;
    return (t->run >= ENDLESS && (low || !all) && traininglog_stuck_fits(t) == 0) ||
           (t->not_finite_steps && t->not_finite_steps == t->overflows && t->run > 1);
}

void traininglog_stuck_facts(facts *f, const track *t)
{
    *f = (facts){.t = t, .spikes = t->spikes, .stuck = how(t)};
    const int constant = !t->scaler.config.dynamic, all = t->run == t->steps;
    const int spikes = !all && (constant || t->spikes > t->after_growth / 10);
    const int probes = !all && !spikes && t->after_growth;
    f->set = FACT(SIMULATED) | traininglog_if_so(t->steps > 0, FACT(STEPS)) | FACT(SCALED) |
             traininglog_if_so(t->overflows > 0, FACT(OVERFLOWS)) | traininglog_if_so(t->stop >= 0, FACT(STOPPED)) |
             traininglog_if_so(t->taken > 0, FACT(TAKEN)) | traininglog_if_so(constant, FACT(CONSTANT)) |
             traininglog_if_so(f->stuck != STUCK_NOT, FACT(STUCK)) | traininglog_if_so(runs_away(t), FACT(RUNS_AWAY)) |
             traininglog_if_so(t->not_finite_steps && 2 * t->not_finite_steps >= t->overflows, FACT(NOT_FINITE)) |
             traininglog_if_so(t->overflows && !spikes && !probes, FACT(SEARCH) | FACT(PLACED)) |
             traininglog_if_so(t->overflows && t->run == 0, FACT(ENDS)) |
             traininglog_if_so(t->overflows && spikes, FACT(SPIKES)) |
             traininglog_if_so(t->overflows && probes, FACT(PROBES)) | FACT(READ);
}
