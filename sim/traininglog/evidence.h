/* evidence.h -- the lines that a judgement rests on, and what the log lacks. */
#pragma once

#include "judge.h"

/* evidence_find -- what the verdict is about comes first: the scale, or other numbers (`by_numbers`). */
void evidence_find(log_judgement *j, const facts *f, int by_numbers);
/* evidence_miss -- what is missing. */
void evidence_miss(log_judgement *j, const facts *f, int by_numbers);
