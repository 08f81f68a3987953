/* noise.h -- SQNR of several items of a report together: what they are sums of, from what a report says. */
#pragma once

#include "item.h"

/* Of the items that were added. */
typedef struct plot_noise {
    size_t items;
    double sqnr;          /* of the last of them; NaN: not known, or nothing to compare */
    double signal, noise; /* what it is the ratio of */
} plot_noise;

void plot_noise_add(plot_noise *to, const plot_cast *cast, const plot_item *of);
void plot_noise_merge(plot_noise *to, const plot_noise *from);

/* plot_lost -- elements that SQNR says little of: those that become zero, which hardly count in it, and those that
 * become Inf or NaN, which are left out of it. 0, or an exit code after a message. */
int plot_lost(uint64_t *lost, const plot_report *r, const plot_cast *cast, const plot_item *of);

/* plot_noise_decibels -- infinite: there is no noise; NaN: not known, or nothing to compare. */
double plot_noise_decibels(const plot_noise *n);
