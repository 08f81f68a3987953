/* said.h -- lines of text on a run and its record: the optimizer with its groups, what differs, what the
 * record lacks. */
#pragma once

#include "../report/report.h"
#include "total.h"

void replay_text_optimizer(FILE *to, const replay_total *t);
void replay_text_moments(FILE *to, const replay_total *t);
void replay_text_muon(FILE *to, const replay_total *t);
void replay_text_movement(FILE *to, const replay_total *t);
void replay_text_record(FILE *to, const replay_total *t);
