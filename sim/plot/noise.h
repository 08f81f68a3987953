/* noise.h -- SQNR of several items of a report together: what they are sums of, from what a report says. */
#pragma once

#include "report.h"

/* What an item of the report holds. */
typedef struct plot_held {
    uint64_t count, finite, zero;
    double l2;
} plot_held;

/* Of the items that were added. */
typedef struct plot_noise {
    size_t items;
    double sqnr;          /* of the last of them; NaN: not known, or nothing to compare */
    double signal, noise; /* what it is the ratio of */
} plot_noise;

/* plot_held_read -- 0, or an exit code after a message. */
int plot_held_read(plot_held *of, const plot_report *r, const json_t *item);

/* plot_noise_add -- the cast of an item. 0, or an exit code after a message. */
int plot_noise_add(plot_noise *to, const plot_report *r, const json_t *cast, const plot_held *of);
void plot_noise_merge(plot_noise *to, const plot_noise *from);

/* plot_lost_read -- elements that SQNR says little of: those that become zero, which hardly count in it, and those that
 * become Inf or NaN, which are left out of it. 0, or an exit code after a message. */
int plot_lost_read(uint64_t *lost, const plot_report *r, const json_t *cast, const plot_held *of);

/* plot_noise_decibels -- infinite: there is no noise; NaN: not known, or nothing to compare. */
double plot_noise_decibels(const plot_noise *n);
