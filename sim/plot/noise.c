/* noise.c -- see noise.h. */
#include "noise.h"

#include <math.h>

/* SQNR is the ratio of two sums over the elements that were compared; the report has their ratio, and
 * of the noise the mean. Where there is no noise, the signal is that of all elements if all were
 * compared, 0 if only zeros were, and not known otherwise. */
void plot_noise_add(plot_noise *to, const plot_cast *cast, const plot_item *of)
{
    const uint64_t n = (uint64_t)cast->compared;
    to->items++;
    to->sqnr = cast->sqnr;
    if (n == 0)
        return;
    const double noise = cast->compared > 0 && isfinite(cast->mse) ? cast->mse * (double)n : (double)NAN;
    to->noise += noise;
    to->signal += noise > 0         ? noise * pow(10, to->sqnr / 10)
                  : n == of->finite ? (isinf(of->l2) ? (double)NAN : of->l2 * of->l2)
                  : n <= of->zero   ? 0
                                    : (double)NAN;
}

/* Of a block recipe, which may take a part of the tensor only, "spoilt" are left out; of a format what was not compared. */
int plot_lost(uint64_t *lost, const plot_report *r, const plot_cast *cast, const plot_item *of)
{
    const uint64_t compared = (uint64_t)cast->compared;
    uint64_t out = 0;
    *lost = cast->underflow;
    if (cast->spoilt >= 0)
        out = (uint64_t)cast->spoilt;
    else if (cast->compared >= 0 && !cast->recipe)
        out = compared <= of->finite ? of->finite - compared : 0;
    if (*lost > of->count || out > of->count - *lost)
        return plot_malformed(r, "counts contradict each other");
    *lost += out;
    return 0;
}

void plot_noise_merge(plot_noise *to, const plot_noise *from)
{
    if (from->items)
        to->sqnr = from->sqnr;
    to->items += from->items;
    to->signal += from->signal;
    to->noise += from->noise;
}

double plot_noise_decibels(const plot_noise *n)
{
    if (n->items == 1)
        return n->sqnr;
    if (!(n->signal > 0))
        return (double)NAN;
    return n->noise > 0 ? 10 * log10(n->signal / n->noise) : n->noise == 0 ? HUGE_VAL : (double)NAN;
}
