/* stuck.h -- the facts of a simulated scaler; what its own settings keep from what the gradients fit. */
#pragma once

#include "facts.h"

/* traininglog_stuck_fits -- the largest scale that the last overflows would have fitted, where it is below the one in force: then the
 * settings are at fault, not Inf or NaN. 0: that is not known. */
double traininglog_stuck_fits(const track *t);
/* traininglog_stuck_wanted -- the scale that the last clean steps fit; where that is any, or not known, the one that it began with. */
double traininglog_stuck_wanted(const track *t);

/* traininglog_stuck_facts -- of a simulated scaler. */
void traininglog_stuck_facts(facts *f, const track *t);
