/* agree.h -- what a record says of its trainings and speeds agrees with itself, and with the files of digests beside it. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Each returns the number of complaints, 0 or 1; the first one in `why` of WHY bytes (kept.h) if that was empty. */

/* agree_training -- an entry of `training`. beside: the path of the record without "-PART.json", NULL: not known. The file
 * of digests has its name behind `beside` and "-", or its name in that folder. */
int agree_training(const json_t *root, const json_t *o, const char *beside, char *why);

/* agree_speed -- row i of `speed`: rates, shares and what was compared. */
int agree_speed(const json_t *rows, size_t i, char *why);

/* agree_unanswered -- what has no answer of the device says why. */
int agree_unanswered(const json_t *o, const char *name, char *why);
