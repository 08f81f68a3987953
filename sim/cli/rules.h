/* rules.h -- which options go together: the rows of rules of a command's table (options.h). */
#pragma once

#include "options.h"

/* What stands on the command line. */
typedef struct options_given {
    const option_row *const *rows; /* the options of the table                        */
    const char *const *texts;      /* of each the last argument, or NULL; of flags "" */
    const uint64_t *defaults;      /* of counts                                       */
    int n;
    int operands; /* how many, and they themselves */
    char **words;
} options_given;

/* rules_check -- -1 if all rules are kept, else EXIT_USAGE after a message. */
int rules_check(const command *c, const option_row *table, const options_given *g);

/* rule_say -- the rule as a sentence for the help; empty where nothing is to be said, as of options that exclude each other of which
 * the table has one. */
void rule_say(char *to, size_t size, const option_row *table, const option_row *rule);

/* range_say -- "from 1 to 2^20", "above 0", "at least 1". */
void range_say(char *to, size_t size, const option_range *r);
/* range_of -- the range of an option of the table; NULL: any number. */
const option_range *range_of(const option_row *table, const char *name);
