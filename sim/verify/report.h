/* report.h -- the report of mpsim verify (schema mpsim.verify/1). */
#pragma once

#include "../record/record.h"
#include "verify.h"

void verify_print(const verify *v, report_style style, FILE *to);

extern const report_kind verify_kind;
