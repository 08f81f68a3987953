/* json.h -- a step and a total as values of the schema mpsim.replay/1. */
#pragma once

#include "../report/report.h"
#include "total.h"

json_t *replay_json_step(const replay_step *s);
json_t *replay_json_total(const replay_total *t);
