/* json.h -- the report of mpsim scaler for programs (schema mpsim.scaler/1). */
#ifndef MPSIM_SIM_SCALER_JSON_H
#define MPSIM_SIM_SCALER_JSON_H

#include "report.h"

/* 0, or -1 if memory ran out or writing failed. */
int scaler_report_json(FILE *to, const scaler_report *r);
void scaler_report_csv(FILE *to, const scaler_report *r);

#endif
