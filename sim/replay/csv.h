/* csv.h -- the report of replay as CSV: a row per step, per tensor, per policy. */
#pragma once

#include "report.h"

void replay_csv_header(const replay_report *r);
void replay_csv_step(replay_report *r, const policy *p, const replay_step *s);
void replay_csv_tensors(replay_report *r, const policy *p, const replay_step *s);
void replay_csv_compare(replay_report *r, const policy *p, const replay_total *t, size_t n);
