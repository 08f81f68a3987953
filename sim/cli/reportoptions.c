/* reportoptions.c -- see reportoptions.h. */
#include "reportoptions.h"

#include <threads/parallel.h>

void report_options_threads(const report_options *o)
{
    parallel_init((unsigned)o->threads);
}
