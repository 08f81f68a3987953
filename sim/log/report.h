/* report.h -- the report of mpsim log. */
#ifndef MPSIM_SIM_LOG_REPORT_H
#define MPSIM_SIM_LOG_REPORT_H

#include "compare.h"

#include <stdio.h>

void log_report_text(FILE *to, const log_runs *r, const comparison *c);
void log_report_json(FILE *to, const log_runs *r, const comparison *c);

#endif
