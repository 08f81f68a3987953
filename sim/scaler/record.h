/* record.h -- the report of mpsim scaler for programs. */
#pragma once

#include "../record/record.h"
#include "report.h"

extern const report_kind scaler_kind;

/* To a stream, or, as JSON would be, to a sink. */
void scaler_report_records(FILE *to, report_style style, const scaler_report *r);
void scaler_report_take(const record_sink *sink, const scaler_report *r);
