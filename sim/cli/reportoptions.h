/* reportoptions.h -- the options that reports have: form, destination, threads, quiet. */
#pragma once

#include "../process/output.h"
#include "../record/cells.h"
#include "options.h"

/* As they stand on the command line; NULL or 0: not given, or no option of the command. */
typedef struct report_options {
    int json, ndjson, csv;
    const char *path; /* --output */
    uint64_t threads;
    int quiet;
} report_options;

/* The rows of these options for a command's table; `o` is a report_options variable, the rest
 * are string literals: what the command has to add. */
/* clang-format off */
#define JSON_OPTION_ROW(o, schema)                                                              \
    {0, "json", OPTION_FLAG, &(o).json, NULL, "write JSON (schema " schema ")"},                \
    EXCLUSIVE("json ndjson csv", NULL)
#define THREADS_OPTION_ROW(o, more)                                                             \
    {0, "threads", OPTION_COUNT, &(o).threads, "N", "threads (default: the processors that are free)" more}, \
    RANGE("threads", 0, THREADS_MOST)
/* clang-format on */
#define NDJSON_OPTION_ROW(o, more)                                                     \
    {                                                                                  \
        0, "ndjson", OPTION_FLAG, &(o).ndjson, NULL, "write one JSON object per " more \
    }
#define CSV_OPTION_ROW(o, more)                                 \
    {                                                           \
        0, "csv", OPTION_FLAG, &(o).csv, NULL, "write CSV" more \
    }
#define OUTPUT_OPTION_ROW(o)                                                                        \
    {                                                                                               \
        'o', "output", OPTION_OUTPUT, &(o).path, "FILE", "write to FILE instead of standard output" \
    }
#define QUIET_OPTION_ROW(o, what)                                                     \
    {                                                                                 \
        'q', "quiet", OPTION_QUIET, &(o).quiet, NULL, "no " what " on standard error" \
    }

enum { THREADS_MOST = 1024 };

/* report_options_style -- the form that the options ask for. */
static inline report_style report_options_style(const report_options *o)
{
    return o->json ? REPORT_JSON : o->ndjson ? REPORT_NDJSON : o->csv ? REPORT_CSV : REPORT_TEXT;
}
/* report_options_open -- output_open_report of what they say. */
int report_options_open(output *out, const report_options *o);
/* report_options_threads -- use the threads that the options ask for. */
void report_options_threads(const report_options *o);
