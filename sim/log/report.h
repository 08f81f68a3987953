/* report.h -- the report of mpsim log. */
#pragma once

#include "compare.h"

#include <stdio.h>

void log_report_text(FILE *to, const log_runs *r, const comparison *c);
void log_report_json(FILE *to, const log_runs *r, const comparison *c);
