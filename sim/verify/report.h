/* report.h -- the report of mpsim verify: text, JSON, CSV (schema mpsim.verify/1). */
#pragma once

#include "verify.h"

/* verify_print, verify_json, verify_csv -- the report. */
void verify_print(const verify *v, FILE *to);
void verify_json(const verify *v, FILE *to);
void verify_csv(const verify *v, FILE *to);
