/* logcase.c -- see logcase.h. */
#include "logcase.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double diff_log_quantile(double *x, size_t n, double q)
{
    qsort(x, n, sizeof *x, by_size);
    return x[(size_t)(q * (double)(n - 1) + 0.5)];
}
