/* reportoptions.c -- see reportoptions.h. */
#include "reportoptions.h"

#include <threads/parallel.h>

int report_options_open(output *out, const report_options *o)
{
    return output_open_report(out, o->path, report_options_style(o));
}

void report_options_threads(const report_options *o)
{
    parallel_init((unsigned)o->threads);
}
