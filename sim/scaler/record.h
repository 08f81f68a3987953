/* record.h -- the report of mpsim scaler for programs. */
#pragma once

#include "../record/record.h"
#include "report.h"

extern const report_kind scaler_kind;

void scaler_report_records(FILE *to, report_style style, const scaler_report *r);
