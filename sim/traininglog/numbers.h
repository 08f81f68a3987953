/* numbers.h -- the facts of facts.h about loss, norm, validation and the numbers of reinforcement learning. */
#pragma once

#include "facts.h"

/* traininglog_numbers_find -- after the facts about the scale. */
void traininglog_numbers_find(facts *f);
/* traininglog_numbers_rise -- a loss far above its best level, or one that has jumped and stays: with overflows a run that diverges. */
int traininglog_numbers_rise(const course *c);
