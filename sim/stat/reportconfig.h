/* reportconfig.h -- what a report of stat says of itself, as JSON: what was asked for, and what the names mean. */
#pragma once

#include "../report/jsonout.h"
#include "settings.h"

/* config_settings -- members of an object that is open. `whole`: with what config_formats and config_recipes write instead of
 * the names. */
void config_settings(jsonout *o, const stat_settings *s, const target_list *targets, int whole);
/* config_formats, config_recipes -- what the names of formats, and of recipes, mean, so that the report can be read without
 * mpsim. */
void config_formats(jsonout *o, const char *key, const target_list *l);
void config_recipes(jsonout *o, const char *key, const block_list *l);
