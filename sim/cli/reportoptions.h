/* reportoptions.h -- the options that reports have: form, destination, threads, quiet. */
#pragma once

#include "../report/report.h"
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
    {0, "json", OPTION_FLAG, &(o).json, NULL, "write JSON (schema " schema ")"}
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
#define THREADS_OPTION_ROW(o, more)                                                                           \
    {                                                                                                         \
        0, "threads", OPTION_COUNT, &(o).threads, "N", "threads (default: the processors that are free)" more \
    }
#define QUIET_OPTION_ROW(o, what)                                                    \
    {                                                                                \
        'q', "quiet", OPTION_FLAG, &(o).quiet, NULL, "no " what " on standard error" \
    }

/* report_options_style -- the form that the options ask for; `others` counts what else is given
 * of what excludes them. 0, or EXIT_USAGE after the message "`verb`: `rule`" if more than one is
 * given; *style is REPORT_TEXT then. */
int report_options_style(report_style *style, const report_options *o, int others, const char *verb, const char *rule);
/* report_options_threads -- use the threads that the options ask for. 0, or EXIT_USAGE after a
 * message if they are too many. */
int report_options_threads(const report_options *o, const char *verb);
