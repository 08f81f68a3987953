/* json.h -- the report of mpsim scaler for programs (schema mpsim.scaler/1). */
#pragma once

#include "report.h"

void scaler_report_json(FILE *to, const scaler_report *r);
void scaler_report_csv(FILE *to, const scaler_report *r);
