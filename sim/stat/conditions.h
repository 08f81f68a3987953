/* conditions.h -- the conditions of --fail-if: what makes stat fail after its report. */
#pragma once

#include "record.h"

typedef struct condition condition;

typedef struct conditions {
    const char *verb; /* that messages begin with */
    condition *items;
    size_t count;
} conditions;

/* stat_conditions_make -- conditions as typed, separated by commas: [LEVEL:]NAME[OP VALUE[%]], LEVEL one of
 * tensor (if none is given), kind, step, total. With `counts` no errors of casts are known. 0, or an
 * exit code after a message that begins with `verb`. It must outlive them. */
int stat_conditions_make(conditions *g, const char *verb, const option_list *words, const target_list *targets,
                         int counts);
void stat_conditions_clear(conditions *g);

/* stat_conditions_judge -- judge a row by the conditions of its level. */
void stat_conditions_judge(conditions *g, const stat_row *row);

/* stat_conditions_tell -- a line on standard error for each condition that holds somewhere, with the worst place;
 * EXIT_CHECK, or 0 if none does. */
int stat_conditions_tell(const conditions *g);
