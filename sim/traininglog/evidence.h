/* evidence.h -- the lines that a judgement rests on, and what the log lacks. */
#pragma once

#include "judge.h"

/* traininglog_evidence_find -- what the verdict is about comes first: the scale, or other numbers (`by_numbers`). */
void traininglog_evidence_find(log_judgement *j, const facts *f, int by_numbers);
/* traininglog_evidence_miss -- what is missing. */
void traininglog_evidence_miss(log_judgement *j, const facts *f, int by_numbers);
