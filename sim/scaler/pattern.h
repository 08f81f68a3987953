/* pattern.h -- overflow patterns as text.
 *
 *   0 .      a clean step
 *   1 x      a step that overflows
 *   {S}      a step that overflows if the scale is above S, as data does whose gradients fit S
 *   ( ... )  a group
 *   ITEM*N   the item N times
 *
 * Blanks and commas may stand between items; '#' begins a comment that ends with its line. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The most steps of a pattern: half a minute for all scalers of the table. */
enum { PATTERN_STEPS = 100000000 };

/* n steps alike: clean above no scale (limit infinity), none (limit -1), or up to `limit`.
 * Returns 0 to go on. */
typedef int (*pattern_visit)(double limit, uint64_t n, void *context);

/* scaler_pattern_each -- call visit for all runs of steps. 0; what visit returned; or -1 for what is no
 * pattern, with the offset of the mistake in *at and a word about it in *reason. A pattern of more than PATTERN_STEPS is refused, too. visit NULL: only the check; *steps gets their
 * number. It takes as long as the text and the steps. */
int scaler_pattern_each(const char *text, pattern_visit visit, void *context, uint64_t *steps, size_t *at,
                        const char **reason);
