/* jsonvalues.c -- JSON values; see cells.h. */
#include "cells.h"

#include "../array/need.h"
#include "jsonout.h"

#include <math.h>

json_t *json_of_double(double x)
{
    if (isnan(x))
        return json_string("NaN");
    if (isinf(x))
        return json_string(x > 0 ? "Infinity" : "-Infinity");
    return json_real(x);
}

json_t *json_of_count(uint64_t n)
{
    /* Counts are elements of files, far below 2^63; a distance in ULPs or a seed of a run may be beyond */
    return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

void json_write(FILE *to, json_t *v)
{
    /* 17 significant digits round-trip. */
    (void)json_dump_callback(need(v), jsonout_visibly, to, JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY);
    json_decref(v);
}
