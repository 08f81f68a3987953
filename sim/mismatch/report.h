/* report.h -- what mpsim mismatch prints. */
#pragma once

#include "../diff/ratiosreport.h"
#include "measure.h"

typedef struct mismatch_report {
    const mismatch *m;
    const ratios *r; /* of the tokens, sorted */
    size_t worst;    /* tokens listed         */
    int drawn, generated;
} mismatch_report;

void mismatch_report_write(FILE *to, report_style style, const mismatch_report *r);

extern const report_kind mismatch_kind;
