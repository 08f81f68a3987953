/* table.h -- the text of train's report. */
#pragma once

#include "report.h"

void train_text_run(train_report *r, const train_job *j);
void train_text_row(train_report *r, const train_row *row);
void train_text_total(train_report *r, const train_total *t);
void train_text_compare(train_report *r, const train_job *jobs, const train_total *totals, size_t n);
