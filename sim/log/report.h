/* report.h -- the report of mpsim log. */
#pragma once

#include "../record/record.h"
#include "compare.h"

extern const report_kind log_kind;

void log_report_write(FILE *to, report_style style, const log_runs *r, const comparison *c);
