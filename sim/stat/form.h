/* form.h -- how the report of stat and merge is shown, where it goes, and what is a failure. */
#pragma once

#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "tally.h"

typedef struct stat_form {
    report_options out;
    report_style style;
    const char *level;
    option_list fail_if;
    int tensors;
} stat_form;

/* The rows that stat and merge have in common, but for those of reportoptions.h; `o` is a stat_form. */
#define STAT_FORM_ROWS(o)                                                                    \
    {0,           "fail-if",                                                                 \
     OPTION_LIST, &(o).fail_if,                                                              \
     "LIST",      "exit code 1 if a condition holds, as nan,inf,'underflow>1%'; see below"}, \
        {'t', "tensors", OPTION_FLAG, &(o).tensors, NULL, "text: list every tensor"},        \
        {0,                                                                                  \
         "level",                                                                            \
         OPTION_CHOICE,                                                                      \
         &(o).level,                                                                         \
         "tensor|kind|step|total",                                                           \
         "CSV: one row per tensor (default), kind, step or total"},                          \
        NEEDS("level", "csv", NULL)

void stat_form_clear(stat_form *f);

/* The report of a tally on its way. */
typedef struct stat_output {
    output out;
    tally_form form;
} stat_output;

/* stat_output_begin -- open the output and begin the report (stat_tally_begin). 0, or an exit code after a message.
 * stat_output_end -- end the report (stat_tally_end), and deliver it. The exit code. */
int stat_output_begin(stat_output *o, const stat_form *f, tally *t, size_t files, const char *version);
int stat_output_end(stat_output *o, tally *t, int code, const char *names);
