/* range.h -- the least and the largest of the finite numbers that a figure shows; of the module. */
#pragma once

#include <math.h>

typedef struct range {
    double low, high; /* HUGE_VAL and -HUGE_VAL before the first number */
} range;

static inline void plot_widen(range *r, double x)
{
    if (isfinite(x)) {
        r->low = fmin(r->low, x);
        r->high = fmax(r->high, x);
    }
}
