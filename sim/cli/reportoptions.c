/* reportoptions.c -- see reportoptions.h. */
#include "reportoptions.h"

#include <threads/parallel.h>

int report_options_style(report_style *style, const report_options *o, int others, const char *verb, const char *rule)
{
    *style = REPORT_TEXT;
    if (o->json + o->ndjson + o->csv + others > 1)
        return fail(EXIT_USAGE, "%s: %s", verb, rule);
    *style = o->json ? REPORT_JSON : o->ndjson ? REPORT_NDJSON : o->csv ? REPORT_CSV : REPORT_TEXT;
    return 0;
}

int report_options_threads(const report_options *o, const char *verb)
{
    enum { THREADS_MOST = 1024 };
    if (o->threads > THREADS_MOST)
        return fail(EXIT_USAGE, "%s: --threads: at most %d", verb, THREADS_MOST);
    parallel_init((unsigned)o->threads);
    return 0;
}
