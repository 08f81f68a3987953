/* logwalk.h -- from the entries of a log to the recorded track and its jumps. */
#pragma once

#include "traininglog.h"

/* traininglog_log_walk -- fill l->recorded and l->jumps; l->failed is 1 where memory runs out. */
void traininglog_log_walk(training_log *l);
